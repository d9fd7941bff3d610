"""Floor 6: `cond` and `switch`, choices by a value known at run time.

One idea: all branches are traced on the same operands, and the equation holds them all;
under vmap with one index for all, still only one of them runs::

    lax.cond(x > 0, lambda x: x, lambda x: -x, x)
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, overload

import numpy as np
from attrs import evolve, frozen

from verax.api.tracing.apply import as_array, as_typed_array, is_tracing
from verax.api.tracing.concrete_values import is_known
from verax.api.tracing.reference_checks import check_closed_over
from verax.api.tracing.trace import Traced, leaf_avals, shared_trace
from verax.api.tracing.wrapping import describe_arguments, name_and_line, short_name
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.backend.runtime.client import default_client, platform_name
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import int32, is_bool, is_extended, is_integer
from verax.ir.jaxpr import Jaxpr
from verax.ir.promotion import TypePromotionError, result_type
from verax.ir.records import ReprMixin
from verax.lax.agreement import check_branch_types, check_structures, paths
from verax.ops.calls.call import inlined
from verax.ops.control.cond import cond_p, platform_index_p
from verax.ops.control.cond_params import (
    CondParams,
    PlatformIndexParams,
    Platforms,
    choice_for,
)
from verax.ops.elementwise.compare import ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import clamp
from verax.ops.structure.casts import varying_too
from verax.ops.structure.reshard import retyped
from verax.rules.rows.builder import Staged, program
from verax.rules.rows.emitter import PLATFORMS
from verax.rules.rows.references import operand_aval
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of, is_operand, typed_scalar
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# Bodies of control flow as jaxprs, and what is said when types differ.
#
# A body is traced once on types; what it closes over, arrays and tracers of
# outer traces, become operands of the equation::
#
#     body = trace_body(f, tree, avals, "scan")
#     body.jaxpr, body.consts, body.out_tree


PACKAGE: Final = __name__.partition(".")[0]


@frozen(eq=False, repr=False)
class Body(ReprMixin):
    """A traced function: its jaxpr takes `consts`, then the leaves of the arguments."""

    jaxpr: Jaxpr
    consts: tuple[object, ...]
    out_tree: PyTreeDef
    traced: Traced

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.out_avals


def trace_body(
    fun: Callable[..., object],
    tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    purpose: str,
    called: object = None,
    owner: object = None,
) -> Body:
    """Trace `fun(*args, **kwargs)`; messages name `called`, the user's function.

    For `owner` see `shared_trace`.
    """
    describe = describe_arguments(called or fun, tree)
    traced = shared_trace(fun, tree, avals, purpose, owner=owner, describe=describe)
    opened = traced.opened
    return Body(opened.jaxpr, opened.captured, opened.out_tree, traced)


def with_common_consts(
    bodies: Sequence[Body],
) -> tuple[tuple[Jaxpr, ...], list[object]]:
    """The jaxprs of several bodies on all their constants, each of them once."""
    places: dict[object, int] = {}
    consts: list[object] = []
    for body in bodies:
        for x in body.consts:
            if places.setdefault(identity(x), len(consts)) == len(consts):
                consts.append(x)
    if len(bodies) == 1:
        return (bodies[0].jaxpr,), consts
    types = [operand_aval(x) for x in consts]
    return tuple([on_consts(body, places, types) for body in bodies]), consts


def on_consts(
    body: Body, places: dict[object, int], types: Sequence[ShapedArray]
) -> Jaxpr:
    """The jaxpr of a body on the constants of all."""
    order = [places[identity(x)] for x in body.consts]
    if order == list(range(len(types))):
        return body.jaxpr
    own = body.jaxpr.in_avals[len(order) :]

    def whole(*xs: Array) -> Sequence[object]:
        return inlined(body.jaxpr, [*[xs[i] for i in order], *xs[len(types) :]])

    return program((*types, *own), whole)


def identity(x: object) -> object:
    """The identity by which constants are told apart."""
    return (id(x.builder), x.atom) if isinstance(x, Staged) else id(x)


def with_out_types(body: Body, avals: Sequence[ShapedArray]) -> Body:
    """The body with its first results converted to these types."""
    out_avals = body.out_avals
    if out_avals[: len(avals)] == tuple(avals):
        return body

    def whole(*xs: Array) -> Sequence[object]:
        outs = inlined(body.jaxpr, xs)
        return [*typed_as(outs, avals), *outs[len(avals) :]]

    return evolve(body, jaxpr=program(body.jaxpr.in_avals, whole))


def with_carry_types(body: Body, avals: Sequence[ShapedArray]) -> Body:
    """The body with the carry, going in and coming out, converted to these types.

    A carry that starts as a weak value and comes back as a strong one of its dtype
    is weak in the body, as the user traced it, and strong between the steps.
    """
    start, stop = len(body.consts), len(body.consts) + len(avals)
    ins = body.jaxpr.in_avals
    inside, types = ins[start:stop], (*ins[:start], *avals, *ins[stop:])
    if types == tuple(ins):
        return with_out_types(body, avals)

    def whole(*xs: Array) -> Sequence[object]:
        carry = typed_as(xs[start:stop], inside)
        outs = inlined(body.jaxpr, (*xs[:start], *carry, *xs[stop:]))
        return [*typed_as(outs, avals), *outs[len(avals) :]]

    return evolve(body, jaxpr=program(types, whole))


def typed_as(xs: Sequence[Array], avals: Sequence[ShapedArray]) -> list[Array]:
    """The first of `xs` in these types, which may vary along more axes."""
    return [
        x
        if x.aval is aval
        else retyped(convert(x, aval.dtype, aval.weak_type), aval.explicit)
        for x, aval in zip(xs, avals, strict=False)
    ]


def as_operand(x: object, aval: ShapedArray) -> object:
    """A leaf in the type that was settled for it."""
    if operand_aval(x) is aval:
        return x
    if aval.explicit is not None:
        same = convert(as_array(x), aval.dtype, aval.weak_type)
        return retyped(same, aval.explicit)
    if isinstance(x, Array) or aval.shape:
        return convert(x, aval.dtype, aval.weak_type)
    if not is_tracing():
        return as_typed_array(x, aval)
    return typed_scalar(x, aval)


def promoted(given: ShapedArray, aval: ShapedArray) -> ShapedArray:
    """The type of a carry that begins as `given` and comes back as `aval`.

    Only a weak type gives way.
    """
    if not given.weak_type or given.shape != aval.shape or given is aval:
        return given
    try:
        dtype, _ = result_type(given, aval, x64=STATE.enable_x64)
    except TypePromotionError:
        return given
    return given.with_dtype(dtype)


def settled(
    fun: Callable[..., object],
    avals: Sequence[ShapedArray],
    traced: Callable[[Sequence[ShapedArray]], Body],
) -> tuple[list[ShapedArray], Body]:
    """Carry types that the body gives back: weak ones are promoted until it does.

    Inside `shard_map`, the carry of a loop of the library's own varies as the body
    makes it; users say so themselves (`pcast`). The body is traced again where a dtype
    changes, or along which axes a value varies; see `with_carry_types`.
    """
    current, own = list(avals), is_own(fun)
    while True:
        body = traced(current)
        result = body.out_avals[: len(current)]
        if len(result) != len(current):
            return current, body
        after = [promoted(a, b) for a, b in zip(current, result, strict=True)]
        if own:
            after = [varying_too(a, b.vma) for a, b in zip(after, result, strict=True)]
        if all(
            a.dtype == b.dtype and a.explicit == b.explicit
            for a, b in zip(after, current, strict=True)
        ):
            return after, body
        current = after


def is_own(fun: object) -> bool:
    """Whether a body is the library's own, and stands for none of a user's."""
    while (inner := getattr(fun, "func", None)) is not None:
        fun = inner
    module: str = getattr(fun, "__module__", None) or ""
    return module.partition(".")[0] == PACKAGE


def is_sequential(name: str, vmap_method: str) -> bool:
    """Whether vmap goes through one element after another; "masked" is the default."""
    if vmap_method in ("masked", "sequential"):
        return vmap_method == "sequential"
    raise ValueError(
        f"{name}: vmap_method must be 'masked' or 'sequential', not {vmap_method!r}"
    )


class Absent:
    """The type of the default of arguments for which None is a value."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = Absent()


@overload
def cond[R](
    pred: object,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: object,
    operand: object = ...,
    linear: object = None,
    vmap_method: str = "masked",
) -> R: ...
@overload
def cond(
    pred: object,
    true_fun: object = ...,
    false_fun: object = ...,
    *operands: object,
    operand: object = ...,
    linear: object = None,
    true_operand: object = ...,
    false_operand: object = ...,
    vmap_method: str = "masked",
) -> Any: ...
def cond(
    pred: object,
    true_fun: Any = ABSENT,
    false_fun: Any = ABSENT,
    *operands: object,
    operand: object = ABSENT,
    linear: object = None,
    true_operand: object = ABSENT,
    false_operand: object = ABSENT,
    vmap_method: str = "masked",
) -> Any:
    """`true_fun(*operands)` where `pred` holds, else `false_fun(*operands)`.

    The older form `cond(pred, true_operand, true_fun, false_operand, false_fun)` is
    accepted too.

    Under `vmap` with one predicate for all elements the choice stays one. With a
    predicate for each, "masked" runs both functions for all elements and each keeps its
    own results; "sequential" goes through one element after another and runs only the
    function that it takes.

    Args:
        pred: a boolean scalar, or a number, which holds unless it is zero.
        true_fun: a function of the operands.
        false_fun: a function of the operands, with results of the same structure,
            shapes and dtypes.
        *operands: trees of arrays that are passed to the function.
        operand: one more operand, after the others, by its name.
        linear: ignored.
        true_operand, false_operand: the operands of the older form, one for each
            function.
        vmap_method: "masked", the default, or "sequential".

    Returns:
        What the chosen function returns, with arrays as its leaves.

    Raises:
        TypeError: the predicate is not a scalar, or the results differ; the message
            says where.
        ValueError: there is no such `vmap_method`.

    >>> import verax
    >>> verax.lax.cond(2.0 > 1.0, lambda x: x + 1, lambda x: -x, 1.0).item()
    2.0
    """
    old = len(operands) == 2 and callable(operands[1]) and not callable(true_fun)
    if old and callable(false_fun) and true_operand is ABSENT:
        true_operand, true_fun, false_operand, false_fun = (
            true_fun,
            false_fun,
            *operands,
        )
        operands = ()
    if true_operand is not ABSENT or false_operand is not ABSENT:
        return of_two_operands(
            pred, true_operand, true_fun, false_operand, false_fun, vmap_method
        )
    if operand is not ABSENT:
        operands = (*operands, operand)
    for name, fun in (("true_fun", true_fun), ("false_fun", false_fun)):
        check_callable(f"lax.cond: as {name} it", fun)
    check_predicate(pred)
    if STATE.disable_jit and is_known(pred):
        return true_fun(*operands) if bool(pred) else false_fun(*operands)
    index = convert(truth(pred), int32)
    names = ["false_fun", "true_fun"]
    one = is_sequential("cond", vmap_method)
    return choose("cond", index, [false_fun, true_fun], operands, names, one)


def check_predicate(pred: object) -> None:
    """Raise TypeError unless `pred` is a scalar that can be true."""
    if pred is None:
        raise TypeError("cond predicate is None: pass a boolean scalar")
    if callable(pred):
        raise TypeError(
            f"Pred type must be either boolean or number, got {shown(pred)}: call it"
        )
    if not is_operand(pred):
        raise TypeError(
            f"Pred must be a scalar, got {plainly(pred)} of type {type(pred)}: cond "
            "takes a boolean scalar as its predicate"
        )
    aval = aval_of(pred)
    if aval.shape or is_extended(aval.dtype):
        raise TypeError(
            f"Pred must be a scalar, got {plainly(pred)} of shape {aval.shape}: cond "
            f"takes a boolean scalar as its predicate, not {aval}; reduce it "
            "(verax.numpy.any, all), or choose element by element (verax.numpy.where)"
        )


def plainly(x: object) -> str:
    """A value in a message, a string without quotes."""
    return x if isinstance(x, str) else shown(x)


def check_index(index: object) -> ShapedArray:
    """The type of the index of a branch, an integer scalar.

    Raises:
        TypeError: it is something else.
    """
    aval = aval_of(index) if is_operand(index) else None
    shape: tuple[int, ...] = np.shape(index) if isinstance(index, tuple | list) else ()
    if aval is not None:
        shape = aval.shape
    if shape:
        raise TypeError(
            f"Branch index must be scalar, got {plainly(index)} of shape {shape}."
        )
    if aval is None or not is_integer(aval.dtype):
        raise TypeError(
            f"Index type must be an integer, got {plainly(index)}. switch takes an "
            f"integer scalar as its index{'' if aval is None else f', not {aval}'}"
        )
    return aval


def truth(pred: object) -> Any:
    """A number holds unless it is zero."""
    dtype = aval_of(pred).dtype
    return pred if is_bool(dtype) else ne(pred, convert(0, dtype))


def of_two_operands(
    pred: object,
    true_operand: object,
    true_fun: Any,
    false_operand: object,
    false_fun: Any,
    vmap_method: str,
) -> object:
    """The older form of `cond`, in which each branch has its own operand."""
    for fun in (true_fun, false_fun):
        if not callable(fun):
            raise TypeError(
                f"cond takes functions as true_fun and false_fun, not {shown(fun)}"
            )

    def on_true(yes: object, no: object) -> object:
        return true_fun(yes)

    def on_false(yes: object, no: object) -> object:
        return false_fun(no)

    return cond(
        pred, on_true, on_false, true_operand, false_operand, vmap_method=vmap_method
    )


@overload
def switch[R](
    index: Any,
    branches: Sequence[Callable[..., R]],
    *operands: Any,
    operand: Any = ABSENT,
    vmap_method: str = "masked",
) -> R: ...
@overload
def switch(
    index: Any,
    branches: Sequence[Any],
    *operands: Any,
    operand: Any = ABSENT,
    vmap_method: str = "masked",
) -> Any: ...
def switch(
    index: Any,
    branches: Sequence[Callable[..., object]],
    *operands: object,
    operand: object = ABSENT,
    vmap_method: str = "masked",
) -> Any:
    """`branches[index](*operands)`; an index out of range means the nearest branch.

    A negative index is out of range, too, and does not count from the end.

    Args:
        index: an integer scalar.
        branches: functions of the operands, at least one, with results of the same
            structure, shapes and dtypes.
        *operands: trees of arrays that are passed to the function.
        operand: one more operand, after the others, by its name.
        vmap_method: "masked", the default, or "sequential"; see `cond`.

    Returns:
        What the chosen function returns, with arrays as its leaves if there are
        several.

    Raises:
        TypeError: the index is not an integer scalar, or results differ.
        ValueError: there are no branches, or there is no such `vmap_method`.

    >>> import verax
    >>> verax.lax.switch(7, [lambda x: x, lambda x: 2 * x], 5).item()
    10
    """
    functions = list(branches)
    for fun in functions:
        check_callable("lax.switch: as a branch it", fun)
    aval = check_index(index)
    if not functions:
        raise ValueError("Empty branch sequence: switch takes at least one branch")
    if operand is not ABSENT:
        operands = (*operands, operand)
    last = len(functions) - 1
    if not last:
        return functions[0](*operands)
    if STATE.disable_jit and is_known(index):
        return functions[min(max(int(index), 0), last)](*operands)
    names = ["branch 0", *[f"branch{i}" for i in range(1, len(functions))]]
    one = is_sequential("switch", vmap_method)
    return choose(
        "switch", branch_index(index, aval, last), functions, operands, names, one
    )


def branch_index(index: object, aval: ShapedArray, last: int) -> object:
    """The index as an int32 between 0 and `last`."""
    if aval.dtype.itemsize < 4 or aval.strong().dtype == int32:
        return clamp(0, convert(index, int32), last)
    # What does not fit 32 bits must not wrap around.
    return convert(clamp(0, index, last), int32)


def choose(
    name: str,
    index: object,
    functions: Sequence[Callable[..., object]],
    operands: tuple[object, ...],
    names: Sequence[str],
    sequential: bool,
    platforms: Platforms | None = None,
) -> Any:
    """One `cond` equation on traced branches."""
    leaves, tree = pytrees.flatten((operands, {}))

    def describe() -> Sequence[str]:
        if not any(map(is_reference, leaves)):
            return [f"operand{path} of {name}" for path in paths(tree)]
        called = describe_arguments(functions[-1], tree)()
        return [f"{short_name(x)} of {name}" for x in called]

    chosen_by = aval_of(index).vma  # where that differs, operands and results do
    avals = [varying_too(aval, chosen_by) for aval in leaf_avals(leaves, describe)]
    bodies = [trace_body(fun, tree, avals, name) for fun in functions]
    types = [
        varying_too(aval, chosen_by)
        for aval in common_types(name, functions, bodies, names)
    ]
    alike = [with_out_types(body, types) for body in bodies]
    jaxprs, consts = with_common_consts(alike)
    for fun, body in zip(functions, bodies, strict=True):
        if body.traced.refs:
            check_closed_over(body.traced.opened, leaves, describe_arguments(fun, tree))
    given = [as_operand(x, aval) for x, aval in zip(leaves, avals, strict=True)]
    params = CondParams(jaxprs, sequential=sequential, platforms=platforms)
    outs = cond_p.bind(params, index, *consts, *given)
    return result_tree(bodies[0].out_tree, outs)


def common_types(
    name: str,
    functions: Sequence[Callable[..., object]],
    bodies: Sequence[Body],
    names: Sequence[str],
) -> list[ShapedArray]:
    """The types of the results of all branches; the first says which are weak.

    Raises:
        TypeError: structures or types differ; the message shows where.
    """
    first = bodies[0]
    if all([agree(first, body) for body in bodies[1:]]):
        return list(first.out_avals)
    whos = [
        f"{label}, {name_and_line(fun)}"
        for label, fun in zip(names, functions, strict=True)
    ]
    told = list(zip(bodies, names, whos, strict=True))
    if name == "cond":  # what holds is said first
        told.reverse()
    parts, labels, lines = zip(*told, strict=True)
    check_structures(name, [body.out_tree for body in parts], labels, lines)
    types = [body.out_avals for body in parts]
    check_branch_types(name, first.out_tree, types, labels, lines)
    return list(first.out_avals)


def agree(one: Body, other: Body) -> bool:
    """Whether two branches return the same structure and types, weak or not."""
    if one.out_tree != other.out_tree:
        return False
    types = zip(one.out_avals, other.out_avals, strict=True)
    return all([a.strong() is b.strong() for a, b in types])


def platform_dependent[R](
    *args: object,
    default: Callable[..., R] | None = None,
    **per_platform: Callable[..., R],
) -> R:
    """The function of `per_platform` for the platform of the program, on `args`.

    Under a trace all functions are traced, so they return the same types; the choice is
    made when the program is lowered, and the others are not part of it.

    Args:
        *args: trees of arrays that are passed to the function.
        default: the function for platforms that are not named; None for none.
        **per_platform: functions by platform: "cpu", "cuda", "rocm" and "tpu"; those
            under other names are never used.

    Returns:
        What the chosen function returns.

    Raises:
        TypeError: what a name stands for is not a function, or the results differ.
        MissingRule: there is no function for the platform, and no default.

    >>> import verax
    >>> verax.lax.platform_dependent(3, cpu=lambda x: x + 1, tpu=lambda x: x * 2)
    4
    """
    functions: list[Callable[..., Any]] = []
    served: list[tuple[str, ...]] = []
    for name, fun in per_platform.items():
        check_callable(f"platform_dependent, for {name},", fun)
        if name not in PLATFORMS:
            continue
        result = [i for i, other in enumerate(functions) if other is fun]
        if result:
            served[result[0]] += (name,)
        else:
            functions.append(fun)
            served.append((name,))
    platforms: Platforms = tuple(served)
    if default is not None:
        check_callable("platform_dependent, as default,", default)
        functions, platforms = [*functions, default], (*platforms, None)
    if STATE.interpreter.immediate:
        here = platform_name(default_client())
        chosen: R = functions[choice_for(platforms, here)](*args)
        return chosen
    index = platform_index_p.call(PlatformIndexParams(platforms))
    if not functions:
        raise TypeError("platform_dependent takes at least one function")
    names = [f"{known[0]}=" if known else "default=" for known in platforms]
    name = "platform_dependent"
    out: R = choose(name, index, functions, args, names, False, platforms)
    return out
