"""Floor 5: where the arguments and results of an exported function lie.

Devices are positions in the program, so that it runs on any mesh of as many devices::

    exported = export(jit(f))(x)                # x is split over a mesh of 4
    exported.in_shardings_jax(other_mesh)       # how to split the arguments there
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from attrs import evolve

from verax.api.parallel.device_put import device_put
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import UNCONSTRAINED, Mesh, spec_with
from verax.backend.placement.sharding import NamedSharding, SingleDeviceSharding
from verax.backend.programs.placement import Placement
from verax.backend.runtime.client import local_devices
from verax.ir.avals import ShapedArray
from verax.ir.meshes import AxisType, Layout, MeshAxes, Terms, UnreducedKind
from verax.ops.calls.call_exported import Layouts

type AnyMesh = Mesh | AbstractMesh
type Shardings = tuple[NamedSharding | None, ...]


def several_devices(placement: Placement | None) -> Placement | None:
    """The placement, if it is over several devices."""
    if placement is None or len(placement.devices) == 1:
        return None
    return placement


def layouts_of(placement: Placement | None) -> tuple[Layouts, Layouts]:
    """The layouts of arguments and results, over positions of a placement's devices."""
    if placement is None:
        return (), ()
    position = {device.id: i for i, device in enumerate(placement.devices)}

    def layout_of(place: object) -> Layout | None:
        if not isinstance(place, NamedSharding):
            return None
        layout = place.layout
        devices = tuple([position[number] for number in layout.mesh.devices])
        return evolve(layout, mesh=evolve(layout.mesh, devices=devices))

    ins, outs = placement.ins, placement.outs
    return tuple(map(layout_of, ins)), tuple(map(layout_of, outs))


def shardings_on(mesh: AnyMesh | None, layouts: Layouts, count: int) -> Shardings:
    """The shardings on a mesh of `count` arrays that lie so.

    Without a mesh they are on one without devices.

    Raises:
        ValueError: the mesh has other axes than a layout.
    """
    if not layouts:
        return (None,) * count
    return tuple([None if s is None else sharding_on(mesh, s) for s in layouts])


def sharding_on(mesh: AnyMesh | None, layout: Layout) -> NamedSharding:
    """The sharding on a mesh of an array that lies so."""
    if mesh is None:
        names, sizes = layout.mesh.names, layout.mesh.sizes
        mesh = AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))
    due = tuple(zip(layout.mesh.names, layout.mesh.sizes, strict=True))
    if mesh.shape_tuple != due:
        raise ValueError(
            f"the function was exported for a mesh with the axes {due}, but {mesh!r} "
            f"has {mesh.shape_tuple}"
        )
    entries = [UNCONSTRAINED if s is None else (s or None) for s in layout.splits]
    return NamedSharding(mesh, spec_with(entries, layout.terms))


def on_first_devices(
    arrays: Sequence[object], layouts: Sequence[Layout | None], count: int
) -> tuple[np.ndarray, ...]:
    """The arrays on the first `count` devices of this process, lying so.

    Raises:
        ValueError: there are fewer.
    """
    devices = local_devices()[:count]
    if len(devices) < count:
        raise ValueError(
            f"the function was exported for {count} devices, but this process has "
            f"{len(devices)}"
        )
    row = Mesh(np.array(devices, object), ("devices",))
    whole = NamedSharding(row, spec_with((), Terms()))
    placed = []
    for x, layout in zip(arrays, layouts, strict=True):
        place: NamedSharding | SingleDeviceSharding = whole
        if layout is not None:
            own = layout.mesh
            order = np.array([devices[i] for i in own.devices], object)
            place = sharding_on(Mesh(order.reshape(own.sizes), own.names), layout)
        placed.append(device_put(x, place))
    return tuple(placed)


class WrittenLayout(TypedDict):
    """A layout as JSON."""

    names: Sequence[str]
    sizes: Sequence[int]
    devices: Sequence[int]
    splits: Sequence[Sequence[str] | None]
    terms: tuple[Sequence[str], Sequence[str], str]


def write_layout(layout: Layout | None) -> WrittenLayout | None:
    """A layout as JSON."""
    if layout is None:
        return None
    mesh, terms = layout.mesh, layout.terms
    return {
        "names": list(mesh.names),
        "sizes": list(mesh.sizes),
        "devices": list(mesh.devices),
        "splits": [None if split is None else list(split) for split in layout.splits],
        "terms": (list(terms.unreduced), list(terms.reduced), terms.kind.name),
    }


def read_layout(data: WrittenLayout | None) -> Layout | None:
    """Reads a layout that `write_layout` wrote."""
    if data is None:
        return None
    unreduced, reduced, kind = data["terms"]
    mesh = MeshAxes(tuple(data["names"]), tuple(data["sizes"]), tuple(data["devices"]))
    splits = [None if split is None else tuple(split) for split in data["splits"]]
    terms = Terms(tuple(unreduced), tuple(reduced), UnreducedKind[kind])
    return Layout(mesh, tuple(splits), terms)


def fitting_layouts(layouts: Layouts, avals: Sequence[ShapedArray], count: int) -> bool:
    """Whether arrays of these types may lie so over `count` devices."""
    if count == 1:
        return not layouts
    pairs = zip(layouts, avals, strict=False)
    return len(layouts) == len(avals) and all(
        [layout is None or fits(layout, aval, count) for layout, aval in pairs]
    )


def fits(layout: Layout, aval: ShapedArray, count: int) -> bool:
    """Whether an array of this type may lie so over `count` devices."""
    mesh = layout.mesh
    named = [axis for split in layout.splits for axis in split or ()]
    return (
        len(mesh.names) == len(mesh.sizes)
        and sorted(mesh.devices) == list(range(count))
        and int(np.prod(mesh.sizes)) == count
        and len(layout.splits) <= aval.ndim
        and set(named) | set(layout.terms.axes) <= set(mesh.names)
        and len(set(named)) == len(named)
    )
