"""Floor 2: products x log y, as entropies are made of.

One idea: the limit x log y = 0 at x = 0 needs a rule of its own, since neither the
product of 0 and -inf nor its derivative says so::

    xlogy_p: z = x log y,  dz = dx log y + dy x / y,  where 0 / 0 is 0
"""

from verax.ir.jaxpr import NO_PARAMS
from verax.ops.base.xla_semantics import in_wide
from verax.ops.elementwise.arith import add, div, mul
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.exp_log import log, log1p
from verax.ops.elementwise.select import select
from verax.rules.families.elementwise import composed, elementwise
from verax.rules.rows.eager_costs import large
from verax.rules.rows.row import Domain, Rows
from verax.rules.values.array import Array
from verax.rules.values.kinds import FLOAT
from verax.rules.values.lazy import LazyModule
from verax.rules.values.operands import alike

special = LazyModule("scipy.special")


def product(x: Array, y: Array, found: Array) -> Array:
    """x times a logarithm of y: 0 where x is 0, unless y is NaN."""
    return select(bitwise_and(eq(x, 0.0), eq(y, y)), 0.0, mul(x, found))


def quotient(x: Array, y: Array) -> Array:
    """x / y, and 0 where both are 0; its derivative at x = 0 is 1 / y elsewhere."""
    return select(bitwise_and(eq(x, 0.0), eq(y, 0.0)), 0.0, div(x, y))


xlogy_p = elementwise(
    "xlogy",
    in_wide(special.xlogy),
    operands=2,
    jvp=(
        lambda x, y, z, t: mul(t, log(y)),
        lambda x, y, z, t: mul(t, quotient(x, y)),
    ),
    lower=composed(lambda x, y: product(x, y, log(y))),
    accepts=FLOAT,
    domains=(Domain(0, 5, special=(0.0, 1.0)), Domain(0.1, 5, special=(1.0,))),
    costly=large,
)
xlog1py_p = elementwise(
    "xlog1py",
    in_wide(special.xlog1py),
    operands=2,
    jvp=(
        lambda x, y, z, t: mul(t, log1p(y)),
        lambda x, y, z, t: mul(t, quotient(x, add(y, 1.0))),
    ),
    lower=composed(lambda x, y: product(x, y, log1p(y))),
    accepts=FLOAT,
    domains=(Domain(0, 5, special=(0.0, 1.0)), Domain(-0.8, 5, special=(0.0,))),
    costly=large,
)


def xlogy(x: object, y: object) -> Array:
    """x log y, 0 where x is 0."""
    return xlogy_p.call(NO_PARAMS, *alike(x, y))


def xlog1py(x: object, y: object) -> Array:
    """x log(1 + y), 0 where x is 0."""
    return xlog1py_p.call(NO_PARAMS, *alike(x, y))


ROWS: Rows = (xlogy_p, xlog1py_p)
