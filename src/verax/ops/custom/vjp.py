"""Floor 2: `custom_vjp_call`: a call with a reverse-mode rule of the user's own.

One idea: differentiated, the call becomes the user's forward program, and an equation
linear in the tangents that cannot be computed, but whose transpose is the user's
backward program::

    b c = jit[name=fwd jaxpr={ ... }] a
    d = custom_vjp_linear[name=f ...] c t
"""

from collections.abc import Sequence
from typing import ClassVar, Never, Protocol, runtime_checkable

from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import is_inexact
from verax.ir.effects import HOLD, Effect, RefEffect
from verax.ir.jaxpr import Aside, Jaxpr, Params
from verax.ir.records import ReprMixin
from verax.ops.calls.call import NamedCall, jit_p, positions, rule_call
from verax.ops.custom.base import (
    Remade,
    custom_row,
    derivative_in_captured,
    known_residuals,
    with_captured,
)
from verax.ops.custom.jvp import on_last_inputs
from verax.rules.programs.batched import (
    Wanted,
    batch_to,
    is_unbatched,
    or_summed,
    result_axes,
    with_outputs,
)
from verax.rules.rows.infer import (
    Mask,
    arrays_of,
    chosen,
    cotangents,
    dense,
    filled,
    for_unknowns,
    live,
    nonzeros,
)
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    Row,
    Tangent,
    Traits,
    Zero,
    as_typed,
)
from verax.rules.values.array import Array


@runtime_checkable
class VjpRule(Protocol):
    """A user's pair of rules as a value: equal rules give equal jaxprs."""

    def __hash__(self) -> int: ...
    @property
    def named_axes(self) -> frozenset[str]:
        """The axes that the rule may name."""
        ...

    def forward(self, nonzero: Mask) -> Jaxpr:
        """(captured, operands) to (results, residuals)."""
        ...

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """(residuals, given cotangents) to cotangents of operands, and of which.

        `given` has an entry for each result, `nonzero` and the returned mask have one
        for each operand that is not captured; no other than nonzero ones are marked.
        """
        ...


@frozen(cache_hash=True, repr=False)
class TracedVjp(Aside):
    """Rules that have been traced already, for all cotangents and `nonzero` operands.

    `out_nonzero` marks the operands whose cotangents come out.
    """

    first: Jaxpr
    second: Jaxpr
    active: Mask
    out_nonzero: Mask

    @property
    def named_axes(self) -> frozenset[str]:
        """See `VjpRule.named_axes`."""
        return self.first.named_axes | self.second.named_axes

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        return self.first

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`: missing cotangents are written as zeros."""
        jaxpr = on_last_inputs(self.second, chosen(self.active, given))
        mask = tuple(a and b for a, b in zip(nonzero, self.out_nonzero, strict=True))
        outs = chosen(chosen(self.out_nonzero, mask), jaxpr.outvars)
        return evolve(jaxpr, outvars=tuple(outs)), mask


@frozen(cache_hash=True, repr=False)
class BatchedVjp(Remade, ReprMixin):
    """Rules over `size` elements; cotangents of what is not batched are summed."""

    engine: Engine = field(repr=False)
    rule: VjpRule
    captured: int
    size: int
    axes: tuple[Axis, ...]
    out_axes: tuple[Axis, ...]

    def residual_axes(self, nonzero: Mask) -> tuple[Axis, ...]:
        """The axes along which the residuals are batched."""
        jaxpr = self.rule.forward(nonzero)
        _, out_axes = self.engine.batch(jaxpr, self.size, self.axes)
        return out_axes[len(self.out_axes) :]

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        jaxpr = self.rule.forward(nonzero)
        expected = (*self.out_axes, *self.residual_axes(nonzero))
        return batch_to(self.engine, jaxpr, self.size, self.axes, expected)

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        jaxpr, mask = self.rule.backward(nonzero, given)
        axes = (*self.residual_axes(nonzero), *chosen(given, self.out_axes))
        own = chosen(mask, self.axes[self.captured :])
        apart = is_unbatched(self.axes) and is_unbatched(self.out_axes)
        expected: Sequence[Wanted] = own if apart else or_summed(own)
        return batch_to(self.engine, jaxpr, self.size, axes, expected), mask


@frozen(cache_hash=True, repr=False)
class PrunedVjp(Remade, ReprMixin):
    """Rules of a function of which only the results that `used` marks are used."""

    engine: Engine = field(repr=False)
    rule: VjpRule
    used: Mask

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        jaxpr = self.rule.forward(nonzero)
        saved = len(jaxpr.outvars) - len(self.used)
        return with_outputs(self.engine, jaxpr, (*self.used, *[True] * saved))

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        flags = iter(given)
        return self.rule.backward(
            nonzero, tuple([used and next(flags) for used in self.used])
        )


@frozen(cache_hash=True, repr=False)
class BatchedLinear(Remade, ReprMixin):
    """The backward rule of a derivative that is batched after it was taken.

    Results are batched in front, residuals and tangents as they are given.
    """

    engine: Engine = field(repr=False)
    rule: VjpRule
    size: int
    residual_axes: tuple[Axis, ...]
    tangent_axes: tuple[Axis, ...]

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`: it has run already."""
        return self.rule.forward(nonzero)

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        jaxpr, mask = self.rule.backward(nonzero, given)
        axes = (*self.residual_axes, *[0] * sum(given))
        marks = chosen(nonzero, mask)
        expected = or_summed(chosen(marks, self.tangent_axes))
        return batch_to(self.engine, jaxpr, self.size, axes, expected), mask


@frozen(eq=False, repr=False)
class CustomVjpParams(NamedCall):
    """The function, how many of its first inputs it captured, and the rules."""

    name: str
    captured: int
    jaxpr: Jaxpr
    rule: TracedVjp | VjpRule

    @property
    def effects(self) -> frozenset[Effect]:
        """Those of the function; its rules may touch the references that it takes."""
        refs = [i for i, v in enumerate(self.jaxpr.invars) if is_reference(v)]
        return self.jaxpr.effects.union([RefEffect(HOLD, index=i) for i in refs])

    @property
    def rule_axes(self) -> frozenset[str]:
        return self.rule.named_axes | super().rule_axes


@frozen(eq=False, repr=False)
class CustomLinearParams(Params):
    """Whose derivative this is: operands are the residuals, then tangents.

    `nonzero` marks the operands of the function whose tangents these are, `active` the
    results of it whose tangents come out, in the types `out_avals`. A residual may be a
    reference, for the backward program.
    """

    touches: ClassVar[bool] = True
    answers_zeros: ClassVar[bool] = True

    name: str
    residuals: int
    nonzero: Mask
    active: Mask
    out_avals: tuple[ShapedArray, ...]
    rule: TracedVjp | VjpRule

    @property
    def rule_axes(self) -> frozenset[str]:
        return self.rule.named_axes


def settled(
    rule: VjpRule, base: VjpRule, active: Mask, nonzero: Mask | None = None
) -> VjpRule:
    """`rule`, made from `base`, as plain jaxprs if `base` is: it can be printed.

    It will be asked for cotangents of `nonzero` operands, of any if that is None.
    """
    if not isinstance(base, TracedVjp):
        return rule
    nonzero = nonzero or (True,) * len(base.out_nonzero)
    second, mask = rule.backward(nonzero, active)
    return TracedVjp(rule.forward(nonzero), second, active, mask)


def jvp_custom(
    engine: Engine,
    p: CustomVjpParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The user's forward program, and a linear equation for the backward one."""
    captured, own = p.captured, tangents[p.captured :]
    nonzero, avals = nonzeros(own), p.jaxpr.out_avals
    if not any(nonzero):
        return derivative_in_captured(engine, p, p.jaxpr, captured, primals, tangents)
    forward, held = without_references(p.rule.forward(nonzero))
    result = iter(jit_p.bind(rule_call(f"fwd_{p.name}", forward), *primals))
    given = [next(result) if i is None else primals[i] for i in held]
    outs, residuals = given[: len(avals)], given[len(avals) :]
    active = tuple(is_inexact(aval.dtype) for aval in avals)
    due = tuple([a.tangent() for a in chosen(active, avals)])
    params = CustomLinearParams(p.name, len(residuals), nonzero, active, due, p.rule)
    made = custom_vjp_linear_p.bind(params, *residuals, *live(own)) if due else ()
    pushed = filled(active, made, avals)
    return outs, with_captured(engine, p, captured, primals, tangents, pushed)


def without_references(jaxpr: Jaxpr) -> tuple[Jaxpr, list[int | None]]:
    """The program without results that are references, and which inputs those are.

    A forward program passes references on to the backward one.
    """
    places = positions(jaxpr)
    held = [places[x] if is_reference(x) else None for x in jaxpr.outvars]
    if held.count(None) == len(held):
        return jaxpr, held
    outs = [x for x, i in zip(jaxpr.outvars, held, strict=True) if i is None]
    return Jaxpr((), jaxpr.invars, jaxpr.eqns, tuple(outs)), held


def batch_custom(
    engine: Engine,
    p: CustomVjpParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Function and rules batched alike, so that later derivatives are the user's."""
    out_axes = result_axes(axes, engine.batch(p.jaxpr, size, tuple(axes))[1])
    jaxpr = batch_to(engine, p.jaxpr, size, axes, out_axes)
    active = tuple(is_inexact(aval.dtype) for aval in jaxpr.out_avals)
    rule = settled(
        BatchedVjp(engine, p.rule, p.captured, size, tuple(axes), out_axes),
        p.rule,
        active,
    )
    return custom_vjp_call_p.bind(evolve(p, jaxpr=jaxpr, rule=rule), *args), out_axes


def dce_custom(
    engine: Engine, p: CustomVjpParams, used: Mask
) -> tuple[CustomVjpParams, Mask, Mask]:
    """The results that are used; every operand stays, for the rules may read it."""
    jaxpr = with_outputs(engine, p.jaxpr, used)
    active = tuple(is_inexact(aval.dtype) for aval in jaxpr.out_avals)
    rule = settled(PrunedVjp(engine, p.rule, used), p.rule, active)
    return evolve(p, jaxpr=jaxpr, rule=rule), (True,) * len(jaxpr.invars), used


custom_vjp_call_p = custom_row(
    "custom_vjp_call",
    CustomVjpParams,
    jvp=jvp_custom,
    batch=batch_custom,
    dce=dce_custom,
)


def forward_mode(name: str) -> Never:
    """Raise the error for what a reverse-mode rule does not say."""
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function. "
        f"{name} has a rule for reverse mode only: use reverse mode (grad, vjp, "
        "jacrev), or give it a forward rule with custom_jvp"
    )


def jvp_linear(
    engine: Engine,
    p: CustomLinearParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """In its tangents the equation is its own derivative; more no rule says."""
    count = p.residuals
    if any(nonzeros(tangents[:count])):
        forward_mode(p.name)
    own = [dense(engine, t) for t in tangents[count:]]
    outs = custom_vjp_linear_p.bind(p, *primals)
    return outs, custom_vjp_linear_p.bind(p, *primals[:count], *own)


def batch_linear(
    engine: Engine,
    p: CustomLinearParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The equation whose transpose is the batched backward program."""
    count = p.residuals
    rule = BatchedLinear(engine, p.rule, size, tuple(axes[:count]), tuple(axes[count:]))
    batched = settled(rule, p.rule, p.active, p.nonzero)
    avals = tuple([a.stacked(size) for a in p.out_avals])
    outs = custom_vjp_linear_p.bind(evolve(p, rule=batched, out_avals=avals), *args)
    return outs, (0,) * len(outs)


def transpose_linear(
    engine: Engine, p: CustomLinearParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The user's backward program."""
    nonzero = nonzeros(cts)
    flags = iter(nonzero)
    given = tuple([due and next(flags) for due in p.active])
    jaxpr, mask = p.rule.backward(p.nonzero, given)
    residuals = known_residuals(p.name, args[: p.residuals])
    pushed = arrays_of(engine, nonzero, cts, cotangents(p.out_avals))
    params = rule_call(f"bwd_{p.name}", jaxpr)
    runs = jaxpr.outvars or jaxpr.effects
    result = iter(jit_p.bind(params, *residuals, *pushed) if runs else ())
    own = args[p.residuals :]
    pulled = [
        next(result) if mark else Zero(x.aval)
        for x, mark in zip(own, chosen(p.nonzero, mask), strict=True)
    ]
    return [*[None] * p.residuals, *for_unknowns(own, pulled)]


custom_vjp_linear_p: Row[CustomLinearParams] = Row(
    "custom_vjp_linear",
    CustomLinearParams,
    typing=lambda p, avals: p.out_avals,
    evaluate=lambda engine, p, xs: forward_mode(p.name),
    jvp=jvp_linear,
    transpose=transpose_linear,
    batch=batch_linear,
    lower=lambda e, p, xs, outs: forward_mode(p.name),
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(makes_nans=False),
)
ROWS = (custom_vjp_call_p, custom_vjp_linear_p)
