"""`jax._src.typing`: names for annotations."""

from collections.abc import Sequence
from typing import Any, Protocol

from verax import Array as Array

DType = Any
DimSize = int | Any
Shape = Sequence[DimSize]
DeprecatedArg = Any
StaticScalar = bool | int | float | complex


class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> Any: ...


class SupportsShape(Protocol):
    """What has a shape."""

    @property
    def shape(self) -> tuple[int, ...]: ...


class SupportsSize(Protocol):
    """What has a size."""

    @property
    def size(self) -> int: ...
