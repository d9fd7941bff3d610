"""Floor 6: normal samples, and those made from them.

One idea: the inverse of the distribution function turns a uniform sample into a normal
one, Φ⁻¹((1 + u) / 2) = √2 erf⁻¹(u), one for one::

    normal(key, (3,))
"""

import math

import numpy as np

from verax.ir.avals import Shape
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
from verax.numpy.arguments.arguments import (
    ArrayLike,
    constant_of,
)
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, div, integer_pow, mul, nextafter, sub
from verax.ops.elementwise.compare import le
from verax.ops.elementwise.complex import complex as complex_of
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, log, sqrt
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.special.erf_gamma import erf, erf_inv
from verax.ops.structure.reshard import call_sharded
from verax.random.compiled import compiled, drawn
from verax.random.keys import several
from verax.random.raw_bits import from_uniform, scaled, unit
from verax.random.samplers import Sizes, asked, inexact_dtype, parameter
from verax.rules.values.array import Array


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
    found = complex_of(normal_of(u), normal_of(v))
    return div(found, constant_of(math.sqrt(2), found.dtype))


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

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is neither floating nor complex, or `key` is several keys.
    """
    if out_sharding is not None:
        return call_sharded(normal, locals())
    typed, found, sizes = asked("normal", key, shape, dtype, kind=inexact_dtype)
    return draw_normal(typed, sizes, found)


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

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or bounds do not fit `shape`.
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

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not inexact, or `sigma` does not fit `shape`.
    """
    if out_sharding is not None:
        return call_sharded(lognormal, locals())
    typed, found, sizes = asked(
        "lognormal", key, shape, dtype, sigma, kind=inexact_dtype
    )
    scale = parameter(sigma, found, sizes)
    if is_complex(found):
        return exp(mul(draw_normal(typed, sizes, found), scale))
    return compiled(lognormal_of, symmetric(typed, sizes, found), scale)


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

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.
    """
    if out_sharding is not None:
        return call_sharded(maxwell, locals())
    typed, found, sizes = asked("maxwell", key, shape, dtype)
    return draw_maxwell(typed, sizes, found)


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of Rayleigh's distribution, the length of a normal vector in a plane.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or `scale` does not fit `shape`.
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

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, or `mean` does not fit `shape`.
    """
    if out_sharding is not None:
        return call_sharded(wald, locals())
    typed, found, sizes = asked("wald", key, shape, dtype, mean)
    first, second = several(typed, 2)
    u = symmetric(first, sizes, found)
    v = unit(second, sizes, found)
    return compiled(wald_of, u, v, parameter(mean, found, sizes))


def wald_of(u: Array, v: Array, m: ArrayLike) -> Array:
    """Wald samples from uniform ones in (-1, 1) and in [0, 1)."""
    y = integer_pow(normal_of(u), 2)
    square = integer_pow(m, 2)
    under = add(mul(mul(m, 4.0), y), mul(square, integer_pow(y, 2)))
    middle = add(m, div(mul(square, y), 2.0))
    x = sub(middle, mul(div(m, 2.0), sqrt(under)))
    return select(le(v, div(m, add(m, x))), x, div(square, x))
