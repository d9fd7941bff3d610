"""Floor 6: polynomials as vectors of coefficients, the highest power first, and fits.

One idea: sizes are known while tracing, so derivatives and integrals are one product
with constants, and division is unrolled; a fit is least squares on a Vandermonde matrix
with columns of length one::

    polyval([2, 0, 1], x)          # 2 x² + 1, with the coefficients as an array
    polymul(p, q), polyder(p), polyint(p), polyfit(x, y, 2)
"""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np

from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import ShapedArray, finfo
from verax.ir.dtypes import (
    complex64,
    complex128,
    float32,
    float64,
    int32,
    numpy_dtype,
    real_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    avals_of,
    broadcast_shapes_of,
    default_float,
    inexact_array,
    inexact_arrays,
    promote,
    promote_inexact,
    stretched,
    with_weak_type,
)
from verax.numpy.creation.creation import filled, zeros_like
from verax.numpy.elementwise.arithmetic import (
    add,
    multiply,
    negative,
    sqrt,
    square,
    subtract,
    true_divide,
)
from verax.numpy.elementwise.comparison import equal, less
from verax.numpy.elementwise.division import remainder
from verax.numpy.elementwise.transcendental import i0
from verax.numpy.linalg.decompositions import eigvals
from verax.numpy.linalg.products import matmul, outer
from verax.numpy.linalg.solving import inv, lstsq
from verax.numpy.ranges import diag, vander
from verax.numpy.reducing.reductions import cumprod, sum
from verax.numpy.searching.sorting import argsort
from verax.numpy.searching.where_nonzero import where
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import broadcast_to, expand_dims, reshape, transpose
from verax.numpy.signal.differences import convolve
from verax.ops.elementwise.convert import convert
from verax.ops.structure.create import iota
from verax.ops.structure.slicing import pad
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError

EXACT = (float32, float64, complex64, complex128)
"""The dtypes in which NumPy computes as a program does, one operation after another."""


def coefficients(name: str, *args: Any) -> list[Array]:
    """Operands as arrays with a dimension.

    Raises:
        ValueError: one is a scalar.
    """
    out = [as_array(name, x, i) for i, x in enumerate(args)]
    for x in out:
        if not x.ndim:
            raise ValueError(f"{name} takes vectors of coefficients, not {x.aval}")
    return out


def in_front(x: Array, count: int) -> Array:
    """`count` zeros before the coefficients."""
    if not count:
        return x
    edges = [(count if i == 0 else 0, 0, 0) for i, _ in enumerate(x.shape)]
    array = pad(x, np.zeros((), numpy_dtype(x.dtype)), edges)
    return with_weak_type(array, x.weak_type)


def without_zeros(name: str, x: Array) -> Array:
    """The coefficients from the first on that is not nearly zero, or the last alone."""
    values = x.concrete(f"{name} with trim_leading_zeros=True")
    tolerance = float(finfo(real_dtype(x.dtype)).eps) ** 0.5
    places = np.flatnonzero(np.abs(values) > tolerance)
    return x[int(places[0]) if places.size else max(x.shape[0] - 1, 0) :]


# --------------------------------------------------------------------------- sums


@remembered
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Of arrays with more dimensions, whose rows are coefficients, the shorter one is
    broadcast to as many last rows of the longer one.

    Raises:
        ValueError: an operand is a scalar, or does not broadcast to those rows.
    """
    return sum_of(*coefficients("polyadd", *promote("polyadd", a1, a2)))


@remembered
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials, with the shapes of `polyadd`.

    Raises:
        ValueError: an operand is a scalar, or does not broadcast.
    """
    x, y = coefficients("polysub", *promote("polysub", a1, a2))
    return sum_of(x, negative(y))


def sum_of(x: Array, y: Array) -> Array:
    """The longer of two arrays, the first if both are, with the other at its end."""
    long, short = (x, y) if len(y) <= len(x) else (y, x)
    if not len(short):
        return long
    front, end = long[: -len(short)], long[-len(short) :]
    return concatenate([front, add(end, broadcast_to(short, end.shape))])


# ----------------------------------------------------------------- products, quotients


@remembered
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials, as floats; an empty vector is the polynomial 0.

    With `trim_leading_zeros`, the result depends on values and cannot be traced.

    Raises:
        ValueError: an operand is a scalar.
    """
    x, y = coefficients("polymul", *promote_inexact("polymul", a1, a2))
    if trim_leading_zeros:
        x, y = without_zeros("polymul", x), without_zeros("polymul", y)
    x = x if x.size else filled((1,), 0, x.dtype)
    y = y if y.size else filled((1,), 0, y.dtype)
    return convolve(x, y)


def polydiv(
    u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False
) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials, as floats.

    The remainder has the size of `u` unless `trim_leading_zeros`, which depends on
    values and cannot be traced.

    Raises:
        ValueError: an operand is a scalar, or `v` is empty.
    """
    x, y = coefficients("polydiv", *promote_inexact("polydiv", u, v))
    if not y.size:
        raise ValueError("polydiv: the divisor must not be empty")
    steps = x.shape[0] - y.shape[0] + 1
    if steps < 1:
        return filled((1,), 0, x.dtype), x
    scale = true_divide(1, y[0])
    tail = y[1:]
    rest, quotient = x, []
    for _ in range(steps):
        factor = multiply(scale, rest[:1])
        quotient.append(factor)
        head = subtract(rest[1 : y.shape[0]], multiply(factor, tail))
        behind = rest[y.shape[0] :]
        rest = concatenate((head, behind)) if behind.size else head
    remainder = in_front(rest, steps)
    if trim_leading_zeros:
        remainder = without_zeros("polydiv", remainder)
    return concatenate(quotient), remainder


# ------------------------------------------------------------- derivatives, integrals


def by_rows(x: Array, factors: list[float]) -> Array:
    """Each coefficient times its factor."""
    column = np.array(factors, np.float64).astype(numpy_dtype(x.dtype))
    return multiply(x, reshape(column, (-1, *[1] * (x.ndim - 1))))


@remembered
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of order `m`, as floats.

    Raises:
        ValueError: the order is negative, or `p` is a scalar.
    """
    if m < 0:
        raise ValueError(
            f"polyder: the order m must not be negative, but is {m}; see polyint"
        )
    (x,) = coefficients("polyder", *promote_inexact("polyder", p))
    if not m:
        return x
    kept = x.shape[0] - m
    powers = [kept - 1 - i + m for i in range(max(kept, 0))]
    falling = [factorial(n) / factorial(n - m) for n in powers]
    return by_rows(x[: max(kept, 0)], falling)


@remembered
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The integral of order `m`, as floats, with the constants `k`, by default 0.

    Raises:
        ValueError: the order is negative, or `k` is neither a scalar nor a vector of
            size 1 or `m`.
    """
    if m < 0:
        raise ValueError(
            f"polyint: the order m must not be negative, but is {m}; see polyder"
        )
    operands = promote_inexact("polyint", p, 0 if k is None else k)
    (x,) = coefficients("polyint", operands[0])
    if not m:
        return x
    constants = as_array("polyint", operands[1], 2)
    if constants.shape not in ((), (1,), (m,)):
        raise ValueError(
            f"polyint: k must be a scalar or a vector of {m}, not of shape "
            f"{constants.shape}"
        )
    line = broadcast_to(constants, (m,))
    n = x.shape[0]
    rising = [factorial(n - 1 - i) / factorial(n - 1 - i + m) for i in range(n)]
    tail = [1 / factorial(m - 1 - i) for i in range(m)]
    if k is not None and m > 1:
        line = by_rows(line, tail)
    return concatenate((by_rows(x, rising), line))


# -------------------------------------------------------------------------- values


def polyval_at_once(p: object, x: object, *, unroll: int | None = None) -> OneGo | None:
    """Horner's rule on floats of one dtype, in the memory of the result."""
    if type(p) is not ShapedArray or type(x) is not ShapedArray or x.dtype not in EXACT:
        return None
    if p.dtype is not x.dtype or p.ndim != 1 or p.size < 2 or not x.ndim:
        return None
    multiply, add, count = np.multiply, np.add, p.size

    def horner(line: np.ndarray, places: np.ndarray) -> np.ndarray:
        # Arrays without dimensions: NumPy takes longer for its scalars.
        first, second, *rest = [line[i, ...] for i in range(count)]
        out: np.ndarray = multiply(places, first)
        add(out, second, out)
        for coefficient in rest:
            multiply(places, out, out)
            add(out, coefficient, out)
        return out

    return horner


@in_numpy(polyval_at_once)
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The polynomial at each element of `x`, by Horner's rule.

    It is unrolled whatever `unroll` says, since one step is two equations.

    Raises:
        ValueError: `p` is a scalar.
    """
    typed, places = promote("polyval", p, x)
    (line,) = coefficients("polyval", p if not isinstance(typed, Tracer) else typed)
    place_aval, _ = avals_of("polyval", (places, 0))
    shape = broadcast_shapes_of("polyval", (line.shape[1:], place_aval.shape))
    dtype = place_aval.dtype
    if not line.shape[0]:
        return filled(shape, 0, dtype)
    # Known coefficients are constants of the program, as literals in its equations.
    known = not isinstance(line, Tracer)
    source: Any = np.asarray(line).astype(numpy_dtype(dtype)) if known else line
    rows = [source[i] for i in range(line.shape[0])]
    out: Any = rows[0]
    for row in rows[1:]:
        out = add(multiply(places, out), row)
    # Coefficients and places may both be weak in the result's dtype; it is not.
    return convert(as_array("polyval", stretched(out, shape)), dtype)


# --------------------------------------------------------------------------- roots


@remembered
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with these roots, or of a matrix.

    Raises:
        ValueError: it is neither a vector nor a square matrix.
    """
    roots_of = inexact_array("poly", seq_of_zeros)
    if roots_of.ndim == 0:
        roots_of = reshape(roots_of, (1,))
    if roots_of.ndim == 2 and roots_of.shape[0] == roots_of.shape[1]:
        roots_of = eigvals(roots_of)
    if roots_of.ndim != 1:
        raise ValueError(f"poly takes a vector or a square matrix, not {roots_of.aval}")
    if not roots_of.size:
        return filled((), 1, roots_of.dtype)
    out = filled((1,), 1, roots_of.dtype)
    zero = np.zeros((), numpy_dtype(roots_of.dtype))
    for i in range(roots_of.shape[0]):
        shifted = pad(out, zero, [(0, 1, 0)])
        scaled = multiply(in_front(out, 1), roots_of[i])
        out = subtract(shifted, scaled)
    return out


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, complex: eigenvalues of its companion matrix.

    Leading zeros are stripped, which depends on values; with `strip_zeros=False` the
    function can be traced, and there is a NaN at the end for each leading zero.

    Raises:
        ValueError: `p` is not a vector.
    """
    x = inexact_array("roots", p)
    x = reshape(x, x.shape or (1,))
    if x.ndim != 1:
        raise ValueError(f"roots takes a vector of coefficients, not {x.aval}")
    dtype = complex128 if x.dtype in (float64, complex128) else complex64
    if not strip_zeros:
        return convert(roots_and_nans(x), dtype)
    places = np.flatnonzero(x.concrete("roots without strip_zeros=False"))
    if not places.size:
        return filled((0,), 0, dtype)
    first, last = int(places[0]), int(places[-1])
    out = convert(companion_roots(x[first : last + 1]), dtype)
    trailing = x.shape[0] - 1 - last
    if not trailing:
        return out
    return concatenate((out, filled((trailing,), 0, dtype)))


def roots_and_nans(x: Array) -> Array:
    """As many roots as the size says; those that leading zeros take away are NaN.

    The zeros are moved from the front to the back, where each is one root of 0 more.
    """
    if x.shape[0] < 2:
        return x[:0]
    leading = cumprod(equal(x, 0).astype(np.int32)).sum(dtype=np.int32)
    whole = where(equal(leading, x.shape[0]), 1, x)
    places = remainder(iota(int32, x.shape[0]) + leading, x.shape[0])
    array = companion_roots(whole[places])
    order = argsort(equal(array, 0), stable=True)
    kept = less(iota(int32, array.shape[0]), array.shape[0] - leading)
    return as_array("roots", where(kept, array[order], complex(np.nan, np.nan)))


def companion_roots(x: Array) -> Array:
    """The eigenvalues of the companion matrix, whose first row is -p[1:] / p[0]."""
    size = x.shape[0] - 1
    if size < 1:
        return x[:0]
    ones = filled((size - 1,), 1, x.dtype)
    below = diag(ones, -1) if size > 1 else zeros_like(x[:1, None])
    first = negative(true_divide(x[1:], x[0]))
    matrix = concatenate((reshape(first, (1, size)), below[1:]), 0)
    out: Array = eigvals(matrix)
    return out


@remembered
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool = False,
) -> Any:
    """The polynomial of degree `deg` closest to the points, the highest power first.

    `y` may have a column per data set. `w` weighs the residuals. With `full`, also
    residuals, rank, singular values and `rcond`; with `cov`, the covariances of the
    coefficients ("unscaled": without the variance of the residuals).

    Raises:
        ValueError: the degree is negative, or shapes do not fit.
    """
    if deg < 0:
        raise ValueError(f"polyfit: the degree must not be negative, but is {deg}")
    given = [x, y] if w is None else [x, y, w]
    places, values, *weights = inexact_arrays("polyfit", *given)
    check_points(places, values, weights)
    if rcond is None:
        rcond = places.shape[0] * float(finfo(real_dtype(places.dtype)).eps)
    left = vander(places, deg + 1)
    right = values
    if weights:
        column = expand_dims(weights[0], 1)
        left = multiply(left, column)
        right = multiply(right, column if right.ndim == 2 else weights[0])
    lengths = sqrt(sum(square(left), axis=0))
    left = true_divide(left, expand_dims(lengths, 0))
    out, residuals, rank, singular = lstsq(left, right, rcond)
    scale = expand_dims(lengths, 1) if values.ndim == 2 else lengths
    out = true_divide(out, scale)
    if full:
        return out, residuals, rank, singular, as_array("polyfit", rcond)
    if not cov:
        return out
    base = true_divide(inv(matmul(transpose(left), left)), outer(lengths, lengths))
    return out, spread(base, residuals, cov, places.shape[0], deg, values.ndim)


def check_points(places: Array, values: Array, weights: list[Array]) -> None:
    """Raise a ValueError unless there are equally many places, values and weights."""
    if places.ndim != 1 or not places.size:
        raise ValueError(f"polyfit: x must be a nonempty vector, not {places.aval}")
    if values.ndim not in (1, 2) or values.shape[0] != places.shape[0]:
        raise TypeError(
            f"polyfit: y has shape {values.shape}, but x has {places.shape[0]} points"
        )
    if weights and weights[0].shape != places.shape:
        raise ValueError(
            f"polyfit: w has shape {weights[0].shape}, but x has {places.shape[0]} "
            "points"
        )


def spread(
    base: Array, residuals: Array, cov: object, count: int, deg: int, rank: int
) -> Array:
    """The covariances, scaled by the variance of the residuals unless "unscaled"."""
    if cov == "unscaled":
        return base if rank == 1 else expand_dims(base, 2)
    free = count - deg - 1
    if free <= 0:
        raise ValueError(
            f"polyfit: {count} points are too few to scale the covariance for degree "
            f"{deg}; pass more points, or cov='unscaled'"
        )
    variance = true_divide(residuals, free)
    if rank == 1:
        # One variance in a vector; none where the points lie on one polynomial.
        return multiply(base, reshape(variance, (1, variance.size)))
    return multiply(expand_dims(base, 2), reshape(variance, (1, 1, variance.size)))


# -----------------------------------------------------------------------------
# Window functions of a known size.
#
# A window depends on nothing but its size, so it is a constant, computed in
# double precision; except that of Kaiser, which can be differentiated by its shape::
#
#     spectrum = fft.rfft(x * hanning(x.size))


def window(name: str, function: Callable[[int], np.ndarray], size: int) -> Array:
    """The window of `size` points as an array of the default float.

    Raises:
        ValueError: the size is negative.
    """
    count = int(size)
    if count < 0:
        raise ShapeError(f"{name}: the size must not be negative, but is {count}")
    dtype = default_float()
    return as_array(name, function(count).astype(dtype))


def bartlett(M: int) -> Array:
    """The triangle of `M` points that is 0 at both ends and 1 in the middle."""
    return window("bartlett", np.bartlett, M)


def blackman(M: int) -> Array:
    """The window 0.42 - 0.5 cos(2 pi n / (M-1)) + 0.08 cos(4 pi n / (M-1))."""
    return window("blackman", np.blackman, M)


def hamming(M: int) -> Array:
    """The window 0.54 - 0.46 cos(2 pi n / (M-1))."""
    return window("hamming", np.hamming, M)


def hanning(M: int) -> Array:
    """The window 0.5 - 0.5 cos(2 pi n / (M-1))."""
    return window("hanning", np.hanning, M)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The window I0(beta sqrt(1 - (2n / (M-1) - 1)²)) / I0(beta); see `i0`.

    Raises:
        ValueError: `beta` is not a scalar.
    """
    value = inexact_array("kaiser", beta)
    if value.ndim:
        raise ValueError(f"kaiser: beta must be a scalar, not {value.aval}")
    line = window("kaiser", np.ones, M)
    if line.size < 2:
        return line
    places = np.linspace(-1, 1, line.size)
    arc = np.sqrt(1 - places**2).astype(numpy_dtype(value.dtype))
    return true_divide(i0(multiply(value, arc)), i0(value))
