"""Floor 5: functions with the user's own reverse-mode rule.

One idea: under a trace a call becomes one equation that holds the function's jaxpr and
the pair of rules as a value; they are traced when it is differentiated::

    f = custom_vjp(lambda x: sin(x))
    f.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * cos(x),))
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from verax.api.custom.arguments import (
    Purpose,
    SortedArguments,
    describe_type,
    leaf_type,
    matching_leaves,
)
from verax.api.custom.base import (
    CustomRules,
    Mask,
    UserRules,
    When,
    at_the_call,
    called,
    can_wait,
    movable,
    on_its_own,
    pair_of,
    waiting_rule,
)
from verax.api.custom.snapshots import Snapshot
from verax.api.custom.tracing import (
    CustomVJPPrimal,
    SymbolicZero,
    after_captured,
    fits,
    identity,
    instantiate,
    union,
    with_captured,
)
from verax.api.tracing.apply import ENGINE, current_builder
from verax.api.tracing.argument_names import function_name
from verax.api.tracing.concrete_values import values_of
from verax.api.tracing.trace import Opened, Traced, trace
from verax.api.trees.kept_leaves import KeptLeaves, split_leaves
from verax.api.trees.pytrees import prefix_leaves
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.backend.results import result_tree
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.custom.base import Remade
from verax.ops.custom.vjp import (
    CustomVjpParams,
    TracedVjp,
    VjpRule,
    custom_vjp_call_p,
)
from verax.rules.rows.masks import as_cotangent
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError
from verax.rules.values.state import entered
from verax.rules.values.typed import NotAnArray, described


@frozen(cache_hash=True, repr=False)
class UserVjp(UserRules):
    """A pair of rules, for the calls with arguments of some types."""

    fwd: Snapshot = field(repr=False)
    bwd: Snapshot = field(repr=False)

    @property
    def functions(self) -> tuple[Snapshot, ...]:
        """See `CallRules.functions`."""
        return self.fwd, self.bwd

    @property
    def purpose(self) -> str:
        """The name of the forward rule in messages."""
        return Purpose(f"the fwd rule of {self.name}")

    @property
    def backward_purpose(self) -> str:
        """The name of the backward rule in messages."""
        return Purpose(f"the bwd rule of {self.name}")

    @property
    def forward_title(self) -> str:
        """The forward rule in messages about what it returned."""
        rule = function_name(self.fwd.value)
        return f"Custom VJP fwd rule {rule} for function {self.name}"

    @property
    def backward_title(self) -> str:
        """The backward rule in messages about what it returned."""
        rule = function_name(self.bwd.value)
        return f"Custom VJP bwd rule {rule} for function {self.name}"

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        return self.kept(traced_forward, nonzero)[0]

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        return self.kept(traced_backward, nonzero, given)

    def trace_forward(
        self, nonzero: Mask, values: Sequence[object] | None = None
    ) -> tuple[Traced, KeptLeaves]:
        """The forward rule under the current trace, and the rest of its residuals."""
        found: list[KeptLeaves] = []

        def flat(*leaves: Any) -> list[Any]:
            outs, residuals, rest = self.call_forward(nonzero, leaves)
            found.append(rest)
            return [*outs, *residuals]

        flat.__name__ = self.purpose
        _, tree = pytrees.flatten(((0,) * len(self.avals), {}))
        with entered(self.context):
            traced = trace(
                flat, tree, self.avals, self.purpose, values=values, passes=True
            )
        return traced, found[0]

    def call_forward(
        self, nonzero: Mask, leaves: Sequence[Any]
    ) -> tuple[list[Any], list[Any], KeptLeaves]:
        """Call the forward rule: outputs, arrays among the residuals, and the rest."""
        given: list[Any] = list(leaves)
        if self.symbolic:
            pairs = zip(leaves, nonzero, strict=True)
            given = [CustomVJPPrimal(x, flag) for x, flag in pairs]
        args = self.positions.merge(self.held, self.tree.unflatten(given))
        pair = pair_of(
            self.forward_title,
            "output, residuals",
            called(self.fwd.value, self.purpose, f"what {self.name} takes", args),
        )
        residuals, rest = split_leaves(pair[1], is_residual)
        what = "a pair (output, residuals), the output"
        outs = self.outputs(self.purpose, self.forward_title, pair[0], what)
        return outs, residuals, rest

    def trace_backward(
        self,
        nonzero: Mask,
        given: Mask,
        residuals: KeptLeaves,
        avals: Sequence[ShapedArray],
        values: Sequence[object] | None = None,
    ) -> tuple[Traced, Mask]:
        """The backward rule on residuals of types `avals`."""
        masks: list[Mask] = []

        def flat(saved: list[Any], live: list[Any]) -> list[Any]:
            found, mask = self.call_backward(
                nonzero, given, residuals.rebuilt(saved), live
            )
            masks.append(mask)
            return found

        flat.__name__ = self.backward_purpose
        cts = [
            a.cotangent() for a, flag in zip(self.out_avals, given, strict=True) if flag
        ]
        _, tree = pytrees.flatten((([0] * len(avals), [0] * len(cts)), {}))
        with entered(self.context):
            purpose = self.backward_purpose
            traced = trace(flat, tree, [*avals, *cts], purpose, values=values)
        return traced, masks[0]

    def call_backward(
        self, nonzero: Mask, given: Mask, residuals: Any, live: Sequence[Any]
    ) -> tuple[list[Any], Mask]:
        """Call the backward rule: cotangents, and of which arguments they are."""
        found = iter(live)
        cts = [
            next(found) if flag else instantiate(aval.cotangent(), self.symbolic)
            for aval, flag in zip(self.out_avals, given, strict=True)
        ]
        ct = self.out_tree.unflatten(cts)
        held = "the nondifferentiable arguments, " if self.held else ""
        takes = f"{held}the residuals and the cotangent of the output"
        args = (*self.held_values, residuals, ct)
        pulled = called(self.bwd.value, self.backward_purpose, takes, args)
        leaves = self.cotangents(pulled)
        checked = [
            self.cotangent(i, leaf) if flag else None
            for i, (leaf, flag) in enumerate(zip(leaves, self.active, strict=True))
        ]
        typed = [
            ct if flag else None for ct, flag in zip(checked, nonzero, strict=True)
        ]
        live = [ct for ct in typed if ct is not None]
        return live, tuple([ct is not None for ct in typed])

    def cotangents(self, pulled: Any) -> list[Any]:
        """One leaf per leaf of the arguments; None is zero for whatever it replaces."""
        parts = self.tree.children()
        if not isinstance(pulled, tuple | list) or len(pulled) != len(parts):
            count = len(pulled) if isinstance(pulled, tuple | list) else None
            given = "" if count is None else f" of {count}"
            raise TypeError(
                f"{self.backward_title} must produce a tuple of {len(parts)} "
                f"cotangents, one for each differentiable argument, not a "
                f"{type(pulled).__name__}{given}"
            )
        leaves: list[Any] = []
        for i, (part, tree) in enumerate(zip(pulled, parts, strict=True)):
            leaves += self.argument_cotangents(i, part, tree)
        return leaves

    def argument_cotangents(self, i: int, part: Any, tree: PyTreeDef) -> list[Any]:
        """The leaves of the cotangent for argument `i`."""
        whole = tree.unflatten(range(tree.num_leaves))
        what, like = f"the cotangent of argument {i}", f"argument {i} of {self.name}"
        try:  # None, and one cotangent, may stand for any subtree
            return prefix_leaves(what, part, whole, lambda x: x is None)
        except ValueError:
            return matching_leaves(self.backward_title, what, tree, like, part)

    def cotangent(self, i: int, ct: Any) -> Array | None:
        """A cotangent in the type that is due; None if it is zero.

        Raises:
            TypeError: shape or dtype differ.
        """
        if ct is None:
            return None
        due = self.avals[i].cotangent()
        if isinstance(ct, SymbolicZero):
            if ct.shape == due.shape and fits(ct.aval, due):
                return None
            raise ShapeError(
                f"{self.backward_purpose} returned a SymbolicZero of type "
                f"{describe_type(ct.aval)} as the cotangent of {self.argument(i)}, "
                f"which is {describe_type(due)}. Consider just returning a None here"
            )
        try:
            given = leaf_type(ct)
        except NotAnArray:
            raise TypeError(
                f"{self.backward_purpose} returned {described(ct)} as the cotangent of "
                f"{self.argument(i)}, which is {describe_type(due)}"
            ) from None
        if given.shape != due.shape or not fits(given, due):
            if given.dtype == float0 and given.shape == due.shape:
                return None
            raise ShapeError(
                f"{self.backward_purpose} returned {describe_type(given)} as the "
                f"cotangent of {self.argument(i)}, which is {describe_type(due)}"
            )
        check_varies_alike(given, due, self.name, self.argument(i))
        return as_cotangent(ENGINE, ct, due)

    def argument(self, i: int) -> str:
        """How messages call leaf `i` of the differentiable arguments."""
        numbered = self.tree.unflatten(range(self.tree.num_leaves))
        (first, *rest), _ = pytrees.flatten_with_path(numbered)[0][i]
        held, number = self.positions.held, int(first.idx)
        others = [k for k in range(number + len(held) + 1) if k not in held]
        return f"argument {others[number]}{''.join(map(str, rest))} of {self.name}"


def check_varies_alike(
    given: ShapedArray, due: ShapedArray, name: str, argument: str
) -> None:
    """Raise ValueError unless a cotangent varies along the same axes as its primal."""
    if given.vma == due.vma:
        return
    extra, missing = sorted(given.vma - due.vma), sorted(due.vma - given.vma)
    advice = (
        f"sum it over {', '.join(extra)}, where all devices have the same value of the "
        "argument (verax.lax.psum)"
        if extra
        else f"if it is right, say so: verax.lax.pcast(..., {tuple(missing)}, "
        "to='varying')"
    )
    raise ValueError(
        f"Custom VJP bwd rule attached to {name} must produce an output with the same "
        "type as the args tuple of the primal function, but its cotangent of "
        f"{argument} is {given} and not {due}: {advice}"
    )


def is_residual(x: object) -> bool:
    """Whether the program computes `x`; on the others the backward rule may branch."""
    return not isinstance(x, bool | int | float | complex | np.generic)


def traced_forward(rule: UserVjp, nonzero: Mask) -> tuple[Jaxpr, KeptLeaves]:
    """The forward rule traced on its own: nothing around it may be captured."""
    traced, rest = rule.trace_forward(nonzero)
    return on_its_own(traced), rest


def traced_backward(rule: UserVjp, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
    """The backward rule traced on its own: nothing around it may be captured."""
    forward, rest = rule.kept(traced_forward, nonzero)
    avals = forward.out_avals[len(rule.out_avals) :]
    traced, mask = rule.trace_backward(nonzero, given, rest, avals)
    return on_its_own(traced), mask


@frozen(cache_hash=True, repr=False)
class Shifted(Remade, ReprMixin):
    """Rules that capture nothing, of a function that does."""

    rule: VjpRule
    captured: tuple[ShapedArray, ...] = field(repr=False)

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        return after_captured(self.rule.forward(nonzero), self.captured)

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        return self.rule.backward(nonzero, given)


class custom_vjp(CustomRules):
    """A function whose derivative in reverse mode is given by a pair of rules.

    `fwd` takes the arguments and returns (output, residuals); `bwd` takes residuals
    and the cotangent of the output and returns a tuple of cotangents, one for each
    differentiable argument, None for zero. Arguments in `nondiff_argnums` or
    `nondiff_argnames` may be anything; they keep their positions in calls of `fwd` and
    come first in those of `bwd`.

    >>> import verax
    >>> f = verax.custom_vjp(lambda x: x * x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
    >>> float(verax.grad(f)(3.0))
    10.0
    """

    __module__ = "verax"

    kind = "vjp"
    optimize_remat = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Give the rules.

        With `symbolic_zeros`, `fwd` gets `CustomVJPPrimal`s and `bwd` may get and
        return `SymbolicZero`s. `optimize_remat` changes nothing: the forward rule is a
        jaxpr like any other, so what a rematerialised program does not need is always
        removed from it.
        """
        self.rules = (fwd, bwd)
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    @property
    def fwd(self) -> Callable[..., Any] | None:
        """The forward rule, if there is one yet."""
        return self.rules[0] if self.rules else None

    @property
    def bwd(self) -> Callable[..., Any] | None:
        """The backward rule, if there is one yet."""
        return self.rules[1] if self.rules else None

    def bind(self, given: SortedArguments) -> Any:
        """Write the call as an equation of the current trace."""
        user, body, when = self.user_rules(UserVjp, given)
        rule, captured, jaxpr = vjp_rule(user, body, given.leaves, when)
        params = CustomVjpParams(user.name, len(captured), jaxpr, rule)
        outs = custom_vjp_call_p.bind(params, *captured, *given.leaves)
        return result_tree(body.out_tree, outs)


def vjp_rule(
    user: UserVjp, body: Opened, leaves: Sequence[Any], when: When
) -> tuple[VjpRule, tuple[Any, ...], Jaxpr]:
    """The rules of an equation, what they and the function capture, and the function.

    Rules that capture tracers, may read what changes, or branch on values at hand, are
    traced now.
    """
    nonzero = movable(user, leaves, when)
    purposes = (user.purpose, user.backward_purpose)
    if can_wait(purposes, when, nonzero, lambda m: user.backward(m, user.out_active)):
        return waiting_rule(user, body, Shifted)
    builder = current_builder()
    concrete = builder is not None and builder.oracle is not None
    return at_the_call(
        when,
        lambda: traced_rule(user, body, nonzero, leaves if concrete else None),
        lambda: waiting_rule(user, body, Shifted),
    )


def traced_rule(
    user: UserVjp, body: Opened, nonzero: Mask, values: Sequence[Any] | None
) -> tuple[TracedVjp, tuple[Any, ...], Jaxpr]:
    """Both rules traced now; what the backward one captures becomes a residual."""
    traced, rest = user.trace_forward(nonzero, values)
    first = traced.opened
    avals = first.jaxpr.out_avals[len(user.out_avals) :]
    known = [*first.captured, *values] if values is not None else None
    pulled, mask = backward_on(user, nonzero, rest, avals, first.jaxpr, known)
    second = pulled.opened
    captured = union(body.captured, first.captured, second.captured)
    jaxpr = with_captured(body.jaxpr, body.captured, captured)
    forward = with_captured(first.jaxpr, first.captured, captured)
    pairs = zip(captured, forward.invars, strict=False)
    places = {identity(x): v for x, v in pairs}
    outs, saved = (
        forward.outvars[: len(user.out_avals)],
        forward.outvars[len(user.out_avals) :],
    )
    extra = [places[identity(x)] for x in second.captured]
    forward = Jaxpr((), forward.invars, forward.eqns, (*outs, *extra, *saved))
    rule = TracedVjp(forward, second.jaxpr, user.out_active, mask)
    return rule, captured, jaxpr


def backward_on(
    user: UserVjp,
    nonzero: Mask,
    rest: KeptLeaves,
    avals: Sequence[ShapedArray],
    forward: Jaxpr,
    known: Sequence[Any] | None,
) -> tuple[Traced, Mask]:
    """The backward rule traced now; it may branch on residuals that have values.

    These are what `forward` computes of the operands `known`, if that is not None.
    """
    given = user.out_active
    if known is None:
        return user.trace_backward(nonzero, given, rest, avals)
    with values_of(forward, known) as outs:
        saved = outs[len(user.out_avals) :]
        values = [*saved, *[None] * sum(given)]
        return user.trace_backward(nonzero, given, rest, avals, values)
