"""Floor 1: rows that are linear in their operands, and columns for one operand.

One idea: a linear row is its own derivative, so it states only its transpose; a rule of
one operand need not unpack it::

    rev_p = linear("rev", RevParams, typing=..., batch=one_batched(batch_rev), ...)
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.rules.rows.infer import dense, nonzeros
from verax.rules.rows.row import (
    REALS,
    Axis,
    BatchRule,
    Domain,
    Engine,
    JvpRule,
    Linear,
    LowerRule,
    Row,
    Sample,
    ShardingRule,
    Tangent,
    TransposeRule,
    TypeRule,
    Zero,
)
from verax.rules.rows.traits import NO_TRAITS, Traits
from verax.rules.values.array import Array
from verax.rules.values.lazy import LazyModule

# Few programs have meshes with explicit axes.
SPLITS: Final = LazyModule("verax.rules.rows.type_shardings")

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
) -> Row[P]:
    """A row of one result that is linear in its first `operands` operands together.

    `evaluate(params, *arrays)` gives the one result. `operands=None` means all. The
    tangent of the others (indices, say) is zero, whatever they are.
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
        draw=draw,
        domains=tuple(domains),
        compiled=compiled,
        traits=traits,
        sharding=sharding,
        terms=partial(SPLITS.linear_terms, count=operands),
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
