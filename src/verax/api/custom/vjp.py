"""Floor 5: functions with the user's own reverse-mode rule.

One idea: under a trace a call becomes one equation that holds the function's jaxpr and
the pair of rules as a value; they are traced when it is differentiated::

    f = custom_vjp(lambda x: sin(x))
    f.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * cos(x),))
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from verax.api.custom.arguments import (
    CustomVJPPrimal,
    Purpose,
    SortedArguments,
    SymbolicZero,
    after_captured,
    describe_type,
    fits,
    identity,
    instantiate,
    leaf_type,
    matching_leaves,
    rounds_to,
    union,
    with_captured,
)
from verax.api.custom.backward_logs import logging
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
from verax.api.tracing.apply import ENGINE, apply, current_builder, is_tracing
from verax.api.tracing.concrete_values import values_of
from verax.api.tracing.structs import struct_avals
from verax.api.tracing.trace import Opened, Traced, leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, function_name, wraps
from verax.api.trees.hitypes import cotangent_leaves
from verax.api.trees.pytrees import KeptLeaves, split_leaves
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.custom.base import Remade
from verax.ops.custom.solve import LinearCallParams, linear_call_p
from verax.ops.custom.vjp import CustomVjpParams, TracedVjp, VjpRule, custom_vjp_call_p
from verax.ops.elementwise.select import stop_gradient as stop_gradient_of
from verax.rules.rows.infer import as_cotangent
from verax.rules.values.array import Array
from verax.rules.values.conversions import NotAnArray, described
from verax.rules.values.sizes import ShapeError
from verax.rules.values.state import entered


@frozen(cache_hash=True, repr=False)
class UserVjp(UserRules):
    """A pair of rules, for the calls with arguments of some types."""

    decorator: ClassVar[str] = "custom_vjp"
    rule_word: ClassVar[str] = "fwd"

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

    def first(self, alike: str) -> str:
        """See `UserRules.first`."""
        return (
            f"the primal output (equal to the output of the {self.decorated}) and the "
            "second element represents residuals (i.e. values stored from the forward "
            "pass for use on the backward pass)"
        )

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
        out: list[KeptLeaves] = []

        def flat(*leaves: object) -> list[Any]:
            outs, residuals, rest = self.call_forward(nonzero, leaves)
            out.append(rest)
            return [*outs, *residuals]

        flat.__name__ = f"the custom_vjp fwd function of {self.name}"
        flat.__dict__["func"] = self.fwd.value
        _, tree = pytrees.flatten(((0,) * len(self.avals), {}))
        with entered(self.context):
            traced = trace(
                flat, tree, self.avals, self.purpose, values=values, passes=True
            )
        return traced, out[0]

    def call_forward(
        self, nonzero: Mask, leaves: Sequence[object]
    ) -> tuple[list[Any], list[Any], KeptLeaves]:
        """Call the forward rule: outputs, arrays among the residuals, and the rest."""
        given: list[object] = list(leaves)
        if self.symbolic:
            pairs = zip(leaves, nonzero, strict=True)
            given = [CustomVJPPrimal(x, flag) for x, flag in pairs]
        args = self.positions.merge(self.held, self.tree.unflatten(given))
        pair = pair_of(
            self.forward_title,
            "output and residuals",
            called(self.fwd.value, self.purpose, f"what {self.name} takes", args),
        )
        residuals, rest = split_leaves(pair[1], is_residual)
        outs = self.outputs(self.purpose, self.forward_title, pair[0])
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
            out, mask = self.call_backward(
                nonzero, given, residuals.rebuilt(saved), live
            )
            masks.append(mask)
            return out

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
        self, nonzero: Mask, given: Mask, residuals: object, live: Sequence[object]
    ) -> tuple[list[object], Mask]:
        """Call the backward rule: cotangents, and of which arguments they are."""
        result = iter(live)
        cts = [
            next(result) if flag else instantiate(aval.cotangent(), self.symbolic)
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

    def cotangents(self, pulled: object) -> list[Any]:
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
        leaves: list[object] = []
        for i, (part, tree) in enumerate(zip(pulled, parts, strict=True)):
            leaves += self.argument_cotangents(i, part, tree)
        return leaves

    def argument_cotangents(
        self, i: int, part: object, tree: PyTreeDef
    ) -> list[object]:
        """The leaves of the cotangent for argument `i`."""
        whole = tree.unflatten(range(tree.num_leaves))
        what, like = f"the cotangent of argument {i}", f"argument {i} of {self.name}"
        try:  # None, and one cotangent, may stand for any subtree
            return cotangent_leaves(what, part, whole)
        except ValueError:
            return matching_leaves(self.backward_title, what, tree, like, part)

    def cotangent(self, i: int, ct: object) -> Array | None:
        """A cotangent in the type that is due; None if it is zero.

        One of another width is rounded, as rules compute in wider floats.

        Raises:
            TypeError: the shape differs, or the kind of the dtype.
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
        if given.shape != due.shape or not rounds_to(given, due):
            if given.dtype == float0 and given.shape == due.shape:
                return None
            raise ShapeError(
                f"at output[{i}] the bwd rule attached to {self.name} produced an "
                f"output of type {describe_type(given)}, as the cotangent of "
                f"{self.argument(i)}, which is {describe_type(due)}"
            )
        check_varies_alike(given, due, self.name, self.argument(i))
        return as_cotangent(ENGINE, ct, due)

    def argument(self, i: int) -> str:
        """The name of leaf `i` of the differentiable arguments in messages."""
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
        fwd: Callable[..., object],
        bwd: Callable[..., object],
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

    def defvjp_with_logs(
        self,
        fwd: Callable[..., object],
        bwd: Callable[..., object],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Give the rules; the backward one returns (cotangents, logs).

        `logs` is None, or a dictionary of pytrees of arrays. Who pulls cotangents back
        with `verax.vjp(f, ...)[1].with_logs` gets what all rules have logged, merged;
        elsewhere it is not computed. The other arguments are those of `defvjp`.

        >>> import verax
        >>> f = verax.custom_vjp(lambda x: x * x)
        >>> f.defvjp_with_logs(
        ...     lambda x: (f(x), x), lambda x, ct: ((2 * x * ct,), {"ct": ct})
        ... )
        >>> float(verax.vjp(f, 3.0)[1].with_logs(10.0)[1]["ct"])
        10.0
        """
        name = function_name(self.fun)
        self.defvjp(fwd, logging(name, bwd), symbolic_zeros, optimize_remat)

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
    user: UserVjp, body: Opened, leaves: Sequence[object], when: When
) -> tuple[VjpRule, tuple[object, ...], Jaxpr]:
    """The rules of an equation, what they and the function capture, and the function.

    Rules that capture tracers, may read what changes, or branch on values at hand, are
    traced now.
    """
    nonzero = movable(user, leaves, when)
    purposes = (user.purpose, user.backward_purpose)
    if at_rest(body, nonzero) or can_wait(
        purposes, when, nonzero, lambda m: user.backward(m, user.out_active)
    ):
        return waiting_rule(user, body, Shifted)
    builder = current_builder()
    concrete = builder is not None and builder.oracle is not None
    return at_the_call(
        when,
        lambda: traced_rule(user, body, nonzero, leaves if concrete else None),
        lambda: waiting_rule(user, body, Shifted),
    )


def traced_rule(
    user: UserVjp, body: Opened, nonzero: Mask, values: Sequence[object] | None
) -> tuple[TracedVjp, tuple[object, ...], Jaxpr]:
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
    known: Sequence[object] | None,
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


# -----------------------------------------------------------------------------
# Shorter ways to give a derivative: custom_gradient, linear_call and others.
#
# Each of these is a few lines on top of `custom_vjp`, `trace` or one equation::
#
#     square = custom_gradient(lambda x: (x * x, lambda ct: 2 * ct * x))


def stop_gradient[T](x: T) -> T:
    """`x`, a pytree of arrays, which every derivative treats as a constant.

    Args:
        x: a pytree of arrays and scalars. Leaves that are neither floats nor complex
            numbers are returned as they are: they have no derivative.

    Returns:
        A pytree of the same structure and values.

    >>> import verax
    >>> float(verax.grad(lambda x: x * verax.lax.stop_gradient(x))(3.0))
    3.0
    """
    leaves, tree = pytrees.flatten(x)
    out: T = tree.unflatten(
        [stop_gradient_of(a) if is_inexact(leaf_type(a).dtype) else a for a in leaves]
    )
    return out


@frozen(cache_hash=True, repr=False)
class PullbackProgram(ReprMixin):
    """The program of a user's pullback, beside what it captured."""

    jaxpr: Jaxpr
    out_tree: PyTreeDef


def custom_gradient(
    fun: Callable[..., object] | None = None,
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: object = None,
) -> Callable[..., Any]:
    """A function from one that returns (output, pullback).

    The pullback takes the cotangent of the output and returns that of the argument, or
    the tuple of those of the arguments. Without `fun`, this is a decorator. With
    `with_logs` it returns a pair of this and its logs, as the backward rule of
    `custom_vjp.defvjp_with_logs` does. The other arguments of JAX's must have their
    default values: pullbacks have no accumulators, and are rematerialised with
    `verax.checkpoint`.

    Raises:
        NotImplementedError: one of them has another value.

    >>> import verax
    >>> f = verax.custom_gradient(lambda x: (x * x, lambda ct: 10.0 * ct * x))
    >>> float(verax.grad(f)(3.0))
    30.0
    """

    for word, value in (("remat", remat), ("with_accums", with_accums)):
        if value:
            raise NotImplementedError(
                f"custom_gradient does not take {word}={value!r}; leave it out"
            )
    made = partial(custom_gradient_of, with_logs=with_logs)
    return made if fun is None else made(fun)


def custom_gradient_of(
    fun: Callable[..., Any], with_logs: bool
) -> Callable[..., object]:
    """`custom_gradient` of a function."""

    def primal(*args: object, **kwargs: object) -> object:
        return fun(*args, **kwargs)[0]

    def forward(*args: object) -> tuple[Any, Any]:
        out, pullback = fun(*args)
        leaves, tree = pytrees.flatten(out)
        _, in_tree = pytrees.flatten(((tree.unflatten(leaves),), {}))
        avals = [leaf_type(x).tangent() for x in leaves]
        traced = trace(pullback, in_tree, avals, f"the pullback of {name}").opened
        # A dictionary's key is a part of its structure, not a leaf.
        program = PullbackProgram(traced.jaxpr, traced.out_tree)
        return out, {program: list(traced.captured)}

    def backward(
        residuals: Mapping[PullbackProgram, Sequence[object]], ct: object
    ) -> Any:
        ((program, captured),) = residuals.items()
        outs = apply(program.jaxpr, [*captured, *pytrees.flatten(ct)[0]])
        pulled = program.out_tree.unflatten(outs)
        return pulled if isinstance(pulled, tuple) else (pulled,)

    def backward_with_logs(
        residuals: Mapping[PullbackProgram, Sequence[object]], ct: object
    ) -> Any:
        pulled = backward(residuals, ct)
        if len(pulled) != len(("cotangents", "logs")):
            return pulled
        cotangents, logs = pulled
        return cotangents if isinstance(cotangents, tuple) else (cotangents,), logs

    name = function_name(fun)
    wrapped = custom_vjp(wraps(fun)(primal))
    if with_logs:
        wrapped.defvjp_with_logs(forward, backward_with_logs)
    else:
        wrapped.defvjp(forward, backward)
    return wrapped


def closure_convert(
    fun: Callable[..., object], *example_args: object
) -> tuple[Callable[..., Any], list[Any]]:
    """`fun` without what it closes over, and a list of that.

    The pair is (converted, constants) with `converted(*args, *constants)` equal to
    `fun(*args)`: the constants are the values of outer traces that `fun` reads and that
    have derivatives.

    >>> import verax
    >>> converted, constants = verax.closure_convert(lambda x: x + 1.0, 2.0)
    >>> float(converted(2.0)), constants
    (3.0, [])
    """
    leaves, tree = pytrees.flatten((example_args, {}))
    avals = struct_avals(leaves)
    describe = describe_arguments(fun, tree)
    traced = trace(fun, tree, avals, "closure_convert", describe=describe)
    hoisted = tuple([is_inexact(x.aval.dtype) for x in traced.captured])
    constants = [x for x, flag in zip(traced.captured, hoisted, strict=True) if flag]
    kept = tuple([x for x, f in zip(traced.captured, hoisted, strict=True) if not f])
    # What it closes over cannot change, so rules that call it need not be traced at
    # each call.
    jaxpr, out_tree, name = traced.jaxpr, traced.out_tree, function_name(fun)
    expected, hoists = tree.children()[0], len(constants)

    def converted(*args: object) -> Any:
        count = len(args) - hoists
        given, rest, others = args[:count], iter(args[count:]), iter(kept)
        result = matching_leaves(
            "The inputs to the closure produced by closure_convert",
            "arguments",
            expected,
            name,
            given,
        )
        ins = [next(rest) if flag else next(others) for flag in hoisted]
        typed = [
            ENGINE.core.convert(x, a.dtype, a.weak_type)
            for x, a in zip([*ins, *result], jaxpr.in_avals, strict=True)
        ]
        return result_tree(out_tree, apply(jaxpr, typed))

    return converted, constants


def linear_call(
    fun: Callable[[Any, Any], object],
    fun_transpose: Callable[[Any, Any], object],
    residual_args: object,
    linear_args: object,
) -> Any:
    """`fun(residual_args, linear_args)`, linear in the latter, with its transpose.

    `fun_transpose(residual_args, cotangent)` gives the cotangent of `linear_args`.

    Raises:
        TypeError: the transpose gives another structure or other types.

    >>> import verax
    >>> def scale(r, x):
    ...     return verax.custom_derivatives.linear_call(
    ...         lambda r, x: x * r, lambda r, ct: ct * r, r, x)
    >>> float(verax.grad(lambda x: scale(3.0, x))(1.0))
    3.0
    """
    if not is_tracing():
        return fun(residual_args, linear_args)
    saved, saved_tree = pytrees.flatten(residual_args)
    leaves, tree = pytrees.flatten(linear_args)
    _, in_tree = pytrees.flatten(((residual_args, linear_args), {}))
    describe = describe_arguments(fun, in_tree)
    avals = leaf_avals([*saved, *leaves], describe)
    first = trace(fun, in_tree, avals, "linear_call", describe=describe).opened
    count = len(saved)
    due = [aval.tangent() for aval in avals[count:]]
    outs = [aval.tangent() for aval in first.jaxpr.out_avals]
    like_out = first.out_tree.unflatten([0] * len(outs))
    _, back_tree = pytrees.flatten(((saved_tree.unflatten(saved), like_out), {}))
    transposed = checked_transpose(fun_transpose, function_name(fun), tree, due)
    types = [*avals[:count], *outs]
    second = trace(transposed, back_tree, types, "linear_call").opened
    captured = union(first.captured, second.captured)
    params = LinearCallParams(
        function_name(fun),
        len(captured) + count,
        with_captured(first.jaxpr, first.captured, captured),
        with_captured(second.jaxpr, second.captured, captured),
    )
    return first.out_tree.unflatten(
        linear_call_p.bind(params, *captured, *saved, *leaves)
    )


def checked_transpose(
    fun_transpose: Callable[[Any, Any], object],
    name: str,
    tree: PyTreeDef,
    due: Sequence[ShapedArray],
) -> Callable[[Any, Any], list[Array]]:
    """A user's transpose with the leaves of its result in the types that are due."""

    def transposed(residuals: object, ct: object) -> list[Array]:
        what = f"the transpose of {name}"
        pulled = fun_transpose(residuals, ct)
        result = matching_leaves(what, "the cotangent", tree, "linear_args", pulled)
        for i, (x, aval) in enumerate(zip(result, due, strict=True)):
            given = leaf_type(x)
            if given.shape != aval.shape or not fits(given, aval):
                raise TypeError(
                    f"{what} returned {describe_type(given)} as the cotangent of leaf "
                    f"{i} of linear_args, which is {describe_type(aval)}"
                )
        pairs = zip(result, due, strict=True)
        return [ENGINE.core.convert(x, a.dtype, a.weak_type) for x, a in pairs]

    return transposed
