"""Floor 2: `sharding_constraint`: the same values, with a wish where they shall lie.

One idea: how values lie changes none of them, so the equation is the identity to every
transformation, and the lowering says to the compiler what the user said::

    b:f32[8] = sharding_constraint[layout=Layout(mesh=..., splits=(("x",),))] a
"""

from collections.abc import Sequence
from random import Random

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.jaxpr import Params
from verax.ir.meshes import Layout, MeshAxes, Split
from verax.rules.families.elementwise import SHAPES
from verax.rules.families.linear import linear, one_linear
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Axis, Engine, Row, Sample, Traits, as_typed, no_flops
from verax.rules.values.array import Array


@frozen(cache_hash=True, repr=False)
class ShardingParams(Params):
    """The sharding of the values."""

    layout: Layout


def constraint_typing(
    p: ShardingParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if len(p.layout.splits) > x.ndim:
        raise TypeError(
            f"sharding_constraint splits {len(p.layout.splits)} dimensions, but {x} "
            f"has {x.ndim}"
        )
    return (x,)


def batch_constraint(
    engine: Engine,
    p: ShardingParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The new dimension is split as the map says, or as the compiler likes.

    Raises:
        ValueError: the map names an axis that splits another dimension already.
    """
    (x,), (axis,) = args, axes
    assert axis is not None
    spmd = engine.axis.spmd if engine.axis is not None else ()
    for name in spmd:
        if name not in p.layout.mesh.names:
            mesh = p.layout.mesh
            kind = "NamedSharding" if mesh.names else "SingleDeviceSharding"
            raise ValueError(
                "If you are using spmd_axis_name parameter of verax.vmap, please make "
                "sure to run your jitted function inside the mesh context manager, or "
                "to constrain values over a mesh with that axis: it is "
                f"{name!r}, and a constraint inside is a {kind} over the axes "
                f"{mesh.names}"
            )
        if any(name in (split or ()) for split in p.layout.splits):
            raise ValueError(
                f"vmap spmd_axis_name cannot appear in specs of shard_map or sharding "
                f"constraints inside, which use {name!r} already: no axis splits twice"
            )
    ndim = x.ndim - 1
    splits: list[Split] = [*p.layout.splits, *[()] * (ndim - len(p.layout.splits))]
    splits.insert(axis, spmd or None)
    layout = evolve(p.layout, splits=tuple(splits))
    return (sharding_constraint(x, layout),), (axis,)


def lower_constraint(
    e: Emitter,
    p: ShardingParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    text = e.layout(p.layout, outs[0])
    if text is None:
        return operands
    return e.op("sdy.sharding_constraint", operands, outs, sharding=text)


def draw_constraint(random: Random) -> Sample[ShardingParams]:
    aval = ShapedArray(random.choice(SHAPES), float32)
    mesh = MeshAxes(("x", "y"), (1, 1), (0,))
    choices: tuple[Split, ...] = ((), None, ("x",))
    splits = [random.choice(choices) for _ in aval.shape]
    first = [i for i, split in enumerate(splits) if split]
    for i in first[1:]:
        splits[i] = ()
    return Sample(ShardingParams(Layout(mesh, tuple(splits))), (aval,))


sharding_constraint_p: Row[ShardingParams] = linear(
    "sharding_constraint",
    ShardingParams,
    typing=constraint_typing,
    evaluate=lambda p, x: x,
    transpose=one_linear(lambda p, ct, x: sharding_constraint(ct, p.layout)),
    batch=batch_constraint,
    lower=lower_constraint,
    draw=draw_constraint,
    compiled=True,
    sharding=as_typed,
    traits=Traits(flops=no_flops, makes_nans=False, view=True),
)


def sharding_constraint(x: Array, layout: Layout) -> Array:
    """`x`, with the request that its values lie as `layout` says."""
    return sharding_constraint_p.call(ShardingParams(layout), x)


ROWS = (sharding_constraint_p,)
