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

    Where the integer y is zero, it is x itself.
    """
    return rem_p.call(NO_PARAMS, *alike(x, y))


ROWS: Rows = (rem_p,)
