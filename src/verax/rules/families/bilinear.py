"""Floor 1: the family of products: linear in each of two operands, not in both.

One idea: a bilinear row is its own derivative in either operand, so it states only how
a cotangent goes back to one of them, given the other::

    dot_general_p = bilinear("dot_general", DotParams, to_lhs=..., to_rhs=...)
"""

from collections.abc import Callable, Sequence
from random import Random

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.rules.rows.eager_costs import Costly
from verax.rules.rows.row import (
    REALS,
    BatchRule,
    Domain,
    Engine,
    Known,
    Linear,
    LowerRule,
    NDArray,
    Row,
    Sample,
    ShardingRule,
    Tangent,
    TermRule,
    TypeRule,
    Zero,
)
from verax.rules.rows.traits import NO_TRAITS, Traits
from verax.rules.values.array import Array
from verax.rules.values.conversions import NotLinear

type Back[P] = Callable[[Engine, P, Array, ShapedArray, Array], Array]


def bilinear[P: Params](
    name: str,
    params: type[P],
    *,
    typing: TypeRule[P],
    evaluate: Callable[[P, NDArray, NDArray], NDArray],
    to_lhs: Back[P],
    to_rhs: Back[P],
    batch: BatchRule[P],
    lower: LowerRule[P],
    draw: Callable[[Random], Sample[P]],
    domains: Sequence[Domain] = (REALS, REALS),
    compiled: bool = False,
    traits: Traits = NO_TRAITS,
    costly: Costly | None = None,
    sharding: ShardingRule[P] | None = None,
    terms: TermRule[P] | None = None,
) -> Row[P]:
    """A row of two operands, linear in each.

    `to_lhs(engine, params, cotangent, type of lhs, rhs)` gives the cotangent of the
    left operand, `to_rhs(engine, params, cotangent, type of rhs, lhs)` of the right.
    """

    row: Row[P] = Row(
        name,
        params,
        typing=typing,
        evaluate=lambda engine, p, xs: (evaluate(p, *xs),),
        jvp=lambda engine, p, xs, ts: jvp_bilinear(engine, row, p, xs, ts),
        transpose=lambda engine, p, cts, xs: transpose_bilinear(
            engine, p, cts[0], xs, to_lhs, to_rhs
        ),
        batch=batch,
        lower=lower,
        draw=draw,
        domains=tuple(domains),
        compiled=compiled,
        traits=traits,
        costly=costly,
        sharding=sharding,
        terms=terms,
    )
    return row


def jvp_bilinear[P: Params](
    engine: Engine,
    row: Row[P],
    p: P,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """dz = t_x y + x t_y."""
    x, y = primals
    t_x, t_y = tangents
    z = row.call(p, x, y)
    if t_of_integer(z):
        return (z,), (Zero(z.aval.tangent()),)
    parts = []
    if not isinstance(t_x, Zero):
        parts.append(row.call(p, t_x, y))
    if not isinstance(t_y, Zero):
        parts.append(row.call(p, x, t_y))
    if not parts:
        return (z,), (Zero(z.aval.tangent()),)
    return (z,), (engine.core.add(*parts) if len(parts) == 2 else parts[0],)


def transpose_bilinear[P: Params](
    engine: Engine,
    p: P,
    ct: Tangent,
    args: Sequence[Known],
    to_lhs: Back[P],
    to_rhs: Back[P],
) -> Sequence[Tangent | None]:
    """The cotangent of the operand that is linear, given the other."""
    x, y = args
    if isinstance(x, Linear):
        if isinstance(y, Linear):
            raise NotLinear("a product is linear in each operand alone, not in both")
        assert isinstance(y, Array)
        if isinstance(ct, Zero):
            return Zero(x.aval), None
        return typed(engine, to_lhs(engine, p, ct, x.aval, y), x.aval), None
    assert isinstance(y, Linear)
    if isinstance(ct, Zero):
        return None, Zero(y.aval)
    return None, typed(engine, to_rhs(engine, p, ct, y.aval, x), y.aval)


def t_of_integer(z: Array) -> bool:
    """Whether `z` has no tangents, though an operand has (a product made integer)."""
    return z.aval.tangent().dtype != z.dtype


def typed(engine: Engine, ct: Array, aval: ShapedArray) -> Array:
    """A cotangent in the dtype of its operand, which may be another than the sum's."""
    if ct.dtype == aval.dtype:
        return ct
    return engine.core.convert(ct, aval.dtype, aval.weak_type)
