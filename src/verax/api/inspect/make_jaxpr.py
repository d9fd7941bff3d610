"""Floor 5: looking at programs: make_jaxpr, eval_shape, linear_transpose.

One idea: what tracing gives is a value, so looking at it is calling `trace`::

    print(make_jaxpr(f)(x))
"""

from collections.abc import Callable, Sequence
from typing import Any

from verax.api.arguments.static_argnums import resolve_statics
from verax.api.autodiff.jvp_vjp import check_reduce_axes, check_tangent, zero
from verax.api.tracing.apply import ENGINE, apply, observed
from verax.api.tracing.argument_names import describe_arguments, function_name
from verax.api.tracing.structs import (
    ShapeDtypeStruct,
    out_info,
    struct_aval,
    struct_avals,
)
from verax.api.tracing.trace import Traced, trace
from verax.api.tracing.wrapping import wraps
from verax.api.vmap import axis_scope
from verax.backend import pytrees
from verax.ir.consts import hoist
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ops.hoisting import as_operands
from verax.rules.guards.gc_pause import paused
from verax.rules.values.conversions import check_callable

type Numbers = int | tuple[int, ...] | list[int] | None


def make_jaxpr[**P](
    fun: Callable[P, Any],
    static_argnums: Numbers = None,
    axis_env: Sequence[tuple[str, int]] | None = None,
    return_shape: bool = False,
) -> Callable[P, Any]:
    """A function that returns the jaxpr of `fun` for its arguments.

    Arguments may be arrays, scalars, `ShapeDtypeStruct`s and pytrees of them; arrays
    that `fun` closes over appear as constvars. `axis_env` are named axes with their
    sizes, over which collectives in `fun` run. With `return_shape`, the result is the
    pair of the jaxpr and the output types.

    >>> import verax
    >>> print(verax.make_jaxpr(lambda x: x * 2.0)(1.0))
    { lambda ; a:~f32[]. let b:~f32[] = mul a 2.0:~f32[] in (b,) }
    """
    check_callable("make_jaxpr", fun)
    statics = resolve_statics(fun, static_argnums, None, None, None)
    axes = [(str(name), int(size)) for name, size in axis_env or ()]

    @wraps(fun)
    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        call_args = statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        describe = describe_arguments(fun, tree, call_args.positions)
        avals = struct_avals(leaves, describe)
        inner = call_args.with_statics(fun)
        with paused(), axis_scope(axes):
            traced = trace(
                inner, tree, avals, "make_jaxpr", describe=describe, lifts=True
            )
            closed = closed_over(traced)
        return (closed, out_info(traced)) if return_shape else closed

    return jaxpr_of


def closed_over(traced: Traced) -> ClosedJaxpr:
    """The jaxpr with what it captured as constvars: arrays, and tracers around it."""
    if not traced.captured:
        found: ClosedJaxpr = hoist(traced.jaxpr, as_operands)
        return found
    opened = traced.opened
    jaxpr, count = opened.jaxpr, len(opened.captured)
    ours, theirs = jaxpr.invars[:count], jaxpr.invars[count:]
    return ClosedJaxpr(Jaxpr(ours, theirs, jaxpr.eqns, jaxpr.outvars), opened.captured)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The output types of `fun`, without computing anything.

    An output of `fun` may itself be a `ShapeDtypeStruct`.

    >>> import verax, verax.numpy as vnp
    >>> verax.eval_shape(vnp.dot, vnp.ones((2, 3)), vnp.ones((3, 4))).shape
    (2, 4)
    """
    leaves, tree = pytrees.flatten((args, kwargs))
    describe = describe_arguments(fun, tree)
    avals = struct_avals(leaves, describe)

    @wraps(fun)
    def with_arrays(*args: Any, **kwargs: Any) -> Any:
        outs, out_tree = pytrees.flatten(fun(*args, **kwargs))
        return out_tree.unflatten(map(stand_in, outs))

    return out_info(trace(with_arrays, tree, avals, "eval_shape", describe=describe))


def stand_in(x: Any) -> Any:
    """An array of zeros for a struct; anything else as it is."""
    return zero(struct_aval(x)) if isinstance(x, ShapeDtypeStruct) else x


def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[object] = ()
) -> Callable[[Any], Any]:
    """The transpose of a linear function: cotangents of outputs to those of inputs.

    `primals` give the types only (arrays or `ShapeDtypeStruct`s). `reduce_axes` must be
    empty.

    Raises:
        NotImplementedError: there are `reduce_axes`.
        MissingRule: an operation in `fun` is not linear.

    >>> import verax
    >>> float(verax.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)[0])
    6.0
    """
    check_reduce_axes("linear_transpose", reduce_axes)
    leaves, tree = pytrees.flatten((primals, {}))
    describe = describe_arguments(fun, tree)
    avals = struct_avals(leaves, describe)
    traced = trace(fun, tree, avals, "linear_transpose", describe=describe)
    outs = traced.jaxpr.out_avals
    linear = (False,) * len(traced.captured) + (True,) * len(avals)

    def transposed(cotangent: Any) -> Any:
        ct_leaves, ct_tree = pytrees.flatten(cotangent)
        if ct_tree != traced.out_tree:
            raise TypeError(
                f"the cotangent has the structure {ct_tree}, but "
                f"{function_name(fun)} returns {traced.out_tree}"
            )
        names = [f"output {i}" for i in range(len(outs))]
        cts = [
            check_tangent(lambda: names, i, aval, ct)
            for i, (aval, ct) in enumerate(zip(outs, ct_leaves, strict=True))
        ]
        nonzero = tuple(ct is not None for ct in cts)
        jaxpr, mask = observed(
            "transpose", traced.jaxpr, lambda p: ENGINE.transpose(p, linear, nonzero)
        )
        # What only the function itself needs may have no value.
        slim, needed = ENGINE.dce(jaxpr, (True,) * len(jaxpr.outvars))
        given = [*traced.captured, *[ct for ct in cts if ct is not None]]
        operands = [x for x, flag in zip(given, needed, strict=True) if flag]
        found = iter(apply(slim, operands))
        filled = [
            next(found) if flag else zero(aval.tangent())
            for flag, aval in zip(mask, avals, strict=True)
        ]
        return tuple(tree.unflatten(filled)[0])

    return transposed
