"""Floor 6: the floating-point part of a sampler, compiled also when it runs eagerly.

One idea: NumPy and XLA agree on integers and differ in the last digit of a logarithm,
so what follows the random bits is a function of its own, which an eager call runs as a
compiled program; a draw then has the same bits everywhere::

    compiled(normal_of, symmetric(key, shape, dtype))
    compiled(poisson_of, key, rate, shape=(3,))      # keywords are static
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from verax.api.engine import current_builder
from verax.api.jit import jit
from verax.rules.array import Array


@lru_cache(maxsize=256)
def program(
    function: Callable[..., Array], static: tuple[str, ...] = ()
) -> Callable[..., Array]:
    """`function` under jit, one object for each function."""
    return jit(function, static_argnames=static)


def compiled(function: Callable[..., Array], *operands: Any, **static: Any) -> Array:
    """`function(*operands)`: as equations under a trace, else as a program."""
    if current_builder() is not None:
        return function(*operands, **static)
    if static:
        return program(function, tuple(sorted(static)))(*operands, **static)
    return program(function)(*operands)
