"""Named axes without devices, and who decides along each of them (floor 4).

One idea: what a program depends on is the names and sizes of the axes of a mesh, which
an abstract mesh holds; the devices can be chosen when the program runs.

    >>> AbstractMesh((4, 2), ("x", "y"))
    AbstractMesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit))
    >>> AbstractMesh((4, 2), ("x", "y")).size
    8
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar, NoReturn, TypedDict, Unpack

from verax.backend.runtime.client import Device
from verax.ir.meshes import (
    AxisType,
    AxisTypes,
    BaseMesh,
    as_names,
    checked_names,
    checked_types,
)

__all__ = ["AbstractDevice", "AbstractMesh", "abstract_mesh_of"]


class AbstractDevice:
    """The kind of devices that a mesh is for.

    >>> AbstractDevice("cpu", None, "cpu")
    AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)
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

    def key(self) -> tuple[object, ...]:
        return (self.device_kind, self.num_cores, self.platform)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def text(self) -> str:
        """The text of it, in the text of a mesh too."""
        return (
            f"device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform}"
        )

    def __repr__(self) -> str:
        return f"AbstractDevice({self.text()})"

    def __reduce__(self) -> tuple[object, ...]:
        return AbstractDevice, self.key()


OF_DEVICES = (
    "devices",
    "device_ids",
    "local_devices",
    "local_mesh",
    "is_multi_process",
)
"""Attributes that only a `Mesh` has."""


class Placed(TypedDict, total=False):
    """What else a mesh without devices may say."""

    abstract_device: AbstractDevice | None


class AbstractMesh(BaseMesh):
    """The names and sizes of axes, without devices.

    `shard_map` and constraints take one for the mesh in force or, if there is none, for
    the devices of the arguments; inside jitted functions, if these are not committed,
    for the first devices of the process. Its axes are `Explicit` unless `axis_types`
    says otherwise.

    Raises:
        TypeError: a name is not a string, or an axis type no `AxisType`.
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
        axis_types: object = None,
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
        types = checked_types(axis_types, names, AxisType.Explicit)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "axis_names", names)
        object.__setattr__(self, "axis_types", types)
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
        axis_types: object = None,
        **kwargs: Unpack[Placed],
    ) -> "AbstractMesh":
        """The mesh with some parts changed."""
        placed: Placed = {"abstract_device": self.abstract_device}
        placed.update(kwargs)
        return AbstractMesh(
            self.sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **placed,
        )

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> "AbstractMesh":
        """The mesh with the types of some axes changed."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        types = tuple([name_to_type.get(name, kind) for name, kind in pairs])
        return self.update(axis_types=types)

    def refuse(self, what: str) -> NoReturn:
        """Raise ValueError: this needs devices."""
        raise ValueError(f"an AbstractMesh has no {what}: it stands for any devices")

    def __getattr__(self, name: str) -> NoReturn:
        if name in OF_DEVICES:
            self.refuse(name)
        raise AttributeError(f"an AbstractMesh has no attribute {name!r}")

    def key(self) -> tuple[object, ...]:
        return (self.sizes, self.axis_names, self.axis_types, self.abstract_device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        axes = self.text() if self.axis_names else f"(), {self.text()}"
        device = self.abstract_device
        return f"AbstractMesh({axes}{f', {device.text()}' if device else ''})"

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        from verax.backend.placement.views import mesh_page

        device = self.abstract_device
        kind = f" of kind {device.device_kind}" if device else ""
        return mesh_page(f"AbstractMesh for {{}}{kind}", self, None)

    def __reduce__(self) -> tuple[object, ...]:
        return rebuilt, self.key()


def rebuilt(
    sizes: tuple[int, ...],
    names: tuple[str, ...],
    types: AxisTypes,
    device: AbstractDevice | None,
) -> AbstractMesh:
    """Makes the abstract mesh of a pickle."""
    return AbstractMesh(sizes, names, types, abstract_device=device)


def abstract_mesh_of(mesh: BaseMesh, first: Device) -> AbstractMesh:
    """A mesh without its devices, of which `first` is one."""
    if not mesh.axis_names:
        return AbstractMesh((), ())
    cores = getattr(first, "core_count", None)
    device = AbstractDevice(first.device_kind, cores, first.platform)
    return AbstractMesh(
        mesh.axis_sizes, mesh.axis_names, mesh.axis_types, abstract_device=device
    )
