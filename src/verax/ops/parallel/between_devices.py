"""Floor 2: how collectives lower in the program of one device among several.

There the other devices run the same program on other parts, so that a collective is an
operation of XLA between them. Elsewhere `vmap` has replaced it before anything lowers::

    groups = meeting(e, ("x",), ())             # ((0, 1), (2, 3))
    (total,) = all_reduce(e, x, groups)
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32, uint32
from verax.rules.rows.emitter import Emitter, Operand, i64, i64s

type Groups = tuple[tuple[int, ...], ...]
type Results = tuple[Operand, ...]

CHANNEL: Final = "#stablehlo.channel_handle<handle = 1, type = 1>"
"""XLA numbers channels itself where it takes the program of a part into its own."""


def meeting(e: Emitter, axes: tuple[str, ...], groups: Groups) -> Groups:
    """The devices that meet along the axes, by position, or within groups of them.

    Raises:
        NameError: there is no such axis around.
    """
    found = e.meeting(axes)
    if found is None:
        raise unbound(axes)
    if not groups:
        return found
    return tuple([tuple([row[i] for i in group]) for row in found for group in groups])


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
    """What a group has, one after the other along a dimension; new if `out` has it."""
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
    """What another member of the group has: from the first of a pair to the second."""
    found = [(row[a], row[b]) for row in groups for a, b in pairs]
    return e.op(
        "stablehlo.collective_permute",
        (x,),
        (x.aval,),
        source_target_pairs=pairs_text(found),
        channel_handle=CHANNEL,
    )


def own_index(e: Emitter, groups: Groups) -> Results:
    """The place of this device in its group."""
    table = np.zeros(sum(map(len, groups)), np.int32)
    for row in groups:
        table[list(row)] = range(len(row))
    (number,) = e.op("stablehlo.partition_id", (), (ShapedArray((), uint32),))
    found = e.op(
        "stablehlo.dynamic_slice",
        (e.constant(table, ShapedArray(table.shape, int32)), number),
        (ShapedArray((1,), int32),),
        slice_sizes=i64s((1,)),
    )
    return (reshaped(e, found[0], ()),)


def reshaped(e: Emitter, x: Operand, shape: tuple[int, ...]) -> Operand:
    """`x` in another shape; itself if that is its own."""
    if x.aval.shape == shape:
        return x
    return e.op("stablehlo.reshape", (x,), (x.aval.with_shape(shape),))[0]
