"""Floor 5: functions with a reverse-mode rule of the user's own.

One idea: under a trace a call becomes one equation that holds the function's jaxpr and
the pair of rules as a value; they are traced when somebody differentiates::

    f = custom_vjp(lambda x: sin(x))
    f.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * cos(x),))
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
from verax.api.custom_zeros import CustomVJPPrimal, SymbolicZero, instantiate
from verax.api.engine import ENGINE, current_builder
from verax.api.tracing import Traced, function_name, trace
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ops.custom_vjp import (
    CustomVjpParams,
    TracedVjp,
    VjpRule,
    custom_vjp_call_p,
)
from verax.rules.array import Array
from verax.rules.builder import AbstractValueError, LeakedTracer, Tracer, leaked
from verax.rules.state import STATE

type Mask = tuple[bool, ...]
RULES = 1 << 12


@frozen(cache_hash=True)
class UserVjp:
    """A pair of rules: what tells it from others is what it was called with."""

    name: str
    fwd: Callable[..., Any] = field(repr=False)
    bwd: Callable[..., Any] = field(repr=False)
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
        """How messages call the forward rule."""
        return f"the fwd rule of {self.name}"

    @property
    def backward_purpose(self) -> str:
        """How messages call the backward rule."""
        return f"the bwd rule of {self.name}"

    @property
    def active(self) -> Mask:
        """The arguments that can have tangents."""
        return tuple([is_inexact(aval.dtype) for aval in self.avals])

    @property
    def out_active(self) -> Mask:
        """The results that can have cotangents."""
        return tuple([is_inexact(aval.dtype) for aval in self.out_avals])

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        return forward_once(self, nonzero)[0]

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        return backward_once(self, nonzero, given)

    def trace_forward(
        self, nonzero: Mask, values: Sequence[object] | None = None
    ) -> tuple[Traced, PyTreeDef]:
        """The forward rule under the current trace, and the tree of its residuals."""
        trees: list[PyTreeDef] = []

        def flat(*leaves: Any) -> list[Any]:
            outs, residuals, tree = self.call_forward(nonzero, leaves)
            trees.append(tree)
            return [*outs, *residuals]

        flat.__name__ = self.purpose
        _, tree = pytrees.flatten(((0,) * len(self.avals), {}))
        with precision(self.x64):
            traced = trace(flat, tree, self.avals, self.purpose, values=values)
        return traced, trees[0]

    def call_forward(
        self, nonzero: Mask, leaves: Sequence[Any]
    ) -> tuple[list[Any], list[Any], PyTreeDef]:
        """Call the forward rule: outputs, residuals, and the tree of these."""
        given: list[Any] = list(leaves)
        if self.symbolic:
            pairs = zip(leaves, nonzero, strict=True)
            given = [CustomVJPPrimal(x, flag) for x, flag in pairs]
        args = self.positions.merge(self.held, self.tree.unflatten(given))
        pair = self.fwd(*args)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"{self.purpose} must return a pair (output, residuals), not "
                f"{type(pair).__name__}"
            )
        outs = matching_leaves(
            self.purpose,
            "the output",
            self.out_tree,
            f"the output of {self.name}",
            pair[0],
        )
        typed = [
            in_type(x, aval, f"output {i} of {self.purpose}", self.name)
            for i, (x, aval) in enumerate(zip(outs, self.out_avals, strict=True))
        ]
        residuals, tree = pytrees.flatten(pair[1])
        return typed, residuals, tree

    def trace_backward(
        self,
        nonzero: Mask,
        given: Mask,
        residuals: PyTreeDef,
        avals: Sequence[ShapedArray],
        values: Sequence[object] | None = None,
    ) -> tuple[Traced, Mask]:
        """The backward rule on residuals of types `avals`."""
        masks: list[Mask] = []

        def flat(saved: list[Any], live: list[Any]) -> list[Any]:
            found, mask = self.call_backward(
                nonzero, given, residuals.unflatten(saved), live
            )
            masks.append(mask)
            return found

        flat.__name__ = self.backward_purpose
        cts = [
            a.tangent() for a, flag in zip(self.out_avals, given, strict=True) if flag
        ]
        _, tree = pytrees.flatten((([0] * len(avals), [0] * len(cts)), {}))
        with precision(self.x64):
            purpose = self.backward_purpose
            traced = trace(flat, tree, [*avals, *cts], purpose, values=values)
        return traced, masks[0]

    def call_backward(
        self, nonzero: Mask, given: Mask, residuals: Any, live: Sequence[Any]
    ) -> tuple[list[Any], Mask]:
        """Call the backward rule: cotangents, and of which arguments they are."""
        found = iter(live)
        cts = [
            next(found) if flag else instantiate(aval.tangent(), self.symbolic)
            for aval, flag in zip(self.out_avals, given, strict=True)
        ]
        held = [x.value for x in self.held]
        pulled = self.bwd(*held, residuals, self.out_tree.unflatten(cts))
        leaves = self.cotangents(pulled)
        typed = [
            self.cotangent(i, leaf) if flag else None
            for i, (leaf, flag) in enumerate(zip(leaves, nonzero, strict=True))
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
                f"{self.backward_purpose} must return a tuple of {len(parts)} "
                f"cotangents, one for each differentiable argument, not a "
                f"{type(pulled).__name__}{given}"
            )
        leaves: list[Any] = []
        for i, (part, tree) in enumerate(zip(pulled, parts, strict=True)):
            leaves += self.argument_cotangents(i, part, tree)
        return leaves

    def argument_cotangents(self, i: int, part: Any, tree: PyTreeDef) -> list[Any]:
        """The leaves of the cotangent for argument `i`."""
        if part is None:
            return [None] * tree.num_leaves
        given, found = pytrees.flatten(part, lambda x: x is None)
        if len(given) != tree.num_leaves or (found != tree and None not in given):
            like = f"argument {i} of {self.name}"
            return matching_leaves(
                self.backward_purpose,
                f"the cotangent of argument {i}",
                tree,
                like,
                part,
            )
        return given

    def cotangent(self, i: int, ct: Any) -> Array | None:
        """A cotangent in the type that is due; None if it is zero.

        Raises:
            TypeError: shape or dtype differ.
        """
        if ct is None or isinstance(ct, SymbolicZero):
            return None
        due, given = self.avals[i].tangent(), leaf_type(ct)
        if given.shape != due.shape or not fits(given, due):
            if given.dtype == float0 and given.shape == due.shape:
                return None
            raise TypeError(
                f"{self.backward_purpose} returned {describe_type(given)} as cotangent "
                f"of {self.argument(i)}, which is {describe_type(due)}"
            )
        return ENGINE.core.convert(ct, due.dtype, due.weak_type)

    def argument(self, i: int) -> str:
        """How messages call leaf `i` of the differentiable arguments."""
        numbered = self.tree.unflatten(range(self.tree.num_leaves))
        (first, *rest), _ = pytrees.flatten_with_path(numbered)[0][i]
        held, number = self.positions.held, int(first.idx)
        others = [k for k in range(number + len(held) + 1) if k not in held]
        return f"argument {others[number]}{''.join(map(str, rest))} of {self.name}"


@lru_cache(maxsize=RULES)
def forward_once(rule: UserVjp, nonzero: Mask) -> tuple[Jaxpr, PyTreeDef]:
    """The forward rule traced on its own: nothing around it may be captured."""
    traced, tree = rule.trace_forward(nonzero)
    if traced.captured:
        raise leaked(traced.captured[0])
    return traced.jaxpr, tree


@lru_cache(maxsize=RULES)
def backward_once(rule: UserVjp, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
    """The backward rule traced on its own: nothing around it may be captured."""
    forward, tree = forward_once(rule, nonzero)
    avals = forward.out_avals[len(rule.out_avals) :]
    traced, mask = rule.trace_backward(nonzero, given, tree, avals)
    if traced.captured:
        raise leaked(traced.captured[0])
    return traced.jaxpr, mask


@frozen(cache_hash=True)
class Shifted:
    """Rules that capture nothing, of a function that does."""

    rule: VjpRule
    captured: tuple[ShapedArray, ...] = field(repr=False)

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        return after_captured(self.rule.forward(nonzero), self.captured)

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        return self.rule.backward(nonzero, given)


class custom_vjp:
    """A function whose derivative in reverse mode is given by a pair of rules.

    `fwd` takes the arguments and returns (output, residuals); `bwd` takes residuals
    and the cotangent of the output and returns a tuple of cotangents, one for each
    differentiable argument, None for zero. Arguments in `nondiff_argnums` or
    `nondiff_argnames` may be anything; they are where they are in calls of `fwd` and
    come first in those of `bwd`.

    >>> import verax
    >>> f = verax.custom_vjp(lambda x: x * x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
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
        self.rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self.symbolic = False

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
        self.symbolic = symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the function; under a trace, with its rules."""
        if self.rules is None:
            name = function_name(self.fun)
            raise AttributeError(
                f"no rules are defined for the custom_vjp function {name}; give it "
                f"some with {name}.defvjp"
            )
        if current_builder() is None:
            return self.fun(*args, **kwargs)
        given = sort_arguments(self.fun, self.positions, args, kwargs)
        body, avals = trace_body(self.fun, given)
        user = UserVjp(
            function_name(self.fun),
            *self.rules,
            self.symbolic,
            given.positions,
            given.held,
            given.tree,
            avals,
            body.out_tree,
            body.jaxpr.out_avals,
            STATE.enable_x64,
        )
        captures = body.captured or given.held_tracers
        captures = captures or any(map(reads_tracers, self.rules))
        rule, captured, jaxpr = vjp_rule(user, body, given.leaves, bool(captures))
        params = CustomVjpParams(user.name, len(captured), jaxpr, rule)
        outs = custom_vjp_call_p.bind(params, *captured, *given.leaves)
        return body.out_tree.unflatten(outs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self.__call__, instance)


def vjp_rule(
    user: UserVjp, body: Traced, leaves: Sequence[Any], captures: bool
) -> tuple[VjpRule, tuple[Tracer, ...], Jaxpr]:
    """The rules of an equation, what they and the function capture, and the function.

    Rules that capture tracers, or branch on values at hand, are traced now.
    """
    builder = current_builder()
    purposes = (user.purpose, user.backward_purpose)
    if builder is None or deep_within(builder, *purposes):
        avals = tuple([x.aval for x in body.captured])
        rule = Shifted(user, avals) if avals else user
        return rule, body.captured, body.jaxpr
    if not captures:
        if builder.oracle is None:
            return user, (), body.jaxpr
        with suppress(AbstractValueError, LeakedTracer):
            user.backward(user.active, user.out_active)
            return user, (), body.jaxpr
    return traced_rule(user, body, leaves if builder.oracle is not None else None)


def traced_rule(
    user: UserVjp, body: Traced, values: Sequence[Any] | None
) -> tuple[TracedVjp, tuple[Tracer, ...], Jaxpr]:
    """Both rules traced now; what the backward one captures becomes a residual."""
    first, tree = user.trace_forward(user.active, values)
    avals = first.jaxpr.out_avals[len(user.out_avals) :]
    second, mask = user.trace_backward(user.active, user.out_active, tree, avals)
    captured = union(body.captured, first.captured, second.captured)
    jaxpr = with_captured(body.jaxpr, body.captured, captured)
    forward = with_captured(first.jaxpr, first.captured, captured)
    places = {x.atom: v for x, v in zip(captured, forward.invars, strict=False)}
    outs, saved = (
        forward.outvars[: len(user.out_avals)],
        forward.outvars[len(user.out_avals) :],
    )
    extra = [places[x.atom] for x in second.captured]
    forward = Jaxpr((), forward.invars, forward.eqns, (*outs, *extra, *saved))
    rule = TracedVjp(forward, second.jaxpr, user.out_active, mask)
    return rule, captured, jaxpr
