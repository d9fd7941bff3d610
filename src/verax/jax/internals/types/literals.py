"""`jax._src.literals`: scalars of Python and arrays of NumPy with a type of JAX's.

verax makes none: values keep their dtype in its programs as they are.
"""

from typing import Self

import numpy as np

from verax.ir.avals import ShapedArray


class Typed:
    """Anything that knows the dtype of a scalar."""

    dtype: np.dtype[np.generic]

    def __reduce__(self) -> tuple[object, ...]:
        plain = type(self).__mro__[1]
        return type(self), (plain(self), self.dtype)


class TypedInt(int, Typed):
    """An integer with a dtype."""

    def __new__(cls, value: int, dtype: np.dtype[np.generic]) -> Self:
        self = super().__new__(cls, value)
        self.dtype = dtype
        return self


class TypedFloat(float, Typed):
    """A float with a dtype."""

    def __new__(cls, value: float, dtype: np.dtype[np.generic]) -> Self:
        self = super().__new__(cls, value)
        self.dtype = dtype
        return self


class TypedComplex(complex, Typed):
    """A complex number with a dtype."""

    def __new__(cls, value: complex, dtype: np.dtype[np.generic]) -> Self:
        self = super().__new__(cls, value)
        self.dtype = dtype
        return self


class TypedNdArray(np.ndarray[tuple[int, ...], np.dtype[np.generic]]):
    """An array of NumPy, with the type that it was given or has as an array."""

    given: ShapedArray | None

    def __new__(cls, val: np.ndarray, aval: ShapedArray | None = None) -> Self:
        self = np.asarray(val).view(cls)
        self.given = aval
        return self

    def __array_finalize__(self, source: object) -> None:
        """Parts of it are typed as they are."""
        self.given = None

    @property
    def aval(self) -> ShapedArray:
        """The type."""
        return self.given or ShapedArray(self.shape, self.dtype)

    @property
    def weak_type(self) -> bool:
        """Whether its dtype gives way to others."""
        return self.aval.weak_type
