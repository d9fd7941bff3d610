"""Floor 0: element types, their categories, names and relatives.

One idea: a dtype is one of NumPy's, of `ml_dtypes`' or an `ExtendedDType`, and all that
depends on a single dtype is a pure function here; `promotion` joins several::

    canonical(float, x64=False)    # dtype('float32')
    short_name(bfloat16)           # 'bf16'
    tangent_dtype(int32) == float0
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import ClassVar, Final, Literal, Protocol

import ml_dtypes
import numpy as np
from attrs import frozen

from verax.ir.memos import memoised

# -----------------------------------------------------------------------------
# Dtypes that NumPy does not know, such as those of typed random keys.
#
# An array of an extended dtype is stored as a larger array of an ordinary one,
# so that code that moves elements needs only two attributes::
#
#     key = KeyDType("fry", (2,))    # prints as key<fry>
#     key.element_dtype, key.element_shape    # (dtype('uint64'), ())


type NumpyDType = np.dtype[np.generic]

KEY_WORDS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "fry": (2,),
        "rbg": (4,),
        "urbg": (4,),
        "phx2": (1,),
        "phx4": (2,),
        "fry4": (4,),
    }
)


class Tagged(Protocol):
    """A generator of the user's; its tag is its short name."""

    @property
    def tag(self) -> str: ...


type Impl = str | Tagged
"""A generator of random bits: the short name of one of ours, or one of the user's."""

# What holds so many words of a key as one element.
STORED: Final[Mapping[int, type[np.generic]]] = MappingProxyType(
    {1: np.uint32, 2: np.uint64, 4: np.complex128}
)


class extended(np.generic):
    """The scalar class of every extended dtype; it has no instances."""

    __module__ = "verax.dtypes"


class prng_key(extended):
    """The scalar class of typed random keys; it has no instances."""

    __module__ = "verax.dtypes"


class ExtendedDType(ABC):
    """A dtype that NumPy does not know, stored as an array of one that it does.

    An array of this dtype and shape `s` is stored as an array of `element_dtype` and
    shape `s + element_shape`.
    """

    transient: ClassVar[bool] = False

    __slots__ = ()

    @property
    def kind(self) -> str:
        return "V"

    @property
    def itemsize(self) -> int:
        return prod(self.element_shape) * self.element_dtype.itemsize

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def type(self) -> type[extended]: ...

    @property
    @abstractmethod
    def element_shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def element_dtype(self) -> NumpyDType: ...


@frozen(repr=False, cache_hash=True)
class KeyDType(ExtendedDType):
    """The dtype of typed random keys: the generator and the shape of a key's words.

    A key of two 32-bit words is stored as one 64-bit element, the first word lowest, so
    that whatever moves elements moves keys; one of four as the bits of a complex number
    of 128 bits, for the same reason. Other keys are stored word by word.

    >>> KeyDType("fry", (2,)), KeyDType("fry", (2,)).itemsize
    (key<fry>, 8)
    """

    impl: Impl
    word_shape: tuple[int, ...]

    @property
    def name(self) -> str:
        if not isinstance(self.impl, str):
            return f"key<{self.impl.tag}>"
        if KEY_WORDS.get(self.impl) == self.word_shape:
            return f"key<{self.impl}>"
        return f"key<{self.impl}:{'x'.join(map(str, self.word_shape))}>"

    @property
    def type(self) -> type[prng_key]:
        return prng_key

    @property
    def element_shape(self) -> tuple[int, ...]:
        return () if prod(self.word_shape) in STORED else self.word_shape

    @property
    def element_dtype(self) -> NumpyDType:
        return np.dtype(STORED.get(prod(self.word_shape), np.uint32))

    def element(self, word: int) -> np.ndarray:
        """The stored element of the key whose words are all `word`.

        >>> KeyDType("fry", (2,)).element(-1)
        array(18446744073709551615, dtype=uint64)
        """
        words = np.full(self.word_shape, word & 0xFFFFFFFF, np.uint32)
        return words.view(self.element_dtype).reshape(self.element_shape)

    def __repr__(self) -> str:
        return self.name


def key_from_name(name: str) -> KeyDType | None:
    """The key dtype whose name is `name`, or None if that is not a key's name.

    >>> key_from_name("key<fry>") == KeyDType("fry", (2,))
    True
    """
    if not (name.startswith("key<") and name.endswith(">")):
        return None
    impl, colon, words = name[4:-1].partition(":")
    if not colon:
        known = KEY_WORDS.get(impl)
        return None if known is None else KeyDType(impl, known)
    return KeyDType(impl, tuple(int(size) for size in words.split("x") if size))


# -----------------------------------------------------------------------------
# Element types, their categories, names and relatives.


type PythonScalar = bool | int | float | complex
type DType = NumpyDType | ExtendedDType
type NumpyScalar = np.generic
type DTypeLike = DType | type[NumpyScalar] | type[PythonScalar] | str | HasDType
type Category = Literal[
    "bool",
    "signed",
    "unsigned",
    "integer",
    "floating",
    "complex",
    "inexact",
    "number",
    "extended",
]


class HasDType(Protocol):
    """A value with a dtype, such as an array or a scalar class of a frontend."""

    @property
    def dtype(self) -> "DType": ...


def abbreviate(name: str) -> str:
    """`name` with each word for a kind of number cut to its letter.

    >>> abbreviate("bfloat16"), abbreviate("uint8")
    ('bf16', 'u8')
    """
    for word, letter in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(word, letter)
    return name


bool_: Final[NumpyDType] = np.dtype(np.bool_)
int2: Final[NumpyDType] = np.dtype(ml_dtypes.int2)
int4: Final[NumpyDType] = np.dtype(ml_dtypes.int4)
int8: Final[NumpyDType] = np.dtype(np.int8)
int16: Final[NumpyDType] = np.dtype(np.int16)
int32: Final[NumpyDType] = np.dtype(np.int32)
int64: Final[NumpyDType] = np.dtype(np.int64)
uint2: Final[NumpyDType] = np.dtype(ml_dtypes.uint2)
uint4: Final[NumpyDType] = np.dtype(ml_dtypes.uint4)
uint8: Final[NumpyDType] = np.dtype(np.uint8)
uint16: Final[NumpyDType] = np.dtype(np.uint16)
uint32: Final[NumpyDType] = np.dtype(np.uint32)
uint64: Final[NumpyDType] = np.dtype(np.uint64)
float4_e2m1fn: Final[NumpyDType] = np.dtype(ml_dtypes.float4_e2m1fn)
float8_e3m4: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu: Final[NumpyDType] = np.dtype(ml_dtypes.float8_e8m0fnu)
bfloat16: Final[NumpyDType] = np.dtype(ml_dtypes.bfloat16)
float16: Final[NumpyDType] = np.dtype(np.float16)
float32: Final[NumpyDType] = np.dtype(np.float32)
float64: Final[NumpyDType] = np.dtype(np.float64)
complex64: Final[NumpyDType] = np.dtype(np.complex64)
complex128: Final[NumpyDType] = np.dtype(np.complex128)
float0: Final[NumpyDType] = np.dtype([("float0", np.void, 0)])

SIGNED: Final = (int2, int4, int8, int16, int32, int64)
UNSIGNED: Final = (uint2, uint4, uint8, uint16, uint32, uint64)
SMALL_FLOATS: Final = (
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
)
FLOATING: Final = (*SMALL_FLOATS, bfloat16, float16, float32, float64)
COMPLEX: Final = (complex64, complex128)
NUMERIC: Final = (bool_, *SIGNED, *UNSIGNED, *FLOATING, *COMPLEX)

# Sets, because a look-up in a set is half the price of one in an LRU cache.
SIGNED_SET: Final[frozenset[DType]] = frozenset(SIGNED)
UNSIGNED_SET: Final[frozenset[DType]] = frozenset(UNSIGNED)
INTEGER_SET: Final[frozenset[DType]] = SIGNED_SET | UNSIGNED_SET
FLOATING_SET: Final[frozenset[DType]] = frozenset(FLOATING)
COMPLEX_SET: Final[frozenset[DType]] = frozenset(COMPLEX)
INEXACT_SET: Final[frozenset[DType]] = FLOATING_SET | COMPLEX_SET
CATEGORIES: Final[Mapping[str, frozenset[DType]]] = MappingProxyType(
    {
        "bool": frozenset((bool_,)),
        "signed": SIGNED_SET,
        "unsigned": UNSIGNED_SET,
        "integer": INTEGER_SET,
        "floating": FLOATING_SET,
        "complex": COMPLEX_SET,
        "inexact": INEXACT_SET,
        "number": INTEGER_SET | INEXACT_SET,
    }
)

# Our own object for each dtype: `np.longlong` and `np.int64` are equal, not identical.
KNOWN: Final[Mapping[NumpyDType, NumpyDType]] = MappingProxyType(
    {dtype: dtype for dtype in (*NUMERIC, float0)}
)
NARROWED: Final[Mapping[DType, NumpyDType]] = MappingProxyType(
    {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
)
DEFAULTS: Final[Mapping[str, NumpyDType]] = MappingProxyType(
    {
        "bool": bool_,
        "signed": int64,
        "unsigned": uint64,
        "integer": int64,
        "floating": float64,
        "complex": complex128,
        "inexact": float64,
        "number": float64,
    }
)
PYTHON_SCALARS: Final[Mapping[type, NumpyDType]] = MappingProxyType(
    {bool: bool_, int: int64, float: float64, complex: complex128}
)
REAL_PARTS: Final[Mapping[DType, NumpyDType]] = MappingProxyType(
    {complex64: float32, complex128: float64}
)
FROM_SHORT_NAMES: Final[Mapping[str, NumpyDType]] = MappingProxyType(
    {"float0": float0} | {abbreviate(dtype.name): dtype for dtype in NUMERIC}
)
SHORT_NAMES: Final[Mapping[DType, str]] = MappingProxyType(
    {dtype: name for name, dtype in FROM_SHORT_NAMES.items()}
)


def is_extended(dtype: DType) -> bool:
    """Whether NumPy does not know `dtype`, as for typed random keys."""
    # The other way round it would ask an abstract base class, at ten times the price.
    return not isinstance(dtype, np.dtype)


def is_bool(dtype: DType) -> bool:
    """Whether `dtype` is the boolean dtype."""
    return dtype == bool_


def is_integer(dtype: DType) -> bool:
    """Whether `dtype` is a signed or unsigned integer; booleans are not."""
    return dtype in INTEGER_SET


def is_signed(dtype: DType) -> bool:
    """Whether `dtype` is a signed integer."""
    return dtype in SIGNED_SET


def is_unsigned(dtype: DType) -> bool:
    """Whether `dtype` is an unsigned integer."""
    return dtype in UNSIGNED_SET


def is_float(dtype: DType) -> bool:
    """Whether `dtype` is a real floating type, bfloat16 and the small ones included."""
    return dtype in FLOATING_SET


def is_complex(dtype: DType) -> bool:
    """Whether `dtype` is complex."""
    return dtype in COMPLEX_SET


def is_inexact(dtype: DType) -> bool:
    """Whether `dtype` is floating or complex, so that it can be differentiated."""
    return dtype in INEXACT_SET


def is_subdtype(dtype: DType, category: Category) -> bool:
    """Whether `dtype` belongs to `category`, also for dtypes of `ml_dtypes`.

    Raises:
        ValueError: there is no such category.

    >>> is_subdtype(bfloat16, "inexact"), is_subdtype(bool_, "number")
    (True, False)
    """
    if category == "extended":
        return isinstance(dtype, ExtendedDType)
    members = CATEGORIES.get(category)
    if members is None:
        known = ", ".join((*CATEGORIES, "extended"))
        raise ValueError(
            f"there is no dtype category {category!r}; the categories are {known}"
        )
    return dtype in members


def as_dtype(dtype: DTypeLike) -> DType:
    """The dtype that `dtype` stands for, 64-bit ones kept.

    Raises:
        TypeError: arrays of that dtype do not exist here.

    >>> as_dtype("bfloat16"), as_dtype(complex)
    (dtype(bfloat16), dtype('complex128'))
    """
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, np.dtype):
        return checked(dtype, dtype)
    if isinstance(dtype, str):
        return key_from_name(dtype) or checked(dtype, dtype)
    held = getattr(dtype, "dtype", None)
    if isinstance(held, np.dtype | ExtendedDType):
        return checked(held, dtype)
    return checked(dtype if isinstance(dtype, type) else None, dtype)


def checked(dtype: object, given: object) -> DType:
    """`dtype`, which `given` led to, as our own object, or an error about `given`."""
    if isinstance(dtype, ExtendedDType):
        return dtype
    try:
        out = None if dtype is None else KNOWN.get(np.dtype(dtype))  # type: ignore[call-overload]  # anything may come in
    except TypeError:
        out = None
    if out is None:
        raise TypeError(
            f"{given!r} not understood: it is not a dtype of arrays; they hold "
            "booleans, integers, floats and complex numbers in native byte order, such "
            "as 'int32' or 'bfloat16'"
        )
    return out


as_dtype_once: Final = memoised(as_dtype)


def canonical(dtype: DTypeLike, x64: bool) -> DType:
    """The dtype that `dtype` stands for, in 32 bits where `x64` is off.

    Raises:
        TypeError: arrays of that dtype do not exist here.

    >>> canonical(float, x64=False), canonical("int64", x64=True)
    (dtype('float32'), dtype('int64'))
    """
    # Arrays may stand for their dtype, and a cache must not keep them alive.
    cached = isinstance(dtype, (np.dtype, type, str))
    full = as_dtype_once(dtype) if cached else as_dtype(dtype)
    return full if x64 else NARROWED.get(full, full)


def numpy_dtype(dtype: DType) -> NumpyDType:
    """`dtype` for calls of NumPy.

    Raises:
        TypeError: `dtype` is an extended dtype.

    >>> numpy_dtype(int32)
    dtype('int32')
    """
    if isinstance(dtype, np.dtype):
        return dtype
    raise TypeError(
        f"{dtype.name} is an extended dtype, which holds no numbers; use the array "
        f"of {dtype.element_dtype.name} that it is stored as"
    )


def stored_dtype(dtype: DType) -> NumpyDType:
    """The NumPy dtype of the elements that stand for `dtype`: itself unless extended.

    >>> stored_dtype(int32), stored_dtype(as_dtype("key<fry>"))
    (dtype('int32'), dtype('uint64'))
    """
    return dtype if isinstance(dtype, np.dtype) else dtype.element_dtype


def device_dtype(dtype: DType) -> NumpyDType:
    """The dtype of the elements on a device, where booleans stand for float0.

    >>> device_dtype(int32), device_dtype(float0)
    (dtype('int32'), dtype('bool'))
    """
    return bool_ if dtype == float0 else stored_dtype(dtype)


def device_value(value: object, dtype: DType) -> np.ndarray:
    """A value in NumPy as devices hold it; of float0 only the shape is kept.

    >>> device_value(np.zeros(2, float0), float0)
    array([False, False])
    """
    if dtype == float0:
        return np.zeros(np.asarray(value).shape, bool_)
    return np.asarray(value, stored_dtype(dtype))


def default_dtype(category: Category, x64: bool) -> NumpyDType:
    """The dtype of a Python scalar of `category`: int32, uint32, float32, complex64.

    Raises:
        ValueError: `category` is "extended".

    >>> default_dtype("integer", x64=False), default_dtype("inexact", x64=True)
    (dtype('int32'), dtype('float64'))
    """
    full = DEFAULTS.get(category)
    if full is None:
        raise ValueError(f"there is no default dtype of category {category!r}")
    return full if x64 else NARROWED.get(full, full)


def dtype_of_scalar(value: PythonScalar | NumpyScalar, x64: bool) -> tuple[DType, bool]:
    """The dtype of a scalar, and whether it is weak: Python numbers are, booleans not.

    Raises:
        TypeError: `value` is not a number.

    >>> dtype_of_scalar(2.0, x64=False), dtype_of_scalar(True, x64=False)
    ((dtype('float32'), True), (dtype('bool'), False))
    """
    kind = type(value)
    if kind in PYTHON_SCALARS:
        full = PYTHON_SCALARS[kind]
        return (full if x64 else NARROWED.get(full, full)), kind is not bool
    if isinstance(value, np.generic):
        return canonical(value.dtype, x64), False
    for base, full in PYTHON_SCALARS.items():
        if isinstance(value, base):
            return (full if x64 else NARROWED.get(full, full)), base is not bool
    raise TypeError(f"{value!r} of type {kind.__name__} is not a scalar")


def short_name(dtype: DType) -> str:
    """The name that jaxprs print.

    >>> [short_name(dtype) for dtype in (float32, bfloat16, uint8, bool_, float0)]
    ['f32', 'bf16', 'u8', 'bool', 'float0']
    """
    known = SHORT_NAMES.get(dtype)
    return dtype.name if known is None else known


def from_short_name(name: str) -> DType:
    """The dtype that `short_name` gives `name`.

    Raises:
        ValueError: no dtype has that name.

    >>> from_short_name("f8_e4m3fn")
    dtype(float8_e4m3fn)
    """
    out = FROM_SHORT_NAMES.get(name) or key_from_name(name)
    if out is None:
        raise ValueError(f"no dtype has the short name {name!r}")
    return out


def tangent_dtype(dtype: DType) -> DType:
    """The dtype of tangents: `dtype` itself if inexact, and otherwise `float0`.

    >>> tangent_dtype(float16), tangent_dtype(int32) == float0
    (dtype('float16'), True)
    """
    return dtype if dtype in INEXACT_SET else float0


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part; a real dtype is its own.

    >>> real_dtype(complex64)
    dtype('float32')
    """
    return REAL_PARTS.get(dtype, dtype)


def complex_dtype(dtype: DType) -> DType:
    """The smallest complex dtype that holds the numbers of `dtype`.

    Raises:
        TypeError: `dtype` holds no numbers.

    >>> complex_dtype(float64), complex_dtype(bfloat16)
    (dtype('complex128'), dtype('complex64'))
    """
    if inexact_dtype(dtype) in (float64, complex128):
        return complex128
    return complex64


def inexact_dtype(dtype: DType) -> DType:
    """`dtype` itself if inexact, else the float that stands for it in mathematics.

    Raises:
        TypeError: `dtype` holds no numbers.

    >>> inexact_dtype(int8), inexact_dtype(int64), inexact_dtype(float16)
    (dtype('float32'), dtype('float64'), dtype('float16'))
    """
    if dtype in INEXACT_SET:
        return dtype
    if dtype not in INTEGER_SET and dtype != bool_:
        raise TypeError(f"{dtype.name} holds no numbers")
    return float64 if dtype in (int64, uint64) else float32
