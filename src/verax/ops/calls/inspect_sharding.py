"""Floor 2: `inspect_sharding`: who asks how a value of a compiled program lies.

The equation has no result. Once it is compiled, its viewer has been told::

    inspect_sharding[viewer=print parts=0] a
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.effects import DEBUG, Effect
from verax.ir.jaxpr import Params
from verax.ops.structure.shape import move_axis
from verax.rules.rows.emitter import Emitter, Operand, Viewer
from verax.rules.rows.row import Axis, Engine, NDArray, Row, Tangent, Traits
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class InspectParams(Params):
    """The listener, and how many leading dimensions make the parts of a `shard_map`."""

    viewer: Viewer
    parts: int = 0

    @property
    def effects(self) -> frozenset[Effect]:
        """The effect that keeps an equation without results."""
        return frozenset((DEBUG,))


def evaluate_inspect(
    engine: Engine, p: InspectParams, args: Sequence[NDArray]
) -> Sequence[NDArray]:
    """Values of NumPy lie where arrays go by default."""
    p.viewer.alone(None)
    return ()


def jvp_inspect(
    engine: Engine,
    p: InspectParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """Inspects primal values; tangents are not shown."""
    inspect_sharding_p.bind(p, *primals)
    return (), ()


def batch_inspect(
    engine: Engine,
    p: InspectParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Inspects the whole batch; of the parts of a `shard_map` each is on a device."""
    (x,), (axis,) = args, axes
    assert axis is not None
    if engine.axis is not None and engine.axis.of_parts:
        p = evolve(p, parts=p.parts + 1)
        x = move_axis(x, axis, 0)
    inspect_sharding_p.bind(p, x)
    return (), ()


def lower_inspect(
    e: Emitter,
    p: InspectParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    (x,) = operands
    e.partitioned(p.viewer.of(x.aval, p.parts), (x,), (x.aval.with_explicit(None),))
    return ()


inspect_sharding_p: Row[InspectParams] = Row(
    "inspect_sharding",
    InspectParams,
    typing=lambda p, avals: (),
    evaluate=evaluate_inspect,
    jvp=jvp_inspect,
    batch=batch_inspect,
    lower=lower_inspect,
    multiple_results=True,
    sharding=lambda p, avals, outs: (),
    traits=Traits(makes_nans=False),
)
ROWS = (inspect_sharding_p,)
