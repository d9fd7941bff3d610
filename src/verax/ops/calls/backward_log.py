"""Floor 2: `backward_log`: values that a backward pass hands out beside its cotangents.

One idea: a rule says what it has seen with an equation that has no results; it is an
effect, so that no rewrite loses it, and where nobody collects it nothing is computed.
See `verax.transforms.backward_logs`::

    backward_log[key='norm' tree=PyTreeDef(*)] x
"""

from collections.abc import Hashable, Sequence

from attrs import frozen

from verax.ir.effects import LOGS, Effect
from verax.ir.jaxpr import Params
from verax.ops.structure.shape import at_front
from verax.rules.rows.row import Axis, Engine, Row, Rows, Tangent
from verax.rules.rows.type_shardings import whole_results
from verax.rules.values.array import Array


@frozen(cache_hash=True, repr=False)
class LogParams(Params):
    """The name of a log, and the structure whose leaves are the operands."""

    key: Hashable
    tree: Hashable

    @property
    def effects(self) -> frozenset[Effect]:
        return LOGS


def jvp_log(
    engine: Engine, p: LogParams, primals: Sequence[Array], ts: Sequence[Tangent]
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The primal values are logged; nothing is said of tangents."""
    return backward_log_p.bind(p, *primals), ()


def batch_log(
    engine: Engine,
    p: LogParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """What differs between elements is logged with the batch in the first dimension."""
    moved = [
        x if axis is None else at_front(x, axis, size)
        for x, axis in zip(args, axes, strict=True)
    ]
    return backward_log_p.bind(p, *moved), ()


backward_log_p: Row[LogParams] = Row(
    "backward_log",
    LogParams,
    typing=lambda p, avals: (),
    evaluate=lambda engine, p, xs: (),
    jvp=jvp_log,
    batch=batch_log,
    lower=lambda e, p, xs, outs: (),
    multiple_results=True,
    sharding=whole_results,
)

ROWS: Rows = (backward_log_p,)
