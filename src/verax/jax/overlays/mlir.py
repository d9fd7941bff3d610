"""`jax.interpreters.mlir`: how a program's own primitives are lowered.

A lowering is a function of operations, made by `lower_fun`. Rules that build MLIR by
hand are kept, and refused by name when they would be needed.
"""

from collections.abc import Callable
from typing import Any

from verax.jax.primitives import LOWERINGS, LowerFun, Primitive

__all__ = ["lower_fun", "register_lowering"]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LowerFun:
    """A lowering that writes what `fun` writes."""
    return LowerFun(fun, multiple_results)


def register_lowering(
    primitive: Primitive,
    rule: Callable[..., Any],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> Callable[..., Any]:
    """Say how a primitive is lowered, on one platform or on all."""
    rules = LOWERINGS.get(primitive, {})
    LOWERINGS[primitive] = rules | {platform: rule}
    return rule
