"""Operands of the cases by a letter each, the same for every library.

drawn("x")          # 250 000 normal float32, 500 x 500
"""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

N = 500
SQUARE, LINE = (N, N), (100_000,)

type Rng = np.random.Generator


def f4(x: Any) -> Any:
    return np.asarray(x, np.float32)


def normal(*shape: int) -> Callable[[Rng], Any]:
    return lambda r: f4(r.standard_normal(shape))


def uniform(low: float, high: float) -> Callable[[Rng], Any]:
    return lambda r: f4(r.uniform(low, high, SQUARE))


def positive(r: Rng) -> Any:
    return f4(np.abs(r.standard_normal(SQUARE)) + 0.1)


def integers(low: int, high: int, *shape: int) -> Callable[[Rng], Any]:
    return lambda r: r.integers(low, high, shape).astype(np.int32)


def complexes(r: Rng) -> Any:
    x = r.standard_normal(SQUARE) + 1j * r.standard_normal(SQUARE)
    return x.astype(np.complex64)


def definite(n: int, *stack: int) -> Callable[[Rng], Any]:
    def drawn(r: Rng) -> Any:
        a = r.standard_normal((*stack, n, n))
        return f4(a @ np.swapaxes(a, -1, -2) / n + np.eye(n))

    return drawn


def regular(n: int, *stack: int) -> Callable[[Rng], Any]:
    return lambda r: f4(r.standard_normal((*stack, n, n)) + 4 * np.eye(n))


KINDS: dict[str, Callable[[Rng], Any]] = {
    "x": normal(*SQUARE),
    "y": normal(*SQUARE),
    "p": positive,
    "q": positive,
    "u": uniform(-0.9, 0.9),
    "h": uniform(0.1, 0.9),
    "g": uniform(1.1, 6),
    "v": normal(*LINE),
    "w": normal(*LINE),
    "o": lambda r: np.sort(normal(*LINE)(r)),
    "i": integers(0, 1000, *SQUARE),
    "k": integers(1, 20, *SQUARE),
    "n": integers(0, N, 20_000),
    "j": lambda r: np.sort(integers(0, 1000, *LINE)(r)),
    "b": lambda r: r.standard_normal(SQUARE) > 0,
    "z": complexes,
    "s": definite(200),
    "m": regular(200),
    "r": normal(200),
    "t": normal(8, 32, 32, 16),
    "f": normal(3, 3, 16, 16),
    "c": definite(6, 500),
    "d": regular(6, 500),
}
"""Operands by letter: s and m are matrices, c and d stacks of small ones."""


def drawn(kind: str) -> Any:
    """The operand; two calls return equal ones."""
    return KINDS[kind](np.random.default_rng(zlib.crc32(kind.encode())))
