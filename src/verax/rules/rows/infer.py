"""Floor 1: the type of a result, worked out once per primitive, params and types.

One idea: a type rule is pure, so its answer is a cache entry::

    infer(sin_p, NO_PARAMS, ShapedArray((3,), float32))
"""

from typing import Any

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.jaxpr import Params
from verax.rules.rows.row import Row
from verax.rules.values.memo import asked, pure


@pure(1 << 16, holder="params", keep=False)
def infer(
    row: Row[Any], params: Params, *avals: ShapedArray
) -> tuple[ShapedArray, ...]:
    """The result types of `row` on operands of types `avals`.

    Raises:
        TypeError, ValueError: the operands do not fit; the text names the primitive.
    """
    if AbstractRef in map(type, avals) and not takes_references(params):
        raise TypeError(
            f"{row.name} takes arrays, not references {avals}; read them: ref[...]"
        )
    return tuple(row.typing(params, avals))


def takes_references(params: Params) -> bool:
    """Whether operands may be references: to touch, or for a program inside."""
    return params.touches or any(True for _ in params.subjaxprs())


def inferred(
    row: Row[Any], params: Params, *avals: ShapedArray
) -> tuple[ShapedArray, ...]:
    """`infer` for any params: what holds arrays or closures is not kept."""
    return asked(infer, params, row, params, *avals)
