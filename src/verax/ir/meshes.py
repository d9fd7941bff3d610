"""Floor 0: how an array is spread over devices, as plain data that params can hold.

One idea: devices are numbers and axes are names, so that a program can say where its
values lie, print it and compare it without knowing any runtime::

    MeshAxes(("x", "y"), (2, 2), (0, 1, 2, 3)), (("x",), ())
"""

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Protocol

from attrs import frozen

from verax.ir.records import ReprMixin, Unchanging

FIRST_DEVICE = "  sdy.mesh @first_device = <[], device_ids=[0]>\n"
"""The declaration of the first device alone, where calls of the host are made."""

type Split = tuple[str, ...] | None
"""The axes that split a dimension, outer first; None leaves it to the compiler."""


@frozen(cache_hash=True, repr=False)
class MeshAxes(ReprMixin):
    """Named axes over devices; the numbers of the devices are in row-major order."""

    transient: ClassVar[bool] = False

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    devices: tuple[int, ...]

    def size(self, name: str) -> int:
        """How many devices lie along an axis."""
        return self.sizes[self.names.index(name)]


@frozen(cache_hash=True, repr=False)
class Layout(ReprMixin):
    """The axes of `mesh` that split each dimension; further dimensions are whole."""

    transient: ClassVar[bool] = False

    mesh: MeshAxes
    splits: tuple[Split, ...] = ()


class AxisType(enum.Enum):
    """Who decides along an axis how values are split.

    `Auto`: the compiler. `Manual`: the function itself, inside `shard_map`. `Explicit`,
    the types of the values, is not there yet.
    """

    __module__ = "verax.sharding"

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


type AxisTypes = tuple[AxisType, ...]


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names of axes as a tuple; one string is one name."""
    return (names,) if isinstance(names, str) else tuple(names)


def checked_names(names: tuple[str, ...], what: str) -> None:
    """Raise unless the names are strings that differ.

    Raises:
        TypeError: a name is not a string.
        ValueError: a name occurs twice.
    """
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"the axis names of {what} must be strings, not {names!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"the axis names of {what} must differ, got {names}")


def checked_types(types: object, names: tuple[str, ...]) -> AxisTypes:
    """One type for each axis; None stands for `Auto` everywhere.

    Raises:
        NotImplementedError: an axis is explicit.
        ValueError: there is not one type for each axis.
    """
    if types is None:
        return (AxisType.Auto,) * len(names)
    found = tuple(types) if isinstance(types, tuple | list) else (types,)
    if len(found) != len(names) or not all(isinstance(t, AxisType) for t in found):
        raise ValueError(
            f"axis_types has one AxisType for each of the axes {names}, not {types!r}"
        )
    if AxisType.Explicit in found:
        raise NotImplementedError(
            "every axis of a verax mesh is AxisType.Auto, where the compiler decides "
            f"how values are split; got {types!r}"
        )
    return found


class BaseMesh(Unchanging):
    """What meshes with and without devices share: questions about their axes."""

    __slots__ = ()

    axis_names: tuple[str, ...]
    axis_types: AxisTypes

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of devices."""
        raise NotImplementedError

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """The name and the number of devices of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape(self) -> "OrderedDict[str, int]":
        """The number of devices along each axis, by name."""
        return OrderedDict(self.shape_tuple)

    def axes_of(self, kind: AxisType) -> tuple[str, ...]:
        """The axes of one type."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple([name for name, found in pairs if found is kind])

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The axes along which the compiler decides."""
        return self.axes_of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The axes along which types decide: none yet."""
        return self.axes_of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The axes along which the function inside `shard_map` decides."""
        return self.axes_of(AxisType.Manual)

    def only(self, *kinds: AxisType) -> bool:
        """Whether there are axes, all of these types."""
        types = self.axis_types
        return bool(types) and all([kind in kinds for kind in types])

    @property
    def are_all_axes_auto(self) -> bool:
        return self.only(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        return self.only(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        return self.only(AxisType.Manual)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        return self.only(AxisType.Explicit, AxisType.Manual)

    def text(self) -> str:
        """The axes as they are printed; types only where one is not `Auto`."""
        parts = [f"{name!r}: {size}" for name, size in self.shape_tuple]
        if self.manual_axes:
            kinds = ", ".join([kind.name for kind in self.axis_types])
            parts.append(f"axis_types=({kinds})")
        return ", ".join(parts)


class TypeSharding(Protocol):
    """The sharding of a type: a mesh without axes, and None for each dimension."""

    @property
    def mesh(self) -> BaseMesh: ...

    @property
    def spec(self) -> Iterable[object]: ...


class Unsaid:
    """Makes the sharding of a type, which says nothing; `verax.wiring` sets it."""

    sharding: ClassVar[Callable[[int], TypeSharding]]


def says_nothing(sharding: object) -> bool:
    """Whether a sharding leaves open where an array lies, as the one of a type does.

    >>> says_nothing(None)
    True
    """
    mesh = getattr(sharding, "mesh", None)
    return sharding is None or (isinstance(mesh, BaseMesh) and not mesh.axis_names)


def mesh_text(mesh: MeshAxes, order: tuple[int, ...]) -> str:
    """A Shardy mesh; `order` are the devices of the program, by position.

    >>> mesh_text(MeshAxes(("x",), (2,), (7, 9)), (7, 9))
    '<["x"=2]>'
    >>> mesh_text(MeshAxes(("x",), (2,), (9, 7)), (7, 9))
    '<["x"=2], device_ids=[1, 0]>'
    """
    axes = ", ".join(
        f'"{name}"={size}' for name, size in zip(mesh.names, mesh.sizes, strict=True)
    )
    places = [order.index(device) for device in mesh.devices]
    if places == list(range(len(places))):
        return f"<[{axes}]>"
    return f"<[{axes}], device_ids={places}>"


def layout_text(symbol: str, splits: tuple[Split, ...], ndim: int) -> str:
    """A Shardy sharding of an array with `ndim` dimensions.

    >>> layout_text("@mesh", (("x", "y"), None), 3)
    '#sdy.sharding<@mesh, [{"x", "y"}, {?}, {}]>'
    """
    whole: tuple[Split, ...] = ((),) * (ndim - len(splits))
    dims = ", ".join(map(split_text, (*splits, *whole)))
    return f"#sdy.sharding<{symbol}, [{dims}]>"


def split_text(split: Split) -> str:
    """One dimension of a Shardy sharding."""
    if split is None:
        return "{?}"
    return "{" + ", ".join(f'"{name}"' for name in split) + "}"


def first_device_text(results: int) -> str:
    """The Shardy sharding of an operation that the first device does for all.

    >>> first_device_text(2)
    '#sdy.sharding_per_value<[<@first_device, []>, <@first_device, []>]>'
    """
    values = ", ".join(["<@first_device, []>"] * max(1, results))
    return f"#sdy.sharding_per_value<[{values}]>"
