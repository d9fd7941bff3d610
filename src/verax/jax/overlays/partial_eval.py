"""`jax.interpreters.partial_eval`: programs of functions, and their used part."""

from collections.abc import Sequence
from typing import Any

import verax
from verax.api.tracing.apply import ENGINE
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr

__all__ = ["dce_jaxpr", "trace_to_jaxpr_dynamic"]


def trace_to_jaxpr_dynamic(
    fun: Any, in_avals: Sequence[ShapedArray], **options: Any
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a flat function, its types, and its constants.

    The constants are the first inputs of the program.
    """
    structs = [verax.ShapeDtypeStruct(a.shape, a.dtype, a.weak_type) for a in in_avals]
    closed = verax.make_jaxpr(lambda *xs: fun.call_wrapped(*xs))(*structs)
    jaxpr = closed.jaxpr
    invars = (*jaxpr.constvars, *jaxpr.invars)
    opened = Jaxpr((), invars, jaxpr.eqns, jaxpr.outvars)
    return opened, list(closed.out_avals), list(closed.consts)


def dce_jaxpr(
    jaxpr: Jaxpr,
    used_outputs: bool | Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[bool]]:
    """The program without what these outputs do not need, and which inputs it keeps.

    `instantiate` marks inputs that stay even if nothing needs them.
    """
    used = flags(used_outputs, len(jaxpr.outvars))
    fixed = flags(instantiate, len(jaxpr.invars))
    held = [v for v, flag in zip(jaxpr.invars, fixed, strict=True) if flag]
    # As outputs, they are needed.
    holding = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns, (*jaxpr.outvars, *held))
    out, kept = ENGINE.dce(holding, (*used, *[True] * len(held)))
    outs = out.outvars[: sum(used)]
    return Jaxpr(out.constvars, out.invars, out.eqns, outs), list(kept)


def flags(said: bool | Sequence[bool], count: int) -> tuple[bool, ...]:
    """A flag for each of `count` variables; one flag is for all."""
    return (said,) * count if isinstance(said, bool) else tuple(said)
