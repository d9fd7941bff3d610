"""Floor 6: permutations and choices.

One idea: sorting by random words shuffles, and a second round makes ties between words
unlikely where there are many elements::

    permutation(key, 5)
    choice(key, 5, (2,), replace=False)
"""

import math
import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from verax.ir.avals import Shape, SymbolicSize
from verax.ir.dtypes import DType, DTypeLike, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_shape,
    broadcast_shapes_of,
    canonical_axis,
    check_arraylike,
    default_integer,
    inexact_array,
    inexact_arrays,
)
from verax.numpy.elementwise.arithmetic import abs as absolute, power, true_divide
from verax.numpy.linalg.decompositions import cholesky, eigh, qr, svd
from verax.numpy.linalg.einsum import einsum
from verax.numpy.searching.sorting import searchsorted
from verax.numpy.shaping.diagonals import diagonal
from verax.numpy.shaping.shapes import matrix_transpose
from verax.ops.elementwise.arith import add, mul, sign, sub
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import log, sqrt
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.random.keys import random_bits
from verax.ops.reductions.cumulative import cumsum
from verax.ops.sorting.sort import sort_key_val, top_k
from verax.ops.structure.create import full, iota
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import expand_dims, reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.random.continuous import draw_gumbel, draw_normal, exponential_of
from verax.random.discrete import rademacher
from verax.random.gammas import gamma_of
from verax.random.keys import one_key, several
from verax.random.samplers import (
    Sizes,
    asked,
    compiled,
    drawn,
    float_dtype,
    from_key,
    in_known_range,
    inexact_dtype,
    unit,
)
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import AbstractValueError, shown
from verax.rules.values.sizes import as_sizes

# Sorted by words of 32 bits; n elements need 3 log n bits for few ties.
EXPONENT = 3
WORDS = 2**32 - 1


def count_of(name: str, x: object) -> int:
    """A number of elements known while tracing.

    Raises:
        TypeError: it is not an integer.
    """
    if isinstance(x, Tracer):
        return operator.index(x)
    if not is_integer(aval_of(x).dtype):
        raise TypeError(f"{name} takes an array or an integer, not {shown(x)}")
    return int(np.asarray(x))


def shuffled(key: Array, x: Array, axis: int) -> Array:
    """The elements along `axis` in an order of their own in each row."""
    return drawn(sorted_by_words, key, x, axis=axis, shape=x.shape)


def sorted_by_words(key: Array, x: Array, axis: int, shape: Shape) -> Array:
    """`shuffled` by sorting, with random words of `shape` as keys.

    Raises:
        NotImplementedError: a size is symbolic.
    """
    size = math.prod(shape)
    if isinstance(size, SymbolicSize):
        raise NotImplementedError(
            "permutation, shuffle and choice take arrays of known sizes, which say how "
            f"often to sort; {size} is symbolic"
        )
    rounds = math.ceil(EXPONENT * math.log(max(1, size)) / math.log(WORDS))
    for _ in range(rounds):
        key, words = several(key, 2)
        _, x = sort_key_val(random_bits(words, 32, shape), x, axis)
    return x


def indices(size: int) -> Array:
    """0, 1, ..., size - 1 in the default integer dtype."""
    return iota(default_integer(), size)


def taken(x: Array, places: Array, axis: int) -> Array:
    """The elements of `x` at `places` along `axis`, all of which exist."""
    before = tuple(range(axis))
    behind = tuple(range(axis + places.ndim, x.ndim - 1 + places.ndim))
    numbers = GatherDimensionNumbers((*before, *behind), (axis,), (axis,))
    sizes = [1 if i == axis else n for i, n in enumerate(x.shape)]
    return gather(x, expand_dims(places, (places.ndim,)), numbers, sizes)


def permutation(
    key: ArrayLike,
    x: int | ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: object = None,
) -> Array:
    """`x` along `axis`, or the numbers below the integer `x`, in random order.

    Unlike NumPy's `shuffle` it gives a new array, since arrays are immutable.

    Args:
        key: one key, as `random.key` makes it.
        x: an array, or an integer known while tracing.
        axis: the dimension to work along, by default the first.
        independent: whether each row along `axis` has an order of its own; by default
            slices stay together.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of the shape and dtype of `x`, or a vector of int32, int64 with x64.

    Raises:
        TypeError: `key` is not a key, or `x` is a number but not an integer.
        ValueError: there is no such dimension.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> random.permutation(random.key(1), 5)
    Array([3, 2, 0, 1, 4], dtype=int32)
    >>> x = vnp.arange(8).reshape(2, 4)
    >>> random.permutation(random.key(1), x, axis=1).tolist()
    [[3, 2, 0, 1], [7, 6, 4, 5]]
    >>> random.permutation(random.key(1), x, axis=1, independent=True).tolist()
    [[3, 2, 0, 1], [7, 6, 5, 4]]
    """
    if out_sharding is not None:
        return call_sharded(permutation, locals())
    typed = one_key("permutation", key)
    if not aval_of(x).shape:
        canonical_axis("permutation", axis, 1)
        return shuffled(typed, indices(count_of("permutation", x)), 0)
    array = as_array("permutation", x, 1)
    place = canonical_axis("permutation", axis, array.ndim)
    if independent or array.ndim == 1:
        return shuffled(typed, array, place)
    order = shuffled(typed, indices(array.shape[place]), 0)
    return taken(array, order, place)


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of `a` along `axis`, or of the numbers below the integer `a`.

    Args:
        key: one key, as `random.key` makes it.
        a: an array, or an integer known while tracing, that is not empty.
        shape: the shape of the sample, a sequence of sizes; by default one element.
        replace: whether an element may be chosen twice, the default.
        p: the probabilities of the elements, a vector, up to a factor; None for equal
            ones.
        axis: the dimension to work along, by default the first.
        mode: that of `gumbel`, for `p` without replacement: "low", "high" or "highest";
            None for "low".

    Returns:
        An array of the dtype of `a`, or of int32, int64 with x64. It has `shape` in
        place of dimension `axis`.

    Raises:
        TypeError: `key` is not a key, or `shape` is not a sequence.
        ValueError: there are not enough elements, or `p` does not fit.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> vnp.sort(random.choice(random.key(0), 4, (4,), replace=False)).tolist()
    [0, 1, 2, 3]
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> p = vnp.array([0.0, 0.0, 1.0])
    >>> random.choice(random.key(0), x, (2,), p=p, axis=1).tolist()
    [[3, 3], [6, 6]]
    """
    typed = one_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(
            f"choice: shape must be a sequence of sizes, not {shown(shape)}"
        )
    sizes = as_sizes("choice", "shape", shape)
    aval = aval_of(a)
    array = as_array("choice", a, 1) if aval.shape else None
    place = 0 if array is None else canonical_axis("choice", axis, array.ndim)
    count = count_of("choice", a) if array is None else array.shape[place]
    expected = math.prod(sizes)
    if not expected:
        return full(sizes, 0, aval.dtype)
    check_population(count, expected, replace)
    if p is not None:
        drawn = weighted(typed, count, sizes, replace, p, mode)
    elif replace:
        dtype = default_integer()
        drawn = in_known_range(typed, sizes, dtype, 0, count)
    else:
        whole = count if array is None else array
        out = slice_in_dim(permutation(typed, whole, place), 0, expected, axis=place)
        rest = out.shape[:place], out.shape[place + 1 :]
        return reshape(out, (*rest[0], *sizes, *rest[1]))
    return drawn if array is None else taken(array, drawn, place)


def check_population(count: int, expected: int, replace: bool) -> None:
    """Raise a ValueError unless so many elements can be chosen."""
    if count <= 0:
        raise ValueError("choice: a must not be empty")
    if not replace and expected > count:
        raise ValueError(
            f"choice: cannot take {expected} elements without replacement from {count}"
        )


def weighted(
    key: Array,
    count: int,
    sizes: tuple[int, ...],
    replace: bool,
    p: ArrayLike,
    mode: str | None,
) -> Array:
    """Places below `count` with probabilities `p`."""
    weights = inexact_array("choice", p)
    dtype = default_integer()
    if weights.shape != (count,):
        raise ValueError(
            f"choice: p must have one probability for each of the {count} elements, "
            f"not shape {weights.shape}"
        )
    if replace:
        line = cumsum(weights)
        total = reshape(slice_in_dim(line, count - 1, count), ())
        u = mul(total, sub(1.0, unit(key, sizes, weights.dtype)))
        return convert(searchsorted(line, u), dtype)
    scores = add(draw_gumbel(key, (count,), weights.dtype, mode), log(weights))
    _, places = top_k(scores, math.prod(sizes))
    return reshape(convert(places, dtype), sizes)


# -----------------------------------------------------------------------------
# Samples of several dimensions: normal vectors, rotations, points of a ball.
#
# A vector of independent samples is shaped by a matrix or scaled by its length,
# both of which are differentiable::
#
#     multivariate_normal(key, mean, cov)      # mean + L z, cov = L Lᵀ
#     orthogonal(key, 3)                       # the Q of a normal matrix


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

    Args:
        key: one key, as `random.key` makes it.
        mean: the mean, of shape (..., n).
        cov: the covariance, symmetric, of shape (..., n, n).
        shape: the shape of the vectors, without their own dimension, to which the
            dimensions of `mean` and `cov` in front broadcast; None for these together.
        dtype: the dtype of the normal samples that are transformed, real and floating;
            by default the common inexact dtype of `mean` and `cov`.
        method: how the covariance is factored: "cholesky", the default, or "eigh" and
            "svd", which take singular ones too.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of shape (*shape, n), of the common dtype of samples, `mean` and `cov`;
        NaN where there is no factor.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating, there is no such method, or shapes do not
            fit.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> mean, cov = vnp.array([1.0, 2.0]), vnp.array([[4.0, 2.0], [2.0, 3.0]])
    >>> x = random.multivariate_normal(random.key(0), mean, cov, (50_000,))
    >>> x.mean(0).round(1), vnp.cov(x.T).round(1).tolist()
    (Array([1., 2.], dtype=float32), [[4.0, 2.0], [2.0, 3.0]])
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
    out = float_dtype("multivariate_normal", center.dtype if dtype is None else dtype)
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
        shaped, typed, center, spread, shape=(*sizes, *size), dtype=out, method=method
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


def index_of(name: str, argument: str, x: SupportsIndex) -> int:
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

    Args:
        key: one key, as `random.key` makes it.
        n: the number of rows.
        shape: the shape of the stack of matrices, a size or several; by default one
            matrix.
        dtype: the dtype of the result, real, or complex for unitary matrices; by
            default float32, or float64 with x64.
        m: the number of columns; None for n.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of shape (*shape, n, m) and of `dtype`, whose rows are orthonormal if n
        ≤ m and whose columns are if n ≥ m.

    Raises:
        TypeError: `key` is not a key, or `n` or `m` is not an integer.
        ValueError: `dtype` is neither floating nor complex.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> q = random.orthogonal(random.key(0), 2, m=3)
    >>> q.shape, vnp.allclose(q @ q.T, vnp.eye(2), atol=1e-5).item()
    ((2, 3), True)
    """
    if out_sharding is not None:
        return call_sharded(orthogonal, locals())
    rows = index_of("orthogonal", "n", n)
    columns = rows if m is None else index_of("orthogonal", "m", m)
    typed, target, sizes = asked("orthogonal", key, shape, dtype, kind=inexact_dtype)
    return compiled(orthogonal_of, typed, shape=(*sizes, rows, columns), dtype=target)


def orthogonal_of(key: Array, shape: Shape, dtype: DType) -> Array:
    """The Q of a normal matrix whose R has a positive diagonal."""
    *batch, n, m = shape
    factors = qr(draw_normal(key, (*batch, max(n, m), min(n, m)), dtype))
    q, r = factors
    out = q * sign(diagonal(r, 0, -2, -1))[..., None, :]
    return matrix_transpose(out) if n < m else out


def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Samples of the density exp(-|x|^p), up to a factor.

    With p = 1 it is Laplace's distribution, with p = 2 the normal one of variance 1/2.

    Args:
        key: one key, as `random.key` makes it.
        p: the exponent, a positive array or scalar that broadcasts to `shape`.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape`, of the common dtype of `dtype` and `p`.

    Raises:
        TypeError: `key` is not a key, or `p` is not an array.
        ValueError: `dtype` is not floating, or `p` does not fit `shape`.

    >>> from verax import random
    >>> x = random.generalized_normal(random.key(0), 2.0, (10_000,))
    >>> round(float(x.var()), 1)
    0.5
    """
    check_arraylike("generalized_normal", p)
    sizes = as_shape("generalized_normal", shape)
    return from_key(
        generalized_of, "generalized_normal", key, sizes, dtype, out_sharding, p
    )


def generalized_of(key: Array, p: ArrayLike, shape: Shape, dtype: DType) -> Array:
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

    Args:
        key: one key, as `random.key` makes it.
        d: the number of dimensions, an integer.
        p: the exponent of the norm, a finite positive scalar; by default 2.
        shape: the shape of the points, without their own dimension; by default one
            point.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of shape (*shape, d), of the common dtype of `dtype` and `p`.

    Raises:
        TypeError: `key` is not a key, `d` not an integer, or `p` not an array.
        ValueError: `dtype` is not floating.

    >>> from verax import random
    >>> x = random.ball(random.key(0), 3, shape=(10_000,))
    >>> r = (x**2).sum(-1) ** 0.5
    >>> bool((r <= 1).all()), round(float((r < 0.8).mean()), 1)  # 0.8³ = 0.51
    (True, 0.5)
    """
    if out_sharding is not None:
        return call_sharded(ball, locals())
    check_arraylike("ball", p)
    count = index_of("ball", "d", d)
    typed, target, sizes = asked("ball", key, shape, dtype)
    return compiled(ball_of, typed, p, shape=(*sizes, count), dtype=target)


def ball_of(key: Array, p: ArrayLike, shape: Shape, dtype: DType) -> Array:
    """A generalized normal vector over the p-norm of it and an exponential sample."""
    first, second = several(key, 2)
    points = generalized_of(first, p, shape, dtype)
    extra = exponential_of(unit(second, shape[:-1], dtype))
    total = power(absolute(points), p).sum(-1) + extra
    return points / power(total, true_divide(1, p))[..., None]
