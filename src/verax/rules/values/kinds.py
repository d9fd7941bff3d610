"""Floor 1: sets of dtypes by kind, for type rules and for their messages.

One idea: a kind is a small value that can be asked, printed and joined::

    (INTEGER | BOOL).holds(np.dtype("int8"))
"""

import ml_dtypes
import numpy as np
from attrs import frozen

from verax.ir.dtypes import DType, is_bool, is_complex, is_float, is_signed, is_unsigned
from verax.ir.extended import KeyDType
from verax.ir.records import ReprMixin
from verax.rules.values.memo import pure


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
