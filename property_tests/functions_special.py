"""The functions of `verax.scipy.special` beside SciPy's."""

from typing import Any, Final

import numpy as np
import scipy.special as sp

import verax.numpy as vnp
from property_tests.comparing import (
    COUNT,
    LINE,
    POSITIVE,
    UNIT,
    Known,
    Points,
    Pointwise,
)
from verax.scipy import special

ORDER: Final = Points(1, 6, (1.0, 2.0, 3.0), whole=True)
BIG: Final = Points(-1e4, 1e4)
MILD: Final = (0.5, 1.0, 2.0, -0.5)
"""Parameters of hypergeometric functions, for SciPy loops for ever at 1e30."""


SMALL: Final = Points(-3, 3, MILD)
GROUND: Final = Points(0.1, 5, MILD)
PLACES: Final = (0.0, 1.0, -1.0, 0.5, np.nan)
BETA: Final = (POSITIVE, POSITIVE, UNIT)
GAMMA: Final = (POSITIVE, POSITIVE)


def line(name: str, *points: Points, **options: Any) -> Pointwise:
    reference = options.pop("reference", getattr(sp, name, None))
    ours = options.pop("ours", getattr(special, name))
    return Pointwise(f"special.{name}", ours, reference, points, **options)


def through_logarithm(value: Any, *logarithms: Any) -> Any:
    """The scale of exp of a sum of logarithms: each rounds by its own size."""

    def scale(*xs: Any) -> Any:
        sizes = sum(np.abs(log(*xs)) for log in logarithms)
        return value(*xs) * np.where(np.isfinite(sizes), sizes, 0.0)

    return scale


def polygamma_of_whole(n: Any, x: Any) -> Any:
    """`polygamma`, whose order must be an integer, for whole numbers of any dtype."""
    return special.polygamma(vnp.asarray(n).astype(np.int32), x)


def whole_pole(x: Any) -> Any:
    return (x <= 0) & (x == np.floor(x))


GAMMA_SCALE: Final = through_logarithm(sp.gamma, sp.gammaln)
AT_INFINITY: Final = Known(
    "XLA's expansion has NaN at infinity, and flushes terms that are subnormal",
    lambda x, q: ~np.isfinite(x) | ~np.isfinite(q) | (x > 18) | (q > 1e6),
)
POLES_OF_BETA: Final = Known(
    "SciPy has limits at poles that two of the three functions share; JAX has none",
    lambda a, b: whole_pole(a) | whole_pole(b),
)
BETA_OF_HUGE: Final = Known(
    "one parameter negative, one so large that their sum is the large one",
    lambda a, b: (np.minimum(a, b) < 0) & (np.maximum(np.abs(a), np.abs(b)) > 1e6),
)
TOO_LARGE: Final = Known(
    "logarithms of Γ of so large numbers differ by less than they round",
    lambda z, m: (np.abs(z) > 1e6) | (np.abs(m) > 1e6),
)
POLE_BY_ROUNDING: Final = Known(
    "the sum rounds to a pole",
    lambda z, m: whole_pole(np.float32(z + m)) | whole_pole(z),
)
OVERFLOWS: Final = Known(
    "the power overflows before it is divided, as in JAX",
    lambda x, power: power * np.log(np.abs(x) + 1) > np.where(power < 0, np.inf, 80),
)
HUGE_PARAMETERS: Final = Known(
    "the series is not meant for parameters of this size, nor JAX's",
    lambda a, b, *x: (a > 1e6) & (b > 1e6),
)


OWEN: Final = Known(
    "SciPy loses the digits of very small a, for which T is a exp(-h²/2) / 2π",
    lambda h, a: np.abs(a) < 1e-20,
    lambda h, a: np.where(np.isnan(h), np.nan, a * np.exp(-h * h / 2) / (2 * np.pi)),
)


def one(*xs: Any) -> float:
    """Terms of about 1 cancel."""
    return 1.0


def beta_scale(a: Any, b: Any) -> Any:
    """Of the logarithm of B: what cancels, which is little unless one is negative."""
    sizes = [np.abs(sp.gammaln(x)) for x in (a, b, a + b)]
    smaller = np.abs(sp.gammaln(np.minimum(a, b)))
    return np.where((a < 0) | (b < 0), sum(sizes) + of_sum(a, b), smaller + 1)


def of_sum(a: Any, b: Any) -> Any:
    """What log Γ(a + b) moves when the sum rounds."""
    return np.abs((a + b) * sp.digamma(a + b))


def of_beta(a: Any, b: Any) -> Any:
    return sp.beta(a, b) * beta_scale(a, b)


def of_betainc(a: Any, b: Any, x: Any) -> Any:
    """Exponents round by their size; above the middle it is 1 less the other side."""
    value = sp.betainc(a, b, x)
    log = np.abs(sp.xlogy(a, x)) + np.abs(sp.xlog1py(b, -x)) + np.abs(sp.betaln(a, b))
    return np.minimum(value, 1 - value) * log + (x > (a + 1) / (a + b + 2))


def of_poch(z: Any, m: Any) -> Any:
    sizes = np.abs(sp.gammaln(z)) + np.abs(sp.gammaln(z + m)) + 1 + of_sum(z, m)
    return sp.poch(z, m) * sizes


def of_gammainc(a: Any, x: Any) -> Any:
    """One less the other side, where that converges faster."""
    value = sp.gammainc(a, x)
    sizes = np.abs(sp.xlogy(a, x)) + x + np.abs(sp.gammaln(a + 1))
    return np.minimum(value, 1 - value) * sizes + ((x >= 1) & (x >= a))


def of_gammaincc(a: Any, x: Any) -> Any:
    value = sp.gammaincc(a, x)
    sizes = np.abs(sp.xlogy(a, x)) + x + np.abs(sp.gammaln(a + 1))
    return np.minimum(value, 1 - value) * sizes + ((x < 1) | (x < a))


POINTWISE: Final = (
    line("expit", LINE),
    line("logit", UNIT),
    line("erf", LINE),
    line("erfc", LINE),
    line("erfinv", Points(-1, 1)),
    line("erfcinv", Points(0, 2)),
    line("erfcx", LINE),
    line("gammaln", LINE, ulps=4, scale=lambda x: x < 0),
    line("gammasgn", LINE),
    line("gamma", LINE, scale=GAMMA_SCALE),
    line("loggamma", LINE, ulps=4),
    line("digamma", LINE),
    line(
        "polygamma",
        COUNT,
        POSITIVE,
        ours=polygamma_of_whole,
        ulps=64,
        known=(AT_INFINITY,),
    ),
    line("zeta", Points(1, 30), POSITIVE, known=(AT_INFINITY,)),
    line("factorial", Points(-5, 40), scale=lambda x: GAMMA_SCALE(x + 1)),
    line("betaln", POSITIVE, POSITIVE, scale=beta_scale, known=(POLES_OF_BETA,)),
    line("beta", LINE, LINE, scale=of_beta, known=(POLES_OF_BETA, BETA_OF_HUGE)),
    line("betainc", *BETA, ulps=16, scale=of_betainc, known=(HUGE_PARAMETERS,)),
    line("gammainc", *GAMMA, scale=of_gammainc, known=(HUGE_PARAMETERS,)),
    line("gammaincc", *GAMMA, scale=of_gammaincc, known=(HUGE_PARAMETERS,)),
    line("xlogy", LINE, LINE),
    line("xlog1py", LINE, LINE),
    line("entr", LINE),
    line("rel_entr", LINE, LINE),
    line("kl_div", LINE, LINE),
    line("boxcox", LINE, LINE, known=(OVERFLOWS,)),
    line("boxcox1p", LINE, LINE, known=(OVERFLOWS,)),
    line("i0", LINE),
    line("i0e", BIG),
    line("i1", LINE),
    line("i1e", BIG),
    line("ndtr", LINE),
    line("ndtri", UNIT),
    # The asymptotic series has JAX's number of terms.
    line("log_ndtr", LINE, double=1e5),
    line("comb", COUNT, COUNT, ulps=32, reference=lambda n, k: sp.comb(n, k)),
    line("poch", LINE, LINE, scale=of_poch, known=(TOO_LARGE, POLE_BY_ROUNDING)),
    line("dawsn", LINE),
    line("fresnel", LINE),
    line("exp1", LINE),
    line("expi", LINE),
    line(
        "expn",
        ORDER,
        POSITIVE,
        ulps=24,
        reference=lambda n, x: sp.expn(np.rint(n).astype(int), x),
    ),
    line("sici", LINE, scale=lambda x: 2.0),
    line("spence", LINE),
    line("hyp1f1", SMALL, GROUND, Points(-10, 10, PLACES), ulps=64),
    line("hyp2f1", SMALL, SMALL, GROUND, Points(-1, 1, PLACES), ulps=64, scale=one),
    line("owens_t", Points(-10, 10), Points(-5, 5), known=(OWEN,)),
)
