"""Floor 1: rows that are linear in their operands, or that have no derivative.

One idea: a linear row is its own derivative, so it states only its transpose::

    transpose_p = linear("transpose", TransposeParams, typing=..., transpose=...)
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.rules.rows.masks import dense
from verax.rules.rows.row import (
    REALS,
    Axis,
    BatchRule,
    Domain,
    Engine,
    Linear,
    LowerRule,
    Row,
    Sample,
    Tangent,
    TransposeRule,
    TypeRule,
    Zero,
)
from verax.rules.values.array import Array


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
) -> Row[P]:
    """A row of one result that is linear in its first `operands` operands together.

    `evaluate(params, *arrays)` gives the one result. `operands=None` means all. The
    tangent of the others (indices, say) is zero, whatever they are.
    """

    def jvp(
        engine: Engine, p: P, primals: Sequence[Array], tangents: Sequence[Tangent]
    ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        y = row.call(p, *primals)
        count = len(primals) if operands is None else operands
        if all(isinstance(t, Zero) for t in tangents[:count]):
            return (y,), (Zero(y.aval.tangent()),)
        own = [dense(engine, t) for t in tangents[:count]]
        return (y,), (row.call(p, *own, *primals[count:]),)

    row: Row[P] = Row(
        name,
        params,
        typing=typing,
        evaluate=evaluate and (lambda engine, p, xs: (evaluate(p, *xs),)),
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        lower=lower,
        draw=draw,
        domains=tuple(domains),
        compiled=compiled,
    )
    return row


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


def zero_jvp[P: Params](
    row_of: Callable[[], Row[P]],
) -> Callable[
    [Engine, P, Sequence[Array], Sequence[Tangent]],
    tuple[Sequence[Array], Sequence[Tangent]],
]:
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
