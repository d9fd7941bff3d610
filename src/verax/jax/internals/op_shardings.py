"""`jax._src.op_shardings`: what XLA's own shardings say.

They are what `sharding._to_xla_hlo_sharding(ndim)` returns::

    get_num_ways_dim_sharded(x.sharding._to_xla_hlo_sharding(x.ndim))
"""

from collections.abc import Sequence
from typing import Protocol


class HloSharding(Protocol):
    """A sharding as XLA has it: tiles, whose last dimensions may be copies or terms."""

    def is_replicated(self) -> bool: ...
    def is_manual(self) -> bool: ...
    def is_unreduced(self) -> bool: ...
    def num_devices(self) -> int: ...
    def num_dimensions(self) -> int: ...
    def tile_assignment_dimensions(self) -> Sequence[int]: ...
    def subgroup_types(self) -> Sequence[object]: ...
    def replicate_on_last_tile_dim(self) -> bool: ...


def is_hlo_sharding_replicated(hc: HloSharding) -> bool:
    """Whether every device holds the whole array."""
    return hc.num_devices() == 1 or hc.is_replicated()


def are_hlo_shardings_equal(hc1: HloSharding, hc2: HloSharding) -> bool:
    """Whether two shardings put the same parts on the same devices."""
    both = is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2)
    return both or hc1 == hc2


def get_num_ways_dim_sharded(hlo_sharding: HloSharding) -> tuple[list[int], int]:
    """The number of parts of each dimension, and how many copies there are of each.

    Raises:
        NotImplementedError: devices are grouped in another way.
    """
    if hlo_sharding.is_replicated() or hlo_sharding.is_unreduced():
        return [], 1
    parts = list(hlo_sharding.tile_assignment_dimensions())
    kinds = [str(kind).rpartition(".")[2] for kind in hlo_sharding.subgroup_types()]
    if not kinds and hlo_sharding.replicate_on_last_tile_dim():
        kinds = ["REPLICATED"]
    if not set(kinds) <= {"REPLICATED", "UNREDUCED"}:
        raise NotImplementedError(f"Unhandled OpSharding type: {hlo_sharding}")
    last = parts[len(parts) - len(kinds) :]
    copies = [n for n, kind in zip(last, kinds, strict=True) if kind == "REPLICATED"]
    return parts[: len(parts) - len(kinds)], (copies or [1])[0]
