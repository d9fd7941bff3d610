"""Floor 5: shorter ways to give a derivative: custom_gradient, linear_call and others.

Each of these is a few lines on top of `custom_vjp`, `trace` or one equation::

    square = custom_gradient(lambda x: (x * x, lambda ct: 2 * ct * x))
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from verax.api.custom.arguments import describe_type, leaf_type, matching_leaves
from verax.api.custom.tracing import fits, union, with_captured
from verax.api.custom.vjp import custom_vjp
from verax.api.tracing.apply import ENGINE, apply, is_tracing
from verax.api.tracing.argument_names import describe_arguments, function_name
from verax.api.tracing.structs import struct_avals
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import wraps
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.backend.results import result_tree
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.custom.linear_call import LinearCallParams, linear_call_p
from verax.ops.elementwise.select import stop_gradient as stop_gradient_of
from verax.rules.values.array import Array


def stop_gradient(x: Any) -> Any:
    """`x`, a pytree of arrays, which every derivative treats as a constant.

    >>> import verax
    >>> float(verax.grad(lambda x: x * verax.lax.stop_gradient(x))(3.0))
    3.0
    """
    leaves, tree = pytrees.flatten(x)
    return tree.unflatten(
        [stop_gradient_of(a) if is_inexact(leaf_type(a).dtype) else a for a in leaves]
    )


@frozen(cache_hash=True, repr=False)
class PullbackProgram(ReprMixin):
    """What a user's pullback does, beside what it captured."""

    jaxpr: Jaxpr
    out_tree: PyTreeDef


def custom_gradient(
    fun: Callable[..., Any] | None = None,
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: object = None,
) -> Callable[..., Any]:
    """A function from one that returns (output, pullback).

    The pullback takes the cotangent of the output and returns that of the argument, or
    the tuple of those of the arguments. Without `fun`, this is a decorator. The other
    arguments of JAX's must have their default values: pullbacks write no logs, have no
    accumulators, and are rematerialised with `verax.checkpoint`.

    Raises:
        NotImplementedError: one of them has another value.

    >>> import verax
    >>> f = verax.custom_gradient(lambda x: (x * x, lambda ct: 10.0 * ct * x))
    >>> float(verax.grad(f)(3.0))
    30.0
    """

    for word, value in (
        ("with_logs", with_logs),
        ("remat", remat),
        ("with_accums", with_accums),
    ):
        if value:
            raise NotImplementedError(
                f"custom_gradient does not take {word}={value!r}; leave it out"
            )
    return custom_gradient_of if fun is None else custom_gradient_of(fun)


def custom_gradient_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`custom_gradient` of a function."""

    def primal(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)[0]

    def forward(*args: Any) -> tuple[Any, Any]:
        out, pullback = fun(*args)
        leaves, tree = pytrees.flatten(out)
        _, in_tree = pytrees.flatten(((tree.unflatten(leaves),), {}))
        avals = [leaf_type(x).tangent() for x in leaves]
        traced = trace(pullback, in_tree, avals, f"the pullback of {name}").opened
        # A dictionary's key is a part of its structure, not a leaf.
        program = PullbackProgram(traced.jaxpr, traced.out_tree)
        return out, {program: list(traced.captured)}

    def backward(residuals: Any, ct: Any) -> Any:
        ((program, captured),) = residuals.items()
        outs = apply(program.jaxpr, [*captured, *pytrees.flatten(ct)[0]])
        pulled = program.out_tree.unflatten(outs)
        return pulled if isinstance(pulled, tuple) else (pulled,)

    name = function_name(fun)
    wrapped = custom_vjp(wraps(fun)(primal))
    wrapped.defvjp(forward, backward)
    return wrapped


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
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

    def converted(*args: Any) -> Any:
        count = len(args) - hoists
        given, rest, others = args[:count], iter(args[count:]), iter(kept)
        found = matching_leaves(
            "The inputs to the closure produced by closure_convert",
            "arguments",
            expected,
            name,
            given,
        )
        ins = [next(rest) if flag else next(others) for flag in hoisted]
        typed = [
            ENGINE.core.convert(x, a.dtype, a.weak_type)
            for x, a in zip([*ins, *found], jaxpr.in_avals, strict=True)
        ]
        return result_tree(out_tree, apply(jaxpr, typed))

    return converted, constants


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
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
    fun_transpose: Callable[[Any, Any], Any],
    name: str,
    tree: PyTreeDef,
    due: Sequence[ShapedArray],
) -> Callable[[Any, Any], list[Array]]:
    """A user's transpose with the leaves of its result in the types that are due."""

    def transposed(residuals: Any, ct: Any) -> list[Array]:
        what = f"the transpose of {name}"
        pulled = fun_transpose(residuals, ct)
        found = matching_leaves(what, "the cotangent", tree, "linear_args", pulled)
        for i, (x, aval) in enumerate(zip(found, due, strict=True)):
            given = leaf_type(x)
            if given.shape != aval.shape or not fits(given, aval):
                raise TypeError(
                    f"{what} returned {describe_type(given)} as the cotangent of leaf "
                    f"{i} of linear_args, which is {describe_type(aval)}"
                )
        pairs = zip(found, due, strict=True)
        return [ENGINE.core.convert(x, a.dtype, a.weak_type) for x, a in pairs]

    return transposed
