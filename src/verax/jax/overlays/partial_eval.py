"""`jax.interpreters.partial_eval`: programs of functions, and their used part."""

from collections.abc import Callable, Sequence
from typing import Any

import verax
from verax.api.tracing.apply import ENGINE
from verax.api.tracing.concrete_values import is_known
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import ClosedJaxpr as PlainClosedJaxpr, Eqn, Jaxpr
from verax.jax.overlays.linear_util import WrappedFun, wrap_init
from verax.jax.stand_ins import stand_in
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.values.constants import aval_of

__all__ = [
    "DynamicJaxprTrace",
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "TracingEqn",
    "abstract_eval_fun",
    "close_jaxpr",
    "convert_constvars_jaxpr",
    "dce_jaxpr",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]

TracingEqn = Eqn
custom_staging_rules: dict[object, object] = {}
dce_rules: dict[object, object] = {}
partial_eval_jaxpr_custom_rules: dict[object, object] = {}


DynamicJaxprTracer = JaxprTracer = stand_in(
    "DynamicJaxprTracer",
    lambda x: isinstance(x, Tracer) and not is_known(x),
    "the tracers of jax.jit",
)
DynamicJaxprTrace = stand_in(
    "DynamicJaxprTrace",
    lambda x: isinstance(x, Builder) and x.oracle is None,
    "the traces of jax.jit",
)


class PartialVal(tuple[ShapedArray | None, object]):
    """A type without a value, or a value without a type: a pair."""

    __slots__ = ()

    def __new__(cls, pair: tuple[object, object]) -> "PartialVal":
        return super().__new__(cls, pair)

    @classmethod
    def known(cls, value: object) -> "PartialVal":
        return cls((None, value))

    @classmethod
    def unknown(cls, aval: object) -> "PartialVal":
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        return self[1] if self.is_known() else None

    def get_aval(self) -> Any:
        return aval_of(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun,
    pvals: Sequence[PartialVal],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[PartialVal], list[object]]:
    """The program of a flat function of what is unknown, its results, its constants.

    All results are unknown, whatever `instantiate` says: a value that is known is a
    constant of the program. The constants are the first inputs of the program.
    """
    unknown = [pval.get_aval() for pval in pvals if not pval.is_known()]

    def function(*xs: object) -> Any:
        left = iter(xs)
        every = [p.get_known() if p.is_known() else next(left) for p in pvals]
        return fun.call_wrapped(*every)

    jaxpr, outs, consts = trace_to_jaxpr_dynamic(wrap_init(function), unknown)
    return jaxpr, [PartialVal.unknown(aval) for aval in outs], consts


def close_jaxpr(jaxpr: Jaxpr) -> PlainClosedJaxpr:
    """A program without constants, closed."""
    return PlainClosedJaxpr(jaxpr, ())


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constants as its first inputs."""
    invars = (*jaxpr.constvars, *jaxpr.invars)
    return Jaxpr((), invars, jaxpr.eqns, jaxpr.outvars)


def abstract_eval_fun(
    fun: Callable[..., object],
    *avals: ShapedArray,
    debug_info: object = None,
    **params: object,
) -> Any:
    """The types of the results of a function on values of these types."""
    bound = wrap_init(lambda *xs: fun(*xs, **params))
    return trace_to_jaxpr_dynamic(bound, avals)[1]


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ShapedArray], **options: object
) -> tuple[Jaxpr, list[ShapedArray], list[object]]:
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
