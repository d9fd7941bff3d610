"""Floor 2: `custom_jvp_call`: a call with a forward-mode rule of the user's own.

One idea: the equation holds the function and, as a value, the rule; whoever
differentiates asks the rule for a jaxpr, everyone else means the function::

    b:f32[] = custom_jvp_call[name=f captured=0 jaxpr={ ... } rule=...] a
"""

from collections.abc import Sequence
from random import Random
from typing import Protocol, runtime_checkable

from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, float64
from verax.ir.jaxpr import Aside, Jaxpr, Params
from verax.ops.calls.call import jit_p, rule_call
from verax.ops.calls.callbacks import silenced
from verax.ops.core import CORE
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.trig import cos, sin
from verax.rules.families.elementwise import SHAPES
from verax.rules.programs.batched import batch_to, on_inputs, somewhere, with_outputs
from verax.rules.programs.calling import pull, push, spread_tangents
from verax.rules.rows.builder import Builder
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Axis, Engine, Known, Row, Sample, Tangent, Zero
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting

type Mask = tuple[bool, ...]
SHORT = 2
"""Equations up to which a function is lowered in place and not as a function."""


@runtime_checkable
class JvpRule(Protocol):
    """A user's rule as a value: equal rules give equal jaxprs."""

    def __hash__(self) -> int: ...
    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """(captured, operands, nonzero tangents) to (results, nonzero tangents).

        `nonzero` has an entry for each operand that is not captured; the returned mask
        has one for each result.
        """
        ...


@frozen(cache_hash=True)
class TracedJvp(Aside):
    """A rule that has been traced already, for tangents of the operands `nonzero`."""

    jaxpr: Jaxpr
    nonzero: Mask
    out_nonzero: Mask

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`: tangents that are zero are written as zeros."""
        if nonzero == self.nonzero:
            return self.jaxpr, self.out_nonzero
        count = len(self.jaxpr.invars) - sum(self.nonzero)
        avals, places = list(self.jaxpr.in_avals[:count]), list[int | None]()
        for flag, aval in zip(
            [f for f, due in zip(nonzero, self.nonzero, strict=True) if due],
            self.jaxpr.in_avals[count:],
            strict=True,
        ):
            places.append(len(avals) if flag else None)
            avals += [aval] if flag else []
        places = [*range(count), *places]
        return on_inputs(self.jaxpr, avals, places, CORE), self.out_nonzero


@frozen(cache_hash=True)
class BatchedJvp:
    """A rule over `size` elements; tangents are batched as what they belong to."""

    engine: Engine = field(repr=False)
    rule: JvpRule
    captured: int
    size: int
    axes: tuple[Axis, ...]
    out_axes: tuple[int, ...]

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        jaxpr, mask = self.rule.pushed(nonzero)
        own = self.axes[self.captured :]
        axes = [*self.axes, *(a for a, f in zip(own, nonzero, strict=True) if f)]
        outs = [a for a, f in zip(self.out_axes, mask, strict=True) if f]
        wanted = (*self.out_axes, *outs)
        return batch_to(self.engine, jaxpr, self.size, axes, wanted), mask


@frozen(cache_hash=True)
class PrunedJvp:
    """A rule of which only the results that `used` marks are asked for."""

    engine: Engine = field(repr=False)
    rule: JvpRule
    used: Mask

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        jaxpr, mask = self.rule.pushed(nonzero)
        live = [u for u, flag in zip(self.used, mask, strict=True) if flag]
        kept = tuple([m for m, u in zip(mask, self.used, strict=True) if u])
        return with_outputs(self.engine, jaxpr, (*self.used, *live)), kept


@frozen(eq=False, repr=False)
class CustomJvpParams(Params):
    """The function, how many of its first inputs it captured, and the rule."""

    name: str
    captured: int
    jaxpr: Jaxpr
    rule: TracedJvp | JvpRule


def settled(rule: JvpRule, base: JvpRule) -> JvpRule:
    """`rule`, made from `base`, as plain jaxprs if `base` is: it can be printed."""
    if not isinstance(base, TracedJvp):
        return rule
    jaxpr, mask = rule.pushed(base.nonzero)
    return TracedJvp(jaxpr, base.nonzero, mask)


def typing_of_call(
    name: str, jaxpr: Jaxpr, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """The result types of a call of `jaxpr`.

    Raises:
        TypeError: the operands do not have the types of its inputs.
    """
    if tuple(avals) != jaxpr.in_avals:
        raise TypeError(f"the call of {name} takes {jaxpr.in_avals}, not {avals}")
    return jaxpr.out_avals


def jvp_custom(
    engine: Engine,
    p: CustomJvpParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The user's rule, and the derivative of the function in what it captured."""
    own = tangents[p.captured :]
    if all(isinstance(t, Zero) for t in own):
        return push_captured(engine, p, primals, tangents)
    jaxpr, mask = p.rule.pushed(tuple(not isinstance(t, Zero) for t in own))
    live = [t for t in own if not isinstance(t, Zero)]
    outs = jit_p.bind(rule_call(f"jvp_{p.name}", jaxpr), *primals, *live)
    count = len(mask)
    pushed = spread_tangents(p.jaxpr, mask, outs[count:])
    if all(isinstance(t, Zero) for t in tangents[: p.captured]):
        return outs[:count], pushed
    silent = evolve(p, jaxpr=silenced(p.jaxpr))
    _, more = push_captured(engine, silent, primals, tangents)
    return outs[:count], [
        sum_of(engine, t, u) for t, u in zip(pushed, more, strict=True)
    ]


def push_captured(
    engine: Engine,
    p: CustomJvpParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The derivative of the function itself in what it captured."""
    return derivative_in_captured(
        engine, p.name, p.jaxpr, p.captured, primals, tangents
    )


def derivative_in_captured(
    engine: Engine,
    name: str,
    jaxpr: Jaxpr,
    captured: int,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The jvp of a call of `jaxpr` in its first `captured` operands alone."""
    zeros = [Zero(x.aval.tangent()) for x in primals[captured:]]

    def bind(inner: Jaxpr, *args: Array) -> Sequence[Array]:
        return jit_p.bind(rule_call(name, inner), *args)

    return push(engine, jaxpr, bind, primals, [*tangents[:captured], *zeros])


def sum_of(engine: Engine, x: Tangent, y: Tangent) -> Tangent:
    """The sum of two tangents, of which one or both may be zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else engine.core.add(x, y)


class NamedCall(Protocol):
    """Params that name a function and hold it."""

    @property
    def name(self) -> str: ...
    @property
    def jaxpr(self) -> Jaxpr: ...


def transpose_of_call(
    engine: Engine, p: NamedCall, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The transpose of the function itself, where it is used as a linear one."""

    def bind(inner: Jaxpr, *operands: Array) -> Sequence[Array]:
        return jit_p.bind(rule_call(p.name, inner), *operands)

    return pull(engine, p.jaxpr, bind, cts, args)


def batch_custom(
    engine: Engine,
    p: CustomJvpParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Function and rule batched alike, so that later derivatives are the user's."""
    out_axes = somewhere(engine.batch(p.jaxpr, size, tuple(axes))[1])
    jaxpr = batch_to(engine, p.jaxpr, size, axes, out_axes)
    rule = settled(
        BatchedJvp(engine, p.rule, p.captured, size, tuple(axes), out_axes), p.rule
    )
    return custom_jvp_call_p.bind(evolve(p, jaxpr=jaxpr, rule=rule), *args), out_axes


def dce_custom(
    engine: Engine, p: CustomJvpParams, used: Mask
) -> tuple[CustomJvpParams, Mask, Mask]:
    """The results that are used; every operand stays, for the rule may read it."""
    jaxpr = with_outputs(engine, p.jaxpr, used)
    rule = settled(PrunedJvp(engine, p.rule, used), p.rule)
    return evolve(p, jaxpr=jaxpr, rule=rule), (True,) * len(jaxpr.invars), used


def lower_body(
    e: Emitter, jaxpr: Jaxpr, name: str, operands: Sequence[Operand]
) -> Sequence[Operand]:
    """A short function in place, a longer one as a function of the module."""
    if len(jaxpr.eqns) <= SHORT and not jaxpr.used_consts:
        return e.inline(jaxpr, operands)
    return e.call(jaxpr, operands, name)


def draw_custom(random: Random) -> Sample[CustomJvpParams]:
    """A call of sin(x) y, with its derivative as a rule."""
    dtype = random.choice((float32, float64))
    aval = ShapedArray(random.choice(SHAPES), dtype)
    builder = Builder("a sample")
    x, y = builder.input(aval), builder.input(aval)
    with interpreting(builder):
        jaxpr, _ = builder.finish((mul(sin(x), y),))
    builder = Builder("a sample")
    x, y, t, u = [builder.input(aval) for _ in range(4)]
    with interpreting(builder):
        out = mul(sin(x), y)
        pushed = add(mul(mul(cos(x), y), t), mul(sin(x), u))
    rule = TracedJvp(builder.finish((out, pushed))[0], (True, True), (True,))
    return Sample(CustomJvpParams("f", 0, jaxpr, rule), (aval, aval))


custom_jvp_call_p: Row[CustomJvpParams] = Row(
    "custom_jvp_call",
    CustomJvpParams,
    typing=lambda p, avals: typing_of_call(p.name, p.jaxpr, avals),
    evaluate=lambda engine, p, xs: engine.evaluate(p.jaxpr, xs),
    jvp=jvp_custom,
    transpose=transpose_of_call,
    batch=batch_custom,
    lower=lambda e, p, xs, outs: lower_body(e, p.jaxpr, p.name, xs),
    dce=dce_custom,
    spelled=lambda p: p.jaxpr,
    draw=draw_custom,
)
ROWS = (custom_jvp_call_p,)
