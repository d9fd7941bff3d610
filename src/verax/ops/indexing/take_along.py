"""Floor 2: picking elements along one dimension by an array of places.

One idea: every other dimension is a batch dimension of one gather, so nothing is spread
out and the adjoint is one scatter-add::

    take_along(x, places, 1)    # z[i, j] = x[i, places[i, j]]
"""

from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers
from verax.ops.structure.shape import expand_dims
from verax.rules.values.array import Array
from verax.rules.values.sizes import kept


def take_along(x: Array, places: Array, axis: int) -> Array:
    """The elements of `x` at `places` along `axis`; all places are in bounds.

    `places` has the shape of `x` except for the size of dimension `axis`.
    """
    others = kept(x.ndim, (axis,))
    dims = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    starts = expand_dims(places, (x.ndim,))
    return gather(x, starts, dims, (1,) * x.ndim)


def take_rows(x: Array, places: Array) -> Array:
    """The rows of a matrix at a vector of `places`, which are in bounds."""
    dims = GatherDimensionNumbers((1,), (0,), (0,))
    return gather(x, expand_dims(places, (1,)), dims, (1, x.shape[1]))
