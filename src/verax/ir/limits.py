"""Floor 0: how many bits a dtype has and which numbers it holds.

One idea: `ml_dtypes` knows the limits of NumPy's dtypes and of its own, so every dtype
is asked in one place, once::

    float(finfo(bfloat16).eps)    # 0.0078125
    iinfo(int4).max               # 7
"""

import ml_dtypes

from verax.ir.dtypes import (
    FLOATING_SET,
    INEXACT_SET,
    INTEGER_SET,
    DType,
    numpy_dtype,
)
from verax.ir.memos.memo import memoised


@memoised
def finfo(dtype: DType) -> ml_dtypes.finfo:
    """The limits of a floating dtype, or of the parts of a complex one.

    Raises:
        ValueError: `dtype` is not inexact.

    >>> from verax.ir.dtypes import bfloat16
    >>> float(finfo(bfloat16).eps)
    0.0078125
    """
    if dtype not in INEXACT_SET:
        raise ValueError(f"finfo needs a floating or complex dtype, not {dtype.name}")
    return ml_dtypes.finfo(numpy_dtype(dtype))  # type: ignore[no-untyped-call]  # its __init__


@memoised
def iinfo(dtype: DType) -> ml_dtypes.iinfo:
    """The limits of an integer dtype.

    Raises:
        TypeError: `dtype` is not an integer dtype.

    >>> from verax.ir.dtypes import int4
    >>> iinfo(int4).min, iinfo(int4).max
    (-8, 7)
    """
    if dtype not in INTEGER_SET:
        raise ValueError(f"iinfo needs an integer dtype, not {dtype.name}")
    return ml_dtypes.iinfo(numpy_dtype(dtype))  # type: ignore[no-untyped-call]  # its __init__


@memoised
def bit_width(dtype: DType) -> int:
    """The bits of an element's value: 4 for int4, although stored in a byte.

    >>> from verax.ir.dtypes import bool_, complex64, int4
    >>> bit_width(int4), bit_width(bool_), bit_width(complex64)
    (4, 8, 64)
    """
    if dtype in INTEGER_SET:
        return int(iinfo(dtype).bits)
    if dtype in FLOATING_SET:
        return int(finfo(dtype).bits)
    return 8 * dtype.itemsize


def check_fits(value: int, dtype: DType) -> None:
    """Raise unless the integer `dtype` holds `value`; other dtypes hold any.

    Raises:
        OverflowError: `value` is outside the range.

    >>> from verax.ir.dtypes import uint8
    >>> check_fits(255, uint8)
    """
    if dtype not in INTEGER_SET:
        return
    limits = iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OverflowError(
            f"Python int {value} too large to convert to {dtype.name}, which holds "
            f"{limits.min} to {limits.max}; give it a wider or a floating dtype"
        )
