"""`jax._src.dtypes`: bases of dtypes of a program's own, kinds of dtypes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from verax.dtypes import (
    canonicalize_dtype as canonical,
    extended as extended,
    issubdtype,
    result_type,
)
from verax.errors import TypePromotionError as TypePromotionError
from verax.ir import dtypes as ir_dtypes
from verax.numpy import (
    bool_ as bool_,
    finfo as finfo,
    float4_e2m1fn as float4_e2m1fn,
    float8_e3m4 as float8_e3m4,
    float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu,
    iinfo as iinfo,
    int2 as int2,
    int4 as int4,
    isdtype as isdtype,
    promote_types as promote_types,
    uint2 as uint2,
    uint4 as uint4,
)
from verax.numpy.arguments.arguments import chosen_dtype
from verax.rules.values.constants import aval_of

DType = np.dtype[np.generic]
int_, uint, float_, complex_ = np.int64, np.uint64, np.float64, np.complex128
python_scalar_types_to_dtypes: Mapping[type, DType] = MappingProxyType(
    {kind: np.dtype(kind) for kind in (bool, int, float, complex)}
)
python_scalar_types = frozenset(python_scalar_types_to_dtypes)
_intn_dtypes: list[DType] = [np.dtype(kind) for kind in (int2, uint2, int4, uint4)]
int1 = uint1 = None
"""Integers of one bit, which no array of verax holds."""


def supports_inf(dtype: DTypeLike) -> bool:
    """Whether a dtype of floats has infinities."""
    return bool(np.isinf(np.array(np.inf).astype(dtype)))


def to_complex_dtype(dtype: DTypeLike) -> DType:
    """A complex dtype of the same precision, with parts of 64 or 32 bits."""
    wide = np.dtype(dtype).name in ("float64", "complex128", "int64", "uint64")
    return np.dtype("complex128" if wide else "complex64")


def is_weakly_typed(x: object) -> bool:
    """Whether the dtype of a value gives way where it meets another."""
    return bool(aval_of(x).weak_type)


def dtype(x: object) -> DType:
    """The dtype of an array, a scalar, or a class of scalars.

    Raises:
        ValueError: it is None, or a dtype of 64 bits that options forbid.
    """
    if x is None:
        raise ValueError("Invalid argument to dtype: None has no dtype")
    if isinstance(x, np.dtype):
        chosen_dtype("dtype", x)
    return lattice_result_type(x)[0]


def lattice_result_type(*args: object) -> tuple[DType, bool]:
    """The dtype that an operation has, and whether it is weak."""
    out: Any = result_type(*args, return_weak_type_flag=True)
    return out[0], out[1]


def to_inexact_dtype(dtype: DTypeLike) -> DType:
    """The floating dtype that a dtype becomes where a division needs one."""
    kind = np.dtype(dtype)
    return kind if issubdtype(kind, np.inexact) else default_float_dtype()


def to_numeric_dtype(dtype: DTypeLike) -> DType:
    """The dtype that a dtype becomes where it is counted."""
    kind = np.dtype(dtype)
    return np.dtype("int32") if kind == np.bool_ else kind


def named(dtype: ir_dtypes.DTypeLike) -> DType:
    """The dtype of an array for which a dtype is named."""
    # Or one of keys, to which no class is common.
    kind: Any = canonical(dtype, allow_extended_dtype=True)
    out: DType = kind
    return out


def default_int_dtype() -> DType:
    """The dtype of integers for which none is named."""
    return named("int64")


def default_uint_dtype() -> DType:
    """The dtype of unsigned integers for which none is named."""
    return named("uint64")


def default_float_dtype() -> DType:
    """The dtype of floats for which none is named."""
    return named("float64")


def default_complex_dtype() -> DType:
    """The dtype of complex numbers for which none is named."""
    return named("complex128")


def default_bool_dtype() -> DType:
    """The dtype of booleans."""
    return np.dtype("bool")


default_types = MappingProxyType(
    {
        "b": default_bool_dtype,
        "i": default_int_dtype,
        "u": default_uint_dtype,
        "f": default_float_dtype,
        "c": default_complex_dtype,
    }
)


def safe_to_cast(input_dtype_or_value: object, output_dtype_or_value: object) -> bool:
    """Whether promotion takes the one to the other."""
    both = result_type(input_dtype_or_value, output_dtype_or_value)
    return both == result_type(output_dtype_or_value)


def check_and_canonicalize_user_dtype(
    dtype: ir_dtypes.DTypeLike, fun_name: str | None = None
) -> DType:
    """The dtype of an array for which this one was named.

    Raises:
        TypeError: there is no such dtype.
        ValueError: it is an array.
    """
    chosen_dtype(fun_name or "dtype", dtype)
    return named(dtype)


class ExtendedDType:
    """A dtype that a program describes; arrays cannot have one."""


def _dtype_and_weaktype(value: object) -> tuple[ir_dtypes.DType, bool]:
    """The dtype of a value, or a dtype itself, and whether it gives way to others."""
    if isinstance(value, type | np.dtype):
        return canonical(value), value in (int, float, complex)
    aval = aval_of(value)
    return aval.dtype, aval.weak_type


def _jax_type(dtype: DType, weak_type: bool) -> DType | type:
    """The Python type of weakly typed scalars of a dtype; a strong dtype itself."""
    if not weak_type or dtype.kind == "b":
        return dtype
    kinds: dict[str, type] = {"i": int, "u": int, "c": complex}
    return kinds.get(dtype.kind, float)
