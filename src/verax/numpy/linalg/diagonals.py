"""Floor 6: the diagonals of matrices in the last two dimensions.

One idea: `linalg` has stacks of matrices, so its diagonals are those of the last two
dimensions, where `numpy.diagonal` and `numpy.trace` take the first two by default::

    linalg.diagonal(x, offset=1)    # of shape (..., n)
    linalg.trace(x)                 # of shape (...)
"""

from verax.ir.dtypes import DTypeLike
from verax.numpy.arguments.arguments import (
    ArrayLike,
)
from verax.numpy.shaping import diagonals
from verax.rules.values.array import Array


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two dimensions, `offset` to the right.

    `verax.numpy.diagonal` takes the first two dimensions.

    Args:
        x: an array of shape (..., m, n).
        offset: the diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        an array of the shape (...) with the diagonals as last dimension, in the dtype
        of `x`.

    Raises:
        ValueError: there are fewer than two dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.arange(8).reshape(2, 2, 2)
    >>> vnp.linalg.diagonal(x), vnp.linalg.diagonal(x, offset=1)
    (Array([[0, 3],
           [4, 7]], dtype=int32), Array([[1],
           [5]], dtype=int32))
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of the matrices in the last two dimensions.

    `verax.numpy.trace` takes the first two dimensions.

    Args:
        x: an array of shape (..., m, n).
        offset: the diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype of the result; by default that of `x`, booleans and narrow
            integers as those of the default width.

    Returns:
        an array of shape (...).

    Raises:
        ValueError: there are fewer than two dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.linalg.trace(vnp.arange(8).reshape(2, 2, 2))
    Array([ 3, 11], dtype=int32)
    >>> vnp.linalg.trace(vnp.eye(300, dtype=vnp.int8))
    Array(300, dtype=int32)
    """
    return diagonals.trace(x, offset, -2, -1, dtype)
