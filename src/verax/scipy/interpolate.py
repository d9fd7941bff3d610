"""Floor 6: `verax.scipy.interpolate`: functions between the points of a grid.

One idea: the cell of a point is found by bisection along each dimension; its corners
are weighted by how near they are::

    f = RegularGridInterpolator((x, y), values)
    f(points)
"""

import itertools
from collections.abc import Sequence
from typing import Self

import numpy as np

from verax import numpy as vnp
from verax.api.trees.pytrees import register_pytree_node_class
from verax.ir.dtypes import is_complex
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, as_array, inexact_array
from verax.rules.values.array import Array

type Points = ArrayLike | Sequence[ArrayLike]
type Parts = tuple[tuple[Array, ...], Array, Array | None]

__all__ = ["RegularGridInterpolator"]

METHODS = ("linear", "nearest")


def check_method(method: str) -> str:
    """Raise ValueError unless there is such a method."""
    if method not in METHODS:
        raise ValueError(
            f"RegularGridInterpolator: method must be one of {METHODS}, not {method!r}"
        )
    return method


@register_pytree_node_class
class RegularGridInterpolator:
    """A function from its values on a rectangular grid; a pytree.

    Args:
        points: n increasing vectors, the grid along each dimension.
        values: an array whose first n dimensions are those of the grid.
        method: "linear" or "nearest".
        bounds_error: left out, since compiled code raises no errors.
        fill_value: the value outside the grid; None extrapolates.

    Raises:
        ValueError: the shapes do not fit, there is no such method, or a
            `bounds_error` or a complex `fill_value` of real values is requested.

    >>> f = RegularGridInterpolator((vnp.arange(3.0),), vnp.array([0.0, 10.0, 40.0]))
    >>> f(vnp.array([0.5, 1.5, 9.0])).tolist()
    [5.0, 25.0, nan]
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ) -> None:
        name = "RegularGridInterpolator"
        self.method = check_method(method)
        if bounds_error:
            raise ValueError(
                f"{name}: bounds_error is not available, since compiled code cannot "
                "raise; use fill_value and look for it in the result"
            )
        self.bounds_error = False
        self.values = inexact_array(name, values)
        self.grid = tuple([as_array(name, x) for x in points])
        sizes = tuple([x.size for x in self.grid])
        flat = all(x.ndim == 1 and x.size > 1 for x in self.grid)
        if not flat or sizes != self.values.shape[: len(sizes)]:
            raise ValueError(
                f"{name} takes vectors of at least two points for the first dimensions "
                f"of the values, not {sizes} for {self.values.aval}"
            )
        self.fill_value = None if fill_value is None else as_array(name, fill_value)
        filler = self.values if self.fill_value is None else self.fill_value
        if is_complex(filler.dtype) and not is_complex(self.values.dtype):
            raise ValueError(f"{name}: fill_value must be real, since the values are")

    def tree_flatten(self) -> tuple[Parts, str]:
        """Arrays, and the method."""
        return (self.grid, self.values, self.fill_value), self.method

    @classmethod
    def tree_unflatten(cls, method: str, parts: Parts) -> Self:
        """An interpolator of given arrays."""
        out = cls.__new__(cls)
        out.grid, out.values, out.fill_value = parts
        out.method, out.bounds_error = method, False
        return out

    def __call__(self, xi: Points, method: str | None = None) -> Array:
        """The values at points: of shape (..., n), or n arrays of coordinates.

        Raises:
            ValueError: the points have other than n coordinates.
        """
        chosen = self.method if method is None else check_method(method)
        x = coordinates(xi, len(self.grid))
        cells, parts = [], []
        outside: Array | None = None
        for i, line in enumerate(self.grid):
            at = x[..., i]
            cell = vnp.clip(vnp.searchsorted(line, at) - 1, 0, line.size - 2)
            cells.append(cell)
            parts.append((at - line[cell]) / (line[cell + 1] - line[cell]))
            beyond = (at < line[0]) | (at > line[-1])
            outside = beyond if outside is None else outside | beyond
        out = (self.linear if chosen == "linear" else self.nearest)(cells, parts)
        if self.fill_value is None or outside is None:
            return out
        return where(self.widened(outside), self.fill_value, out).astype(out.dtype)

    def widened(self, x: Array) -> Array:
        """An array for each point, beside the further dimensions of the values."""
        further = self.values.ndim - len(self.grid)
        return vnp.reshape(x, (*x.shape, *[1] * further))

    def linear(self, cells: list[Array], parts: list[Array]) -> Array:
        """The corners of each cell, weighted."""
        total: Array | float = 0.0
        for corner in itertools.product((0, 1), repeat=len(cells)):
            at = tuple(cell + up for cell, up in zip(cells, corner, strict=True))
            value = self.values[at]
            for part, up in zip(parts, corner, strict=True):
                weight = (part if up else 1 - part).astype(self.values.dtype)
                value = value * self.widened(weight)
            total = value + total
        assert isinstance(total, Array)
        return total

    def nearest(self, cells: list[Array], parts: list[Array]) -> Array:
        """The nearest corner of each cell."""
        pairs = zip(cells, parts, strict=True)
        return self.values[tuple(where(p <= 0.5, c, c + 1) for c, p in pairs)]


def coordinates(xi: Points, count: int) -> Array:
    """Points of shape (..., count).

    Raises:
        ValueError: they have another number of coordinates.
    """
    name = "RegularGridInterpolator"
    if isinstance(xi, Sequence):
        parts = vnp.broadcast_arrays(*[as_array(name, x) for x in xi])
        x = vnp.stack(parts, axis=-1)
    else:
        x = as_array(name, xi)
        if x.ndim < 2:
            x = vnp.reshape(x, (-1, count))
    if x.shape[-1] != count:
        raise ValueError(f"{name} takes points of {count} coordinates, not {x.aval}")
    return inexact_array(name, x)
