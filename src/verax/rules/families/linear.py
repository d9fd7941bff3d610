"""Floor 1: rows that are linear in their operands, and columns for one operand.

One idea: a linear row is its own derivative, so it states only its transpose; a rule of
one operand need not unpack it::

    rev_p = linear("rev", RevParams, typing=..., batch=one_batched(batch_rev), ...)
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.rules.rows.eager_costs import Costly
from verax.rules.rows.infer import dense, nonzeros
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    NO_TRAITS,
    REALS,
    Axis,
    BatchRule,
    Domain,
    Engine,
    JvpRule,
    Known,
    Linear,
    LowerRule,
    NDArray,
    Row,
    Sample,
    ShardingRule,
    Tangent,
    TermRule,
    Traits,
    TransposeRule,
    TypeRule,
    Zero,
)
from verax.rules.rows.type_shardings import linear_terms
from verax.rules.values.array import Array
from verax.rules.values.conversions import NotLinear

type Pushed = tuple[Sequence[Array], Sequence[Tangent]]
"""Results, and their tangents."""


def linear[P: Params](
    name: str,
    params: type[P],
    *,
    typing: TypeRule[P],
    evaluate: Callable[..., Any] | None,
    transpose: TransposeRule[P],
    batch: BatchRule[P],
    lower: LowerRule[P] | None,
    draw: Callable[[Random], Sample[P]] | None,
    operands: int | None = None,
    domains: Sequence[Domain] = (REALS,),
    compiled: bool = False,
    traits: Traits = NO_TRAITS,
    sharding: ShardingRule[P] | None = None,
    composition: Callable[..., object] | None = None,
    kernel: Kernel | None = None,
) -> Row[P]:
    """A row of one result that is linear in its first `operands` operands together.

    `evaluate(params, *arrays)` gives the one result, or `composition` as a program.
    `operands=None` means all. The tangent of the others (indices, say) is zero,
    whatever they are.
    """

    row: Row[P] = Row(
        name,
        params,
        typing=typing,
        evaluate=evaluate and (lambda engine, p, xs: (evaluate(p, *xs),)),
        jvp=jvp_of_linear(lambda: row, operands),
        transpose=transpose,
        batch=batch,
        lower=lower,
        kernel=kernel,
        draw=draw,
        domains=tuple(domains),
        compiled=compiled,
        traits=traits,
        sharding=sharding,
        terms=partial(linear_terms, count=operands),
        composition=composition,
    )
    return row


def jvp_of_linear[P: Params](
    row_of: Callable[[], Row[P]], operands: int | None = None
) -> JvpRule[P]:
    """The jvp column of a row that is linear in its first `operands` together."""

    def jvp(
        engine: Engine, p: P, primals: Sequence[Array], tangents: Sequence[Tangent]
    ) -> Pushed:
        y = row_of().call(p, *primals)
        count = len(primals) if operands is None else operands
        if not any(nonzeros(tangents[:count])):
            return (y,), (Zero(y.aval.tangent()),)
        own = [dense(engine, t) for t in tangents[:count]]
        return (y,), (row_of().call(p, *own, *primals[count:]),)

    return jvp


def one_pushed[P: Params](rule: Callable[[P, Array, Array], Pushed]) -> JvpRule[P]:
    """The jvp column of a row of one operand: `rule(params, operand, its tangent)`."""

    def jvp(
        engine: Engine, p: P, primals: Sequence[Array], tangents: Sequence[Tangent]
    ) -> Pushed:
        (x,), (t,) = primals, tangents
        assert isinstance(t, Array), "a rule is asked where a tangent is not zero"
        return rule(p, x, t)

    return jvp


def one_batched[P: Params](
    rule: Callable[[P, int, Array, int], tuple[Array, int]],
) -> BatchRule[P]:
    """The batch column of a row of one operand and one result.

    `rule(params, size, operand, its batch dimension)` gives the result and its batch
    dimension.
    """

    def batch(
        engine: Engine, p: P, size: int, args: Sequence[Array], axes: Sequence[Axis]
    ) -> tuple[Sequence[Array], Sequence[Axis]]:
        (x,), (axis,) = args, axes
        assert axis is not None, "a rule is asked where an operand is batched"
        y, place = rule(p, size, x, axis)
        return (y,), (place,)

    return batch


def zero_jvp[P: Params](row_of: Callable[[], Row[P]]) -> JvpRule[P]:
    """The jvp column of a row whose derivative is zero wherever it exists."""

    def jvp(
        engine: Engine, p: P, primals: Sequence[Array], tangents: Sequence[Tangent]
    ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        results = row_of().bind(p, *primals)
        return results, [Zero(y.aval.tangent()) for y in results]

    return jvp


def one_linear[P: Params](
    rule: Callable[[P, Array, ShapedArray], Array],
) -> TransposeRule[P]:
    """The transpose column of a unary row: `rule(params, cotangent, operand type)`."""

    def transpose(
        engine: Engine, p: P, cts: Sequence[Tangent], args: Sequence[Array | Linear]
    ) -> Sequence[Tangent | None]:
        ct, operand = cts[0], args[0].aval
        return (Zero(operand) if isinstance(ct, Zero) else rule(p, ct, operand),)

    return transpose


# -----------------------------------------------------------------------------
# The family of products: linear in each of two operands, not in both.
#
# A bilinear row is its own derivative in either operand, so it states only how
# a cotangent goes back to one of them, given the other::
#
#     dot_general_p = bilinear("dot_general", DotParams, to_lhs=..., to_rhs=...)


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
    kernel: Kernel | None = None,
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
        kernel=kernel,
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
