"""The mesh in force: what a bare `PartitionSpec` and `shard_map` mean (floor 4).

One idea: a thread has a stack of meshes, and the last one counts; it belongs to what a
trace depends on, so that a function is traced again under another mesh.

    >>> import verax
    >>> with set_mesh(verax.make_mesh((1,), ("x",))):
    ...     get_mesh()
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))
    >>> get_mesh().empty
    True
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from math import prod

import numpy as np

from verax.backend.placement.abstract_mesh import AbstractMesh, abstract_mesh_of
from verax.backend.placement.mesh import (
    AbsentDevice,
    AnyDevice,
    Mesh,
    PartitionSpec,
    current_mesh,
    enclose,
    over,
    spec_with,
    standing_for,
)
from verax.backend.placement.sharding import NamedSharding
from verax.backend.runtime.client import devices
from verax.ir.meshes import AxisType, BaseMesh, Explicit, MeshType, mesh_known
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

__all__ = ["get_abstract_mesh", "get_mesh", "set_mesh", "use_abstract_mesh"]


class Restore:
    """The end of a block: the meshes of before are in force again."""

    __slots__ = ("before",)

    def __init__(self, before: tuple[Mesh, ...]) -> None:
        self.before = before

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        enclose(self.before)


def set_mesh(mesh: Mesh | None) -> Restore:
    """Put a mesh in force for this thread, or, in a `with`, for a block.

    Functions that take shardings then also take a bare `PartitionSpec`, and `shard_map`
    needs no `mesh`. None ends it.

    Raises:
        ValueError: `mesh` is not a `Mesh`, has manual axes, or a function is being
            traced.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import PartitionSpec as P
    >>> with set_mesh(verax.make_mesh((1,), ("x",))):
    ...     verax.device_put(vnp.ones(2), P("x")).sharding.spec
    P('x',)
    """
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ValueError(f"set_mesh takes a verax Mesh or None, not {mesh!r}")
    if not STATE.interpreter.immediate:
        raise ValueError(
            "set_mesh cannot be called while a function is traced: call it outside of "
            "jit, or use verax.sharding.use_abstract_mesh"
        )
    if mesh is not None and mesh.manual_axes:
        raise ValueError(f"set_mesh: {mesh} contains manual axes: use shard_map")
    end = Restore(STATE.meshes)
    enclose(() if mesh is None or mesh.empty else (mesh,))
    return end


def get_mesh() -> Mesh:
    """The mesh in force, or an empty one.

    Raises:
        ValueError: a function is being traced.
    """
    if not STATE.interpreter.immediate:
        raise ValueError(
            "get_mesh cannot be called while a function is traced: use "
            "verax.sharding.get_abstract_mesh"
        )
    return current_mesh() or Mesh(None, ())


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in force; inside `shard_map` its axes are manual.

    >>> get_abstract_mesh().empty
    True
    """
    mesh = current_mesh()
    return (
        AbstractMesh((), ())
        if mesh is None
        else abstract_mesh_of(mesh, mesh.devices.flat[0])
    )


@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Generator[None]:
    """Within the block, have a mesh with these axes in force.

    Its devices are those of the mesh that was in force, if that has as many, else the
    first ones of the process.

    Raises:
        ValueError: `mesh` is not an `AbstractMesh`, or there are not enough devices,
            or the mesh in force has another size.
    """
    if not isinstance(mesh, AbstractMesh):
        raise ValueError(f"use_abstract_mesh takes an AbstractMesh, not {mesh!r}")
    outer = current_mesh()
    if outer is not None and not mesh.empty and outer.size != mesh.size:
        raise ValueError(
            f"use_abstract_mesh cannot change the size of the mesh: {outer} is in "
            f"force, which has {outer.size} devices, and {mesh} has {mesh.size}"
        )
    before = STATE.meshes
    enclose(() if mesh.empty else (*before, concrete_mesh(mesh)))
    try:
        yield
    finally:
        enclose(before)


@contextmanager
def manual_axes(mesh: Mesh, names: Iterable[str]) -> Generator[None]:
    """Within the block, have `mesh` in force with these axes manual."""
    with typed_axes(mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))):
        yield


@contextmanager
def typed_axes(mesh: Mesh) -> Generator[None]:
    """Within the block, have `mesh` in force."""
    before = STATE.meshes
    enclose((*before, mesh))
    try:
        yield
    finally:
        enclose(before)


def concrete_mesh(mesh: BaseMesh) -> Mesh:
    """A mesh with devices: those of the mesh in force if that has as many.

    Within a trace they are otherwise those on which the program will run, outside the
    first of the process; where it sees too few, they are `AbsentDevice`s.
    """
    if isinstance(mesh, Mesh):
        return mesh
    if STATE.interpreter.immediate or devices_around(mesh) is not None:
        return over_known(mesh)
    return standing_for(mesh, AnyDevice)


def devices_around(mesh: BaseMesh) -> np.ndarray | None:
    """The devices of the mesh in force if that has as many."""
    outer = current_mesh()
    fits = outer is not None and outer.size == prod(mesh.axis_sizes)
    return outer.devices if outer is not None and fits else None


def mesh_at(mesh: AbstractMesh, place: object, target: str) -> Mesh | None:
    """The mesh over the devices where an argument of an eager call lies, at `place`.

    None if that has no mesh. `target` says what has `mesh`, for messages.

    Raises:
        ValueError: the argument lies along other axes.
    """
    own = place.mesh if isinstance(place, NamedSharding) else None
    if not isinstance(own, Mesh):
        return None
    if own.shape_tuple != mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {own.shape_tuple} does not match the mesh shape "
            f"{target}, {mesh.shape_tuple}: move the array to a mesh with those axes, "
            "or name its own"
        )
    return over(mesh, own.devices)


def over_known(mesh: BaseMesh) -> Mesh:
    """The mesh over the devices in force, or over the first of the process."""
    around, known = devices_around(mesh), devices()
    if around is not None:
        return over(mesh, around)
    if (count := prod(mesh.axis_sizes)) > len(known):
        return standing_for(mesh, AbsentDevice)
    return over(mesh, np.array(known[:count], object))


def mesh_for(kind: MeshType) -> Mesh:
    """Devices along the axes of which programs and types speak; see `over_known`."""
    return over_known(AbstractMesh(kind.sizes, kind.names, kind.types))


def in_force() -> MeshType:
    """The axes of the mesh in force, as types know them."""
    mesh = current_mesh()
    return MeshType((), (), ()) if mesh is None else mesh_known(mesh)


def unspoken(mesh: MeshType) -> tuple[str, ...]:
    """The axes of which types do not speak: those of size 1, if an option says so."""
    if not STATE.remove_size_one_mesh_axis_from_type:
        return ()
    pairs = zip(mesh.names, mesh.sizes, strict=True)
    return tuple([name for name, size in pairs if size == 1])


def unsaid(ndim: int) -> NamedSharding:
    """The sharding of the type of an array with `ndim` dimensions that says nothing.

    That is nothing: no axis of the mesh in force splits a dimension.

    >>> unsaid(2)
    NamedSharding(mesh=AbstractMesh((), axis_types=()), spec=P(None, None))
    """
    return whole_on(get_abstract_mesh(), ndim)


@pure()
def whole_on(mesh: AbstractMesh, ndim: int) -> NamedSharding:
    """No axis of a mesh splits a dimension."""
    return NamedSharding(mesh, PartitionSpec(*[None] * ndim))


@pure()
def said(explicit: Explicit) -> NamedSharding:
    """The sharding of a type that explicit axes split."""
    known = explicit.mesh
    axes = AbstractMesh(known.sizes, known.names, known.types)
    mesh = abstract_mesh_of(axes, devices()[0])
    entries = [axes or None for axes in explicit.splits]
    return NamedSharding(mesh, spec_with(entries, explicit.terms))
