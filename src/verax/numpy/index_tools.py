"""Floor 6: indices made for other arrays, and arrays written between brackets.

One idea: an index is an ordinary value, which these functions build; a slice between
brackets is a range, and what stands side by side is joined::

    x[ix_(rows, columns)], x[tril_indices_from(x)], x[s_[1:, ::2]]
    r_[0:4, 10, x], c_[x, y], mask_indices(3, tril)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from verax.ir.avals import SymbolicSize, larger_size, smaller_size
from verax.ir.dtypes import is_bool
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    default_integer,
    operand_aval,
)
from verax.numpy.creation.creation import asarray
from verax.numpy.creation.filling import ones
from verax.numpy.grids import axis_of, diag_indices
from verax.numpy.matrices import tril, triu
from verax.numpy.ranges import arange
from verax.numpy.searching.where_nonzero import nonzero
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.shapes import reshape, swapaxes, transpose
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_sizes


class Joiner:
    """`r_` and `c_`: what stands between brackets is joined along a dimension.

    `axis` is that dimension, `rank` the least number of dimensions, and `start` the
    place of an operand's own dimensions among them. A first entry "axis,rank,start"
    says all three; "r" and "c" make a row or a column.
    """

    def __init__(self, name: str, axis: int, rank: int, start: int) -> None:
        self.name = name
        self.axis = axis
        self.rank = rank
        self.start = start

    def __getitem__(self, key: object) -> Array:
        items: list[object] = list(key) if isinstance(key, tuple) else [key]
        settings, matrix = (self.axis, self.rank, self.start), ""
        first = items[0] if items else None
        if isinstance(first, str):
            directive, items = first.strip(), items[1:]
            if directive in ("r", "c"):
                matrix = directive
            else:
                settings = self.directed(directive)
        if any(isinstance(item, str) for item in items):
            raise ValueError(f"{self.name}: a directive must be the first entry")
        axis, rank, start = settings
        joined = concatenate(
            [piece(item, rank, start, self.name) for item in items], axis
        )
        if matrix and joined.ndim == 1:
            joined = reshape(joined, (1, -1) if matrix == "r" else (-1, 1))
        return joined

    def directed(self, directive: str) -> tuple[int, int, int]:
        """The axis, rank and start that a directive says, the rest by default."""
        try:
            numbers = [int(part) for part in directive.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(
                f"{self.name}: could not understand directive {directive!r}; write "
                "'axis', 'axis,rank', 'axis,rank,start', 'r' or 'c'"
            )
        settings = (self.axis, self.rank, self.start)
        axis, rank, start = (*numbers, *settings[len(numbers) :])
        return axis, rank, start


def piece(item: object, rank: int, start: int, name: str) -> Array:
    """One entry as an array of at least `rank` dimensions."""
    if isinstance(item, slice):
        out = arange(item.start) if item.stop is None else axis_of(item, name)
        own = out.ndim
        if own < rank:
            out = reshape(out, (1,) * (rank - own) + out.shape)
            out = out if start == -1 else swapaxes(out, -1, start)
        return out
    out = asarray(item)
    own = out.ndim
    if own >= rank:
        return out
    out = reshape(out, (1,) * (rank - own) + out.shape)
    if start == -1 or not own:
        return out
    added = rank - own
    place = start + added + 1 if start < 0 else start
    order = list(range(rank))
    return transpose(out, order[:place] + order[added:] + order[place:added])


r_ = Joiner("r_", 0, 1, -1)
c_ = Joiner("c_", -1, 2, 0)


def mask_indices(
    n: int,
    mask_func: Callable[..., ArrayLike],
    k: int = 0,
    *,
    size: int | None = None,
) -> tuple[Array, Array]:
    """Rows and columns of the elements that `mask_func` leaves of an n x n matrix.

    Args:
        n: the number of rows and of columns.
        mask_func: a function like `triu` and `tril`, called with a matrix of ones and
            `k`; where its result is not 0, there is an element.
        k: passed to `mask_func`, for which it usually is a diagonal; 0 by default.
        size: how many indices are returned, cut off or filled up with 0; None for all.
            A traced mask needs it.

    Returns:
        Two vectors of the default integer, the rows and the columns.

    >>> import verax.numpy as vnp
    >>> rows, columns = vnp.mask_indices(3, vnp.triu, 1)
    >>> rows.tolist(), columns.tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    mask = as_array("mask_indices", mask_func(ones((n, n)), k))
    rows, columns = nonzero(mask, size=size)
    return rows, columns


def iterable(y: object) -> bool:
    """Whether `y` can be iterated over; arrays of zero dimensions cannot.

    Args:
        y: any object.

    Returns:
        A bool.

    >>> import verax.numpy as vnp
    >>> vnp.iterable(vnp.array([3.0])), vnp.iterable(vnp.array(3.0))
    (True, False)
    """
    try:
        iter(y)  # type: ignore[call-overload]  # it is asked whether this works
    except TypeError:
        return False
    return True


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors of indices, each along a dimension of its own: all their combinations.

    Unlike in NumPy, masks are refused, since the number of their indices depends on
    values.

    Args:
        *args: vectors of integers, one for each dimension to index.

    Returns:
        A tuple of as many arrays as arguments; array i has the size of vector i in
        dimension i and 1 in the others.

    Raises:
        ValueError: an argument is not a vector.
        TypeError: an argument is boolean.

    >>> import verax.numpy as vnp
    >>> x = vnp.arange(9).reshape(3, 3)
    >>> x[vnp.ix_(vnp.array([0, 2]), vnp.array([1, 0]))]
    Array([[1, 0],
           [7, 6]], dtype=int32)
    """
    out = []
    for i, arg in enumerate(args):
        x = as_array("ix_", arg, i)
        if x.ndim != 1:
            raise ValueError(f"ix_ takes vectors, but argument {i} is {x.aval}")
        if is_bool(x.dtype):
            raise TypeError(
                f"ix_: argument {i} is boolean; pass nonzero(mask)[0] instead"
            )
        if not x.size:
            x = x.astype(np.int32)
        out.append(reshape(x, [-1 if j == i else 1 for j in range(len(args))]))
    return tuple(out)


def square_size(name: str, arr: ArrayLike) -> tuple[int, ...]:
    """The shape of an array with two dimensions.

    Raises:
        ValueError: it has others.
    """
    shape = operand_aval(name, 0, arr).shape
    if len(shape) != 2:
        raise ValueError(f"{name} takes a matrix, not an array of shape {shape}")
    return shape


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements on and below diagonal `k` of an n x m matrix.

    Args:
        n: the number of rows.
        k: the diagonal, 0 for the main one, positive right of it.
        m: the number of columns; by default `n`.

    Returns:
        Two vectors of the default integer, the rows and the columns, row by row.

    Raises:
        TypeError: a size is not an integer; or negative, which is a ValueError too.

    >>> import verax.numpy as vnp
    >>> rows, columns = vnp.tril_indices(2, k=1, m=3)
    >>> rows.tolist(), columns.tolist()
    ([0, 0, 1, 1, 1], [0, 1, 0, 1, 2])
    """
    sizes = matrix_sizes("tril_indices", n, k, m)
    if any([isinstance(size, SymbolicSize) for size in sizes]):
        return symbolic_triangle(tril, below_diagonal(*sizes), *sizes)
    rows, columns = np.tril_indices(*sizes)
    return positions(rows), positions(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the elements on and above diagonal `k` of an n x m matrix.

    Args:
        n: the number of rows.
        k: the diagonal, 0 for the main one, positive right of it.
        m: the number of columns; by default `n`.

    Returns:
        Two vectors of the default integer, the rows and the columns, row by row.

    Raises:
        TypeError: a size is not an integer; or negative, which is a ValueError too.

    >>> import verax.numpy as vnp
    >>> rows, columns = vnp.triu_indices(3, k=1)
    >>> rows.tolist(), columns.tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    sizes = matrix_sizes("triu_indices", n, k, m)
    if any([isinstance(size, SymbolicSize) for size in sizes]):
        rows, diagonal, columns = sizes
        count = rows * columns - below_diagonal(rows, diagonal - 1, columns)
        return symbolic_triangle(triu, count, *sizes)
    first, second = np.triu_indices(*sizes)
    return positions(first), positions(second)


def matrix_sizes(name: str, n: int, k: int, m: int | None) -> tuple[int, int, int]:
    """Rows, diagonal and columns.

    Raises:
        TypeError: a size is not an integer; or negative, which is a ValueError too.
    """
    (rows,) = as_sizes(name, "n", n)
    return rows, k, rows if m is None else as_sizes(name, "m", m)[0]


def positions(x: np.ndarray) -> Array:
    return as_array("indices", x.astype(default_integer()))


def symbolic_triangle(
    part: Callable[[Array, int], Array], count: int, n: int, k: int, m: int
) -> tuple[Array, Array]:
    """The places of the `count` elements of a triangle, where sizes are symbolic."""
    array = part(ones((n, m), bool), k)
    rows, columns = nonzero(array, size=larger_size(count, 0))
    return rows, columns


def below_diagonal(n: int, k: int, m: int) -> int:
    """The number of elements of an n x m matrix on or below diagonal `k`.

    >>> below_diagonal(3, 0, 3), below_diagonal(3, 1, 2), below_diagonal(3, -1, 4)
    (6, 6, 3)
    """

    def up_to(last: int) -> int:
        """The sum of 0, 1, ..., `last`, each at most m."""
        part = smaller_size(larger_size(last, 0), m)
        return part * (part + 1) // 2 + larger_size(last - m, 0) * m

    return up_to(k + n) - up_to(k)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix.

    Args:
        arr: a matrix, of which only the shape matters.
        k: the diagonal up to which the triangle goes, 0 for the main one, positive
            right of it.

    Returns:
        Two vectors of the default integer, the rows and the columns, row by row.

    Raises:
        ValueError: `arr` is not a matrix.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> x[vnp.tril_indices_from(x)]
    Array([1, 3, 4], dtype=int32)
    """
    rows, columns = square_size("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix.

    Args:
        arr: a matrix, of which only the shape matters.
        k: the diagonal where the triangle begins, 0 for the main one, positive right of
            it.

    Returns:
        Two vectors of the default integer, the rows and the columns, row by row.

    Raises:
        ValueError: `arr` is not a matrix.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> x[vnp.triu_indices_from(x, k=1)]
    Array([2, 3, 6], dtype=int32)
    """
    rows, columns = square_size("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the diagonal of all dimensions, which have equal sizes.

    Args:
        arr: an array of two or more dimensions, of which only the shape matters.

    Returns:
        A tuple of equal vectors of the default integer, one for each dimension.

    Raises:
        ValueError: sizes differ, or there are fewer than two dimensions.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> x.at[vnp.diag_indices_from(x)].set(0)
    Array([[0, 2],
           [3, 0]], dtype=int32)
    """
    shape = operand_aval("diag_indices_from", 0, arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ValueError(
            "diag_indices_from takes an array of two or more dimensions of equal "
            f"size, not shape {shape}"
        )
    return diag_indices(shape[0], len(shape))


class IndexExpression:
    """Gives back what stands in its brackets, as a tuple if asked to."""

    def __init__(self, as_tuple: bool) -> None:
        self.as_tuple = as_tuple

    def __getitem__(self, item: object) -> Any:
        return (item,) if self.as_tuple and not isinstance(item, tuple) else item


index_exp = IndexExpression(as_tuple=True)
s_ = IndexExpression(as_tuple=False)
