"""Floor 6: `verax.scipy.stats`: distributions and statistics of samples.

Each distribution is a module of functions under SciPy's names (`pdf`, `logpdf`, `cdf`,
`ppf`, ...), made from formulas of a standardised variable.

>>> from verax.scipy import stats
>>> round(float(stats.norm.pdf(0.0)), 4)
0.3989
"""

from verax.scipy.stats import (
    bernoulli as bernoulli,
    beta as beta,
    betabinom as betabinom,
    binom as binom,
    cauchy as cauchy,
    chi2 as chi2,
    dirichlet as dirichlet,
    expon as expon,
    gamma as gamma,
    gennorm as gennorm,
    geom as geom,
    gumbel_l as gumbel_l,
    gumbel_r as gumbel_r,
    laplace as laplace,
    logistic as logistic,
    multinomial as multinomial,
    multivariate_normal as multivariate_normal,
    nbinom as nbinom,
    norm as norm,
    pareto as pareto,
    poisson as poisson,
    t as t,
    truncnorm as truncnorm,
    uniform as uniform,
    vonmises as vonmises,
    wrapcauchy as wrapcauchy,
)
from verax.scipy.stats.kde import gaussian_kde as gaussian_kde
from verax.scipy.stats.samples import mode as mode, rankdata as rankdata, sem as sem
