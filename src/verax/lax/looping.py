"""Floor 6: `while_loop`, `fori_loop`, `map`, `associative_scan`.

One idea: a loop whose number of steps is known is a `scan`, which can be
differentiated in both modes; only the others are `while` equations::

    total = lax.fori_loop(0, 10, lambda i, total: total + xs[i], 0.0)
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from verax.api.tracing.apply import as_array
from verax.api.tracing.concrete_values import is_known
from verax.api.tracing.trace import leaf_avals
from verax.api.tracing.wrapping import function_name, name_and_line, stands_for
from verax.api.vmap import vmap
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.dtypes import bool_, is_float, is_integer
from verax.lax.agreement import check_carry, mismatch, paths
from verax.lax.branching import (
    Body,
    as_operand,
    is_sequential,
    settled,
    trace_body,
    with_carry_types,
)
from verax.lax.scanning import Checkpoints, blocks_of, scan, scan_length, scanned
from verax.ops.control.checkpointed_loops import bounded_while_p
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import BoundedWhileParams, WhileParams
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import convert
from verax.ops.reductions import recurrence
from verax.ops.structure.casts import varying_too
from verax.ops.structure.joining import concatenate, rev
from verax.ops.structure.shape import broadcast, reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import (
    AbstractValueError,
    HostArray,
    check_callable,
    described,
    shown,
)
from verax.rules.values.sizes import as_axis, as_size, slice_count
from verax.rules.values.state import STATE


@overload
def while_loop(
    cond_fun: Callable[[Array], object],
    body_fun: Callable[[Array], Array],
    init_val: HostArray,
    *,
    vmap_method: str = "masked",
    max_steps: int | None = None,
    checkpoints: Checkpoints = "sqrt",
) -> Array: ...
@overload
def while_loop[C](
    cond_fun: Callable[[C], object],
    body_fun: Callable[[C], C],
    init_val: C,
    *,
    vmap_method: str = "masked",
    max_steps: int | None = None,
    checkpoints: Checkpoints = "sqrt",
) -> C: ...
def while_loop(
    cond_fun: Callable[[Any], object],
    body_fun: Callable[[Any], object],
    init_val: object,
    *,
    vmap_method: str = "masked",
    max_steps: int | None = None,
    checkpoints: Checkpoints = "sqrt",
) -> Any:
    """`val = body_fun(val)` as long as `cond_fun(val)` holds.

    Forward-mode derivatives go through; reverse-mode ones need a bound: with
    `max_steps` the loop has derivatives in both modes. Reverse mode stores as many
    carries as `checkpoints` says and computes the steps again; see `scan`. What it
    costs goes by the steps that are done, not by `max_steps`.

    Under `vmap`, if the elements end at different times, "masked" runs the loop until
    the last has ended, and those that have keep their value; with "sequential" each has
    its own loop, one after another.

    Args:
        cond_fun: a function of the value to one boolean scalar.
        body_fun: a function of the value to the next one, of the same structure, shapes
            and dtypes.
        init_val: the first value, a tree of arrays.
        vmap_method: "masked", the default, or "sequential".
        max_steps: the loop ends after that many steps even where `cond_fun` still
            holds; None for no bound.
        checkpoints: how many carries reverse mode stores: "sqrt", the default, "log" or
            a number; it counts only with `max_steps`.

    Returns:
        The last value; `init_val` if `cond_fun` does not hold at first.

    Raises:
        TypeError: `cond_fun` gives no boolean scalar, or `body_fun` another structure
            or other types than it takes; the message shows the difference.
        ValueError: there is no such `vmap_method`, or `max_steps` is negative.

    >>> import verax
    >>> verax.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1).item()
    128
    >>> def doubled(x):
    ...     return verax.lax.while_loop(lambda y: y < 100, lambda y: 2 * y, x,
    ...                                 max_steps=20)
    >>> verax.grad(doubled)(1.0).item()
    128.0
    """
    check_callable("lax.while_loop", cond_fun)
    check_callable("lax.while_loop", body_fun)
    one = is_sequential("while_loop", vmap_method)
    if max_steps is not None:
        return bounded(cond_fun, body_fun, init_val, one, max_steps, checkpoints)
    if STATE.disable_jit:
        try:
            return while_in_python(cond_fun, body_fun, init_val)
        except AbstractValueError:
            # What is traced abstractly can only be staged.
            pass
    return staged(cond_fun, body_fun, init_val, one, None)


def bounded(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: object,
    sequential: bool,
    max_steps: int,
    checkpoints: Checkpoints,
) -> object:
    """`while_loop` of at most `max_steps` steps, which it counts."""
    steps = whole_steps(max_steps)
    blocks = blocks_of("while_loop", steps, checkpoints)

    def go_on(carry: Any) -> object:
        i, value = carry
        holds = cond_fun(value)
        leaves, tree = pytrees.flatten(holds)
        check_truth(cond_fun, tree, leaf_avals(leaves, lambda: ["the predicate"]))
        return bitwise_and(lt(i, np.int32(steps)), holds)

    def advance(carry: Any) -> Any:
        i, value = carry
        return add(i, np.int32(1)), body_fun(value)

    stands_for(advance, body_fun)
    start = (np.int32(0), init_val)
    if STATE.disable_jit:
        try:
            return while_in_python(go_on, advance, start)[1]
        except AbstractValueError:
            # What is traced abstractly can only be staged.
            pass
    return staged(go_on, advance, start, sequential, blocks)[1]


def check_results(fn: Callable[..., object], result: Sequence[object]) -> None:
    """Raise TypeError unless all that `associative_scan` combined are arrays."""
    for x in result:
        if not hasattr(x, "shape"):
            raise TypeError(
                f"associative_scan: {name_and_line(fn)} must return arrays with the "
                f"dimensions of what it takes, not {described(x)}"
            )


def whole_steps(max_steps: int) -> int:
    """A number of steps, as Python knows it.

    Raises:
        TypeError: it is not an integer, or not known while tracing.
        ValueError: it is negative.
    """
    try:
        steps = operator.index(max_steps)
    except AbstractValueError:
        raise
    except TypeError as error:
        raise TypeError(
            f"max_steps must be an integer known while tracing, not {shown(max_steps)}"
        ) from error
    if steps < 0:
        raise ValueError(f"max_steps must be at least 0, not {max_steps}")
    return steps


def staged(
    cond_fun: Callable[[Any], object],
    body_fun: Callable[[Any], object],
    init_val: object,
    sequential: bool,
    blocks: tuple[int, ...] | None,
) -> Any:
    """One equation for the loop; with blocks, one that reverse mode divides so."""
    leaves, tree = pytrees.flatten(init_val)
    avals = leaf_avals(
        leaves, lambda: [f"init_val{p} of while_loop" for p in paths(tree)]
    )
    arguments = pytrees.flatten(((init_val,), {}))[1]

    def traced(carry: Sequence[ShapedArray]) -> Body:
        return trace_body(body_fun, arguments, carry, "while_loop")

    while True:
        types, body = settled(body_fun, avals, traced)
        check_carry("while_loop", body_fun, tree, types, body.out_tree, body.out_avals)
        test = trace_body(cond_fun, arguments, types, "while_loop")
        check_truth(cond_fun, test.out_tree, test.out_avals)
        # Devices that stop at different steps have different values.
        avals = [varying_too(aval, test.out_avals[0].vma) for aval in types]
        if avals == types:
            break
    body = with_carry_types(body, types)
    given = [as_operand(x, aval) for x, aval in zip(leaves, types, strict=True)]
    operands = (*test.consts, *body.consts, *given)
    parts = (body.jaxpr, len(body.consts), test.jaxpr, len(test.consts))
    if blocks is None:
        plain = WhileParams(*parts, sequential=sequential)
        return result_tree(tree, while_p.bind(plain, *operands))
    linear = (False,) * len(operands)
    params = BoundedWhileParams(*parts, blocks, linear, sequential=sequential)
    return result_tree(tree, bounded_while_p.bind(params, *operands))


def check_truth(fun: object, tree: PyTreeDef, avals: Sequence[ShapedArray]) -> None:
    """Raise TypeError unless a predicate gives one boolean scalar."""
    if len(avals) != 1 or avals[0].shape or avals[0].dtype != bool_:
        got = f"output type(s) [ShapedArray({avals[0].str_short()})]" if avals else ""
        if tree.num_nodes != 1 or not got:
            got = f"pytree {tree}"
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got {got}. It is "
            f"{name_and_line(fun)}"
        )


def while_in_python(
    cond_fun: Callable[[Any], object], body_fun: Callable[[Any], object], value: object
) -> Any:
    leaves, tree = pytrees.flatten(value)
    value = tree.unflatten([as_array(x) for x in leaves])
    while bool(cond_fun(value)):
        value = body_fun(value)
    return value


def counted_in_python(
    start: Any, steps: int, body_fun: Callable[[Any, Any], object], value: object
) -> Any:
    value = unchanging(value)
    for i in range(steps):
        value = body_fun(start + i, value)
    return value


def unchanging(value: object) -> Any:
    """A carry whose NumPy arrays are arrays, which a body cannot write into."""
    leaves, tree = pytrees.flatten(value)
    return tree.unflatten(
        [as_array(x) if isinstance(x, np.ndarray) else x for x in leaves]
    )


def steps_between(lower: object, upper: object, number: Callable[[Any], float]) -> int:
    """The number of integers from `lower` up to `upper`, which is left out."""
    if isinstance(lower, SymbolicSize) or isinstance(upper, SymbolicSize):
        return slice_count(as_size(lower), as_size(upper), 1)
    return max(math.ceil(number(upper) - number(lower)), 0)


@overload
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[Any, Array], Array],
    init_val: HostArray,
    *,
    unroll: int | bool | None = None,
    vmap_method: str = "masked",
    max_steps: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> Array: ...
@overload
def fori_loop[C](
    lower: object,
    upper: object,
    body_fun: Callable[[Any, C], C],
    init_val: C,
    *,
    unroll: int | bool | None = None,
    vmap_method: str = "masked",
    max_steps: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> C: ...
def fori_loop(
    lower: Any,
    upper: object,
    body_fun: Callable[[Any, Any], Any],
    init_val: object,
    *,
    unroll: int | bool | None = None,
    vmap_method: str = "masked",
    max_steps: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> Any:
    """`val = body_fun(i, val)` for i from `lower` up to, but not including, `upper`.

    With bounds that are known while tracing, as all values are under eager derivatives,
    it is a `scan`, which has derivatives in both modes and obeys `unroll`; else a
    `while_loop`, which obeys `vmap_method` and has reverse-mode derivatives if
    `max_steps` bounds it.

    Args:
        lower: the first index, an integer or floating scalar.
        upper: the bound of the indices, a scalar of the same dtype as `lower`.
        body_fun: a function of the index and the value to the next value, of the same
            structure, shapes and dtypes.
        init_val: the first value, a tree of arrays.
        unroll: the number of steps that are compiled after each other, all of them for
            0 or True; None for 1. It needs known bounds.
        vmap_method: "masked", the default, or "sequential"; see `while_loop`.
        max_steps: the most steps; None for no bound.
        checkpoints: the memory plan of reverse mode, "sqrt", "log" or a number, see
            `scan`; with None a `scan` stores what it needs of every step, and a bounded
            `while_loop` takes "sqrt".

    Returns:
        The last value; `init_val` if `upper` is at most `lower`.

    Raises:
        TypeError: the bounds are not scalars of the same real dtype, or the value does
            not keep its types.
        ValueError: `unroll` is given, and the bounds are not known; or there is no such
            `vmap_method`; or the checkpoints are too few, or come without `max_steps`
            where the bounds are not known.

    >>> import verax
    >>> verax.lax.fori_loop(0, 5, lambda i, total: total + i, 0).item()
    10
    """
    check_callable("lax.fori_loop", body_fun)
    is_sequential("fori_loop", vmap_method)
    counter = counter_type(lower, upper)
    if not (is_known(lower) and is_known(upper)):
        if unroll is not None:
            raise ValueError("fori_loop: Can only use `unroll` with known bounds")
        start = (as_operand(lower, counter), as_operand(upper, counter), init_val)
        return counting(body_fun, start, vmap_method, max_steps, checkpoints)
    number = float if is_float(counter.dtype) else int
    steps = steps_between(lower, upper, number)
    if max_steps is not None:
        steps = min(steps, whole_steps(max_steps))
    if STATE.disable_jit:
        return counted_in_python(number(lower), steps, body_fun, init_val)

    def step(carry: Any, _: None) -> Any:
        i, value = carry
        return (add(i, 1), body_fun(i, value)), None

    stands_for(step, body_fun)
    carry = (as_operand(lower, counter), init_val)
    at_once = 1 if unroll is None else unroll
    last, _ = scanned(step, carry, None, steps, False, at_once, checkpoints, body_fun)
    return last[1]


def counting(
    body_fun: Callable[[Any, Any], Any],
    start: tuple[object, object, object],
    vmap_method: str,
    max_steps: int | None,
    checkpoints: Checkpoints | None,
) -> object:
    """`fori_loop` from (lower, upper, value) as a `while_loop`."""
    if checkpoints is not None and max_steps is None:
        raise ValueError(
            "fori_loop: checkpoints need max_steps if the bounds are not known while "
            "tracing"
        )

    def go_on(carry: Any) -> object:
        return lt(carry[0], carry[1])

    def advance(carry: Any) -> Any:
        i, end, value = carry
        return add(i, 1), end, body_fun(i, value)

    stands_for(advance, body_fun)
    return while_loop(
        go_on,
        advance,
        start,
        vmap_method=vmap_method,
        max_steps=max_steps,
        checkpoints=checkpoints or "sqrt",
    )[2]


def counter_type(lower: object, upper: object) -> ShapedArray:
    """The type of the counter: that of the bound that is not a Python integer."""
    avals = [aval_of(lower), aval_of(upper)]
    strong = {a.dtype for a in avals if not a.weak_type}
    floats = {is_float(a.dtype) for a in avals}
    real = all(is_integer(a.dtype) or is_float(a.dtype) for a in avals)
    if any(a.shape for a in avals) or not real or len(strong) > 1 or len(floats) > 1:
        raise TypeError(
            "The lower and upper arguments to fori_loop must have equal types, and be "
            f"integer or float scalars, not {avals[0]} and {avals[1]}"
        )
    return ShapedArray((), strong.pop()) if strong else avals[0]


@overload
def map[Y](
    f: Callable[[Array], Y], xs: np.ndarray, *, batch_size: int | None = None
) -> Y: ...
@overload
def map[X, Y](f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y: ...
def map(
    f: Callable[[Any], object], xs: object, *, batch_size: int | None = None
) -> Any:
    """`f` of each row of `xs`, one after the other, stacked.

    Args:
        f: a function of one row, to a tree of arrays.
        xs: a tree of arrays with one first dimension.
        batch_size: the number of rows that go through `vmap(f)` together; None or 0 for
            one row at a time, without `vmap`.

    Returns:
        A tree like that of `f`, whose arrays have the size of `xs` as a first
        dimension.

    Raises:
        ValueError: the sizes of first dimensions differ, or `batch_size` is negative.

    >>> import verax, verax.numpy as vnp
    >>> verax.lax.map(lambda x: x * x, vnp.arange(4)).tolist()
    [0, 1, 4, 9]
    """
    check_callable("lax.map", f)

    def step(_: object, x: object) -> Any:
        return (), f(x)

    stands_for(step, f)
    if not batch_size:
        return scan(step, (), xs)[1]
    if batch_size < 0:
        raise ValueError(f"map: batch_size must not be negative, not {batch_size}")
    rows, tree = pytrees.flatten(xs)
    count = scan_length(rows, tree, None)
    batched = vmap(f)
    if count <= batch_size:
        return batched(xs)
    whole = count - count % batch_size
    sizes = (whole // batch_size, batch_size)
    blocks = [
        reshape(slice_in_dim(x, 0, whole), (*sizes, *aval_of(x).shape[1:]))
        for x in rows
    ]
    out = scan(lambda _, x: ((), batched(x)), (), tree.unflatten(blocks))[1]
    leaves, out_tree = pytrees.flatten(out)
    leaves = [reshape(y, (whole, *y.shape[2:])) for y in leaves]
    if whole < count:
        rest = batched(tree.unflatten([slice_in_dim(x, whole, count) for x in rows]))
        tail = pytrees.flatten(rest)[0]
        leaves = [concatenate((y, z), 0) for y, z in zip(leaves, tail, strict=True)]
    return out_tree.unflatten(leaves)


@overload
def associative_scan(
    fn: Callable[[Array, Array], Array],
    elems: np.ndarray,
    reverse: bool = False,
    axis: int = 0,
) -> Array: ...
@overload
def associative_scan[T](
    fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0
) -> T: ...
def associative_scan(
    fn: Callable[[Any, Any], object],
    elems: object,
    reverse: bool = False,
    axis: int = 0,
) -> Any:
    """The running combinations of the elements along `axis`, in log-many steps.

    Args:
        fn: an associative function of two trees like `elems` to a third. It gets slices
            of many elements at once, and works on them elementwise along `axis`.
        elems: a tree of arrays with the same size along `axis`.
        reverse: whether the elements are taken from the end, the later one first.
        axis: the dimension to work along, by default the first.

    Returns:
        A tree like `elems`: at each place the combination of all elements up to it.

    Raises:
        TypeError: `fn` is not a function, or returns another structure.
        ValueError: the sizes along `axis` differ.

    >>> import verax, verax.numpy as vnp
    >>> verax.lax.associative_scan(vnp.maximum, vnp.array([1, 3, 2, 5])).tolist()
    [1, 3, 3, 5]
    """
    check_callable("lax.associative_scan", fn)
    leaves, tree = pytrees.flatten(elems)
    if not leaves:
        return elems
    places = [as_axis("associative_scan", axis, aval_of(x).ndim) for x in leaves]
    sizes = {aval_of(x).shape[k] for x, k in zip(leaves, places, strict=True)}
    if len(sizes) > 1 or len(set(places)) > 1:
        raise ValueError(
            "associative_scan takes arrays of the same size along the axis, not "
            f"{', '.join(str(aval_of(x)) for x in leaves)}"
        )
    place = places[0]

    def combine(left: tuple[Array, ...], right: tuple[Array, ...]) -> Any:
        out = fn(tree.unflatten(left), tree.unflatten(right))
        result, out_tree = pytrees.flatten(out)
        if out_tree != tree:
            difference = mismatch(tree, out_tree, "output")
            raise TypeError(
                f"associative_scan: {function_name(fn)} must return the same "
                f"structure as it takes, but at {difference}"
            )
        check_results(fn, result)
        return tuple(result)

    def turned(xs: Sequence[object]) -> tuple[Any, ...]:
        return tuple([rev(x, (place,)) for x in xs]) if reverse else tuple(xs)

    given = turned([x if isinstance(x, Array) else broadcast(x, ()) for x in leaves])
    if given[0].shape[place] > 1:  # what is put together from parts is not weak
        given = tuple([convert(x, x.dtype) for x in given])
    return tree.unflatten(turned(recurrence.associative_scan(combine, given, place)))
