"""Floor 2: rows whose rules write their own primitive again.

One idea: a loop and its variant with a memory plan share their rules, so a rule is not
tied to a row: it is given `bind`, which writes another equation of the row's own kind::

    scan_p = loop_row("scan", ScanParams, jvp=jvp_scan, batch=batch_scan, ...)
"""

from collections.abc import Callable, Sequence

from verax.ir.jaxpr import Params
from verax.ops.control.scan_partial_eval import Bind
from verax.rules.rows.bodies import Through, Values
from verax.rules.rows.row import (
    Axis,
    DceRule,
    Engine,
    EvaluateRule,
    Known,
    LowerRule,
    Row,
    Split,
    Tangent,
    TypeRule,
    as_typed,
)
from verax.rules.rows.traits import Traits, Work
from verax.rules.values.array import Array

type LoopJvp[P] = Callable[
    [Engine, Bind, P, Sequence[Array], Sequence[Tangent]],
    tuple[Sequence[Array], Sequence[Tangent]],
]
type LoopTranspose[P] = Callable[
    [Engine, Bind, P, Sequence[Tangent], Sequence[Known]], Sequence[Tangent | None]
]
type LoopBatch[P] = Callable[
    [Engine, Bind, P, int, Sequence[Array], Sequence[Axis]],
    tuple[Sequence[Array], Sequence[Axis]],
]
type LoopThread[P] = Callable[[Through, Bind, P, Values], Values]
type LoopSplit[P] = Callable[[Engine, Bind, P, Sequence[Known]], Split]


def loop_row[P: Params](
    name: str,
    kind: type[P],
    *,
    typing: TypeRule[P],
    evaluate: EvaluateRule[P],
    jvp: LoopJvp[P],
    transpose: LoopTranspose[P],
    batch: LoopBatch[P],
    lower: LowerRule[P],
    split: LoopSplit[P],
    dce: DceRule[P],
    thread: LoopThread[P],
) -> Row[P]:
    """A compiled row; the rules that write loops get `bind` after the engine."""

    def bind(p: P, *args: Array) -> tuple[Array, ...]:
        return row.bind(p, *args)

    row: Row[P] = Row(
        name,
        kind,
        typing=typing,
        evaluate=evaluate,
        jvp=lambda engine, p, xs, ts: jvp(engine, bind, p, xs, ts),
        transpose=lambda engine, p, cts, args: transpose(engine, bind, p, cts, args),
        batch=lambda engine, p, size, args, axes: batch(
            engine, bind, p, size, args, axes
        ),
        lower=lower,
        split=lambda engine, p, args: split(engine, bind, p, args),
        dce=dce,
        thread=lambda through, p, values: thread(through, bind, p, values),
        traits=Traits(Work.BLOCK, loop=True),
        compiled=True,
        multiple_results=True,
        sharding=as_typed,
    )
    return row
