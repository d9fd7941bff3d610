"""Floor 6: continuous distributions: by the inverse of theirs, and the normal family.

One idea: a uniform sample u goes through one formula; where the formula has a pole at
an end of [0, 1), that end is left out::

    exponential: -log(1 - u)       gumbel: -log(-log(u))
"""

import math

import numpy as np

from verax.ir.avals import Shape, finfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bfloat16,
    float16,
    float32,
    is_complex,
    numpy_dtype,
    real_dtype,
)
from verax.numpy.arguments.arguments import ArrayLike, constant_of, stretched_together
from verax.numpy.elementwise.arithmetic import multiply, power, true_divide
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import (
    add,
    complex as complex_of,
    div,
    integer_pow,
    mul,
    neg,
    nextafter,
    sign,
    sub,
)
from verax.ops.elementwise.bits import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    clz,
    shift_left,
    shift_right_logical,
)
from verax.ops.elementwise.compare import eq, ge, le, lt
from verax.ops.elementwise.convert import bitcast_convert_type, convert
from verax.ops.elementwise.exp_log import exp, log, log1p, sqrt
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.elementwise.trig import tan
from verax.ops.random.keys import random_bits
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.special.erf_gamma import erf, erf_inv
from verax.ops.structure.reshard import call_sharded
from verax.random.keys import pieces, several
from verax.random.samplers import (
    Sizes,
    asked,
    compiled,
    drawn,
    from_uniform,
    inexact_dtype,
    parameter,
    scaled,
    unit,
)
from verax.rules.values.array import Array

GUMBEL_MODES = ("low", "high", "highest")


def above(u: Array, low: float) -> Array:
    """Uniform samples from `low` up to 1, from those in [0, 1)."""
    return scaled(u, constant_of(low, u.dtype), constant_of(1, u.dtype))


def exponential_of(u: Array) -> Array:
    """Exponential samples from uniform ones in [0, 1), as are those below."""
    return neg(log1p(neg(u)))


def cauchy_of(u: Array) -> Array:
    return tan(mul(sub(above(u, float(finfo(u.dtype).eps)), 0.5), math.pi))


def laplace_of(u: Array) -> Array:
    v = above(u, -1.0 + float(finfo(u.dtype).epsneg))
    return mul(sign(v), log1p(neg(arith.abs(v))))


def logistic_of(u: Array) -> Array:
    v = above(u, float(finfo(u.dtype).tiny))
    return sub(log(v), log1p(neg(v)))


def gumbel_of(u: Array) -> Array:
    return neg(log(neg(log(above(u, float(finfo(u.dtype).tiny))))))


def pareto_of(u: Array, b: object) -> Array:
    return exp(div(exponential_of(u), b))


def weibull_of(u: Array, scale: ArrayLike, concentration: ArrayLike) -> Array:
    args = [exponential_of(u), scale, concentration]
    drawn, scale, concentration = stretched_together("weibull_min", args)
    return multiply(power(drawn, true_divide(1.0, concentration)), scale)


def triangular_of(u: Array, low: object, peak: object, high: object) -> Array:
    width = sub(high, low)
    rising = add(low, sqrt(mul(mul(u, width), sub(peak, low))))
    falling = sub(high, sqrt(mul(mul(sub(1.0, u), width), sub(high, peak))))
    return select(lt(u, div(sub(peak, low), width)), rising, falling)


def exponential(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of the exponential distribution, exp(-x) for x ≥ 0.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of numbers ≥ 0.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.

    >>> from verax import random
    >>> x = random.exponential(random.key(0), (10_000,))
    >>> bool((x >= 0).all()), round(float(x.mean()), 1)
    (True, 1.0)
    """
    return from_uniform(exponential_of, "exponential", key, shape, dtype, out_sharding)


def cauchy(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Cauchy's distribution, 1 / (π (1 + x²)).

    It has no mean: samples are often very large.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.

    >>> from verax import random
    >>> x = random.cauchy(random.key(0), (10_000,))
    >>> round(float((abs(x) < 1).mean()), 1), bool(abs(x).max() > 1000)
    (0.5, True)
    """
    return from_uniform(cauchy_of, "cauchy", key, shape, dtype, out_sharding)


def laplace(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Laplace's distribution, exp(-|x|) / 2.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.

    >>> from verax import random
    >>> x = random.laplace(random.key(0), (10_000,))
    >>> round(float(abs(x).mean()), 1), round(float((x < 0).mean()), 1)
    (1.0, 0.5)
    """
    return from_uniform(laplace_of, "laplace", key, shape, dtype, out_sharding)


def logistic(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of the logistic distribution, whose distribution function is `expit`.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.

    >>> from verax import random
    >>> from verax.scipy.special import expit
    >>> x = random.logistic(random.key(0), (10_000,))
    >>> round(float((x < 2).mean()), 2), round(float(expit(2.0)), 2)
    (0.88, 0.88)
    """
    return from_uniform(logistic_of, "logistic", key, shape, dtype, out_sharding)


def gumbel(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Gumbel's distribution, exp(-(x + exp(-x))).

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        mode: "low", "high" or "highest"; None for "low", which uses one draw of bits,
            while the others use two, for more digits in the tails.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or there is no such mode.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> logits = vnp.log(vnp.array([0.2, 0.8]))
    >>> noise = random.gumbel(random.key(0), (10_000, 2))
    >>> round(float(vnp.argmax(logits + noise, 1).mean()), 1)
    0.8
    """
    if out_sharding is not None:
        return call_sharded(gumbel, locals())
    typed, target, sizes = asked("gumbel", key, shape, dtype)
    return draw_gumbel(typed, sizes, target, mode)


def draw_gumbel(key: Array, shape: Shape, dtype: DType, mode: str | None) -> Array:
    """Samples of Gumbel's distribution in a mode."""
    if mode not in (None, *GUMBEL_MODES):
        raise ValueError(
            f"gumbel: mode must be one of {', '.join(GUMBEL_MODES)}, not {mode!r}"
        )
    if mode == "highest" and dtype == float32:
        return highest_gumbel(random_bits(key, 32, (2, *shape)))
    if mode in ("high", "highest"):
        return compiled(fine_gumbel_of, *pieces(unit(key, (2, *shape), dtype)))
    return compiled(gumbel_of, unit(key, shape, dtype))


def fine_gumbel_of(high: Array, low: Array) -> Array:
    """Gumbel samples with digits of a second draw where the first is below 1/2."""
    info = finfo(high.dtype)
    step = 2.0 ** -int(info.nmant)
    least = max(step * step / 2, float(info.tiny))
    finer = add(add(high, mul(low, step)), least)
    return neg(log(neg(log1p(neg(select(ge(high, 0.5), high, finer))))))


def split_gumbel_of(flip: Array, x: Array) -> Array:
    """Gumbel samples from the smaller of u and 1 - u, and which of them it is."""
    return select(flip, neg(log(neg(log1p(neg(x))))), neg(log(neg(log(x)))))


def highest_gumbel(bits: Array) -> Array:
    """Gumbel samples from 64 random bits each, two uint32 in the first dimension."""
    negated = bitwise_not(bits)
    high, low = pieces(negated)
    carry = eq(low, np.uint32(0xFFFFFFFF))
    high = add(high, convert(carry, bits.dtype))
    low = add(low, np.uint32(1))
    first, second = pieces(bits)
    flip = lt(first, np.uint32(1 << 31))
    x = fraction(select(flip, first, high), select(flip, second, low))
    return compiled(split_gumbel_of, flip, x)


def fraction(high: Array, low: Array) -> Array:
    """The float32 in (0, 1) whose binary digits are those of 64 bits."""
    leading = clz(high)
    empty = eq(leading, np.uint32(32))
    rest = select(
        empty,
        shift_left(low, clz(low)),
        shift_right_logical(low, sub(np.uint32(32), leading)),
    )
    digits = bitwise_or(shift_left(high, leading), rest)
    mantissa = bitwise_and(
        shift_right_logical(digits, np.uint32(8)), np.uint32((1 << 23) - 1)
    )
    zeros = select(empty, add(clz(low), np.uint32(32)), leading)
    exponent = shift_left(sub(np.uint32(126), zeros), np.uint32(23))
    exponent = bitwise_and(exponent, np.uint32((1 << 30) - (1 << 22)))
    return bitcast_convert_type(bitwise_or(exponent, mantissa), float32)


def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Pareto's distribution, b / x^(b + 1) for x ≥ 1.

    Args:
        key: one key, as `random.key` makes it.
        b: the exponent, a positive array or scalar.
        shape: the shape of the result, to which `b` broadcasts; None for that of `b`.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of numbers ≥ 1.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or `b` does not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.pareto(random.key(0), vnp.array([1.0, 4.0]), (10_000, 2))
    >>> x.min(0).round(2), vnp.median(x, 0).round(1)
    (Array([1., 1.], dtype=float32), Array([2. , 1.2], dtype=float32))
    """
    return from_uniform(pareto_of, "pareto", key, shape, dtype, out_sharding, b)


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of Weibull's distribution, scale · (-log(1 - u))^(1 / concentration).

    Args:
        key: one key, as `random.key` makes it.
        scale: a positive array or scalar.
        concentration: a positive array or scalar.
        shape: the shape of the draws u, by default one. It broadcasts with the
            parameters, unlike that of other samplers: elements that it lacks share a
            draw.
        dtype: the dtype of u, real and floating; by default float32, or float64 with
            x64.

    Returns:
        An array of the shape to which `shape` and the parameters broadcast, and of
        their common dtype.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or the shapes do not broadcast together.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> scale = vnp.array([1.0, 2.0])
    >>> first, second = random.weibull_min(random.key(0), scale, 3.0).tolist()
    >>> second == 2 * first
    True
    >>> random.weibull_min(random.key(0), scale, 3.0, (5, 2)).shape
    (5, 2)
    """
    typed, target, sizes = asked("weibull_min", key, shape, dtype)
    return compiled(weibull_of, unit(typed, sizes, target), scale, concentration)


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of the triangular distribution over [left, right] with its peak at mode.

    Args:
        key: one key, as `random.key` makes it.
        left: the least value, an array or scalar.
        mode: the most likely value, between the others.
        right: the largest value, above `left`.
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
        ValueError: `dtype` is not floating, or parameters do not fit `shape`.

    >>> from verax import random
    >>> x = random.triangular(random.key(0), 0.0, 1.0, 4.0, (10_000,))
    >>> bool((0 <= x).all() & (x <= 4).all()), round(float((x < 1).mean()), 2)
    (True, 0.25)
    """
    return from_uniform(
        triangular_of, "triangular", key, shape, dtype, out_sharding, left, mode, right
    )


# -----------------------------------------------------------------------------
# Normal samples, and those made from them.
#
# The inverse of the distribution function turns a uniform sample into a normal
# one, Φ⁻¹((1 + u) / 2) = √2 erf⁻¹(u), one for one::
#
#     normal(key, (3,))


def symmetric(key: Array, shape: Shape, dtype: DType) -> Array:
    """Uniform floats in (-1, 1)."""
    numpy = numpy_dtype(dtype)
    one = np.ones((), numpy)
    low = np.asarray(np.nextafter(np.array(-1, numpy), one), numpy)
    return scaled(unit(key, shape, dtype), low, one)


def normal_of(u: Array) -> Array:
    """Normal samples from uniform ones in (-1, 1)."""
    return mul(erf_inv(u), math.sqrt(2))


def complex_normal_of(u: Array, v: Array) -> Array:
    """Complex normal samples, whose parts have variance 1/2."""
    array = complex_of(normal_of(u), normal_of(v))
    return div(array, constant_of(math.sqrt(2), array.dtype))


def draw_normal(key: Array, shape: Shape, dtype: DType) -> Array:
    """Normal samples; the parts of complex ones have variance 1/2."""
    return drawn(normal_samples, key, shape=shape, dtype=dtype)


def normal_samples(key: Array, shape: Shape, dtype: DType) -> Array:
    """`draw_normal` by uniform samples."""
    if is_complex(dtype):
        keys = several(key, 2)
        parts = [symmetric(k, shape, real_dtype(dtype)) for k in keys]
        return compiled(complex_normal_of, *parts)
    return compiled(normal_of, symmetric(key, shape, dtype))


def normal(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of the normal distribution of mean 0 and variance 1.

    The parts of complex samples are independent and have variance 1/2 each.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real or complex; by default float32, or float64
            with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is neither floating nor complex, or `key` is several keys.

    >>> from verax import random
    >>> random.normal(random.key(0), (2,)).round(3)
    Array([1.623, 2.025], dtype=float32)
    >>> z = random.normal(random.key(0), (10_000,), complex)
    >>> round(float((abs(z) ** 2).mean()), 1), z.dtype
    (1.0, dtype('complex64'))
    """
    if out_sharding is not None:
        return call_sharded(normal, locals())
    typed, target, sizes = asked("normal", key, shape, dtype, kind=inexact_dtype)
    return draw_normal(typed, sizes, target)


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of the normal distribution between the bounds, which broadcast.

    The inverse of the distribution function takes no bounds far in a tail: where `erf`
    of both rounds to one number, all samples are beside a bound.

    Args:
        key: one key, as `random.key` makes it.
        lower: the lower bound, an array or scalar.
        upper: the upper bound, above `lower`.
        shape: the shape of the result, to which the bounds broadcast; None for theirs
            together.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of numbers between the bounds, which are left
        out.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or bounds do not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> lower, upper = vnp.array([-1.0, 2.0]), vnp.array([1.0, vnp.inf])
    >>> x = random.truncated_normal(random.key(0), lower, upper, (1000, 2))
    >>> bool(((lower < x) & (x < upper)).all())
    True
    """
    return from_uniform(
        truncated, "truncated_normal", key, shape, dtype, out_sharding, lower, upper
    )


def truncated(u: Array, low: ArrayLike, high: ArrayLike) -> Array:
    """Normal samples between bounds from uniform ones in [0, 1)."""
    root = math.sqrt(2)
    samples = normal_of(scaled(u, erf(div(low, root)), erf(div(high, root))))
    least = nextafter(stop_gradient(low), math.inf)
    most = nextafter(stop_gradient(high), -math.inf)
    return arith.min(arith.max(samples, least), most)


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """exp(sigma n) for normal samples n.

    Args:
        key: one key, as `random.key` makes it.
        sigma: the standard deviation of the logarithm, an array or scalar; by default
            1.
        shape: the shape of the result, to which `sigma` broadcasts; None for that of
            `sigma`.
        dtype: the dtype of the result, real or complex; by default float32, or float64
            with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not inexact, or `sigma` does not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.lognormal(random.key(0), 2.0, (10_000,))
    >>> round(float(vnp.median(x)), 1), round(float(vnp.log(x).std()), 1)
    (1.0, 2.0)
    """
    if out_sharding is not None:
        return call_sharded(lognormal, locals())
    typed, target, sizes = asked(
        "lognormal", key, shape, dtype, sigma, kind=inexact_dtype
    )
    scale = parameter(sigma, target, sizes)
    if is_complex(target):
        return exp(mul(draw_normal(typed, sizes, target), scale))
    return compiled(lognormal_of, symmetric(typed, sizes, target), scale)


def lognormal_of(u: Array, sigma: ArrayLike) -> Array:
    """Lognormal samples from uniform ones in (-1, 1)."""
    return exp(mul(normal_of(u), sigma))


def draw_maxwell(key: Array, shape: Shape, dtype: DType) -> Array:
    """Lengths of normal vectors in space."""
    vectors = draw_normal(key, (*shape, 3), dtype)
    return compiled(lengths, vectors)


def lengths(vectors: Array) -> Array:
    """The lengths of vectors in the last dimension; 16-bit ones summed in float32."""
    wide = float32 if vectors.dtype in (bfloat16, float16) else vectors.dtype
    squares = convert(mul(vectors, vectors), wide)
    total = reduce_sum(squares, (vectors.ndim - 1,))
    return sqrt(convert(total, vectors.dtype))


def maxwell(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Maxwell's distribution of speeds, √(2/π) x² exp(-x²/2).

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of numbers ≥ 0.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.

    >>> from verax import random
    >>> x = random.maxwell(random.key(0), (10_000,))
    >>> round(float((x**2).mean()), 1)  # each of three dimensions has variance 1
    3.0
    """
    if out_sharding is not None:
        return call_sharded(maxwell, locals())
    typed, target, sizes = asked("maxwell", key, shape, dtype)
    return draw_maxwell(typed, sizes, target)


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Rayleigh's distribution, the length of a normal vector in a plane.

    Args:
        key: one key, as `random.key` makes it.
        scale: the standard deviation of the components, an array or scalar.
        shape: the shape of the result, to which `scale` broadcasts; None for that of
            `scale`.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of numbers ≥ 0.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or `scale` does not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.rayleigh(random.key(0), vnp.array([1.0, 3.0]), (10_000, 2))
    >>> ((x**2).mean(0) / 2).round(0)
    Array([1., 9.], dtype=float32)
    """
    return from_uniform(rayleigh_of, "rayleigh", key, shape, dtype, out_sharding, scale)


def rayleigh_of(u: Array, scale: ArrayLike) -> Array:
    """Rayleigh samples from uniform ones in [0, 1)."""
    return mul(sqrt(mul(log(u), -2.0)), scale)


def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Wald's (inverse Gaussian) distribution of scale 1.

    Michael, Schucany and Haas, "Generating random variates using transformations with
    multiple roots", 1976.

    Args:
        key: one key, as `random.key` makes it.
        mean: the mean, a positive array or scalar.
        shape: the shape of the result, to which `mean` broadcasts; None for that of
            `mean`.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of positive numbers.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or `mean` does not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.wald(random.key(0), vnp.array([0.5, 1.0]), (10_000, 2))
    >>> x.mean(0).round(1)
    Array([0.5, 1. ], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(wald, locals())
    typed, target, sizes = asked("wald", key, shape, dtype, mean)
    first, second = several(typed, 2)
    u = symmetric(first, sizes, target)
    v = unit(second, sizes, target)
    return compiled(wald_of, u, v, parameter(mean, target, sizes))


def wald_of(u: Array, v: Array, m: ArrayLike) -> Array:
    """Wald samples from uniform ones in (-1, 1) and in [0, 1)."""
    y = integer_pow(normal_of(u), 2)
    square = integer_pow(m, 2)
    under = add(mul(mul(m, 4.0), y), mul(square, integer_pow(y, 2)))
    middle = add(m, div(mul(square, y), 2.0))
    x = sub(middle, mul(div(m, 2.0), sqrt(under)))
    return select(le(v, div(m, add(m, x))), x, div(square, x))
