"""Floor 2: `cond` computed: by the reference interpreter, and compiled.

One idea: one index runs one branch; an index for each batch element runs all of them
over all batch elements, and each batch element keeps the results of its own::

    %c = "stablehlo.case"(%index) ({ ... }, { ... })
"""

from collections.abc import Sequence

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.effects import is_ordered
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.subjaxprs import Batcher, forced_batch, stored_shape
from verax.ops.control.cond_params import CondLanesParams, CondParams, choice_for
from verax.rules.rows.emitter import Emitter, Operand, Region, compared
from verax.rules.rows.row import Engine, NDArray


def branch_of(p: CondParams, index: NDArray) -> Jaxpr:
    """The branch that an index means: outside of the range, the last, as in XLA."""
    if p.platforms is not None:
        return p.branches[choice_for(p.platforms, "cpu")]  # where NumPy runs
    i = int(index)
    return p.branches[i if 0 <= i < len(p.branches) else -1]


def evaluate_cond(
    engine: Engine, p: CondParams, xs: Sequence[NDArray]
) -> Sequence[NDArray]:
    return engine.evaluate(branch_of(p, xs[0]), xs[1:])


def evaluate_lanes(
    engine: Engine, p: CondLanesParams, xs: Sequence[NDArray]
) -> Sequence[NDArray]:
    index, *operands = xs
    outs = [
        np.zeros((*p.lanes, *stored_shape(a)), stored_dtype(a.dtype))
        for a in p.out_avals
    ]
    for lane in np.ndindex(*p.lanes):
        args = [
            np.asarray(x[lane]) if flag else x
            for x, flag in zip(operands, p.mapped, strict=True)
        ]
        found = engine.evaluate(branch_of(p, index[lane]), args)
        for out, value in zip(outs, found, strict=True):
            out[lane] = value
    return outs


def lower_cond(
    e: Emitter, p: CondParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    index, *operands = xs
    if p.platforms is not None:
        return e.inline(p.branches[choice_for(p.platforms, e.platform)], operands)
    if len(p.branches) == 1:
        return e.inline(p.branches[0], operands)

    def region(branch: Jaxpr) -> tuple[tuple[ShapedArray, ...], Region]:
        return (), lambda _: e.inline(branch, operands)

    regions = [region(b) for b in p.branches]
    op = e.threaded if is_ordered(p.effects) else e.op
    return op("stablehlo.case", (index,), outs, regions)


def widened(batcher: Batcher, p: CondLanesParams, branch: Jaxpr) -> Jaxpr:
    """A branch over all batch elements."""
    axes = tuple([0 if flag else None for flag in p.mapped])
    wanted = (True,) * len(branch.outvars)
    for size in reversed(p.lanes):
        branch = forced_batch(batcher, branch, size, axes, wanted)
    return branch


def lower_lanes(
    e: Emitter, p: CondLanesParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """All branches, the results of which are chosen element by element."""
    index, *operands = xs
    *rest, last = [e.inline(widened(e, p, b), operands) for b in p.branches]
    found = list(last)
    for i, branch in enumerate(rest):
        here = compared(e, index, "EQ", e.constant(i, index.aval))
        for k, aval in enumerate(outs):
            if branch[k] is found[k]:
                continue
            shape = stored_shape(aval)
            which = e.broadcast(here, shape, tuple(range(len(p.lanes))))
            (found[k],) = e.op(
                "stablehlo.select", (which, branch[k], found[k]), (aval,)
            )
    return found
