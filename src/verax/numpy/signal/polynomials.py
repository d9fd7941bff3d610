"""Floor 6: polynomials as vectors of coefficients, the highest power first, and fits.

One idea: sizes are known while tracing, so derivatives and integrals are one product
with constants, and division is unrolled; a fit is least squares on a Vandermonde matrix
with columns of length one::

    polyval([2, 0, 1], x)          # 2 x² + 1, with the coefficients as an array
    polymul(p, q), polyder(p), polyint(p), polyfit(x, y, 2)
"""

from math import factorial
from typing import Literal, overload

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
    inexact_array,
    inexact_arrays,
    promote,
    promote_inexact,
    stretched,
    with_weak_type,
)
from verax.numpy.creation.filling import filled, zeros_like
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
from verax.numpy.linalg.decompositions import eigvals
from verax.numpy.linalg.outer_products import outer
from verax.numpy.linalg.products import matmul
from verax.numpy.linalg.solving import inv, lstsq
from verax.numpy.matrices import diag, vander
from verax.numpy.reducing.reductions import sum
from verax.numpy.reducing.running import cumprod
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

EXACT = (float32, float64, complex64, complex128)
"""The dtypes in which NumPy computes as a program does, one operation after another."""


def coefficients(name: str, *args: ArrayLike) -> list[Array]:
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

    Args:
        a1, a2: vectors of coefficients, the highest power first; their sizes may
            differ.

    Returns:
        An array of the longer size, in the common dtype; leading zeros stay.

    Raises:
        ValueError: an operand is a scalar, or does not broadcast to those rows.

    >>> import verax.numpy as vnp
    >>> vnp.polyadd(vnp.array([1, 2, 3]), vnp.array([4, 5]))
    Array([1, 6, 8], dtype=int32)
    """
    return sum_of(*coefficients("polyadd", *promote("polyadd", a1, a2)))


@remembered
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials, with the shapes of `polyadd`.

    Args:
        a1, a2: vectors of coefficients, the highest power first; their sizes may
            differ.

    Returns:
        An array of the longer size, in the common dtype; leading zeros stay.

    Raises:
        ValueError: an operand is a scalar, or does not broadcast.

    >>> import verax.numpy as vnp
    >>> vnp.polysub(vnp.array([1, 2]), vnp.array([1, 2, 3]))
    Array([-1, -1, -1], dtype=int32)
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

    Args:
        a1, a2: vectors of coefficients, the highest power first.
        trim_leading_zeros: whether leading coefficients that are nearly zero are left
            out of the operands first. Then the size of the result depends on values,
            and it cannot be traced.

    Returns:
        A vector of floats or complex numbers, whose size is one less than the sum of
        theirs.

    Raises:
        ValueError: an operand is a scalar.

    >>> import verax.numpy as vnp
    >>> vnp.polymul(vnp.array([0, 1, 2]), vnp.array([1, -2]))
    Array([ 0.,  1.,  0., -4.], dtype=float32)
    >>> vnp.polymul(vnp.array([0, 1, 2]), vnp.array([1, -2]), trim_leading_zeros=True)
    Array([ 1.,  0., -4.], dtype=float32)
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

    Args:
        u: a vector of coefficients, the highest power first, that is divided.
        v: a nonempty vector of coefficients, by which it is divided, the first not 0.
        trim_leading_zeros: whether leading coefficients of the remainder that are
            nearly zero are left out. Then its size depends on values, and it cannot be
            traced.

    Returns:
        Two vectors of floats or complex numbers: the quotient, and the remainder, of
        the size of `u` unless trimmed.

    Raises:
        ValueError: an operand is a scalar, or `v` is empty.

    >>> import verax.numpy as vnp
    >>> quotient, rest = vnp.polydiv(vnp.array([1, 3, 5]), vnp.array([1, 1]))
    >>> quotient.tolist(), rest.tolist()
    ([1.0, 2.0], [0.0, 0.0, 3.0])
    """
    x, y = coefficients("polydiv", *promote_inexact("polydiv", u, v))
    if not y.size:
        raise ValueError("polydiv: the divisor must not be empty")
    steps = x.shape[0] - y.shape[0] + 1
    if steps < 1:
        return filled((1,), 0, x.dtype), x
    scale = true_divide(1, y[0])
    tail = y[1:]
    rest, quotient, gone = x, [], []
    for _ in range(steps):
        factor = multiply(scale, rest[:1])
        quotient.append(factor)
        # What is taken away from itself: 0, but NaN where it is not finite.
        taken = multiply(factor, y[:1])
        gone.append(subtract(taken, taken))
        head = subtract(rest[1 : y.shape[0]], multiply(factor, tail))
        behind = rest[y.shape[0] :]
        rest = concatenate((head, behind)) if behind.size else head
    remainder = concatenate((*gone, rest))
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

    Args:
        p: a vector of coefficients, the highest power first; or an array whose rows are
            those of several polynomials.
        m: the order, known while tracing; 1 by default, and 0 gives `p` back.

    Returns:
        An array of floats or complex numbers with `m` rows fewer, down to none.

    Raises:
        ValueError: the order is negative, or `p` is a scalar.

    >>> import verax.numpy as vnp
    >>> vnp.polyder(vnp.array([1, 2, 3, 4])), vnp.polyder(vnp.array([1, 2, 3, 4]), m=3)
    (Array([3., 4., 3.], dtype=float32), Array([6.], dtype=float32))
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
    """The integral of order `m`, as floats.

    Args:
        p: a vector of coefficients, the highest power first.
        m: the order, known while tracing; 1 by default, and 0 gives `p` back.
        k: the constants of integration: a scalar for all, or a vector of size 1 or `m`,
            that of the first integration first; None for 0.

    Returns:
        A vector of floats or complex numbers with `m` elements more.

    Raises:
        ValueError: the order is negative, or `k` is neither a scalar nor a vector of
            size 1 or `m`.

    >>> import verax.numpy as vnp
    >>> p = vnp.array([6])
    >>> vnp.polyint(p), vnp.polyint(p, m=2, k=vnp.array([1, 2]))
    (Array([6., 0.], dtype=float32), Array([3., 1., 2.], dtype=float32))
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

    Args:
        p: a vector of coefficients, the highest power first; further dimensions
            broadcast with `x`.
        x: an array or scalar, the places.
        unroll: without effect: the rule is unrolled, since one step is two equations.

    Returns:
        An array of the shape of `x` in the common dtype; zeros if `p` is empty.

    Raises:
        ValueError: `p` is a scalar.

    >>> import verax.numpy as vnp
    >>> vnp.polyval(vnp.array([2, 0, 1]), vnp.array([1, 3]))
    Array([ 3, 19], dtype=int32)
    >>> vnp.polyval(vnp.array([[1, 2], [3, 4]]), 10)
    Array([13, 24], dtype=int32)
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
    source = np.asarray(line).astype(numpy_dtype(dtype)) if known else line
    rows = [source[i] for i in range(line.shape[0])]
    out = rows[0]
    for row in rows[1:]:
        out = add(multiply(places, out), row)
    # Coefficients and places may both be weak in the result's dtype; it is not.
    return convert(as_array("polyval", stretched(out, shape)), dtype)


# --------------------------------------------------------------------------- roots


@remembered
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with these roots, or of a matrix.

    Args:
        seq_of_zeros: a vector of roots, a scalar for one root, or a square matrix,
            whose eigenvalues are the roots.

    Returns:
        A vector of floats or complex numbers, the highest power, with coefficient 1,
        first; complex for a matrix. The scalar 1 if there are no roots.

    Raises:
        ValueError: it is neither a vector nor a square matrix.

    >>> import verax.numpy as vnp
    >>> vnp.poly(vnp.array([1, 2]))
    Array([ 1., -3.,  2.], dtype=float32)
    >>> vnp.poly(vnp.array([1j, -1j]))
    Array([1.+0.j, 0.+0.j, 1.+0.j], dtype=complex64)
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
        scaled = in_front(multiply(out, roots_of[i]), 1)
        out = subtract(shifted, scaled)
    return out


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial: eigenvalues of its companion matrix.

    Args:
        p: a vector of coefficients, the highest power first, or a scalar.
        strip_zeros: whether leading zeros are stripped, which depends on values. If
            not, roots can be traced, and there is a NaN at the end for each leading
            zero.

    Returns:
        A vector of complex numbers, complex128 for coefficients in double precision,
        otherwise complex64; one element less than `p` has after stripping.

    Raises:
        ValueError: `p` is not a vector.

    >>> import verax.numpy as vnp
    >>> vnp.sort(vnp.roots(vnp.array([1, -3, 2])).real).round(3)
    Array([1., 2.], dtype=float32)
    >>> vnp.roots(vnp.array([0, 1, -3]), strip_zeros=False).real
    Array([ 3., nan], dtype=float32)
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


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: bool | Literal["unscaled"] = False,
) -> tuple[Array, Array, Array, Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: bool | Literal["unscaled"] = False,
) -> tuple[Array, Array, Array, Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    *,
    cov: Literal[True, "unscaled"],
) -> tuple[Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None,
    full: Literal[False],
    w: ArrayLike | None,
    cov: Literal[True, "unscaled"],
) -> tuple[Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | Literal["unscaled"] = False,
) -> Array | tuple[Array, Array] | tuple[Array, Array, Array, Array, Array]: ...
@remembered
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | Literal["unscaled"] = False,
) -> Array | tuple[Array, Array] | tuple[Array, Array, Array, Array, Array]:
    """The polynomial of degree `deg` closest to the points by least squares.

    The columns of the Vandermonde matrix are scaled to length one first.

    Args:
        x: a nonempty vector, the places of the points.
        y: a vector of their values, or a matrix with a column per data set.
        deg: the degree, known while tracing.
        rcond: singular values below this part of the largest count as 0; by default the
            number of points times the epsilon of the dtype.
        full: whether to return what the solver says, too.
        w: a vector of weights, by which the residuals are multiplied before they are
            squared; None for 1.
        cov: whether to return the covariances of the coefficients, too; "unscaled"
            leaves out the variance of the residuals. Without effect if `full`.

    Returns:
        The coefficients, the highest power first, in deg + 1 rows, with columns as in
        `y`. If `full`, they and residuals, rank, singular values and `rcond`; if `cov`,
        they and an array of (deg + 1) x (deg + 1) covariances, with a last dimension
        for the columns of `y`.

    Raises:
        ValueError: the degree is negative, `x` or `w` has the wrong shape, or there are
            too few points for `cov`.
        TypeError: `y` has another number of points than `x`.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([0.0, 1.0, 2.0, 3.0])
    >>> vnp.polyfit(x, vnp.array([1.0, 3.0, 5.0, 7.0]), 1).round(3)
    Array([2., 1.], dtype=float32)
    >>> y, w = vnp.array([1.0, 3.0, 5.0, 9.0]), vnp.array([1, 1, 1, 0])
    >>> vnp.polyfit(x, y, 1, w=w).round(3)
    Array([2., 1.], dtype=float32)
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
