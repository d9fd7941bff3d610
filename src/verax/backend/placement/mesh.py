"""Meshes of devices, and which of their axes split which dimensions (floor 4).

One idea: a mesh is an array of devices with a name for each axis, and a spec has an
entry for each dimension of an array: an axis, several, or None; both are values.

    >>> from verax.backend.placement.mesh import PartitionSpec as P
    >>> P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    >>> P("x") == P(("x",))
    True
"""

import enum
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from math import prod
from types import TracebackType
from typing import Any, ClassVar, Final

import numpy as np
from attrs import field, frozen

from verax.backend.runtime.client import Device, devices as all_devices
from verax.ir.meshes import MeshAxes
from verax.ir.records import Unchanging
from verax.rules.values.state import STATE, refresh_own

__all__ = ["UNCONSTRAINED", "AxisType", "Mesh", "PartitionSpec", "make_mesh"]


class AxisType(enum.Enum):
    """Who decides along an axis: verax has only `Auto`, where the compiler does."""

    __module__ = "verax.sharding"

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


class Unconstrained(enum.Enum):
    """The type of `PartitionSpec.UNCONSTRAINED`."""

    UNCONSTRAINED = enum.auto()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED: Final = Unconstrained.UNCONSTRAINED
type Partition = str | tuple[str, ...] | Unconstrained | None


def as_partition(entry: object) -> Partition:
    """One entry of a spec in its shortest form."""
    if entry is None or entry is UNCONSTRAINED or isinstance(entry, str):
        return entry
    if isinstance(entry, tuple | list) and all(isinstance(a, str) for a in entry):
        names = tuple(entry)
        return None if not names else names[0] if len(names) == 1 else names
    raise TypeError(
        "a PartitionSpec has an axis name, a tuple of names, None or UNCONSTRAINED for "
        f"each dimension, not {entry!r}"
    )


class PartitionSpec:
    """The mesh axes that split each dimension; dimensions without entry are whole.

    Raises:
        TypeError: an entry is not a name, tuple of names, None or `UNCONSTRAINED`.
    """

    __module__ = "verax.sharding"

    transient: ClassVar[bool] = False

    __slots__ = ("partitions",)
    UNCONSTRAINED = UNCONSTRAINED
    partitions: tuple[Partition, ...]

    def __init__(self, *partitions: Any) -> None:
        object.__setattr__(self, "partitions", tuple(map(as_partition, partitions)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a PartitionSpec is immutable: make a new one")

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, index: int) -> Partition:
        return self.partitions[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self.partitions == other.partitions
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.partitions)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self.partitions))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, self.partitions


def as_device_array(devices: Any) -> np.ndarray:
    """Devices as a read-only array of objects."""
    array = np.array(devices, dtype=object)
    for device in array.flat:
        if not isinstance(device, Device):
            raise TypeError(f"a Mesh is made of verax.devices(), not of {device!r}")
    if len(set(array.flat)) != array.size:
        raise ValueError("a Mesh can hold each device only once")
    array.flags.writeable = False
    return array


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


@frozen(eq=False, repr=False)
class Mesh(Unchanging):
    """An array of devices whose axes have names.

    Within `with mesh:`, functions that take shardings also take a bare `PartitionSpec`.

    Raises:
        TypeError: an element is not a device, or a name is not a string.
        ValueError: the numbers of axes and names differ, or a name or a device occurs
            twice.

    >>> import numpy as np, verax
    >>> mesh = Mesh(np.array(verax.devices()[:1]), ("x",))
    >>> mesh.shape["x"], mesh.axis_names, mesh.size
    (1, ('x',), 1)
    """

    __module__ = "verax.sharding"

    transient: ClassVar[bool] = False

    devices: np.ndarray = field(converter=as_device_array)
    axis_names: tuple[str, ...] = field(converter=as_names)
    axis_types: Any = field(default=None)

    def __attrs_post_init__(self) -> None:
        names = self.axis_names
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"the axis names of a Mesh must be strings, not {names!r}")
        if len(names) != self.devices.ndim:
            raise ValueError(
                f"a Mesh needs one name for each axis of its devices: got {names} for "
                f"an array of shape {self.devices.shape}"
            )
        if len(set(names)) != len(names):
            raise ValueError(f"the axis names of a Mesh must differ, got {names}")
        check_axis_types(self.axis_types, names)

    @property
    def shape(self) -> "OrderedDict[str, int]":
        """The number of devices along each axis, by name."""
        sizes = zip(self.axis_names, self.devices.shape, strict=True)
        return OrderedDict(sizes)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.devices.size

    @property
    def empty(self) -> bool:
        return self.devices.size == 0

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, in the shape of the mesh."""
        ids = [device.id for device in self.devices.flat]
        return np.array(ids, int).reshape(self.devices.shape)

    @property
    def axes(self) -> MeshAxes:
        """The mesh as the data that programs hold."""
        ids = tuple([device.id for device in self.devices.flat])
        return MeshAxes(self.axis_names, self.devices.shape, ids)

    def key(self) -> object:
        return (self.axis_names, self.devices.shape, tuple(self.devices.flat))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        axes = ", ".join(f"'{name}': {size}" for name, size in self.shape.items())
        return f"Mesh({axes})"

    def __enter__(self) -> "Mesh":
        enclose((*STATE.meshes, self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        enclose(STATE.meshes[:-1])


def enclose(meshes: tuple[Mesh, ...]) -> None:
    """Note that this thread is inside `with` blocks of these meshes."""
    own = vars(STATE)
    if meshes:
        own.update(meshes=meshes, mesh=meshes[-1:])
    else:
        own.pop("meshes", None)
        own.pop("mesh", None)
    refresh_own()


def check_axis_types(types: object, names: tuple[str, ...]) -> None:
    """Raise unless the compiler decides along every axis."""
    if types is None:
        return
    given = types if isinstance(types, tuple) else (types,)
    if len(given) != len(names) or not all(isinstance(t, AxisType) for t in given):
        raise ValueError(
            f"axis_types has one AxisType for each of the axes {names}, not {types!r}"
        )
    if any(t is not AxisType.Auto for t in given):
        raise NotImplementedError(
            "every axis of a verax mesh is AxisType.Auto, where the compiler decides "
            f"how values are split; got {types!r}"
        )


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: str | Sequence[str],
    axis_types: Any = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh of these sizes over `devices`, by default the first of all devices.

    Raises:
        ValueError: there are too few devices, or too many were passed.

    >>> make_mesh((1,), ("x",))
    Mesh('x': 1)
    """
    shape = tuple(int(size) for size in axis_shapes)
    count = prod(shape)
    found = list(all_devices() if devices is None else devices)
    if count > len(found) or (devices is not None and count != len(found)):
        raise ValueError(
            f"a mesh of shape {shape} takes {count} devices, but there are "
            f"{len(found)}; on CPU set their number with verax.config.update("
            '"num_cpu_devices", n) before the first array is made'
        )
    return Mesh(np.array(found[:count], object).reshape(shape), axis_names, axis_types)


def current_mesh() -> Mesh | None:
    """The mesh of the innermost `with mesh:` of this thread."""
    found = STATE.mesh
    mesh: Mesh | None = found[0] if found else None
    return mesh
