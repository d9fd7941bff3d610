"""Floor 2: `layout_constraint`: the same values, in another order in memory.

XLA decides where values lie while a program runs; a constraint says it for one, which
changes no value::

    b:f32[2,3] = layout_constraint[major_to_minor=(1, 0)] a
"""

from collections.abc import Sequence
from random import Random

from attrs import frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Params
from verax.ops.structure.shape import draw_aval
from verax.rules.families.linear import linear, one_batched, one_linear
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Row, Rows, Sample, Traits, no_flops
from verax.rules.rows.type_shardings import in_place
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class LayoutConstraintParams(Params):
    """The dimensions in memory, the one that varies slowest first."""

    major_to_minor: Shape


def constraint_typing(
    p: LayoutConstraintParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    if sorted(p.major_to_minor) != list(range(x.ndim)):
        raise ValueError(
            f"layout_constraint takes an order of the dimensions of {x}, not "
            f"{p.major_to_minor}"
        )
    return (x,)


def batch_constraint(
    p: LayoutConstraintParams, size: int, x: Array, axis: int
) -> tuple[Array, int]:
    """The new dimension varies slowest."""
    order = (axis, *[d + (d >= axis) for d in p.major_to_minor])
    return layout_constraint_p.call(LayoutConstraintParams(order), x), axis


def lower_constraint(
    e: Emitter,
    p: LayoutConstraintParams,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    order = ", ".join(str(d) for d in reversed(p.major_to_minor))
    kind = f"tensor<{len(p.major_to_minor)}xindex>"
    layout = f"[dense<[{order}]> : {kind}]" if order else f"[dense<> : {kind}]"
    return e.op(
        "stablehlo.custom_call",
        xs,
        outs,
        call_target_name='"LayoutConstraint"',
        operand_layouts=layout,
        result_layouts=layout,
    )


def draw_constraint(random: Random) -> Sample[LayoutConstraintParams]:
    aval = draw_aval(random)
    order = list(range(aval.ndim))
    random.shuffle(order)
    return Sample(LayoutConstraintParams(tuple(order)), (aval,))


layout_constraint_p: Row[LayoutConstraintParams] = linear(
    "layout_constraint",
    LayoutConstraintParams,
    typing=constraint_typing,
    evaluate=lambda p, x: x,
    transpose=one_linear(lambda p, ct, x: layout_constraint_p.call(p, ct)),
    batch=one_batched(batch_constraint),
    lower=lower_constraint,
    draw=draw_constraint,
    sharding=in_place,
    traits=Traits(flops=no_flops, makes_nans=False),
)


ROWS: Rows = (layout_constraint_p,)
