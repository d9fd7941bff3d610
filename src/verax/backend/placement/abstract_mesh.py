"""Named axes without devices, and who decides along each of them (floor 4).

One idea: what a program depends on is the names and sizes of the axes of a mesh, which
an abstract mesh holds; the devices can be chosen when the program runs.

    >>> AbstractMesh((4, 2), ("x", "y"))
    AbstractMesh('x': 4, 'y': 2)
    >>> AbstractMesh((4, 2), ("x", "y")).size
    8
"""

import enum
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, NoReturn, Self

from verax.ir.records import Unchanging

__all__ = ["AbstractDevice", "AbstractMesh", "AxisType", "BaseMesh"]


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

    axis_names: Any
    axis_types: Any

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
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


class AbstractDevice:
    """What kind of devices a mesh is for.

    >>> AbstractDevice("cpu", None, "cpu")
    AbstractDevice(device_kind='cpu', num_cores=None, platform='cpu')
    """

    __module__ = "verax.sharding"
    __slots__ = ("device_kind", "num_cores", "platform")

    transient: ClassVar[bool] = False

    device_kind: str
    num_cores: int | None
    platform: str

    def __init__(self, device_kind: str, num_cores: int | None, platform: str) -> None:
        object.__setattr__(self, "device_kind", device_kind)
        object.__setattr__(self, "num_cores", num_cores)
        object.__setattr__(self, "platform", platform)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an AbstractDevice is immutable: make a new one")

    def key(self) -> tuple[Any, ...]:
        return (self.device_kind, self.num_cores, self.platform)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return (
            f"AbstractDevice(device_kind={self.device_kind!r}, "
            f"num_cores={self.num_cores}, platform={self.platform!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractDevice, self.key()


OF_DEVICES = (
    "devices",
    "device_ids",
    "local_devices",
    "local_mesh",
    "is_multi_process",
)
"""What only a `Mesh` has."""


class AbstractMesh(BaseMesh):
    """The names and sizes of axes, without devices.

    `shard_map` and constraints inside jitted functions take one for the mesh in force,
    or, if there is none, for the first devices of the process.

    Raises:
        TypeError: a name is not a string.
        ValueError: the numbers of names, sizes and types differ, or a name occurs
            twice.
    """

    __module__ = "verax.sharding"
    __slots__ = ("abstract_device", "axis_names", "axis_types", "sizes")

    transient: ClassVar[bool] = False

    sizes: tuple[int, ...]
    axis_names: tuple[str, ...]
    axis_types: AxisTypes
    abstract_device: AbstractDevice | None

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[str],
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        sizes = tuple([int(size) for size in axis_sizes])
        names = as_names(axis_names)
        checked_names(names, "an AbstractMesh")
        if len(sizes) != len(names):
            raise ValueError(
                f"an AbstractMesh needs one name for each size: got {names} for {sizes}"
            )
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "axis_names", names)
        object.__setattr__(self, "axis_types", checked_types(axis_types, names))
        object.__setattr__(self, "abstract_device", abstract_device)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an AbstractMesh is immutable: use update")

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def size(self) -> int:
        """The number of devices that the mesh is for."""
        return prod(self.sizes) if self.sizes else 0

    @property
    def empty(self) -> bool:
        return self.size == 0

    @property
    def abstract_mesh(self) -> "AbstractMesh":
        return self

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: str | Sequence[str] | None = None,
        axis_types: Any = None,
        **kwargs: Any,
    ) -> "AbstractMesh":
        """The mesh with some parts changed."""
        return AbstractMesh(
            self.sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **kwargs},
        )

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> Self:
        """The mesh with the types of some axes changed."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        types = tuple([name_to_type.get(name, kind) for name, kind in pairs])
        return self.update(axis_types=types)  # type: ignore[return-value]  # no subclasses

    def refuse(self, what: str) -> NoReturn:
        """Raise ValueError: this needs devices."""
        raise ValueError(f"an AbstractMesh has no {what}: it stands for any devices")

    def __getattr__(self, name: str) -> NoReturn:
        if name in OF_DEVICES:
            self.refuse(name)
        raise AttributeError(f"an AbstractMesh has no attribute {name!r}")

    def key(self) -> tuple[Any, ...]:
        return (self.sizes, self.axis_names, self.axis_types, self.abstract_device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return f"AbstractMesh({self.text() or '()'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, self.key()


def rebuilt(
    sizes: tuple[int, ...],
    names: tuple[str, ...],
    types: AxisTypes,
    device: AbstractDevice | None,
) -> AbstractMesh:
    """What a pickled abstract mesh is read with."""
    return AbstractMesh(sizes, names, types, abstract_device=device)
