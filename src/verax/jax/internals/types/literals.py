"""`jax._src.literals`: Python scalars with a dtype. verax makes none."""

from typing import Self

import numpy as np


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
