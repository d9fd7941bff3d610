"""Floor 2: comparisons, which give booleans.

One row per direction; NaN is unequal to everything, itself included, except in the
`_to` variants, which follow IEEE's total order (-NaN < -0 < 0 < NaN)::

    lt_p: z = x < y,  dz = 0
"""

from collections.abc import Callable, Sequence

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import KeyDType, bool_, is_float
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops.base import total_order_key
from verax.rules.families.elementwise import elementwise, stablehlo
from verax.rules.rows.emitter import Emitter, Operand, compared, direction
from verax.rules.rows.row import NDArray, Row, Rows, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, ORDERED, Kind
from verax.rules.values.operands import alike

type Compare = Callable[[NDArray, NDArray], NDArray]


def comparison(
    name: str, evaluate: Compare, accepts: Kind, commutative: bool = False
) -> Row[NoParams]:
    """A row that compares in the direction that its name says."""
    return elementwise(
        name,
        evaluate,
        operands=2,
        accepts=accepts,
        result=lambda dtype: bool_,
        lower=stablehlo("compare", comparison_direction=direction(way(name))),
        traits=Traits(Work.CHEAP, commutative=commutative),
    )


def way(name: str) -> str:
    """StableHLO's word for the comparison `name`.

    >>> way("le_to")
    'LE'
    """
    return name[:2].upper()


def total_order(name: str, evaluate: Compare) -> Row[NoParams]:
    """A row that compares floats by IEEE's total order, and others as usual."""

    def lower(
        e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        x, y = xs
        kind = "TOTALORDER" if is_float(x.aval.dtype) else ""
        return (compared(e, x, way(name), y, kind),)

    return elementwise(
        name,
        lambda x, y: evaluate(total_order_key(x), total_order_key(y)),
        operands=2,
        accepts=ORDERED,
        result=lambda dtype: bool_,
        lower=lower,
    )


eq_p = comparison("eq", np.equal, ANYTHING, commutative=True)
ne_p = comparison("ne", np.not_equal, ANYTHING, commutative=True)
lt_p = comparison("lt", np.less, ORDERED)
le_p = comparison("le", np.less_equal, ORDERED)
gt_p = comparison("gt", np.greater, ORDERED)
ge_p = comparison("ge", np.greater_equal, ORDERED)
eq_to_p = total_order("eq_to", np.equal)
lt_to_p = total_order("lt_to", np.less)
le_to_p = total_order("le_to", np.less_equal)


def eq(x: object, y: object) -> Array:
    """x = y, on operands of the same dtype and of the same shape or scalar."""
    return eq_p.call(NO_PARAMS, *alike(x, y))


def ne(x: object, y: object) -> Array:
    """x ≠ y, on operands of the same dtype and of the same shape or scalar."""
    return ne_p.call(NO_PARAMS, *alike(x, y))


def lt(x: object, y: object) -> Array:
    """x < y, false where one of them is NaN.

    Args:
        x, y: integers, floats or booleans of the same dtype: arrays of the same shape,
            where a size of 1 goes with any other, or scalars. A Python scalar takes the
            dtype of the array beside it.

    Returns:
        An array of booleans, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of complex numbers, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.lt(vnp.array([1.0, 2.0, vnp.nan]), 2.0)
    Array([ True, False, False], dtype=bool)
    """
    return lt_p.call(NO_PARAMS, *alike(x, y))


def le(x: object, y: object) -> Array:
    """x ≤ y, false where one of them is NaN.

    Args:
        x, y: integers, floats or booleans of the same dtype: arrays of the same shape,
            where a size of 1 goes with any other, or scalars. A Python scalar takes the
            dtype of the array beside it.

    Returns:
        An array of booleans, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of complex numbers, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.le(vnp.array([1.0, 2.0, vnp.nan]), 2.0)
    Array([ True,  True, False], dtype=bool)
    """
    return le_p.call(NO_PARAMS, *alike(x, y))


def gt(x: object, y: object) -> Array:
    """x > y, false where one of them is NaN.

    Args:
        x, y: integers, floats or booleans of the same dtype: arrays of the same shape,
            where a size of 1 goes with any other, or scalars. A Python scalar takes the
            dtype of the array beside it.

    Returns:
        An array of booleans, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of complex numbers, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.gt(vnp.array([[1], [3]]), vnp.array([[0, 2]]))
    Array([[ True, False],
           [ True,  True]], dtype=bool)
    """
    return gt_p.call(NO_PARAMS, *alike(x, y))


def ge(x: object, y: object) -> Array:
    """x ≥ y, false where one of them is NaN.

    Args:
        x, y: integers, floats or booleans of the same dtype: arrays of the same shape,
            where a size of 1 goes with any other, or scalars. A Python scalar takes the
            dtype of the array beside it.

    Returns:
        An array of booleans, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of complex numbers, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.ge(vnp.array([0.0, -0.0, vnp.nan]), 0.0)
    Array([ True,  True, False], dtype=bool)
    """
    return ge_p.call(NO_PARAMS, *alike(x, y))


def eq_to(x: object, y: object) -> Array:
    """Whether x and y are at one place of the total order: NaN equals itself."""
    return eq_to_p.call(NO_PARAMS, *alike(x, y))


def lt_to(x: object, y: object) -> Array:
    """Whether x comes before y in the total order."""
    return lt_to_p.call(NO_PARAMS, *alike(x, y))


def le_to(x: object, y: object) -> Array:
    """Whether x comes before y in the total order or is at its place."""
    return le_to_p.call(NO_PARAMS, *alike(x, y))


def key_pair(x: object, y: object) -> tuple[Array, Array] | None:
    """The operands, if both are keys of one generator."""
    if not isinstance(x, Array) or not isinstance(x.aval.dtype, KeyDType):
        return None
    return (x, y) if isinstance(y, Array) and x.aval.dtype == y.aval.dtype else None


ROWS: Rows = (
    eq_p,
    ne_p,
    lt_p,
    le_p,
    gt_p,
    ge_p,
    eq_to_p,
    lt_to_p,
    le_to_p,
)
