"""Floor 6: named axes as collectives see them, and what their elements hold together.

One idea: a collective finds the axes that it names in scope once, and moves a value's
own axis there; then it is one equation over all of them::

    names, sizes = axes_of("psum", ("i", "j"))
    axis_size("i"), axis_index("i")
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, Literal

import numpy as np
from attrs import frozen

from verax.api.tracing.apply import as_array
from verax.backend import pytrees
from verax.ir.avals import Shape
from verax.ir.dtypes import int32, is_bool
from verax.ir.meshes import MeshType, TypeShardings
from verax.ir.records import ReprMixin
from verax.ops.elementwise.convert import convert
from verax.ops.indexing.dynamic_slice import dynamic_index_in_dim
from verax.ops.parallel.collectives import (
    all_gather_p,
    axis_index_p,
    psum as psum_array,
)
from verax.ops.parallel.meeting import (
    CollectiveParams,
    GatherAxisParams,
    Groups,
)
from verax.ops.parallel.parts import rows_at
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.casts import varying
from verax.ops.structure.shape import move_axis
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
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
                f"{what} under `verax.shard_map`, or within a function mapped "
                f"with axis_name={name!r}. Axes in scope: {around}"
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
