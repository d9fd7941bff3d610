"""Floor 0: the frame of our files: what is checked before anything in one is read.

One idea: a file starts with what it is, its version and a checksum of all the rest;
then come a JSON document and parts of any bytes::

    frame = Frame(b"verax-jaxpr\\n", 1, "saved program", "verax.ir.dumps", crc32)
    frame.unpack(frame.pack(document, parts))    # (document, the parts together)
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin

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
            raise InvalidFile(
                f"this {self.content} has version {version}, but this verax reads "
                f"version {self.version} of the format; make it again with this verax, "
                "or load it with the version that made it"
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
