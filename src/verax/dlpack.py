"""DLPack: arrays to and from other libraries, without a copy (`verax.dlpack`).

One idea: objects that support the protocol are passed as they are, and memory is shared
where both sides can; shared memory must not be written to::

    verax.dlpack.from_dlpack(tensor), numpy.from_dlpack(x), torch.from_dlpack(x)
"""

from verax.backend.arrays.protocols import BELOW_BYTES
from verax.ir.dtypes import DTypeLike, as_dtype
from verax.ir.extended import ExtendedDType
from verax.numpy.creation.io import from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of `dtype` can be exported through DLPack.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("int4")
    (True, False)
    """
    found = as_dtype(dtype)
    return not isinstance(found, ExtendedDType) and found not in BELOW_BYTES
