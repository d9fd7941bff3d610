"""Floor 6: samples of several dimensions: normal vectors, rotations, points of a ball.

One idea: a vector of independent samples is shaped by a matrix or scaled by its length,
both of which are differentiable::

    multivariate_normal(key, mean, cov)      # mean + L z, cov = L Lᵀ
    orthogonal(key, 3)                       # the Q of a normal matrix
"""

import operator
from typing import Any

from verax.ir.avals import Shape
from verax.ir.dtypes import DType, DTypeLike
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_shape,
    broadcast_shapes_of,
    check_arraylike,
    inexact_arrays,
)
from verax.numpy.elementwise.arithmetic import abs as absolute, power, true_divide
from verax.numpy.linalg.decompositions import cholesky, eigh, qr, svd
from verax.numpy.linalg.einsum import einsum
from verax.numpy.shaping.rearranging import diagonal
from verax.numpy.shaping.shapes import matrix_transpose
from verax.ops.elementwise.arith import sign
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import reshape
from verax.random.continuous import draw_normal, exponential_of
from verax.random.discrete import rademacher
from verax.random.gammas import gamma_of
from verax.random.keys import one_key, several
from verax.random.raw_bits import unit
from verax.random.samplers import (
    Sizes,
    asked,
    compiled,
    float_dtype,
    from_key,
    inexact_dtype,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import AbstractValueError, shown

FACTORS = ("cholesky", "eigh", "svd")


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: object = None,
) -> Array:
    """Normal vectors of mean (..., n) and covariance (..., n, n).

    `shape` is that of the vectors, without their own dimension. `method` factors the
    covariance: "cholesky", or "eigh" and "svd", which take singular ones too.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, there is no such method, or shapes do not
            fit.
    """
    if out_sharding is not None:
        return call_sharded(multivariate_normal, locals())
    if method not in FACTORS:
        raise ValueError(
            f"multivariate_normal: method must be one of {', '.join(FACTORS)}, not "
            f"{method!r}"
        )
    typed = one_key("multivariate_normal", key)
    center, spread = inexact_arrays("multivariate_normal", mean, cov)
    size = center.shape[-1:]
    if not size or spread.shape[-2:] != size * 2:
        raise ValueError(
            "multivariate_normal takes a mean of shape (..., n) and a covariance of "
            f"shape (..., n, n), not {center.shape} and {spread.shape}"
        )
    found = float_dtype("multivariate_normal", center.dtype if dtype is None else dtype)
    batch = broadcast_shapes_of(
        "multivariate_normal", [center.shape[:-1], spread.shape[:-2]]
    )
    sizes = batch if shape is None else as_shape("multivariate_normal", shape)
    if broadcast_shapes_of("multivariate_normal", [sizes, batch]) != sizes:
        raise ValueError(
            f"multivariate_normal: mean and covariance of batch shape {batch} do not "
            f"broadcast to the requested shape {sizes}"
        )
    return compiled(
        shaped, typed, center, spread, shape=(*sizes, *size), dtype=found, method=method
    )


def shaped(
    key: Array, mean: Array, cov: Array, shape: Shape, dtype: DType, method: str
) -> Array:
    """Normal vectors times a factor of the covariance, and the mean."""
    if method == "cholesky":
        factor = cholesky(cov)
    elif method == "eigh":
        values, vectors = eigh(cov)
        factor = vectors * sqrt(values)[..., None, :]
    else:
        u, s, _ = svd(cov)
        factor = u * sqrt(s)[..., None, :]
    drawn = einsum("...ij,...j->...i", factor, draw_normal(key, shape, dtype))
    return reshape(mean, (1,) * (drawn.ndim - mean.ndim) + mean.shape) + drawn


def index_of(name: str, argument: str, x: Any) -> int:
    """A size known while tracing.

    Raises:
        TypeError: it is not an integer.
    """
    try:
        return operator.index(x)
    except AbstractValueError:
        raise
    except TypeError as error:
        raise TypeError(
            f"{name}: {argument} must be an integer, not {shown(x)}"
        ) from error


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Matrices of n orthonormal rows or m columns, uniform among all; n = m by default.

    Mezzadri, "How to generate random matrices from the classical compact groups", 2007.

    Raises:
        TypeError: `key` is not a key, or `n` or `m` is not an integer.
        ValueError: `dtype` is neither floating nor complex.
    """
    if out_sharding is not None:
        return call_sharded(orthogonal, locals())
    rows = index_of("orthogonal", "n", n)
    columns = rows if m is None else index_of("orthogonal", "m", m)
    typed, found, sizes = asked("orthogonal", key, shape, dtype, kind=inexact_dtype)
    return compiled(orthogonal_of, typed, shape=(*sizes, rows, columns), dtype=found)


def orthogonal_of(key: Array, shape: Shape, dtype: DType) -> Array:
    """The Q of a normal matrix whose R has a positive diagonal."""
    *batch, n, m = shape
    factors: Any = qr(draw_normal(key, (*batch, max(n, m), min(n, m)), dtype))
    q, r = factors
    found = q * sign(diagonal(r, 0, -2, -1))[..., None, :]
    return matrix_transpose(found) if n < m else found


def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of the density exp(-|x|^p), up to a factor.

    Raises:
        TypeError: `key` is not a key, or `p` is not an array.
        ValueError: `dtype` is not floating, or `p` does not fit `shape`.
    """
    check_arraylike("generalized_normal", p)
    sizes = as_shape("generalized_normal", shape)
    return from_key(
        generalized_of, "generalized_normal", key, sizes, dtype, out_sharding, p
    )


def generalized_of(key: Array, p: Any, shape: Shape, dtype: DType) -> Array:
    """Gamma samples to the power 1 / p, with random signs."""
    first, second = several(key, 2)
    inverse = true_divide(1, p)
    size = gamma_of(first, inverse, shape, dtype, "exact", False)
    return rademacher(second, shape, dtype) * power(size, inverse)


def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Points uniform in the unit ball of `d` dimensions and of the p-norm.

    Barthe, Guédon, Mendelson and Naor, "A probabilistic approach to the geometry of the
    l_p^n ball", 2005.

    Raises:
        TypeError: `key` is not a key, `d` not an integer, or `p` not an array.
        ValueError: `dtype` is not floating.
    """
    if out_sharding is not None:
        return call_sharded(ball, locals())
    check_arraylike("ball", p)
    count = index_of("ball", "d", d)
    typed, found, sizes = asked("ball", key, shape, dtype)
    return compiled(ball_of, typed, p, shape=(*sizes, count), dtype=found)


def ball_of(key: Array, p: Any, shape: Shape, dtype: DType) -> Array:
    """A generalized normal vector over the p-norm of it and an exponential sample."""
    first, second = several(key, 2)
    points = generalized_of(first, p, shape, dtype)
    extra = exponential_of(unit(second, shape[:-1], dtype))
    total = power(absolute(points), p).sum(-1) + extra
    return points / power(total, true_divide(1, p))[..., None]
