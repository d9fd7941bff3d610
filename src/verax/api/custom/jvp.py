"""Floor 5: functions with the user's own forward-mode rule.

One idea: under a trace a call becomes one equation that holds the function's jaxpr and
the rule as a value; the rule is traced when it is differentiated, once per types and
per set of nonzero tangents::

    f = custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[0] * tangents[0]))
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from attrs import field, frozen

from verax.api.custom.arguments import (
    Purpose,
    SortedArguments,
    SymbolicZero,
    after_captured,
    describe_type,
    fits,
    instantiate,
    leaf_type,
    matching_leaves,
    union,
    with_captured,
)
from verax.api.custom.base import (
    CustomRules,
    Mask,
    UserRules,
    When,
    at_rest,
    at_the_call,
    called,
    can_wait,
    movable,
    on_its_own,
    pair_of,
    waiting_rule,
)
from verax.api.custom.snapshots import Snapshot
from verax.api.tracing.apply import ENGINE, current_builder
from verax.api.tracing.trace import Opened, Traced, trace
from verax.api.tracing.wrapping import function_name
from verax.backend import pytrees
from verax.backend.pytrees import result_tree
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.custom.base import Remade
from verax.ops.custom.jvp import (
    CustomJvpParams,
    JvpRule,
    TracedJvp,
    custom_jvp_call_p,
)
from verax.rules.values.array import Array
from verax.rules.values.state import entered


@frozen(cache_hash=True, repr=False)
class UserJvp(UserRules):
    """A rule of the user's, for the calls with arguments of some types."""

    decorator: ClassVar[str] = "custom_jvp"
    rule_word: ClassVar[str] = "JVP"

    rule: Snapshot = field(repr=False)

    @property
    def functions(self) -> tuple[Snapshot, ...]:
        """See `CallRules.functions`."""
        return (self.rule,)

    @property
    def purpose(self) -> str:
        """The name of the rule in messages."""
        return Purpose(f"the jvp rule of {self.name}")

    @property
    def title(self) -> str:
        """The rule in messages about what it returned."""
        return (
            f"Custom JVP rule {function_name(self.rule.value)} for function {self.name}"
        )

    def first(self, alike: str) -> str:
        """See `UserRules.first`."""
        return (
            f"the primal output (equal in value to the output of the {self.decorated}, "
            f"and in particular {alike})"
        )

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        return self.kept(traced_jvp, nonzero)

    def trace(
        self, nonzero: Mask, values: Sequence[object] | None = None
    ) -> tuple[Traced, Mask]:
        """The rule under the current trace, for these nonzero tangents."""
        masks: list[Mask] = []

        def flat(primals: list[object], tangents: list[object]) -> list[object]:
            leaves, mask = self.call(nonzero, primals, tangents)
            masks.append(mask)
            return leaves

        flat.__name__ = self.purpose
        live = [
            a.tangent() for a, flag in zip(self.avals, nonzero, strict=True) if flag
        ]
        count = len(self.avals)
        ones = [[0] * count, [0] * len(live)]
        _, tree = pytrees.flatten((tuple(ones), {}))
        with entered(self.context):
            traced = trace(
                flat, tree, [*self.avals, *live], self.purpose, values=values
            )
        return traced, masks[0]

    def call(
        self, nonzero: Mask, primals: Sequence[object], live: Sequence[object]
    ) -> tuple[list[object], Mask]:
        """Call the rule; its results, then those tangents that are not zero."""
        given = iter(live)
        tangents = [
            next(given) if flag else instantiate(aval.tangent(), self.symbolic)
            for aval, flag in zip(self.avals, nonzero, strict=True)
        ]
        primals_in = tuple(self.tree.unflatten(primals))
        tangents_in = tuple(self.tree.unflatten(tangents))
        held = "the nondifferentiable arguments, " if self.held else ""
        takes = f"{held}the primals and the tangents"
        args = (*self.held_values, primals_in, tangents_in)
        out = called(self.rule.value, self.purpose, takes, args)
        return self.checked(*pair_of(self.title, "primal and tangent outputs", out))

    def checked(self, out: object, tangent: object) -> tuple[list[object], Mask]:
        """Outputs and nonzero tangents in the types that are due."""
        trees = pytrees.flatten(out)[1], pytrees.flatten(tangent)[1]
        if trees[0] != trees[1]:
            raise TypeError(
                f"{self.title} must produce primal and tangent outputs with equal "
                f"container (pytree) structures, but got {trees[0]} and {trees[1]} "
                "respectively."
            )
        typed = self.outputs(self.purpose, self.title, out)
        result = self.like_output(self.title, "the output tangent", tangent)
        pushed = [
            tangent_in_type(t, aval, i, self.purpose)
            for i, (t, aval) in enumerate(zip(result, self.out_avals, strict=True))
        ]
        live = [t for t in pushed if t is not None]
        return [*typed, *live], tuple([t is not None for t in pushed])


def traced_jvp(rule: UserJvp, nonzero: Mask) -> tuple[Jaxpr, Mask]:
    """The rule traced on its own: nothing around it may be captured.

    Raises:
        LeakedTracer: it closes over a tracer.
    """
    traced, mask = rule.trace(nonzero)
    return on_its_own(traced), mask


def tangent_in_type(t: object, aval: ShapedArray, i: int, purpose: str) -> Array | None:
    """A tangent that a rule has returned for an output; None if it is zero.

    Raises:
        TypeError: its type is not that of the output's tangent.
    """
    given = t.aval if isinstance(t, SymbolicZero) else leaf_type(t)
    due = aval.tangent()
    if due.dtype == float0 and given.shape == due.shape:
        return None
    if given.shape != due.shape or not fits(given, due):
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with "
            f"corresponding shapes and dtypes. Expected {describe_type(due)} (tangent "
            f"type of {describe_type(aval)}) but got {describe_type(given)}. It is "
            f"output {i} of {purpose}"
        )
    if isinstance(t, SymbolicZero):
        return None
    return ENGINE.core.convert(t, due.dtype, due.weak_type)


class custom_jvp(CustomRules):
    """A function whose derivative is given by a rule, in forward and reverse mode.

    The rule takes the tuples of primals and of tangents and returns the pair of output
    and output tangent; it must be linear in the tangents. Arguments in
    `nondiff_argnums` or `nondiff_argnames` have no tangents, may be anything, and come
    first in the calls of the rule.

    >>> import verax
    >>> @verax.custom_jvp
    ... def f(x):
    ...     return x * x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), 10.0 * tangents[0]
    >>> float(verax.grad(f)(3.0))
    10.0
    """

    __module__ = "verax"

    kind = "jvp"

    def defjvp(
        self, jvp: Callable[..., object], symbolic_zeros: bool = False
    ) -> Callable[..., Any]:
        """Give the rule; with `symbolic_zeros` it sees which tangents are zero."""
        self.rules = (jvp,)
        self.symbolic_zeros = symbolic_zeros
        return jvp

    @property
    def jvp(self) -> Callable[..., Any] | None:
        """The rule, if there is one yet."""
        return self.rules[0] if self.rules else None

    def defjvps(self, *jvps: Callable[..., object] | None) -> None:
        """Give one rule per argument: (tangent, output, *primals) to a tangent.

        None stands for an argument on which the output does not depend.

        Raises:
            TypeError: the function has nondifferentiable arguments.

        >>> import verax
        >>> f = verax.custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: t * y, None)
        >>> print(*verax.grad(f, (0, 1))(2.0, 3.0))
        3.0 0.0
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps does not support nondiff_argnums; use defjvp")

        def rule(
            primals: Sequence[object], tangents: Sequence[object]
        ) -> tuple[object, object]:
            if len(jvps) != len(primals):
                raise TypeError(
                    f"defjvps of {function_name(self.fun)} got {len(jvps)} rules for "
                    f"{len(primals)} arguments"
                )
            out = self(*primals)
            parts = [
                jvp(t, out, *primals)
                for jvp, t in zip(jvps, tangents, strict=True)
                if jvp is not None
            ]
            return out, sum_of_trees(out, parts)

        self.defjvp(rule)

    def bind(self, given: SortedArguments) -> Any:
        """Write the call as an equation of the current trace."""
        user, body, when = self.user_rules(UserJvp, given)
        rule, captured, jaxpr = jvp_rule(user, body, given.leaves, when)
        params = CustomJvpParams(user.name, len(captured), jaxpr, rule)
        outs = custom_jvp_call_p.bind(params, *captured, *given.leaves)
        return result_tree(body.out_tree, outs)


def sum_of_trees(out: object, parts: Sequence[object]) -> Any:
    """The sum of tangents like `out`; zeros if there are none."""
    leaves, tree = pytrees.flatten(out)
    sums = [instantiate(leaf_type(x).tangent(), False) for x in leaves]
    for k, part in enumerate(parts):
        result = matching_leaves(
            "a rule of defjvps", "a tangent", tree, "the output", part
        )
        sums = result if k == 0 else [a + b for a, b in zip(sums, result, strict=True)]
    return tree.unflatten(sums)


def jvp_rule(
    user: UserJvp, body: Opened, leaves: Sequence[object], when: When
) -> tuple[JvpRule, tuple[object, ...], Jaxpr]:
    """The rule of an equation, what it and the function capture, and the function.

    A rule that captures tracers, may read what changes, or branches on values at hand,
    is traced now.
    """
    nonzero = movable(user, leaves, when)
    if at_rest(body, nonzero) or can_wait((user.purpose,), when, nonzero, user.pushed):
        return waiting_rule(user, body, Shifted)
    return at_the_call(
        when,
        lambda: traced_rule(user, body, nonzero, leaves),
        lambda: waiting_rule(user, body, Shifted),
    )


def traced_rule(
    user: UserJvp, body: Opened, nonzero: Mask, leaves: Sequence[object]
) -> tuple[TracedJvp, tuple[object, ...], Jaxpr]:
    """The rule traced now; what it captures becomes operands."""
    builder = current_builder()
    values = None
    if builder is not None and builder.oracle is not None:
        values = [*leaves, *tangent_values(user, nonzero)]
    traced, mask = user.trace(nonzero, values)
    opened = traced.opened
    captured = union(body.captured, opened.captured)
    jaxpr = with_captured(body.jaxpr, body.captured, captured)
    pushed = with_captured(opened.jaxpr, opened.captured, captured)
    return TracedJvp(pushed, nonzero, mask), captured, jaxpr


@frozen(cache_hash=True, repr=False)
class Shifted(Remade, ReprMixin):
    """A rule that captures nothing, of a function that does."""

    rule: JvpRule
    captured: tuple[ShapedArray, ...] = field(repr=False)

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        jaxpr, mask = self.rule.pushed(nonzero)
        return after_captured(jaxpr, self.captured), mask


def tangent_values(user: UserJvp, nonzero: Mask) -> list[Array]:
    """Tangents at hand for rules that branch on values: not on those of tangents."""
    return [
        ENGINE.core.zeros(aval.tangent())
        for aval, flag in zip(user.avals, nonzero, strict=True)
        if flag
    ]
