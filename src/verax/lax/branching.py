"""Floor 6: `cond` and `switch`, choices by a value known at run time.

One idea: all branches are traced on the same operands, and the equation holds them all;
under vmap with one index for all, still only one of them runs::

    lax.cond(x > 0, lambda x: x, lambda x: -x, x)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from verax.api.tracing.argument_names import describe_arguments, name_and_line
from verax.api.tracing.concrete_values import is_known
from verax.api.tracing.reference_checks import check_closed_over
from verax.api.tracing.trace import leaf_avals
from verax.backend import pytrees
from verax.backend.results import result_tree
from verax.backend.runtime.client import default_client, platform_name
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32, is_bool, is_extended, is_integer
from verax.lax.bodies import (
    Body,
    as_operand,
    is_sequential,
    mismatch,
    paths,
    trace_body,
    with_common_consts,
    with_out_types,
)
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
from verax.ops.structure.casts import cast_advice, varying_too
from verax.rules.rows.emitter import PLATFORMS
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE
from verax.rules.values.typed import check_callable, shown


class Absent:
    """The type of the default of arguments for which None is a value."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = Absent()


def cond(
    pred: Any,
    true_fun: Any = ABSENT,
    false_fun: Any = ABSENT,
    *operands: Any,
    operand: Any = ABSENT,
    linear: Any = None,
    true_operand: Any = ABSENT,
    false_operand: Any = ABSENT,
    vmap_method: str = "masked",
) -> Any:
    """`true_fun(*operands)` where `pred` holds, else `false_fun(*operands)`.

    `pred` is a boolean scalar, or a number, which holds unless it is zero. Both
    functions return the same structure and types. The older form
    `cond(pred, true_operand, true_fun, false_operand, false_fun)` is accepted too.
    `linear` is ignored.

    Under `vmap` with one predicate for all elements the choice stays one. With a
    predicate for each, "masked" runs both functions for all elements and each keeps
    its own results; `vmap_method="sequential"` goes through one element after another
    and runs only the function that it takes.

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
        if not callable(fun):
            raise TypeError(f"cond takes a function as {name}, not {shown(fun)}")
    check_predicate(pred)
    if STATE.disable_jit and is_known(pred):
        return true_fun(*operands) if bool(pred) else false_fun(*operands)
    index = convert(truth(pred), int32)
    names = ["false_fun", "true_fun"]
    one = is_sequential("cond", vmap_method)
    return choose("cond", index, [false_fun, true_fun], operands, names, one)


def check_predicate(pred: Any) -> None:
    """Raise TypeError unless `pred` is a scalar that can be true."""
    aval = aval_of(pred)
    if aval.shape or is_extended(aval.dtype):
        raise TypeError(
            f"cond takes a boolean scalar as its predicate, not {aval}; reduce it "
            "(verax.numpy.any, all), or choose element by element (verax.numpy.where)"
        )


def truth(pred: Any) -> Any:
    """A number holds unless it is zero."""
    dtype = aval_of(pred).dtype
    return pred if is_bool(dtype) else ne(pred, convert(0, dtype))


def of_two_operands(
    pred: Any,
    true_operand: Any,
    true_fun: Any,
    false_operand: Any,
    false_fun: Any,
    vmap_method: str,
) -> Any:
    """The older form of `cond`, in which each branch has its own operand."""
    for fun in (true_fun, false_fun):
        if not callable(fun):
            raise TypeError(
                f"cond takes functions as true_fun and false_fun, not {shown(fun)}"
            )

    def on_true(yes: Any, no: Any) -> Any:
        return true_fun(yes)

    def on_false(yes: Any, no: Any) -> Any:
        return false_fun(no)

    return cond(
        pred, on_true, on_false, true_operand, false_operand, vmap_method=vmap_method
    )


def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = ABSENT,
    vmap_method: str = "masked",
) -> Any:
    """`branches[index](*operands)`; an index out of range means the nearest branch.

    `index` is an integer scalar; the branches return the same structure and types.
    `vmap_method`, "masked" or "sequential", is that of `cond`.

    Raises:
        TypeError: the index is not an integer scalar, or results differ.
        ValueError: there are no branches, or there is no such `vmap_method`.

    >>> import verax
    >>> verax.lax.switch(7, [lambda x: x, lambda x: 2 * x], 5).item()
    10
    """
    functions = list(branches)
    for fun in functions:
        if not callable(fun):
            raise TypeError(f"switch takes functions as branches, not {shown(fun)}")
    aval = aval_of(index)
    if aval.shape or not is_integer(aval.dtype):
        raise TypeError(f"switch takes an integer scalar as its index, not {aval}")
    if not functions:
        raise ValueError("switch takes at least one branch")
    if operand is not ABSENT:
        operands = (*operands, operand)
    last = len(functions) - 1
    if not last:
        return functions[0](*operands)
    if STATE.disable_jit and is_known(index):
        return functions[min(max(int(index), 0), last)](*operands)
    names = [f"branches[{i}]" for i in range(len(functions))]
    one = is_sequential("switch", vmap_method)
    return choose(
        "switch", branch_index(index, aval, last), functions, operands, names, one
    )


def branch_index(index: Any, aval: ShapedArray, last: int) -> Any:
    """The index as an int32 between 0 and `last`."""
    if aval.dtype.itemsize < 4 or aval.strong().dtype == int32:
        return clamp(0, convert(index, int32), last)
    # What does not fit 32 bits must not wrap around.
    return convert(clamp(0, index, last), int32)


def choose(
    name: str,
    index: Any,
    functions: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    names: Sequence[str],
    sequential: bool,
    platforms: Platforms | None = None,
) -> Any:
    """One `cond` equation on traced branches."""
    leaves, tree = pytrees.flatten((operands, {}))

    def describe() -> list[str]:
        return [f"operand{path} of {name}" for path in paths(tree)]

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
    functions: Sequence[Callable[..., Any]],
    bodies: Sequence[Body],
    names: Sequence[str],
) -> list[ShapedArray]:
    """The types of the results of all branches; the first says which are weak.

    Raises:
        TypeError: structures or types differ; the message shows where.
    """
    first = bodies[0]
    types = list(first.out_avals)
    whos = [
        f"{label}, {name_and_line(fun)}"
        for label, fun in zip(names, functions, strict=True)
    ]
    check_structures(name, bodies, whos)
    lines: list[str] = []
    for i, (path, due) in enumerate(zip(paths(first.out_tree), types, strict=True)):
        if any([body.out_avals[i].strong() is not due.strong() for body in bodies]):
            lines.append(f"  output{path} is")
            lines += [
                f"    {body.out_avals[i]} from {who}"
                for body, who in zip(bodies, whos, strict=True)
            ]
    if lines:
        advice = cast_advice(varying_cases(bodies, names))
        raise TypeError(
            f"{name}: all branches must return the same types, but\n"
            + "\n".join(lines)
            + (advice or "\nConvert the results of one of them (astype, reshape)")
        )
    return types


def varying_cases(
    bodies: Sequence[Body], names: Sequence[str]
) -> Iterator[tuple[ShapedArray, ShapedArray, str]]:
    """Results of branches, and those of others, which may vary along more axes."""
    first = bodies[0]
    for i, path in enumerate(paths(first.out_tree)):
        widest = max([body.out_avals[i] for body in bodies], key=lambda a: len(a.vma))
        for body, name in zip(bodies, names, strict=True):
            yield body.out_avals[i], widest, f"the output of {name}, output{path}"


def check_structures(name: str, bodies: Sequence[Body], whos: Sequence[str]) -> None:
    """Raise TypeError with the first place where structures of results differ."""
    first = bodies[0].out_tree
    for body, who in zip(bodies, whos, strict=True):
        if body.out_tree != first:
            at, difference = mismatch(first, body.out_tree, "output")
            raise TypeError(
                f"{name} branch outputs must have the same pytree structure, but at "
                f"{at}: {difference}\n"
                f"  {whos[0]}, returns {first}\n"
                f"  {who}, returns {body.out_tree}"
            )


def platform_dependent(
    *args: Any,
    default: Callable[..., Any] | None = None,
    **per_platform: Callable[..., Any],
) -> Any:
    """The function of `per_platform` for the platform of the program, on `args`.

    The names are "cpu", "cuda", "rocm" and "tpu"; `default` is for those that are not
    named, and functions for other platforms are never used. Under a trace all functions
    are traced, so they return the same types; the choice is made when the program is
    lowered, and the others are not part of it.

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
        found = [i for i, other in enumerate(functions) if other is fun]
        if found:
            served[found[0]] += (name,)
        else:
            functions.append(fun)
            served.append((name,))
    platforms: Platforms = tuple(served)
    if default is not None:
        check_callable("platform_dependent, as default,", default)
        functions, platforms = [*functions, default], (*platforms, None)
    if STATE.interpreter.immediate:
        here = platform_name(default_client())
        return functions[choice_for(platforms, here)](*args)
    index = platform_index_p.call(PlatformIndexParams(platforms))
    if not functions:
        raise TypeError("platform_dependent takes at least one function")
    names = [f"{known[0]}=" if known else "default=" for known in platforms]
    name = "platform_dependent"
    return choose(name, index, functions, args, names, False, platforms)
