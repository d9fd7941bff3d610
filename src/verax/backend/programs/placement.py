"""Placements: a program's devices, and the places of its inputs and outputs (floor 4).

One idea: computation follows data. Committed arrays claim their devices, all claims
must agree, and without any the default device computes; the answer is a value, part of
the key under which the program is kept::

    placement_of(jaxpr, (x, y))     # None: everything on the first device, as usual
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import ClassVar, Final, TypedDict, final

import numpy as np
from attrs import evolve, frozen

from verax.backend.arrays.concrete import ConcreteArray, default_place, devices_text
from verax.backend.arrays.places import Placed
from verax.backend.placement.mesh import (
    UNCONSTRAINED,
    AbsentDevice,
    Mesh,
    PartitionSpec,
    current_mesh,
    spec_with,
)
from verax.backend.placement.sharding import (
    DEVICE,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    Words,
)
from verax.backend.runtime.client import Device, default_client, local_devices
from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Jaxpr, Literal, Params
from verax.ir.meshes import AxisType, MeshAxes, MeshType, says_nothing, terms_of
from verax.ir.records import ReprMixin
from verax.ir.walk import Slot, walk
from verax.ops.calls.callbacks import CallbackParams
from verax.ops.parallel.sharding_constraint import ShardingParams
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure, recall
from verax.rules.values.state import STATE

type Places = tuple[Sharding | None, ...]
type Describe = Callable[[], Sequence[str]]


@frozen(cache_hash=True, repr=False)
class Placement(ReprMixin):
    """The devices of a program, by number, and the shardings that are decided.

    `ins` and `outs` are None where nothing was specified: such inputs go whole to every
    device, and such outputs are placed by the compiler. `mesh` names the axes of
    shardings that the compiler chooses. `committed` says whether outputs are; one that
    `fetches` takes committed inputs, too, wherever they are, as `jit` with a device.
    """

    transient: ClassVar[bool] = False

    devices: tuple[Device, ...]
    ins: Places
    outs: Places
    committed: bool
    mesh: Mesh | None = None
    fetches: bool = False

    @property
    def whole(self) -> Sharding:
        """The sharding of what lies as a whole on every device."""
        if len(self.devices) == 1 or self.mesh is None:
            return SingleDeviceSharding(self.devices[0])
        return NamedSharding(self.mesh, PartitionSpec())

    @property
    def plain(self) -> "Placement":
        """The same with the shortest specs, and none where an input is whole anyway.

        So programs of it are found again: arrays that a program returns may name more
        dimensions than its arguments did, and lie on all devices, where they were on
        one.
        """
        ins, outs = tuple(map(shortest, self.ins)), tuple(map(shortest, self.outs))
        ins = tuple([None if place == self.whole else place for place in ins])
        same = (ins, outs) == (self.ins, self.outs)
        return self if same else evolve(self, ins=ins, outs=outs)

    def of_constant(self, literal: Literal) -> Sharding:
        """The place of a captured array: where it is, or whole on every device."""
        value = literal.value
        place = value.place if isinstance(value, Slot) else place_of(value)
        if isinstance(place, Sharding) and place.ordered == self.devices:
            own = place.other_memory is None
            return place if own else place.with_memory_kind(DEVICE)
        return self.whole

    def of_input(self, number: int) -> Sharding:
        return self.ins[number] or self.whole


def shortest(place: Sharding | None) -> Sharding | None:
    """The sharding without the dimensions at the end that its spec says are whole."""
    if not isinstance(place, NamedSharding) or place.spec.partitions[-1:] != (None,):
        return place
    *entries, _ = place.spec.partitions
    while entries and entries[-1] is None:
        entries.pop()
    return place.update(spec=place.spec.update(partitions=entries))


def place_of(value: object) -> Sharding | None:
    """The place of a captured array, if it was placed."""
    own = placed_of(value)
    return None if own is None else own.place


def placed_of(x: object) -> Placed | None:
    """The place of its own that a value has, if it is an array with one."""
    return x.placed if isinstance(x, ConcreteArray) else None


@frozen(repr=False)
class Claim(ReprMixin):
    """A claim of something on devices, and its name in messages."""

    sharding: Sharding
    named: str | int
    describe: Describe | None = None
    aval: ShapedArray | None = None

    @property
    def name(self) -> str:
        """The name, worked out only when a message needs it."""
        if isinstance(self.named, str):
            return self.named
        return self.describe()[self.named] if self.describe else f"operand {self.named}"

    @property
    def text(self) -> str:
        """What is claimed, in words."""
        devices = self.sharding.ordered
        aval = self.aval
        kind = " with" if aval is None else f" with shape {aval.str_short()} and"
        ids = [device.id for device in devices]
        return (
            f"{self.name}{kind} device ids {ids} on platform {platform_text(devices)}"
        )


def platform_text(devices: Sequence[Device]) -> str:
    """The platforms of devices, as messages name them."""
    return ", ".join(sorted({device.platform.upper() for device in devices}))


INSIDE: Final = "a sharding_constraint inside jit"
"""What a mesh in a program is called, in messages."""
AROUND: Final = "jit's context mesh"
"""What the mesh in force is called, in messages."""

type Facts = tuple[tuple[MeshAxes, ...], tuple[Literal, ...], tuple[MeshType, ...]]


@pure(1 << 12)
def facts(jaxpr: Jaxpr) -> Facts:
    """The meshes in a program, its constants that are committed, the meshes of types.

    Committed are those that must stay where they lie.
    """
    meshes = []
    typed = [v.aval.explicit for v in jaxpr.invars if v.aval.explicit is not None]
    for _, eqn in walk(jaxpr):
        meshes += own_meshes(eqn.params)
        for var in eqn.outvars:
            if var.aval.explicit is not None:
                typed.append(var.aval.explicit)
    consts = [
        use.literal
        for use in jaxpr.used_consts
        if (own := placed_of(use.literal.value)) is not None and own.committed
    ]
    named = dict.fromkeys([explicit.mesh for explicit in typed])
    return tuple(dict.fromkeys(meshes)), tuple(consts), tuple(named)


def own_meshes(params: Params) -> list[MeshAxes]:
    """The mesh over which an operation itself is, if it names one."""
    if isinstance(params, ShardingParams):
        return [params.layout.mesh]
    if isinstance(params, CallbackParams) and params.mesh is not None:
        return [params.mesh]
    return []


def meshes_in(params: Params) -> list[MeshAxes]:
    """The meshes that an operation, or the programs inside it, name."""
    inside = [recall(facts, jaxpr, jaxpr)[0] for jaxpr in params.subjaxprs()]
    return [*own_meshes(params), *[mesh for meshes in inside for mesh in meshes]]


def mesh_of(axes: MeshAxes) -> Mesh:
    """The mesh of devices that params describe by number."""
    known = {device.id: device for device in default_client().devices()}
    there = known.keys() >= set(axes.devices)
    make = known.__getitem__ if there else AbsentDevice
    values = np.array([make(number) for number in axes.devices], object)
    return Mesh(values.reshape(axes.sizes), axes.names)


def placement_of(
    jaxpr: Jaxpr,
    args: Sequence[object],
    describe: Describe | None = None,
    ins: Places = (),
    outs: Places = (),
    device: Device | None = None,
    around: Mesh | None = None,
) -> Placement | None:
    """The placement of a program on these arguments; None for the first device.

    `args` may be types with a `sharding`. `ins` and `outs` are what the user fixed;
    with `device` everything goes there, wherever it is. On the devices of a mesh
    `around` it runs, even if nothing is committed.

    Raises:
        ValueError: two of them are committed to different devices, an array is
            committed to another sharding than `ins` says, or it cannot be split so.
    """
    meshes, consts, typed = recall(facts, jaxpr, jaxpr)
    special = any(ins) or any(outs) or meshes or consts or device is not None
    special = special or explicit_context() is not None or bool(typed)
    special = special or around is not None
    special = special or STATE.default_device is not None
    if not special and not any(map(has_place, args)):
        return None
    ins = ins or (None,) * len(args)
    outs = outs or (None,) * len(jaxpr.outvars)
    if device is not None:
        check_alone(device, meshes)
        return Placement((device,), ins, outs, committed=True, fetches=True)
    text = describe or (lambda: [f"operand {i}" for i in range(len(args))])
    given = tuple(
        [place or committed_place(x) for place, x in zip(ins, args, strict=True)]
    )
    claims = [
        Claim(place, i, text, aval)
        for i, (place, aval) in enumerate(zip(given, jaxpr.in_avals, strict=True))
        if place is not None
    ]
    claims += [captured(literal) for literal in consts]
    claims += [Claim(place, "an output") for place in outs if place is not None]
    if around is not None and not isinstance(around.devices.flat[0], AbsentDevice):
        claims.append(Claim(NamedSharding(around, PartitionSpec()), AROUND))
    for axes in sorted(meshes, key=lambda axes: not axes.devices):
        claims.append(claim_inside(axes, claims))
    named = [c.sharding for c in claims if isinstance(c.sharding, NamedSharding)]
    explicit = explicit_mesh(typed, named)
    if explicit is not None:
        place = NamedSharding(explicit, PartitionSpec())
        claims.append(Claim(place, "the mesh of explicit axes"))
    check_agreement(claims)
    check_inputs(jaxpr, args, ins, outs, text)
    devices = claims[0].sharding.ordered if claims else default_place().ordered
    mesh = named[0].concrete if named else None
    if explicit is not None:
        check_sizes(typed, devices)
        mesh = current_mesh() or explicit
        outs = typed_places(outs, jaxpr.out_avals, explicit, devices)
    return Placement(devices, given, outs, bool(claims), mesh)


def captured(literal: Literal) -> Claim:
    """The claim of an array that a program holds, where that lies somewhere."""
    place = place_of(literal.value)
    assert place is not None
    return Claim(place, "a captured array", aval=literal.aval)


def claim_inside(axes: MeshAxes, claims: Sequence[Claim]) -> Claim:
    """The claim of a constraint in a program, over a mesh or one device."""
    mesh = mesh_of(axes) if axes.devices else over_claimed(axes, claims)
    if not axes.names:
        return Claim(SingleDeviceSharding(mesh.devices.item()), INSIDE)
    return Claim(NamedSharding(mesh, PartitionSpec()), INSIDE)


def check_alone(device: Device, meshes: Sequence[MeshAxes]) -> None:
    """Raise ValueError if a program that is to run on a device asks for others."""
    if current_mesh() is not None:
        raise ValueError(
            "Mesh context manager should not be used with jit when backend or device "
            f"is also specified as an argument to jit, as {device} is: the mesh says "
            "where programs run; leave one of them out"
        )
    claims = [Claim(SingleDeviceSharding(device), "explicit output sharding")]
    for axes in meshes:
        claims.append(claim_inside(axes, claims))
    check_agreement(claims)


def over_claimed(axes: MeshAxes, claims: Sequence[Claim]) -> Mesh:
    """A mesh of a program that may be over any devices, over those of a program.

    Raises:
        ValueError: it has another number of devices.
    """
    for claim in claims:
        mesh = getattr(claim.sharding, "mesh", None)
        if isinstance(mesh, Mesh) and (mesh.axis_names, mesh.axis_sizes) == (
            axes.names,
            axes.sizes,
        ):
            return mesh
    if not claims:
        types = (AxisType.Auto,) * len(axes.names)
        return over_first(MeshType(axes.names, axes.sizes, types))
    claimed = claims[0].sharding.ordered
    if prod(axes.sizes) != len(claimed):
        raise ValueError(
            f"AbstractMesh size: {prod(axes.sizes)} does not match the device "
            f"assignment size: {len(claimed)}. The mesh is that of {INSIDE}, and "
            f"{claims[0].text} decides where the program runs"
        )
    devices = np.array(claimed, object)
    return Mesh(devices.reshape(axes.sizes), axes.names)


def explicit_context() -> Mesh | None:
    """The mesh in force, if its axes are explicit, all of them."""
    mesh = current_mesh()
    return mesh if mesh is not None and mesh.are_all_axes_explicit else None


def explicit_mesh(
    typed: Sequence[MeshType], named: Sequence[NamedSharding]
) -> Mesh | None:
    """The devices along the explicit axes of a program: those of what it works on."""
    if not typed:
        return explicit_context()
    (first, *_) = typed
    around = current_mesh()
    known = [place.concrete for place in named]
    for mesh in known if around is None else [*known, around]:
        if (mesh.axis_names, mesh.axis_sizes) == (first.names, first.sizes):
            return mesh.update(axis_types=first.types)
    return over_first(first)


def over_first(mesh: MeshType) -> Mesh:
    """The mesh where nothing says over which devices it is."""
    from verax.backend.placement.mesh_context import mesh_for

    out: Mesh = mesh_for(mesh)
    return out


def check_sizes(typed: Sequence[MeshType], devices: Sequence[Device]) -> None:
    """Raise ValueError if types of a program are over meshes of other sizes."""
    for mesh in typed:
        if prod(mesh.sizes) != len(devices):
            axes = ", ".join(map(str, zip(mesh.names, mesh.sizes, strict=True)))
            raise ValueError(
                "Received incompatible devices for jitted computation: it runs on "
                f"{len(devices)} devices, but types in it are over a mesh of "
                f"{prod(mesh.sizes)}, with the axes {axes}"
            )


def typed_places(
    outs: Places, avals: Sequence[ShapedArray], mesh: Mesh, devices: tuple[Device, ...]
) -> Places:
    """The places of results: as they are told to, or else as their types say."""
    around = current_mesh() or mesh
    return tuple(
        [
            place or place_as_typed(aval, mesh_as_typed(aval, mesh, devices), around)
            for place, aval in zip(outs, avals, strict=True)
        ]
    )


def mesh_as_typed(aval: ShapedArray, mesh: Mesh, devices: tuple[Device, ...]) -> Mesh:
    """The mesh of a result: that of the program, unless its type is over another.

    Then its axes are over the devices in the order of their numbers, as in the module.
    """
    known = None if aval.explicit is None else aval.explicit.mesh
    if known is None or (known.names, known.sizes) == (
        mesh.axis_names,
        mesh.axis_sizes,
    ):
        return mesh
    order = np.array(devices, object).reshape(known.sizes)
    return Mesh(order, known.names, known.types)


def place_as_typed(aval: ShapedArray, mesh: Mesh, around: Mesh) -> NamedSharding | None:
    """The place of a result whose type says how explicit axes split it.

    None if the compiler decides along some axes of the mesh `around`.
    """
    if not (mesh.are_all_axes_explicit and around.are_all_axes_explicit):
        return None
    splits = ((),) * aval.ndim if aval.explicit is None else aval.explicit.splits
    spec = spec_with([axes or None for axes in splits], terms_of(aval.explicit))
    return NamedSharding(mesh, spec)


def has_place(x: object) -> bool:
    """Whether an argument lies somewhere of its own."""
    return placed_of(x) is not None or sharding_of(x) is not None


def sharding_of(x: object) -> Sharding | None:
    """The sharding that a type without values says, such as a `ShapeDtypeStruct`."""
    if isinstance(x, Array) or (isinstance(x, ShapedArray) and x.explicit is None):
        return None
    out = getattr(x, "sharding", None)
    if not isinstance(out, Sharding) or says_nothing(out):
        return None
    if isinstance(out, NamedSharding) and not isinstance(out.mesh, Mesh):
        from verax.backend.placement.mesh_context import concrete_mesh

        return out.update(mesh=concrete_mesh(out.mesh))
    return out


def committed_place(x: object) -> Sharding | None:
    """The place where an argument must stay, if anywhere."""
    if (own := placed_of(x)) is not None:
        return own.place if own.committed else None
    return sharding_of(x)


def check_agreement(claims: Sequence[Claim]) -> None:
    """Raise ValueError unless all claims are for the same devices."""
    for claim in claims[1:]:
        first = claims[0]
        if claim.sharding.ordered != first.sharding.ordered:
            raise ValueError(
                "Received incompatible devices for jitted computation. Got "
                f"{first.text} and {claim.text}. They are committed to different "
                "devices: move one of them with verax.device_put, or leave it "
                "uncommitted"
            )


def check_inputs(
    jaxpr: Jaxpr, args: Sequence[object], ins: Places, outs: Places, text: Describe
) -> None:
    """Raise ValueError for arrays that lie elsewhere, or cannot be split that way."""
    avals = jaxpr.in_avals
    for i, (x, place, aval) in enumerate(zip(args, ins, avals, strict=True)):
        if place is None:
            continue
        check_place("pjit arguments", place, aval.shape, partial(leaf_name, text, i))
        own = committed_place(x)
        if own is not None and not own.is_equivalent_to(place, aval.ndim):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective "
                f"arg. Got {place} for {text()[i]}, which is committed to {own}: move "
                "it with verax.device_put, or leave out its in_shardings"
            )
    for place, aval in zip(outs, jaxpr.out_avals, strict=True):
        if place is not None:
            check_place("pjit outputs", place, aval.shape, "an output")


def check_place(which: str, place: Sharding, shape: Shape, what: Words) -> None:
    """Raise ValueError unless an array of this shape can lie so."""
    try:
        place.check(shape, what)
    except ValueError as error:
        raise ValueError(
            f"One of {which} is incompatible with its sharding annotation {place}: "
            f"{error}"
        ) from None


def leaf_name(text: Describe, i: int) -> str:
    """The name of leaf `i` in messages."""
    return text()[i]


def common_place(args: Sequence[object], name: str) -> tuple[Sharding | None, bool]:
    """The one device of eager operands, and whether it is theirs; None for several.

    `name` is that of the operation, for messages.

    Raises:
        ValueError: operands are committed to different devices.
    """
    claims = [
        Claim(place, f"argument {i} of {name}", aval=aval_of(x))
        for i, x in enumerate(args)
        if (place := committed_place(x)) is not None
    ]
    check_agreement(claims)
    sharding: Sharding = claims[0].sharding if claims else default_place()
    if sharding.other_memory is not None:
        sharding = sharding.with_memory_kind(DEVICE)
    return (sharding if sharding.num_devices == 1 else None), bool(claims)


def result_place(place: Sharding, shape: Shape, args: Sequence[object]) -> Sharding:
    """The place of an eager result: its operand's of the same shape, or undivided."""
    if not isinstance(place, NamedSharding):
        return place
    for x in args:
        own = placed_of(x)
        if own is not None and own.aval.shape == shape and own.place == place:
            return place
    return place.update(spec=PartitionSpec())


def relocated(
    placement: Placement | None, jaxpr: Jaxpr, devices: tuple[Device, ...]
) -> Placement | None:
    """The placement of a program on other devices, in the order of the old ones.

    Raises:
        TypeError: an element of `devices` is not a device.
        ValueError: their number is wrong, or the program itself names devices.
    """
    for device in devices:
        if not isinstance(device, Device):
            raise TypeError(f"a program runs on verax.devices(), not on {device!r}")
    count = 1 if placement is None else len(placement.devices)
    if len(set(devices)) != count or len(devices) != count:
        raise ValueError(
            "device_assignment passed to `.compile` must match the device_assignment "
            "calculated from array shardings and out_shardings: the program runs on "
            f"{count} different devices, but got {len(devices)}: "
            f"{devices_text(devices)}"
        )
    if (
        any([axes.devices for axes in recall(facts, jaxpr, jaxpr)[0]])
        and placement is not None
        and placement.devices != devices
    ):
        raise ValueError(
            "the program has sharding constraints, which name devices: it cannot run "
            f"on others than {devices_text(placement.devices)}"
        )
    if placement is None:
        if devices == (local_devices()[0],):
            return None
        ins, outs = len(jaxpr.invars), len(jaxpr.outvars)
        return Placement(devices, (None,) * ins, (None,) * outs, committed=True)
    return moved(placement, devices)


def moved(placement: Placement, devices: tuple[Device, ...]) -> Placement:
    """The placement with other devices instead of its own."""
    new = dict(zip(placement.devices, devices, strict=True))

    def moved_mesh(mesh: Mesh) -> Mesh:
        values = np.array([new[device] for device in mesh.devices.flat], object)
        return mesh.update(devices=values.reshape(mesh.devices.shape))

    def moved_place(place: Sharding | None) -> Sharding | None:
        if isinstance(place, NamedSharding):
            return place.update(mesh=moved_mesh(place.concrete))
        if place is None:
            return None
        return SingleDeviceSharding(new[place.ordered[0]], memory_kind=place.kind)

    return Placement(
        tuple(sorted(devices, key=lambda device: device.id)),
        tuple(map(moved_place, placement.ins)),
        tuple(map(moved_place, placement.outs)),
        committed=True,
        mesh=None if placement.mesh is None else moved_mesh(placement.mesh),
    )


# -----------------------------------------------------------------------------
# Places of arrays in files: devices by their position in a program.
#
# A program that is loaded runs on other devices than the one that was saved, so
# a file refers to the first, the second and the third device, whichever they are::
#
#     places = SavedPlaces(placement.devices)
#     places.read(places.write(sharding)) == sharding


FREE = "*"


class WrittenMesh(TypedDict):
    """A mesh as JSON: `order` has the numbers of its devices."""

    names: Sequence[str]
    sizes: Sequence[int]
    order: Sequence[int]
    types: Sequence[str]


@final
class WrittenDevice(TypedDict):
    """A device with a kind of memory as JSON."""

    at: int
    memory: str | None


@final
class WrittenSharding(TypedDict):
    """A `NamedSharding` as JSON."""

    mesh: WrittenMesh | None
    spec: Sequence[object]
    memory: str | None


type WrittenPlace = WrittenDevice | WrittenSharding | int | None


class WrittenPlacement(TypedDict):
    """A placement as JSON."""

    ins: Sequence[WrittenPlace]
    outs: Sequence[WrittenPlace]
    committed: bool
    mesh: WrittenMesh | None


@frozen(repr=False)
class SavedPlaces(ReprMixin):
    """Writes and reads places over some devices, which are in a fixed order."""

    devices: tuple[Device, ...]

    def write(self, place: Sharding | None) -> WrittenPlace:
        """A sharding as JSON."""
        if place is None:
            return None
        if isinstance(place, NamedSharding):
            spec = [FREE if s is UNCONSTRAINED else s for s in place.spec]
            mesh = self.write_mesh(place.concrete)
            return {"mesh": mesh, "spec": spec, "memory": place.kind}
        number = self.devices.index(place.ordered[0])
        return number if place.kind is None else {"at": number, "memory": place.kind}

    def read(self, data: WrittenPlace) -> Sharding | None:
        """The sharding that `write` wrote, over these devices."""
        if data is None:
            return None
        if isinstance(data, int):
            return SingleDeviceSharding(self.devices[data])
        memory = data.get("memory")
        if "at" in data:
            device = self.devices[data["at"]]
            return SingleDeviceSharding(device, memory_kind=memory)
        mesh = self.read_mesh(data["mesh"])
        assert mesh is not None
        spec = [UNCONSTRAINED if s == FREE else s for s in data["spec"]]
        return NamedSharding(mesh, PartitionSpec(*spec), memory_kind=memory)

    def write_mesh(self, mesh: Mesh | None) -> WrittenMesh | None:
        """A mesh as JSON."""
        if mesh is None:
            return None
        position = {device: i for i, device in enumerate(self.devices)}
        order = [position[device] for device in mesh.devices.flat]
        sizes = list(mesh.devices.shape)
        types = [kind.name for kind in mesh.axis_types]
        names = list(mesh.axis_names)
        return {"names": names, "sizes": sizes, "order": order, "types": types}

    def read_mesh(self, data: WrittenMesh | None) -> Mesh | None:
        if data is None:
            return None
        values = np.array([self.devices[i] for i in data["order"]], object)
        types = tuple([AxisType[name] for name in data["types"]])
        return Mesh(values.reshape(data["sizes"]), tuple(data["names"]), types)

    def write_placement(self, placement: Placement | None) -> WrittenPlacement | None:
        """A placement as JSON; None for a program without one."""
        if placement is None:
            return None
        return {
            "ins": [self.write(place) for place in placement.ins],
            "outs": [self.write(place) for place in placement.outs],
            "committed": placement.committed,
            "mesh": self.write_mesh(placement.mesh),
        }

    def read_placement(self, data: WrittenPlacement) -> Placement:
        """The placement that `write_placement` wrote, for a program that has one."""
        return Placement(
            self.devices,
            tuple([self.read(place) for place in data["ins"]]),
            tuple([self.read(place) for place in data["outs"]]),
            data["committed"],
            self.read_mesh(data["mesh"]),
        )
