"""Floor 6: indices made for other arrays.

One idea: an index is an ordinary value, which these functions build::

    x[ix_(rows, columns)], x[tril_indices_from(x)], x[s_[1:, ::2]]
"""

from typing import Any

import numpy as np

from verax.ir.dtypes import is_bool
from verax.numpy.arguments.arguments import ArrayLike, as_array, operand_aval
from verax.numpy.ranges.grids import diag_indices, tril_indices, triu_indices
from verax.numpy.shaping.shapes import reshape
from verax.rules.values.array import Array


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors of indices, each along a dimension of its own: all their combinations.

    Raises:
        ValueError: an argument is no vector.
        TypeError: an argument is boolean.
    """
    found = []
    for i, arg in enumerate(args):
        x = as_array("ix_", arg, i)
        if x.ndim != 1:
            raise ValueError(f"ix_ takes vectors, but argument {i} is {x.aval}")
        if is_bool(x.dtype):
            raise TypeError(f"ix_: argument {i} is boolean; pass its nonzero(mask)[0]")
        if not x.size:
            x = x.astype(np.int32)
        found.append(reshape(x, [-1 if j == i else 1 for j in range(len(args))]))
    return tuple(found)


def square_size(name: str, arr: ArrayLike) -> tuple[int, ...]:
    """The shape of an array with two dimensions.

    Raises:
        ValueError: it has others.
    """
    shape = operand_aval(name, 0, arr).shape
    if len(shape) != 2:
        raise ValueError(f"{name} takes a matrix, not an array of shape {shape}")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix."""
    rows, columns = square_size("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix."""
    rows, columns = square_size("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the diagonal of all dimensions, which have one size.

    Raises:
        ValueError: sizes differ, or there are fewer than two dimensions.
    """
    shape = operand_aval("diag_indices_from", 0, arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ValueError(
            f"diag_indices_from takes two or more equal sizes, not {shape}"
        )
    return diag_indices(shape[0], len(shape))


class IndexExpression:
    """Gives back what stands in its brackets, as a tuple if asked to."""

    def __init__(self, as_tuple: bool) -> None:
        self.as_tuple = as_tuple

    def __getitem__(self, item: Any) -> Any:
        return (item,) if self.as_tuple and not isinstance(item, tuple) else item


index_exp = IndexExpression(as_tuple=True)
s_ = IndexExpression(as_tuple=False)
