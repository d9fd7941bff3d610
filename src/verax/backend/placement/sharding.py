"""Shardings: an array on one device, or spread over a mesh (floor 4).

One idea: a sharding is a value that says for every device which part of an array it
holds; jaxlib's own classes are made from it, and never seen by users.

    >>> import verax
    >>> from verax.backend.placement.sharding import SingleDeviceSharding
    >>> SingleDeviceSharding(verax.devices()[0]).shard_shape((4, 2))
    (4, 2)
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property
from math import prod
from typing import ClassVar, Final, TypedDict, Unpack

import numpy as np
from attrs import field, frozen
from jaxlib import _hlo, _jax

from verax.backend.placement.mesh import (
    UNCONSTRAINED,
    AbsentDevice,
    Mesh,
    PartitionSpec,
)
from verax.backend.runtime.buffers import single_device
from verax.backend.runtime.client import Device, devices as all_devices
from verax.ir.avals import Shape
from verax.ir.meshes import (
    NO_TERMS,
    AxisType,
    BaseMesh,
    Layout,
    Split,
    UnreducedKind,
    mesh_type,
    named_terms,
)
from verax.ir.records import ReprMixin, Unchanging, hiding
from verax.rules.values.memo import pure

__all__ = ["NamedSharding", "Sharding", "SingleDeviceSharding"]

HloSharding = _hlo.HloSharding
RuntimeSharding = _jax.Sharding
type Index = tuple[slice, ...]
type Words = str | Callable[[], str]
CACHE = 1 << 12
DEVICE: Final = "device"
"""The kind of a device's own memory, on every platform."""
PINNED_HOST: Final = "pinned_host"
"""The kind of the host's memory that the device reads and writes itself."""
KINDS: Final = (DEVICE, PINNED_HOST, "unpinned_host")
"""All kinds of memory that devices have."""


def own_kind(kind: str | None) -> str | None:
    """The kind of memory, for comparisons: None is the device's own."""
    return None if kind == DEVICE else kind


class Parts(TypedDict):
    """What a `NamedSharding` is made of."""

    mesh: BaseMesh
    spec: PartitionSpec
    memory_kind: str | None


class Changes(TypedDict, total=False):
    """Parts of a `NamedSharding` in place of its own."""

    mesh: BaseMesh
    spec: PartitionSpec
    memory_kind: str | None


@frozen(repr=False)
class Tiling(ReprMixin):
    """The number of tiles each dimension has, and the tile of each device, by number.

    Where devices hold terms of the values, `terms` has for each which of them.
    """

    transient: ClassVar[bool] = False

    counts: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    terms: tuple[int, ...] = ()
    kind: UnreducedKind | None = None


def said(what: Words) -> str:
    """The name of something in a message, worked out for the message alone."""
    return what if isinstance(what, str) else what()


class Sharding(Unchanging):
    """A layout on devices; see `SingleDeviceSharding` and `NamedSharding`."""

    __dir__ = hiding(
        "concrete counts explicit kind layout ordered other_memory "
        "replicated_axes splits tiling transient"
    )

    __module__ = "verax.sharding"

    transient: ClassVar[bool] = False
    kind: str | None

    @property
    def explicit(self) -> bool:
        """Whether axes of its mesh stand in the types of arrays that lie so."""
        return False

    @property
    def ordered(self) -> tuple[Device, ...]:
        """The devices by their numbers, the order in which the runtime has them."""
        raise NotImplementedError

    def tiling(self, ndim: int) -> Tiling:
        """The tiles of an array with `ndim` dimensions."""
        raise NotImplementedError

    def counts(self, ndim: int) -> tuple[int, ...]:
        """The number of tiles each of `ndim` dimensions has."""
        return self.tiling(ndim).counts

    @property
    def device_set(self) -> set[Device]:
        """The devices, those of other processes included."""
        return set(self.ordered)

    @property
    def num_devices(self) -> int:
        return len(self.ordered)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process."""
        return {d for d in self.ordered if is_local(d)}

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The devices of this process in order, by the name that orbax asks for."""
        return tuple(filter(is_local, self.ordered))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all the devices."""
        return all(map(is_local, self.ordered))

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return True

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory of the devices: their own unless another was asked for."""
        return self.kind or DEVICE

    @property
    def other_memory(self) -> str | None:
        """The kind of memory if it is not the devices' own."""
        return None if self.kind == DEVICE else self.kind

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """The shape of the part on each device.

        Raises:
            ValueError: a size is not a multiple of the number of parts.
        """
        shape = tuple(global_shape)
        self.check(shape)
        counts = self.counts(len(shape))
        return tuple([n // count for n, count in zip(shape, counts, strict=True)])

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """The part of the array that each device holds, as an index."""
        shape = tuple(global_shape)
        sizes = self.shard_shape(shape)
        places = self.tiling(len(shape)).places
        return {
            device: index_of(place, sizes, shape)
            for device, place in zip(self.ordered, places, strict=True)
        }

    def addressable_devices_indices_map(
        self, global_shape: Sequence[int]
    ) -> dict[Device, Index]:
        """As `devices_indices_map`, for the devices of this process."""
        out = self.devices_indices_map(global_shape)
        return {device: index for device, index in out.items() if is_local(device)}

    def is_equivalent_to(self, other: "Sharding", ndim: int) -> bool:
        """Whether both put the same parts of every such array on the same devices."""
        if self is other:
            return True
        same = self.ordered == other.ordered and own_kind(self.kind) == own_kind(
            other.kind
        )
        return same and self.tiling(ndim) == other.tiling(ndim)

    def check(self, shape: Shape, what: Words = "an array") -> None:
        """Raise ValueError unless an array of this shape can lie so."""

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise ValueError unless an array of this shape has enough dimensions."""
        self.check(tuple(aval_shape))

    def with_memory_kind(self, kind: str) -> "Sharding":
        """The same place in another kind of memory of the devices.

        Raises:
            ValueError: they have none of this kind.
        """
        raise NotImplementedError

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process has some of the devices."""
        return any(map(is_local, self.ordered))


@frozen(repr=False, cache_hash=True)
class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Raises:
        TypeError: `device` is not a device.
    """

    __module__ = "verax.sharding"

    device: Device = field()
    kind: str | None = field(default=None, alias="memory_kind", eq=own_kind)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.device, Device):
            raise TypeError(
                "SingleDeviceSharding takes one of verax.devices(), not "
                f"{self.device!r}"
            )
        if self.kind is not None:
            check_memory_kind(self.kind, self.device)

    def with_memory_kind(self, kind: str) -> "SingleDeviceSharding":
        return SingleDeviceSharding(self.device, memory_kind=kind)

    @property
    def ordered(self) -> tuple[Device, ...]:
        return (self.device,)

    def tiling(self, ndim: int) -> Tiling:
        return Tiling((1,) * ndim, ((0,) * ndim,))

    def __repr__(self) -> str:
        memory = f", memory_kind={self.kind}" if self.kind else ""
        return f"SingleDeviceSharding(device={self.device!r}{memory})"

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        from verax.ir.text.html import report, table

        facts = [("device", str(self.device)), ("memory", self.kind or DEVICE)]
        return report(table("SingleDeviceSharding", (), facts))


@frozen(repr=False, cache_hash=True)
class NamedSharding(Sharding):
    """An array over a mesh: `spec` names the axes that split each dimension.

    Raises:
        TypeError: `mesh` is not a `Mesh`, or `spec` is not a `PartitionSpec`.
        ValueError: the spec names an axis that the mesh lacks, or an axis twice.

    >>> import verax
    >>> mesh = verax.make_mesh((1,), ("x",))
    >>> NamedSharding(mesh, PartitionSpec("x"))
    NamedSharding(mesh=Mesh('x': 1, axis_types=(Explicit,)), spec=P('x',))
    """

    __module__ = "verax.sharding"

    mesh: BaseMesh = field()
    spec: PartitionSpec = field()
    kind: str | None = field(default=None, alias="memory_kind", eq=own_kind)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.mesh, BaseMesh):
            raise TypeError(f"NamedSharding takes a verax Mesh, not {self.mesh!r}")
        if not isinstance(self.spec, PartitionSpec):
            raise TypeError(
                f"Unexpected {self.spec!r}: NamedSharding takes a PartitionSpec, as in "
                "P('x', None) for a first dimension that the axis x splits"
            )
        if self.kind is not None and isinstance(self.mesh, Mesh):
            check_memory_kind(self.kind, *self.mesh.devices.flat[:1])
        elif self.kind not in (None, *KINDS):
            raise ValueError(
                f"Got invalid memory kind {self.kind!r}: those of devices are "
                f"{', '.join(KINDS)}"
            )
        used: set[str] = set()
        for name in [name for split in self.splits for name in split or ()]:
            if name not in self.mesh.axis_names:
                raise ValueError(
                    f"Resource axis: {name} of {self.spec} is not found in mesh: "
                    f"{self.mesh.axis_names}."
                )
            if name in used:
                raise ValueError(
                    f"{self.spec} uses the axis {name!r} of {self.mesh} twice; an axis "
                    "can split one dimension only"
                )
            used.add(name)
        if None in self.splits and AxisType.Auto not in self.mesh.axis_types:
            raise ValueError(
                f"{self.spec} cannot contain `P.UNCONSTRAINED` when no mesh "
                f"axis_types are `Auto`: they are {self.mesh.axis_types}, and leave "
                "nothing to the compiler"
            )
        if self.spec.unreduced or self.spec.reduced:
            check_explicit_terms(self.mesh, self.spec)

    @cached_property
    def explicit(self) -> bool:
        return AxisType.Explicit in self.mesh.axis_types

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """The spec with the axes of every dimension as a tuple."""
        return tuple([as_split(entry) for entry in self.spec])

    @property
    def memory_kind(self) -> str | None:
        """As that of every sharding; None if none was asked for and no device known."""
        return super().memory_kind if isinstance(self.mesh, Mesh) else self.kind

    @property
    def concrete(self) -> Mesh:
        """The mesh, which has devices.

        Raises:
            ValueError: it is abstract.
        """
        if not isinstance(self.mesh, Mesh):
            raise ValueError(f"{self.mesh} has no devices: it stands for any")
        return self.mesh

    @cached_property
    def layout(self) -> Layout:
        """The sharding as the data that programs hold."""
        terms = named_terms(self.spec, mesh_type(self)) if self.explicit else NO_TERMS
        return Layout(self.concrete.axes, self.splits, terms)

    @cached_property
    def ordered(self) -> tuple[Device, ...]:
        return tuple(sorted(self.concrete.devices.flat, key=lambda device: device.id))

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of every such array on the same devices.

        Over meshes without devices: whether they do over equal ones.
        """
        if isinstance(self.mesh, Mesh) or self is other:
            return super().is_equivalent_to(other, ndim)
        if not isinstance(other, NamedSharding) or self.mesh != other.mesh:
            return False
        one, two = [
            (dividing(place, ndim), place.spec.unreduced, own_kind(place.kind))
            for place in (self, other)
        ]
        return one == two

    @property
    def replicated_axes(self) -> frozenset[str]:
        """The axes of the mesh along which every device holds the same."""
        used = {name for split in self.splits for name in split or ()}
        terms = self.spec.unreduced | self.spec.reduced
        return frozenset(self.mesh.axis_names) - used - terms

    def update(self, **changed: Unpack[Changes]) -> "NamedSharding":
        """The sharding with some of `mesh`, `spec` and `memory_kind` changed."""
        parts: Parts = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.kind}
        parts.update(changed)
        return NamedSharding(**parts)

    def with_memory_kind(self, kind: str) -> "NamedSharding":
        return self.update(memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        if self.spec.unreduced:
            return False
        sizes = self.mesh.shape
        return prod([sizes[a] for split in self.splits for a in split or ()]) == 1

    def tiling(self, ndim: int) -> Tiling:
        return named_tiling(self, ndim)

    def counts(self, ndim: int) -> tuple[int, ...]:
        sizes = self.mesh.shape
        out = [prod([sizes[name] for name in split or ()]) for split in self.splits]
        return (*out, *[1] * (ndim - len(out)))

    def check(self, shape: Shape, what: Words = "an array") -> None:
        check_rank(self, shape, what)
        for i, split in enumerate(self.splits):
            count = prod([self.mesh.shape[name] for name in split or ()])
            if shape[i] % count:
                axes = " and ".join(
                    f"{a!r} ({self.mesh.shape[a]})" for a in split or ()
                )
                raise ValueError(
                    "a sharding should evenly divide the shape, but for dimension "
                    f"{i} of {said(what)} of shape {shape}, {shape[i]} is not a "
                    f"multiple of {count}, the number of devices along {axes} of "
                    f"{self.mesh}"
                )

    def __repr__(self) -> str:
        memory = f", memory_kind={self.kind}" if self.kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec!r}{memory})"

    def _repr_html_(self) -> str:
        """Shows it in a notebook: the spec, and the devices that hold the same part."""
        from verax.backend.placement.views import axis_tables, mesh_page

        mesh, devices, groups = self.mesh, None, None
        if isinstance(mesh, Mesh) and mesh.size:
            devices, groups = mesh.devices, groups_of(self)
        memory = f" in {self.kind}" if self.kind else ""
        title = f"NamedSharding: {self.spec!r}{memory}"
        parts = axis_tables(title, split_rows(self), whole_rows(self))
        return mesh_page(f"{type(mesh).__name__} of {{}}", mesh, devices, groups, parts)


def split_rows(sharding: NamedSharding) -> list[tuple[str, str, str]]:
    """Each dimension of the spec: the axes that split it, and the number of parts."""
    rows = []
    for i, split in enumerate(sharding.splits):
        if split is None:
            rows.append((str(i), "left to the compiler", ""))
            continue
        count = prod([sharding.mesh.shape[name] for name in split])
        rows.append((str(i), ", ".join(split) or "not split", f"{count:,}"))
    return rows


def whole_rows(sharding: NamedSharding) -> list[tuple[str, str]]:
    """What devices along the other axes hold, and those axes."""
    spec, copies = sharding.spec, sharding.replicated_axes
    kinds = {"copies": copies, "unreduced": spec.unreduced, "reduced": spec.reduced}
    names = sharding.mesh.axis_names
    ordered = {what: [a for a in names if a in axes] for what, axes in kinds.items()}
    return [(what, ", ".join(axes)) for what, axes in ordered.items() if axes]


def groups_of(sharding: NamedSharding) -> dict[int, int]:
    """A number for each device; those that hold the same part have the same."""
    tiling = sharding.tiling(len(sharding.spec))
    terms = tiling.terms or (0,) * len(tiling.places)
    parts = zip(tiling.places, terms, strict=True)
    numbers: dict[object, int] = {}
    return {
        device.id: numbers.setdefault(part, len(numbers))
        for device, part in zip(sharding.ordered, parts, strict=True)
    }


class MemorySpace(Enum):
    """The memories of a device: its own, and that of the host; any of them."""

    __module__ = "verax.memory"
    __qualname__ = "Space"

    Device = auto()
    Host = auto()
    Any = auto()

    @property
    def kind(self) -> str | None:
        """The kind of memory that it means; None if it may be any."""
        if self is MemorySpace.Any:
            return None
        return DEVICE if self is MemorySpace.Device else PINNED_HOST


def dividing(place: NamedSharding, ndim: int) -> list[Split]:
    """The axes of more than one device that split each of `ndim` dimensions."""
    sizes = place.mesh.shape
    splits = [
        None if split is None else tuple([a for a in split if sizes[a] > 1])
        for split in place.splits
    ]
    return [*splits, *[()] * (ndim - len(splits))]


def check_memory_kind(kind: object, device: Device) -> None:
    """Raise unless a device has a memory of this kind.

    Raises:
        TypeError: it is not a string.
        ValueError: the device has none of the kind.
    """
    if not isinstance(kind, str):
        raise TypeError(f"memory_kind must be a string, not {kind!r}")
    if not is_local(device):
        return  # its memories are known to its own process
    known = [memory.kind for memory in device.addressable_memories()]
    if kind not in known:
        raise ValueError(
            f"Could not find memory addressable by device {device.device_kind}. Device "
            f"{device.device_kind} can address the following memory kinds: "
            f"{', '.join(known)}. Got memory kind: {kind}"
        )


def check_rank(place: Sharding, shape: Shape, what: Words = "an array") -> None:
    """Raise ValueError unless an array of this shape has enough dimensions."""
    if isinstance(place, NamedSharding) and len(place.splits) > len(shape):
        scalar = "" if shape else "For scalars the PartitionSpec should be P(): "
        raise ValueError(
            f"{scalar}Sharding {place} is only valid for values of rank at least "
            f"{len(place.splits)}, but was applied to a value of rank {len(shape)}: "
            f"{said(what)} of shape {shape}. Length of sharding.spec must be at most "
            "the number of dimensions"
        )


def as_split(entry: object) -> Split:
    """The axes of one entry of a spec; None where the compiler is free."""
    if entry is UNCONSTRAINED:
        return None
    if isinstance(entry, str):
        return (entry,)
    return entry if isinstance(entry, tuple) else ()


def is_local(device: Device) -> bool:
    return device.process_index == device.client.process_index()


def index_of(place: tuple[int, ...], sizes: Shape, shape: Shape) -> Index:
    """The index of one tile; dimensions that are not split are taken as a whole."""
    return tuple(
        [
            slice(None) if size == n else slice(i * size, (i + 1) * size)
            for i, size, n in zip(place, sizes, shape, strict=True)
        ]
    )


@pure(CACHE)
def named_tiling(sharding: NamedSharding, ndim: int) -> Tiling:
    """The tiles of a named sharding: positions along the axes, as mixed digits."""
    mesh = sharding.concrete
    whole: tuple[Split, ...] = ((),) * (ndim - len(sharding.splits))
    coordinates = dict(
        zip(mesh.axis_names, np.indices(mesh.devices.shape), strict=True)
    )
    counts, digits = [], []
    for split in (*sharding.splits, *whole):
        place = np.zeros(mesh.devices.shape, int)
        for name in split or ():
            place = place * mesh.shape[name] + coordinates[name]
        counts.append(prod([mesh.shape[name] for name in split or ()]))
        digits.append(place.reshape(-1).tolist())
    order = np.argsort(mesh.device_ids.reshape(-1), kind="stable").tolist()
    places = tuple([tuple([digit[i] for digit in digits]) for i in order])
    unreduced = [name for name in mesh.axis_names if name in sharding.spec.unreduced]
    if not unreduced:
        return Tiling(tuple(counts), places)
    term = np.zeros(mesh.devices.shape, int)
    for name in unreduced:
        term = term * mesh.shape[name] + coordinates[name]
    result = term.reshape(-1).tolist()
    terms = tuple([result[i] for i in order])
    return Tiling(tuple(counts), places, terms, sharding.spec.unreduced_kind)


def check_explicit_terms(mesh: BaseMesh, spec: PartitionSpec) -> None:
    """Raise ValueError unless the axes of terms are explicit ones of the mesh."""
    for what, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for axis in sorted(axes):
            if axis not in mesh.axis_names:
                raise ValueError(
                    f"{what} axes {axis!r} of {spec} not found in mesh {mesh}; its "
                    f"axes are {', '.join(map(repr, mesh.axis_names))}"
                )
            if axis not in mesh.explicit_axes:
                raise ValueError(
                    f"{what} axes can only refer to mesh axes of type Explicit, but "
                    f"{spec} names {axis!r} of {mesh}"
                )


def check_present(sharding: Sharding) -> None:
    """Raise ValueError unless there are such devices, for arrays to lie on."""
    if isinstance(sharding.ordered[0], AbsentDevice):
        raise ValueError(
            f"{sharding} has {sharding.num_devices} devices, but this process sees "
            f"only {len(all_devices())}: programs can be lowered for it, arrays cannot "
            "lie so"
        )


@pure(CACHE)
def runtime_sharding(sharding: Sharding, ndim: int) -> _jax.Sharding:
    """The sharding of arrays with `ndim` dimensions as jaxlib takes it.

    The tiles match the devices by construction: the runtime aborts where they do not.

    Raises:
        ValueError: this process does not see the devices.
    """
    check_present(sharding)
    devices = sharding.ordered
    if len(devices) == 1:
        return single_device(devices[0], sharding.other_memory)
    hlo = hlo_sharding(sharding.tiling(ndim), len(devices))
    return _jax.GSPMDSharding(_jax.DeviceList(devices), hlo, sharding.other_memory)


def hlo_sharding(tiling: Tiling, count: int) -> _hlo.HloSharding:
    """XLA's own form: an array of device positions, copies along its last dimension."""
    terms = max(tiling.terms, default=0) + 1
    parts = prod(tiling.counts) * terms
    if parts == 1:
        return _hlo.HloSharding.replicate()
    table = np.zeros((*tiling.counts, terms, count // parts), np.int64)
    used: dict[tuple[int, ...], int] = {}
    for position, tile in enumerate(tiling.places):
        place = (*tile, tiling.terms[position] if tiling.terms else 0)
        copy = used.get(place, 0)
        used[place] = copy + 1
        table[(*place, copy)] = position
    kinds = []
    if terms > 1:
        kinds.append(_hlo.OpSharding.Type.UNREDUCED)
    else:
        table = table[..., 0, :]
    if count > parts:
        kinds.append(_hlo.OpSharding.Type.REPLICATED)
    else:
        table = table[..., 0]
    return _hlo.HloSharding.subgroup_with_device_ordering(table, kinds)


def from_hlo(
    hlo: _hlo.HloSharding, devices: tuple[Device, ...], ndim: int, mesh: Mesh
) -> NamedSharding:
    """The sharding that XLA chose, over `mesh` if that can express it.

    Otherwise over a mesh that has an axis for each dimension that is split.
    """
    if hlo.is_replicated() or hlo.is_maximal():
        return NamedSharding(mesh, PartitionSpec())
    dims = list(hlo.tile_assignment_dimensions())
    dims += [len(devices) // prod(dims)] * (len(dims) == ndim)
    dims = [*dims[:ndim], prod(dims[ndim:])]
    table = np.array(hlo.tile_assignment_devices()).reshape(dims)
    tiles = np.empty((len(devices), ndim), int)
    for place in np.ndindex(*dims):
        tiles[table[place]] = place[:ndim]
    numbers = {device: i for i, device in enumerate(devices)}
    where = np.array([numbers[d] for d in mesh.devices.flat]).reshape(mesh.axis_sizes)
    spec = [axes_that_split(tiles[where, i], mesh, dims[i]) for i in range(ndim)]
    if None not in spec:
        return NamedSharding(mesh, PartitionSpec(*trimmed_spec(spec)))
    names = tuple([f"_{i}" for i in range(ndim)])
    order = np.array(devices, object)[table.reshape(-1)].reshape(dims)
    own = Mesh(order, (*names, "_copies"))
    split = [(name,) if n > 1 else () for name, n in zip(names, dims, strict=False)]
    return NamedSharding(own, PartitionSpec(*trimmed_spec(split)))


def trimmed_spec(spec: Sequence[Split]) -> list[Split]:
    """The entries up to the last that splits something."""
    last = max([i for i, split in enumerate(spec) if split], default=-1)
    return list(spec[: last + 1])


def axes_that_split(tiles: np.ndarray, mesh: Mesh, count: int) -> Split:
    """The axes whose coordinates, as mixed digits, are the tile numbers; else None."""
    if count == 1:
        return ()
    strides: list[tuple[int, str]] = []
    for axis, name in enumerate(mesh.axis_names):
        first = np.moveaxis(tiles, axis, 0)
        if first.shape[0] > 1 and not (first[1] == first[0]).all():
            strides.append((int((first[1] - first[0]).flat[0]), name))
    names = [name for _, name in sorted(strides, reverse=True)]
    coordinates: Mapping[str, np.ndarray] = dict(
        zip(mesh.axis_names, np.indices(mesh.axis_sizes), strict=True)
    )
    values = np.zeros(mesh.axis_sizes, int)
    for name in names:
        values = values * mesh.shape[name] + coordinates[name]
    same = prod([mesh.shape[name] for name in names]) == count
    return tuple(names) if same and bool((values == tiles).all()) else None
