"""Floor 6: diagonals and traces.

One idea: the diagonal of a plane is what is found at the indices (i, i) of it::

    diagonal(x), trace(x, offset=1)
"""

from functools import partial
from operator import index

import numpy as np

from verax.backend.eager.composites import OneGo, in_numpy, remembered
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DTypeLike, ExtendedDType
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    chosen_dtype,
    no_out,
)
from verax.numpy.shaping.shapes import transpose
from verax.ops.indexing.gather import diagonal_of
from verax.rules.values.array import Array
from verax.rules.values.sizes import AxisError, kept


def diagonal_at_once(
    a: object, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> OneGo | None:
    """NumPy has a view for it."""
    if type(a) is not ShapedArray or isinstance(a.dtype, ExtendedDType):
        return None
    return partial(np.diagonal, offset=offset, axis1=axis1, axis2=axis2)


@in_numpy(diagonal_at_once)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of a plane, as last dimension.

    Args:
        a: an array with at least two dimensions.
        offset: how far right of the main diagonal, 0, it lies; negative below it.
        axis1, axis2: the dimensions of the plane, of rows and columns; by default the
            first two.

    Returns:
        An array in the dtype of `a` without the two dimensions, and with the diagonal
        at the end; of size 0 if `offset` lies outside.

    Raises:
        ValueError: the axes are equal or do not exist.

    >>> import verax.numpy as vnp
    >>> vnp.diagonal(vnp.arange(12).reshape(3, 4), offset=1)
    Array([ 1,  6, 11], dtype=int32)
    >>> vnp.diagonal(vnp.arange(8).reshape(2, 2, 2))
    Array([[0, 6],
           [1, 7]], dtype=int32)
    """
    x = as_array("diagonal", a)
    first, second = (canonical_axis("diagonal", i, x.ndim) for i in (axis1, axis2))
    if first == second:
        raise AxisError(
            f"diagonal: axis1 and axis2 can not be same, but both are {first}"
        )
    x = transpose(x, (*kept(x.ndim, (first, second)), first, second))
    k = index(offset)
    part = x[..., max(-k, 0) :, max(k, 0) :]
    return diagonal_of(part, x.ndim - 2, x.ndim - 1)


@remembered
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal.

    Args:
        a: an array with at least two dimensions.
        offset: how far right of the main diagonal, 0, it lies; negative below it.
        axis1, axis2: the dimensions of the plane, of rows and columns; by default the
            first two.
        dtype: the dtype of the result; by default that of `a`, or the default integer
            for booleans and smaller integers, unsigned if these are.
        out: only None, since arrays are immutable.

    Returns:
        An array of the shape of `a` without the two dimensions.

    Raises:
        ValueError: the axes are equal or do not exist.
        NotImplementedError: `out` is given.

    >>> import verax.numpy as vnp
    >>> x = vnp.arange(9).reshape(3, 3)
    >>> vnp.trace(x), vnp.trace(x, offset=-1, dtype="float32")
    (Array(12, dtype=int32), Array(10., dtype=float32))
    """
    no_out("trace", out)
    expected = chosen_dtype("trace", dtype)
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=expected)
