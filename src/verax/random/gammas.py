"""Floor 6: the gamma distribution, and those that are made of it.

One idea: Marsaglia and Tsang's rejection ("A simple method for generating gamma
variables", 2000) draws one sample from one key; arrays are its vmap, and the derivative
in the shape parameter comes from the distribution function, not from the loop::

    gamma(key, 0.5, (3,))
    beta(key, 2.0, 3.0)            # x / (x + y) of two gamma samples
"""

from functools import partial

import numpy as np

from verax.api.custom.jvp import custom_jvp
from verax.api.vmap import vmap
from verax.ir.avals import Shape, finfo
from verax.ir.dtypes import DType, DTypeLike, float32, numpy_dtype
from verax.lax.looping import while_loop
from verax.lax.shaping import polynomial
from verax.numpy.arguments.arguments import ArrayLike, constant_of, spread, stretched
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, div, mul, neg, sub
from verax.ops.elementwise.bits import bitwise_and, bitwise_or
from verax.ops.elementwise.compare import eq, ge, le
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, log, pow, rsqrt, sqrt
from verax.ops.elementwise.select import select
from verax.ops.random.keys import random_split
from verax.ops.reductions.reduce import reduce_max, reduce_sum
from verax.ops.special.incomplete import random_gamma_grad
from verax.ops.structure.create import full, iota
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, reshape
from verax.random.continuous import draw_normal, exponential_of
from verax.random.keys import several
from verax.random.samplers import Sizes, asked, compiled, from_key, parameter, unit
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of

METHODS = ("exact", "approximate")
# Steps of Stuart's boosting: the base draw has a shape of 4 at least.
BOOSTS = 4
# Goldstein, "Algorithm 451: Chi-square quantiles", 1973: row k has the coefficients of
# x^k ν^(-k/2) as a polynomial in 1/ν. The first is 1, without the bias of the fit.
QUANTILES = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326),
)


def check_method(name: str, method: str) -> None:
    """Raise a ValueError unless there is such a method."""
    if method not in METHODS:
        raise ValueError(
            f"method argument to `{name}` must be one of {', '.join(METHODS)}, not "
            f"{method!r}"
        )


def candidate(key: Array, c: Array) -> tuple[Array, Array]:
    """A normal sample x and v = 1 + c x, drawn again until v > 0."""
    dtype = c.dtype

    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        following, drawn = several(carry[0], 2)
        x = draw_normal(drawn, (), dtype)
        return following, x, add(constant_of(1, dtype), mul(x, c))

    start = key, constant_of(0, dtype), constant_of(-1, dtype)
    _, x, v = while_loop(lambda carry: le(carry[2], 0.0), again, start)
    return x, v


def rejected(x2: Array, v: Array, u: Array, d: Array) -> Array:
    """Whether a candidate with x² = `x2` and (1 + c x)³ = `v` fails both tests."""
    one = constant_of(1, d.dtype)
    cheap = ge(u, sub(one, mul(constant_of(0.0331, d.dtype), mul(x2, x2))))
    bound = add(mul(x2, 0.5), mul(d, add(sub(one, v), log(v))))
    return bitwise_and(cheap, ge(log(u), bound))


def one_gamma(key: Array, alpha: Array, log_space: bool) -> Array:
    """One sample from one key; below 1 by that of alpha + 1 and a uniform sample."""
    dtype = alpha.dtype
    zero, one, two = (constant_of(n, dtype) for n in (0, 1, 2))
    third = constant_of(1 / 3, dtype)
    large = ge(alpha, one)
    d = sub(select(large, alpha, add(alpha, one)), third)
    c = div(third, sqrt(d))

    def again(
        carry: tuple[Array, Array, Array, Array],
    ) -> tuple[Array, Array, Array, Array]:
        following, x_key, u_key = several(carry[0], 3)
        x, v = candidate(x_key, c)
        return following, mul(x, x), mul(mul(v, v), v), unit(u_key, (), dtype)

    first, second = several(key, 2)
    _, _, v, _ = while_loop(
        lambda carry: rejected(carry[1], carry[2], carry[3], d),
        again,
        (first, zero, one, two),
    )
    u = unit(second, (), dtype)
    if not log_space:
        boost = select(large, one, pow(sub(one, u), div(one, alpha)))
        return mul(mul(d, v), boost)
    logs = neg(exponential_of(u))
    none = bitwise_or(large, eq(logs, zero))
    return add(add(log(d), log(v)), select(none, zero, mul(logs, div(one, alpha))))


@partial(custom_jvp, nondiff_argnums=(2,))
def exact_gamma(key: Array, alpha: Array, log_space: bool) -> Array:
    """Gamma samples, or their logarithms, of the shape parameters `alpha`."""
    keys = random_split(key, (alpha.size,))
    draw = vmap(partial(one_gamma, log_space=log_space))
    return reshape(draw(keys, reshape(alpha, (alpha.size,))), alpha.shape)


@exact_gamma.defjvp
def gamma_jvp(
    log_space: bool, primals: tuple[Array, Array], tangents: tuple[object, Array]
) -> tuple[Array, Array]:
    """By implicit differentiation, Figurnov, Mohamed and Mnih, 2018."""
    key, alpha = primals
    out = exact_gamma(key, alpha, log_space)
    if not log_space:
        return out, mul(tangents[1], random_gamma_grad(alpha, out))
    samples = exp(out)
    least = constant_of(float(finfo(alpha.dtype).tiny), alpha.dtype)
    samples = select(eq(samples, 0.0), least, samples)
    slope = div(random_gamma_grad(alpha, samples), samples)
    return out, mul(tangents[1], slope)


def approximate_gamma(key: Array, alpha: Array, log_space: bool) -> Array:
    """Gamma samples without a loop: quantiles of chi-square, boosted from alpha + 4.

    Stuart, "Gamma-distributed products of independent random variables", 1962.
    """
    dtype = alpha.dtype
    base_key, boost_key = several(key, 2)
    boosted = add(alpha, constant_of(BOOSTS, dtype))
    freedom = mul(boosted, 2.0)
    t = mul(draw_normal(base_key, alpha.shape, dtype), rsqrt(freedom))
    inverse = div(1.0, freedom)
    rows = [
        polynomial(inverse, [constant_of(a, dtype) for a in row]) for row in QUANTILES
    ]
    least = constant_of(float(finfo(dtype).tiny), dtype)
    root = arith.max(polynomial(t, rows), least)
    out = add(log(boosted), mul(log(root), 3.0))
    shape = (BOOSTS, *alpha.shape)
    logs = neg(exponential_of(unit(boost_key, shape, dtype)))
    steps = broadcast_in_dim(iota(dtype, BOOSTS), shape, (0,))
    lifted = add(stretched(expand_dims(alpha, (0,)), shape), steps)
    out = add(out, reduce_sum(div(logs, lifted), (0,)))
    return out if log_space else exp(out)


def gamma_of(
    key: Array,
    alpha: ArrayLike,
    shape: Shape,
    dtype: DType,
    method: str,
    log_space: bool,
) -> Array:
    """Samples by a method; the approximate one computes in 32 bits or more."""
    if method == "exact":
        alphas = stretched(convert(alpha, dtype), shape)
        out: Array = exact_gamma(key, alphas, log_space)
        return out
    wide = float32 if dtype.itemsize < 4 else dtype
    alphas = stretched(convert(alpha, wide), shape)
    return convert(approximate_gamma(key, alphas, log_space), dtype)


def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Samples of the gamma distribution, x^(a - 1) exp(-x) / Γ(a), differentiable in a.

    Samples of a small `a` may round to zero; `loggamma` keeps them.

    Args:
        key: one key, as `random.key` makes it.
        a: the shape parameter, an array or scalar of numbers ≥ 0.
        shape: the shape of the result, to which `a` broadcasts; None for that of `a`.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        method: "exact", the default, or "approximate", which has no loop and an error
            below 1e-3 in distribution.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`; NaN where `a` is negative.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, `a` does not fit `shape`, or there is no
            such method.

    >>> import verax
    >>> verax.random.gamma(verax.random.key(0), 2.0, (2,)).shape
    (2,)
    >>> a = verax.numpy.array([0.5, 4.0])
    >>> verax.random.gamma(verax.random.key(0), a, (10_000, 2)).mean(0).round(1)
    Array([0.5, 4. ], dtype=float32)
    """
    check_method("gamma", method)
    call = key, shape, dtype, out_sharding, a
    return from_key(gamma_of, "gamma", *call, method=method, log_space=False)


def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Logarithms of gamma samples, which for a small `a` do not become zero.

    Args:
        key: one key, as `random.key` makes it.
        a: the shape parameter, an array or scalar of numbers ≥ 0.
        shape: the shape of the result, to which `a` broadcasts; None for that of `a`.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        method: "exact", the default, or "approximate", which has no loop and an error
            below 1e-3 in distribution.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, `a` does not fit `shape`, or there is no
            such method.

    >>> from verax import random
    >>> key = random.key(0)
    >>> float(random.gamma(key, 0.001)), round(float(random.loggamma(key, 0.001)))
    (0.0, -111)
    """
    check_method("loggamma", method)
    call = key, shape, dtype, out_sharding, a
    return from_key(gamma_of, "loggamma", *call, method=method, log_space=True)


def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Samples of the beta distribution, x^(a - 1) (1 - x)^(b - 1) / B(a, b).

    Args:
        key: one key, as `random.key` makes it.
        a: the exponent of x, a positive array or scalar.
        b: the exponent of 1 - x, a positive array or scalar.
        shape: the shape of the result, to which the parameters broadcast; None for
            theirs together.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        method: that of `gamma`, "exact", the default, or "approximate".
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of numbers between 0 and 1.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, the parameters do not fit `shape`, or there
            is no such method.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.beta(random.key(0), vnp.array([1.0, 9.0]), 1.0, (10_000, 2))
    >>> x.mean(0).round(1)
    Array([0.5, 0.9], dtype=float32)
    """
    check_method("beta", method)
    return from_key(
        beta_of, "beta", key, shape, dtype, out_sharding, a, b, method=method
    )


def beta_of(
    key: Array, a: ArrayLike, b: ArrayLike, shape: Shape, dtype: DType, method: str
) -> Array:
    """x / (x + y) of gamma samples, whose logarithms are moved to a maximum of 0."""
    keys = several(key, 2)
    x, y = (
        gamma_of(k, convert(p, dtype), shape, dtype, method, True)
        for k, p in zip(keys, (a, b), strict=True)
    )
    largest = arith.max(x, y)
    x, y = exp(sub(x, largest)), exp(sub(y, largest))
    return div(x, add(x, y))


def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Samples of the chi-square distribution with `df` degrees of freedom.

    Args:
        key: one key, as `random.key` makes it.
        df: the degrees of freedom, a positive array or scalar.
        shape: the shape of the result, to which `df` broadcasts; None for that of `df`.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        method: that of `gamma`, "exact", the default, or "approximate".
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, `df` does not fit `shape`, or there is no
            such method.

    >>> from verax import random
    >>> x = random.chisquare(random.key(0), 3.0, (10_000,))
    >>> round(float(x.mean()), 1)
    3.0
    """
    check_method("chisquare", method)
    return from_key(
        chisquare_of, "chisquare", key, shape, dtype, out_sharding, df, method=method
    )


def chisquare_of(
    key: Array, df: ArrayLike, shape: Shape, dtype: DType, method: str = "exact"
) -> Array:
    """Twice a gamma sample of half the degrees of freedom."""
    half = div(convert(df, dtype), constant_of(2, dtype))
    return mul(exp(gamma_of(key, half, shape, dtype, method, True)), 2.0)


def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Fisher's F distribution, of `dfnum` and `dfden` degrees of freedom.

    Args:
        key: one key, as `random.key` makes it.
        dfnum: the degrees of freedom of the numerator, a positive array or scalar.
        dfden: those of the denominator, a positive array or scalar.
        shape: the shape of the result, to which the parameters broadcast; None for
            theirs together.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or the parameters do not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.f(random.key(0), 5.0, 5.0, (10_000,))
    >>> vnp.median(x).round(1), (x < 0).any()
    (Array(1., dtype=float32), Array(False, dtype=bool))
    """
    return from_key(f_of, "f", key, shape, dtype, out_sharding, dfnum, dfden)


def f_of(
    key: Array, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape, dtype: DType
) -> Array:
    """The quotient of two chi-square samples, each by its degrees of freedom."""
    below, above = several(key, 2)
    parts = []
    for own, df in ((above, dfnum), (below, dfden)):
        freedom = parameter(df, dtype, shape)
        parts.append(div(chisquare_of(own, df, shape, dtype), freedom))
    return div(*parts)


def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Student's t distribution with `df` degrees of freedom.

    Args:
        key: one key, as `random.key` makes it.
        df: the degrees of freedom, a positive array or scalar.
        shape: the shape of the result, to which `df` broadcasts; None for that of `df`.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or `df` does not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.t(random.key(0), vnp.array([1.0, 100.0]), (10_000, 2))
    >>> abs(x).max(0) > 10  # heavy tails for few degrees of freedom
    Array([ True, False], dtype=bool)
    """
    return from_key(t_of, "t", key, shape, dtype, out_sharding, df)


def t_of(key: Array, df: ArrayLike, shape: Shape, dtype: DType) -> Array:
    """A normal sample over the root of a gamma sample, scaled."""
    first, second = several(key, 2)
    normal = draw_normal(first, shape, dtype)
    half = div(parameter(df, dtype, shape), constant_of(2, dtype))
    return mul(
        normal, sqrt(div(half, gamma_of(second, half, shape, dtype, "exact", False)))
    )


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Points of the simplex, with concentrations `alpha` in its last dimension.

    Args:
        key: one key, as `random.key` makes it.
        alpha: positive numbers, an array of shape (..., n).
        shape: the shape of the points, without their own dimension, to which that of
            `alpha` without its last broadcasts; None for the latter.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of shape (*shape, n) and of `dtype`, whose sums over the last dimension
        are 1.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or `alpha` does not fit `shape` or has no
            dimension.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.dirichlet(random.key(0), vnp.array([1.0, 2.0, 7.0]), (10_000,))
    >>> x.shape, x.mean(0).round(1)
    ((10000, 3), Array([0.1, 0.2, 0.7], dtype=float32))
    """
    if out_sharding is not None:
        return call_sharded(dirichlet, locals())
    given = aval_of(alpha).shape
    if not given:
        raise ValueError(
            "dirichlet: alpha must have at least one dimension, the last being that "
            "of the concentrations"
        )
    rest = np.empty(given[:-1], np.bool_)
    typed, target, sizes = asked("dirichlet", key, shape, dtype, rest)
    return compiled(dirichlet_of, typed, alpha, shape=(*sizes, given[-1]), dtype=target)


def dirichlet_of(key: Array, alpha: ArrayLike, shape: Shape, dtype: DType) -> Array:
    """Gamma samples over their sum, from their logarithms."""
    logs = gamma_of(key, alpha, shape, dtype, "exact", True)
    if not shape[-1]:
        return full(shape, 0, numpy_dtype(dtype))
    last = (len(shape) - 1,)
    parts = exp(sub(logs, spread(reduce_max(logs, last), shape, last)))
    return div(parts, spread(reduce_sum(parts, last), shape, last))
