"""Floor 6: norms of vectors and matrices, and condition numbers.

One idea: a norm of vectors is a reduction, one of matrices a reduction of the other, or
of singular values::

    norm(x), norm(a, "nuc"), vector_norm(x, axis=0, ord=1), cond(a)
"""

from typing import Any

import numpy as np

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DType, DTypeLike, is_complex, is_inexact, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    as_array,
    canonical_axes,
    chosen_dtype,
    inexact_array,
    promote_inexact,
)
from verax.numpy.elementwise.arithmetic import clip, multiply, true_divide
from verax.numpy.linalg.decompositions import values_of
from verax.numpy.linalg.products import matmul
from verax.numpy.linalg.solving import inv
from verax.numpy.reducing.reductions import (
    any as some,
    max as greatest,
    min as least,
    sum,
    sum as total,
)
from verax.numpy.reducing.statistics import average
from verax.numpy.shaping.diagonals import diagonal
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import (
    atleast_2d,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
    squeeze,
    transpose,
)
from verax.ops.elementwise.arith import (
    abs as magnitude,
    complex,
    conj,
    div,
    imag,
    mul,
    real,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_not
from verax.ops.elementwise.compare import ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import pow as power, sqrt
from verax.ops.elementwise.select import select
from verax.ops.linalg.triangular import conjugate, real_part
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array

type Order = int | float | str | None


@remembered
def norm(
    x: ArrayLike, ord: Order = None, axis: Axis = None, keepdims: bool = False
) -> Array:
    """The norm of a vector, a matrix, or of the whole array without `ord` and `axis`.

    Args:
        x: an array.
        ord: the norm, as for `vector_norm` or `matrix_norm`; None for the root of the
            sum of squares.
        axis: one dimension for norms of vectors, two for norms of matrices, rows first;
            None for all of them, of which there may be more than two only without
            `ord`.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        a real array of the other dimensions, in the real dtype of `x`, integers as
        floats.

    Raises:
        ValueError: there is no such norm, or `axis` has more than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.norm(vnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    >>> x = vnp.array([[3, -4], [6, 8]])
    >>> vnp.linalg.norm(x, axis=1), vnp.linalg.norm(x, 1)
    (Array([ 5., 10.], dtype=float32), Array(12., dtype=float32))
    """
    a = inexact_array("norm", x)
    if axis is None and ord is None:
        out = euclidean(ravel(a), (0,), False)
        return reshape(out, (1,) * a.ndim) if keepdims else out
    axes = (
        tuple(range(a.ndim)) if axis is None else canonical_axes("norm", axis, a.ndim)
    )
    if len(axes) == 1:
        return vector_norm_of(a, axes, 2 if ord is None else ord, keepdims)
    if len(axes) == 2:
        return matrix_norm_of(a, axes, "fro" if ord is None else ord, keepdims)
    raise ValueError(f"norm runs over one or two dimensions, not {len(axes)}: {axes}")


def euclidean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The root of the sum of squares."""
    return sqrt(total(real_part(mul(x, conjugate(x))), axes, keepdims=keepdims))


@remembered
def vector_norm(
    x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: Order = 2
) -> Array:
    """The norm of vectors over `axis`, by default of all elements.

    Args:
        x: an array.
        axis: the dimension or dimensions to reduce, whose elements are one vector; None
            for all of them.
        keepdims: whether reduced dimensions stay, with size 1.
        ord: a number p, for the p-th root of the sum of the p-th powers of the sizes;
            inf and -inf for the largest and the least size, 0 for how many elements are
            not zero.

    Returns:
        a real array of the other dimensions, in the real dtype of `x`, integers as
        floats.

    Raises:
        ValueError: `ord` is a name or None.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[3, -4], [0, 12]])
    >>> vnp.linalg.vector_norm(x), vnp.linalg.vector_norm(x, axis=1, ord=vnp.inf)
    (Array(13., dtype=float32), Array([ 4., 12.], dtype=float32))
    """
    a = inexact_array("vector_norm", x)
    if axis is None:
        out = vector_norm_of(ravel(a), (0,), ord, False)
        return reshape(out, (1,) * a.ndim) if keepdims else out
    return vector_norm_of(a, canonical_axes("vector_norm", axis, a.ndim), ord, keepdims)


def vector_norm_of(
    x: Array, axes: tuple[int, ...], ord: Order, keepdims: bool
) -> Array:
    if isinstance(ord, str) or ord is None:
        raise ValueError(f"Invalid order {ord!r} for vector norm. It must be a number")
    if ord == 2:
        return euclidean(x, axes, keepdims)
    sizes = magnitude(x)
    if ord == np.inf:
        return greatest(sizes, axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return least(sizes, axes, keepdims=keepdims)
    if ord == 0:
        return total(convert(ne(x, 0.0), sizes.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return total(sizes, axes, keepdims=keepdims)
    return power(total(power(sizes, float(ord)), axes, keepdims=keepdims), 1.0 / ord)


@remembered
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro"
) -> Array:
    """The norm of the matrices in the last two dimensions.

    Args:
        x: matrices of shape (..., m, n).
        keepdims: whether the last two dimensions stay, with size 1.
        ord: "fro" (root of the sum of squares), "nuc" (sum of singular values), 1 and
            inf (largest sum of sizes in a column, in a row), 2 (largest singular
            value), or the negative of these numbers for the least.

    Returns:
        a real array of shape (...), in the real dtype of `x`, integers as floats.

    Raises:
        ValueError: there is no such norm, or there are fewer dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, -2], [2, 4]])
    >>> vnp.linalg.matrix_norm(x), vnp.linalg.matrix_norm(x, ord=1)
    (Array(5., dtype=float32), Array(6., dtype=float32))
    """
    a = inexact_array("matrix_norm", x)
    if a.ndim < 2:
        raise ValueError(f"matrix_norm takes matrices, not {a.aval}")
    return matrix_norm_of(a, (a.ndim - 2, a.ndim - 1), ord, keepdims)


def matrix_norm_of(
    x: Array, axes: tuple[int, ...], ord: Order, keepdims: bool
) -> Array:
    rows, columns = axes
    if ord == "fro":
        return euclidean(x, axes, keepdims)
    front = moveaxis(x, (rows, columns), (-2, -1))
    out = matrix_norm_in_front(front, ord)
    return expand_dims(out, tuple(sorted(axes))) if keepdims else out


def matrix_norm_in_front(x: Array, ord: Order) -> Array:
    """The norm of the matrices in the last two dimensions, without them."""
    if ord == "nuc":
        return total(values_of(x), -1)
    if ord in (2, -2):
        return extreme(values_of(x), ord)
    if ord in (1, -1):
        return extreme(total(magnitude(x), -2), ord)
    if ord in (np.inf, -np.inf):
        return extreme(total(magnitude(x), -1), ord)
    raise ValueError(
        "the order of a matrix norm must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, "
        f"not {ord!r}"
    )


def extreme(sizes: Array, ord: Order) -> Array:
    """The largest size, 0 of none; for a negative order the least."""
    assert isinstance(ord, int | float)
    return least(sizes, -1) if ord < 0 else greatest(sizes, -1, initial=0)


@remembered
def cond(x: ArrayLike, p: Order = None) -> Array:
    """The condition number: the norm of the matrix times that of its inverse.

    Args:
        x: matrices of shape (..., m, n), square unless `p` is None, 2 or -2.
        p: an order of `matrix_norm`; None and 2 mean the ratio of the largest to the
            least singular value, -2 its inverse.

    Returns:
        a real array of shape (...), NaN only where a matrix has one; for None and 2,
        inf where a singular value is 0.

    Raises:
        ValueError: there are fewer than two dimensions, or a matrix has no element.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1.0, 2.0], [0.0, 4.0]])
    >>> vnp.linalg.cond(x, p=1), vnp.linalg.cond(vnp.diag(vnp.array([1.0, 0.0])))
    (Array(6., dtype=float32), Array(inf, dtype=float32))
    """
    a = inexact_array("cond", x)
    if a.ndim < 2:
        raise ValueError(f"cond takes matrices, not {a.aval}")
    if not all(a.shape[-2:]):
        raise ValueError(f"cond takes matrices that are not empty, not {a.aval}")
    if p in (None, 2, -2):
        s = values_of(a)
        first, last = s[..., 0], s[..., -1]
        ratio = div(last, first) if p == -2 else div(first, last)
    else:
        ratio = mul(matrix_norm(a, ord=p), matrix_norm(inv(a), ord=p))
    # The ratio of zeros, or what no decomposition was found for.
    unknown = bitwise_and(ne(ratio, ratio), bitwise_not(some(ne(a, a), (-2, -1))))
    return select(unknown, full_like(ratio, np.inf), ratio)


# -----------------------------------------------------------------------------
# Covariances and correlations.
#
# A covariance is a product of centred rows, over a count::
#
#     cov(x), cov(x, y, ddof=0), corrcoef(x, rowvar=False)


def variables(x: ArrayLike, rowvar: bool) -> Array:
    """A matrix with one row per variable.

    Raises:
        ValueError: there are more than two dimensions.
    """
    array = as_array("cov", x)
    if array.ndim > 2:
        raise ValueError(f"cov takes vectors and matrices, not {array.aval}")
    rows = atleast_2d(array)
    # A vector is one variable, however `rowvar` is.
    return rows if rowvar or array.ndim < 2 else transpose(rows)


def observation_weights(
    fweights: ArrayLike | None, aweights: ArrayLike | None, count: int
) -> tuple[Array | None, Array | None]:
    """Both weights together, and those that are not frequencies.

    Raises:
        TypeError: frequencies are not integers.
        ValueError: weights are not a vector with one element per observation.
    """
    parts: list[Array | None] = []
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            parts.append(None)
            continue
        part = as_array("cov", weights)
        if name == "fweights" and not is_integer(part.dtype):
            raise TypeError(f"cov: fweights must be integers, not {part.aval}")
        if part.shape != (count,):
            raise ValueError(
                f"cov: {name} has shape {part.shape}, but there are {count} "
                "observations; pass a vector with one weight for each"
            )
        parts.append(part)
    frequencies, others = parts
    if frequencies is None or others is None:
        return (others if frequencies is None else frequencies), others
    return multiply(frequencies, others), others


@remembered
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of the variables in the rows of `m`, and of `y` after them.

    Args:
        m: a matrix whose rows are variables and whose columns are observations, or a
            vector, which is one variable.
        y: more variables with as many observations, as `m` has them; None for none.
        rowvar: whether rows are variables; else columns are.
        bias: whether the sums are divided by the full count if `ddof` is None.
        ddof: what is taken from the count that the sums are divided by; by default 1,
            or 0 with `bias`.
        fweights: how often each observation counts: a vector of integers.
        aweights: how much each observation weighs: a vector.
        dtype: the dtype of the result, floating or complex; by default that of `m` and
            `y` together, integers as floats.

    Returns:
        a square matrix with a row for each variable; without dimensions for a single
        one.

    Raises:
        ValueError: more than two dimensions, weights of another size, or a dtype of
            integers.
        TypeError: `fweights` are not integers.

    >>> import verax.numpy as vnp
    >>> vnp.cov(vnp.array([[1, 2, 3], [6, 4, 2]]))
    Array([[ 1., -2.],
           [-2.,  4.]], dtype=float32)
    >>> vnp.cov(vnp.array([1, 2, 4]), fweights=vnp.array([1, 1, 2]))
    Array(2.25, dtype=float32)
    """
    asked = inexact_of("cov", dtype)
    operands = promote_inexact("cov", m, *([] if y is None else [y]))
    if asked is not None:
        operands = [convert(x, asked) for x in operands]
    rows = [variables(x, rowvar) for x in operands]
    x = rows[0] if len(rows) == 1 else concatenate(rows, 0)
    less = (0 if bias else 1) if ddof is None else ddof
    weights, others = observation_weights(fweights, aweights, x.shape[1])
    if others is not None and asked is None:
        x = convert(x, promote_inexact("cov", x, others)[0].dtype)
    center, total = average(x, 1, weights, returned=True)
    center, divisor = convert(center, x.dtype), max(x.shape[1] - less, 0)
    centred = x - expand_dims(center, 1)
    weighted = centred
    if weights is not None:
        weighted = multiply(centred, expand_dims(convert(weights, x.dtype), 0))
        divisor = freedom(total[0], weights, others, less)
    other = transpose(weighted)
    product = matmul(centred, conj(other) if is_complex(x.dtype) else other)
    return squeeze(convert(true_divide(product, divisor), x.dtype))


def inexact_of(name: str, dtype: DTypeLike | None) -> DType | None:
    """The dtype that is asked for.

    Raises:
        ValueError: it holds integers or booleans.
    """
    out = chosen_dtype(name, dtype)
    if out is not None and not is_inexact(out):
        raise ValueError(
            f"{name}: dtype must be a subclass of float or complex, not {out}"
        )
    return out


def freedom(total: Array, weights: Array, others: Array | None, less: int) -> Any:
    """The sum of the weights, less that of `less` typical ones."""
    if not less:
        return total
    if others is None:
        return total - less
    return total - true_divide(multiply(sum(multiply(weights, others)), less), total)


@remembered
def corrcoef(
    x: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of `cov`, divided by the standard deviations.

    Real and imaginary parts are between -1 and 1; NaN where a variable is constant.

    Args:
        x: a matrix whose rows are variables and whose columns are observations, or a
            vector, which is one variable.
        y: more variables with as many observations, as `x` has them; None for none.
        rowvar: whether rows are variables; else columns are.
        dtype: the dtype of the result, floating or complex; by default that of `x` and
            `y` together, integers as floats.

    Returns:
        a square matrix with a row for each variable; without dimensions for a single
        one.

    Raises:
        ValueError: more than two dimensions, or a dtype of integers.

    >>> import verax.numpy as vnp
    >>> vnp.corrcoef(vnp.array([[1, 2, 3], [6, 4, 2], [1, 1, 1]])).round(3)
    Array([[ 1., -1., nan],
           [-1.,  1., nan],
           [nan, nan, nan]], dtype=float32)
    """
    array = cov(x, y, rowvar, dtype=inexact_of("corrcoef", dtype))
    if not array.ndim:
        return true_divide(array, array)
    variances = diagonal(array)
    deviations = sqrt(real(variances) if is_complex(array.dtype) else variances)
    if is_complex(array.dtype):
        deviations = convert(deviations, array.dtype)
    array = true_divide(array, expand_dims(deviations, 1))
    array = true_divide(array, expand_dims(deviations, 0))
    if is_complex(array.dtype):
        return complex(clip(real(array), -1, 1), clip(imag(array), -1, 1))
    return clip(array, -1, 1)
