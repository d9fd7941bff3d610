"""Floor 6: the smallest and the largest elements, some or one of each.

One idea: of the two ends of an order, either is taken without sorting the rest::

    minmax(x, axis=0), top_k(x, 3, mode="smallest")
"""

from verax.ir.dtypes import is_bool, is_complex, is_integer
from verax.numpy.arguments.arguments import ArrayLike, Axis, as_array, canonical_axis
from verax.numpy.elementwise.comparison import bitwise_not
from verax.numpy.indexing.take import take_along_axis
from verax.numpy.reducing.reductions import Where, max, min
from verax.numpy.searching.sorting import argsort
from verax.ops.sorting import sort
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array


def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: Where = None,
) -> tuple[Array, Array]:
    """The smallest and the largest element over `axis`; `initial` may be a pair.

    Raises:
        ValueError: there are no elements, or only some count, and no `initial`.
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    x = as_array("minmax", a)
    return (
        min(x, axis, out, keepdims, low, where),
        max(x, axis, out, keepdims, high, where),
    )


def top_k(
    a: ArrayLike,
    k: int,
    /,
    *,
    axis: int = -1,
    mode: str = "largest",
    sorted: bool = True,
) -> tuple[Array, Array]:
    """The `k` largest or smallest elements along `axis`, in order, and their places.

    NaN is the largest; of equal elements the first comes first. The result is sorted
    also where `sorted` does not ask for it.

    Raises:
        ValueError: there are fewer than `k`, there is no such axis, or another mode.
        TypeError: `a` is complex.
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode is 'largest' or 'smallest', not {mode!r}")
    x = as_array("top_k", a)
    place = canonical_axis("top_k", axis, x.ndim)
    if is_complex(x.dtype):
        raise TypeError(f"top_k takes numbers with an order, not {x.aval}")
    if not 0 <= k <= x.shape[place]:
        raise ValueError(f"top_k: k={k}, but there are {x.shape[place]} elements")
    if mode == "largest":
        return sort.top_k(x, k, axis=place)
    if is_bool(x.dtype) or is_integer(x.dtype):
        values, places = sort.top_k(bitwise_not(x), k, axis=place)
        return bitwise_not(values), places
    # Floats are sorted: there is no negation that keeps NaN the largest.
    places = slice_in_dim(argsort(x, axis=place), 0, k, axis=place)
    return take_along_axis(x, places, axis=place), places
