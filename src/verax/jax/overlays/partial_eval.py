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
    """The program of a flat function, its types, and its constants."""
    structs = [verax.ShapeDtypeStruct(a.shape, a.dtype) for a in in_avals]
    closed = verax.make_jaxpr(lambda *xs: fun.call_wrapped(*xs))(*structs)
    return closed.jaxpr, list(closed.out_avals), list(closed.consts)


def dce_jaxpr(
    jaxpr: Jaxpr,
    used_outputs: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[bool]]:
    """The program without what these outputs do not need, and which inputs it keeps."""
    smaller, kept = ENGINE.dce(jaxpr, tuple(used_outputs))
    return smaller, list(kept)
