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
from verax.ir.jaxpr import Jaxpr, Params
from verax.ops.calls.callbacks import silenced
from verax.ops.custom.jvp import (
    derivative_in_captured,
    lower_body,
    sum_of,
    typing_of_call,
)
from verax.ops.elementwise.arith import mul
from verax.ops.elementwise.trig import sin
from verax.rules.families.elementwise import SHAPES
from verax.rules.programs.batched import SUM, batch_to, somewhere
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    Linear,
    Row,
    Sample,
    Tangent,
    Zero,
)
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting


@frozen(eq=False, repr=False)
class LinearCallParams(Params):
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
    count = p.residuals
    outs = linear_call_p.bind(p, *primals)
    pushed: list[Tangent] = [Zero(a.tangent()) for a in p.jaxpr.out_avals]
    if not all(isinstance(t, Zero) for t in tangents[count:]):
        own = [
            engine.core.zeros(t.aval) if isinstance(t, Zero) else t
            for t in tangents[count:]
        ]
        silent = evolve(p, jaxpr=silenced(p.jaxpr))
        pushed = list(linear_call_p.bind(silent, *primals[:count], *own))
    if not all(isinstance(t, Zero) for t in tangents[:count]):
        _, more = derivative_in_captured(
            engine, p.name, silenced(p.jaxpr), count, primals, tangents
        )
        pushed = [sum_of(engine, t, u) for t, u in zip(pushed, more, strict=True)]
    return outs, pushed


def transpose_linear(
    engine: Engine, p: LinearCallParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The user's transpose."""
    residuals = [x for x in args[: p.residuals] if isinstance(x, Array)]
    if len(residuals) < p.residuals:
        raise TypeError(f"linear_call of {p.name} is not linear in its residuals")
    back = LinearCallParams(p.name, p.residuals, p.transposed, p.jaxpr)
    filled = [
        engine.core.zeros(aval)
        if isinstance(ct, Zero)
        else engine.core.convert(ct, aval.dtype, aval.weak_type)
        for ct, aval in zip(cts, p.transposed.in_avals[p.residuals :], strict=True)
    ]
    pulled = linear_call_p.bind(back, *residuals, *filled)
    own = zip(args[p.residuals :], pulled, strict=True)
    return [
        *[None] * p.residuals,
        *[ct if isinstance(x, Linear) else None for x, ct in own],
    ]


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
    wanted = [SUM if axis is None else axis for axis in own]
    back = batch_to(engine, p.transposed, size, (*saved, *out_axes), wanted)
    params = evolve(p, jaxpr=jaxpr, transposed=back)
    return linear_call_p.bind(params, *args), out_axes


def draw_linear(random: Random) -> Sample[LinearCallParams]:
    """A call of sin(r) x, whose transpose is the same function."""
    dtype = random.choice((float32, float64, complex64))
    aval = ShapedArray(random.choice(SHAPES), dtype)
    builder = Builder("a sample")
    r, x = builder.input(aval), builder.input(aval)
    with interpreting(builder):
        jaxpr, _ = builder.finish((mul(sin(r), x),))
    return Sample(LinearCallParams("f", 1, jaxpr, jaxpr), (aval, aval))


linear_call_p: Row[LinearCallParams] = Row(
    "linear_call",
    LinearCallParams,
    typing=lambda p, avals: typing_of_call(p.name, p.jaxpr, avals),
    evaluate=lambda engine, p, xs: engine.evaluate(p.jaxpr, xs),
    jvp=jvp_linear,
    transpose=transpose_linear,
    batch=batch_linear,
    lower=lambda e, p, xs, outs: lower_body(e, p.jaxpr, p.name, xs),
    spelled=lambda p: p.jaxpr,
    draw=draw_linear,
)
ROWS = (linear_call_p,)
