"""Floor 6: what this namespace says of itself in the Python array API standard.

One idea: the standard asks a namespace for its dtypes and devices by name, so that
libraries can be written for any::

    info = __array_namespace_info__()
    info.default_dtypes()["real floating"], info.capabilities()
"""

from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen

from verax.backend.runtime.client import Device, devices as client_devices
from verax.ir.dtypes import default_dtype
from verax.ir.records import ReprMixin
from verax.rules.values.array import API_VERSIONS
from verax.rules.values.state import STATE

__array_api_version__ = API_VERSIONS[-1]
KINDS: Final = MappingProxyType(
    {
        "bool": ("bool",),
        "signed integer": ("int8", "int16", "int32", "int64"),
        "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
        "real floating": ("float32", "float64"),
        "complex floating": ("complex64", "complex128"),
    }
)
GROUPS: Final = MappingProxyType(
    {
        "integral": ("signed integer", "unsigned integer"),
        "numeric": (
            *("signed integer", "unsigned integer"),
            *("real floating", "complex floating"),
        ),
    }
)
WIDE: Final = frozenset(("int64", "uint64", "float64", "complex128"))


@frozen(repr=False)
class ArrayNamespaceInfo(ReprMixin):
    """The answers of `verax.numpy` to the inspection functions of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """What the standard leaves open; shapes that depend on values need eager mode.

        >>> ArrayNamespaceInfo().capabilities()["boolean indexing"]
        True
        """
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 64,
        }

    def default_device(self) -> Device | None:
        """Where new arrays go; None for the first device."""
        device: Device | None = STATE.default_device
        return device

    def devices(self) -> tuple[Device | None, ...]:
        """All devices, and None for no choice."""
        return (None, *client_devices())

    def default_dtypes(self, *, device: object = None) -> dict[str, np.dtype[Any]]:
        """The dtypes that arrays get for which none was requested.

        >>> ArrayNamespaceInfo().default_dtypes()["integral"].name
        'int32'
        """
        x64 = STATE.enable_x64
        return {
            "real floating": default_dtype("floating", x64),
            "complex floating": default_dtype("complex", x64),
            "integral": default_dtype("integer", x64),
            "indexing": default_dtype("integer", x64),
        }

    def dtypes(
        self, *, device: object = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The dtypes of the standard that exist now, by name: some, by their kind.

        Raises:
            ValueError: `kind` is not one of the standard's.

        >>> sorted(ArrayNamespaceInfo().dtypes(kind="real floating"))
        ['float32']
        """
        if kind is None:
            kind = tuple(KINDS)
        if isinstance(kind, tuple):
            found: dict[str, np.dtype[Any]] = {}
            for each in kind:
                found |= self.dtypes(kind=each)
            return found
        if kind in GROUPS:
            return self.dtypes(kind=GROUPS[kind])
        if kind not in KINDS:
            known = ", ".join((*KINDS, *GROUPS))
            raise ValueError(f"unknown kind of dtypes {kind!r}; use one of {known}")
        names = [n for n in KINDS[kind] if STATE.enable_x64 or n not in WIDE]
        return {name: np.dtype(name) for name in names}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The array API standard's view of this namespace: dtypes, devices, capabilities.

    >>> import verax.numpy as vnp
    >>> sorted(vnp.__array_namespace_info__().dtypes(kind="complex floating"))
    ['complex64']
    """
    return ArrayNamespaceInfo()
