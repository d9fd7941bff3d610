"""Floor 6: `verax.scipy.special`: special functions of float arrays.

A facade; each file holds what one method computes.

>>> import verax
>>> verax.scipy.special.expit(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from verax.nn.reductions import logsumexp as logsumexp
from verax.scipy.special.entropies import (
    boxcox as boxcox,
    boxcox1p as boxcox1p,
    entr as entr,
    kl_div as kl_div,
    rel_entr as rel_entr,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from verax.scipy.special.errors_and_bessel import (
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
)
from verax.scipy.special.gamma_family import (
    bernoulli as bernoulli,
    beta as beta,
    betainc as betainc,
    betaln as betaln,
    comb as comb,
    digamma as digamma,
    factorial as factorial,
    gamma as gamma,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammaln as gammaln,
    gammasgn as gammasgn,
    loggamma as loggamma,
    multigammaln as multigammaln,
    poch as poch,
    polygamma as polygamma,
    zeta as zeta,
)
from verax.scipy.special.harmonics import (
    bessel_jn as bessel_jn,
    owens_t as owens_t,
    sph_harm_y as sph_harm_y,
)
from verax.scipy.special.integrals import (
    exp1 as exp1,
    expi as expi,
    expn as expn,
    hyp1f1 as hyp1f1,
    hyp2f1 as hyp2f1,
    sici as sici,
    spence as spence,
)
from verax.scipy.special.legendre import lpmn as lpmn, lpmn_values as lpmn_values
from verax.scipy.special.logistic import (
    expit as expit,
    log_softmax as log_softmax,
    logit as logit,
    softmax as softmax,
)
from verax.scipy.special.normal import (
    dawsn as dawsn,
    erfcinv as erfcinv,
    erfcx as erfcx,
    fresnel as fresnel,
    log_ndtr as log_ndtr,
    ndtr as ndtr,
    ndtri as ndtri,
    wofz as wofz,
)
