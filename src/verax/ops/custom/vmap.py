"""Floor 2: `custom_vmap_call`: a call with a batching rule of the user's own.

One idea: the equation holds the function and, as a value, the rule; whoever batches
asks the rule for a jaxpr of stacks, everyone else means the function::

    b:f32[] = custom_vmap_call[name=f captured=0 jaxpr={ ... } rule=...] a
"""

from collections.abc import Sequence
from typing import Protocol

from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.call import (
    NamedCall,
    inlined,
    jit_p,
    rule_call,
    split_call,
    with_inputs,
)
from verax.ops.calls.callbacks import silenced
from verax.ops.custom.base import called, custom_row
from verax.rules.programs.batched import with_batch_axis, with_outputs
from verax.rules.programs.derived import push
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import Mask, chosen, knowns, nonzeros, unknowns
from verax.rules.rows.row import Axis, Engine, Known, Split, Tangent
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting


class VmapRule(Protocol):
    """A user's batching rule as a value: equal rules give equal jaxprs."""

    def __hash__(self) -> int: ...
    def batched(self, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
        """Operands, stacked in front where marked, to results, stacked where marked."""
        ...


@frozen(eq=False, repr=False)
class CustomVmapParams(NamedCall):
    """The function, how many of its first inputs it captured, and the rule."""

    name: str
    captured: int
    jaxpr: Jaxpr
    rule: VmapRule


@frozen(cache_hash=True, repr=False)
class PushedVmap(ReprMixin):
    """The rule of the derivative: the derivative of what the rule gives.

    Operands are those of the function in types `avals`, then tangents of the `nonzero`
    ones; results those of the function, then tangents of the `out_nonzero` ones.
    """

    engine: Engine = field(repr=False)
    rule: VmapRule
    avals: tuple[ShapedArray, ...]
    nonzero: Mask
    out_nonzero: Mask

    def batched(self, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
        """See `VmapRule.batched`: an operand is stacked if its tangent is."""
        count = len(self.avals)
        beside = iter(in_batched[count:])
        stacked = tuple(
            [
                (next(beside) if active else False) or flag
                for flag, active in zip(in_batched, self.nonzero, strict=False)
            ]
        )
        jaxpr, mask = self.rule.batched(size, stacked)
        pushed, result = self.engine.jvp(jaxpr, self.nonzero)
        moving = chosen(self.nonzero, stacked)
        builder = Builder("vmap")
        with interpreting(builder):
            operands = self.stack(builder, size, in_batched, (*stacked, *moving))
            outs = builder.call(pushed, operands)
            rest = iter(outs[len(mask) :])
            # Only what is asked for: integers have tangents that no program holds.
            tangents = [next(rest) if has else None for has in result]
            due = [
                self.engine.core.zeros(out.aval.tangent()) if t is None else t
                for out, t, on in zip(outs, tangents, self.out_nonzero, strict=False)
                if on
            ]
        flags = chosen(self.out_nonzero, mask)
        return builder.finish([*outs[: len(mask)], *due])[0], (*mask, *flags)

    def stack(
        self, builder: Builder, size: int, given: Mask, expected: Mask
    ) -> list[Array]:
        """Inputs stacked as `given` says, as operands stacked as `expected` says."""
        moving = [a.tangent() for a in chosen(self.nonzero, self.avals)]
        inputs = [
            builder.input(a.stacked(size) if has else a)
            for a, has in zip((*self.avals, *moving), given, strict=True)
        ]
        core = self.engine.core
        return [
            with_batch_axis(core, x, 0 if has else None, 0 if due else None, size)
            for x, has, due in zip(inputs, given, expected, strict=True)
        ]


@frozen(cache_hash=True, repr=False)
class PrunedVmap(ReprMixin):
    """The rule of a function of which only the results that `used` marks are used."""

    engine: Engine = field(repr=False)
    rule: VmapRule
    used: Mask

    def batched(self, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
        """See `VmapRule.batched`."""
        jaxpr, mask = self.rule.batched(size, in_batched)
        kept = with_outputs(self.engine, jaxpr, self.used)
        return kept, tuple(chosen(self.used, mask))


def jvp_custom(
    engine: Engine,
    p: CustomVmapParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The derivative of the function, whose batching rule is derived from the rule."""
    nonzero = nonzeros(tangents)
    avals = tuple([x.aval for x in primals[p.captured :]])

    def bind(jaxpr: Jaxpr, *args: Array) -> Sequence[Array]:
        if any(nonzero[: p.captured]):
            return called(p)(jaxpr, *args)
        _, out_nonzero = engine.jvp(p.jaxpr, nonzero)
        own = nonzero[p.captured :]
        rule = PushedVmap(engine, p.rule, avals, own, out_nonzero)
        params = CustomVmapParams(p.name, p.captured, jaxpr, rule)
        return custom_vmap_call_p.bind(params, *args)

    return push(engine, p.jaxpr, bind, primals, tangents)


def batch_custom(
    engine: Engine,
    p: CustomVmapParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The user's rule."""
    if any(axis is not None for axis in axes[: p.captured]):
        raise TypeError(
            f"the custom_vmap function {p.name} closes over a value that vmap maps "
            "over; pass it as an argument, so that its vmap rule sees it"
        )
    own, places = args[p.captured :], axes[p.captured :]
    mask = tuple(axis is not None for axis in places)
    jaxpr, out_batched = p.rule.batched(size, mask)
    stacks = [
        x if axis is None else with_batch_axis(engine.core, x, axis, 0, size)
        for x, axis in zip(own, places, strict=True)
    ]
    # A call of one operation is that operation: nothing is shared by a name for it.
    outs = (
        inlined(jaxpr, stacks)
        if len(jaxpr.eqns) == 1
        else jit_p.bind(rule_call(f"vmap_{p.name}", jaxpr), *stacks)
    )
    return outs, tuple(0 if flag else None for flag in out_batched)


def split_custom(engine: Engine, p: CustomVmapParams, args: Sequence[Known]) -> Split:
    """Two calls; the results of the function keep the rule if only tangents wait."""
    waiting = unknowns(args)
    if not isinstance(p.rule, PushedVmap):
        return split_call(engine, rule_call(p.name, p.jaxpr), args)
    count = p.captured + len(p.rule.avals)
    if any(waiting[:count]) or not all(waiting[count:]):
        return split_call(engine, rule_call(p.name, p.jaxpr), args)
    results = len(p.rule.out_nonzero)
    # Effects happen where the results are computed, below.
    parts = split_call(engine, rule_call(p.name, silenced(p.jaxpr)), args)
    # The last inputs are tangents, of which the results do not depend.
    total = len(p.jaxpr.outvars)
    values = with_outputs(engine, p.jaxpr, [i < results for i in range(total)])
    first, _, _ = engine.split(values, waiting)
    saved = len(first.outvars) - results
    first = with_outputs(engine, first, [True] * results + [False] * saved)
    params = CustomVmapParams(p.name, p.captured, first, p.rule.rule)
    known = custom_vmap_call_p.bind(params, *knowns(args))
    return evolve(parts, known=(*known, *parts.known[results:]))


def dce_custom(
    engine: Engine, p: CustomVmapParams, used: Mask
) -> tuple[CustomVmapParams, Mask, Mask]:
    """The results that are used; of a derivative, its tangents all or none.

    Without them it is the function again, which reads no tangents: a loop that counts
    with a result may not wait for them.
    """
    count = len(p.jaxpr.invars)
    if not isinstance(p.rule, PushedVmap):
        jaxpr, rule = with_outputs(engine, p.jaxpr, used), p.rule
        pruned = evolve(p, jaxpr=jaxpr, rule=PrunedVmap(engine, rule, used))
        return pruned, (True,) * count, used
    results, own = len(p.rule.out_nonzero), p.captured + len(p.rule.avals)
    if any(used[results:]):
        return p, (True,) * count, (True,) * len(used)
    primal = tuple([i < own for i in range(count)])
    outs = tuple([i < results for i in range(len(used))])
    slim, has = engine.dce(p.jaxpr, outs)
    jaxpr = with_inputs(slim, has, primal, p.jaxpr.in_avals)
    plain = CustomVmapParams(p.name, p.captured, jaxpr, p.rule.rule)
    params, kept, out = dce_custom(engine, plain, used[:results])
    return params, (*kept, *primal[own:]), (*out, *outs[results:])


custom_vmap_call_p = custom_row(
    "custom_vmap_call",
    CustomVmapParams,
    jvp=jvp_custom,
    batch=batch_custom,
    split=split_custom,
    dce=dce_custom,
)
ROWS = (custom_vmap_call_p,)
