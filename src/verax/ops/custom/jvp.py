"""Floor 2: `custom_jvp_call`: a call with a forward-mode rule of the user's own.

One idea: the equation holds the function and, as a value, the rule; whoever
differentiates asks the rule for a jaxpr, everyone else means the function::

    b:f32[] = custom_jvp_call[name=f captured=0 jaxpr={ ... } rule=...] a
"""

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Protocol, runtime_checkable

from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, float64
from verax.ir.jaxpr import Aside, Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.call import NamedCall, jit_p, rule_call
from verax.ops.core import CORE
from verax.ops.custom.base import (
    Remade,
    custom_row,
    derivative_in_captured,
    with_captured,
)
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.trig import cos, sin
from verax.rules.families.elementwise import SHAPES
from verax.rules.programs.batched import batch_to, on_inputs, result_axes, with_outputs
from verax.rules.rows.builder import program
from verax.rules.rows.infer import Mask, chosen, filled, live, nonzeros
from verax.rules.rows.row import Axis, Engine, Sample, Tangent
from verax.rules.values.array import Array


@runtime_checkable
class JvpRule(Protocol):
    """A user's rule as a value: equal rules give equal jaxprs."""

    def __hash__(self) -> int: ...
    @property
    def named_axes(self) -> frozenset[str]:
        """The axes that the rule may name."""
        ...

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """(captured, operands, nonzero tangents) to (results, nonzero tangents).

        `nonzero` has an entry for each operand that is not captured; the returned mask
        has one for each result.
        """
        ...


def on_last_inputs(jaxpr: Jaxpr, given: Sequence[bool]) -> Jaxpr:
    """`jaxpr`, whose last inputs are zero except those that are `given`."""
    first = len(jaxpr.invars) - len(given)
    has = (*[True] * first, *given)
    place = count()
    places = [next(place) if flag else None for flag in has]
    return on_inputs(jaxpr, chosen(has, jaxpr.in_avals), places, CORE)


@frozen(cache_hash=True, repr=False)
class TracedJvp(Aside):
    """A rule that has been traced already, for tangents of the operands `nonzero`."""

    jaxpr: Jaxpr
    nonzero: Mask
    out_nonzero: Mask

    @property
    def named_axes(self) -> frozenset[str]:
        """See `JvpRule.named_axes`."""
        return self.jaxpr.named_axes

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`: tangents that are zero are written as zeros."""
        if nonzero == self.nonzero:
            return self.jaxpr, self.out_nonzero
        given = chosen(self.nonzero, nonzero)
        return on_last_inputs(self.jaxpr, given), self.out_nonzero


@frozen(cache_hash=True, repr=False)
class BatchedJvp(Remade, ReprMixin):
    """A rule over `size` elements; tangents are batched as what they belong to."""

    engine: Engine = field(repr=False)
    rule: JvpRule
    captured: int
    size: int
    axes: tuple[Axis, ...]
    out_axes: tuple[Axis, ...]

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        jaxpr, mask = self.rule.pushed(nonzero)
        own = self.axes[self.captured :]
        axes = [*self.axes, *chosen(nonzero, own)]
        expected = (*self.out_axes, *chosen(mask, self.out_axes))
        return batch_to(self.engine, jaxpr, self.size, axes, expected), mask


@frozen(cache_hash=True, repr=False)
class PrunedJvp(Remade, ReprMixin):
    """A rule of which only the results that `used` marks are requested."""

    engine: Engine = field(repr=False)
    rule: JvpRule
    used: Mask

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        jaxpr, mask = self.rule.pushed(nonzero)
        outs = (*self.used, *chosen(mask, self.used))
        return with_outputs(self.engine, jaxpr, outs), tuple(chosen(self.used, mask))


@frozen(eq=False, repr=False)
class CustomJvpParams(NamedCall):
    """The function, how many of its first inputs it captured, and the rule."""

    name: str
    captured: int
    jaxpr: Jaxpr
    rule: TracedJvp | JvpRule

    @property
    def rule_axes(self) -> frozenset[str]:
        return self.rule.named_axes | super().rule_axes


def settled(rule: JvpRule, base: JvpRule) -> JvpRule:
    """`rule`, made from `base`, as plain jaxprs if `base` is: it can be printed."""
    if not isinstance(base, TracedJvp):
        return rule
    jaxpr, mask = rule.pushed(base.nonzero)
    return TracedJvp(jaxpr, base.nonzero, mask)


def jvp_custom(
    engine: Engine,
    p: CustomJvpParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The user's rule, and the derivative of the function in what it captured."""
    captured, own = p.captured, tangents[p.captured :]
    if not any(nonzeros(own)):
        return derivative_in_captured(engine, p, p.jaxpr, captured, primals, tangents)
    jaxpr, mask = p.rule.pushed(nonzeros(own))
    result = jit_p.bind(rule_call(f"jvp_{p.name}", jaxpr), *primals, *live(own))
    outs = result[: len(mask)]
    pushed = filled(mask, result[len(mask) :], p.jaxpr.out_avals)
    return outs, with_captured(engine, p, captured, primals, tangents, pushed)


def batch_custom(
    engine: Engine,
    p: CustomJvpParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Function and rule batched alike, so that later derivatives are the user's."""
    out_axes = result_axes(axes, engine.batch(p.jaxpr, size, tuple(axes))[1])
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


def draw_custom(random: Random) -> Sample[CustomJvpParams]:
    """A call of sin(x) y, with its derivative as a rule."""
    dtype = random.choice((float32, float64))
    aval = ShapedArray(random.choice(SHAPES), dtype)

    def pushed(x: Array, y: Array, t: Array, u: Array) -> Sequence[Array]:
        return mul(sin(x), y), add(mul(mul(cos(x), y), t), mul(sin(x), u))

    jaxpr = program((aval, aval), lambda x, y: (mul(sin(x), y),))
    rule = TracedJvp(program((aval,) * 4, pushed), (True, True), (True,))
    return Sample(CustomJvpParams("f", 0, jaxpr, rule), (aval, aval))


custom_jvp_call_p = custom_row(
    "custom_jvp_call",
    CustomJvpParams,
    jvp=jvp_custom,
    batch=batch_custom,
    dce=dce_custom,
    draw=draw_custom,
)
ROWS = (custom_jvp_call_p,)
