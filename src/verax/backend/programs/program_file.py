"""The frame of files with compiled programs: what is checked before anything is read.

One idea: jaxlib trusts what it loads, and ends the process where that is wrong, so the
checksum of these files is one that no accident passes (floor 4)::

    pack({"name": "f"}, [code]) -> bytes
    unpack(data) -> ({"name": "f"}, [code])
"""

from collections.abc import Sequence
from typing import Any, Final

from verax.ir.frames import Frame, cut
from verax.rules.values.lazy import LazyModule

# Imported when first called: it costs as much as ten modules of ours.
hashlib = LazyModule("hashlib")


def sha256(body: bytes) -> bytes:
    """A checksum that is also safe from what is not accidental damage."""
    found: bytes = hashlib.sha256(body).digest()
    return found


FRAME: Final = Frame(
    b"verax-program\n",
    1,
    "compiled program",
    "serialize() of a compiled stage",
    sha256,
)


def pack(description: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """The file: a description, whose values JSON knows, and parts of any bytes."""
    sizes: list[Any] = [len(part) for part in parts]
    return FRAME.pack({**description, "sizes": sizes}, parts)


def unpack(data: object) -> tuple[dict[str, Any], list[bytes]]:
    """The description and the parts.

    Raises:
        TypeError: `data` is no bytes.
        ValueError: it is no such file, a damaged one, or of another version.

    >>> unpack(pack({"name": "f"}, [b"code"]))
    ({'name': 'f', 'sizes': [4]}, [b'code'])
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a compiled program is bytes, not {type(data).__name__}")
    found, rest = FRAME.unpack(bytes(data))
    description: Any = found
    with FRAME.understanding():
        return description, cut(rest, description["sizes"])
