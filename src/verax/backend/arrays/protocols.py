"""Floor 4: the protocols by which other libraries and Python use an array.

One idea: everything is answered from the two forms of the values, `numpy()` on the
host and `device_buffer()` on a device, and exported memory stays alive as long as it is
held, whatever becomes of the array::

    memoryview(x), numpy.from_dlpack(x), copy.copy(x), pickle.dumps(x)
"""

import inspect
from typing import Any, Final

import numpy as np

from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Buffer
from verax.ir.dtypes import float4_e2m1fn, int2, int4, uint2, uint4
from verax.ir.extended import ExtendedDType
from verax.rules.values.array import Array

BELOW_BYTES: Final = frozenset((int2, int4, uint2, uint4, float4_e2m1fn))
WRITABLE: Final = int(inspect.BufferFlags.WRITABLE)


class Exchangeable(Array):
    """The protocols of arrays that have values."""

    __slots__ = ()

    def numpy(self) -> np.ndarray:
        """The values as a read-only NumPy array."""
        raise NotImplementedError

    def device_buffer(self, copy: bool = False) -> Buffer:
        """The values on a device; with `copy`, in memory of its own."""
        raise NotImplementedError

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
    def addressable_shards(self) -> list[Any]:
        """The parts of the array that the devices of this process hold."""
        raise NotImplementedError

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
