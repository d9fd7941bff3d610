"""Floor 5: exported functions as bytes.

One idea: in a frame with a version and a checksum stand a list of JSON descriptions,
one for the function and one for each derivative, and then their modules::

    pack([{"name": "f", ...}], [module]) -> bytes
    unpack(data) -> ([{...}], [module])

Wrong bytes are found here, before anything else looks at them.
"""

from collections.abc import Sequence
from typing import Any, Final

from verax.ir.forms.frames import Frame, crc32, cut

FRAME: Final = Frame(
    b"verax-export\n", 1, "exported function", "Exported.serialize()", crc32
)


def pack(descriptions: Sequence[dict[str, Any]], modules: Sequence[bytes]) -> bytes:
    """The file of a function and its derivatives."""
    sized: list[Any] = [
        {**description, "size": len(module)}
        for description, module in zip(descriptions, modules, strict=True)
    ]
    return FRAME.pack(sized, modules)


def unpack(data: bytes | bytearray) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The descriptions and the modules.

    Raises:
        TypeError: `data` is not bytes.
        ValueError: it is not an exported function, is damaged, or of another version.
    """
    if not isinstance(data, bytes | bytearray):
        raise TypeError(f"deserialize takes bytes, not {type(data).__name__}")
    found, rest = FRAME.unpack(bytes(data))
    descriptions: Any = found
    with FRAME.understanding():
        return descriptions, cut(rest, [one["size"] for one in descriptions])
