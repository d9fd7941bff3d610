"""Floor 6: `scan`, a loop over the rows of arrays.

One idea: the body is traced once and the loop is one equation, whatever its length;
it has derivatives in both modes::

    total, sums = lax.scan(lambda c, x: (c + x, c + x), 0.0, xs)
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, SupportsIndex, overload

import numpy as np

from verax.api.tracing.apply import ENGINE
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import function_name, stands_for
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, int32, is_bool, numpy_dtype
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, Primitive, field_names
from verax.lax.branching import (
    Body,
    as_operand,
    check_carry,
    paths,
    settled,
    trace_body,
    with_carry_types,
)
from verax.ops.calls.call import CallParams
from verax.ops.control.checkpointed_loops import checkpointed_scan_p
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import CheckpointedScanParams, ScanParams
from verax.ops.elementwise import arith, bits
from verax.ops.elementwise.convert import convert
from verax.ops.reductions import reduce as reductions
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast, broadcast_in_dim
from verax.ops.structure.slicing import index_in_dim
from verax.ops.windows.general_reduce import FoldParams, reduce_p
from verax.ops.windows.reduce_window import (
    FoldWindowParams,
    WindowParams,
    as_pads,
    dilated,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_p,
    reduce_window_sum_p,
    window_counts,
)
from verax.rules.families.reducer import (
    ReduceParams,
    Scalar,
    highest,
    lowest,
    reduce_params,
)
from verax.rules.rows.builder import Tracer
from verax.rules.rows.row import Row
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import (
    AbstractValueError,
    HostArray,
    check_callable,
    shown,
)
from verax.rules.values.operands import adopt
from verax.rules.values.reference import Ref
from verax.rules.values.sizes import (
    ShapeError,
    as_axes,
    as_integers,
    as_size,
    unsharded,
)
from verax.rules.values.state import STATE
from verax.transforms.passes.cse import fold

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
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
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
    check_callable("scan", f)
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
    avals = leaf_avals(leaves, lambda: [f"init{p} of scan" for p in paths(tree)])
    check_rows([aval_of(x) for x in rows])
    row_avals = [aval_of(x).element() for x in rows]
    types, body, y_tree = trace_step(f, tree, avals, row_tree, row_avals, counts)
    given = [as_operand(x, aval) for x, aval in zip(leaves, types, strict=True)]
    operands = (*body.consts, *given, *rows)
    params = ScanParams(
        body.jaxpr,
        count,
        (False,) * len(operands),
        len(given),
        len(body.consts),
        bool(reverse),
        at_once,
    )
    outs = bind_loop(params, blocks, operands)
    carry, ys = params.results(outs)
    return result_tree(tree, carry), result_tree(y_tree, ys)


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
) -> tuple[Step, list[Any], PyTreeDef, int]:
    """The step, the arrays over whose rows it goes, their structure, and how often."""
    rows, tree = pytrees.flatten(xs)
    count = scan_length(rows, tree, length)
    if any([isinstance(x, Ref) for x in rows]):
        f, rows, tree = over_references(f, rows, tree, count)
    return f, rows, tree, count


def over_references(
    f: Step, rows: Sequence[Any], tree: PyTreeDef, count: int
) -> tuple[Step, list[Any], PyTreeDef]:
    """A step that gets rows of references as parts of the whole ones.

    So the loop needs not split and join what they hold.
    """
    flags = [isinstance(x, Ref) for x in rows]
    arrays = [x for x, flag in zip(rows, flags, strict=True) if not flag]

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
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
        check_pair(f, body.out_tree)
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


def check_pair(f: object, tree: PyTreeDef) -> None:
    """Raise TypeError unless a step returns a carry and a row."""
    node = tree.node_data()
    kind = None if node is None else node[0]
    if kind in (tuple, list) and len(tree.children()) == 2:
        return
    result = "an array" if kind is None else kind.__name__
    raise TypeError(
        f"scan: {function_name(f)} must return a pair (carry, y), not {result}"
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
            sizes["length"] = as_size(length)
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
    if len(set(sizes.values())) > 1:
        result = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise ValueError(
            f"scan: all arrays in xs must have the same first dimension, not {result}"
        )
    return next(iter(sizes.values()))


def unrolling(unroll: SupportsIndex, count: int) -> int:
    """The number of steps written after each other; 0 and True mean all."""
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
) -> tuple[Any, Any]:
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


# -----------------------------------------------------------------------------
# `reduce` and `reduce_window` by a Python function of two elements.
#
# Trace the function once on scalars; what it turns out to be decides the row:
# a sum, a product, an extreme, or a fold by any jaxpr::
#
#     reduce(x, 0.0, lax.add, (0,))                     # reduce_sum
#     reduce((x, i), (-inf, 0), first_largest, (1,))    # the largest, and where


# Elements up to which an array is read while a computation is traced.
READABLE = 1 << 30
type Identity = Callable[[DType], Scalar]
MONOIDS: Mapping[Primitive, tuple[Row[ReduceParams], Identity]] = MappingProxyType(
    {
        arith.add_p: (reductions.reduce_sum_p, lambda dtype: 0),
        arith.mul_p: (reductions.reduce_prod_p, lambda dtype: 1),
        arith.max_p: (reductions.reduce_max_p, lowest),
        arith.min_p: (reductions.reduce_min_p, highest),
        bits.and_p: (reductions.reduce_and_p, reductions.ones),
        bits.or_p: (reductions.reduce_or_p, lambda dtype: 0),
        bits.xor_p: (reductions.reduce_xor_p, lambda dtype: 0),
    }
)
WINDOWS: Mapping[Primitive, Row[WindowParams]] = MappingProxyType(
    {
        arith.add_p: reduce_window_sum_p,
        arith.max_p: reduce_window_max_p,
        arith.min_p: reduce_window_min_p,
    }
)


def folded(
    name: str, operands: object, init_values: object, computation: Callable[..., object]
) -> tuple[list[Any], list[Any], Jaxpr, Any]:
    """Arrays, initial values, the computation as a jaxpr, and the structure of all."""
    arrays, tree = pytrees.flatten(operands)
    inits, init_tree = pytrees.flatten(init_values)
    if tree != init_tree or not arrays:
        raise ShapeError(
            f"{name}: Operands must have the same tree structure as init_values, one "
            f"for each array, but their structures are {tree} and {init_tree}"
        )
    shapes = [aval_of(x).shape for x in inits]
    if any(shapes):
        raise ShapeError(
            f"{name} found non-scalar initial value: init_values have shapes {shapes}"
        )
    avals = [aval_of(x) for x in arrays]
    scalars = [ShapedArray((), aval.dtype) for aval in avals]
    one = tree.unflatten(range(len(arrays)))
    _, in_tree = pytrees.flatten(((one, one), {}))
    traced = trace(computation, in_tree, [*scalars, *scalars], name)
    if traced.captured:
        raise TypeError(
            f"{name}: {function_name(computation)} uses a traced value of an outer "
            "function; a computation may use only its two arguments and constants"
        )
    if traced.out_tree != tree:
        raise ShapeError(
            f"{name} output must have the same tree structure as the operands: "
            f"{function_name(computation)} returns {traced.out_tree}, not {tree}"
        )
    jaxpr = traced.jaxpr
    if jaxpr.used_consts:
        # A compiled fold takes scalars alone, so elements of arrays are read here.
        jaxpr = fold(ENGINE, jaxpr, READABLE)
    operation = monoid_of(jaxpr)
    inits = [initial(x, aval, operation) for x, aval in zip(inits, avals, strict=True)]
    return arrays, inits, jaxpr, tree


def initial(x: object, aval: ShapedArray, operation: Primitive | None) -> Any:
    """An initial value for arrays of type `aval`.

    The neutral element of another dtype stands for that of the array's: 0.0 for 0, and
    -inf for the least integer.

    >>> int(initial(-np.inf, ShapedArray((2,), np.dtype("int8")), arith.max_p))
    -128
    """
    if operation and operation in MONOIDS and not isinstance(x, Tracer):
        identity, own = MONOIDS[operation][1], aval_of(x).dtype
        if own != aval.dtype and is_identity(x, identity(own), own):
            return np.asarray(identity(aval.dtype), numpy_dtype(aval.dtype))
    return adopt(x, aval)


def monoid_of(jaxpr: Jaxpr) -> Primitive | None:
    """The binary operation that a computation is, if it is one of two scalars."""
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2:
        return None
    (eqn,) = jaxpr.eqns
    if tuple(eqn.outvars) != tuple(jaxpr.outvars) or set(eqn.invars) != set(
        jaxpr.invars
    ):
        return None
    if isinstance(eqn.params, CallParams):
        return monoid_of(eqn.params.jaxpr)
    return eqn.primitive


def is_identity(x: object, identity: Scalar, dtype: DType) -> bool:
    """Whether an initial value is known now, and is the neutral element."""
    if isinstance(x, Tracer):
        return False
    value = x.numpy() if isinstance(x, ConcreteArray) else np.asarray(x)
    return value.shape == () and bool(
        value.astype(numpy_dtype(dtype)) == np.asarray(identity, numpy_dtype(dtype))
    )


def after(operation: Primitive, y: Array, init: object, identity: Identity) -> Array:
    """A reduction from the neutral element, with the initial value put before it."""
    if is_identity(init, identity(y.dtype), y.dtype):
        return convert(y, y.dtype, y.weak_type and aval_of(init).weak_type)
    assert isinstance(operation, Row)
    return operation.call(NO_PARAMS, broadcast_in_dim(init, y.shape, ()), y)


@overload
def reduce(
    operands: Array | HostArray,
    init_values: Array | HostArray,
    computation: Callable[[Any, Any], object],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> Array: ...
@overload
def reduce[T](
    operands: T,
    init_values: object,
    computation: Callable[[Any, Any], object],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> T: ...
def reduce(
    operands: object,
    init_values: object,
    computation: Callable[[Any, Any], object],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> Any:
    """Arrays of the same shape, folded by `computation` over `dimensions`.

    Args:
        operands: an array, or a tree of arrays of the same shape.
        init_values: a tree of scalars like `operands`, of their dtypes. They are
            neutral for `computation`: how often they take part is up to XLA.
        computation: an associative function of two trees of scalars to one.
        dimensions: the dimensions to reduce, negative ones from the end.
        out_sharding: only None.

    Returns:
        A tree like `operands`, of the same dtypes, without these dimensions.

    Raises:
        TypeError: structures, shapes or dtypes do not match, or `computation` uses a
            value that is being traced.
        ValueError: a dimension does not exist or is named twice, or `out_sharding` says
            something.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    >>> lax.reduce(x, 0.0, lax.add, (0,))
    Array([4., 6.], dtype=float32)
    """
    unsharded("reduce", out_sharding)
    arrays, inits, jaxpr, tree = folded("reduce", operands, init_values, computation)
    rank = aval_of(arrays[0]).ndim
    dims = tuple(sorted(as_axes("reduce", dimensions, rank)))
    operation = monoid_of(jaxpr)
    if operation is not None and operation in MONOIDS:
        row, identity = MONOIDS[operation]
        y = row.call(reduce_params(dims), arrays[0])
        return tree.unflatten([after(operation, y, inits[0], identity)])
    if not dims:
        return operands
    return tree.unflatten(reduce_p.bind(FoldParams(jaxpr, dims), *arrays, *inits))


def window_params(
    shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> WindowParams:
    """The params of windows, defaults filled in and padding as numbers."""
    name, rank = "reduce_window", len(shape)
    given = {
        "window_dimensions": window_dimensions,
        "window_strides": window_strides,
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    result = {
        argument: (1,) * rank if values is None else as_integers(name, argument, values)
        for argument, values in given.items()
    }
    for argument, values in result.items():
        if len(values) != rank or any(value < 1 for value in values):
            raise ShapeError(
                f"{name}: {argument} must have every element be positive, one "
                f"for each of the {rank} dimensions, not {values}"
            )
    windows, strides, base, spread = result.values()
    sizes = tuple(map(dilated, shape, base))
    pads = as_pads(name, padding, sizes, tuple(map(dilated, windows, spread)), strides)
    return WindowParams(windows, strides, pads, base, spread)


@overload
def reduce_window(
    operand: Array | HostArray,
    init_value: object,
    computation: Callable[[Any, Any], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array: ...
@overload
def reduce_window[T](
    operand: T,
    init_value: object,
    computation: Callable[[Any, Any], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> T: ...
def reduce_window(
    operand: object,
    init_value: object,
    computation: Callable[[Any, Any], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """`reduce` over windows that move over the arrays, as pooling layers do.

    The derivative of an extreme goes to the first of equal elements.

    Args:
        operand: an array, or a tree of arrays of the same shape.
        init_value: a tree of scalars like `operand`, of their dtypes, neutral for
            `computation`. Padding, and the holes of dilated arrays, hold it.
        computation: an associative function of two trees of scalars to one.
        window_dimensions: the sizes of windows, one for each dimension.
        window_strides: the steps in which windows move; None for 1.
        padding: "SAME", "SAME_LOWER", "VALID", the default, or a pair (low, high) for
            each dimension.
        base_dilation: the distances between neighbours of the arrays; None for 1.
        window_dilation: the distances between neighbours in a window; None for 1.

    Returns:
        A tree like `operand`, of the same dtypes, with one element for each place of
        the window; see `reduce_window_shape_tuple`.

    Raises:
        TypeError: structures, shapes or dtypes do not match.
        ValueError: a parameter is out of range.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.array([1.0, 5.0, 2.0, 4.0], np.float32)
    >>> lax.reduce_window(x, -np.inf, lax.max, (2,), (2,))
    Array([5., 4.], dtype=float32)
    """
    arrays, inits, jaxpr, tree = folded(
        "reduce_window", operand, init_value, computation
    )
    aval = aval_of(arrays[0])
    params = window_params(
        aval.shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    operation = monoid_of(jaxpr)
    if operation is not None and operation in WINDOWS and not is_bool(aval.dtype):
        row, identity = WINDOWS[operation], MONOIDS[operation][1]
        y = row.call(params, arrays[0])
        return tree.unflatten([after(operation, y, inits[0], identity)])
    fold = FoldWindowParams(*params.geometry(aval.shape)[1:], jaxpr)
    return tree.unflatten(reduce_window_p.bind(fold, *arrays, *inits))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of what `reduce_window` makes of an array of that shape.

    Args:
        operand_shape: the shape of the array.
        window_dimensions: the sizes of windows, one for each dimension.
        window_strides: the steps in which windows move.
        padding: a pair (low, high) for each dimension, or a name as in `reduce_window`.
        base_dilation: the distances between neighbours of the array; None for 1.
        window_dilation: the distances between neighbours in a window; None for 1.

    Returns:
        A shape with as many dimensions.

    Raises:
        ValueError: a parameter is out of range.

    >>> from verax import lax
    >>> lax.reduce_window_shape_tuple((5,), (3,), (2,), ((1, 1),))
    (3,)
    """
    params = window_params(
        operand_shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    return window_counts(params.geometry(tuple(operand_shape)))
