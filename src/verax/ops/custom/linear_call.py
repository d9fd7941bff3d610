"""Floor 2: `linear_call`: a linear function with a transpose of the user's own.

One idea: the equation holds two jaxprs, and its transpose is the same equation with the
two exchanged::

    c = linear_call[name=f residuals=1 jaxpr={ ... } transposed={ ... }] r x
"""

from collections.abc import Sequence
from random import Random

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex64, float32, float64
from verax.ir.effects import Effect
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.call import NamedCall
from verax.ops.calls.callbacks import silenced
from verax.ops.custom.base import custom_row, known_residuals, with_captured
from verax.ops.elementwise.arith import mul
from verax.ops.elementwise.trig import sin
from verax.rules.families.elementwise import SHAPES
from verax.rules.programs.batched import batch_to, or_summed, somewhere
from verax.rules.rows.builder import program
from verax.rules.rows.infer import dense, for_unknowns, nonzeros
from verax.rules.rows.row import Axis, Engine, Known, Sample, Tangent, Zero
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class LinearCallParams(NamedCall):
    """A function of residuals and linear operands, and its transpose in the latter."""

    name: str
    residuals: int
    jaxpr: Jaxpr
    transposed: Jaxpr

    @property
    def effects(self) -> frozenset[Effect]:
        """Those of the function: its transpose runs elsewhere."""
        return self.jaxpr.effects


def jvp_linear(
    engine: Engine,
    p: LinearCallParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """In the linear operands itself; in residuals the derivative of the function."""
    count, own = p.residuals, tangents[p.residuals :]
    outs = linear_call_p.bind(p, *primals)
    pushed: Sequence[Tangent] = [Zero(a.tangent()) for a in p.jaxpr.out_avals]
    if any(nonzeros(own)):
        silent = evolve(p, jaxpr=silenced(p.jaxpr))
        moving = [dense(engine, t) for t in own]
        pushed = linear_call_p.bind(silent, *primals[:count], *moving)
    return outs, with_captured(engine, p, count, primals, tangents, pushed)


def transpose_linear(
    engine: Engine, p: LinearCallParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The user's transpose."""
    residuals = known_residuals(p.name, args[: p.residuals])
    back = LinearCallParams(p.name, p.residuals, p.transposed, p.jaxpr)
    avals, own = p.transposed.in_avals[p.residuals :], args[p.residuals :]
    given = [
        engine.core.zeros(aval)
        if isinstance(ct, Zero)
        else engine.core.convert(ct, aval.dtype, aval.weak_type)
        for ct, aval in zip(cts, avals, strict=True)
    ]
    pulled = linear_call_p.bind(back, *residuals, *given)
    return [*[None] * p.residuals, *for_unknowns(own, pulled)]


def batch_linear(
    engine: Engine,
    p: LinearCallParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Both functions batched; cotangents of what is not batched are summed."""
    out_axes = somewhere(engine.batch(p.jaxpr, size, tuple(axes))[1])
    jaxpr = batch_to(engine, p.jaxpr, size, axes, out_axes)
    saved, own = tuple(axes[: p.residuals]), axes[p.residuals :]
    back = batch_to(engine, p.transposed, size, (*saved, *out_axes), or_summed(own))
    params = evolve(p, jaxpr=jaxpr, transposed=back)
    return linear_call_p.bind(params, *args), out_axes


def draw_linear(random: Random) -> Sample[LinearCallParams]:
    """A call of sin(r) x, whose transpose is the same function."""
    dtype = random.choice((float32, float64, complex64))
    aval = ShapedArray(random.choice(SHAPES), dtype)
    jaxpr = program((aval, aval), lambda r, x: (mul(sin(r), x),))
    return Sample(LinearCallParams("f", 1, jaxpr, jaxpr), (aval, aval))


linear_call_p = custom_row(
    "linear_call",
    LinearCallParams,
    jvp=jvp_linear,
    transpose=transpose_linear,
    batch=batch_linear,
    draw=draw_linear,
)
ROWS = (linear_call_p,)
