"""DLPack: arrays to and from other libraries, without a copy (`verax.dlpack`).

One idea: objects that support the protocol are passed as they are, and memory is shared
where both sides can; shared memory must not be written to::

    verax.dlpack.from_dlpack(tensor), numpy.from_dlpack(x), torch.from_dlpack(x)
"""

from verax.backend.arrays.places import BELOW_BYTES
from verax.backend.placement.sharding import Sharding
from verax.backend.runtime.client import Device
from verax.ir.dtypes import DTypeLike, ExtendedDType, as_dtype
from verax.numpy.creation import io
from verax.rules.values.array import Array

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(
    external_array: object,
    device: Device | Sharding | None = None,
    copy: bool | None = None,
) -> Array:
    """The array of another library, sharing its memory where that is possible.

    It is `numpy.from_dlpack`, with arguments by position.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3, dtype=np.int8))
    Array([0, 1, 2], dtype=int8)
    """
    return io.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of `dtype` can be exported through DLPack.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("int4")
    (True, False)
    """
    out = as_dtype(dtype)
    return not isinstance(out, ExtendedDType) and out not in BELOW_BYTES
