"""Floor 2: `dce_sink`: a value that stays in the program although nothing uses it.

Removing what is unused keeps equations with effects, and all that this one does is to
have one::

    dce_sink[] a
"""

from collections.abc import Sequence

from attrs import frozen

from verax.ir.effects import DEBUG, Effect
from verax.ir.jaxpr import Params
from verax.rules.rows.row import Engine, Row, Rows, Tangent
from verax.rules.rows.traits import Traits, no_flops
from verax.rules.rows.type_shardings import whole_results
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class SinkParams(Params):
    """The params of a sink: none."""

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset((DEBUG,))


SINK = SinkParams()


def jvp_sink(
    engine: Engine,
    p: SinkParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The primal value is kept, its tangent is not."""
    return dce_sink_p.bind(p, *primals), ()


dce_sink_p: Row[SinkParams] = Row(
    "dce_sink",
    SinkParams,
    typing=lambda p, avals: (),
    evaluate=lambda engine, p, xs: (),
    jvp=jvp_sink,
    batch=lambda engine, p, size, xs, axes: (dce_sink_p.bind(p, *xs), ()),
    lower=lambda e, p, xs, outs: (),
    multiple_results=True,
    sharding=whole_results,
    traits=Traits(flops=no_flops, view=True),
)

ROWS: Rows = (dce_sink_p,)
