"""Floor 2: vmap of an equation as a loop over the batch elements, one after another.

One idea: a scan whose body is the equation on the operands of one element. A choice
in it stays a choice, so only the branch that a batch element takes runs, and effects
happen in the order of the batch elements::

    ys = scan[jaxpr={ lambda ; x. let y = cond[...] x in (y,) } length=8 ...] xs
"""

from collections.abc import Callable, Sequence

from verax.ops.control.scan import row_type, scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.structure.shape import move_axis
from verax.rules.rows.builder import program
from verax.rules.rows.infer import merged, others
from verax.rules.rows.row import Axis
from verax.rules.values.array import Array


def one_by_one(
    call: Callable[..., Sequence[Array]],
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The results of `call` for each of `size` batch elements, in their order.

    `call` binds the equation to operands of one element. This is a whole batch rule: a
    row whose equations must not run side by side ends its own with it::

        return one_by_one(lambda *xs: row.bind(p, *xs), size, args, axes)
    """
    mapped = [axis is not None for axis in axes]
    fixed = others(mapped, args)
    rows = [
        move_axis(x, axis, 0)
        for x, axis in zip(args, axes, strict=True)
        if axis is not None
    ]
    count = len(fixed)
    types = [*[x.aval for x in fixed], *[row_type(x.aval) for x in rows]]
    lane = program(types, lambda *xs: call(*merged(mapped, xs[count:], xs[:count])))
    linear = (False,) * len(types)
    params = ScanParams(lane, size, linear, 0, count, False, 1)
    outs = scan_p.bind(params, *fixed, *rows)
    return outs, [0] * len(outs)
