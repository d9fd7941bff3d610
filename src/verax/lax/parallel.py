"""Floor 6: collectives: what the elements of a named axis do together.

One idea: inside a function that runs over a named axis (`vmap(axis_name="i")`), each
element sees its own part, and a collective is where it meets the others::

    vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(xs)
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from verax.api.tracing.apply import as_array
from verax.backend import pytrees
from verax.ir.avals import Shape
from verax.ir.dtypes import float32, is_inexact
from verax.ops.elementwise.arith import div
from verax.ops.elementwise.convert import convert
from verax.ops.parallel.collectives import (
    CollectiveParams,
    ExchangeParams,
    GatherAxisParams,
    PermuteParams,
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    merged,
    parted,
    ppermute_p,
    psum as psum_array,
    reduce_scatter_p,
)
from verax.ops.reductions.reduce import reduce_max, reduce_min
from verax.ops.structure.shape import move_axis, reshape
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_axis
from verax.rules.values.state import STATE

type AxisName = str | Sequence[str]


def axes_of(what: str, axis_name: AxisName) -> tuple[tuple[str, ...], Shape]:
    """The names as a tuple, and the size of each axis.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: a name is not a string.
    """
    names = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    known = dict(STATE.axes)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what}: axis names must be strings, not {name!r}")
        if name not in known:
            around = ", ".join(map(repr, known)) or "none"
            raise NameError(
                f"{what}: unbound axis name {name!r}; call it within a function "
                f"mapped with axis_name={name!r}. Axes in scope: {around}"
            )
    return names, tuple([known[name] for name in names])


def no_groups(what: str, groups: object) -> None:
    if groups is not None:
        raise NotImplementedError(
            f"{what}: axis_index_groups is not available; split the axis into two by "
            "nested maps, and name one of them"
        )


def each_leaf(function: Callable[[Array], Any], x: Any) -> Any:
    """A function of arrays on every leaf of a tree."""
    leaves, tree = pytrees.flatten(x)
    return tree.unflatten([function(as_array(leaf)) for leaf in leaves])


def axis_size(axis_name: AxisName) -> int:
    """The number of elements along the axis, or along several together.

    Raises:
        NameError: there is no such axis in scope.
    """
    return prod(axes_of("axis_size", axis_name)[1])


def axis_index(axis_name: AxisName) -> Array:
    """The number of this element along the axis; of several, the first is outermost.

    Raises:
        NameError: there is no such axis in scope.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x * verax.lax.axis_index("i")
    >>> verax.vmap(f, axis_name="i")(vnp.ones(3, vnp.int32)).tolist()
    [0, 1, 2]
    """
    names, sizes = axes_of("axis_index", axis_name)
    index = axis_index_p.call(CollectiveParams(names[:1], sizes[:1]))
    for name, size in zip(names[1:], sizes[1:], strict=True):
        index = index * size + axis_index_p.call(CollectiveParams((name,), (size,)))
    return index


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: object = None) -> Any:
    """The sum over all elements of the axis, leaf by leaf; a constant times their
    number.

    Raises:
        NameError: there is no such axis in scope.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x / verax.lax.psum(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    no_groups("psum", axis_index_groups)
    names, sizes = axes_of("psum", axis_name)
    if isinstance(x, int | float | complex):
        return x * prod(sizes)
    return each_leaf(lambda leaf: psum_array(leaf, names, sizes), x)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: object = None) -> Any:
    """The mean over all elements of the axis, leaf by leaf.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x - verax.lax.pmean(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    no_groups("pmean", axis_index_groups)
    names, sizes = axes_of("pmean", axis_name)

    def mean(leaf: Array) -> Array:
        given = leaf if is_inexact(leaf.dtype) else convert(leaf, float32)
        return div(psum_array(given, names, sizes), given.dtype.type(prod(sizes)))

    return each_leaf(mean, x)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: object = None) -> Any:
    """The largest of all elements of the axis, leaf by leaf and place by place.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pmax(x, "i")
    >>> verax.vmap(f, axis_name="i", out_axes=None)(vnp.array([1, 3])).tolist()
    3
    """
    no_groups("pmax", axis_index_groups)
    return each_leaf(lambda leaf: reduce_max(gathered(leaf, axis_name), (0,)), x)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: object = None) -> Any:
    """The smallest of all elements of the axis, leaf by leaf and place by place."""
    no_groups("pmin", axis_index_groups)
    return each_leaf(lambda leaf: reduce_min(gathered(leaf, axis_name), (0,)), x)


def gathered(x: Array, axis_name: AxisName, axis: int = 0) -> Array:
    """All elements along a new dimension; of several axes the first is outermost."""
    names, sizes = axes_of("all_gather", axis_name)
    tiled = False
    for name, size in reversed(list(zip(names, sizes, strict=True))):
        x = all_gather_p.call(GatherAxisParams((name,), (size,), axis, tiled), x)
        tiled = True
    return x


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: object = None,
    axis: int = 0,
    tiled: bool = False,
) -> Any:
    """What all elements of the axis have, along a new dimension `axis`.

    With `tiled` they are put one after the other along the dimension `axis` that is
    there already. Leaf by leaf.

    Raises:
        NameError: there is no such axis in scope.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.all_gather(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 3])).tolist()
    [[1, 3], [1, 3]]
    """
    no_groups("all_gather", axis_index_groups)

    def gather(leaf: Array) -> Array:
        place = as_axis("all_gather", axis, leaf.ndim + (not tiled))
        found = gathered(leaf, axis_name, place)
        return merged(found, place) if tiled else found

    return each_leaf(gather, x)


def one_axis(what: str, axis_name: AxisName) -> tuple[tuple[str, ...], Shape]:
    names, sizes = axes_of(what, axis_name)
    if len(names) != 1:
        raise NotImplementedError(f"{what} takes one axis at a time, not {names}")
    return names, sizes


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: object = None,
    tiled: bool = False,
) -> Any:
    """The sum over all elements of the axis, of which each keeps its own part.

    Dimension `scatter_dimension` has one entry per element and goes away, or with
    `tiled` an equal share for each. Leaf by leaf.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the dimension cannot be split that way.
    """
    no_groups("psum_scatter", axis_index_groups)
    names, sizes = axes_of("psum_scatter", axis_name)

    def scatter(leaf: Array) -> Array:
        place = as_axis("psum_scatter", scatter_dimension, leaf.ndim)
        check_share("psum_scatter", leaf, place, prod(sizes), tiled)
        for i, name in enumerate(names):
            # The first axis is outermost: the shares of its elements are the largest.
            rest = prod(sizes[i + 1 :])
            part = leaf if tiled or rest == 1 else parted(leaf, place, sizes[i])
            params = GatherAxisParams((name,), sizes[i : i + 1], place, tiled)
            leaf = reduce_scatter_p.call(params, part)
        return leaf

    return each_leaf(scatter, x)


def check_share(what: str, x: Array, place: int, size: int, tiled: bool) -> None:
    """Raise ValueError unless a dimension has one entry, or share, per element."""
    n = x.shape[place]
    if (n % size) if tiled else (n != size):
        wish = f"a multiple of {size}" if tiled else str(size)
        raise ValueError(
            f"{what}: dimension {place} of {x.aval} has size {n}, but the axis has "
            f"{size} elements: the size must be {wish}"
        )


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: object = None,
    tiled: bool = False,
) -> Any:
    """Every element sends one part to each other: dimension `split_axis` is split up.

    What arrives lies along a new dimension `concat_axis`, or with `tiled` one after
    the other along the one that is there. Leaf by leaf.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the dimension cannot be split that way.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.all_to_all(x, "i", 0, 0)
    >>> verax.vmap(f, axis_name="i")(vnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    no_groups("all_to_all", axis_index_groups)
    names, sizes = axes_of("all_to_all", axis_name)

    def exchange(leaf: Array) -> Array:
        split = as_axis("all_to_all", split_axis, leaf.ndim)
        joined = as_axis("all_to_all", concat_axis, leaf.ndim)
        check_share("all_to_all", leaf, split, prod(sizes), tiled)
        if not tiled:
            return exchanged(leaf, names, sizes, split, joined)
        dealt = parted(leaf, split, prod(sizes))
        return merged(exchanged(dealt, names, sizes, split, joined), joined)

    return each_leaf(exchange, x)


def exchanged(
    x: Array, names: tuple[str, ...], sizes: Shape, split: int, joined: int
) -> Array:
    """Parts along `split` dealt out along the axes, the first of which is outermost."""
    if len(names) == 1:
        return all_to_all_p.call(ExchangeParams(names, sizes, split, joined), x)
    x = move_axis(x, split, 0)
    rest = x.shape[1:]
    x = reshape(x, (*sizes, *rest))
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        x = all_to_all_p.call(ExchangeParams((name,), (size,), i, i), x)
    return move_axis(reshape(x, (prod(sizes), *rest)), 0, joined)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Elements send values: `perm` has pairs (source, destination); the others get 0.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: a number is out of range, sends twice or receives twice.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> verax.vmap(f, axis_name="i")(vnp.array([5, 6, 7])).tolist()
    [0, 5, 6]
    """
    names, sizes = one_axis("ppermute", axis_name)
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    for side in zip(*pairs, strict=True):
        if len(set(side)) != len(side) or not all(0 <= i < sizes[0] for i in side):
            raise ValueError(
                "ppermute takes pairs (source, destination) of indices 0 to "
                f"{sizes[0] - 1}, each at most once on either side, not {pairs}"
            )
    params = PermuteParams(names, sizes, pairs)
    return each_leaf(lambda leaf: ppermute_p.call(params, leaf), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """Element i gets the value of element `perm[i]`, which is a permutation.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: `perm` is not a permutation of the elements.
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise ValueError(f"pshuffle takes a permutation of 0 to {size - 1}, not {perm}")
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])
