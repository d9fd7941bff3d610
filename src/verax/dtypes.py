"""Dtypes and functions of them, under the names of `jax.dtypes` (floor 6).

The dtypes are those of NumPy and `ml_dtypes`, and those of random keys.

    >>> from verax import dtypes
    >>> dtypes.canonicalize_dtype("int64"), dtypes.itemsize_bits("int4")
    (dtype('int32'), 4)
"""

import ml_dtypes

from verax.ir.avals import bit_width
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    ExtendedDType,
    as_dtype,
    canonical,
    extended as extended,
    float0 as float0,
    is_bool,
    is_complex,
    is_float,
    prng_key as prng_key,
)
from verax.ir.promotion import TypePromotionError as TypePromotionError
from verax.numpy.creation.dtypes import (
    finfo as finfo,
    iinfo as iinfo,
    issubdtype as issubdtype,
    joined,
)
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE

bfloat16 = ml_dtypes.bfloat16


def canonicalize_dtype(
    dtype: DTypeLike | None, allow_extended_dtype: bool = False
) -> DType:
    """The dtype of an array that is requested as `dtype`: 32-bit unless x64 is on.

    None stands for the default float, as in NumPy.

    Raises:
        TypeError: there is no such dtype.
        ValueError: it is extended, which is not allowed.

    >>> canonicalize_dtype(float), canonicalize_dtype("complex128")
    (dtype('float32'), dtype('complex64'))
    """
    out = canonical(float if dtype is None else dtype, STATE.enable_x64)
    if isinstance(out, ExtendedDType) and not allow_extended_dtype:
        raise ValueError(
            f"canonicalize_dtype got the extended dtype {out}; pass "
            "allow_extended_dtype=True to allow it"
        )
    return out


def result_type(
    *args: object, return_weak_type_flag: bool = False
) -> DType | tuple[DType, bool]:
    """The dtype that an operation on these arrays, scalars and dtypes has.

    With `return_weak_type_flag`, a pair of it and whether it is weak.

    Raises:
        ValueError: there are no arguments.
        TypePromotionError: there is no implicit promotion.

    >>> result_type("int8", 1), result_type(1, return_weak_type_flag=True)
    (dtype('int8'), (dtype('int32'), True))
    """
    out = joined(args)
    return out if return_weak_type_flag else out[0]


def itemsize_bits(dtype: DTypeLike) -> int:
    """The number of bits an element has.

    >>> itemsize_bits("bfloat16"), itemsize_bits("uint2"), itemsize_bits(complex)
    (16, 2, 128)
    """
    return bit_width(as_dtype(dtype))


def scalar_type_of(x: object) -> type:
    """The Python type of the elements of `x`: bool, int, float or complex.

    Raises:
        TypeError: `x` is not an array or scalar.

    >>> import verax.numpy as vnp
    >>> scalar_type_of(vnp.ones(3)).__name__, scalar_type_of(True).__name__
    ('float', 'bool')
    """
    dtype = aval_of(x).dtype
    if is_bool(dtype):
        return bool
    if is_float(dtype):
        return float
    return complex if is_complex(dtype) else int
