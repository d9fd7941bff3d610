"""Floor 5: exported functions as bytes.

One idea: a head with a version and a checksum, a list of JSON descriptions, one for the
function and one for each derivative, and then their modules one after the other::

    pack([{"name": "f", ...}], [module]) -> bytes
    unpack(data) -> ([{...}], [module])

What is wrong with the bytes is found here, before anything else looks at them.
"""

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final

MAGIC: Final = b"verax-export\n"
VERSION: Final = 1
HEAD: Final = struct.Struct("<IIQ")
"""What follows the magic word: version, checksum of the rest, size of the JSON."""


def pack(descriptions: Sequence[dict[str, Any]], modules: Sequence[bytes]) -> bytes:
    """The file of a function and its derivatives."""
    sized = [
        {**description, "size": len(module)}
        for description, module in zip(descriptions, modules, strict=True)
    ]
    text = json.dumps(sized, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join([text, *modules])
    return MAGIC + HEAD.pack(VERSION, zlib.crc32(body), len(text)) + body


def unpack(data: bytes | bytearray) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The descriptions and the modules.

    Raises:
        TypeError: `data` is no bytes.
        ValueError: it is no exported function, a damaged one, or of another version.
    """
    if not isinstance(data, bytes | bytearray):
        raise TypeError(f"deserialize takes bytes, not {type(data).__name__}")
    data = bytes(data)
    start = len(MAGIC) + HEAD.size
    if not data.startswith(MAGIC) or len(data) < start:
        raise ValueError(
            "these bytes are no exported function: Exported.serialize() makes such"
        )
    version, checksum, size = HEAD.unpack_from(data, len(MAGIC))
    if version != VERSION:
        raise ValueError(
            f"the exported function is in version {version} of the format, and this "
            f"verax reads version {VERSION}"
        )
    body = data[start:]
    if zlib.crc32(body) != checksum:
        raise ValueError(
            "the exported function is damaged: its checksum is wrong, so that bytes "
            "were lost or changed"
        )
    descriptions = json.loads(body[:size])
    modules = []
    for description in descriptions:
        modules.append(body[size : size + description["size"]])
        size += description["size"]
    return descriptions, modules
