"""Floor 2: rounding to integers, in the dtype of the operand.

The derivative is zero wherever it exists, and is taken to be zero::

    round(2.5)                                      # 3.0, away from zero
    round(2.5, RoundingMethod.TO_NEAREST_EVEN)      # 2.0
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Self

import numpy as np
from attrs import frozen

from verax.ir.dtypes import bool_
from verax.ir.jaxpr import NO_PARAMS, Params
from verax.ops import base
from verax.rules.families.elementwise import elementwise, parametric, stablehlo
from verax.rules.rows.eager_costs import huge
from verax.rules.rows.row import Domain, NDArray, Rows, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import FLOAT

HALVES = Domain(-5, 5, special=(0.5, 1.5, -0.5, -2.5, -0.0, np.inf, np.nan))


class RoundingMethod(IntEnum):
    """The rounding of numbers halfway between two integers."""

    __module__ = "verax.lax"

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@frozen(eq=False, repr=False)
class RoundParams(Params):
    """The name of the rounding method."""

    rounding_method: str

    @classmethod
    def from_keywords(cls, fields: Mapping[str, object]) -> Self:
        """Params by keyword, where the method may be one of `RoundingMethod`."""
        method = fields["rounding_method"]
        if isinstance(method, int):
            method = RoundingMethod(method).name
        return super().from_keywords({**fields, "rounding_method": method})


LOWERED = {
    "AWAY_FROM_ZERO": stablehlo("round_nearest_afz"),
    "TO_NEAREST_EVEN": stablehlo("round_nearest_even"),
}


def evaluate_round(p: RoundParams, x: NDArray) -> NDArray:
    if p.rounding_method == "TO_NEAREST_EVEN":
        return np.rint(base.wide(x))
    return base.round_away(x)


floor_p = elementwise(
    "floor",
    np.floor,
    lower=stablehlo("floor"),
    accepts=FLOAT,
    domains=HALVES,
    traits=Traits(Work.CHEAP, makes_nans=False, keeps_zero=True),
)
ceil_p = elementwise(
    "ceil",
    np.ceil,
    lower=stablehlo("ceil"),
    accepts=FLOAT,
    domains=HALVES,
    traits=Traits(Work.CHEAP, makes_nans=False, keeps_zero=True),
)
round_p = parametric(
    "round",
    RoundParams,
    evaluate_round,
    lower=lambda e, p, xs, outs: LOWERED[p.rounding_method](e, p, xs, outs),
    accepts=FLOAT,
    params_of=lambda random, dtype: RoundParams(random.choice(list(LOWERED))),
    domains=HALVES,
    costly=huge,
    traits=Traits(Work.CHEAP, makes_nans=False, keeps_zero=True),
)
is_finite_p = elementwise(
    "is_finite",
    np.isfinite,
    lower=stablehlo("is_finite"),
    accepts=FLOAT,
    result=lambda dtype: bool_,
    domains=Domain(special=(np.inf, -np.inf, np.nan)),
    traits=Traits(Work.CHEAP, keeps_zero=False),
)


def floor(x: object) -> Array:
    """The largest integer that is at most x.

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.floor(vnp.array([-1.5, 0.2, vnp.inf]))
    Array([-2.,  0., inf], dtype=float32)
    """
    return floor_p.call(NO_PARAMS, x)


def ceil(x: object) -> Array:
    """The smallest integer that is at least x.

    Args:
        x: a float array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.ceil(vnp.array([-1.5, 0.2, -0.2]))
    Array([-1.,  1., -0.], dtype=float32)
    """
    return ceil_p.call(NO_PARAMS, x)


def round(
    x: object, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO
) -> Array:
    """The integer nearest to x; halves go away from zero, or to the even one.

    Args:
        x: a float array or scalar.
        rounding_method: where halves go, a `lax.RoundingMethod` or its number; by
            default away from zero, unlike `verax.numpy.round`, which rounds them to
            even.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats.
        ValueError: there is no such method.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([0.5, 1.5, -2.5])
    >>> lax.round(x)
    Array([ 1.,  2., -3.], dtype=float32)
    >>> lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([ 0.,  2., -2.], dtype=float32)
    """
    name = RoundingMethod(rounding_method).name
    return round_p.call(RoundParams(name), x)


def is_finite(x: object) -> Array:
    """Whether x is neither infinite nor NaN.

    Args:
        x: a float array or scalar.

    Returns:
        Booleans of the shape of `x`.

    Raises:
        TypeError: `x` does not hold real floats.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.is_finite(vnp.array([1.0, -vnp.inf, vnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    return is_finite_p.call(NO_PARAMS, x)


ROWS: Rows = (floor_p, ceil_p, round_p, is_finite_p)
