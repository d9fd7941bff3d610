"""Floor 6: collectives by which elements of an axis exchange parts of their values.

One idea: a part goes from each element to others by position, and what is linear in
that comes back along the same ways in the derivative::

    lax.ppermute(x, "i", [(0, 1), (1, 0)])
    lax.all_gather(x, "i")
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from verax.api.tracing.apply import as_array
from verax.ir.dtypes import int32, is_bool, is_integer
from verax.lax.named_axes import (
    RAGGED,
    AxisName,
    IndexGroups,
    Meeting,
    axes_of,
    axis_index,
    axis_size,
    each_leaf,
    meeting,
    on_varying,
    stacked,
    varied,
)
from verax.lax.parallel import check_state, summand
from verax.ops.elementwise.arith import div
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.parallel.collectives import (
    all_to_all_p,
    ppermute_p,
    reduce_scatter_p,
)
from verax.ops.parallel.meeting import (
    ExchangeParams,
    GatherAxisParams,
    PermuteParams,
)
from verax.ops.parallel.parts import merged, parted, rows_at
from verax.ops.reductions.reduce import reduce_max
from verax.ops.structure.create import broadcasted_iota, full, iota
from verax.ops.structure.shape import broadcast_in_dim, move_axis, reshape
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import as_axis


def all_gather[T](
    x: T,
    axis_name: AxisName,
    *,
    axis_index_groups: IndexGroups | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """Gathers what all elements of the axis have, along a new dimension `axis`.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once, all of
            one length; None for one group of all. Gathered is what those of the
            element's own group have.
        axis: the place of the new dimension, or with `tiled` the dimension along which
            parts are joined; by default the first.
        tiled: whether parts are put one after the other along the dimension `axis` that
            is there already; by default they get a dimension of their own.
        to: inside `shard_map`, what types say of the result, which is the same for all:
            "varying", the default, says nothing of that, "invarying" says it, and
            "reduced" says it of the value and leaves the sum of its cotangents to be
            made; see `pcast`.

    Returns:
        A tree like `x`, of the same dtypes. Of n elements, dimension `axis` is new and
        has size n; with `tiled` it is the old one, n times as large.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements into groups of one
            size, `to` is none of the three, or it is not "varying" with groups.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.all_gather(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 3])).tolist()
    [[1, 3], [1, 3]]
    """
    met = meeting("all_gather", axis_name, axis_index_groups, even=True)
    check_state("all_gather", to, ("varying", "reduced", "invarying"))
    if met.groups is not None and to != "varying":
        raise ValueError(
            f"all_gather takes no axis_index_groups with to={to!r}: the groups differ"
        )

    def gather(leaf: Array) -> Array:
        place = as_axis("all_gather", axis, leaf.ndim + (not tiled))
        rows = met.gathered(leaf, place, to)
        return merged(rows, place) if tiled else rows

    return on_varying(gather, x, met.names)


def psum_scatter[T](
    x: T,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups | None = None,
    tiled: bool = False,
) -> T:
    """The sum over all elements of the axis, of which each keeps its own part.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        scatter_dimension: the dimension that is split up, by default the first. Its
            size is the number of elements, or with `tiled` a multiple of it.
        axis_index_groups: lists of the numbers of elements that name each once, all of
            one length; None for one group of all. The sum is over those of the
            element's own group.
        tiled: whether the dimension stays, with an equal share for each; by default it
            has one entry per element and goes away.

    Returns:
        A tree like `x`, of the same dtypes, with that dimension gone or divided.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: `x` holds booleans, which have no sum of their dtype.
        ValueError: the dimension cannot be split that way, or the groups are not a
            partition of the elements into groups of one size.

    >>> import verax, verax.numpy as vnp
    >>> x = vnp.array([[1, 2, 3, 4], [10, 20, 30, 40]])
    >>> f = lambda x: verax.lax.psum_scatter(x, "i", tiled=True)
    >>> verax.vmap(f, axis_name="i")(x).tolist()
    [[11, 22], [33, 44]]
    """
    met = meeting("psum_scatter", axis_name, axis_index_groups, even=True)

    def scatter(leaf: Array) -> Array:
        if is_bool(leaf.dtype):
            raise TypeError(
                f"psum_scatter takes numbers, not {leaf.aval}; convert booleans to "
                "integers first"
            )
        place = as_axis("psum_scatter", scatter_dimension, leaf.ndim)
        check_share("psum_scatter", leaf, place, met.size, tiled)
        if not met.by_row:
            total = met.total(leaf)
            return met.own(parted(total, place, met.size) if tiled else total, place)
        for i, name in enumerate(met.names):
            # The first axis is outermost: the shares of its elements are the largest.
            size, rest = met.row_sizes[i], prod(met.row_sizes[i + 1 :])
            part = leaf if tiled or rest == 1 else parted(leaf, place, size)
            params = GatherAxisParams(
                (name,), (size,), place, tiled, groups=met.groups or ()
            )
            leaf = reduce_scatter_p.call(params, part)
        return leaf

    return each_leaf(lambda leaf: scatter(summand(leaf, met.names)), x)


def check_share(what: str, x: Array, place: int, size: int, tiled: bool) -> None:
    """Raise ValueError unless a dimension has one entry, or share, per element."""
    n = x.shape[place]
    if (n % size) if tiled else (n != size):
        wish = f"a multiple of {size}" if tiled else str(size)
        raise ValueError(
            f"{what}: dimension {place} of {x.aval} has size {n}, but the axis has "
            f"{size} elements: the size must be {wish}"
        )


def all_to_all[T](
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: IndexGroups | None = None,
    tiled: bool = False,
) -> T:
    """Every element sends one part to each other: dimension `split_axis` is split up.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        split_axis: the dimension that is split up. Its size is the number of elements,
            or with `tiled` a multiple of it.
        concat_axis: the place of the new dimension along which lies what arrives, or
            with `tiled` the dimension along which it is joined.
        axis_index_groups: lists of the numbers of elements that name each once, all of
            one length; None for one group of all. Parts go to the elements of the own
            group.
        tiled: whether parts are shares that are joined along a dimension that is there;
            by default they are single entries, in a new dimension.

    Returns:
        A tree like `x`, of the same dtypes. Of n elements, dimension `split_axis`, of
        size n, goes away and one of size n comes at `concat_axis`; with `tiled` the
        size of the first is divided by n and that of the second multiplied.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the dimension cannot be split that way, or the groups are not a
            partition of the elements into groups of one size.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.all_to_all(x, "i", 0, 0)
    >>> verax.vmap(f, axis_name="i")(vnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    met = meeting("all_to_all", axis_name, axis_index_groups, even=True)

    def exchange(leaf: Array) -> Array:
        split = as_axis("all_to_all", split_axis, leaf.ndim)
        joined = as_axis("all_to_all", concat_axis, leaf.ndim)
        check_share("all_to_all", leaf, split, met.size, tiled)
        if not tiled:
            return exchanged(leaf, met, split, joined)
        dealt = parted(leaf, split, met.size)
        return merged(exchanged(dealt, met, split, joined), joined)

    return on_varying(exchange, x, met.names)


def exchanged(x: Array, met: Meeting, split: int, joined: int) -> Array:
    """Parts along `split` dealt out to those who meet, in their order."""
    names, sizes = met.names, met.row_sizes
    if not met.by_row:
        return move_axis(met.own(met.gathered(x), split + 1), 0, joined)
    if len(names) == 1:
        params = ExchangeParams(names, sizes, split, joined, groups=met.groups or ())
        return all_to_all_p.call(params, x)
    x = move_axis(x, split, 0)
    rest = x.shape[1:]
    x = reshape(x, (*sizes, *rest))
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        x = all_to_all_p.call(ExchangeParams((name,), (size,), i, i), x)
    return move_axis(reshape(x, (prod(sizes), *rest)), 0, joined)


def pswapaxes[T](
    x: T,
    axis_name: AxisName,
    axis: int,
    *,
    axis_index_groups: IndexGroups | None = None,
) -> T:
    """The axis and a dimension of its size change places: see `all_to_all`.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis: the dimension, whose size is the number of elements.
        axis_index_groups: lists of the numbers of elements that name each once, all of
            one length; None for one group of all. Parts go to the elements of the own
            group.

    Returns:
        A tree like `x`, of its shapes and dtypes.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the dimension has another size, or the groups are not a partition of
            the elements into groups of one size.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pswapaxes(x, "i", 0)
    >>> verax.vmap(f, axis_name="i")(vnp.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute[T](x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """Elements send values to each other, in pairs of a source and a destination.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        perm: a list or tuple of pairs (source, destination) of the numbers of elements;
            each sends at most once and receives at most once.

    Returns:
        A tree like `x`, of its shapes and dtypes; zeros for elements that receive
        nothing.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: `perm` is not a list or tuple.
        ValueError: a number is out of range, sends twice or receives twice.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> verax.vmap(f, axis_name="i")(vnp.array([5, 6, 7])).tolist()
    [0, 5, 6]
    """
    names, sizes = axes_of("ppermute", axis_name)
    count = prod(sizes)
    if not isinstance(perm, list | tuple):
        raise TypeError(
            "`perm` passed to `jax.lax.ppermute` must be a list or a tuple of pairs, "
            f"not {shown(perm)}"
        )
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    for side in zip(*pairs, strict=True):
        if len(set(side)) != len(side) or not all(0 <= i < count for i in side):
            raise ValueError(
                "ppermute takes pairs (source, destination) of indices 0 to "
                f"{count - 1}, each at most once on either side, not {pairs}"
            )
    if len(names) == 1:
        params = PermuteParams(names, sizes, pairs)
        return on_varying(lambda leaf: ppermute_p.call(params, leaf), x, names)
    sources = np.full(count, count, np.int32)
    for source, target in pairs:
        sources[target] = source
    mine = rows_at(as_array(sources), axis_index(names))
    return each_leaf(lambda leaf: rows_at(stacked(leaf, names, sizes), mine), x)


def pshuffle[T](x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """Element i gets the value of element `perm[i]`.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        perm: a permutation of the numbers of elements.

    Returns:
        A tree like `x`, of its shapes and dtypes.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: `perm` is not a permutation of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pshuffle(x, "i", [2, 0, 1])
    >>> verax.vmap(f, axis_name="i")(vnp.array([5, 6, 7])).tolist()
    [7, 5, 6]
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise ValueError(
            f"pshuffle: `perm` does not represent a permutation: {perm} is none of 0 "
            f"to {size - 1}"
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def ragged_all_to_all(
    operand: object,
    output: object,
    input_offsets: object,
    send_sizes: object,
    output_offsets: object,
    recv_sizes: object,
    *,
    axis_name: AxisName,
    axis_index_groups: IndexGroups | None = None,
) -> Array:
    """Every element sends runs of rows to each other: `all_to_all` of unequal parts.

    Of the K runs of an element, an equal share goes to each, in order. Run k is
    `send_sizes[k]` rows of `operand` from `input_offsets[k]`, and the receiver has it
    from row `output_offsets[k]` of the result, which is its `output` elsewhere. A row
    for which several runs arrive has that of the last one.

    Args:
        operand: an array: the rows that this element sends.
        output: what the result holds where nothing arrives; it has the shape and dtype
            of `operand`, but for the number of rows.
        input_offsets: the first row of each run in `operand`, K integers; K is a
            multiple of the number of elements.
        send_sizes: the number of rows of each run that is sent, K integers.
        output_offsets: the row of the receiver's result at which each run begins, K
            integers.
        recv_sizes: the number of rows of each run that arrives, in the order of the
            senders, K integers.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once, all of
            one length; None for one group of all. Runs go to the elements of the own
            group.

    Returns:
        An array of the shape and dtype of `output`.

    Raises:
        NameError: there is no such axis in scope.
        TypeError, ValueError: the offsets and sizes are not integer vectors of one
            length, a multiple of the number of elements; or operand and output differ
            in dtype or in more than their first dimension.

    >>> import verax, verax.numpy as vnp
    >>> def send(rows, starts, sizes, places, arriving):
    ...     empty = vnp.zeros(3, rows.dtype)
    ...     return verax.lax.ragged_all_to_all(
    ...         rows, empty, starts, sizes, places, arriving, axis_name="i")
    >>> rows, starts = vnp.array([[1, 2, 3], [4, 5, 6]]), vnp.array([[0, 1], [0, 2]])
    >>> sizes, places = vnp.array([[1, 2], [2, 1]]), vnp.array([[0, 0], [1, 2]])
    >>> verax.vmap(send, axis_name="i")(rows, starts, sizes, places, sizes.T).tolist()
    [[1, 4, 5], [2, 3, 6]]
    """
    met = meeting("ragged_all_to_all", axis_name, axis_index_groups, even=True)
    x, out = (varied(as_array(v), met.names) for v in (operand, output))
    runs = (input_offsets, send_sizes, output_offsets, recv_sizes)
    numbers = [varied(as_array(v), met.names) for v in runs]
    check_ragged(x, out, numbers, met.size)

    def arriving(v: Array) -> Array:
        parts = parted(convert(v, int32), 0, met.size)
        return merged(exchanged(parts, met, 0, 0), 0)

    starts, places = arriving(numbers[0]), arriving(numbers[2])
    table = (out.shape[0], starts.shape[0])
    rows, run = [broadcasted_iota(int32, table, axis) for axis in (0, 1)]
    inside = (rows >= places) & (rows < places + convert(numbers[3], int32))
    last = reduce_max(select(inside, run, full(table, -1, int32)), (1,))
    sender = div(last, np.int32(table[1] // met.size))
    shift = rows_at(starts - places, last) + iota(int32, table[0])
    array = rows_at(merged(met.gathered(x), 0), sender * x.shape[0] + shift)
    arrives = broadcast_in_dim(last >= 0, out.shape, (0,))
    return select(arrives, array, out)


def check_ragged(x: Array, out: Array, runs: Sequence[Array], size: int) -> None:
    """Raise unless these are arguments of `ragged_all_to_all` over `size` elements."""
    what = "ragged_all_to_all"
    for name, v in zip(RAGGED, runs, strict=True):
        if not is_integer(v.dtype):
            raise ValueError(f"{what} takes integers as {name}, not {v.aval}")
        if v.ndim != 1 or v.shape != runs[0].shape or not v.size or v.size % size:
            raise ValueError(
                f"{what} takes vectors of one length, a multiple of {size}, as "
                f"{', '.join(RAGGED)}: {name} is {v.aval}"
            )
    if not x.ndim or x.dtype != out.dtype or x.shape[1:] != out.shape[1:]:
        raise TypeError(
            f"{what} takes an operand and an output of one dtype that differ in their "
            f"first dimension alone, not {x.aval} and {out.aval}"
        )
