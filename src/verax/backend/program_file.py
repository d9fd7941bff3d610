"""The frame of files with compiled programs: what is checked before anything is read.

One idea: jaxlib trusts what it loads, and ends the process where that is wrong, so a
file says in front what it is, and has a checksum over all the rest (floor 4)::

    pack({"name": "f"}, [code]) -> bytes
    unpack(data) -> ({"name": "f"}, [code])
"""

import json
import struct
from collections.abc import Sequence
from typing import Any, Final

from verax.rules.lazy import LazyModule

# Imported when first called: it costs as much as ten modules of ours.
hashlib = LazyModule("hashlib")

MAGIC: Final = b"verax-program\n"
VERSION: Final = 1
HEAD: Final = struct.Struct("<I32sQ")
"""What follows the magic word: version, checksum of the rest, size of the JSON."""


def pack(description: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """The file: a description, whose values JSON knows, and parts of any bytes."""
    sized = {**description, "sizes": [len(part) for part in parts]}
    text = json.dumps(sized, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join([text, *parts])
    return MAGIC + HEAD.pack(VERSION, hashlib.sha256(body).digest(), len(text)) + body


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
    data = bytes(data)
    start = len(MAGIC) + HEAD.size
    if not data.startswith(MAGIC) or len(data) < start:
        raise ValueError(
            "these bytes are no compiled program: serialize() of a compiled stage "
            "makes such"
        )
    version, checksum, size = HEAD.unpack_from(data, len(MAGIC))
    if version != VERSION:
        raise ValueError(
            f"the compiled program is in version {version} of the format, and this "
            f"verax reads version {VERSION}"
        )
    body = data[start:]
    if hashlib.sha256(body).digest() != checksum:
        raise ValueError(
            "the compiled program is damaged: its checksum is wrong, so that bytes "
            "were lost or changed"
        )
    description: dict[str, Any] = json.loads(body[:size])
    parts = []
    for length in description["sizes"]:
        parts.append(body[size : size + length])
        size += length
    return description, parts
