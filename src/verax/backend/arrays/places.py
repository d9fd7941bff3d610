"""Where values lie, and how they get there and back (floor 4).

The type of an array, its place and whether the user chose it are one record, by which
compiled programs are looked up; the functions know buffers and NumPy, not arrays::

    buffer = spread(np.ones(4, np.float32), aval, sharding, copy=True)
    to_numpy(buffer, sharding, aval)
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from verax.backend.placement.sharding import Sharding, is_local, runtime_sharding
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Aval, AvalLike, Buffer
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bool_, device_value, float0
from verax.ir.extended import ExtendedDType
from verax.ir.meshes import UnreducedKind
from verax.rules.values.state import State

COMBINED: Final[Mapping[UnreducedKind | None, Callable[..., np.ndarray]]] = {
    UnreducedKind.sum: np.add,
    UnreducedKind.max: np.maximum,
    UnreducedKind.min: np.minimum,
}
"""How terms make a value."""


class Placed(NamedTuple):
    """A type, and the place of its own that an array of it has."""

    aval: ShapedArray
    place: Sharding
    committed: bool


def stored_aval(aval: ShapedArray) -> AvalLike:
    """The type on the device: that of keys are their words."""
    if isinstance(aval.dtype, ExtendedDType):
        shape = (*aval.shape, *aval.dtype.element_shape)
        return Aval(shape, aval.dtype.element_dtype)
    if aval.dtype == float0:
        return Aval(aval.shape, bool_)
    return aval  # type: ignore[return-value]  # NumPy's dtype, then


def spread(
    values: np.ndarray, aval: ShapedArray, place: Sharding, *, copy: bool
) -> Buffer:
    """NumPy values of type `aval` on the devices of `place`; one part for each.

    Raises:
        ValueError: the array cannot lie so.
    """
    stored = stored_aval(aval)
    if aval.dtype == float0:
        values = device_value(values, float0)
    place.check(aval.shape, f"an array {aval}")
    local = [device for device in place.ordered if is_local(device)]
    if place.num_devices == 1 and not local:
        (device,) = place.ordered
        raise ValueError(
            f"an array {aval} cannot be put on {device}, a device of process "
            f"{device.process_index}, by this one: put it on one of "
            "verax.local_devices(), or on a mesh of devices of all processes"
        )
    if place.num_devices == 1 and place.other_memory is None:
        return buffers.from_numpy(values, local[0], copy=copy, aval=stored)
    indices = place.devices_indices_map(stored.shape)
    parts = [part_of(values, indices[device], copy) for device in local]
    tiling = place.tiling(len(stored.shape))
    if tiling.terms and tiling.kind is UnreducedKind.sum:  # one term is all of the sum
        pairs = zip(place.ordered, tiling.terms, strict=True)
        own = [term for device, term in pairs if is_local(device)]
        parts = [
            np.zeros_like(part) if term else part
            for part, term in zip(parts, own, strict=True)
        ]
    sharding = runtime_sharding(place, len(stored.shape))
    return buffers.put_parts(stored, sharding, parts, local)


def is_elsewhere(place: Sharding) -> bool:
    """Whether a part of the values may be in other processes only."""
    return not (place.is_fully_addressable or place.is_fully_replicated)


def copied(buffer: Buffer, place: Sharding, aval: ShapedArray) -> Buffer:
    """The same values in memory of their own, without reading those elsewhere."""
    local = [device for device in place.ordered if is_local(device)]
    parts = [np.array(buffers.to_numpy(part)) for part in buffers.parts_of(buffer)]
    stored = stored_aval(aval)
    sharding = runtime_sharding(place, len(stored.shape))
    return buffers.put_parts(stored, sharding, parts, local)


def part_of(values: np.ndarray, index: tuple[slice, ...], copy: bool) -> np.ndarray:
    """The values of one shard, as contiguous memory that no one else writes to."""
    part = values[index]
    return part if part.flags.c_contiguous and not copy else part.copy()


def to_numpy(buffer: Buffer, place: Sharding, aval: AvalLike) -> np.ndarray:
    """The whole array, put together from the parts on the devices of this process.

    Raises:
        RuntimeError: parts are on devices of other processes.
    """
    if place.num_devices == 1:
        return buffers.to_numpy(buffer)
    if is_elsewhere(place):
        raise RuntimeError(
            f"an array {aval.dtype}{list(aval.shape)} with {place} spans devices of "
            "other processes, whose values this one cannot read. Read the parts that "
            "are here from its addressable_shards, or bring all together with "
            "verax.experimental.multihost_utils.process_allgather(x, tiled=True), "
            "which every process must call"
        )
    if State.joined:
        buffers.wait_for(buffer)  # it says over which processes, and its parts do not
    parts = buffers.parts_of(buffer)
    if place.is_fully_replicated:
        return buffers.to_numpy(parts[0])
    whole = np.empty(aval.shape, aval.dtype)
    indices = place.devices_indices_map(aval.shape)
    tiling = place.tiling(len(aval.shape))
    terms = tiling.terms or (0,) * len(parts)
    seen: set[tuple[tuple[int, ...], int]] = set()
    combine = COMBINED[tiling.kind or UnreducedKind.sum]
    order = sorted(range(len(parts)), key=terms.__getitem__)
    for i in order:
        if (key := (tiling.places[i], terms[i])) in seen:
            continue
        seen.add(key)
        index, values = indices[place.ordered[i]], buffers.to_numpy(parts[i])
        whole[index] = combine(whole[index], values) if terms[i] else values
    whole.flags.writeable = False
    return whole
