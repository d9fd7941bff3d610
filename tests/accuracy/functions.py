"""The functions whose errors are measured: where, and what they are compared with.

One idea: in single precision NumPy and SciPy in double precision are exact enough; in
double precision NumPy's `longdouble` is, or mpmath where NumPy lacks the function.

    CASES["sin"].ranges     # ((-1e6, 1e6),)
"""

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
from attrs import frozen
from scipy import special

import verax.numpy as vnp
import verax.scipy.special as vsp
from verax import lax

type Range = tuple[float, float]
BITS = 140
"""Of the numbers of mpmath."""


@frozen
class Case:
    """A function, its reference in wider floats, and where its operands are.

    `theirs` is what NumPy and SciPy have, `precise` a function of mpmath's numbers for
    double precision, `wide` one of longer floats if that is not `theirs`.
    """

    function: Callable[..., Any]
    theirs: Callable[..., Any]
    ranges: tuple[Range, ...]
    precise: Callable[..., Any] | None = None
    wide: Callable[..., Any] | None = None


def plain(function: Any, theirs: Any, *ranges: Range) -> Case:
    return Case(function, theirs, ranges)


def gamma_part(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def gamma_rest(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, regularized=True)


def beta_part(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def scaled_bessel(order: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def inverse_root(x: Any) -> Any:
    return 1 / np.sqrt(x)


ALL = (-1e30, 1e30)
ANGLES = (-1e6, 1e6)
POSITIVE = (1e-37, 1e38)
UNIT = (-1.0, 1.0)
# Where the incomplete functions are normal numbers.
A = (0.1, 20.0)
X = (0.5, 30.0)
SIDE = (0.5, 10.0)
INSIDE = (0.01, 0.99)
CASES: Mapping[str, Case] = {
    "exp": plain(vnp.exp, np.exp, (-87.0, 88.0)),
    "exp2": plain(vnp.exp2, np.exp2, (-125.0, 127.0)),
    "expm1": plain(vnp.expm1, np.expm1, (-87.0, 88.0)),
    "log": plain(vnp.log, np.log, POSITIVE),
    "log2": plain(vnp.log2, np.log2, POSITIVE),
    "log10": plain(vnp.log10, np.log10, POSITIVE),
    "log1p": plain(vnp.log1p, np.log1p, (-0.999, 1e38)),
    "sin": plain(vnp.sin, np.sin, ANGLES),
    "cos": plain(vnp.cos, np.cos, ANGLES),
    "tan": plain(vnp.tan, np.tan, ANGLES),
    "arcsin": plain(vnp.arcsin, np.arcsin, UNIT),
    "arccos": plain(vnp.arccos, np.arccos, UNIT),
    "arctan": plain(vnp.arctan, np.arctan, ALL),
    "arctan2": plain(vnp.arctan2, np.arctan2, ALL, ALL),
    "sinh": plain(vnp.sinh, np.sinh, (-88.0, 88.0)),
    "cosh": plain(vnp.cosh, np.cosh, (-88.0, 88.0)),
    "tanh": plain(vnp.tanh, np.tanh, (-100.0, 100.0)),
    "arcsinh": plain(vnp.arcsinh, np.arcsinh, ALL),
    "arccosh": plain(vnp.arccosh, np.arccosh, (1.0, 1e30)),
    "arctanh": plain(vnp.arctanh, np.arctanh, UNIT),
    "sqrt": plain(vnp.sqrt, np.sqrt, POSITIVE),
    "rsqrt": plain(lax.rsqrt, inverse_root, POSITIVE),
    "cbrt": plain(vnp.cbrt, np.cbrt, (-1e38, 1e38)),
    "power": plain(vnp.power, np.power, POSITIVE, (-30.0, 30.0)),
    "fmod": plain(lax.rem, np.fmod, ALL, ALL),
    "hypot": plain(vnp.hypot, np.hypot, ALL, ALL),
    "logaddexp": plain(vnp.logaddexp, np.logaddexp, (1.0, 1e30), (1.0, 1e30)),
    "logistic": Case(lax.logistic, special.expit, ((-87.0, 87.0),), None, sigmoid),
    "erf": Case(lax.erf, special.erf, ((-6.0, 6.0),), mpmath.erf),
    "erfc": Case(lax.erfc, special.erfc, ((-6.0, 9.0),), mpmath.erfc),
    "erf_inv": Case(lax.erf_inv, special.erfinv, ((-0.999, 0.999),), mpmath.erfinv),
    "lgamma": Case(lax.lgamma, special.gammaln, ((1e-30, 1e30),), mpmath.loggamma),
    "digamma": Case(lax.digamma, special.psi, ((1e-30, 1e30),), mpmath.digamma),
    "igamma": Case(lax.igamma, special.gammainc, (A, X), gamma_part),
    "igammac": Case(lax.igammac, special.gammaincc, (A, X), gamma_rest),
    "betainc": Case(lax.betainc, special.betainc, (SIDE, SIDE, INSIDE), beta_part),
    "i0e": Case(vsp.i0e, special.i0e, ((-1e4, 1e4),), scaled_bessel(0)),
    "i1e": Case(vsp.i1e, special.i1e, ((-1e4, 1e4),), scaled_bessel(1)),
}
