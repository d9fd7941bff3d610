"""Floor 6: `verax.random`: numbers that are a function of a key, as in `jax.random`.

The same key gives the same bits as in JAX (threefry, partitionable):

>>> import verax
>>> verax.random.bits(verax.random.key(0))
Array(4070199207, dtype=uint32)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".continuous": (
            "cauchy exponential gumbel laplace logistic lognormal maxwell normal "
            "pareto rayleigh triangular truncated_normal wald weibull_min"
        ),
        ".discrete": (
            "binomial multinomial poisson bernoulli categorical double_sided_maxwell "
            "geometric rademacher"
        ),
        ".gammas": "beta chisquare dirichlet f gamma loggamma t",
        ".samplers": "bits randint uniform",
        ".keys": (
            "clone fold_in Key key key_data key_dtype key_impl PRNGKey split "
            "wrap_key_data"
        ),
        ".shuffling": (
            "ball generalized_normal multivariate_normal orthogonal choice permutation"
        ),
    },
)
