"""The places of values, and the ways there and back (floor 4).

The type of an array, its place and whether the user chose it are one record, by which
compiled programs are looked up; the functions know buffers and NumPy, not arrays::

    buffer = spread(np.ones(4, np.float32), aval, sharding, copy=True)
    to_numpy(buffer, sharding, aval)
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from verax.backend.placement.sharding import Sharding, is_local, runtime_sharding
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Aval, AvalLike, Buffer
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    ExtendedDType,
    bool_,
    device_value,
    float0,
    float4_e2m1fn,
    int2,
    int4,
    uint2,
    uint4,
)
from verax.ir.meshes import UnreducedKind
from verax.rules.values.array import Array
from verax.rules.values.state import State

COMBINED: Final[Mapping[UnreducedKind | None, Callable[..., np.ndarray]]] = {
    UnreducedKind.sum: np.add,
    UnreducedKind.max: np.maximum,
    UnreducedKind.min: np.minimum,
}
"""The operation by which terms make a value."""


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


# -----------------------------------------------------------------------------
# The protocols by which other libraries and Python use an array.
#
# Everything is answered from the two forms of the values, `numpy()` on the host and
# `device_buffer()` on a device, and exported memory stays alive as long as it is held,
# whatever becomes of the array::
#
#     memoryview(x), numpy.from_dlpack(x), copy.copy(x), pickle.dumps(x)


BELOW_BYTES: Final = frozenset((int2, int4, uint2, uint4, float4_e2m1fn))
WRITABLE: Final = int(inspect.BufferFlags.WRITABLE)


class Exchangeable(Array):
    """The protocols of arrays that have values."""

    __slots__ = ()

    @abstractmethod
    def numpy(self) -> np.ndarray:
        """The values as a read-only NumPy array."""

    @abstractmethod
    def device_buffer(self, copy: bool = False) -> Buffer:
        """The values on a device; with `copy`, in memory of its own."""

    def __buffer__(self, flags: int) -> memoryview:
        """The memory of the values, read-only; waits for them (PEP 688).

        Raises:
            BufferError: Python's buffers have no such dtype (bfloat16, float8, int4,
                keys), or write access is requested.
            RuntimeError: the array was deleted or donated.
        """
        if flags & WRITABLE:
            raise BufferError("verax arrays are immutable: ask for a read-only buffer")
        values = self.numpy()
        try:
            if values.dtype is self.aval.dtype:
                return memoryview(values).toreadonly()
        except ValueError:  # a dtype of ml_dtypes
            pass
        raise BufferError(
            f"Python's buffer protocol has no elements of dtype {self.aval.dtype.name}"
        )

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule of the values, whose memory is shared unless `copy`.

        The consumer must not write to it. The capsule is of the first version of the
        protocol, which every consumer takes, so `max_version` changes nothing.

        Raises:
            BufferError: DLPack has no such dtype; the array lies on several devices, or
                not on `dl_device`; or `stream` is passed for the CPU.
            RuntimeError: the array was deleted or donated.
        """
        buffer = self.exported()
        place = buffers.to_dlpack_device(buffer)
        if dl_device is not None and tuple(dl_device) != place:
            raise BufferError(
                f"the array is on DLPack device {place}, not on {dl_device}: move it "
                "with verax.device_put first"
            )
        if place[0] == buffers.DLPACK_CPU and stream is not None:
            raise BufferError(f"arrays on the CPU have no stream; got {stream}")
        if copy:
            device = buffers.device_of(buffer)
            values = np.array(self.numpy())
            aval = buffer.aval
            buffer = buffers.from_numpy(values, device, copy=True, aval=aval)
        return buffers.to_dlpack(buffer, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's pair of the device's type and its number.

        Raises:
            BufferError: the array lies on several devices.
        """
        return buffers.to_dlpack_device(self.exported())

    def exported(self) -> Buffer:
        """The buffer that other libraries may see."""
        if isinstance(self.aval.dtype, ExtendedDType):
            raise BufferError(
                f"an array of {self.aval.dtype.name} cannot be exported: export what "
                "verax.random.key_data gives for it"
            )
        if self.aval.dtype in BELOW_BYTES:
            raise BufferError(
                f"DLPack has no elements of {self.aval.dtype.name}, which are smaller "
                "than a byte: convert with x.astype first"
            )
        return self.device_buffer()

    def addressable_data(self, index: int) -> Any:
        """The part that the device of this number holds, among those of the process."""
        return self.addressable_shards[index].data

    @property
    @abstractmethod
    def addressable_shards(self) -> list[Any]:
        """The parts of the array that the devices of this process hold."""

    def unsafe_buffer_pointer(self) -> int:
        """The address of the values on their one device.

        The memory is valid only as long as the array is. What it is donated to may
        write its result there.

        Raises:
            ValueError: the array lies on several devices.
        """
        buffer = self.device_buffer(copy=True)
        buffers.device_of(buffer)
        return buffer.unsafe_buffer_pointer()

    def on_device_size_in_bytes(self) -> int:
        """The bytes that the values take on their devices, padding included."""
        return self.device_buffer().on_device_size_in_bytes()
