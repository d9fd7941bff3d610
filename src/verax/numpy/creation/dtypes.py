"""Floor 6: dtypes by name, questions about them, and what the array API asks.

`float32` is a class that makes arrays when called, and stands for its dtype wherever
one is wanted::

    float32(3), zeros(3, dtype=bfloat16), issubdtype(int8, integer)
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
from attrs import frozen

from verax.backend.runtime.client import Device, devices as client_devices
from verax.ir import avals, dtypes, promotion
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    ExtendedDType,
    NumpyDType,
    as_dtype,
    canonical,
    default_dtype,
    extended,
    is_subdtype,
    numpy_dtype,
)
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import array_behind, avals_of, common_type
from verax.numpy.creation.creation import asarray
from verax.rules.values.array import API_VERSIONS, Array
from verax.rules.values.state import STATE, asked_dtype

dtype = np.dtype
ndarray = Array


class ScalarMeta(type):
    """The class of `float32` and its like: each is a class that makes arrays.

    It equals NumPy's class of the scalars and the dtype, and hashes as the class does.

    >>> float32 == np.float32, isinstance(float32, type), isinstance(1.0, float32)
    (True, True, False)
    """

    dtype: np.dtype[np.generic]

    def __call__(cls, x: object) -> Array:
        """`x` as an array of this dtype."""
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, ScalarMeta):
            return cls.dtype == other.dtype
        if isinstance(other, np.dtype):
            return cls.dtype == other
        return cls.dtype.type is other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)


def scalar_type(dtype: np.dtype[np.generic]) -> ScalarMeta:
    """The class that stands for `dtype` in `verax.numpy`, under its name there."""
    fields = {
        "dtype": dtype,
        "__module__": "verax.numpy",
        "__doc__": f"An array of dtype {dtype.name} made of a number or of an array.",
    }
    return ScalarMeta(dtype.type.__name__, (), fields)


bool_ = scalar_type(dtypes.bool_)
int2 = scalar_type(dtypes.int2)
int4 = scalar_type(dtypes.int4)
int8 = scalar_type(dtypes.int8)
int16 = scalar_type(dtypes.int16)
int32 = scalar_type(dtypes.int32)
int64 = scalar_type(dtypes.int64)
uint2 = scalar_type(dtypes.uint2)
uint4 = scalar_type(dtypes.uint4)
uint8 = scalar_type(dtypes.uint8)
uint16 = scalar_type(dtypes.uint16)
uint32 = scalar_type(dtypes.uint32)
uint64 = scalar_type(dtypes.uint64)
float4_e2m1fn = scalar_type(dtypes.float4_e2m1fn)
float8_e3m4 = scalar_type(dtypes.float8_e3m4)
float8_e4m3 = scalar_type(dtypes.float8_e4m3)
float8_e4m3b11fnuz = scalar_type(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = scalar_type(dtypes.float8_e4m3fn)
float8_e4m3fnuz = scalar_type(dtypes.float8_e4m3fnuz)
float8_e5m2 = scalar_type(dtypes.float8_e5m2)
float8_e5m2fnuz = scalar_type(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = scalar_type(dtypes.float8_e8m0fnu)
bfloat16 = scalar_type(dtypes.bfloat16)
float16 = scalar_type(dtypes.float16)
float32 = scalar_type(dtypes.float32)
float64 = scalar_type(dtypes.float64)
complex64 = scalar_type(dtypes.complex64)
complex128 = scalar_type(dtypes.complex128)
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
type Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

KINDS: dict[str, Any] = {
    "bool": "bool",
    "signed integer": "signed",
    "unsigned integer": "unsigned",
    "integral": "integer",
    "real floating": "floating",
    "complex floating": "complex",
    "numeric": "number",
}


def issubdtype(arg1: object, arg2: object) -> bool:
    """Whether `arg1` is `arg2`, or below it if that is a category such as `floating`.

    Small floats such as bfloat16 are floating here, unlike in NumPy. Keys are below
    `verax.dtypes.prng_key`.

    Args:
        arg1: a dtype or its name, or a category of them.
        arg2: a dtype or its name, or a category of them.

    Returns:
        a bool.

    Raises:
        TypeError: `arg1` or `arg2` is neither a dtype nor a category.

    >>> import verax.numpy as vnp
    >>> vnp.issubdtype(vnp.bfloat16, vnp.floating)
    True
    >>> vnp.issubdtype("uint8", vnp.signedinteger), vnp.issubdtype("uint8", vnp.number)
    (False, True)
    """
    if isinstance(arg1, type) and is_category(arg1):
        return isinstance(arg2, type) and issubclass(arg1, arg2)
    out = any_dtype(arg1)
    if isinstance(arg2, type) and is_category(arg2):
        members = CATEGORIES.get(arg2)
        below = members is not None and is_subdtype(out, members)
        return below or issubclass(out.type, arg2)
    return out == any_dtype(arg2)


def is_category(kind: type) -> bool:
    """Whether a class of scalars stands for several dtypes, or for extended ones."""
    return issubclass(kind, np.generic) and (
        kind is np.generic
        or kind in CATEGORIES
        or kind in (np.flexible, np.character, np.void)
        or issubclass(kind, extended)
    )


def any_dtype(x: Any) -> DType:
    """The dtype that `x` stands for, even if only NumPy has arrays of it."""
    try:
        return as_dtype(x)
    except TypeError:
        out: NumpyDType = np.dtype(x)
        return out


def plain(x: DTypeLike) -> NumpyDType:
    """NumPy's dtype of anything that stands for one."""
    return numpy_dtype(as_dtype(x))


def isdtype(dtype: DTypeLike, kind: object) -> bool:
    """Whether `dtype` is of a kind, or of one of a tuple of kinds or dtypes.

    Args:
        dtype: a dtype or its name.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
            "complex floating" or "numeric" (all but "bool"); a dtype; or a tuple of
            these.

    Returns:
        a bool.

    Raises:
        ValueError: no kind has that name.
        TypeError: the kind is neither a name nor a dtype.

    >>> import verax.numpy as vnp
    >>> vnp.isdtype(vnp.bfloat16, "real floating"), vnp.isdtype(bool, "numeric")
    (True, False)
    >>> vnp.isdtype(vnp.int8, ("complex floating", vnp.int8))
    True
    """
    out = as_dtype(dtype)
    kinds: Sequence[object] = kind if isinstance(kind, tuple) else (kind,)
    return any(one_kind(out, one) for one in kinds)


def one_kind(dtype: DType, kind: Any) -> bool:
    if isinstance(kind, str) and kind in KINDS:
        return is_subdtype(dtype, KINDS[kind])
    try:
        return dtype == as_dtype(kind)
    except TypeError as error:
        raised = ValueError if isinstance(kind, str) else TypeError
        known = ", ".join(map(repr, KINDS))
        raise raised(f"isdtype: unknown kind {kind!r}; use one of {known}") from error


def result_type(*args: object) -> DType:
    """The dtype that an operation on arrays, scalars and dtypes has.

    Integers beside floats take the dtype of the floats, whatever their width, and
    Python numbers adapt to the arrays; without x64 nothing is wider than 32 bits.

    Args:
        *args: arrays, scalars, dtypes or their names; `int`, `float` and `complex`
            stand for Python numbers, None for the default float.

    Returns:
        a dtype.

    Raises:
        ValueError: there are no arguments.
        TypePromotionError: there is no implicit promotion.

    >>> import verax.numpy as vnp
    >>> vnp.result_type(vnp.int32, vnp.float16), vnp.result_type(vnp.int8, vnp.uint8)
    (dtype('float16'), dtype('int16'))
    >>> vnp.result_type(vnp.arange(3, dtype=vnp.int8), 1000)
    dtype('int8')
    """
    return joined(args)[0]


def joined(args: tuple[object, ...]) -> promotion.Typed:
    """The dtype of `result_type`, and whether it is weak."""
    if not args:
        raise ValueError("result_type takes at least one argument")
    types = tuple([type_of(x) for x in args])
    strict = STATE.numpy_dtype_promotion == "strict"
    wide = STATE.explicit_x64_dtypes == "allow"
    dtype, weak = promotion.join_all(types, STATE.enable_x64, strict, wide)
    return promotion.widen_weak(dtype, weak, STATE.enable_x64)


def type_of(x: Any) -> promotion.Typed:
    """The dtype of an array, a scalar or a dtype, and whether it is weak."""
    if isinstance(x, Array):
        return x.dtype, x.weak_type
    if x is None:
        return default_dtype("floating", STATE.enable_x64), False
    if x is int or x is float or x is complex:
        return canonical(x, STATE.enable_x64), True
    named = isinstance(x, type | np.dtype | ExtendedDType | str)
    if named or not isinstance(
        x, np.ndarray | np.generic | bool | int | float | complex
    ):
        return asked_dtype(x), False
    return common_type(avals_of("result_type", (x,)))


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The dtype of two dtypes; `int`, `float` and `complex` stand for Python numbers.

    Args:
        a: a dtype or its name.
        b: a dtype or its name.

    Returns:
        the narrowest dtype to which both are promoted; integers take that of floats,
        whatever their width, unlike in NumPy.

    Raises:
        TypePromotionError: there is no implicit promotion.

    >>> import verax.numpy as vnp
    >>> vnp.promote_types("float16", "bfloat16"), vnp.promote_types("int32", "float16")
    (dtype('float32'), dtype('float16'))
    >>> vnp.promote_types("int8", int)
    dtype('int8')
    """
    weak = (int, float, complex)
    x64, strict = STATE.enable_x64, STATE.numpy_dtype_promotion == "strict"
    left = a if a in weak else asked_dtype(a)
    right = b if b in weak else asked_dtype(b)
    return promotion.promote_types(left, right, x64, strict)


def can_cast(from_: DTypeLike, to: DTypeLike, casting: Casting = "safe") -> bool:
    """Whether NumPy casts one dtype to another under the given rule.

    These rules say nothing of how verax promotes: see `promote_types`.

    Args:
        from_: a dtype, its name, or an array that has one.
        to: a dtype or its name.
        casting: "no", "equiv" (only the order of the bytes changes), "safe" (values are
            kept), "same_kind" (also to fewer bits), or "unsafe" (anything).

    Returns:
        a bool.

    Raises:
        TypeError: an argument is not a dtype.

    >>> import verax.numpy as vnp
    >>> vnp.can_cast("int32", "float32"), vnp.can_cast("int32", "float64")
    (False, True)
    >>> vnp.can_cast("float64", "float32", casting="same_kind")
    True
    """
    return bool(np.can_cast(plain(from_), plain(to), casting=casting))


def finfo(dtype: DTypeLike) -> ml_dtypes.finfo:
    """The limits of a floating dtype, or of the parts of a complex one.

    Args:
        dtype: a dtype, its name, or an array that has one; `float` means float64.

    Returns:
        an object with the attributes `max`, `min`, `eps`, `tiny`, `bits`, `dtype` and
        others, as `numpy.finfo` has them.

    Raises:
        TypeError: it is not a dtype.
        ValueError: the dtype is neither floating nor complex.

    >>> import verax.numpy as vnp
    >>> float(vnp.finfo(vnp.bfloat16).eps), float(vnp.finfo(vnp.float16).max)
    (0.0078125, 65504.0)
    >>> vnp.finfo(vnp.complex64).dtype
    dtype('float32')
    """
    return avals.finfo(as_dtype(dtype))


def iinfo(int_type: DTypeLike) -> ml_dtypes.iinfo:
    """The limits of an integer dtype.

    Args:
        int_type: a dtype, its name, or an array that has one; `int` means int64.

    Returns:
        an object with the attributes `min`, `max`, `bits` and `dtype`.

    Raises:
        TypeError: it is not a dtype.
        ValueError: the dtype holds no integers.

    >>> import verax.numpy as vnp
    >>> vnp.iinfo(vnp.int8).min, vnp.iinfo(vnp.uint4).max
    (-128, 15)
    """
    return avals.iinfo(as_dtype(int_type))


def isscalar(element: object) -> bool:
    """Whether `element` is a number or a string, or an array without dimensions.

    NumPy's own function says False of arrays without dimensions.

    Args:
        element: any object.

    Returns:
        a bool.

    >>> import verax.numpy as vnp
    >>> vnp.isscalar(2.5), vnp.isscalar(vnp.array(2.5)), vnp.isscalar(vnp.array([2.5]))
    (True, True, False)
    """
    element = array_behind(element)
    if isinstance(element, Array | np.ndarray):
        return not element.shape
    return np.isscalar(element)


# -----------------------------------------------------------------------------
# What this namespace says of itself in the Python array API standard.
#
# The standard asks a namespace for its dtypes and devices by name, so that
# libraries can be written for any::
#
#     info = __array_namespace_info__()
#     info.default_dtypes()["real floating"], info.capabilities()


__array_api_version__ = API_VERSIONS[-1]
NAMESPACE_KINDS: Final = MappingProxyType(
    {
        "bool": ("bool",),
        "signed integer": ("int8", "int16", "int32", "int64"),
        "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
        "real floating": ("float32", "float64"),
        "complex floating": ("complex64", "complex128"),
    }
)
GROUPS: Final = MappingProxyType(
    {
        "integral": ("signed integer", "unsigned integer"),
        "numeric": (
            *("signed integer", "unsigned integer"),
            *("real floating", "complex floating"),
        ),
    }
)
WIDE: Final = frozenset(("int64", "uint64", "float64", "complex128"))


@frozen(repr=False)
class ArrayNamespaceInfo(ReprMixin):
    """The answers of `verax.numpy` to the inspection functions of the standard."""

    def capabilities(self) -> dict[str, object]:
        """The standard's optional parts; shapes that depend on values need eager mode.

        >>> ArrayNamespaceInfo().capabilities()["boolean indexing"]
        True
        """
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 64,
        }

    def default_device(self) -> Device | None:
        """The device of new arrays; None for the first one."""
        device: Device | None = STATE.default_device
        return device

    def devices(self) -> tuple[Device | None, ...]:
        """All devices, and None for no choice."""
        return (None, *client_devices())

    def default_dtypes(
        self, *, device: object = None
    ) -> dict[str, np.dtype[np.generic]]:
        """The dtypes that arrays get for which none was requested.

        >>> ArrayNamespaceInfo().default_dtypes()["integral"].name
        'int32'
        """
        x64 = STATE.enable_x64
        return {
            "real floating": default_dtype("floating", x64),
            "complex floating": default_dtype("complex", x64),
            "integral": default_dtype("integer", x64),
            "indexing": default_dtype("integer", x64),
        }

    def dtypes(
        self, *, device: object = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[np.generic]]:
        """The dtypes of the standard that exist now, by name: some, by their kind.

        Raises:
            ValueError: `kind` is not one of the standard's.

        >>> sorted(ArrayNamespaceInfo().dtypes(kind="real floating"))
        ['float32']
        """
        if kind is None:
            kind = tuple(NAMESPACE_KINDS)
        if isinstance(kind, tuple):
            out: dict[str, np.dtype[np.generic]] = {}
            for each in kind:
                out |= self.dtypes(kind=each)
            return out
        if kind in GROUPS:
            return self.dtypes(kind=GROUPS[kind])
        if kind not in NAMESPACE_KINDS:
            known = ", ".join((*NAMESPACE_KINDS, *GROUPS))
            raise ValueError(f"unknown kind of dtypes {kind!r}; use one of {known}")
        names = [n for n in NAMESPACE_KINDS[kind] if STATE.enable_x64 or n not in WIDE]
        return {name: np.dtype(name) for name in names}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The array API standard's view of this namespace: dtypes, devices, capabilities.

    Returns:
        an object with the standard's inspection methods: `capabilities`,
        `default_device`, `default_dtypes`, `devices` and `dtypes`.

    >>> import verax.numpy as vnp
    >>> sorted(vnp.__array_namespace_info__().dtypes(kind="complex floating"))
    ['complex64']
    """
    return ArrayNamespaceInfo()
