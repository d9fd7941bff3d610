"""Floor 6: collectives: what the elements of a named axis do together.

One idea: inside a function that runs over a named axis (`vmap(axis_name="i")`), each
element sees its own part, and a collective is where it meets the others::

    vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(xs)
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, Literal

import numpy as np
from attrs import frozen

from verax.api.tracing.apply import as_array
from verax.backend import pytrees
from verax.ir.avals import Shape
from verax.ir.dtypes import float32, int32, is_bool, is_inexact, is_integer
from verax.ir.meshes import AxisType, MeshType, TypeShardings
from verax.ir.records import ReprMixin
from verax.ops.elementwise.arith import div
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_slice import dynamic_index_in_dim
from verax.ops.parallel.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    ppermute_p,
    psum as psum_array,
    reduce_scatter_p,
)
from verax.ops.parallel.meeting import (
    CollectiveParams,
    ExchangeParams,
    GatherAxisParams,
    Groups,
    PermuteParams,
)
from verax.ops.parallel.parts import merged, parted, rows_at
from verax.ops.reductions.reduce import reduce_max, reduce_min, reduce_sum
from verax.ops.structure.casts import cast, check_cast, common_state, varying
from verax.ops.structure.create import broadcasted_iota, full, iota
from verax.ops.structure.shape import broadcast_in_dim, move_axis, reshape
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import as_axis
from verax.rules.values.state import STATE

type AxisName = str | Sequence[str]
type IndexGroups = Sequence[Sequence[int]]
"""Lists of the numbers of elements, which name each once."""

RAGGED: Final = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def axes_of(what: str, axis_name: AxisName) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names as a tuple, and the size of each axis.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: a name is not a string.
    """
    names = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    known = dict(STATE.axes)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what}: axis names must be strings, not {shown(name)}")
        if name not in known:
            around = ", ".join(map(repr, known)) or "none"
            raise NameError(
                f"{what}: Found an unbound axis name: {name}. To fix this, please call "
                f"{what} under `shard_map`, or within a function mapped with "
                f"axis_name={name!r}. Axes in scope: {around}"
            )
    return names, tuple([known[name] for name in names])


def tracked(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the axes along which types say that values vary, in their order."""
    return tuple([name for name in names if name in STATE.tracked])


def mesh_in_force() -> MeshType:
    """The mesh of the enclosing `shard_map`, as types know it."""
    return TypeShardings.in_force()


def each_leaf[T](function: Callable[[Array], object], x: T) -> T:
    """A function of arrays on every leaf of a tree."""
    leaves, tree = pytrees.flatten(x)
    out: T = tree.unflatten([function(as_array(leaf)) for leaf in leaves])
    return out


def on_varying[T](
    function: Callable[[Array], object], x: T, names: tuple[str, ...]
) -> T:
    """A function of values that vary along axes, on every leaf of a tree."""
    return each_leaf(lambda leaf: function(varied(leaf, names)), x)


def varied(x: Array, names: Sequence[str]) -> Array:
    """`x` as a value that varies along those of the axes that types speak of.

    A term of a sum stays one: a collective makes its sum.
    """
    axes = tracked(names)
    return varying(x, axes, mesh_in_force()) if axes else x


@frozen(eq=False, repr=False)
class Meeting(ReprMixin):
    """The elements that meet in a collective: all along the axes, or those of a group.

    `groups` partition the elements, whose numbers count along all axes together, the
    first outermost.
    """

    names: tuple[str, ...]
    sizes: Shape
    groups: Groups | None

    @property
    def size(self) -> int:
        """The number of elements that meet: the size of groups, which must be equal."""
        return prod(self.sizes) if self.groups is None else len(self.groups[0])

    @property
    def even(self) -> bool:
        return self.groups is None or len(set(map(len, self.groups))) == 1

    @property
    def by_row(self) -> bool:
        """Whether a row of one collective does it: not with groups of several axes."""
        return self.groups is None or (self.even and len(self.names) == 1)

    @property
    def row_sizes(self) -> Shape:
        """The sizes of the axes that a row has in its params."""
        return self.sizes if self.groups is None else (self.size,)

    def place(self) -> Array:
        """The number of this element among those that it meets."""
        index = axis_index(self.names)
        if self.groups is None:
            return index
        table = np.zeros(prod(self.sizes), np.int32)
        for group in self.groups:
            table[list(group)] = range(len(group))
        return rows_at(as_array(table), index)

    def members(self, x: Array, fill: Literal["last", "zero"]) -> Array:
        """The values of the group's elements, along a new first dimension.

        It is as long as the largest group; behind the elements of a smaller one stands
        the last of them again, or zero.
        """
        assert self.groups is not None
        count, longest = prod(self.sizes), max(map(len, self.groups))
        table = np.zeros((count, longest), np.int32)
        for group in self.groups:
            last = group[-1] if fill == "last" else count
            table[list(group)] = [*group, *[last] * (longest - len(group))]
        mine = rows_at(as_array(table), axis_index(self.names))
        return rows_at(stacked(x, self.names, self.sizes), mine)

    def total(self, x: Array) -> Array:
        """The sum over those who meet; booleans count as integers."""
        if self.by_row:
            return psum_array(x, self.names, self.row_sizes, self.groups)
        counted = convert(x, int32) if is_bool(x.dtype) else x
        return reduce_sum(self.members(counted, "zero"), (0,))

    def gathered(self, x: Array, place: int = 0, to: str = "varying") -> Array:
        """The values of those who meet, along a new dimension; see `members`.

        Where all meet, types may say of the result what `to` does; see `pcast`.
        """
        if self.groups is None:
            return stacked(x, self.names, self.sizes, place, to)
        if not self.by_row:
            return move_axis(self.members(x, "last"), 0, place)
        params = GatherAxisParams(
            self.names, self.row_sizes, place, False, groups=self.groups
        )
        return all_gather_p.call(params, x)

    def own(self, x: Array, dimension: int) -> Array:
        """The entry of a dimension that is due to this element."""
        return dynamic_index_in_dim(x, self.place(), dimension, keepdims=False)


def stacked(
    x: Array,
    names: tuple[str, ...],
    sizes: Shape,
    place: int = 0,
    to: str = "varying",
) -> Array:
    """All elements along a new dimension; the first axis is outermost."""
    tiled, x = False, varied(x, names)
    for name, size in reversed(list(zip(names, sizes, strict=True))):
        params = GatherAxisParams((name,), (size,), place, tiled, to=to)
        x = all_gather_p.call(params, x)
        tiled = True
    return x


def meeting(
    what: str, axis_name: AxisName, groups: IndexGroups | None, even: bool = False
) -> Meeting:
    """The meeting of a collective.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements, or of different
            sizes where they must be `even`.
    """
    names, sizes = axes_of(what, axis_name)
    if groups is None:
        return Meeting(names, sizes, None)
    result = tuple([tuple([int(i) for i in group]) for group in groups])
    every = [i for group in result for i in group]
    if sorted(every) != list(range(prod(sizes))):
        raise ValueError(
            f"{what}: axis_index_groups must name each of the {prod(sizes)} elements "
            f"along {', '.join(map(repr, names))} once, not {shown(groups)}"
        )
    met = Meeting(names, sizes, tuple([group for group in result if group]))
    if even and not met.even:
        raise ValueError(
            f"{what}: axis_index_groups must be of one size here, not {shown(groups)}"
        )
    return met


def axis_size(axis_name: AxisName) -> int:
    """The number of elements along the axis, or along several together.

    Args:
        axis_name: the name of the axis, or several names.

    Returns:
        A Python integer, also while tracing.

    Raises:
        NameError: there is no such axis in scope.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x / verax.lax.axis_size("i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([4.0, 8.0])).tolist()
    [2.0, 4.0]
    """
    return prod(axes_of("axis_size", axis_name)[1])


def axis_index(axis_name: AxisName) -> Array:
    """The number of this element along the axis; of several, the first is outermost.

    Args:
        axis_name: the name of the axis, or several names.

    Returns:
        An int32 scalar.

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
    return varied(index, names)


def psum[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The sum over all elements of the axis, leaf by leaf.

    Args:
        x: an array, or a tree of arrays: what this element has. A Python number gives
            that number times the number of elements, as a Python number unless groups
            differ in size.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. The sum is over those of the element's own group.

    Returns:
        A tree like `x`, of its shapes and dtypes; booleans count as int32.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x / verax.lax.psum(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    >>> f = lambda x: verax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2]])
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 3, 5])).tolist()
    [4, 4, 5]
    """
    met = meeting("psum", axis_name, axis_index_groups)
    if isinstance(x, int | float | complex) and met.even:
        scalar: Any = x
        total: T = scalar * met.size
        return total
    return each_leaf(lambda leaf: met.total(summand(leaf, met.names)), x)


def summand(x: Array, names: tuple[str, ...]) -> Array:
    """`x` as `psum` takes it: it varies along the axes, or is a term of the sum."""
    axes = tracked(names)
    if axes and common_state("jax.lax.psum", x.aval, axes) == "unreduced":
        return x
    return varied(x, axes)


def pmean[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The mean over all elements of the axis, leaf by leaf.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. The mean is that over the element's own group.

    Returns:
        A tree like `x`, of its shapes and dtypes; integers and booleans become float32.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x - verax.lax.pmean(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    met = meeting("pmean", axis_name, axis_index_groups)

    def mean(leaf: Array) -> Array:
        numbers = leaf if is_inexact(leaf.dtype) else convert(leaf, float32)
        total, one = met.total(numbers), numbers.dtype.type(1)
        if met.even:
            return div(total, numbers.dtype.type(met.size))
        return div(total, met.total(varied(as_array(one), met.names)))

    return on_varying(mean, x, met.names)


def pmax[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The largest of all elements of the axis, leaf by leaf and place by place.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. Only those of the element's own group count.

    Returns:
        A tree like `x`, of its shapes and dtypes; NaN where an element is NaN.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pmax(x, "i")
    >>> verax.vmap(f, axis_name="i", out_axes=None)(vnp.array([1, 3])).tolist()
    3
    """
    met = meeting("pmax", axis_name, axis_index_groups)
    return each_leaf(
        lambda leaf: reduce_max(met.gathered(leaf, to="invarying"), (0,)), x
    )


def pmin[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The smallest of all elements of the axis, leaf by leaf and place by place.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. Only those of the element's own group count.

    Returns:
        A tree like `x`, of its shapes and dtypes; NaN where an element is NaN.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pmin(x, "i", axis_index_groups=[[0, 2], [1]])
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 2, 3])).tolist()
    [1, 2, 1]
    """
    met = meeting("pmin", axis_name, axis_index_groups)
    return each_leaf(
        lambda leaf: reduce_min(met.gathered(leaf, to="invarying"), (0,)), x
    )


def pbroadcast[T](x: T, axis_name: AxisName, source: object) -> T:
    """Gives all elements what element `source` of the axis has, leaf by leaf.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        source: the number of an element, an integer or an integer scalar; negative ones
            do not count from the end.

    Returns:
        A tree like `x`, of its shapes and dtypes; zeros where there is no such element.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: `source` is not an integer.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pbroadcast(x, "i", 1)
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 3, 5])).tolist()
    [3, 3, 3]
    """
    names, sizes = axes_of("pbroadcast", axis_name)
    place = as_array(source)
    if place.shape or not is_integer(place.dtype):
        raise TypeError(
            f"pbroadcast takes the number of an element as source, not {place.aval}"
        )
    place = convert(place, int32)
    return each_leaf(lambda leaf: rows_at(stacked(leaf, names, sizes), place), x)


def pcast[T](x: T, axis_name: AxisName, *, to: str) -> T:
    """`x`, leaf by leaf, in a type that says otherwise how devices differ along axes.

    Inside `shard_map` a type says of each axis of the mesh whether values vary along it
    (`typeof(x).vma`), are terms of a sum ("unreduced"), have cotangents that are terms
    of one ("reduced"), or are the same on all devices. A cast changes no value, and its
    transpose changes cotangents as it must: that of what all devices have alike is the
    sum of theirs. Where types do not say it (under `vmap`, or with `check_vma=False`),
    it is `x` itself.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name of the axis, or several names as a tuple.
        to: what the type says afterwards, "varying", "unreduced" or "reduced".

    Returns:
        A tree like `x`, with the same values.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: the names are a set.
        ValueError: `to` is not "varying", "unreduced" or "reduced", or no cast leads
            there: what varies is not the same for all, for example.

    >>> import numpy as np, verax
    >>> from verax.sharding import PartitionSpec as P
    >>> mesh = verax.make_mesh((1,), ("i",))
    >>> def f(x):
    ...     return x + verax.lax.pcast(1.0, "i", to="varying")
    >>> verax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(np.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if isinstance(axis_name, set | frozenset):
        raise TypeError(
            f"axis_name of pcast must be a tuple or a str. Got {shown(axis_name)}"
        )
    names, _ = axes_of("pcast", axis_name)
    check_state("pcast", to, ("varying", "unreduced", "reduced"))
    axes = tracked(names)
    if to != "varying" and not {*axes, *mesh_in_force().of_type(AxisType.Manual)}:
        raise ValueError(
            f'pcast takes to="varying" here, not {shown(to)}: only inside shard_map do '
            "types say how values differ along axes"
        )

    def change(leaf: Array) -> Array:
        if not axes:
            return leaf
        common_state("jax.lax.pcast", leaf.aval, axes)
        check_cast("jax.lax.pcast", leaf.aval, axes, to)
        return cast(leaf, axes, mesh_in_force(), to)

    return each_leaf(change, x)


def pvary[T](x: T, axis_name: AxisName) -> T:
    """`x` as a value that varies along the axes, all leaves: see `pcast`.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name of the axis, or several names as a tuple.

    Returns:
        A tree like `x`, with the same values.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: a leaf varies along one of them already.

    >>> import verax, verax.numpy as vnp
    >>> verax.vmap(lambda x: verax.lax.pvary(x, "i"), axis_name="i")(vnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return pcast(x, axis_name, to="varying")


def check_state(what: str, to: str, allowed: Sequence[str]) -> None:
    """Raise ValueError unless results of a collective may have a state."""
    if to not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(
            f"Got unexpected `to` value for {what}: {shown(to)}. Allowed `to` values "
            f"are: {choices}"
        )


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
        raise ValueError(f"pshuffle takes a permutation of 0 to {size - 1}, not {perm}")
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
