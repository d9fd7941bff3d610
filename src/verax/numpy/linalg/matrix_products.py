"""Floor 6: products made of others, and the diagonals of matrices.

One idea: what is a product of every element with every other is a broadcast, and a
chain of matrices is multiplied in the order that costs least::

    outer(x, y), cross(x, y), kron(a, b), multi_dot([a, b, c])
"""

from collections.abc import Sequence

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import DTypeLike
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    stretched_together,
    with_weak_type,
)
from verax.numpy.elementwise.arithmetic import multiply, subtract
from verax.numpy.linalg.products import Precision, matmul
from verax.numpy.shaping import rearranging
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import expand_dims, moveaxis, ravel, reshape
from verax.rules.values.array import Array


@remembered
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` with one of `b`, as a matrix."""
    return multiply(expand_dims(ravel(a), 1), expand_dims(ravel(b), 0))


@remembered
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The vector product of vectors of 2 or 3 components along an axis.

    Raises:
        ValueError: there are other numbers of components.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x = moveaxis(as_array("cross", a), axisa, -1)
    y = moveaxis(as_array("cross", b, 1), axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(
            f"cross takes vectors of 2 or 3 components, not {x.shape[-1]} and "
            f"{y.shape[-1]}"
        )
    if x.shape[-1] == 2 and y.shape[-1] == 2:
        x, y = stretched_together("cross", (x, y))
        found = subtract(x[..., 0] * y[..., 1], x[..., 1] * y[..., 0])
        return with_weak_type(found, False)
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


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Precision = None) -> Array:
    """The product of two or more matrices, in the cheapest order.

    The first and the last may be vectors.

    Raises:
        ValueError: there are fewer than two.
    """
    parts = [as_array("multi_dot", a, i) for i, a in enumerate(arrays)]
    if len(parts) < 2:
        raise ValueError(f"multi_dot takes at least two arrays, not {len(parts)}")
    sizes = [
        *([parts[0].shape[0]] if parts[0].ndim == 2 else [1]),
        *(part.shape[0] for part in parts[1:]),
        *([parts[-1].shape[1]] if parts[-1].ndim == 2 else [1]),
    ]
    cuts = best_order(tuple(sizes))

    def product(i: int, j: int) -> Array:
        if i == j:
            return parts[i]
        cut = cuts[i, j]
        return matmul(product(i, cut), product(cut + 1, j), precision=precision)

    return product(0, len(parts) - 1)


def best_order(sizes: Shape) -> dict[tuple[int, int], int]:
    """Where to cut each run of matrices, by the number of multiplications."""
    n = len(sizes) - 1
    costs: dict[tuple[int, int], int] = {(i, i): 0 for i in range(n)}
    cuts: dict[tuple[int, int], int] = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            ends = sizes[i] * sizes[j + 1]
            best = min(
                (costs[i, k] + costs[k + 1, j] + ends * sizes[k + 1], k)
                for k in range(i, j)
            )
            costs[i, j], cuts[i, j] = best
    return cuts


# -----------------------------------------------------------------------------
# The diagonals of matrices in the last two dimensions.
#
# `linalg` has stacks of matrices, so its diagonals are those of the last two
# dimensions, where `numpy.diagonal` and `numpy.trace` take the first two by default::
#
#     linalg.diagonal(x, offset=1)    # of shape (..., n)
#     linalg.trace(x)                 # of shape (...)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two dimensions, `offset` to the right.

    Raises:
        ValueError: there are fewer than two dimensions.
    """
    return rearranging.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of the matrices in the last two dimensions.

    Raises:
        ValueError: there are fewer than two dimensions.
    """
    return rearranging.trace(x, offset, -2, -1, dtype)
