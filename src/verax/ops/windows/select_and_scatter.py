"""Floor 2: what pooling layers send back: to the extreme of each window, or from it.

One idea: each window has one winner, the first extreme in it; `select_and_scatter_add`
adds to the winners and `select_and_gather_add` reads there, so they are adjoint::

    select_and_scatter_add(source, x, ge_p, (2,), (2,), ((0, 0),))
    select_and_gather_add(tangent, x, ge_p, (2,), (2,), ((0, 0),), (1,), (1,))
"""

from collections.abc import Sequence
from math import prod
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import is_bool
from verax.ir.jaxpr import Jaxpr, Params
from verax.ops.elementwise.compare import ge_p, le_p
from verax.ops.elementwise.select import copy
from verax.ops.indexing.geometry import ScatterDimensionNumbers
from verax.ops.indexing.scatter import scatter_add
from verax.ops.structure.create import zeros
from verax.ops.structure.shape import at_front, reshape
from verax.ops.windows.geometry import (
    Pads,
    WindowParams,
    as_pads,
    check_windows,
    windows_of,
)
from verax.ops.windows.reduce_window import (
    draw_window_params,
    read_flat,
    winners,
)
from verax.rules.families.linear import linear
from verax.rules.families.reducer import wide
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import (
    Avals,
    Axis,
    Domain,
    Engine,
    Known,
    Linear,
    NDArray,
    Row,
    Rows,
    Sample,
    SomeRow,
    Tangent,
    Traits,
    Zero,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import NUMBER, ORDERED, aval_of
from verax.rules.values.memo import pure
from verax.rules.values.sizes import as_integers


@frozen(eq=False, repr=False)
class SelectParams(Params):
    """Whether the largest or the smallest element wins, and the windows."""

    largest: bool
    window_dimensions: Shape
    window_strides: Shape
    padding: Pads

    def windows(self) -> WindowParams:
        """The params of the reduction over the same windows."""
        ones = (1,) * len(self.padding)
        return WindowParams(
            self.window_dimensions, self.window_strides, self.padding, ones, ones
        )


def scatter_typing(
    p: SelectParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    source, operand = avals
    shape = check_windows("select_and_scatter_add", p.windows(), operand)
    if source.shape != shape or source.dtype != operand.dtype:
        raise TypeError(
            f"select_and_scatter_add takes one element for each window of {operand}, "
            f"of its dtype and shape {shape}, not {source}"
        )
    if not NUMBER.holds(operand.dtype) or not ORDERED.holds(operand.dtype):
        raise TypeError(f"select_and_scatter_add takes real numbers, not {operand}")
    if any(low < 0 or high < 0 for low, high in p.padding):
        raise ValueError(
            "select_and_scatter_add: padding must not be negative, but is "
            f"{p.padding}; slice the operand"
        )
    return (operand.strong(),)


def evaluate_scatter(p: SelectParams, source: NDArray, operand: NDArray) -> NDArray:
    """Source elements added at the winners, in order."""
    y = wide(operand)
    total = np.zeros(operand.size, y.dtype)
    places = winning_places(p, y)
    hit = places >= 0
    np.add.at(total, places[hit], wide(source)[hit])
    return total.reshape(operand.shape)


def winning_places(p: SelectParams, x: NDArray) -> NDArray:
    """The place, in the flat array, of the first extreme of each window, or -1."""
    geometry = p.windows().geometry(x.shape)
    flat = np.arange(x.size).reshape(x.shape)
    count, rank = prod(p.window_dimensions), x.ndim
    values = windows_of(x, geometry, 0)
    indices = windows_of(flat, geometry, -1)
    shape = values.shape[:rank]
    values, indices = (v.reshape((*shape, count)) for v in (values, indices))
    best, place = values[..., 0], indices[..., 0]
    for i in range(1, count):
        value, index = values[..., i], indices[..., i]
        better = (best >= value) if p.largest else (best <= value)
        stays = (index < 0) | ((place >= 0) & (better | (best != best)))
        best, place = np.where(stays, best, value), np.where(stays, place, index)
    return place


def transpose_scatter(
    engine: Engine, p: SelectParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    (ct,), (source, operand) = cts, args
    if isinstance(ct, Zero):
        return Zero(source.aval), None
    if isinstance(operand, Linear):
        raise TypeError(
            "select_and_scatter_add is not linear in the operand it selects from"
        )
    return read_flat(ct, winners(p.windows(), operand, p.largest)), None


def batch_select(
    engine: Engine,
    p: SelectParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Windows of one element along the batch."""
    fronts = [at_front(x, axis, size) for x, axis in zip(args, axes, strict=True)]
    dimensions, strides, padding, *_ = p.windows().batched(0)
    params = SelectParams(p.largest, dimensions, strides, padding)
    return select_and_scatter_add_p.bind(params, *fronts), (0,)


@pure(1 << 10)
def expanded(p: SelectParams, source: ShapedArray, operand: ShapedArray) -> Jaxpr:
    """The winners, and a scatter to them, as equations.

    XLA makes the same of its own select-and-scatter, but aborts on small windows.
    """

    def body(values: Array, x: Array) -> Sequence[Array]:
        places = winners(p.windows(), x, p.largest)
        count = prod(places.shape)
        total = scatter_add(
            zeros(operand.with_shape((prod(operand.shape),)).strong()),
            reshape(places, (count, 1)),
            reshape(values, (count,)),
            ScatterDimensionNumbers((), (0,), (0,)),
        )
        return (reshape(total, operand.shape),)

    return program((source, operand), body)


def lower_scatter(
    e: Emitter,
    p: SelectParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """The equations of `expanded`; zeros where there is no window."""
    source, operand = operands
    if not outs[0].size or not source.aval.size:
        return (e.constant(0, outs[0]),)
    return e.inline(expanded(p, source.aval, operand.aval), operands)


def draw_scatter(random: Random) -> Sample[SelectParams]:
    """Windows without dilation or negative padding."""
    windows, shape = draw_window_params(random)
    pads = tuple((abs(low), high) for low, high in windows.padding)
    params = SelectParams(
        random.random() < 0.5, windows.window_dimensions, windows.window_strides, pads
    )
    dtypes = [d for d in ORDERED.samples() if not is_bool(d)]
    operand = ShapedArray(shape, random.choice(dtypes))
    counts = check_windows("draw", params.windows(), operand)
    # What wins must not change under a difference in what is scattered only.
    return Sample(
        params, (operand.with_shape(counts), operand), (Domain(), Domain(smooth=False))
    )


def spread_flops(p: SelectParams, ins: Avals, outs: Avals) -> float:
    """One operation for each element of the window of each cotangent."""
    return ins[0].size * prod(p.window_dimensions)


select_and_scatter_add_p: Row[SelectParams] = linear(
    "select_and_scatter_add",
    SelectParams,
    typing=scatter_typing,
    evaluate=evaluate_scatter,
    transpose=transpose_scatter,
    batch=batch_select,
    lower=lower_scatter,
    draw=draw_scatter,
    operands=1,
    traits=Traits(flops=spread_flops, makes_nans=False),
)


def is_largest(name: str, select_prim: object) -> bool:
    """Whether `ge_p` was given, or `le_p`."""
    if select_prim not in (ge_p, le_p):
        raise ValueError(f"{name}: select_prim must be verax.lax.ge_p or le_p")
    return select_prim is ge_p


def select_and_scatter_add(
    source: object,
    operand: object,
    select_prim: SomeRow,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> Array:
    """Zeros like `operand`, with `source` added at the winner of each window.

    The winner is the first largest element (`select_prim=ge_p`) or smallest (`le_p`).

    Raises:
        TypeError: `source` has not one element for each window.
        ValueError: a parameter is out of range.

    >>> import verax
    >>> x, source = np.array([3.0, 1.0, 2.0, 5.0]), np.array([10.0, 20.0])
    >>> select_and_scatter_add(source, x, ge_p, (2,), (2,), "VALID")
    Array([10.,  0.,  0., 20.], dtype=float32)
    """
    name, aval = "select_and_scatter_add", aval_of(operand)
    windows = as_integers(name, "window_dimensions", window_dimensions)
    strides = as_integers(name, "window_strides", window_strides)
    params = SelectParams(
        is_largest(name, select_prim),
        windows,
        strides,
        as_pads(name, padding, aval.shape, windows, strides),
    )
    return select_and_scatter_add_p.call(params, source, operand)


def select_and_gather_add(
    tangents: object,
    operand: object,
    select_prim: SomeRow,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Array:
    """The elements of `tangents` at the winner of each window of `operand`.

    Zero for a window of padding only. Arguments are as in `select_and_scatter_add`.
    """
    name, aval = "select_and_gather_add", aval_of(operand)
    result = [
        as_integers(name, "a window parameter", values)
        for values in (
            window_dimensions,
            window_strides,
            base_dilation,
            window_dilation,
        )
    ]
    windows, strides, base, spread = result
    pads = as_pads(name, padding, aval.shape, windows, strides)
    params = WindowParams(windows, strides, pads, base, spread)
    check_windows(name, params, aval)
    place = winners(params, as_value(operand), is_largest(name, select_prim))
    return read_flat(as_value(tangents), place)


def as_value(x: object) -> Array:
    """An operand as an array of the current interpreter."""
    return x if isinstance(x, Array) else copy(x)


ROWS: Rows = (select_and_scatter_add_p,)
