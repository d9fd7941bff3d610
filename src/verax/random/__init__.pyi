# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.random.continuous import (
    cauchy as cauchy, exponential as exponential, gumbel as gumbel, laplace as laplace,
    logistic as logistic, lognormal as lognormal, maxwell as maxwell, normal as normal,
    pareto as pareto, rayleigh as rayleigh, triangular as triangular,
    truncated_normal as truncated_normal, wald as wald, weibull_min as weibull_min,
)
from verax.random.discrete import (
    binomial as binomial, multinomial as multinomial, poisson as poisson,
    bernoulli as bernoulli, categorical as categorical,
    double_sided_maxwell as double_sided_maxwell, geometric as geometric,
    rademacher as rademacher,
)
from verax.random.gammas import (
    beta as beta, chisquare as chisquare, dirichlet as dirichlet, f as f,
    gamma as gamma, loggamma as loggamma, t as t,
)
from verax.random.samplers import bits as bits, randint as randint, uniform as uniform
from verax.random.keys import (
    clone as clone, fold_in as fold_in, Key as Key, key as key, key_data as key_data,
    key_dtype as key_dtype, key_impl as key_impl, PRNGKey as PRNGKey, split as split,
    wrap_key_data as wrap_key_data,
)
from verax.random.shuffling import (
    ball as ball, generalized_normal as generalized_normal,
    multivariate_normal as multivariate_normal, orthogonal as orthogonal,
    choice as choice, permutation as permutation,
)
__all__ = [
    "Key", "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical",
    "cauchy", "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell",
    "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric", "gumbel",
    "key", "key_data", "key_dtype", "key_impl", "laplace", "loggamma", "logistic",
    "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal",
    "orthogonal", "pareto", "permutation", "poisson", "rademacher", "randint",
    "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "wald",
    "weibull_min", "wrap_key_data",
]
