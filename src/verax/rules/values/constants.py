"""Floor 1: what counts as an array operand, and its type.

One idea: Python scalars are weak, everything else says its own dtype, and both are
narrowed to 32 bits unless x64 is on::

    aval_of(1.0)                   # ~f32[]
    aval_of(np.zeros(3))           # f32[3] while x64 is off
"""

from collections.abc import Hashable

import ml_dtypes
import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray, SymbolicSize, is_reference
from verax.ir.dtypes import (
    DType,
    KeyDType,
    canonical,
    float0,
    is_bool,
    is_complex,
    is_float,
    is_signed,
    is_unsigned,
)
from verax.ir.jaxpr import Literal, array_literal, scalar_literal
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array
from verax.rules.values.conversions import (
    SHOWN,
    NotAnArray,
    NotYetAnArray,
    described,
    shown,
)
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

PYTHON_SCALARS = {
    bool: np.bool_,
    int: np.int64,
    float: np.float64,
    complex: np.complex128,
}
# A tuple made once: a union would be made again by every check.
HOST_VALUES = (np.ndarray, np.generic)


@pure(64)
def scalar_aval(kind: Hashable, x64: bool) -> ShapedArray | None:
    """The type of a Python scalar class: weak except bool; None for other classes."""
    for python, numpy in PYTHON_SCALARS.items():
        if isinstance(kind, type) and issubclass(kind, python):
            dtype = canonical(np.dtype(numpy), x64)
            return ShapedArray((), dtype, python is not bool)
    return None


@pure(1 << 12)
def array_aval(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], x64: bool
) -> ShapedArray:
    """The type of a NumPy array, narrowed to 32 bits unless x64 is on."""
    return ShapedArray(shape, canonical(dtype, x64))


def not_an_array(x: object) -> NotAnArray:
    """The error for an operand that is not an array, with the three ways out."""
    if is_reference(x):
        # Not its repr, which would look at what it holds.
        return NotAnArray(
            f"a mutable reference of type {x.aval} stands where an array is expected; "
            "read what it holds first: ref[...]"
        )
    if hasattr(x, "__jax_array__"):
        return NotYetAnArray(
            "Triggering __jax_array__() during abstractification is no longer "
            f"supported. {described(x)} is not an array yet: convert it "
            "(verax.numpy.asarray), or register its class as a pytree"
        )
    return NotAnArray(
        f"{shown(x, SHOWN)} of type {type(x)} is not a valid JAX type: it is "
        "not an array, scalar or tracer. Convert it (verax.numpy.asarray), mark the "
        "argument static (static_argnums), or register its class as a pytree "
        "(verax.tree_util.register_pytree_node)"
    )


def aval_of(x: object) -> ShapedArray:
    """The type of an operand.

    Raises:
        TypeError: `x` is not an array, scalar or tracer.
    """
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, HOST_VALUES):
        if type(x) is not np.ndarray:
            refuse_masked(x)
        try:
            return array_aval(x.shape, x.dtype, STATE.enable_x64)
        except TypeError as error:
            raise NotAnArray(
                f"{shown(x, SHOWN)} of type {type(x)} is not a valid JAX type: {error}"
            ) from None
    if isinstance(x, Literal):
        return x.aval
    kind = int if isinstance(x, SymbolicSize) else type(x)
    out = scalar_aval(kind, STATE.enable_x64)  # type: ignore[arg-type]  # mypy#11469
    if out is None:
        raise not_an_array(x)
    return out


def refuse_masked(x: np.ndarray | np.generic) -> None:
    """Raise ValueError for a masked array of NumPy."""
    subclass = isinstance(x, np.ndarray) and type(x) is not np.ndarray
    if subclass and np.ma.is_masked(x):
        raise ValueError(
            "numpy masked arrays are not supported, since the mask would be lost: use "
            "x.filled() first"
        )


def is_operand(x: object) -> bool:
    """Whether `x` is an array, scalar or tracer."""
    try:
        aval_of(x)
    except TypeError:
        return False
    return True


def scalar_of(x: object, aval: ShapedArray) -> np.ndarray:
    """A NumPy scalar array of `aval`'s dtype that holds the Python or NumPy scalar x.

    Raises:
        OverflowError: a Python integer does not fit the dtype.
    """
    try:
        return np.asarray(x, aval.dtype)  # type: ignore[arg-type]  # checked by aval_of
    except OverflowError as error:
        raise OverflowError(
            f"Python int {x} too large to convert to {aval.dtype}; pass a NumPy "
            "scalar of "
            'a wider dtype, or verax.config.update("enable_x64", True)'
        ) from error


def typed_scalar(x: object, aval: ShapedArray) -> np.ndarray | Literal:
    """The scalar x as an operand of type `aval`, whatever is configured now.

    NumPy values are narrowed to 32 bits unless x64 is on; a literal says its type, so
    that programs with 64 bits can be rewritten while x64 is off.
    """
    value = scalar_of(x, aval)
    return value if aval_of(value) is aval else scalar_literal(value, aval)


def constant(x: object) -> Literal:
    """The literal for a concrete operand: scalars by value, arrays by reference."""
    if isinstance(x, Literal):
        return x
    aval = aval_of(x)
    if aval.shape:
        return array_literal(x, aval)
    if isinstance(x, Array):
        return scalar_literal(x.stored(), aval)
    return scalar_literal(scalar_of(x, aval), aval)


# -----------------------------------------------------------------------------
# Sets of dtypes by kind, for type rules and for their messages.
#
# A kind is a small value that can be asked, printed and joined::
#
#     (INTEGER | BOOL).holds(np.dtype("int8"))


@frozen(repr=False)
class Kind(ReprMixin):
    """Some of: booleans, signed and unsigned integers, floats, complex, keys."""

    names: frozenset[str]

    def holds(self, dtype: DType) -> bool:
        """Whether arrays of `dtype` are of this kind."""
        return kind_name(dtype) in self.names

    def check(self, name: str, dtype: DType) -> None:
        """Raise TypeError, naming the operation, unless `dtype` is of this kind."""
        if not self.holds(dtype):
            if dtype == float0:
                raise TypeError(
                    "float0s do not support any operations by design, since they are "
                    f"tangents of integers and booleans: not {name} either"
                )
            raise TypeError(
                f"{name} does not accept dtype {dtype}: it takes {self}; convert the "
                "operand (verax.lax.convert_element_type)"
            )

    def samples(self) -> tuple[DType, ...]:
        """Dtypes of this kind that tests draw from, the plainest first and often."""
        return sampled(self)

    def __or__(self, other: "Kind") -> "Kind":
        return Kind(self.names | other.names)

    def __str__(self) -> str:
        return f"{' or '.join(n for n in ORDER if n in self.names)} arrays"


ORDER = ("boolean", "signed integer", "unsigned integer", "float", "complex", "key")
PLAIN: tuple[DType, ...] = tuple(
    np.dtype(d)
    for d in (
        np.float32,
        np.int32,
        np.bool_,
        np.uint8,
        np.complex64,
        np.int8,
        ml_dtypes.bfloat16,
        np.float16,
        np.uint32,
    )
)
RARE: tuple[DType, ...] = tuple(
    np.dtype(d)
    for d in (
        np.float64,
        np.int64,
        np.complex128,
        np.uint64,
        ml_dtypes.int4,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.uint4,
    )
)
"""Dtypes with branches of their own in some rules; drawn half as often."""


@pure()
def sampled(kind: Kind) -> tuple[DType, ...]:
    """The dtypes that are of a kind: draws of rows ask at every call."""
    return tuple([d for d in (*PLAIN, *PLAIN, *RARE) if kind.holds(d)])


def kind_name(dtype: DType) -> str:
    """The kind of a dtype, or `other` for float0."""
    if is_float(dtype):
        return "float"
    if is_signed(dtype):
        return "signed integer"
    if is_bool(dtype):
        return "boolean"
    if is_unsigned(dtype):
        return "unsigned integer"
    if is_complex(dtype):
        return "complex"
    return "key" if isinstance(dtype, KeyDType) else "other"


def kind(*names: str) -> Kind:
    return Kind(frozenset(names))


BOOL = kind("boolean")
SIGNED = kind("signed integer")
UNSIGNED = kind("unsigned integer")
INTEGER = SIGNED | UNSIGNED
FLOAT = kind("float")
COMPLEX = kind("complex")
ANY_FLOAT = FLOAT | COMPLEX
REAL = INTEGER | FLOAT
NUMBER = REAL | COMPLEX
BITS = BOOL | INTEGER
ORDERED = BOOL | REAL
ANYTHING = BOOL | NUMBER
KEY = kind("key")
