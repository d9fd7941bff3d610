"""Floor 2: the remainder of a division towards zero.

It is a multiple of the divisor less than what is divided::

    rem_p: z = x - y trunc(x / y),  dz = dx - trunc(x / y) dy
"""

from verax.ir.jaxpr import NO_PARAMS
from verax.ops import base
from verax.ops.elementwise.arith import div, mul, neg, sub
from verax.ops.elementwise.kernels import remainders
from verax.rules.families.elementwise import elementwise, stablehlo
from verax.rules.rows.eager_costs import huge
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import Domain, Rows, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import REAL
from verax.rules.values.operands import alike

rem_p = elementwise(
    "rem",
    base.remainder,
    operands=2,
    jvp=(
        lambda x, y, z, t: t,
        lambda x, y, z, t: mul(t, neg(div(sub(x, z), y))),
    ),
    lower=stablehlo("remainder"),
    kernel=Kernel(
        dict.fromkeys(remainders.MULTIPLE, remainders.rem),
        dict.fromkeys(remainders.MULTIPLE, remainders.is_near),
    ),
    accepts=REAL,
    domains=(Domain(), Domain(special=(0.0, -1.0, 1.0))),
    costly=huge,
    traits=Traits(Work.SLOW),
)


def rem(x: object, y: object) -> Array:
    """The remainder of x after division by y towards zero, with the sign of x.

    For integers it is x itself where y is zero, for floats NaN.

    Args:
        x, y: integers or floats of the same dtype: arrays of the same shape, where a
            size of 1 goes with any other, or scalars. A Python scalar takes the dtype
            of the array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of other kinds, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.rem(vnp.array([7, -7, 7]), vnp.array([3, 3, 0]))
    Array([ 1, -1,  7], dtype=int32)
    >>> lax.rem(vnp.array([5.5, -5.5]), -2.0)
    Array([ 1.5, -1.5], dtype=float32)
    """
    return rem_p.call(NO_PARAMS, *alike(x, y))


ROWS: Rows = (rem_p,)
