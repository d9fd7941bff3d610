"""Floor 6: dtypes by name, and questions about them.

One idea: `float32` is a value that makes arrays when called, and stands for its dtype
wherever one is wanted::

    float32(3), zeros(3, dtype=bfloat16), issubdtype(int8, integer)
"""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from attrs import frozen

from verax.ir import dtypes, limits, promotion
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    as_dtype,
    canonical,
    is_subdtype,
    numpy_dtype,
)
from verax.ir.extended import ExtendedDType, ExtendedScalar
from verax.numpy.arguments.arguments import avals_of, common_type
from verax.numpy.creation.creation import asarray
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

dtype = np.dtype
ndarray = Array


@frozen(eq=False, repr=False)
class ScalarType:
    """A dtype by name: `float32(3)` is an array, `float32.dtype` NumPy's dtype."""

    dtype: np.dtype[Any]

    @property
    def __name__(self) -> str:
        return self.dtype.name

    @property
    def type(self) -> Any:
        """NumPy's class of scalars."""
        return self.dtype.type

    def __call__(self, x: Any = 0) -> Array:
        """`x` as an array of this dtype."""
        return asarray(x, dtype=self.dtype)

    def __eq__(self, other: object) -> bool:
        held = other.dtype if isinstance(other, ScalarType) else other
        try:
            return self.dtype == held
        except TypeError:
            return False

    def __hash__(self) -> int:
        # As NumPy's class of the scalars, which finds it in a set, and as in JAX.
        return hash(self.dtype.type)

    def __repr__(self) -> str:
        return f"verax.numpy.{self.dtype.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return ScalarType, (self.dtype,)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.dtype.type)


bool_ = ScalarType(dtypes.bool_)
int2 = ScalarType(dtypes.int2)
int4 = ScalarType(dtypes.int4)
int8 = ScalarType(dtypes.int8)
int16 = ScalarType(dtypes.int16)
int32 = ScalarType(dtypes.int32)
int64 = ScalarType(dtypes.int64)
uint2 = ScalarType(dtypes.uint2)
uint4 = ScalarType(dtypes.uint4)
uint8 = ScalarType(dtypes.uint8)
uint16 = ScalarType(dtypes.uint16)
uint32 = ScalarType(dtypes.uint32)
uint64 = ScalarType(dtypes.uint64)
float4_e2m1fn = ScalarType(dtypes.float4_e2m1fn)
float8_e3m4 = ScalarType(dtypes.float8_e3m4)
float8_e4m3 = ScalarType(dtypes.float8_e4m3)
float8_e4m3b11fnuz = ScalarType(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = ScalarType(dtypes.float8_e4m3fn)
float8_e4m3fnuz = ScalarType(dtypes.float8_e4m3fnuz)
float8_e5m2 = ScalarType(dtypes.float8_e5m2)
float8_e5m2fnuz = ScalarType(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = ScalarType(dtypes.float8_e8m0fnu)
bfloat16 = ScalarType(dtypes.bfloat16)
float16 = ScalarType(dtypes.float16)
float32 = ScalarType(dtypes.float32)
float64 = ScalarType(dtypes.float64)
complex64 = ScalarType(dtypes.complex64)
complex128 = ScalarType(dtypes.complex128)
single = float32
double = float64
csingle = complex64
cdouble = complex128
int_ = int64
uint = uint64
float_ = float64
complex_ = complex128

generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
character = np.character
flexible = np.flexible
object_ = np.object_

CATEGORIES: dict[type, Any] = {
    np.number: "number",
    np.integer: "integer",
    np.signedinteger: "signed",
    np.unsignedinteger: "unsigned",
    np.inexact: "inexact",
    np.floating: "floating",
    np.complexfloating: "complex",
}
KINDS: dict[str, Any] = {
    "bool": "bool",
    "signed integer": "signed",
    "unsigned integer": "unsigned",
    "integral": "integer",
    "real floating": "floating",
    "complex floating": "complex",
    "numeric": "number",
}


def issubdtype(arg1: DTypeLike, arg2: Any) -> bool:
    """Whether `arg1` is `arg2`, or below it if that is a category such as `floating`.

    Small floats such as bfloat16 are floating here, unlike in NumPy. Keys are below
    `verax.dtypes.prng_key`.
    """
    if isinstance(arg1, type) and issubclass(arg1, np.generic) and arg1 in CATEGORIES:
        return bool(
            np.issubdtype(arg1, arg2 if isinstance(arg2, type) else plain(arg2))
        )
    if isinstance(arg1, type) and issubclass(arg1, ExtendedScalar):
        return isinstance(arg2, type) and issubclass(arg1, arg2)
    found = as_dtype(arg1)
    if isinstance(arg2, type) and arg2 in CATEGORIES:
        return is_subdtype(found, CATEGORIES[arg2])
    if isinstance(found, ExtendedDType):
        below = isinstance(arg2, type) and issubclass(found.type, arg2)
        return below or arg2 is found
    if arg2 is np.generic:
        return True
    if isinstance(arg2, type) and issubclass(arg2, np.generic) and is_abstract(arg2):
        return False
    return found == as_dtype(arg2)


def is_abstract(kind: type) -> bool:
    """Whether no array here has elements of that kind."""
    others = (np.flexible, np.character, np.object_, np.str_, np.bytes_, np.void)
    return kind in others or issubclass(kind, ExtendedScalar)


def plain(x: Any) -> Any:
    """NumPy's dtype of anything that stands for one."""
    return numpy_dtype(as_dtype(x))


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether `dtype` is of a kind, or of one of a tuple of kinds or dtypes.

    The kinds are "bool", "signed integer", "unsigned integer", "integral", "real
    floating", "complex floating" and "numeric".

    Raises:
        ValueError: there is no such kind.
    """
    found = as_dtype(dtype)
    kinds: Sequence[Any] = kind if isinstance(kind, tuple) else (kind,)
    return any(one_kind(found, one) for one in kinds)


def one_kind(dtype: DType, kind: Any) -> bool:
    if isinstance(kind, str) and kind in KINDS:
        return is_subdtype(dtype, KINDS[kind])
    try:
        return dtype == as_dtype(kind)
    except TypeError as error:
        known = ", ".join(map(repr, KINDS))
        raise ValueError(
            f"isdtype: unknown kind {kind!r}; use one of {known}"
        ) from error


def result_type(*args: Any) -> DType:
    """The dtype that an operation on arrays, scalars and dtypes has.

    Raises:
        ValueError: there are no arguments.
        TypePromotionError: there is no implicit promotion.
    """
    if not args:
        raise ValueError("result_type takes at least one argument")
    types = tuple([type_of(x) for x in args])
    strict = STATE.numpy_dtype_promotion == "strict"
    dtype, weak = promotion.join_all(types, STATE.enable_x64, strict)
    return promotion.widen_weak(dtype, weak, STATE.enable_x64)[0]


def type_of(x: Any) -> promotion.Typed:
    """The dtype of an array, a scalar or a dtype, and whether it is weak."""
    if isinstance(x, Array):
        return x.dtype, x.weak_type
    if x is int or x is float or x is complex:
        return canonical(x, STATE.enable_x64), True
    named = isinstance(x, type | np.dtype | ExtendedDType | str | ScalarType)
    if named or not isinstance(
        x, np.ndarray | np.generic | bool | int | float | complex
    ):
        return canonical(x, STATE.enable_x64), False
    return common_type(avals_of("result_type", (x,)))


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The dtype of two dtypes; `int`, `float` and `complex` stand for Python numbers.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    weak = (int, float, complex)
    x64, strict = STATE.enable_x64, STATE.numpy_dtype_promotion == "strict"
    left: Any = a if a in weak else canonical(a, x64)
    right: Any = b if b in weak else canonical(b, x64)
    return promotion.promote_types(left, right, x64, strict)


def can_cast(from_: Any, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether NumPy casts one dtype to another under the given rule."""
    return bool(np.can_cast(plain(from_), plain(to), casting=casting))  # type: ignore[arg-type]  # NumPy checks the name


def finfo(dtype: DTypeLike) -> ml_dtypes.finfo:
    """The limits of a floating dtype, or of the parts of a complex one.

    Raises:
        TypeError: the dtype is neither.
    """
    return limits.finfo(as_dtype(dtype))


def iinfo(int_type: DTypeLike) -> ml_dtypes.iinfo:
    """The limits of an integer dtype.

    Raises:
        TypeError: it is not a dtype.
    """
    return limits.iinfo(as_dtype(int_type))


def isscalar(element: Any) -> bool:
    """Whether `element` is a number, or a zero-dimensional array."""
    if isinstance(element, Array | np.ndarray):
        return not element.shape
    return isinstance(element, bool | int | float | complex | np.generic)
