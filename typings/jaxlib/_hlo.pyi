"""The part of jaxlib's module for XLA's own forms that `verax.backend` uses."""

from collections.abc import Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

class OpSharding:
    class Type(Enum):
        REPLICATED = ...

class HloSharding:
    @staticmethod
    def from_proto(proto: OpSharding, /) -> HloSharding: ...
    @staticmethod
    def replicate() -> HloSharding: ...
    @staticmethod
    def subgroup_with_device_ordering(
        tile_assignment: NDArray[np.int64],
        subgroup_types: Sequence[OpSharding.Type] = [],
    ) -> HloSharding: ...
    def is_replicated(self) -> bool: ...
    def is_maximal(self) -> bool: ...
    def tile_assignment_dimensions(self) -> list[int]: ...
    def tile_assignment_devices(self) -> list[int]: ...

class HloPrintOptions:
    print_metadata: bool
    @staticmethod
    def short_parsable() -> HloPrintOptions: ...

class HloModule:
    def to_string(self, options: HloPrintOptions = ...) -> str: ...

class XlaComputation:
    def as_hlo_module(self) -> HloModule: ...
