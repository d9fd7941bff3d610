"""Arguments for NumPy's functions: dtypes, shapes, values, axes, options, by a seed.

One idea: a draw makes what a signature asks for, the odd cases included: empty arrays,
arrays of one element, negative axes, tuples of axes, Python scalars; what it draws is
passed to both libraries::

    draw = Draw(seed)
    x = draw.array("iuf", rank=(1, 3))
    draw.call(x, **draw.some(axis=draw.axis(x.ndim), keepdims=True))
"""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from attrs import frozen

type Values = np.ndarray[Any, Any]

SHAPES = ((), (0,), (1,), (3,), (2, 3), (1, 3), (2, 0), (2, 3, 4), (2, 1, 3))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NARROW = ["bool", "int8", "uint8", "int32", "float16", "float32", "complex64"]
WIDE = ["int64", "float64", "complex128"]
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)


@frozen
class Call:
    """The arguments of one call, which both libraries get."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __getitem__(self, key: int | str) -> Any:
        """An argument by position, or by name; None if it is not given."""
        if isinstance(key, int):
            return self.args[key] if key < len(self.args) else None
        return self.kwargs.get(key)


def kind_of(dtype: Any) -> str:
    """b, i, u, f or c; the floats of ml_dtypes are floats."""
    actual = np.dtype(dtype)
    return "f" if actual == BFLOAT16 else actual.kind


class Draw:
    """A source of arguments; `wide` says whether 64 bits are on."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.wide = bool(self.random.integers(4) == 0)

    # ------------------------------------------------------------------ choices

    def pick(self, *items: Any) -> Any:
        return items[int(self.random.integers(len(items)))]

    def whole(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def flag(self) -> bool:
        return bool(self.random.integers(2))

    def some(self, **options: Any) -> dict[str, Any]:
        """A part of the options; half of the time at most one of them."""
        if self.flag():
            chosen = [self.pick(*options)] if self.random.integers(4) else []
        else:
            chosen = [name for name in options if self.flag()]
        return {name: options[name] for name in options if name in chosen}

    def call(self, *args: Any, **kwargs: Any) -> Call:
        return Call(args, kwargs)

    # ------------------------------------------------------------------- arrays

    def dtype(self, kinds: str = "biufc") -> Any:
        """A dtype of one of these kinds."""
        names = [np.dtype(x) for x in NARROW + (WIDE if self.wide else [])]
        actual = [x for x in (*names, BFLOAT16) if kind_of(x) in kinds]
        return self.pick(*actual)

    def shape(self, low: int = 0, high: int = 3, empty: bool = True) -> tuple[int, ...]:
        actual = [s for s in SHAPES if low <= len(s) <= high and (empty or 0 not in s)]
        return self.pick(*actual)  # type: ignore[no-any-return]  # one of SHAPES

    def values(
        self,
        shape: Sequence[int],
        dtype: Any,
        low: float = -4,
        high: float = 4,
        special: bool = False,
    ) -> Values:
        """Multiples of 1/8, which every float holds, or whole numbers."""
        shape, kind = tuple(shape), kind_of(dtype)
        if kind == "b":
            return self.random.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            least = max(low, 0) if kind == "u" else low
            return self.random.integers(
                int(np.ceil(least)), int(high) + 1, shape
            ).astype(dtype)
        actual: Any = self.eighths(shape, low, high)
        if kind == "c":
            actual = actual + 1j * self.eighths(shape, low, high)
        elif special and self.random.integers(3) == 0:
            odd = np.array(SPECIAL)[self.random.integers(0, len(SPECIAL), shape)]
            actual = np.where(self.random.integers(0, 3, shape) == 0, odd, actual)
        return np.asarray(actual).astype(dtype)

    def eighths(self, shape: tuple[int, ...], low: float, high: float) -> Values:
        span = self.random.integers(int(np.ceil(low * 8)), int(high * 8) + 1, shape)
        return np.asarray(span / 8)

    def array(
        self,
        kinds: str = "biufc",
        rank: tuple[int, int] = (0, 3),
        low: float = -4,
        high: float = 4,
        special: bool = False,
        empty: bool = True,
    ) -> Values:
        shape = self.shape(*rank, empty=empty)
        return self.values(shape, self.dtype(kinds), low, high, special)

    def vector(self, size: int, kinds: str = "biufc", **options: Any) -> Values:
        return self.values((size,), self.dtype(kinds), **options)

    def like(self, x: Values, **options: Any) -> Values:
        return self.values(x.shape, x.dtype, **options)

    def operands(
        self, count: int = 2, kinds: str = "biufc", **options: Any
    ) -> list[Any]:
        """Arrays whose shapes broadcast, or an array and Python scalars.

        Their dtypes are often equal.
        """
        shape, dtype = self.shape(), self.dtype(kinds)
        actual: list[Any] = [self.values(shape, dtype, **options)]
        for _ in range(count - 1):
            other = dtype if self.flag() else self.dtype(kinds)
            part = self.pick(shape, shape, shape[1:], ())
            part = tuple(1 if self.whole(0, 4) == 0 else n for n in part)
            x: Any = self.values(part, other, **options)
            if not part and self.flag():
                x = x.astype(float).item() if other == BFLOAT16 else x.item()
            actual.append(x)
        self.random.shuffle(actual)
        return actual

    def mask(self, shape: Sequence[int]) -> Values:
        """Booleans that broadcast to `shape`."""
        part = self.pick(tuple(shape), tuple(shape)[1:], ())
        return self.values(part, bool)

    # --------------------------------------------------------------------- axes

    def axis(self, ndim: int) -> int:
        """One dimension, counted from either end."""
        return self.whole(-ndim, ndim - 1) if ndim else 0

    def axis_or_none(self, ndim: int) -> int | None:
        return self.pick(None, self.axis(ndim)) if ndim else None

    def axes(self, ndim: int) -> Any:
        """None, one dimension, or a tuple of several, in any order."""
        if not ndim:
            return self.pick(None, ())
        order = [int(i) for i in self.random.permutation(ndim)]
        several = tuple(i - ndim * self.whole(0, 1) for i in order)
        return self.pick(
            None, self.axis(ndim), self.axis(ndim), several[: self.whole(0, ndim)]
        )
