"""Floor 6: products of every element with every other, or of components in pairs.

One idea: nothing is summed over a dimension, so these are broadcasts and elementwise
products::

    outer(x, y), cross(x, y), kron(a, b)
"""

import warnings

from verax.api.config.tracebacks import in_words
from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    no_out,
    operand_aval,
    stretched_together,
    with_weak_type,
)
from verax.numpy.elementwise.arithmetic import multiply, subtract
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import (
    expand_dims,
    moveaxis,
    ravel,
    reshape,
)
from verax.rules.values.array import Array


@remembered
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` with one of `b`, as a matrix.

    Args:
        a: an array or scalar, whose elements are taken row by row.
        b: an array or scalar, whose elements are taken row by row.
        out: only None, since arrays are immutable.

    Returns:
        an array of shape (`a.size`, `b.size`) in the common dtype of both.

    Raises:
        NotImplementedError: `out` is given.

    >>> import verax.numpy as vnp
    >>> vnp.outer(vnp.array([1, 2]), vnp.array([[1, 2], [3, 4]]))
    Array([[1, 2, 3, 4],
           [2, 4, 6, 8]], dtype=int32)
    """
    no_out("outer", out)
    x, y = ravel(as_array("outer", a)), ravel(as_array("outer", b, 1))
    return multiply(expand_dims(x, 1), expand_dims(y, 0))


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The vector product of vectors of 2 or 3 components along an axis.

    Vectors of 2 components have 0 as third one; that they are taken is deprecated.

    Args:
        a: an array with 2 or 3 elements along `axisa`.
        b: an array with 2 or 3 elements along `axisb`; the other dimensions broadcast.
        axisa: the dimension of the vectors in `a`, by default the last.
        axisb: the dimension of the vectors in `b`, by default the last.
        axisc: the dimension of the vectors in the result, by default the last.
        axis: the dimension of the vectors in all three, instead of the other arguments.

    Returns:
        an array in the common dtype of both, with 3 elements along `axisc`; for two
        arrays of vectors of 2 components their third components alone, without that
        dimension.

    Raises:
        ValueError: there are other numbers of components.

    Warns:
        DeprecationWarning: there are 2 components.

    >>> import verax.numpy as vnp
    >>> vnp.cross(vnp.array([1, 0, 0]), vnp.array([[0, 1, 0], [0, 0, 1]]))
    Array([[ 0,  0,  1],
           [ 0, -1,  0]], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    shapes = operand_aval("cross", 0, a).shape, operand_aval("cross", 1, b).shape
    places = zip(shapes, (axisa, axisb), strict=True)
    if any([s[canonical_axis("cross", i, len(s))] == 2 for s, i in places]):
        warnings.warn(
            in_words(
                "Support for 2-dimensional vectors in verax.numpy.cross is deprecated, "
                "as in NumPy; pass vectors of 3 components, or compute "
                "x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]"
            ),
            DeprecationWarning,
            stacklevel=2,
        )
    return vector_product(a, b, axisa, axisb, axisc)


@remembered
def vector_product(
    a: ArrayLike, b: ArrayLike, axisa: int, axisb: int, axisc: int
) -> Array:
    """`cross` along these axes."""
    x = moveaxis(as_array("cross", a), axisa, -1)
    y = moveaxis(as_array("cross", b, 1), axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(
            f"cross takes vectors of 2 or 3 components, not {x.shape[-1]} and "
            f"{y.shape[-1]}"
        )
    if x.shape[-1] == 2 and y.shape[-1] == 2:
        x, y = stretched_together("cross", (x, y))
        array = subtract(x[..., 0] * y[..., 1], x[..., 1] * y[..., 0])
        return with_weak_type(array, False)
    x, y = stretched_together("cross", (three_components(x), three_components(y)))
    first = rotated(x, 1) * rotated(y, 2)
    second = rotated(x, 2) * rotated(y, 1)
    return moveaxis(with_weak_type(subtract(first, second), False), -1, axisc)


def rotated(x: Array, start: int) -> Array:
    """Three components, beginning with number `start`."""
    return concatenate((x[..., start:], x[..., :start]), -1)


def three_components(x: Array) -> Array:
    """Vectors of two components with a third, zero."""
    if x.shape[-1] == 3:
        return x
    return concatenate((x, x[..., :1] * 0), -1)


@remembered
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The blocks `a[i, j] * b`, put together.

    Args:
        a: an array or scalar.
        b: an array or scalar; with fewer dimensions than the other, either gets ones in
            front.

    Returns:
        an array in the common dtype of both, whose sizes are the products of theirs.

    >>> import verax.numpy as vnp
    >>> vnp.kron(vnp.array([1, 10]), vnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    x, y = as_array("kron", a), as_array("kron", b, 1)
    rank = max(x.ndim, y.ndim)
    left = (1,) * (rank - x.ndim) + x.shape
    right = (1,) * (rank - y.ndim) + y.shape
    x = reshape(x, [n for size in left for n in (size, 1)])
    y = reshape(y, [n for size in right for n in (1, size)])
    return reshape(x * y, [m * n for m, n in zip(left, right, strict=True)])
