"""`jax.interpreters.mlir`: how a program's own primitives are lowered.

A lowering is a function of operations, made by `lower_fun`, or a rule whose only
operations are those of `emit_python_callback`. Rules that build MLIR by hand are kept,
and refused by name when they would be needed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import verax
from verax.api.host.callbacks import io_callback, pure_callback
from verax.ir.avals import ShapedArray
from verax.jax.primitives import (
    LOWERINGS,
    LowerFun,
    LoweringContext as LoweringRuleContext,
    Primitive,
)

__all__ = [
    "LoweringRuleContext",
    "emit_python_callback",
    "lower_fun",
    "register_lowering",
]


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


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: object | None,
    operands: Sequence[object],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: object | None = None,
) -> tuple[Sequence[Any], object | None, None]:
    """Call a Python function while the program runs: results, token, nothing to keep.

    Effects are ordered by the program and not by the token, which is returned as it is.
    """
    structs = tuple([verax.ShapeDtypeStruct(a.shape, a.dtype) for a in result_avals])
    call: Any = io_callback if has_side_effect else pure_callback
    return call(callback, structs, *operands), token, None
