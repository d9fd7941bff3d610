"""`pjit`, the former name of `jit` with shardings (floor 6).

New programs use `verax.jit`::

    pjit(f, in_shardings=P("x"), out_shardings=None)

>>> pjit(lambda x: x + 1)(1)
Array(2, dtype=int32, weak_type=True)
"""

from collections.abc import Callable
from typing import Any

from verax.api.jit import PjitFunction, jit

__all__ = ["pjit"]

ORDER = (
    "in_shardings",
    "out_shardings",
    "static_argnums",
    "static_argnames",
    "donate_argnums",
    "donate_argnames",
    "keep_unused",
    "device",
    "backend",
    "inline",
    "compiler_options",
)
"""The options of `jit` in the order in which `pjit` takes them by position."""


def pjit[**P, R](
    fun: Callable[P, R], *options: Any, **named: Any
) -> PjitFunction[P, R]:
    """`verax.jit(fun)`, whose options may be given by position, too.

    Args:
        fun: the function to compile.
        options: `in_shardings`, `out_shardings`, `static_argnums`, `static_argnames`,
            `donate_argnums`, `donate_argnames`, ... in this order.
        named: options of `jit` by name.

    Returns:
        The compiled function.

    Raises:
        TypeError: there are too many options, or one is given twice.

    >>> pjit(lambda x: x * 2, None, None)(3)
    Array(6, dtype=int32, weak_type=True)
    """
    if len(options) > len(ORDER):
        raise TypeError(
            f"pjit takes a function and at most {len(ORDER)} options by position, not "
            f"{len(options)}: {', '.join(ORDER)}"
        )
    placed = dict(zip(ORDER, options, strict=False))
    for name in placed:
        if name in named:
            raise TypeError(f"pjit got {name} by position and by name: leave one out")
    return jit(fun, **placed, **named)
