"""Moving arrays between NumPy and devices (floor 4).

One idea: a `Buffer` is jaxlib's own array class, which every library of the process
shares. So it is used as it is, and nothing here patches it, sets a global of jaxlib, or
trusts a method that another library may have put on it.

    >>> import numpy as np
    >>> from verax.backend.runtime import buffers, client
    >>> x = np.arange(3, dtype=np.int32)
    >>> y = buffers.from_numpy(x, client.local_devices()[0], copy=True)
    >>> buffers.to_numpy(y)
    array([0, 1, 2], dtype=int32)
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from attrs import frozen
from jaxlib import _jax

from verax.backend.runtime.callback_errors import FAILURES
from verax.backend.runtime.errors import trimmed
from verax.backend.runtime.metrics import TALLY
from verax.ir.records import ReprMixin
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE, State

__all__ = [
    "Aval",
    "AvalLike",
    "Buffer",
    "Sharding",
    "block_until_ready",
    "copy_to_device",
    "copy_to_host_async",
    "delete",
    "device_of",
    "from_dlpack",
    "from_numpy",
    "is_deleted",
    "is_ready",
    "release",
    "single_device",
    "to_dlpack",
    "to_dlpack_device",
    "to_numpy",
]

Buffer = _jax.ArrayImpl
Sharding = _jax.Sharding
DLPACK_CPU: Final = 1
ZERO_COPY: Final = _jax.HostBufferSemantics.ZERO_COPY
COPIED: Final = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
put_on_devices: Final = _jax.batched_device_put
# Set on a buffer whose memory another library may hold: see `delete`.
EXPORTED: Final = "verax_exported"
DELETED: Final = (
    "The array has been deleted or its memory was donated to a compiled function, so "
    "its values can no longer be read: keep a copy, or do not donate it."
)

NOT_SHARED: Final = (
    "from_dlpack: Specified copy=False for memory which requires a copy: to be shared, "
    "it must lie on the device, in C order and aligned to 64 bytes. Leave copy at None."
)


class AvalLike(Protocol):
    """A type as jaxlib reads it: any record with these three attributes will do."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The element type."""

    @property
    def weak_type(self) -> bool:
        """Whether the type came from a Python scalar."""


@frozen(repr=False)
class Aval(ReprMixin):
    """The smallest record that is `AvalLike`, for callers without one of their own."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    weak_type: bool = False


@pure(lasting=(_jax.Device,))
def single_device(
    device: _jax.Device, memory_kind: str | None = None
) -> _jax.SingleDeviceSharding:
    """The sharding that puts a whole array on one device, one object for each.

    Without a kind it is in the device's own memory.
    """
    return _jax.SingleDeviceSharding(device, memory_kind)


def put(
    aval: AvalLike, value: object, device: _jax.Device, copy: bool
) -> _jax.ArrayImpl:
    """Transfer, with every setting passed explicitly and no global consulted."""
    if isinstance(value, np.ndarray):
        TALLY.bytes_to_device += value.nbytes
    return put_on_devices(
        aval,
        single_device(device),
        [value],
        [device],
        True,
        copy,
        ZERO_COPY,
        True,
    )


def put_parts(
    aval: AvalLike,
    sharding: Sharding,
    parts: Sequence[object],
    devices: Sequence[_jax.Device],
) -> Buffer:
    """One buffer of parts, NumPy arrays or buffers, one for each of the devices.

    NumPy's memory may be shared with the devices and must not be written to any more.
    (A copy cannot be requested here, since the runtime fails to copy equal memory
    twice.)
    """
    TALLY.bytes_to_device += sum([x.nbytes for x in parts if isinstance(x, np.ndarray)])
    return put_on_devices(aval, sharding, parts, devices, True, False, ZERO_COPY, True)


def parts_of(buffer: Buffer) -> list[Buffer]:
    """The part on each device of this process; their types are not filled in."""
    return buffer._arrays


def place_of_part(device: _jax.Device, memory_kind: str | None = None) -> object:
    """Where jaxlib says that a part lies: in its own class."""
    return _jax.SingleDeviceSharding(device, memory_kind=memory_kind)


def retyped(buffer: Buffer, aval: AvalLike) -> Buffer:
    """A part as a buffer of its own, with its type."""
    return buffer._rewrap_with_aval_and_sharding(aval, buffer._sharding)


def from_numpy(
    array: np.ndarray,
    device: _jax.Device,
    *,
    copy: bool,
    aval: AvalLike | None = None,
) -> Buffer:
    """Put a NumPy array, of the same shape and dtype, on a device.

    Without `copy` the device may alias the array's memory (on CPU it does so when the
    memory is C-contiguous and aligned to 64 bytes): the caller must not write to it.
    `aval` becomes the buffer's `aval`; the default is built from the array.

    Raises:
        TypeError: the device has no such dtype (strings, objects, dates, records).
        ValueError: `aval` has another shape or dtype than the array.
    """
    if not array.dtype.isnative:
        # The runtime takes the bytes as they are, whatever their order.
        array = array.astype(array.dtype.newbyteorder("="))
    if aval is None:
        aval = Aval(array.shape, array.dtype)
    elif aval.shape != array.shape or aval.dtype != array.dtype:
        # The runtime believes the aval, and would read past the end of the array.
        raise ValueError(
            f"The type {aval.dtype}{list(aval.shape)} does not describe an array "
            f"{array.dtype}{list(array.shape)}."
        )
    try:
        return put(aval, array, device, copy)
    except _jax.JaxRuntimeError as error:
        if "Unknown NumPy dtype" in str(error):
            raise TypeError(
                f"Arrays of dtype {array.dtype} cannot live on a device: convert to a "
                "boolean, integer, floating or complex dtype first."
            ) from error
        raise


def to_numpy(buffer: Buffer) -> np.ndarray:
    """The values as a read-only array, without a copy where the memory allows it.

    Waits for the values. Right for every dtype that a device has.

    Raises:
        RuntimeError: the buffer was deleted or donated, or its computation failed.
    """
    if State.joined:
        wait_for(buffer)
    try:
        # Through a memoryview, because `asarray` on the buffer itself would fall back
        # to an `__array__` that some other library put there.
        values = np.asarray(memoryview(buffer))
    except BufferError:
        values = unusual_to_numpy(buffer)
    except _jax.JaxRuntimeError as error:
        failure = FAILURES.revealed(error)
        raise failure from failure.__cause__
    TALLY.bytes_to_host += values.nbytes
    return values


def wait_for(buffer: Buffer) -> None:
    """Wait for values that other processes may work on, too.

    Raises:
        ProcessFailed: one of them failed.
    """
    if not buffer.is_deleted():
        place = buffer._sharding
        devices = place._devices if isinstance(place, _jax.GSPMDSharding) else ()
        from verax.backend.runtime.cluster import wait

        wait(buffer.is_ready, devices)


def ask_for_host(buffer: Buffer) -> None:
    """Ask for the transfer of values to the host, unless that shares their memory.

    Raises:
        JaxRuntimeError: it is not allowed.
    """
    platforms = {device_of(part).platform for part in parts_of(buffer)}
    if platforms != {"cpu"}:
        what = (
            f"{buffer.aval.dtype}{list(buffer.aval.shape)} from {', '.join(platforms)}"
        )
        from verax.backend.runtime.transfers import check_transfer

        check_transfer("device_to_host", what, explicit=STATE.fetching)


def unusual_to_numpy(buffer: Buffer) -> np.ndarray:
    """As `to_numpy`, for what has no buffer format: deleted, bfloat16, float8, int4."""
    if STATE.transfer_guard_device_to_host is not None:
        ask_for_host(buffer)
    if buffer.is_deleted():
        raise RuntimeError(DELETED)
    # The second item says whether it is a copy, which is of no interest: either is
    # read-only, and the first keeps the memory alive. The method of nearly this name
    # for single devices would import jax where it is installed.
    try:
        return buffer._to_np_array_did_copy()[0]
    except _jax.JaxRuntimeError as error:
        failure = FAILURES.revealed(error)
        raise failure from failure.__cause__


def device_of(buffer: Buffer) -> _jax.Device:
    """The one device on which the buffer lives.

    Raises:
        ValueError: the buffer is spread over several devices.
    """
    if isinstance(sharding := buffer._sharding, _jax.SingleDeviceSharding):
        return sharding._device
    raise ValueError("The buffer is spread over several devices, not on one.")


def copy_to_device(buffer: Buffer, device: _jax.Device) -> Buffer:
    """The same values on another device; the buffer itself if it is there already.

    Raises:
        RuntimeError: the buffer was deleted or donated.
    """
    if buffer.is_deleted():
        raise RuntimeError(DELETED)
    source = device_of(buffer)
    if source is device:
        return buffer
    if source.client is device.client:
        return put(buffer.aval, buffer, device, False)
    # Between clients jaxlib would call a method that only jax defines.
    return from_numpy(to_numpy(buffer), device, copy=True, aval=buffer.aval)


def block_until_ready(buffers: Sequence[Buffer]) -> None:
    """Wait until all values are computed.

    Raises:
        RuntimeError: a buffer was deleted or donated, or its computation failed.
    """
    for buffer in buffers:
        if buffer.is_deleted():
            raise RuntimeError(DELETED)
    started = perf_counter()
    if State.joined:
        for buffer in buffers:
            wait_for(buffer)
    try:
        _jax.batched_block_until_ready(buffers)
    except _jax.JaxRuntimeError as error:
        failure = FAILURES.revealed(error)
        raise failure from failure.__cause__
    TALLY.waits += 1
    TALLY.wait_seconds += perf_counter() - started


def copy_to_host_async(buffers: Sequence[Buffer]) -> None:
    """Start the transfers to the host, so that later `to_numpy` calls need not wait."""
    if any(buffer.is_deleted() for buffer in buffers):
        raise RuntimeError(DELETED)
    _jax.batched_copy_to_host_async(buffers)


def is_ready(buffer: Buffer) -> bool:
    """Whether the values are computed; never waits."""
    if buffer.is_deleted():
        raise RuntimeError(DELETED)
    return buffer.is_ready()


def is_deleted(buffer: Buffer) -> bool:
    """Whether the memory was given back or donated."""
    return buffer.is_deleted()


def delete(buffer: Buffer) -> None:
    """Give the memory back now; a second call does nothing.

    Raises:
        RuntimeError: the memory was shared through DLPack. The runtime would abort the
            process if the other library still held it, which cannot be known.
    """
    if getattr(buffer, EXPORTED, False):
        raise RuntimeError(
            "The array was exported through DLPack and another library may still use "
            "its memory: drop the references to it instead of deleting it."
        )
    buffer.delete()


def release(buffer: Buffer) -> None:
    """Give the memory back now, or when the library that DLPack lent it to lets go."""
    # A donated buffer, the most frequent one here, has given it back already.
    if not buffer.is_deleted() and not getattr(buffer, EXPORTED, False):
        buffer.delete()


def to_dlpack(buffer: Buffer, stream: int | None = None) -> object:
    """Share the memory with another library; the consumer must not write to it.

    Raises:
        BufferError: DLPack has no such dtype (4-bit integers and the like).
        RuntimeError: the buffer was deleted or donated.
    """
    if buffer.is_deleted():
        raise RuntimeError(DELETED)
    try:
        capsule = _jax.buffer_to_dlpack_managed_tensor(buffer, stream=stream)
    except _jax.JaxRuntimeError as error:
        raise BufferError(
            f"Arrays of dtype {buffer.aval.dtype} cannot be exported through DLPack."
        ) from error
    setattr(buffer, EXPORTED, True)
    return capsule


def to_dlpack_device(buffer: Buffer) -> tuple[int, int]:
    """DLPack's pair of device type and number.

    Raises:
        BufferError: DLPack knows no number for the platform.
    """
    device = device_of(buffer)
    if device.platform != "cpu":
        raise BufferError(f"DLPack export from {device.platform!r} is not available.")
    # All CPU devices share one memory, which DLPack calls number 0.
    return DLPACK_CPU, 0


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of any library that hands its memory on through DLPack."""

    def __dlpack__(self, *, stream: None = None) -> Any: ...


def from_dlpack(
    external: object, device: _jax.Device, *, copy: bool | None = None
) -> Buffer:
    """Take over an array of another library, without a copy where that is possible.

    Copies if `copy`, and unless it is False if the memory is not aligned to 64 bytes,
    or strided. The other library must not write to memory that is shared.

    Raises:
        TypeError: `external` has no `__dlpack__`, or a dtype that no device has.
        ValueError: `copy` is False and the memory cannot be shared.
        BufferError: its memory is of a kind that the device cannot take.
    """
    if not isinstance(external, SupportsDLPack):
        raise TypeError(
            "Expected an array with a method __dlpack__, got "
            f"{type(external).__name__}."
        )
    try:
        # NumPy takes strided and read-only arrays and every protocol version; and
        # jaxlib's own import would import jax where it is installed.
        array: np.ndarray = (
            external if isinstance(external, np.ndarray) else np.from_dlpack(external)
        )
    except (BufferError, RuntimeError):
        return foreign_from_dlpack(external, device, copy=copy)
    buffer = from_numpy(array, device, copy=bool(copy))
    address = array.ctypes.data if copy is False and array.size else None
    if address is not None and buffer.unsafe_buffer_pointer() != address:
        raise ValueError(NOT_SHARED)
    return buffer


def foreign_from_dlpack(
    external: SupportsDLPack, device: _jax.Device, *, copy: bool | None
) -> Buffer:
    """As `from_dlpack`, for dtypes and devices that NumPy does not know."""
    capsule, shared = external.__dlpack__(), False if copy is False else None
    try:
        bare = _jax.dlpack_managed_tensor_to_buffer(capsule, device, None, shared)
    except _jax.JaxRuntimeError as error:
        if copy is False and "aligned" in str(error):
            raise ValueError(NOT_SHARED) from error
        raise BufferError(
            f"The {type(external).__name__} cannot be imported through DLPack: "
            f"{trimmed(str(error))}"
        ) from error
    view = to_numpy(bare)
    # Programs read memory in C order, whatever order the runtime knows of.
    transposed = not view.flags.c_contiguous
    if transposed and copy is False:
        raise ValueError(NOT_SHARED)
    if transposed or copy:
        return from_numpy(view, device, copy=True)
    aval = Aval(view.shape, view.dtype)
    return bare._rewrap_with_aval_and_sharding(aval, single_device(device))
