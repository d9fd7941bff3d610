"""Floor 6: the diagonals of matrices in the last two dimensions.

`linalg` has stacks of matrices, so its diagonals are those of the last two dimensions,
where `numpy.diagonal` and `numpy.trace` take the first two by default::

    linalg.diagonal(x, offset=1)    # of shape (..., n)
    linalg.trace(x)                 # of shape (...)
"""

from verax.ir.dtypes import DTypeLike
from verax.numpy.arguments.arguments import ArrayLike
from verax.numpy.shaping import rearranging
from verax.rules.values.array import Array


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
