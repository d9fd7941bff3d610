"""Arrays with a chosen place: on one device, or split over several (floor 4).

One idea: an array without a chosen place is a plain `ConcreteArray` on the first
device, and takes the short paths; every other is a `PlacedArray`, whose class is enough
to tell that its place matters::

    x = put(values, SingleDeviceSharding(device), committed=True)
    x.sharding, x.committed, x.addressable_shards
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from verax.backend.arrays.concrete import ConcreteArray, Shard, from_buffer, from_host
from verax.backend.placement.sharding import (
    Sharding,
    SingleDeviceSharding,
    is_local,
    runtime_sharding,
)
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Aval, AvalLike, Buffer
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bool_, device_value, float0
from verax.ir.extended import ExtendedDType
from verax.rules.values.lazy import LazyModule
from verax.rules.values.state import STATE

check_transfer = LazyModule("verax.backend.runtime.transfers").check_transfer


class PlacedArray(ConcreteArray):
    """An array with a place of its own, made by `device_put` and its kin.

    A committed one stays there, and takes the computations that use it along. `kind` is
    what compiled programs are looked up by: the type and the place.
    """

    __slots__ = ("chosen", "kind", "place")
    place: Sharding
    chosen: bool
    kind: tuple[object, ...]

    @property
    def committed(self) -> bool:
        return self.chosen

    @property
    def sharding(self) -> Sharding:
        """Where the values live."""
        return self.place

    def numpy(self) -> np.ndarray:
        if self.host is not None:
            return self.host
        buffer = self.buffer
        if buffer is None or buffers.is_deleted(buffer):
            raise self.gone()
        self.host = values = to_numpy(buffer, self.place, stored_aval(self.aval))
        return values

    def device_buffer(self) -> Buffer:
        if (buffer := self.buffer) is not None:
            return buffer
        if (host := self.host) is None:
            raise self.gone()
        self.buffer = buffer = spread(host, self.aval, self.place, copy=False)
        return buffer

    @property
    def addressable_shards(self) -> list[Shard]:
        return [shard for shard in self.global_shards if shard.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        return shards_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Devices belong to a process, so what is pickled are the values.
        return from_host, (np.array(self.numpy()), self.aval)

    def __copy__(self) -> "PlacedArray":
        return placed(
            self.aval, self.place, self.committed, buffer=self.device_buffer()
        )

    def __deepcopy__(self, memo: object) -> ConcreteArray:
        return placed(self.aval, self.place, self.committed, host=self.numpy().copy())


def stored_aval(aval: ShapedArray) -> AvalLike:
    """The type on the device: that of keys are their words."""
    if isinstance(aval.dtype, ExtendedDType):
        shape = (*aval.shape, *aval.dtype.element_shape)
        return Aval(shape, aval.dtype.element_dtype)
    if aval.dtype == float0:
        return Aval(aval.shape, bool_)
    return aval  # type: ignore[return-value]  # NumPy's dtype, then


def placed(
    aval: ShapedArray,
    place: Sharding,
    committed: bool,
    *,
    host: np.ndarray | None = None,
    buffer: Buffer | None = None,
) -> PlacedArray:
    """An array of read-only values of NumPy, or of a buffer that lies as `place` says.

    Values that are on the host belong on the devices of `place` all the same.
    """
    made = PlacedArray.__new__(PlacedArray)
    made.aval, made.host, made.buffer = aval, host, buffer
    made.chosen, made.place, made.kind = committed, place, (aval, place, committed)
    return made


def default_place() -> SingleDeviceSharding:
    """Where arrays without a place go, in this thread, now."""
    device = STATE.default_device
    return SingleDeviceSharding(local_devices()[0] if device is None else device)


def is_plain(place: Sharding, committed: bool) -> bool:
    """Whether an array with this place is an ordinary one."""
    return not committed and place.ordered == (local_devices()[0],)


def fresh(values: np.ndarray, aval: ShapedArray) -> ConcreteArray:
    """A new array of read-only NumPy values, on the default device."""
    if STATE.default_device is None:
        return from_host(values, aval)
    place = default_place()
    if is_plain(place, False):
        return from_host(values, aval)
    return placed(aval, place, False, host=values)


def wrapper(
    aval: ShapedArray, place: Sharding, committed: bool
) -> Callable[[Buffer], ConcreteArray]:
    """Makes an array from a result that lies as `place` says."""
    if is_plain(place, committed):
        return lambda buffer: from_buffer(buffer, aval)
    return lambda buffer: placed(aval, place, committed, buffer=buffer)


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
    if place.num_devices == 1:
        return buffers.from_numpy(values, local[0], copy=copy, aval=stored)
    indices = place.devices_indices_map(stored.shape)
    parts = [part_of(values, indices[device], copy) for device in local]
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
    if not (place.is_fully_addressable or place.is_fully_replicated):
        raise RuntimeError(
            f"an array with {place} spans devices of other processes, which this one "
            "cannot read: use its addressable_shards"
        )
    parts = buffers.parts_of(buffer)
    if place.is_fully_replicated:
        return buffers.to_numpy(parts[0])
    whole = np.empty(aval.shape, aval.dtype)
    indices = place.devices_indices_map(aval.shape)
    for device, part in zip(place.ordered, parts, strict=True):
        whole[indices[device]] = buffers.to_numpy(part)
    whole.flags.writeable = False
    return whole


def shards_of(x: PlacedArray) -> list[Shard]:
    """The shards on all devices; copies of one part are numbered from 0."""
    buffer = x.device_buffer()
    stored = stored_aval(x.aval)
    indices = x.place.devices_indices_map(stored.shape)
    tiles = x.place.tiling(x.ndim).places
    held = iter(buffers.parts_of(buffer))
    copies: dict[tuple[int, ...], int] = {}
    found = []
    for device, tile in zip(x.place.ordered, tiles, strict=True):
        number = copies.get(tile, 0)
        copies[tile] = number + 1
        index = indices[device][: x.ndim]
        data = None
        if is_local(device):
            shape = x.place.shard_shape(x.shape)
            own = SingleDeviceSharding(device)
            part = buffers.retyped(next(held), stored_aval(x.aval.with_shape(shape)))
            data = placed(x.aval.with_shape(shape), own, True, buffer=part)
        found.append(Shard(device, index, number, data))
    return found


def put(x: ConcreteArray, place: Sharding, committed: bool) -> ConcreteArray:
    """The array at another place; memory is shared where it is there already.

    Raises:
        RuntimeError: the array was deleted or donated.
        ValueError: an array of this shape cannot lie so.
    """
    place.check(x.shape, f"an array {x.aval}")
    wrap = wrapper(x.aval, place, committed)
    if x.is_deleted():
        raise x.gone()
    if x.buffer is not None or x.host is None:
        buffer = x.device_buffer()
        if x.sharding.is_equivalent_to(place, x.ndim):
            return keeping_host(wrap(buffer), x)
        if place.num_devices == 1 and x.sharding.num_devices == 1:
            return wrap(buffers.copy_to_device(buffer, place.ordered[0]))
    if is_plain(place, committed):
        return from_host(x.numpy(), x.aval)
    return placed(x.aval, place, committed, host=x.numpy())


def keeping_host(made: ConcreteArray, x: ConcreteArray) -> ConcreteArray:
    made.host = x.host
    return made


def buffer_at(x: ConcreteArray, place: Sharding) -> Buffer:
    """The values of an array on the devices of `place`."""
    if x.sharding.is_equivalent_to(place, x.ndim):
        return x.device_buffer()
    if x.buffer is not None:
        check_transfer("device_to_device", f"{x.aval} from {x.sharding} to {place}")
    return put(x, place, committed=True).device_buffer()


def joined(parts: Sequence[object], aval: ShapedArray, place: Sharding) -> Buffer:
    """One buffer of the parts on the local devices, in the order of their numbers."""
    stored = stored_aval(aval)
    local = [device for device in place.ordered if is_local(device)]
    sharding = runtime_sharding(place, len(stored.shape))
    return buffers.put_parts(stored, sharding, parts, local)


def devices_text(devices: Sequence[Device]) -> str:
    """Devices as messages name them."""
    return ", ".join(str(device) for device in devices)
