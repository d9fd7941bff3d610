"""Floor 2: scatter that replaces, subtracts, multiplies, takes the least or largest.

One idea: where several updates meet one element, derivatives follow the value: to the
last update, to all factors, or in equal shares to those that are the extreme::

    scatter(x, indices, updates, dims)        the last update stays
    scatter_max(x, indices, updates, dims)    ties share the cotangent

The functions of all rows are here, that of `scatter_add_p` too.
"""

from collections.abc import Sequence
from math import prod
from typing import Final, Protocol

import numpy as np

from verax.ir.dtypes import int32
from verax.ops.elementwise.arith import div, mul, neg
from verax.ops.elementwise.compare import eq, gt, lt
from verax.ops.elementwise.select import select
from verax.ops.indexing.gather import Mode, read_back, scatter_add_p
from verax.ops.indexing.geometry import GatherScatterMode, ScatterDimensionNumbers
from verax.ops.indexing.scatter_impl import (
    ScatterParams,
    scatter_family,
    scatter_terms,
)
from verax.ops.structure.create import full, iota, ones, zeros
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.rows.infer import dense, sum_of
from verax.rules.rows.row import (
    Engine,
    JvpRule,
    Known,
    Linear,
    Row,
    Rows,
    Tangent,
    Zero,
)
from verax.rules.rows.traits import Traits, no_flops
from verax.rules.values.array import Array
from verax.rules.values.kinds import ANYTHING, KEY, NUMBER, ORDERED
from verax.rules.values.operands import alike

type Tangents = tuple[Sequence[Array], Sequence[Tangent]]


def jvp_linear(
    engine: Engine,
    row: Row[ScatterParams],
    p: ScatterParams,
    xs: Sequence[Array],
    ts: Sequence[Tangent],
) -> Tangents:
    """The jvp of a scatter that is linear in operand and updates together."""
    y = row.call(p, *xs)
    if isinstance(ts[0], Zero) and isinstance(ts[2], Zero):
        return (y,), (Zero(y.aval.tangent()),)
    t = row.call(p, dense(engine, ts[0]), xs[1], dense(engine, ts[2]))
    return (y,), (t,)


def transpose_sub(
    engine: Engine, p: ScatterParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices, updates) = cts[0], args
    assert isinstance(ct, Array)
    assert isinstance(indices, Array)
    part = None
    if isinstance(updates, Linear):
        part = neg(read_back(p, ct, indices, updates))
    return ct if isinstance(operand, Linear) else None, None, part


scatter_sub_p: Row[ScatterParams] = scatter_family(
    "scatter-sub",
    np.subtract,
    "stablehlo.subtract",
    accepts=NUMBER,
    jvp=lambda engine, p, xs, ts: jvp_linear(engine, scatter_sub_p, p, xs, ts),
    transpose=transpose_sub,
    terms=scatter_terms,
)


def winners(
    p: ScatterParams, operand: Known, indices: Array, updates: Known
) -> tuple[Array, Array]:
    """Which elements of the operand stay, and which updates are there in the end.

    Every window gets a number; scattering the numbers over -1 says who wrote last.
    """
    shape, dims = updates.aval.shape, p.dimension_numbers
    windows = [1 if d in dims.update_window_dims else n for d, n in enumerate(shape)]
    numbers = reshape(iota(int32, prod(windows)), windows)
    numbers = broadcast_in_dim(numbers, shape, tuple(range(len(shape))))
    none = full(operand.aval.shape, -1, int32)
    written = scatter_p.call(p, none, indices, numbers)
    last = read_back(p, written, indices, updates)
    return eq(written, -1), eq(last, numbers)


def jvp_scatter(
    engine: Engine, p: ScatterParams, xs: Sequence[Array], ts: Sequence[Tangent]
) -> Tangents:
    """With duplicates the value, too, is made of the winners: XLA may choose anyone.

    Losers are replaced by -0.0, the neutral element of addition.
    """
    operand, indices, updates = xs
    if p.unique_indices or isinstance(ts[2], Zero):
        return jvp_linear(engine, scatter_p, p, xs, ts)
    stays, last = winners(p, operand, indices, updates)
    y = scatter_add_p.call(
        p, select(stays, operand, -0.0), indices, select(last, updates, -0.0)
    )
    t = scatter_add_p.call(
        p,
        select(stays, dense(engine, ts[0]), 0.0),
        indices,
        select(last, dense(engine, ts[2]), 0.0),
    )
    return (y,), (t,)


def transpose_scatter(
    engine: Engine, p: ScatterParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices, updates) = cts[0], args
    assert isinstance(ct, Array)
    assert isinstance(indices, Array)
    kept, part = None, None
    if not p.unique_indices:
        stays, last = winners(p, operand, indices, updates)
        kept = select(stays, ct, 0.0)
        part = select(last, read_back(p, ct, indices, updates), 0.0)
    else:
        if isinstance(operand, Linear):
            nothing = zeros(updates.aval.with_dtype(ct.dtype))
            kept = scatter_p.call(p, ct, indices, nothing)
        if isinstance(updates, Linear):
            part = read_back(p, ct, indices, updates)
    return (
        kept if isinstance(operand, Linear) else None,
        None,
        part if isinstance(updates, Linear) else None,
    )


scatter_p = scatter_family(
    "scatter",
    None,
    None,
    accepts=ANYTHING | KEY,
    jvp=jvp_scatter,
    transpose=transpose_scatter,
    traits=Traits(flops=no_flops, quick_in_numpy=True),
)


def jvp_mul(
    engine: Engine, p: ScatterParams, xs: Sequence[Array], ts: Sequence[Tangent]
) -> Tangents:
    """z = x u where u meets x: dz = t_x u + x t_u, where each x meets one u."""
    operand, indices, updates = xs
    y = scatter_mul_p.call(p, *xs)
    total: Tangent = Zero(y.aval.tangent())
    if not isinstance(ts[0], Zero):
        total = scatter_mul_p.call(p, ts[0], indices, updates)
    if isinstance(ts[2], Zero):
        return (y,), (total,)
    check_unique(p)
    part = mul(operand, scatter_add_p.call(p, zeros(operand.aval), indices, ts[2]))
    return (y,), (sum_of(engine, total, part),)


def check_unique(p: ScatterParams) -> None:
    """Raise NotImplementedError where a product has several unknown factors."""
    if not p.unique_indices:
        raise NotImplementedError(
            "scatter_mul can be differentiated in its updates only if at most one of "
            "them hits each element: promise that with unique_indices=True, or "
            "multiply yourself with x.at[index].set(x[index] * updates)"
        )


def transpose_mul(
    engine: Engine, p: ScatterParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    ct, (operand, indices, updates) = cts[0], args
    assert isinstance(ct, Array)
    assert isinstance(indices, Array)
    if isinstance(operand, Linear):
        assert isinstance(updates, Array)
        return scatter_mul_p.call(p, ct, indices, updates), None, None
    check_unique(p)
    return None, None, read_back(p, mul(ct, operand), indices, updates)


scatter_mul_p = scatter_family(
    "scatter-mul",
    np.multiply,
    "stablehlo.multiply",
    accepts=NUMBER,
    jvp=jvp_mul,
    transpose=transpose_mul,
    counts=(1,),
)


def jvp_extreme(name: str) -> JvpRule[ScatterParams]:
    """Operand and updates that equal the result share its tangent equally.

    An operand beside which no update is counts as the extreme, NaN included.
    """
    beaten = lt if name == "max" else gt

    def jvp(
        engine: Engine, p: ScatterParams, xs: Sequence[Array], ts: Sequence[Tangent]
    ) -> Tangents:
        operand, indices, updates = xs
        row = scatter_max_p if name == "max" else scatter_min_p
        y = row.call(p, *xs)
        if isinstance(ts[0], Zero) and isinstance(ts[2], Zero):
            return (y,), (Zero(y.aval.tangent()),)
        lost = beaten(operand, y)
        hit = eq(updates, read_back(p, y, indices, updates))
        count = scatter_add_p.call(
            p,
            select(lost, 0.0, ones(operand.aval.strong())),
            indices,
            select(hit, ones(updates.aval.strong()), 0.0),
        )
        total = scatter_add_p.call(
            p,
            select(lost, 0.0, dense(engine, ts[0])),
            indices,
            select(hit, dense(engine, ts[2]), 0.0),
        )
        return (y,), (div(total, count),)

    return jvp


scatter_min_p = scatter_family(
    "scatter-min",
    np.minimum,
    "stablehlo.minimum",
    accepts=ORDERED,
    jvp=jvp_extreme("min"),
)
scatter_max_p = scatter_family(
    "scatter-max",
    np.maximum,
    "stablehlo.maximum",
    accepts=ORDERED,
    jvp=jvp_extreme("max"),
)


class Scatter(Protocol):
    """The signature of all of them."""

    def __call__(
        self,
        operand: object,
        scatter_indices: object,
        updates: object,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
    ) -> Array: ...


def scatter_function(row: Row[ScatterParams], text: str) -> Scatter:
    """The function that calls a row of the family, of its name."""

    def scatter(
        operand: object,
        scatter_indices: object,
        updates: object,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
    ) -> Array:
        params = ScatterParams(
            dimension_numbers,
            bool(indices_are_sorted),
            bool(unique_indices),
            GatherScatterMode.from_any(mode).value,
        )
        operand, updates = alike(operand, updates)
        return row.call(params, operand, scatter_indices, updates)

    scatter.__name__ = scatter.__qualname__ = row.name.replace("-", "_")
    scatter.__doc__ = text + COMMON
    return scatter


COMMON: Final = """

    Windows not wholly inside are left out (mode "drop", the default) or moved inside
    ("clip"). Semantics: StableHLO's scatter.

    Raises:
        TypeError: the dimension numbers or dtypes do not fit.
        ValueError: there is no such mode.
    """

scatter: Final = scatter_function(
    scatter_p,
    """`operand` with windows replaced by `updates` at each index vector.

    The last of several updates of one element stays on CPU; elsewhere any may.""",
)
scatter_add: Final = scatter_function(
    scatter_add_p,
    "`operand` with windows of `updates` added at each index vector.",
)
scatter_sub: Final = scatter_function(
    scatter_sub_p,
    "`operand` with windows of `updates` subtracted at each index vector.",
)
scatter_mul: Final = scatter_function(
    scatter_mul_p,
    """`operand` with windows multiplied by `updates` at each index vector.

    It has a derivative in `updates` under `unique_indices=True`.""",
)
scatter_min: Final = scatter_function(
    scatter_min_p,
    "`operand` with windows replaced by the minimum of them and `updates`.",
)
scatter_max: Final = scatter_function(
    scatter_max_p,
    "`operand` with windows replaced by the maximum of them and `updates`.",
)


ROWS: Rows = (
    scatter_p,
    scatter_sub_p,
    scatter_mul_p,
    scatter_min_p,
    scatter_max_p,
)
