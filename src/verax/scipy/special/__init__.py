"""Floor 6: `verax.scipy.special`: special functions of float arrays.

One idea: a shop window; a file holds what one method computes.

>>> import verax
>>> verax.scipy.special.expit(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from verax.nn.reductions import logsumexp as logsumexp
from verax.scipy.special.functions import (
    beta as beta,
    betainc as betainc,
    betaln as betaln,
    boxcox as boxcox,
    boxcox1p as boxcox1p,
    digamma as digamma,
    entr as entr,
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    expit as expit,
    factorial as factorial,
    gamma as gamma,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammaln as gammaln,
    gammasgn as gammasgn,
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
    kl_div as kl_div,
    log_softmax as log_softmax,
    logit as logit,
    multigammaln as multigammaln,
    polygamma as polygamma,
    rel_entr as rel_entr,
    softmax as softmax,
    xlog1py as xlog1py,
    xlogy as xlogy,
    zeta as zeta,
)
from verax.scipy.special.normal import (
    erfcinv as erfcinv,
    log_ndtr as log_ndtr,
    ndtr as ndtr,
    ndtri as ndtri,
)
