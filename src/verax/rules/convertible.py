"""Floor 1: what Python may ask of an array: its value, as one of Python's own.

One idea: every conversion goes through `value`, which arrays that have one answer and
abstract tracers refuse with advice, so that annotations say `Array` for both::

    float(x), x.tolist(), np.asarray(x)
"""

from typing import Any, Self

import numpy as np


class Convertible:
    """Conversions of arrays to values of Python and NumPy."""

    __slots__ = ()

    def value(self, wanted: str) -> np.ndarray:
        """The value; `wanted` says in messages what asks for it.

        Raises:
            TypeError: there is none.
        """
        raise TypeError(f"{wanted} needs a value, and {self!r} has none")

    def __bool__(self) -> bool:
        return bool(self.value("bool(x), as in `if x:`"))

    def __int__(self) -> int:
        return int(self.value("int(x)"))

    def __float__(self) -> float:
        return float(self.value("float(x)"))

    def __complex__(self) -> complex:
        return complex(self.value("complex(x)"))

    def __index__(self) -> int:
        return self.value("an index or a size").__index__()

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray:
        return np.array(self.value("a NumPy array"), dtype, copy=copy)

    def item(self, *index: int) -> bool | int | float | complex:
        """The element at `index`, or the only one, as a Python scalar."""
        found: bool | int | float | complex = self.value("x.item()").item(*index)
        return found

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return self.value("x.tolist()").tolist()

    def block_until_ready(self) -> Self:
        """Wait until the value is computed; the array itself."""
        return self
