"""Floor 6: the floating-point part of a sampler, compiled also when it runs eagerly.

One idea: NumPy and XLA agree on integers and differ in the last digit of a logarithm,
so what follows the random bits is a function of its own, which an eager call runs as a
compiled program; a draw then has the same bits everywhere::

    compiled(normal_of, symmetric(key, shape, dtype))
    compiled(poisson_of, key, rate, shape=(3,))      # keywords are static
    drawn(unit_of, key, shape=(3,), dtype=float32)   # a program once it pays

A whole sampler gives the same bits either way, so it is compiled only where that pays:
NumPy takes 0.1 ms for a small draw, a program 0.01 ms and its compilation 50 ms.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from verax.api.jit.decorator import jit
from verax.api.tracing.apply import is_tracing
from verax.rules.values.array import Array
from verax.rules.values.memo import pure


@pure(256)
def program(
    function: Callable[..., Array], static: tuple[str, ...] = ()
) -> Callable[..., Array]:
    """`function` under jit, one object for each function."""
    return jit(function, static_argnames=static)


def compiled(function: Callable[..., Array], *operands: Any, **static: Any) -> Array:
    """`function(*operands)`: as equations under a trace, else as a program."""
    if is_tracing():
        return function(*operands, **static)
    if static:
        return program(function, tuple(sorted(static)))(*operands, **static)
    return program(function)(*operands)


# Draws of a kind before it is compiled, and elements from which it is at once.
PATIENCE = 50
LARGE = 1 << 14


class Sampler:
    """A sampler with its static arguments, and how often it has run in NumPy."""

    def __init__(self, function: Callable[..., Array], static: dict[str, Any]) -> None:
        self.count = PATIENCE if math.prod(static["shape"]) >= LARGE else 0
        self.program = jit(partial(function, **static))


@pure(1 << 10)
def sampler(
    function: Callable[..., Array], static: tuple[tuple[str, Any], ...]
) -> Sampler:
    """One object for each kind of draw."""
    return Sampler(function, dict(static))


def drawn(function: Callable[..., Array], *operands: Any, **static: Any) -> Array:
    """`function(*operands, **static)`, as a program where that pays.

    Its results have the same bits in NumPy and compiled; `shape` is among the keywords.
    """
    if is_tracing():
        return function(*operands, **static)
    found = sampler(function, tuple(static.items()))
    if found.count < PATIENCE:
        found.count += 1
        return function(*operands, **static)
    return found.program(*operands)
