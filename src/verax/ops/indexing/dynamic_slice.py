"""Floor 2: one window of an array at a start known at run time, read or replaced.

One idea: starts are moved so that the window lies inside, and the adjoint of reading a
window is to write it into zeros; along one dimension the others are taken whole::

    dynamic_slice(x, (i,), (2,))              adjoint: dynamic_update_slice(0, ct, (i,))
    dynamic_update_slice(x, u, (i,))          adjoint: dynamic_slice(ct, (i,), u.shape)
    dynamic_index_in_dim(x, i, axis=1)        # x[:, i:i+1]
"""

import builtins
from collections.abc import Sequence
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray, iinfo
from verax.ir.dtypes import int8, int32, is_integer, is_unsigned, uint8
from verax.ir.jaxpr import Params
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import gather_p
from verax.ops.indexing.gather_impl import CLIP, GatherParams, over_indices
from verax.ops.indexing.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from verax.ops.indexing.scatter import scatter_p
from verax.ops.indexing.scatter_impl import ScatterParams
from verax.ops.structure.create import zeros
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import (
    at_front,
    broadcast_in_dim,
    expand_dims,
    move_axis,
    squeeze,
)
from verax.ops.structure.slicing import index_in_dim, inserted
from verax.rules.families.linear import linear
from verax.rules.rows.emitter import Emitter, Operand, i64s
from verax.rules.rows.row import (
    REALS,
    Axis,
    Domain,
    Engine,
    Known,
    Linear,
    Rows,
    Sample,
    Tangent,
    Traits,
    no_flops,
)
from verax.rules.rows.type_shardings import in_place
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, aval_of
from verax.rules.values.conversions import shown
from verax.rules.values.operands import alike
from verax.rules.values.sizes import (
    as_axis,
    as_integers,
    as_sizes,
    draw_shape,
    draw_size,
    surely_less,
)


@frozen(eq=False, repr=False)
class DynamicSliceParams(Params):
    """The sizes of the window."""

    slice_sizes: Shape


@frozen(eq=False, repr=False)
class DynamicUpdateSliceParams(Params):
    """Nothing: the update has the sizes of the window."""


def check_window(
    name: str, x: ShapedArray, sizes: Shape, starts: Sequence[ShapedArray]
) -> None:
    """Raise TypeError unless the window fits in `x` and has a start per dimension."""
    fits = len(sizes) == x.ndim and all(
        0 <= n <= size for n, size in zip(sizes, x.shape, strict=True)
    )
    if not fits:
        raise TypeError(f"{name}: the window sizes {sizes} do not fit in {x}")
    if len(starts) != x.ndim or any(i.shape for i in starts):
        raise TypeError(
            f"{name} takes a scalar start for each dimension of {x}, not "
            f"{', '.join(map(str, starts)) or 'none'}"
        )
    if not all(is_integer(i.dtype) and i.dtype == starts[0].dtype for i in starts):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, not "
            f"{', '.join(str(i.dtype) for i in starts)}; convert them "
            "(verax.lax.convert_element_type)"
        )


def dynamic_slice_typing(
    p: DynamicSliceParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    x, *starts = avals
    check_window("dynamic_slice", x, p.slice_sizes, starts)
    return (x.with_shape(p.slice_sizes),)


def dynamic_update_slice_typing(
    p: DynamicUpdateSliceParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    x, update, *starts = avals
    if update.dtype != x.dtype:
        raise TypeError(
            f"dynamic_update_slice takes an update of the dtype of {x}, not {update}; "
            "convert it (verax.lax.convert_element_type)"
        )
    check_window("dynamic_update_slice", x, update.shape, starts)
    return (ShapedArray(x.shape, x.dtype, x.weak_type and update.weak_type),)


def window(
    shape: Shape, sizes: Shape, starts: Sequence[np.ndarray]
) -> tuple[builtins.slice, ...]:
    """The NumPy index of a window, moved inside."""
    firsts = [
        min(max(int(i), 0), size - n)
        for i, n, size in zip(starts, sizes, shape, strict=True)
    ]
    return tuple(builtins.slice(i, i + n) for i, n in zip(firsts, sizes, strict=True))


def evaluate_update(
    x: np.ndarray, update: np.ndarray, *starts: np.ndarray
) -> np.ndarray:
    result = np.array(x)
    result[window(x.shape, update.shape, starts)] = update
    return result


def transpose_dynamic_slice(
    engine: Engine, p: DynamicSliceParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, x, starts = cts[0], args[0].aval, args[1:]
    assert isinstance(ct, Array)
    return update_slice(zeros(x), ct, starts), *(None,) * len(starts)


def transpose_dynamic_update_slice(
    engine: Engine,
    p: DynamicUpdateSliceParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    ct, (x, update, *starts) = cts[0], args
    assert isinstance(ct, Array)
    kept, part = None, None
    if isinstance(x, Linear):
        kept = update_slice(ct, zeros(update.aval), starts)
    if isinstance(update, Linear):
        params = DynamicSliceParams(update.aval.shape)
        part = dynamic_slice_p.call(params, ct, *starts)
    return kept, part, *(None,) * len(starts)


def update_slice(x: Array, update: Array, starts: Sequence[object]) -> Array:
    return dynamic_update_slice_p.call(DynamicUpdateSliceParams(), x, update, *starts)


def index_vectors(
    starts: Sequence[Array], axes: Sequence[Axis], moved: Sequence[int], size: int
) -> Array:
    """An index vector per batch element of the starts in the dimensions `moved`."""
    columns = [
        broadcast_in_dim(starts[d], (size, 1), () if axes[d] is None else (0,))
        for d in moved
    ]
    return concatenate(columns, 1)


def batch_dynamic_slice(
    engine: Engine,
    p: DynamicSliceParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """A gather if starts are batched, over the dimensions that the window moves in."""
    (x, *starts), (axis, *start_axes) = args, axes
    if all(a is None for a in start_axes):
        assert axis is not None
        all_starts = inserted(starts, axis, zero_like(starts))
        sizes = inserted(p.slice_sizes, axis, size)
        return dynamic_slice_p.bind(DynamicSliceParams(sizes), x, *all_starts), (axis,)
    shape = x.shape if axis is None else (*x.shape[:axis], *x.shape[axis + 1 :])
    moved = [d for d, n in enumerate(p.slice_sizes) if n < shape[d]]
    if not moved:
        return (x,), (axis,)
    dims = GatherDimensionNumbers(range(len(shape)), (), moved)
    params = GatherParams(dims, p.slice_sizes, True, True, CLIP, None)
    batched, place = over_indices(params, size, axis, 0, 0)
    indices = index_vectors(starts, start_axes, moved, size)
    return gather_p.bind(batched, x, indices), (place,)


def zero_like(starts: Sequence[Array]) -> Array:
    """A start of 0 in the dtype of the other starts, or int32 if there is none."""
    return zeros(starts[0].aval.with_shape(()) if starts else ShapedArray((), int32))


def batch_dynamic_update_slice(
    engine: Engine,
    p: DynamicUpdateSliceParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """A scatter if starts are batched, over the dimensions that the window moves in."""
    (x, update, *starts), (axis, update_axis, *start_axes) = args, axes
    if all(a is None for a in start_axes):
        place = axis if axis is not None else 0
        x = x if axis is not None else at_front(x, None, size)
        update = at_front(update, update_axis, size)
        update = move_axis(update, 0, place)
        return (update_slice(x, update, inserted(starts, place, zero_like(starts))),), (
            place,
        )
    weak = x.aval.weak_type and update.aval.weak_type
    x, update = (
        engine.core.convert(at_front(operand, place, size), operand.dtype, weak)
        for operand, place in ((x, axis), (update, update_axis))
    )
    moved = [d for d, n in enumerate(update.shape[1:]) if n < x.shape[d + 1]]
    if not moved:
        return (update,), (0,)
    windows = range(1, x.ndim)
    dims = ScatterDimensionNumbers(windows, (), [d + 1 for d in moved], (0,), (0,))
    indices = index_vectors(starts, start_axes, moved, size)
    params = ScatterParams(dims, True, True, CLIP)
    return scatter_p.bind(params, x, indices, update), (0,)


def draw_window(random: Random) -> tuple[ShapedArray, Shape, tuple[ShapedArray, ...]]:
    """An operand, the sizes of a window in it, and starts."""
    shape = draw_shape(random, 0, 3, (1, 3, 4, 5))
    sizes = tuple(draw_size(random, range(1, n + 1)) for n in shape)
    index = ShapedArray((), random.choice((int32, int32, int8, uint8)))
    operand = ShapedArray(shape, random.choice(ANYTHING.samples()))
    return operand, sizes, (index,) * len(shape)


def start_domains(starts: Sequence[ShapedArray]) -> list[Domain]:
    low = 0 if any(is_unsigned(i.dtype) for i in starts) else -3
    return [Domain(low, 6, special=(0, 1, 127)) for _ in starts]


def draw_dynamic_slice(random: Random) -> Sample[DynamicSliceParams]:
    x, sizes, starts = draw_window(random)
    domains = (REALS, *start_domains(starts))
    return Sample(DynamicSliceParams(sizes), (x, *starts), domains)


def draw_dynamic_update_slice(random: Random) -> Sample[DynamicUpdateSliceParams]:
    x, sizes, starts = draw_window(random)
    domains = (REALS, REALS, *start_domains(starts))
    avals = (x, x.with_shape(sizes), *starts)
    return Sample(DynamicUpdateSliceParams(), avals, domains)


def lower_update(
    e: Emitter,
    p: DynamicUpdateSliceParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    return e.op("stablehlo.dynamic_update_slice", operands, outs)


dynamic_slice_p = linear(
    "dynamic_slice",
    DynamicSliceParams,
    typing=dynamic_slice_typing,
    evaluate=lambda p, x, *starts: x[window(x.shape, p.slice_sizes, starts)],
    transpose=transpose_dynamic_slice,
    batch=batch_dynamic_slice,
    lower=lambda e, p, xs, outs: e.op(
        "stablehlo.dynamic_slice", xs, outs, slice_sizes=i64s(p.slice_sizes)
    ),
    draw=draw_dynamic_slice,
    operands=1,
    sharding=in_place,
    traits=Traits(flops=no_flops, makes_nans=False, reads_part=True),
)
dynamic_update_slice_p = linear(
    "dynamic_update_slice",
    DynamicUpdateSliceParams,
    typing=dynamic_update_slice_typing,
    evaluate=lambda p, *xs: evaluate_update(*xs),
    transpose=transpose_dynamic_update_slice,
    batch=batch_dynamic_update_slice,
    lower=lower_update,
    draw=draw_dynamic_update_slice,
    operands=2,
    sharding=in_place,
    traits=Traits(flops=no_flops, makes_nans=False, writes_part=1),
)


def as_start_list(name: str, shape: Shape, start_indices: object) -> list[object]:
    """The starts, one by one: a vector is taken apart."""
    starts: list[object]
    if isinstance(start_indices, Array | np.ndarray):
        if start_indices.ndim != 1:
            raise TypeError(
                f"{name}: start_indices must be a sequence of scalars or a vector, "
                f"not an array of shape {start_indices.shape}"
            )
        count = start_indices.shape[0]
        starts = [index_in_dim(start_indices, i, 0, False) for i in range(count)]
    elif isinstance(start_indices, Sequence):
        starts = list(start_indices)
    else:
        raise TypeError(
            f"{name}: start_indices must be a sequence, not {shown(start_indices)}"
        )
    if len(starts) != len(shape):
        raise ValueError(
            f"{name}: got {len(starts)} start_indices for {len(shape)} dimensions"
        )
    return starts


def normalized_starts(
    name: str, shape: Shape, start_indices: object, negative: bool | Sequence[bool]
) -> tuple[object, ...]:
    """Starts of the same dtype; negative ones count from the end where allowed."""
    starts = as_start_list(name, shape, start_indices)
    allowed = [negative] * len(starts) if isinstance(negative, bool) else list(negative)
    if len(allowed) != len(starts):
        raise TypeError(
            f"{name}: allow_negative_indices must be a boolean, or one for each of "
            f"the {len(starts)} dimensions"
        )
    triples = zip(starts, shape, allowed, strict=True)
    return alike(*[from_the_front(name, i, size, flag) for i, size, flag in triples])


def from_the_front(name: str, start: object, size: int, negative: bool) -> object:
    """A start where a negative one has become `size` less."""
    dtype = aval_of(start).dtype
    if not is_integer(dtype):
        raise TypeError(f"{name}: start_indices must be integers, not {dtype}")
    if isinstance(start, int | np.integer):
        (index,) = as_integers(name, "start_indices", (start,))
        if index < 0 and not negative:
            raise ValueError(
                f"{name}: the index {index} is negative, but allow_negative_indices "
                "is False"
            )
        out = index + size if index < 0 else index
        return out if isinstance(start, int) else type(start)(out)
    if not negative or is_unsigned(dtype):
        return start
    if surely_less(iinfo(dtype).max, size):
        start = convert(start, int32)
    return select(lt(start, 0), add(start, size), start)


def dynamic_slice(
    operand: object,
    start_indices: object,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The window of `operand` of `slice_sizes` at `start_indices`, moved inside.

    A window that begins too late is moved back until it fits, as in XLA; indices out of
    bounds raise nothing.

    Args:
        operand: an array.
        start_indices: an integer for each dimension, scalars or one vector; they may be
            known only when the program runs.
        slice_sizes: the size of the window in each dimension, Python integers that are
            no larger than those of `operand`.
        allow_negative_indices: whether negative starts count from the end, for all
            dimensions or for each. If not, a negative Python integer is an error, and a
            negative array is moved inside.

    Returns:
        The window, of shape `slice_sizes` and of the dtype of `operand`.

    Raises:
        ValueError: there is not one start for each dimension.
        TypeError: the window does not fit, or starts are not of one integer dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.dynamic_slice(vnp.arange(5), (-4,), (2,))
    Array([1, 2], dtype=int32)
    >>> lax.dynamic_slice(vnp.arange(5), (4,), (3,))  # it would end at 7
    Array([2, 3, 4], dtype=int32)
    """
    shape = aval_of(operand).shape
    sizes = as_sizes("dynamic_slice", "slice_sizes", slice_sizes)
    starts = normalized_starts(
        "dynamic_slice", shape, start_indices, allow_negative_indices
    )
    return dynamic_slice_p.call(DynamicSliceParams(sizes), operand, *starts)


def dynamic_update_slice(
    operand: object,
    update: object,
    start_indices: object,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """`operand` with `update` instead of the window at `start_indices`, moved inside.

    Args:
        operand: an array.
        update: an array with as many dimensions, none longer, and of the same dtype.
        start_indices: an integer for each dimension, scalars or one vector; they may be
            known only when the program runs.
        allow_negative_indices: whether negative starts count from the end, for all
            dimensions or for each.

    Returns:
        A new array of the shape and dtype of `operand`, which stays as it is.

    Raises:
        ValueError: there is not one start for each dimension.
        TypeError: the update does not fit, or starts are not of one integer dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.dynamic_update_slice(vnp.arange(5), vnp.array([7, 8]), (4,))
    Array([0, 1, 2, 7, 8], dtype=int32)
    """
    starts = normalized_starts(
        "dynamic_update_slice",
        aval_of(operand).shape,
        start_indices,
        allow_negative_indices,
    )
    params = DynamicUpdateSliceParams()
    return dynamic_update_slice_p.call(params, *alike(operand, update), *starts)


ROWS: Rows = (dynamic_slice_p, dynamic_update_slice_p)


def starts_along(
    name: str, shape: Shape, axis: int, start: object
) -> tuple[int, list[object]]:
    """The dimension counted from the front, and starts that are 0 in the others."""
    place = as_axis(name, axis, len(shape))
    starts: list[object] = [0] * len(shape)
    starts[place] = start
    return place, starts


def dynamic_slice_in_dim(
    operand: object,
    start_index: object,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`slice_size` elements along one dimension from `start_index` on, moved inside.

    Args:
        operand: an array.
        start_index: an integer scalar, which may be known only when the program runs.
        slice_size: the number of elements, a Python integer.
        axis: the dimension to work along; 0 by default.
        allow_negative_indices: whether a negative start counts from the end.

    Returns:
        An array like `operand`, but of size `slice_size` along `axis`.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the window does not fit, or the start is not an integer scalar.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(6).reshape(2, 3)
    >>> lax.dynamic_slice_in_dim(x, 2, 2, axis=1)  # moved back to 1
    Array([[1, 2],
           [4, 5]], dtype=int32)
    """
    shape = aval_of(operand).shape
    place, starts = starts_along("dynamic_slice_in_dim", shape, axis, start_index)
    sizes = list(shape)
    sizes[place] = slice_size
    return dynamic_slice(
        operand, starts, sizes, allow_negative_indices=allow_negative_indices
    )


def dynamic_index_in_dim(
    operand: object,
    index: object,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The element at `index` along one dimension, which is kept by default.

    Args:
        operand: an array.
        index: an integer scalar, which may be known only when the program runs; one
            that is too large means the last element.
        axis: the dimension to work along; 0 by default.
        keepdims: whether `axis` stays, with size 1.
        allow_negative_indices: whether a negative index counts from the end.

    Returns:
        An array like `operand`, of size 1 along `axis` or without it.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the dimension is empty, or the index is not an integer scalar.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(6).reshape(2, 3)
    >>> lax.dynamic_index_in_dim(x, -1, axis=1)
    Array([[2],
           [5]], dtype=int32)
    >>> lax.dynamic_index_in_dim(x, 9, axis=1, keepdims=False)
    Array([2, 5], dtype=int32)
    """
    part = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(
    operand: object,
    update: object,
    start_index: object,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with `update` in place along one dimension from `start_index` on.

    Args:
        operand: an array.
        update: an array with as many dimensions, none longer, and of the same dtype;
            in dimensions other than `axis` it begins at 0.
        start_index: an integer scalar, which may be known only when the program runs;
            one that is too large is moved back until the update fits.
        axis: the dimension to work along.
        allow_negative_indices: whether a negative start counts from the end.

    Returns:
        A new array of the shape and dtype of `operand`.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the update does not fit, or the start is not an integer scalar.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, row = vnp.zeros((2, 3)), vnp.ones((1, 2))
    >>> lax.dynamic_update_slice_in_dim(x, row, 1, axis=1)
    Array([[0., 1., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    shape = aval_of(operand).shape
    _, starts = starts_along("dynamic_update_slice_in_dim", shape, axis, start_index)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: object,
    update: object,
    index: object,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with `update` instead of the element at `index` of one dimension.

    Args:
        operand: an array.
        update: an array of size 1 along `axis`, or without that dimension; it is not
            broadcast, and has the dtype of `operand`.
        index: an integer scalar, which may be known only when the program runs; one
            that is too large means the last element.
        axis: the dimension to work along.
        allow_negative_indices: whether a negative index counts from the end.

    Returns:
        A new array of the shape and dtype of `operand`.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the update does not fit, or the index is not an integer scalar.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.dynamic_update_index_in_dim(vnp.zeros((2, 3)), vnp.ones(2), -1, axis=1)
    Array([[0., 0., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    rank = aval_of(operand).ndim
    place = as_axis("dynamic_update_index_in_dim", axis, rank)
    if aval_of(update).ndim != rank:
        update = expand_dims(update, (place,))
    return dynamic_update_slice_in_dim(
        operand, update, index, place, allow_negative_indices=allow_negative_indices
    )
