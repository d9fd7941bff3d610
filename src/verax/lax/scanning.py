"""Floor 6: `scan`, a loop over the rows of arrays.

One idea: the body is traced once and the loop is one equation, whatever its length;
it has derivatives in both modes::

    total, sums = lax.scan(lambda c, x: (c + x, c + x), 0.0, xs)
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, SupportsIndex, overload

import numpy as np
from attrs import evolve

from verax.api.tracing.apply import as_array
from verax.api.tracing.reference_checks import is_part
from verax.api.tracing.trace import leaf_avals
from verax.api.tracing.wrapping import ParameterNames, function_name, stands_for
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import int32, is_bool
from verax.ir.jaxpr import Jaxpr, Var, field_names
from verax.lax.agreement import check_carry, paths
from verax.lax.branching import (
    Body,
    as_operand,
    settled,
    trace_body,
    with_carry_types,
)
from verax.ops.control.checkpointed_loops import checkpointed_scan_p
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import CheckpointedScanParams, ScanParams
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast
from verax.ops.structure.slicing import index_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.rows.infer import chosen
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import (
    AbstractValueError,
    HostArray,
    check_callable,
    integer_of,
    shown,
)
from verax.rules.values.memo import kept_with, pure
from verax.rules.values.reference import Ref
from verax.rules.values.sizes import (
    named_size,
)
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# Memory plans: into which blocks a loop of some length is divided.
#
# Blocks b1, ..., bd with room for all steps store b1 + ... + bd carries in
# reverse mode and cost d + 1 evaluations of each step, so a budget of carries asks for
# the fewest blocks that keep to it::
#
#     blocks_of("scan", 1000, "sqrt")     # (32, 32)
#     blocks_of("scan", 1000, "log")      # (4, 4, 4, 4, 4)
#     blocks_of("scan", 1000, 40)         # (10, 10, 10)


NAMED: Final = ("sqrt", "log")
BASE: Final = 4
"""Blocks of 4 store as many carries as blocks of 2, for half of the evaluations."""

type Checkpoints = int | str


def root(steps: int, degree: int) -> int:
    """The least b with b ** degree >= steps.

    >>> root(1000, 3), root(1001, 3), root(1, 2)
    (10, 11, 1)
    """
    low, high = 0, steps
    while low < high:
        middle = (low + high) // 2
        if middle**degree >= steps:
            high = middle
        else:
            low = middle + 1
    return low


def even_blocks(steps: int, depth: int) -> tuple[int, ...]:
    """`depth` blocks of about one size with room for all steps, and little more.

    >>> even_blocks(100, 2), even_blocks(7, 2), even_blocks(100, 3)
    ((10, 10), (3, 3), (5, 5, 4))
    """
    if not steps:
        return (0,)
    blocks = []
    for level in range(depth, 0, -1):
        block = root(steps, level)
        blocks.append(block)
        steps = -(-steps // block)
    return tuple(blocks)


def depth_of(steps: int, base: int) -> int:
    """The number of blocks of `base` that have room for all steps."""
    depth = 1
    while base**depth < steps:
        depth += 1
    return depth


def blocks_of(name: str, steps: int, checkpoints: Checkpoints) -> tuple[int, ...]:
    """The blocks of a loop of `steps` that keeps to a budget of carries.

    `checkpoints` is the budget, "sqrt" for about twice the square root of the steps,
    or "log" for about twice their binary logarithm.

    Raises:
        TypeError: `checkpoints` is something else.
        ValueError: the budget is too small for so many steps.
    """
    if checkpoints in NAMED:
        if steps <= BASE:
            return (steps,)
        depth = 2 if checkpoints == "sqrt" else depth_of(steps, BASE)
        return even_blocks(steps, depth)
    if isinstance(checkpoints, bool) or not isinstance(checkpoints, int):
        raise TypeError(
            f"{name}: checkpoints must be a number of carries, 'sqrt' or 'log', not "
            f"{checkpoints!r}"
        )
    plans = [even_blocks(steps, d) for d in range(1, depth_of(steps, 2) + 1)]
    for blocks in plans:
        if sum(blocks) <= checkpoints:
            return blocks
    raise ValueError(
        f"{name}: {checkpoints} checkpoints are too few for {steps} steps; at least "
        f"{min(map(sum, plans))} are needed, and 'log' takes "
        f"{sum(blocks_of(name, steps, 'log'))}"
    )


@overload
def scan[X, Y](
    f: Callable[[Array, X], tuple[Array, Y]],
    init: HostArray,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoints: Checkpoints | None = None,
) -> tuple[Array, Y]: ...
@overload
def scan[Y](
    f: Callable[[Array, Array], tuple[Array, Y]],
    init: HostArray,
    xs: np.ndarray,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoints: Checkpoints | None = None,
) -> tuple[Array, Y]: ...
@overload
def scan[C, Y](
    f: Callable[[C, Array], tuple[C, Y]],
    init: C,
    xs: np.ndarray,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoints: Checkpoints | None = None,
) -> tuple[C, Y]: ...
@overload
def scan[C, X, Y](
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoints: Checkpoints | None = None,
) -> tuple[C, Y]: ...
def scan(
    f: Callable[[Any, Any], tuple[object, object]],
    init: object,
    xs: object = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoints: Checkpoints | None = None,
) -> tuple[Any, Any]:
    """`f` over the rows of `xs`, with a carry: `carry, y = f(carry, x)` for each.

    Reverse mode stores what it needs of each step. With `checkpoints` it stores so many
    carries at a time at most, and computes the steps again: "sqrt" stores about twice
    the square root of the length for 3 evaluations of each step instead of 1, "log"
    about twice the logarithm for 1 + log4(length) evaluations, a number what it says;
    see "Control flow" in the documentation.

    Args:
        f: a function of the carry and a row to a pair: the next carry, of the same
            structure, shapes and dtypes, and a tree of arrays y.
        init: the first carry, a tree of arrays.
        xs: a tree of arrays with one first dimension; None for no rows, where `length`
            says how many steps there are and `f` gets None.
        length: the number of steps; None for the size of the first dimensions.
        reverse: whether to begin with the last row; ys stay in the order of rows.
        unroll: the number of steps that are compiled after each other, all of them for
            0 or True; by default 1.
        _split_transpose: ignored.
        checkpoints: "sqrt", "log" or a number of carries; None stores every step.

    Returns:
        The last carry, and the ys stacked along a new first dimension.

    Raises:
        TypeError: `f` returns no pair, or another carry than it takes; the message
            shows the difference.
        ValueError: the sizes of first dimensions differ, or nothing tells the length;
            or there are too few checkpoints for the length.

    >>> import verax, verax.numpy as vnp
    >>> total, sums = verax.lax.scan(lambda c, x: (c + x, c + x), 0, vnp.arange(4))
    >>> total.item(), sums.tolist()
    (6, [0, 1, 3, 6])
    """
    check_callable("lax.scan", f)
    return scanned(f, init, xs, length, reverse, unroll, checkpoints)


def scanned(
    f: "Step",
    init: object,
    xs: object,
    length: int | None,
    reverse: bool,
    unroll: int | bool,
    checkpoints: Checkpoints | None,
    counts: Callable[..., object] | None = None,
) -> tuple[Any, Any]:
    """`scan`; `counts` is the user's function if `fori_loop` made `f` of it."""
    f, rows, row_tree, count = rows_of(f, xs, length)
    at_once = unrolling(unroll, count)
    blocks = None if checkpoints is None else blocks_of("scan", count, checkpoints)
    if STATE.disable_jit:
        return scan_in_python(f, init, rows, row_tree, count, reverse)
    leaves, tree = pytrees.flatten(init)
    carried = ParameterNames(f).name(0) if any(map(is_reference, leaves)) else None
    root = carried or "init"
    avals = leaf_avals(leaves, lambda: [f"{root}{p} of scan" for p in paths(tree)])
    check_rows([aval_of(x) for x in rows])
    row_avals = [aval_of(x).element() for x in rows]
    types, body, y_tree = trace_step(f, tree, avals, row_tree, row_avals, counts)
    given = [as_operand(x, aval) for x, aval in zip(leaves, types, strict=True)]
    operands = (*body.consts, *given, *rows)
    same = rows_among(body.jaxpr, len(given), len(operands) - len(rows))
    due = (*[True] * len(given), *[place is None for place in same])
    step = body.jaxpr
    params = ScanParams(
        step if all(due) else kept_with(step, with_results, step, due),
        count,
        (False,) * len(operands),
        len(given),
        len(body.consts),
        bool(reverse),
        at_once,
    )
    outs = bind_loop(params, blocks, operands)
    carry, stacked = params.results(outs)
    made = iter(stacked)
    ys = [next(made) if place is None else as_array(rows[place]) for place in same]
    return result_tree(tree, carry), result_tree(y_tree, ys)


@pure()
def with_results(jaxpr: Jaxpr, due: tuple[bool, ...]) -> Jaxpr:
    """A step with the results that are `due`; what it computes, it still does."""
    return evolve(jaxpr, outvars=tuple(chosen(due, jaxpr.outvars)))


def rows_among(jaxpr: Jaxpr, carries: int, start: int) -> list[int | None]:
    """Which row each result behind the carries of a step is, if it is one.

    Stacked, it is what the rows were taken from. Rows are the inputs from `start` on.
    """
    places = {v: k for k, v in enumerate(jaxpr.invars[start:])}
    ys = jaxpr.outvars[carries:]
    return [places.get(y) if isinstance(y, Var) else None for y in ys]


def check_rows(avals: Sequence[ShapedArray]) -> None:
    """Raise ValueError if an explicit mesh axis splits what a loop goes over."""
    for aval in avals:
        if aval.explicit is not None and aval.explicit.splits[0]:
            raise ValueError(
                f"scan: the 0th dimension of all xs should be replicated, but got "
                f"{aval}; reshard it with verax.sharding.reshard"
            )


type Step = Callable[[Any, Any], tuple[Any, Any]]


def rows_of(
    f: Step, xs: object, length: int | None
) -> tuple[Step, list[object], PyTreeDef, int]:
    """The step, the arrays over whose rows it goes, their structure, and how often."""
    rows, tree = pytrees.flatten(xs)
    if any([isinstance(x, Ref) for x in rows]):
        rows, tree = pytrees.flatten(xs, is_part)
    count = scan_length(rows, tree, length)
    if any([isinstance(x, Ref) for x in rows]):
        f, rows, tree = over_references(f, rows, tree, count)
    return f, rows, tree, count


def over_references(
    f: Step, rows: Sequence[Any], tree: PyTreeDef, count: int
) -> tuple[Step, list[object], PyTreeDef]:
    """A step that gets rows of references as parts of the whole ones.

    So the loop needs not split and join what they hold.
    """
    flags = [isinstance(x, Ref) for x in rows]
    arrays = [x for x, flag in zip(rows, flags, strict=True) if not flag]

    def step(carry: object, row: Sequence[object]) -> tuple[Any, Any]:
        i, *given = row
        own = iter(given)
        parts = [
            x.at[i] if flag else next(own) for x, flag in zip(rows, flags, strict=True)
        ]
        return f(carry, tree.unflatten(parts))

    stands_for(step, f)
    out, row_tree = pytrees.flatten([broadcasted_iota(int32, (count,), 0), *arrays])
    return step, out, row_tree


def bind_loop(
    p: ScanParams, blocks: tuple[int, ...] | None, operands: Sequence[object]
) -> tuple[Array, ...]:
    """The equation of the loop: with blocks, one that reverse mode divides so."""
    if blocks is None:
        return scan_p.bind(p, *operands)
    known = {name: getattr(p, name) for name in field_names(ScanParams)}
    params = CheckpointedScanParams(**known, blocks=blocks)
    return checkpointed_scan_p.bind(params, *operands)


def trace_step(
    f: Callable[[Any, Any], tuple[object, object]],
    tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    row_tree: PyTreeDef,
    row_avals: Sequence[ShapedArray],
    counts: Callable[..., object] | None,
) -> tuple[list[ShapedArray], Body, PyTreeDef]:
    """The types of the carry, the step on them, and the structure of a row of ys."""
    filled = [t.unflatten(range(t.num_leaves)) for t in (tree, row_tree)]
    both = pytrees.flatten((tuple(filled), {}))[1]

    def traced(carry: Sequence[ShapedArray]) -> Body:
        purpose = "scan" if counts is None else "fori_loop"
        body = trace_body(f, both, [*carry, *row_avals], purpose, owner=counts)
        check_pair(f, body.out_tree, body.out_avals)
        return body

    types, body = settled(f, avals, traced)
    carry, y_tree = body.out_tree.children()
    check_carry(
        "scan" if counts is None else "fori_loop",
        f if counts is None else counts,
        tree,
        types,
        carry,
        body.out_avals[: carry.num_leaves],
        counted=counts is not None,
    )
    return types, with_carry_types(body, types), y_tree


def check_pair(f: object, tree: PyTreeDef, avals: Sequence[ShapedArray]) -> None:
    """Raise TypeError unless a step returns a carry and a row."""
    node = tree.node_data()
    kind = None if node is None else node[0]
    if kind in (tuple, list) and len(tree.children()) == 2:
        return
    result = avals[0].str_short() if kind is None else kind.__name__
    raise TypeError(
        f"scan body output must be a pair, got {result}. {function_name(f)} must "
        "return (carry, y)"
    )


def scan_length(rows: Sequence[object], tree: PyTreeDef, length: int | None) -> int:
    """The number of steps, on which all arrays of rows agree."""
    sizes: dict[str, int] = {}
    for path, x in zip(paths(tree), rows, strict=True):
        aval = x.aval if isinstance(x, Ref) else aval_of(x)
        if not aval.shape:
            raise ValueError(
                f"scan got value with no leading axis to scan over: xs{path} is {aval}"
            )
        sizes[f"xs{path}"] = aval.shape[0]
    if length is not None:
        try:
            expects = (
                "The `length` argument to `scan` expects a concrete `int` value. It"
            )
            sizes["length"] = named_size(length, expects)
        except AbstractValueError:
            raise
        except TypeError as error:
            raise TypeError(
                "scan: length must be an integer known while tracing, not "
                f"{shown(length)}"
            ) from error
        if sizes["length"] < 0:
            raise ValueError(f"scan: length must be at least 0, not {length}")
    if not sizes:
        raise ValueError("scan needs arrays to run over (xs), or a length")
    asked, leading = sizes.get("length"), set(sizes.values()) - {sizes.get("length")}
    if asked is not None and leading:
        raise ValueError(
            f"scan got `length` argument of {asked} which disagrees with leading axis "
            f"sizes {sorted(leading)}."
        )
    if len(set(sizes.values())) > 1:
        result = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise ValueError(
            f"scan: all arrays in xs must have the same first dimension, not {result}"
        )
    return next(iter(sizes.values()))


def unrolling(unroll: SupportsIndex, count: int) -> int:
    """The number of steps written after each other; 0 and True mean all."""
    if isinstance(unroll, Tracer):
        expects = "The `unroll` argument to `scan` expects a concrete `int` or `bool`"
        if is_bool(unroll.dtype) and not unroll.shape:
            unroll = bool(unroll.concrete(f"{expects} value. It"))
        else:
            unroll = integer_of(unroll, f"{expects} value. It")
    steps = operator.index(unroll)
    if steps < 0:
        raise ValueError(
            "`unroll` must be a boolean or an integer of at least 0, not "
            f"{shown(unroll)}"
        )
    if isinstance(unroll, bool):
        return max(count, 1) if unroll else 1
    return steps or max(count, 1)


def scan_in_python(
    f: Callable[[Any, Any], tuple[object, object]],
    carry: object,
    rows: Sequence[object],
    tree: PyTreeDef,
    count: int,
    reverse: bool,
) -> tuple[object, object]:
    """`scan` as a Python loop, for `disable_jit`."""
    if not count:
        raise ValueError("scan of length 0 is not supported under disable_jit")
    steps = range(count)
    ys = []
    for i in reversed(steps) if reverse else steps:
        row = [index_in_dim(x, i, keepdims=False) for x in rows]
        carry, y = f(carry, tree.unflatten(row))
        ys.append(y)
    parts = [pytrees.flatten(y)[0] for y in (reversed(ys) if reverse else ys)]
    stacked = [stack(column) for column in zip(*parts, strict=True)]
    return carry, pytrees.flatten(ys[0])[1].unflatten(stacked)


def stack(column: Sequence[object]) -> Array:
    return concatenate([broadcast(x, (1,)) for x in column], 0)
