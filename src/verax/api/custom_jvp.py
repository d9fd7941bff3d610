"""Floor 5: functions with a forward-mode rule of the user's own.

One idea: under a trace a call becomes one equation that holds the function's jaxpr and
the rule as a value; the rule is traced when somebody differentiates, once per types and
per set of nonzero tangents::

    f = custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[0] * tangents[0]))
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from attrs import field, frozen

from verax.api.custom_arguments import (
    Held,
    Positions,
    SortedArguments,
    deep_within,
    describe_type,
    held_positions,
    leaf_type,
    matching_leaves,
    reads_tracers,
    sort_arguments,
)
from verax.api.custom_tracing import (
    after_captured,
    fits,
    in_type,
    precision,
    trace_body,
    union,
    with_captured,
)
from verax.api.custom_zeros import SymbolicZero, instantiate
from verax.api.engine import ENGINE, current_builder
from verax.api.tracing import (
    Traced,
    function_name,
    trace,
)
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ops.custom_jvp import (
    CustomJvpParams,
    JvpRule,
    TracedJvp,
    custom_jvp_call_p,
)
from verax.rules.array import Array
from verax.rules.builder import (
    AbstractValueError,
    LeakedTracer,
    Tracer,
    leaked,
)
from verax.rules.state import STATE

type Mask = tuple[bool, ...]
RULES = 1 << 12


@frozen(cache_hash=True)
class UserJvp:
    """A rule of the user's: what tells it from others is what it was called with."""

    name: str
    rule: Callable[..., Any] = field(repr=False)
    symbolic: bool = field(repr=False)
    positions: Positions = field(repr=False)
    held: tuple[Held, ...] = field(repr=False)
    tree: PyTreeDef = field(repr=False)
    avals: tuple[ShapedArray, ...] = field(repr=False)
    out_tree: PyTreeDef = field(repr=False)
    out_avals: tuple[ShapedArray, ...] = field(repr=False)
    x64: bool = field(repr=False)

    @property
    def purpose(self) -> str:
        """How messages call the rule."""
        return f"the jvp rule of {self.name}"

    @property
    def active(self) -> Mask:
        """The arguments that can have tangents."""
        return tuple([is_inexact(aval.dtype) for aval in self.avals])

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        return pushed_once(self, nonzero)

    def trace(
        self, nonzero: Mask, values: Sequence[object] | None = None
    ) -> tuple[Traced, Mask]:
        """The rule under the current trace, for these nonzero tangents."""
        masks: list[Mask] = []

        def flat(primals: list[Any], tangents: list[Any]) -> list[Any]:
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
        with precision(self.x64):
            traced = trace(
                flat, tree, [*self.avals, *live], self.purpose, values=values
            )
        return traced, masks[0]

    def call(
        self, nonzero: Mask, primals: Sequence[Any], live: Sequence[Any]
    ) -> tuple[list[Any], Mask]:
        """Call the rule; its results, then those tangents that are not zero."""
        given = iter(live)
        tangents = [
            next(given) if flag else instantiate(aval.tangent(), self.symbolic)
            for aval, flag in zip(self.avals, nonzero, strict=True)
        ]
        held = [x.value for x in self.held]
        primals_in = tuple(self.tree.unflatten(primals))
        tangents_in = tuple(self.tree.unflatten(tangents))
        pair = self.rule(*held, primals_in, tangents_in)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"{self.purpose} must return a pair (output, output tangent), not "
                f"{type(pair).__name__}"
            )
        return self.checked(*pair)

    def checked(self, out: Any, tangent: Any) -> tuple[list[Any], Mask]:
        """Outputs and nonzero tangents in the types that are due."""
        outs = matching_leaves(
            self.purpose, "the output", self.out_tree, f"the output of {self.name}", out
        )
        found = matching_leaves(
            self.purpose,
            "the output tangent",
            self.out_tree,
            f"the output of {self.name}",
            tangent,
        )
        typed = [
            in_type(x, aval, f"output {i} of {self.purpose}", self.name)
            for i, (x, aval) in enumerate(zip(outs, self.out_avals, strict=True))
        ]
        pushed = [
            tangent_in_type(t, aval.tangent(), i, self.purpose)
            for i, (t, aval) in enumerate(zip(found, self.out_avals, strict=True))
        ]
        live = [t for t in pushed if t is not None]
        return [*typed, *live], tuple([t is not None for t in pushed])


@lru_cache(maxsize=RULES)
def pushed_once(rule: UserJvp, nonzero: Mask) -> tuple[Jaxpr, Mask]:
    """The rule traced on its own: nothing around it may be captured.

    Raises:
        LeakedTracer: it closes over a tracer.
    """
    traced, mask = rule.trace(nonzero)
    if traced.captured:
        raise leaked(traced.captured[0])
    return traced.jaxpr, mask


def tangent_in_type(t: Any, due: ShapedArray, i: int, purpose: str) -> Array | None:
    """A tangent that a rule has returned; None if it is zero.

    Raises:
        TypeError: its type is not that of the output's tangent.
    """
    given = t.aval if isinstance(t, SymbolicZero) else leaf_type(t)
    if due.dtype == float0 and given.shape == due.shape:
        return None
    if given.shape != due.shape or not fits(given, due):
        raise TypeError(
            f"the tangent of output {i} from {purpose} is {describe_type(given)}, but "
            f"the output has tangents of type {describe_type(due)}"
        )
    if isinstance(t, SymbolicZero):
        return None
    return ENGINE.core.convert(t, due.dtype, due.weak_type)


class custom_jvp:
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

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.positions = held_positions(fun, nondiff_argnums, nondiff_argnames)
        self.rule: Callable[..., Any] | None = None
        self.symbolic = False

    def defjvp(
        self, jvp: Callable[..., Any], symbolic_zeros: bool = False
    ) -> Callable[..., Any]:
        """Give the rule; with `symbolic_zeros` it sees which tangents are zero."""
        self.rule = jvp
        self.symbolic = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give one rule per argument: (tangent, output, *primals) to a tangent.

        None stands for an argument on which the output does not depend.

        Raises:
            TypeError: the function has nondifferentiable arguments.

        >>> import verax
        >>> f = verax.custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: t * y, None)
        >>> [float(g) for g in verax.grad(f, (0, 1))(2.0, 3.0)]
        [3.0, 0.0]
        """
        if self.positions:
            raise TypeError("defjvps takes no nondiff_argnums; use defjvp")

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the function; under a trace, with its rule."""
        if self.rule is None:
            name = function_name(self.fun)
            raise AttributeError(
                f"no rule is defined for the custom_jvp function {name}; give it one "
                f"with {name}.defjvp"
            )
        if current_builder() is None:
            return self.fun(*args, **kwargs)
        return self.bind(sort_arguments(self.fun, self.positions, args, kwargs))

    def bind(self, given: SortedArguments) -> Any:
        """Write the call as an equation of the current trace."""
        body, avals = trace_body(self.fun, given)
        assert self.rule is not None
        user = UserJvp(
            function_name(self.fun),
            self.rule,
            self.symbolic,
            given.positions,
            given.held,
            given.tree,
            avals,
            body.out_tree,
            body.jaxpr.out_avals,
            STATE.enable_x64,
        )
        captures = body.captured or given.held_tracers or reads_tracers(self.rule)
        rule, captured, jaxpr = jvp_rule(user, body, given.leaves, bool(captures))
        params = CustomJvpParams(user.name, len(captured), jaxpr, rule)
        outs = custom_jvp_call_p.bind(params, *captured, *given.leaves)
        return body.out_tree.unflatten(outs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self.__call__, instance)


def sum_of_trees(out: Any, parts: Sequence[Any]) -> Any:
    """The sum of tangents like `out`; zeros if there are none."""
    leaves, tree = pytrees.flatten(out)
    sums = [instantiate(leaf_type(x).tangent(), False) for x in leaves]
    for k, part in enumerate(parts):
        found = matching_leaves(
            "a rule of defjvps", "a tangent", tree, "the output", part
        )
        sums = found if k == 0 else [a + b for a, b in zip(sums, found, strict=True)]
    return tree.unflatten(sums)


def jvp_rule(
    user: UserJvp, body: Traced, leaves: Sequence[Any], captures: bool
) -> tuple[JvpRule, tuple[Tracer, ...], Jaxpr]:
    """The rule of an equation, what it and the function capture, and the function.

    A rule that captures tracers, or branches on values at hand, is traced now.
    """
    builder = current_builder()
    if builder is None or deep_within(builder, user.purpose):
        avals = tuple([x.aval for x in body.captured])
        rule = Shifted(user, avals) if avals else user
        return rule, body.captured, body.jaxpr
    if not captures:
        if builder.oracle is None:
            return user, (), body.jaxpr
        with suppress(AbstractValueError, LeakedTracer):
            user.pushed(user.active)
            return user, (), body.jaxpr
    values = None
    if builder.oracle is not None:
        values = [*leaves, *tangent_values(user)]
    traced, mask = user.trace(user.active, values)
    captured = union(body.captured, traced.captured)
    jaxpr = with_captured(body.jaxpr, body.captured, captured)
    pushed = with_captured(traced.jaxpr, traced.captured, captured)
    return TracedJvp(pushed, user.active, mask), captured, jaxpr


@frozen(cache_hash=True)
class Shifted:
    """A rule that captures nothing, of a function that does."""

    rule: JvpRule
    captured: tuple[ShapedArray, ...] = field(repr=False)

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        jaxpr, mask = self.rule.pushed(nonzero)
        return after_captured(jaxpr, self.captured), mask


def tangent_values(user: UserJvp) -> list[Array]:
    """Tangents at hand for rules that branch on values: not on those of tangents."""
    return [
        ENGINE.core.zeros(aval.tangent())
        for aval, flag in zip(user.avals, user.active, strict=True)
        if flag
    ]
