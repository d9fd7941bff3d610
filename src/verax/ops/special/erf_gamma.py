"""Floor 2: special functions: the error function, gamma and its relatives.

One idea: SciPy is the reference, CHLO expands the compiled form, and each derivative is
in closed form through the next function::

    lgamma_p: y = log |Γ(x)|,  dy = t digamma(x)

The formulas are those of the NIST Digital Library of Mathematical Functions, chapters
5 (gamma), 7 (error functions) and 25 (zeta).
"""

from collections.abc import Callable, Sequence

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import SMALL_FLOATS, float32
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops.base import xla_semantics
from verax.ops.base.accuracy import Accuracy, rounded
from verax.ops.base.xla_semantics import in_wide
from verax.ops.elementwise.arith import add, mul, neg
from verax.ops.elementwise.exp_log import exp, square
from verax.ops.elementwise.select import clamp
from verax.ops.special.log_gamma import log_gamma
from verax.ops.special.series import in_float32
from verax.rules.families.elementwise import chlo, elementwise
from verax.rules.programs.while_lowering import lowered
from verax.rules.rows.eager_costs import large
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Domain, Rows
from verax.rules.rows.traits import Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.kinds import FLOAT
from verax.rules.values.lazy import LazyModule
from verax.rules.values.operands import alike

special = LazyModule("scipy.special")

SLOPE = float(2 / np.sqrt(np.pi))
GAMMA = Domain(0.05, 30, special=(1.0, 2.0, np.inf))
# XLA sums the series of zeta at infinity to NaN, SciPy to 0.
FINITE_GAMMA = Domain(0.05, 30, special=(1.0, 2.0))


class NoDerivative(ValueError):
    """A derivative was requested that is not implemented."""

    __module__ = "verax.errors"


def underived(name: str, operand: str) -> Callable[..., Array]:
    """A derivative that is not implemented; raises."""

    def derivative(*args: object) -> Array:
        raise NoDerivative(
            f"the derivative of {name} with respect to {operand} is not available; "
            f"stop it with verax.lax.stop_gradient({operand})"
        )

    return derivative


def bell(x: Array) -> Array:
    """exp(-x²), cut off where it is zero, so that its slope is zero at infinity."""
    return exp(neg(square(clamp(-30.0, x, 30.0))))


def lower_erfc(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One operation; in float32 for 8-bit floats, which CHLO does not expand."""
    if outs[0].dtype not in SMALL_FLOATS:
        return e.op("chlo.erfc", xs, outs)
    kind = (outs[0].with_dtype(float32),)
    result = e.op("chlo.erfc", e.op("stablehlo.convert", xs, kind), kind)
    return e.op("stablehlo.convert", result, outs)


erf_p = elementwise(
    "erf",
    in_wide(special.erf),
    jvp=lambda x, y, t: mul(t, mul(bell(x), SLOPE)),
    lower=chlo("erf"),
    accepts=FLOAT,
    domains=Domain(-5, 5, special=(0.0, np.inf, -np.inf)),
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=True),
)
erfc_p = elementwise(
    "erfc",
    in_wide(special.erfc),
    jvp=lambda x, y, t: mul(t, mul(bell(x), -SLOPE)),
    lower=lower_erfc,
    accepts=FLOAT,
    domains=Domain(-5, 5, special=(0.0, np.inf, -np.inf)),
    costly=large,
    traits=Traits(keeps_zero=False),
)
erf_inv_p = elementwise(
    "erf_inv",
    in_wide(special.erfinv),
    jvp=lambda x, y, t: mul(t, mul(exp(square(y)), 1 / SLOPE)),
    lower=chlo("erf_inv"),
    accepts=FLOAT,
    domains=Domain(-0.95, 0.95, special=(0.0, 1.0, -1.0)),
    costly=large,
    traits=Traits(keeps_zero=True),
)
lgamma_p = elementwise(
    "lgamma",
    in_wide(xla_semantics.lgamma),
    jvp=lambda x, y, t: mul(t, digamma(x)),
    lower=in_float32(lambda e, xs: lowered(e, xs, log_gamma)),
    accepts=FLOAT,
    domains=Domain(0.05, 30, special=(1.0, 2.0, np.inf, -np.inf)),
    costly=large,
    traits=Traits(keeps_zero=False),
)
digamma_p = elementwise(
    "digamma",
    in_wide(xla_semantics.digamma),
    jvp=lambda x, y, t: mul(t, polygamma(1.0, x)),
    lower=chlo("digamma"),
    accepts=FLOAT,
    domains=GAMMA,
    costly=large,
    traits=Traits(keeps_zero=False),
)
polygamma_p = elementwise(
    "polygamma",
    in_wide(special.polygamma),
    operands=2,
    jvp=(
        underived("polygamma", "m"),
        lambda m, x, y, t: mul(t, polygamma(add(m, 1.0), x)),
    ),
    lower=chlo("polygamma"),
    accepts=FLOAT,
    domains=(Domain(1, 1, special=(0.0, 2.0), smooth=False), FINITE_GAMMA),
    costly=large,
)
zeta_p = elementwise(
    "zeta",
    in_wide(special.zeta),
    operands=2,
    jvp=(
        underived("zeta", "x"),
        lambda x, q, y, t: mul(t, mul(neg(x), zeta(add(x, 1.0), q))),
    ),
    lower=chlo("zeta"),
    accepts=FLOAT,
    domains=(Domain(1.1, 10, special=(2.0,), smooth=False), FINITE_GAMMA),
)


def erf(x: object) -> Array:
    """The error function, 2/√π times the integral of exp(-t²) from 0 to x."""
    return erf_p.call(NO_PARAMS, x)


def erfc(x: object, *, accuracy: Accuracy = None) -> Array:
    """1 - erf(x), accurate for large x."""
    return rounded(erfc_p, x, accuracy)


def erf_inv(x: object) -> Array:
    """The number whose error function is x, for x in [-1, 1]."""
    return erf_inv_p.call(NO_PARAMS, x)


def lgamma(x: object) -> Array:
    """log |Γ(x)|."""
    return lgamma_p.call(NO_PARAMS, x)


def digamma(x: object) -> Array:
    """The derivative of log Γ(x)."""
    return digamma_p.call(NO_PARAMS, x)


def polygamma(m: object, x: object) -> Array:
    """The m-th derivative of `digamma` at x, for an integer m held as a float."""
    return polygamma_p.call(NO_PARAMS, *alike(m, x))


def zeta(x: object, q: object) -> Array:
    """Hurwitz's zeta function, the sum of (k + q)^-x over k = 0, 1, 2, …"""
    return zeta_p.call(NO_PARAMS, *alike(x, q))


ROWS: Rows = (
    erf_p,
    erfc_p,
    erf_inv_p,
    lgamma_p,
    digamma_p,
    polygamma_p,
    zeta_p,
)
