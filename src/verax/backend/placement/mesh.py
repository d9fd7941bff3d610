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
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ContextDecorator
from functools import partial
from math import prod
from operator import index
from types import TracebackType
from typing import Any, ClassVar, Final, NoReturn

import numpy as np
from attrs import field, frozen

from verax.backend.runtime.client import (
    Client,
    Device,
    default_client,
    devices as all_devices,
)
from verax.ir.meshes import (
    AxisType,
    AxisTypes,
    BaseMesh,
    MeshAxes,
    Terms,
    UnreducedKind,
    as_names,
    braced,
    checked_names,
    checked_types,
)
from verax.ir.records import ReprMixin, hiding
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE, refresh_own

__all__ = ["UNCONSTRAINED", "AxisType", "Mesh", "PartitionSpec", "make_mesh"]


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
    if isinstance(entry, tuple | list) and any([type(a) is tuple for a in entry]):
        raise ValueError(
            "A tuple inside PartitionSpec cannot contain a nested tuple, but got "
            f"{entry!r}: name the axes of a dimension in one tuple"
        )
    raise TypeError(
        "a PartitionSpec has an axis name, a tuple of names, None or UNCONSTRAINED for "
        f"each dimension, not {entry!r}"
    )


def as_axis_set(name: str, axes: object) -> frozenset[str]:
    """The axes that `PartitionSpec` takes as `name`."""
    if not isinstance(axes, set | frozenset):
        raise TypeError(f"PartitionSpec takes a set as {name}, not {axes!r}")
    if None in axes:
        raise ValueError(f"{name} cannot contain None, but got {axes!r}")
    if not all(isinstance(axis, str) for axis in axes):
        raise ValueError(f"PartitionSpec takes names of mesh axes in {name}: {axes!r}")
    return frozenset(axes)


class PartitionSpec:
    """The mesh axes that split each dimension; dimensions without entry are whole.

    Along `unreduced` axes, which are Explicit, the devices hold terms of the value,
    which is their sum, or what else `unreduced_kind` says. Along `reduced` axes each
    holds the value, and terms of its cotangent.

    Raises:
        TypeError: an entry is not a name, tuple of names, None or `UNCONSTRAINED`,
            `unreduced` or `reduced` is not a set, or `unreduced_kind` not a kind.
        ValueError: an axis occurs in two of `partitions`, `unreduced` and `reduced`, or
            there is an `unreduced_kind` without unreduced axes.
    """

    __module__ = "verax.sharding"

    transient: ClassVar[bool] = False

    __slots__ = ("partitions", "reduced", "unreduced", "unreduced_kind")
    UNCONSTRAINED = UNCONSTRAINED
    partitions: tuple[Partition, ...]
    unreduced: frozenset[str]
    reduced: frozenset[str]
    unreduced_kind: UnreducedKind | None

    def __init__(
        self,
        *partitions: object,
        unreduced: Set[str] = frozenset(),
        reduced: Set[str] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        kind = UnreducedKind.sum if unreduced and unreduced_kind is None else None
        fields = {
            "partitions": tuple(map(as_partition, partitions)),
            "unreduced": as_axis_set("unreduced", unreduced),
            "reduced": as_axis_set("reduced", reduced),
            "unreduced_kind": kind if unreduced_kind is None else unreduced_kind,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if unreduced or reduced or unreduced_kind is not None:
            check_terms(self)

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError(
            "Subclassing `verax.P` is prohibited: programs compare specs by their "
            f"entries, so {cls.__name__} would be forgotten; wrap one instead"
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a PartitionSpec is immutable: make a new one")

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, index: int) -> Partition:
        return self.partitions[index]

    def __add__(self, other: "PartitionSpec | tuple[object, ...]") -> "PartitionSpec":
        if isinstance(other, PartitionSpec):
            if self.unreduced_kind != other.unreduced_kind:
                raise TypeError(
                    f"PartitionSpecs that are added have one unreduced_kind: {self} "
                    f"and {other}"
                )
            return self.update(
                [*self, *other],
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if isinstance(other, tuple):
            check_no_terms(self, other)
            return PartitionSpec(*self, *other)
        return NotImplemented

    def __radd__(self, other: tuple[object, ...]) -> "PartitionSpec":
        if isinstance(other, tuple):
            check_no_terms(self, other, "__radd__")
            return PartitionSpec(*other, *self)
        return NotImplemented

    def padded(self, ndim: int) -> "PartitionSpec":
        """The spec with an entry for each of `ndim` dimensions."""
        return self.update([*self, *[None] * (ndim - len(self))])

    def index(self, value: object) -> int:
        """The first dimension with this entry.

        Raises:
            ValueError: there is none.
        """
        return self.partitions.index(as_partition(value))

    def count(self, value: object) -> int:
        """The number of dimensions that have this entry."""
        return self.partitions.count(as_partition(value))

    def update(
        self, partitions: Sequence[object] | None = None, **sets: object
    ) -> "PartitionSpec":
        """A spec with other entries; `sets` are its other arguments that change."""
        return PartitionSpec(
            *self if partitions is None else partitions, **{**self.terms(), **sets}
        )

    def terms(self) -> dict[str, Any]:
        """The arguments by keyword that are not as they are by default."""
        named = {
            "unreduced": self.unreduced,
            "reduced": self.reduced,
            "unreduced_kind": self.unreduced_kind,
        }
        return {name: value for name, value in named.items() if value}

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return (
                self.partitions == other.partitions
                and self.unreduced == other.unreduced
                and self.reduced == other.reduced
                and self.unreduced_kind == other.unreduced_kind
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.partitions, self.unreduced, self.reduced))

    def __repr__(self) -> str:
        parts = list(map(repr, self.partitions))
        for name, value in self.terms().items():
            kind = isinstance(value, UnreducedKind)
            shown = value.name if kind else braced(list(map(repr, sorted(value))))
            parts.append(f"{name}={shown}")
        comma = "," if len(parts) == len(self.partitions) == 1 else ""  # as a tuple
        return f"P({', '.join(parts)}{comma})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(PartitionSpec, **self.terms()), self.partitions


def spec_with(splits: Sequence[object], terms: Terms) -> PartitionSpec:
    """The spec of a type whose dimensions are split so."""
    if not terms:
        return PartitionSpec(*splits)
    return PartitionSpec(
        *splits,
        unreduced=frozenset(terms.unreduced),
        reduced=frozenset(terms.reduced),
        unreduced_kind=terms.kind if terms.unreduced else None,
    )


def check_no_terms(
    spec: PartitionSpec, other: tuple[object, ...], method: str = "__add__"
) -> None:
    """Raise TypeError if a spec cannot be joined with a tuple."""
    if spec.unreduced or spec.reduced:
        raise TypeError(
            f"unreduced in `{method}` of PartitionSpec: a tuple, {other}, cannot be "
            f"added to {spec}, which has unreduced or reduced axes; make a "
            "PartitionSpec of it"
        )


def check_terms(spec: PartitionSpec) -> None:
    """Raise unless unreduced and reduced axes go with each other and the partitions."""
    kind = spec.unreduced_kind
    if kind is not None and not isinstance(kind, UnreducedKind):
        raise TypeError(
            f"Expected unreduced_kind to be of type UnreducedKind, but got {kind!r}"
        )
    if kind is not None and not spec.unreduced:
        raise ValueError(f"{spec} has an unreduced_kind, but no unreduced axes")
    if spec.unreduced & spec.reduced:
        raise ValueError(
            "`unreduced` and `reduced` axes of a PartitionSpec cannot overlap, got "
            f"{spec}"
        )
    for entry in spec.partitions:
        axes = (entry,) if isinstance(entry, str) else entry
        used = set(axes) if isinstance(axes, tuple) else set()
        for what in ("unreduced", "reduced"):
            if used & getattr(spec, what):
                raise ValueError(
                    f"partitions cannot overlap with {what} axes passed to "
                    f"PartitionSpec, got {spec}"
                )


@frozen(repr=False)
class AbsentDevice(ReprMixin):
    """Stands for a device that this process does not see.

    Programs for more devices than there are can be lowered, but not compiled.
    """

    __module__ = "verax.sharding"

    id: int

    @property
    def client(self) -> Client:
        """The client of the process, for which programs are lowered."""
        return default_client()

    @property
    def process_index(self) -> int:
        """A process that is not there."""
        return -1

    @property
    def platform(self) -> str:
        """That of the process."""
        return self.client.platform

    @property
    def device_kind(self) -> str:
        """That of the devices of the process."""
        return self.client.devices()[0].device_kind

    def __str__(self) -> str:
        return f"absent:{self.id}"


class AnyDevice(AbsentDevice):
    """Stands for a device of the program that names it, whichever it runs on."""

    __module__ = "verax.sharding"

    def __str__(self) -> str:
        return f"any:{self.id}"


def as_device_array(devices: object) -> np.ndarray:
    """Devices as a read-only array of objects; None alone stands for no device."""
    array = np.array(devices, dtype=object)
    if array.ndim == 0 and array.item() is None:
        return NO_DEVICES
    for device in array.flat:
        if not isinstance(device, Device | AbsentDevice):
            raise TypeError(f"a Mesh is made of verax.devices(), not of {device!r}")
    if len(set(array.flat)) != array.size:
        raise ValueError("a Mesh can hold each device only once")
    array.flags.writeable = False
    return array


NO_DEVICES: Final = np.array(None, object)
NO_DEVICES.flags.writeable = False


class InNotebooks(BaseMesh):
    """What notebooks show of a mesh with devices."""

    __slots__ = ()

    devices: np.ndarray

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        from verax.backend.placement.views import mesh_page

        return mesh_page("Mesh of {}", self, self.devices)


@frozen(eq=False, repr=False)
class Mesh(InNotebooks, ContextDecorator):
    """An array of devices whose axes have names.

    Within `with mesh:` or after `verax.set_mesh(mesh)`, functions that take shardings
    also take a bare `PartitionSpec`. Along the axes the compiler decides how values are
    split, unless `axis_types` says otherwise; `make_mesh` makes `Explicit` axes.

    Raises:
        TypeError: an element is not a device, a name not a string, or an axis type no
            `AxisType`.
        ValueError: the numbers of axes and names differ, or a name or a device occurs
            twice.

    >>> import numpy as np, verax
    >>> mesh = Mesh(np.array(verax.devices()[:1]), ("x",))
    >>> mesh.shape["x"], mesh.axis_names, mesh.size
    (1, ('x',), 1)
    """

    __dir__ = hiding(
        "are_all_axes_explicit_or_manual axes axes_of is_scalar key only text transient"
    )

    __module__ = "verax.sharding"

    transient: ClassVar[bool] = False

    devices: np.ndarray = field(converter=as_device_array)
    axis_names: tuple[str, ...] = field(converter=as_names)
    axis_types: AxisTypes = field(default=None)

    def __attrs_post_init__(self) -> None:
        names = self.axis_names
        checked_names(names, "a Mesh")
        if len(names) != self.devices.ndim:
            raise ValueError(
                "a Mesh needs one name for each axis of its devices: the ndim of its "
                f"first argument is {self.devices.ndim}, but the names are {names}"
            )
        types = checked_types(self.axis_types, names)
        object.__setattr__(self, "axis_types", types)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def size(self) -> int:
        """The number of devices."""
        return 0 if self.devices is NO_DEVICES else self.devices.size

    @property
    def empty(self) -> bool:
        return self.size == 0

    @property
    def is_scalar(self) -> bool:
        """Whether it is one device without axes."""
        return self.size == 1 and not self.axis_names

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, in the shape of the mesh."""
        ids = [device.id for device in self.devices.flat]
        return np.array(ids, int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return [d for d in self.devices.flat if d.process_index == process_of(d)]

    @property
    def is_multi_process(self) -> bool:
        """Whether other processes have some of the devices."""
        return len(self.local_devices) != self.size

    @property
    def local_mesh(self) -> "Mesh":
        """The part of the mesh whose devices are of this process.

        Raises:
            ValueError: they are not a block of the mesh.
        """
        if self.empty or not self.is_multi_process:
            return self
        local = np.vectorize(lambda d: d.process_index == process_of(d))(self.devices)
        values = np.nonzero(local)
        block = (
            tuple([slice(i.min(), i.max() + 1) for i in values]) if local.any() else ()
        )
        if not block or not local[block].all():
            raise ValueError(f"the devices of this process are not a block of {self}")
        return self.update(devices=self.devices[block])

    @property
    def abstract_mesh(self) -> Any:
        """The mesh without its devices, an `AbstractMesh`."""
        from verax.backend.placement.abstract_mesh import abstract_mesh_of

        return abstract_mesh_of(self, self.devices.flat[0])

    def update(
        self,
        devices: object = None,
        axis_names: str | Sequence[str] | None = None,
        axis_types: AxisTypes | None = None,
    ) -> "Mesh":
        """The mesh with some parts changed."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> "Mesh":
        """The mesh with the types of some axes changed."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        types = tuple([name_to_type.get(name, kind) for name, kind in pairs])
        return self if types == self.axis_types else self.update(axis_types=types)

    @property
    def axes(self) -> MeshAxes:
        """The mesh as the data that programs hold."""
        numbers = numbers_of(self.devices)
        return MeshAxes(self.axis_names, self.devices.shape, numbers)

    def key(self) -> object:
        devices = tuple(self.devices.flat)
        return (self.axis_names, self.devices.shape, devices, self.axis_types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}"
            f"{'' if self.empty else f', axis_types={self.axis_types}'})"
        )

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self.text()})"

    def __enter__(self) -> "Mesh":
        around = current_mesh()
        traced = not STATE.interpreter.immediate
        if traced and around is not None and around.size != self.size:
            raise ValueError(
                "a `with mesh:` within a traced function cannot change the size of the "
                f"mesh: {around} is in force, with {around.size} devices, and {self} "
                f"has {self.size}"
            )
        enclose((*STATE.meshes, self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        enclose(STATE.meshes[:-1])


def numbers_of(devices: np.ndarray) -> tuple[int, ...]:
    """The numbers of the devices of a mesh; none if they may be any."""
    known = list(devices.flat)
    anywhere = bool(known) and isinstance(known[0], AnyDevice)
    return () if anywhere else tuple([device.id for device in known])


def over(mesh: BaseMesh, devices: np.ndarray) -> Mesh:
    """A mesh over these devices."""
    values = devices.reshape(mesh.axis_sizes)
    return Mesh(values, mesh.axis_names, mesh.axis_types)


@pure()
def standing_for(mesh: BaseMesh, kind: type[AbsentDevice]) -> Mesh:
    """A mesh over devices that this process does not see, or does not know yet."""
    return over(mesh, np.array([kind(i) for i in range(mesh.size)], object))


def process_of(device: Device) -> int:
    """The number of this process among those that share the device's client."""
    return device.client.process_index()


def enclose(meshes: tuple[Mesh, ...]) -> None:
    """Note which meshes are in force in this thread, the innermost last."""
    own = vars(STATE)
    if meshes:
        own.update(meshes=meshes, mesh=meshes[-1:])
    else:
        own.pop("meshes", None)
        own.pop("mesh", None)
    refresh_own()


def current_mesh() -> Mesh | None:
    """The innermost mesh in force in this thread."""
    result = STATE.mesh
    mesh: Mesh | None = result[0] if result else None
    return mesh


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: str | Sequence[str],
    axis_types: object = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh of these sizes over the first of `devices`, by default of all devices.

    Its axes are `Explicit` unless `axis_types` says otherwise: the types of values say
    how they are split. Where the compiler shall decide, pass `AxisType.Auto` for each.

    Raises:
        ValueError: there are too few devices, or a size is not positive.

    >>> make_mesh((1,), ("x",))
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))
    """
    if not all([hasattr(size, "__index__") for size in axis_sizes]):
        raise ValueError(
            "`axis_sizes` passed to `make_mesh` should be a sequence of ints, not "
            f"{axis_sizes!r}"
        )
    shape = tuple([index(size) for size in axis_sizes])
    if any([size < 1 for size in shape]):
        raise ValueError(f"make_mesh: sizes of axes must be positive, not {shape}")
    count = prod(shape)
    out = list(all_devices() if devices is None else devices)
    if count > len(out):
        raise ValueError(
            f"a mesh of shape {shape} takes {count} devices, but there are "
            f"{len(out)}; on CPU set their number with verax.config.update("
            '"num_cpu_devices", n) before the first array is made'
        )
    names = as_names(axis_names)
    types = checked_types(axis_types, names, AxisType.Explicit)
    return Mesh(np.array(out[:count], object).reshape(shape), names, types)
