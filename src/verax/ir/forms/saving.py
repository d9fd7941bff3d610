"""Floor 0: programs as JSON and as bytes, exact to the last bit.

One idea: the document repeats the printed language: types, scalars and params are its
words, and only what text expresses badly (which variable, which inner program, which
array) is a number. Equal programs give equal bytes, whatever the process did before::

    data = dumps(closed)
    loads(data) == closed          # as far as it holds no arrays: those are new objects

An equal jaxpr is written once, however often it is called. Arrays are stored in the
dtype of their type, little-endian. The format has a version; `loading` beside this file
reads it.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from types import CodeType
from typing import Final

import numpy as np
from attrs import AttrsInstance, fields, frozen, has
from pyrsistent import pvector

from verax.ir.atoms import Atom, Identity, Literal, Var, array_literal, variable
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import ExtendedDType, float0, stored_dtype
from verax.ir.forms.parser import scalar
from verax.ir.forms.values import (
    Frame,
    InvalidFile,
    Json,
    build,
    canonical_json,
    classes_in,
    crc32,
    field_types,
    fits,
    read_value,
)
from verax.ir.jaxpr import (
    NO_PARAMS,
    UNKNOWN_SOURCE,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    NoParams,
    Params,
    Primitive,
    Source,
)
from verax.ir.library import Library
from verax.ir.memos import memoised
from verax.ir.promotion import scalar_text
from verax.ir.records import ReprMixin
from verax.ir.reports.check import check_jaxpr
from verax.ir.text.printer import (
    Layout,
    Printer,
    Program,
    aval_text,
    flat,
    nickname,
    printed_fields,
    spoken_fields,
)
from verax.ir.text.tokens import Cursor, aval_of_word, plain
from verax.ir.walk import Stored

FORMAT: Final = "verax-jaxpr"
FRAME: Final = Frame(b"verax-jaxpr\n", 1, "saved program", "verax.ir.dumps", crc32)


class Unsavable(TypeError):
    """A program holds something that cannot be saved, such as a Python function."""

    __module__ = "verax.ir"


def to_json(
    program: Jaxpr | ClosedJaxpr, *, sources: bool = False, indent: int | None = None
) -> str:
    """The program as a JSON text; arrays are base64. `sources` keeps the user's lines.

    Raises:
        Unsavable: an equation holds a Python function or another object without text.

    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> to_json(empty_jaxpr((), ()))[:34]
    '{"consts":[],"format":"verax-jaxpr'
    """
    encoder = Encoder(sources)
    document = encoder.document(as_closed(program))
    document["consts"] = [
        {"type": aval_text(c.aval), "data": base64.b64encode(array_bytes(c)).decode()}
        for c in encoder.held
    ]
    return canonical_json(document, indent)


def dumps(program: Jaxpr | ClosedJaxpr, *, sources: bool = False) -> bytes:
    """The program as bytes: a head with version and checksum, JSON, then the arrays.

    Raises:
        Unsavable: an equation holds a Python function or another object without text.

    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> dumps(empty_jaxpr((), ()))[:11]
    b'verax-jaxpr'
    """
    encoder = Encoder(sources)
    document = encoder.document(as_closed(program))
    document["consts"] = [{"type": aval_text(c.aval)} for c in encoder.held]
    return FRAME.pack(document, [array_bytes(c) for c in encoder.held])


def as_closed(program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr:
    """The program with the values of its constvars.

    Raises:
        TypeError: it is not a program.
        ValueError: a plain jaxpr has constvars, whose values are not known.
    """
    if isinstance(program, ClosedJaxpr):
        return program
    if not isinstance(program, Jaxpr):
        raise TypeError(
            f"expected a Jaxpr or a ClosedJaxpr, not {program!r:.60}; "
            "verax.make_jaxpr(f)(*args) makes one from a function"
        )
    if program.constvars:
        raise ValueError(
            "this jaxpr has constvars but not their values; pass the ClosedJaxpr"
        )
    return ClosedJaxpr(program)


def array_bytes(constant: Literal) -> bytes:
    """The elements of an array constant, in the dtype that its type is stored as."""
    value, dtype = constant.value, constant.aval.dtype
    if dtype == float0:
        return b""
    array = value.stored() if isinstance(value, Stored) else np.asarray(value)
    with np.errstate(all="ignore"):
        return array.astype(stored_dtype(dtype), copy=False).tobytes()


class Encoder(Printer):
    """Writes programs as JSON; params as they are printed, with programs by number."""

    def __init__(self, sources: bool) -> None:
        super().__init__(sources, types=True)
        self.programs: list[Json] = []
        self.known: dict[Jaxpr, int] = {}
        self.held: list[Literal] = []
        self.place: Eqn | None = None

    def document(self, closed: ClosedJaxpr) -> dict[str, Json]:
        """Everything but the arrays, which are in `held` afterwards."""
        pairs = zip(closed.consts, closed.jaxpr.constvars, strict=True)
        consts = [self.constant(array_literal(x, var.aval)) for x, var in pairs]
        main = self.number(closed.jaxpr)
        return {
            "format": FORMAT,
            "version": FRAME.version,
            "main": main,
            "main_consts": list(consts),
            "programs": self.programs,
        }

    def number(self, jaxpr: Jaxpr) -> int:
        """The number of a program, which is written at its first use."""
        entry = self.known.get(jaxpr)
        if entry is not None:
            return entry
        written: Json = {
            "constvars": [aval_text(v.aval) for v in jaxpr.constvars],
            "invars": [aval_text(v.aval) for v in jaxpr.invars],
            "eqns": [self.step(eqn) for eqn in jaxpr.eqns],
            "outvars": [self.operand(a) for a in jaxpr.outvars],
        }
        self.programs.append(written)
        self.known[jaxpr] = len(self.programs) - 1
        return self.known[jaxpr]

    def step(self, eqn: Eqn) -> Json:
        """One equation."""
        written: dict[str, Json] = {
            "primitive": eqn.primitive.name,
            "invars": [self.operand(a) for a in eqn.invars],
            "outvars": [aval_text(v.aval) for v in eqn.outvars],
        }
        params: dict[str, Json] = {}
        self.place = eqn
        self.refuse_unreadable(eqn.params)
        for name in spoken_fields(eqn.params):
            self.place = eqn
            params[name] = flat(self.value(getattr(eqn.params, name)))
        if params:
            written["params"] = params
        if self.sources and eqn.source.code is not None:
            written["source"] = written_source(eqn.source)
        return written

    def operand(self, atom: Atom) -> Json:
        """A variable is its number; a literal is a text, that of an array `const0`."""
        if isinstance(atom, Var):
            return atom.index
        if isinstance(atom.key, bytes):
            text = scalar_text(atom.key, atom.aval.dtype)
        else:
            text = f"const{self.constant(atom)}"
        return f"{text}:{aval_text(atom.aval)}"

    def constant(self, literal: Literal) -> int:
        """The number of an array constant; one object is stored once for each type."""
        for number, held in enumerate(self.held):
            if held == literal:
                return number
        self.held.append(literal)
        return len(self.held) - 1

    def program(self, program: Program) -> str:
        """A program among params: its number, instead of its text."""
        assert isinstance(program, Jaxpr)
        place = self.place
        number = self.number(program)
        self.place = place
        return f"{{ lambda {number} }}"

    def value(self, value: object) -> Layout:
        """The text of a value; a record that is printed in part has none."""
        kind = type(value)
        if has(kind) and not isinstance(value, Program) and plain(value) is None:
            if not whole(kind):
                return self.opaque(value)
            self.refuse_unreadable(value)
        return super().value(value)

    def refuse_unreadable(self, record: object) -> None:
        """Raise if a field holds a record of a class that its type does not name."""
        hints = field_types(type(record))
        for name in printed_fields(type(record)) or ():
            value = getattr(record, name)
            kind = type(value)
            if not has(kind) or isinstance(value, Program) or plain(value) is not None:
                continue
            if classes_in(hints.get(name, object)).get(kind.__name__) is not kind:
                self.opaque(value)

    def opaque(self, value: object) -> str:
        eqn = self.place
        assert eqn is not None
        raise Unsavable(
            f"the equation {eqn.primitive.name} ({eqn.source}) holds {nickname(value)} "
            f"({type(value).__name__}), a Python object that cannot be saved. Save the "
            "program after the transformation that calls it (grad of a custom rule "
            "writes its equations), or without it"
        )


@memoised
def whole(kind: type[AttrsInstance]) -> bool:
    """Whether records of this class are printed with all that makes them."""
    return not any([a.init and a.repr is False for a in fields(kind)])


def written_source(source: Source) -> Json:
    """File, line, function and origin."""
    return [source.file, source.line, source.function, source.origin]


# -----------------------------------------------------------------------------
# Saved programs read back, and refused if they are not what was saved.
#
# Nothing in a file is trusted: the checksum, the version, every number and the
# types of every equation are checked before a program comes out::
#
#     loads(dumps(closed)) == closed
#     loads(b"nonsense")              # InvalidFile: these bytes were not written by ...


FAILURES = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    UnicodeDecodeError,
    binascii.Error,
)


def from_json(
    text: str, primitives: Mapping[str, Primitive] | None = None
) -> ClosedJaxpr:
    """The program that `to_json` wrote.

    Raises:
        InvalidFile: the text is corrupt, of another version, or ill-typed.
    """
    try:
        document = mapping(json.loads(text))
        check_head(document)
        consts = [
            restored(item, base64.b64decode(string(item["data"]), validate=True))
            for item in map(mapping, sequence(document["consts"]))
        ]
        return restored_program(document, consts, primitives)
    except InvalidFile:
        raise
    except FAILURES as error:
        raise InvalidFile(f"not a saved program: {reason(error)}") from error


def loads(
    data: bytes, primitives: Mapping[str, Primitive] | None = None
) -> ClosedJaxpr:
    """The program that `dumps` wrote; `primitives` are by default the library's.

    Array constants are new, read-only NumPy arrays with the bits of the old ones.

    Raises:
        InvalidFile: the bytes are corrupt, of another version, or ill-typed.
    """
    if not isinstance(data, bytes):
        raise TypeError(
            f"loads takes bytes, not {type(data).__name__}; from_json takes strings"
        )
    result, rest = FRAME.unpack(data)
    try:
        document = mapping(result)
        check_head(document)
        items = [mapping(item) for item in sequence(document["consts"])]
        consts = list(cut(items, rest))
        return restored_program(document, consts, primitives)
    except InvalidFile:
        raise
    except FAILURES as error:
        raise InvalidFile(f"not a saved program: {reason(error)}") from error


def reason(error: Exception) -> str:
    """The reason for the failure, in words."""
    if isinstance(error, KeyError):
        return f"the field {error} is missing"
    return str(error) or type(error).__name__


def check_head(document: Mapping[str, Json]) -> None:
    """Raise unless the document has our format and this version."""
    if document.get("format") != FORMAT:
        raise InvalidFile(f'not a saved program: its format is not "{FORMAT}"')
    FRAME.check_version(document.get("version"))


def cut(items: Sequence[Mapping[str, Json]], data: bytes) -> Iterator[Literal]:
    """The array constants, whose bytes follow each other."""
    start = 0
    for item in items:
        size = byte_size(aval_of_word(string(item["type"])))
        yield restored(item, data[start : start + size])
        start += size
    if start != len(data):
        raise ValueError(f"the arrays take {start} bytes, but there are {len(data)}")


def byte_size(aval: ShapedArray) -> int:
    """The bytes of an array constant in a file."""
    return 0 if aval.dtype == float0 else aval.size * aval.dtype.itemsize


def restored(item: Mapping[str, Json], data: bytes) -> Literal:
    """An array constant of the type that the item says."""
    aval = aval_of_word(string(item["type"]))
    if len(data) != byte_size(aval):
        raise ValueError(f"an array of type {aval} does not have {len(data)} bytes")
    inner = aval.dtype.element_shape if isinstance(aval.dtype, ExtendedDType) else ()
    shape = (*aval.shape, *inner)
    dtype = stored_dtype(aval.dtype)
    if aval.dtype == float0 or not prod(shape):
        array = np.zeros(shape, dtype)
        array.flags.writeable = False
    else:
        array = np.frombuffer(data, dtype).reshape(shape)
    return array_literal(array, aval)


def restored_program(
    document: Mapping[str, Json],
    consts: Sequence[Literal],
    primitives: Mapping[str, Primitive] | None,
) -> ClosedJaxpr:
    """The program of a document, checked."""
    decoder = Decoder(
        Library.primitives if primitives is None else primitives, tuple(consts), []
    )
    for item in sequence(document["programs"]):
        decoder.programs.append(decoder.program(mapping(item)))
    jaxpr = decoder.programs[integer(document["main"])]
    numbers = [integer(i) for i in sequence(document["main_consts"])]
    values = [consts[i] for i in numbers]
    if [c.aval for c in values] != [v.aval for v in jaxpr.constvars]:
        raise ValueError("the constvars and their values have different types")
    if Library.typing is not None and primitives is None:
        check_jaxpr(jaxpr, Library.typing)
    return ClosedJaxpr(jaxpr, tuple([c.value for c in values]))


@frozen(repr=False)
class Decoder(ReprMixin):
    """Resolves references: primitives by name; arrays and programs by number."""

    primitives: Mapping[str, Primitive]
    consts: tuple[Literal, ...]
    programs: list[Jaxpr]

    def program(self, item: Mapping[str, Json]) -> Jaxpr:
        """One program; those that it refers to are known already."""
        scope: list[Var] = []
        constvars = define(scope, item["constvars"])
        invars = define(scope, item["invars"])
        eqns = [self.equation(scope, mapping(eqn)) for eqn in sequence(item["eqns"])]
        outvars = self.operands(scope, item["outvars"])
        return Jaxpr(constvars, invars, pvector(eqns), outvars)

    def equation(self, scope: list[Var], item: Mapping[str, Json]) -> Eqn:
        """One equation, whose results are in scope afterwards."""
        name = string(item["primitive"])
        primitive = self.primitives.get(name)
        if primitive is None:
            raise ValueError(
                f"the primitive {name} is not known; pass primitives=, a mapping from "
                "names to rows that has it"
            )
        params = self.params(primitive, mapping(item.get("params", {})))
        invars = self.operands(scope, item["invars"])
        outvars = define(scope, item["outvars"])
        source = read_source(item.get("source"))
        return Eqn(primitive, params, invars, outvars, source)

    def operands(self, scope: Sequence[Var], items: Json) -> tuple[Atom, ...]:
        return tuple([self.operand(scope, item) for item in sequence(items)])

    def operand(self, scope: Sequence[Var], item: Json) -> Atom:
        """A variable by its number, or a literal by its text."""
        if isinstance(item, int):
            if not 0 <= item < len(scope):
                raise IndexError(f"there is no variable {item}, only {len(scope)}")
            return scope[item]
        text, _, aval = string(item).partition(":")
        if not text.startswith("const"):
            return scalar(text, aval)
        literal = self.consts[int(text[5:])]
        assert isinstance(literal.key, Identity)
        if literal.aval is not aval_of_word(aval):
            raise ValueError(f"{text} has the type {literal.aval}, not {aval}")
        return literal

    def params(self, primitive: Primitive, item: Mapping[str, Json]) -> Params:
        """The params, each read as it is printed."""
        kind = primitive.params
        if kind is NoParams:
            return NO_PARAMS
        hints = field_types(kind)
        out: dict[str, object] = {}
        for name, text in item.items():
            cursor = Cursor(string(text))
            hint = hints.get(name, object)
            out[name] = read_value(cursor, classes_in(hint), self.referred)
            if cursor.kind != "end" or not fits(out[name], hint):
                cursor.fail(f"a value for {kind.__name__}.{name}, of type {hint}", 0)
        return build(Cursor(""), kind, out, 0)

    def referred(self, cursor: Cursor) -> Jaxpr:
        """A program by its number, `{ lambda 3 }`, behind the opening brace."""
        cursor.expect("lambda")
        number = int(cursor.take("number"))
        cursor.expect("}")
        if not 0 <= number < len(self.programs):
            raise IndexError(f"there is no program {number}, only {len(self.programs)}")
        return self.programs[number]


def define(scope: list[Var], items: Json) -> tuple[Var, ...]:
    """New variables of these types."""
    first = len(scope)
    new = [
        variable(first + i, aval_of_word(string(item)))
        for i, item in enumerate(sequence(items))
    ]
    scope += new
    return tuple(new)


def read_source(item: Json) -> Source:
    """The line of the user, if it was saved."""
    if item is None:
        return UNKNOWN_SOURCE
    file, line, function, origin = sequence(item)
    code = stand_in(string(file), integer(line), string(function))
    return Source(code, 0, string(origin))


@lru_cache(maxsize=4096)
def stand_in(file: str, line: int, function: str) -> CodeType:
    """Code that says it is on this line of this function: no more is known of it."""
    code = compile("", file, "exec")
    return code.replace(
        co_firstlineno=max(line, 1),
        co_name=function.rpartition(".")[2],
        co_qualname=function,
        co_linetable=b"",
    )


def mapping(item: Json) -> Mapping[str, Json]:
    if not isinstance(item, dict):
        raise TypeError(f"an object was expected, not {item!r:.60}")
    return item


def sequence(item: Json) -> Sequence[Json]:
    if not isinstance(item, list):
        raise TypeError(f"a list was expected, not {item!r:.60}")
    return item


def string(item: Json) -> str:
    if not isinstance(item, str):
        raise TypeError(f"a string was expected, not {item!r:.60}")
    return item


def integer(item: Json) -> int:
    if not isinstance(item, int) or isinstance(item, bool) or item < 0:
        raise TypeError(f"a non-negative integer was expected, not {item!r:.60}")
    return item
