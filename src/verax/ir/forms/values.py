"""Floor 0: the params of an equation, read by the types of their fields.

One idea: words say what they are, so the types of the fields are needed for two things
only: to find the class of an enum or a record by its name, and to reject a value that
the field cannot hold::

    read_params(Cursor("[axes=(0, 1)]"), ReduceParams, read_program)
"""

import ast
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import accumulate, pairwise
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Final,
    Literal,
    TypeAliasType,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from attrs import NOTHING, fields, frozen, has

from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, NoParams, Params
from verax.ir.memos import memoised
from verax.ir.promotion import element, scalar_bytes
from verax.ir.records import ReprMixin
from verax.ir.text.printer import printed_fields
from verax.ir.text.tokens import CONSTANTS, Cursor, dtype_of_word

type ProgramReader = Callable[[Cursor], Jaxpr]
type Classes = Mapping[str, type]
SPECIAL_FLOATS: Mapping[str, float] = MappingProxyType(
    {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "-nan": -math.nan}
)


def read_params(cursor: Cursor, kind: type[Params], program: ProgramReader) -> Params:
    """The params in brackets after the name of a primitive, if there are any.

    Raises:
        ParseError: a field is missing, unknown, or cannot hold what is written.
    """
    start = cursor.start
    out: dict[str, object] = {}
    if cursor.accept("["):
        out = read_fields(cursor, kind, "]", program)
    return NO_PARAMS if kind is NoParams else build(cursor, kind, out, start)


def read_fields(
    cursor: Cursor, kind: type, closing: str, program: ProgramReader
) -> dict[str, object]:
    """`name=value` up to the closing bracket."""
    hints = field_types(kind)
    known = printed_fields(kind) or ()
    out: dict[str, object] = {}
    while not cursor.accept(closing):
        if cursor.kind != "word" or cursor.token not in known or cursor.token in out:
            cursor.fail(expected_field(kind, closing, out))
        name = cursor.take("word")
        cursor.expect("=")
        start = cursor.start
        hint = hints.get(name, object)
        out[name] = read_value(cursor, classes_in(hint), program)
        if cursor.sizes is not None and not fits(out[name], hint):
            out[name] = with_sizes(cursor, out[name])
        if not fits(out[name], hint):
            cursor.fail(f"a value for {kind.__name__}.{name}, of type {hint}", start)
        cursor.accept(",")
    return out


def with_sizes(cursor: Cursor, value: object) -> object:
    """A value with symbolic sizes, where words stand that a field cannot hold."""
    if isinstance(value, str):
        return cursor.size(value)
    if isinstance(value, tuple):
        return tuple([with_sizes(cursor, item) for item in value])
    return value


def expected_field(kind: type, closing: str, table: Mapping[str, object]) -> str:
    """The fields that may follow those that have been read."""
    left = ", ".join([n for n in printed_fields(kind) or () if n not in table])
    if not left:
        return f"{closing!r} ({kind.__name__} has no more fields)"
    return f"{closing!r} or a field of {kind.__name__}: {left}"


def build[R](
    cursor: Cursor, kind: type[R], table: Mapping[str, object], start: int
) -> R:
    """The record with these fields; what is not written has its default."""
    names = arguments(kind)
    missing = [n for n, needed in names.values() if needed and n not in table]
    if missing:
        cursor.fail(f"the fields of {kind.__name__}: {', '.join(missing)}", start)
    try:
        return kind(**{a: table[n] for a, (n, _) in names.items() if n in table})
    except (TypeError, ValueError) as error:
        cursor.fail(f"fields that {kind.__name__} accepts ({error})", start)


def arguments(kind: type) -> dict[str, tuple[str, bool]]:
    """The arguments that make a record: name of the field, and whether it must be."""
    if has(kind):
        return {
            a.alias or a.name: (a.name, a.default is NOTHING)
            for a in fields(kind)
            if a.init
        }
    return {name: (name, True) for name in printed_fields(kind) or ()}


def read_value(cursor: Cursor, classes: Classes, program: ProgramReader) -> object:
    """One value: a number, a word, a string, a tuple, a set, a record or a jaxpr."""
    size = cursor.accept_size()
    if size is not None:
        return size
    kind, token, start = cursor.kind, cursor.token, cursor.start
    if kind == "mark":
        return read_brackets(cursor, classes, program)
    cursor.advance()
    match kind:
        case "number":
            return read_number(token)
        case "string":
            value: object = ast.literal_eval(token)
            return value
        case "aval":
            return read_aval(cursor, token, start)
        case "typed":
            return read_scalar(cursor, token, start)
        case "word" if cursor.at("("):
            return read_record(cursor, token, start, classes, program)
        case "word":
            return read_word(cursor, token, start, classes)
        case "opaque":
            cursor.fail(f"a value that can be written; {token} has no text", start)
    cursor.fail("a value", start)


def read_brackets(cursor: Cursor, classes: Classes, program: ProgramReader) -> object:
    """A tuple, a set, or the jaxpr that begins with the same brace as a set."""
    if cursor.accept("("):
        return tuple(read_items(cursor, ")", classes, program))
    if not cursor.accept("{"):
        cursor.fail("a value")
    if cursor.kind == "word" and cursor.token == "lambda":
        return program(cursor)
    return frozenset(read_items(cursor, "}", classes, program))


def read_items(
    cursor: Cursor, closing: str, classes: Classes, program: ProgramReader
) -> list[object]:
    """Values up to the closing bracket; commas are ignored."""
    items: list[object] = []
    while not cursor.accept(closing):
        items.append(read_value(cursor, classes, program))
        cursor.accept(",")
    return items


def read_number(token: str) -> int | float | complex:
    """A Python number."""
    if token in SPECIAL_FLOATS:
        return SPECIAL_FLOATS[token]
    if token.endswith("j"):
        return complex(token)
    return float(token) if "." in token or "e" in token else int(token, 0)


def read_aval(cursor: Cursor, token: str, start: int) -> ShapedArray:
    """A type such as `f32[8]`."""
    try:
        return cursor.aval(token)
    except ValueError as error:
        cursor.fail(f"a type ({error})", start)


def read_scalar(cursor: Cursor, token: str, start: int) -> object:
    """A NumPy scalar such as `3.0:f32[]`."""
    text, _, word = token.partition(":")
    dtype = read_aval(cursor, word, start).dtype
    try:
        return element(scalar_bytes(text, dtype), dtype)[()]
    except (ValueError, OverflowError) as error:
        cursor.fail(f"a scalar of type {word} ({error})", start)


def read_record(
    cursor: Cursor, name: str, start: int, classes: Classes, program: ProgramReader
) -> object:
    """`Name(field=value, ...)`."""
    if name not in classes:
        cursor.fail(expected_class(classes), start)
    cursor.expect("(")
    out = read_fields(cursor, classes[name], ")", program)
    return build(cursor, classes[name], out, start)


def read_word(cursor: Cursor, word: str, start: int, classes: Classes) -> object:
    """None, a boolean, a dtype, a member of an enum, or a string."""
    if word in CONSTANTS:
        return CONSTANTS[word]
    dtype = dtype_of_word(word)
    if dtype is not None:
        return dtype
    name, dot, member = word.partition(".")
    if not dot:
        return word
    kind = classes.get(name)
    if kind is None or not issubclass(kind, Enum) or member not in kind.__members__:
        cursor.fail(expected_class(classes), start)
    return kind.__members__[member]


def expected_class(classes: Classes) -> str:
    """The classes that an enum or a record may have here."""
    known = ", ".join(sorted(classes)) or "none: this field holds no records"
    return f"a member of an enum or a record of the field's type ({known})"


@memoised
def field_types(kind: type) -> Mapping[str, object]:
    """The types of the fields; empty where they cannot be found."""
    try:
        return get_type_hints(kind)
    except NameError:
        return {}


def classes_in(hint: object) -> Classes:
    """The enums and records that occur in a type, by name."""
    if isinstance(hint, TypeAliasType):
        return classes_in(hint.__value__)
    if isinstance(hint, type) and (issubclass(hint, Enum) or printed_fields(hint)):
        return {hint.__name__: hint}
    out: dict[str, type] = {}
    for part in get_args(hint):
        out.update(classes_in(part))
    return out


def fits(value: object, hint: object) -> bool:
    """Whether a field of type `hint` may hold `value`; unknown types hold all."""
    if hint is None or hint is NoneType:
        return value is None
    if isinstance(hint, TypeAliasType):
        return fits(value, hint.__value__)
    origin = get_origin(hint)
    if isinstance(origin, TypeAliasType):
        return fits(value, origin.__value__)
    parts = get_args(hint)
    if origin is UnionType or origin is Union:
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and fits_tuple(value, parts)
    if origin is frozenset:
        return isinstance(value, frozenset) and all(fits(v, parts[0]) for v in value)
    kind = hint if origin is None else origin
    if kind is float:
        return isinstance(value, float | int)
    if kind is int and isinstance(value, SymbolicSize):
        return True
    return not isinstance(kind, type) or isinstance(value, kind)


def fits_tuple(value: tuple[object, ...], parts: tuple[object, ...]) -> bool:
    """Whether the items of a tuple have the types that are listed for them."""
    if len(parts) == 2 and parts[1] is Ellipsis:
        return all(fits(item, parts[0]) for item in value)
    return len(value) == len(parts) and all(map(fits, value, parts))


# -----------------------------------------------------------------------------
# The frame of our files: what is checked before anything in one is read.
#
# A file starts with what it is, its version and a checksum of all the rest;
# then come a JSON document and parts of any bytes::
#
#     frame = Frame(b"verax-jaxpr\n", 1, "saved program", "verax.ir.dumps", crc32)
#     frame.unpack(frame.pack(document, parts))    # (document, the parts together)


type Json = bool | int | float | str | list["Json"] | dict[str, Json] | None

VERSION: Final = struct.Struct("<I")
SIZE: Final = struct.Struct("<Q")


# What reading a document of an unexpected form raises.
WRONG: Final = (
    AssertionError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    TypeError,
    ValueError,
)


class InvalidFile(ValueError):
    """Not a file of ours, or damaged, or of another version; the message says which."""

    __module__ = "verax.ir"


def crc32(body: bytes) -> bytes:
    """A short checksum, for contents that are checked again when read."""
    return zlib.crc32(body).to_bytes(4, "little")


def canonical_json(document: Json, indent: int | None = None) -> str:
    """One text per document: sorted keys, no blanks unless `indent` asks for them."""
    separators = (",", ":") if indent is None else None
    return json.dumps(document, sort_keys=True, separators=separators, indent=indent)


LATER: Final = "a later verax wrote it: update this one"


@frozen(repr=False)
class Frame(ReprMixin):
    """The frame of one kind of file.

    Attributes:
        magic: the first bytes.
        version: of the format; files of other versions are refused.
        content: what a file is, for messages.
        maker: what writes such files, for messages.
        digest: the checksum of everything that follows the head.
    """

    magic: bytes
    version: int
    content: str
    maker: str
    digest: Callable[[bytes], bytes]

    def pack(self, document: Json, parts: Sequence[bytes]) -> bytes:
        """The file of a document and of parts, which the document has to measure."""
        text = canonical_json(document).encode()
        body = b"".join([text, *parts])
        head = (VERSION.pack(self.version), self.digest(body), SIZE.pack(len(text)))
        return b"".join([self.magic, *head, body])

    def unpack(self, data: bytes) -> tuple[Json, bytes]:
        """The document, and the bytes of all parts.

        Raises:
            InvalidFile: it is another file, is damaged, or of another version.
        """
        words = len(self.magic) + VERSION.size
        rest = words + len(self.digest(b""))
        start = rest + SIZE.size
        if not data.startswith(self.magic) or len(data) < start:
            raise InvalidFile(
                f"these bytes were not written by {self.maker}: every {self.content} "
                f"starts with {self.magic!r} and a header of {start} bytes"
            )
        (version,) = VERSION.unpack_from(data, len(self.magic))
        self.check_version(version)
        (size,) = SIZE.unpack_from(data, rest)
        body = data[start:]
        if self.digest(body) != data[words:rest] or size > len(body):
            raise self.damaged(data)
        try:
            return json.loads(body[:size]), body[size:]
        except (ValueError, RecursionError) as error:
            raise self.damaged(data) from error

    def check_version(self, version: object) -> None:
        """Raise InvalidFile unless this library reads files of this version."""
        if version != self.version:
            later = isinstance(version, int) and version > self.version
            raise InvalidFile(
                f"this {self.content} has version {version}, but this verax reads "
                f"version {self.version} of the format; "
                f"{LATER if later else 'make it again with this verax'}, or load it "
                "with the version that made it"
            )

    def damaged(self, data: bytes) -> InvalidFile:
        """The error for bytes that are not those that were written."""
        return InvalidFile(
            f"this {self.content} is damaged: its checksum does not match; some of its "
            f"{len(data)} bytes are missing or changed"
        )

    @contextmanager
    def understanding(self) -> Iterator[None]:
        """Turn the errors that a wrong document leads to within the block into one.

        Raises:
            InvalidFile: the document is not what this library writes.
        """
        try:
            yield
        except WRONG as error:
            kind = type(error)
            if kind is ValueError or kind.__module__ != "builtins":
                raise  # it says what is wrong, as such classes do
            raise InvalidFile(
                f"this {self.content} was not made by {self.maker}: its description is "
                f"invalid ({type(error).__name__}: {error!s:.200})"
            ) from error


def cut(rest: bytes, sizes: Sequence[int]) -> list[bytes]:
    """The parts, one after the other.

    Raises:
        InvalidFile: the sizes do not fit.
    """
    if not all([type(size) is int and size >= 0 for size in sizes]) or (
        sum(sizes) != len(rest)
    ):
        raise InvalidFile(
            f"the file has {len(rest)} bytes, which parts of {sizes!r:.80} bytes do "
            "not fill"
        )
    return [rest[a:b] for a, b in pairwise(accumulate(sizes, initial=0))]
