"""Floor 2: what collectives name, and how each device of several makes them.

Where every device runs the same program on its part, a collective is an operation of
XLA between them, and groups say who meets whom::

    groups = meeting(e, ("x",), ())             # ((0, 1), (2, 3))
    (total,) = all_reduce(e, x, groups)
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from attrs import field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32, uint32
from verax.ir.jaxpr import Params
from verax.ir.meshes import MeshAxes
from verax.ir.records import QUIET
from verax.rules.rows.emitter import Emitter, Operand, i64, i64s

type Groups = tuple[tuple[int, ...], ...]
type Results = tuple[Operand, ...]

type LowerAmong[P] = Callable[[Emitter, P, Operand, Groups, ShapedArray], Results]
"""Lowers a collective among groups of devices."""

CHANNEL: Final = "#stablehlo.channel_handle<handle = 1, type = 1>"
"""XLA numbers channels itself where it takes the program of a part into its own."""


def meeting(
    e: Emitter, axes: tuple[str, ...], groups: Groups, mesh: MeshAxes | None = None
) -> Groups:
    """The devices that meet along the axes, by position, or within groups of them.

    Raises:
        NameError: there is no such axis around.
    """
    out = e.meeting(axes, mesh)
    if out is None:
        raise unbound(axes)
    if not groups:
        return out
    return tuple([tuple([row[i] for i in group]) for row in out for group in groups])


def unbound(axes: Sequence[str]) -> NameError:
    """The error for a collective outside its axis."""
    names = ", ".join(map(repr, axes))
    return NameError(
        f"unbound axis name {names} in a collective: call it within a function mapped "
        "with that axis_name"
    )


def pairs_text(rows: Sequence[Sequence[int]]) -> str:
    """A matrix of numbers of devices as an attribute."""
    shape = f"{len(rows)}x{len(rows[0]) if rows else 2}"
    text = ", ".join([f"[{', '.join(map(str, row))}]" for row in rows])
    return f"dense<{f'[{text}]' if rows else ''}> : tensor<{shape}xi64>"


def all_reduce(e: Emitter, x: Operand, groups: Groups) -> Results:
    """The sum over each group."""
    scalar = x.aval.with_shape(())
    return e.op(
        "stablehlo.all_reduce",
        (x,),
        (x.aval,),
        [((scalar, scalar), lambda pair: e.op("stablehlo.add", pair, (scalar,)))],
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
        use_global_device_ids="unit",
    )


def all_gather(
    e: Emitter, x: Operand, groups: Groups, dimension: int, out: ShapedArray
) -> Results:
    """Joins what a group has along a dimension, which is new if `out` has it."""
    if out.ndim > x.aval.ndim:
        shape = x.aval.shape
        x = reshaped(e, x, (*shape[:dimension], 1, *shape[dimension:]))
    return e.op(
        "stablehlo.all_gather",
        (x,),
        (out,),
        all_gather_dim=i64(dimension),
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
        use_global_device_ids="unit",
    )


def reduce_scatter(
    e: Emitter, x: Operand, groups: Groups, dimension: int, out: ShapedArray
) -> Results:
    """The sum over each group, of which each has a part along a dimension."""
    shape = x.aval.shape
    part = shape[dimension] // len(groups[0])
    kept = x.aval.with_shape((*shape[:dimension], part, *shape[dimension + 1 :]))
    scalar = x.aval.with_shape(())
    (y,) = e.op(
        "stablehlo.reduce_scatter",
        (x,),
        (kept,),
        [((scalar, scalar), lambda pair: e.op("stablehlo.add", pair, (scalar,)))],
        scatter_dimension=i64(dimension),
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
        use_global_device_ids="unit",
    )
    return (reshaped(e, y, out.shape),)


def all_to_all(
    e: Emitter, x: Operand, groups: Groups, split: int, joined: int, out: ShapedArray
) -> Results:
    """Dimension `split` is dealt out to the group, which lines up along `joined`."""
    (y,) = e.op(
        "stablehlo.all_to_all",
        (x,),
        (x.aval,),
        split_dimension=i64(split),
        concat_dimension=i64(split),
        split_count=i64(len(groups[0])),
        replica_groups=pairs_text(groups),
        channel_handle=CHANNEL,
    )
    order = [i for i in range(out.ndim) if i != split]
    order.insert(joined, split)
    return e.op("stablehlo.transpose", (y,), (out,), permutation=i64s(order))


def permuted(
    e: Emitter, x: Operand, groups: Groups, pairs: Sequence[tuple[int, int]]
) -> Results:
    """The value of another member of the group: first of a pair to second."""
    out = [(row[a], row[b]) for row in groups for a, b in pairs]
    return e.op(
        "stablehlo.collective_permute",
        (x,),
        (x.aval,),
        source_target_pairs=pairs_text(out),
        channel_handle=CHANNEL,
    )


def own_index(e: Emitter, groups: Groups) -> Results:
    """The place of this device in its group."""
    table = np.zeros(sum(map(len, groups)), np.int32)
    for row in groups:
        table[list(row)] = range(len(row))
    (number,) = e.op("stablehlo.partition_id", (), (ShapedArray((), uint32),))
    out = e.op(
        "stablehlo.dynamic_slice",
        (e.constant(table, ShapedArray(table.shape, int32)), number),
        (ShapedArray((1,), int32),),
        slice_sizes=i64s((1,)),
    )
    return (reshaped(e, out[0], ()),)


def reshaped(e: Emitter, x: Operand, shape: tuple[int, ...]) -> Operand:
    """`x` in another shape; itself if that is its own."""
    if x.aval.shape == shape:
        return x
    return e.op("stablehlo.reshape", (x,), (x.aval.with_shape(shape),))[0]


@frozen(cache_hash=True, repr=False)
class CollectiveParams(Params):
    """The named axes, and how many elements lie along each.

    With `groups` of the numbers of elements, which are of equal size and make up the
    one axis, elements meet those of their group alone, and `sizes` counts these.
    """

    axes: tuple[str, ...]
    sizes: Shape
    groups: Groups = field(default=(), kw_only=True, metadata=QUIET)

    @property
    def named_axes(self) -> frozenset[str]:
        return frozenset(self.axes)


@frozen(cache_hash=True, repr=False)
class GatherAxisParams(CollectiveParams):
    """`dimension` is new and runs over the elements, or grows by them if `tiled`.

    Inside `shard_map`, the result is in the state `to` along the axes; see `casts`.
    """

    dimension: int
    tiled: bool
    to: str = field(default="varying", kw_only=True, metadata=QUIET)


@frozen(cache_hash=True, repr=False)
class ExchangeParams(CollectiveParams):
    """Dimension `split` is dealt out to the elements; they line up along `joined`."""

    split: int
    joined: int


@frozen(cache_hash=True, repr=False)
class PermuteParams(CollectiveParams):
    """Pairs (from, to) of elements; who gets nothing has zeros."""

    pairs: tuple[tuple[int, int], ...]
