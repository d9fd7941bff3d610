"""Floor 2: `custom_partitioning`: a call that the user partitions over devices.

The equation holds the function and, as a value, the rule. In a program for one device
it means the function; over a mesh, XLA asks the rule what each device computes::

    b:f32[8] = custom_partitioning[name=f captured=0 jaxpr={ ... } rule=...] a
"""

from collections.abc import Sequence

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.call import NamedCall, jit_p, rule_call
from verax.ops.custom.base import custom_row, lower_body
from verax.rules.rows.emitter import Emitter, Operand, Partitioner
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    MissingRule,
    Row,
    Rows,
    Tangent,
)
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class PartitioningParams(NamedCall):
    """The function, how many of its first inputs it captured, and the rule."""

    name: str
    captured: int
    jaxpr: Jaxpr
    rule: Partitioner


def lower_partitioned(
    e: Emitter,
    p: PartitioningParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """What XLA asks the rule about; on one device the function.

    Raises:
        TypeError: the function has effects, which no device would own.
    """
    if not outs:
        return lower_body(e, p, operands, outs)
    found = e.partitioned(p.rule, operands[p.captured :], outs)
    if found is None:
        return lower_body(e, p, operands, outs)
    if p.jaxpr.effects:
        raise TypeError(
            f"the custom_partitioning function {p.name} has effects, which a program "
            "over several devices would lose: take the callbacks out of it"
        )
    return found


def refused(p: PartitioningParams, what: str, advice: str) -> MissingRule:
    """The error for a transformation of which the rule says nothing."""
    return MissingRule(
        f"{what} of the custom_partitioning function {p.name}: its rule says nothing "
        f"about that; {advice}"
    )


def jvp_refused(
    engine: Engine,
    p: PartitioningParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    raise refused(
        p,
        "the derivative",
        "give the function that calls it a derivative with verax.custom_vjp or "
        "verax.custom_jvp, which may call other such functions",
    )


def transpose_refused(
    engine: Engine,
    p: PartitioningParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    raise refused(
        p, "the transpose", "give the function that calls it one with custom_vjp"
    )


def batch_partitioned(
    engine: Engine,
    p: PartitioningParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Inside `shard_map` the function, which each device computes for itself.

    Raises:
        MissingRule: the elements are not those of devices.
    """
    if engine.axis is not None and engine.axis.of_parts:
        jaxpr, out_axes = engine.batch(p.jaxpr, size, tuple(axes))
        return jit_p.bind(rule_call(p.name, jaxpr), *args), out_axes
    raise refused(
        p,
        "vmap",
        "write the function for arrays with leading dimensions (`...` in its "
        "sharding_rule), or give it a batching rule with verax.custom_batching",
    )


custom_partitioning_p: Row[PartitioningParams] = custom_row(
    "custom_partitioning",
    PartitioningParams,
    jvp=jvp_refused,
    transpose=transpose_refused,
    batch=batch_partitioned,
    lower=lower_partitioned,
)
ROWS: Rows = (custom_partitioning_p,)
