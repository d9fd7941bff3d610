"""Floor 6: norms of vectors and matrices, and condition numbers.

One idea: a norm of vectors is a reduction, one of matrices a reduction of the other, or
of singular values::

    norm(x), norm(a, "nuc"), vector_norm(x, axis=0, ord=1), cond(a)
"""

import numpy as np

from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    canonical_axes,
    inexact_array,
)
from verax.numpy.linalg.decompositions import values_of
from verax.numpy.linalg.solving import inv
from verax.numpy.reducing.reductions import max as greatest, min as least, sum as total
from verax.numpy.shaping.shapes import expand_dims, moveaxis, ravel, reshape
from verax.ops.elementwise.arith import abs as magnitude, div, mul
from verax.ops.elementwise.compare import ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import pow as power, sqrt
from verax.ops.linalg.algebra import conjugate, real_part
from verax.rules.values.array import Array

type Order = int | float | str | None


@remembered
def norm(
    x: ArrayLike, ord: Order = None, axis: Axis = None, keepdims: bool = False
) -> Array:
    """The norm of a vector, a matrix, or of the whole array without `ord` and `axis`.

    One dimension in `axis` means vectors, two mean matrices. `ord` is as for
    `vector_norm` and `matrix_norm`; None is the root of the sum of squares.

    Raises:
        ValueError: there is no such norm, or `axis` has more than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.norm(vnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    a = inexact_array("norm", x)
    if axis is None and ord is None:
        found = euclidean(ravel(a), (0,), False)
        return reshape(found, (1,) * a.ndim) if keepdims else found
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

    `ord` is a number (inf and -inf: the largest and the least size; 0: how many are not
    zero).

    Raises:
        ValueError: `ord` is a name.
    """
    a = inexact_array("vector_norm", x)
    if axis is None:
        found = vector_norm_of(ravel(a), (0,), ord, False)
        return reshape(found, (1,) * a.ndim) if keepdims else found
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

    `ord` is "fro" (root of the sum of squares), "nuc" (sum of singular values), 1 and
    inf (largest sum of a column, of a row), 2 (largest singular value), or the negative
    of these numbers for the least.

    Raises:
        ValueError: there is no such norm, or there are fewer dimensions.
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
    found = matrix_norm_in_front(front, ord)
    return expand_dims(found, tuple(sorted(axes))) if keepdims else found


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

    `p` is an order of `matrix_norm`; None and 2 mean the ratio of the largest to the
    least singular value.

    Raises:
        ValueError: there are fewer than two dimensions.
    """
    a = inexact_array("cond", x)
    if a.ndim < 2:
        raise ValueError(f"cond takes matrices, not {a.aval}")
    if p in (None, 2, -2):
        s = values_of(a)
        first, last = s[..., 0], s[..., -1]
        return div(last, first) if p == -2 else div(first, last)
    return mul(matrix_norm(a, ord=p), matrix_norm(inv(a), ord=p))
