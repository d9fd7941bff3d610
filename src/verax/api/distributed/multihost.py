"""Floor 5: values of the host that processes give to each other.

One idea: the values of all processes are one array with a row for each, so bringing
them together is a program over all processes, and everything else is made of that::

    process_allgather({"loss": loss})     # {"loss": array of shape (processes,)}
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from verax.api.jit import jit
from verax.api.parallel.device_put import (
    device_put,
    make_array_from_callback,
    make_array_from_single_device_arrays,
)
from verax.api.parallel.process_data import (
    make_array_from_process_local_data as from_processes,
    parts_of_process,
)
from verax.api.sharding_args import place_leaves
from verax.api.tracing.apply import as_array
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray, unreadable
from verax.backend.placement.mesh import Mesh, PartitionSpec
from verax.backend.placement.sharding import NamedSharding
from verax.backend.processes.connection import reached_sync_point
from verax.backend.runtime.client import devices, process_count, process_index
from verax.rules.values.array import Array

AXIS: Final = "processes"


def mesh_of_processes() -> Mesh:
    """The first device of each process, in order."""
    first: dict[int, object] = {}
    for device in devices():
        first.setdefault(device.process_index, device)
    row = [first[index] for index in sorted(first)]
    return Mesh(np.array(row, object), (AXIS,))


def rows(own: np.ndarray, mesh: Mesh) -> Array:
    """An array whose row p is the value that process p passes, in bytes.

    XLA may add zeros to values that it brings to other devices, which changes -0.0.
    """
    row = np.frombuffer(own.tobytes(), np.uint8)
    place = NamedSharding(mesh, PartitionSpec(AXIS))
    return make_array_from_callback(
        (mesh.size, row.size), place, lambda index: row[None]
    )


def same(x: Array) -> Array:
    return x


def everywhere(
    x: Array, mesh: Mesh, read: Callable[[Array], Array] = same
) -> np.ndarray:
    """Reads an array over several processes in NumPy, in each of them."""
    whole = NamedSharding(mesh, PartitionSpec())
    return np.asarray(jit(read, out_shardings=whole)(x))


def process_allgather(in_tree: object, tiled: bool = False) -> Any:
    """The values of all processes as NumPy arrays; every process must call it.

    A leaf that this process has as a whole gets a new first dimension, one row for each
    process; with `tiled` the values are joined along the first that they have. The
    leaves must have the same shape in all processes. An array over several processes
    becomes what it is as a whole.

    >>> process_allgather({"loss": 2.0})
    {'loss': array([2.], dtype=float32)}
    """
    mesh = mesh_of_processes()

    def gathered(x: object) -> np.ndarray:
        array = as_array(x)
        if isinstance(array, ConcreteArray) and not array.is_fully_addressable:
            return whole_of(array)
        own = np.asarray(array)
        if mesh.size == 1:
            return own if tiled else own[None]
        out = everywhere(rows(own, mesh), mesh).view(own.dtype)
        out = out.reshape(mesh.size, *own.shape)
        if tiled and own.ndim:
            return out.reshape(-1, *own.shape[1:])
        return out

    leaves, tree = pytrees.flatten(in_tree)
    return tree.unflatten([gathered(leaf) for leaf in leaves])


def whole_of(array: ConcreteArray) -> np.ndarray:
    """All values of an array over several processes."""
    if not unreadable(array):
        return np.asarray(array)
    place = array.sharding
    assert isinstance(place, NamedSharding), "several devices have a mesh"
    return everywhere(array, place.concrete)


def broadcast_one_to_all(in_tree: object, is_source: bool | None = None) -> Any:
    """The values of one process, as NumPy arrays, in all; every process must call it.

    The source is process 0, or the one that passes `is_source=True`. The leaves must
    have the same shapes and dtypes in all.

    Raises:
        ValueError: no process is the source, or several are.

    >>> broadcast_one_to_all([1, 2.0])
    [array(1, dtype=int32), array(2., dtype=float32)]
    """
    source, mesh = 0, mesh_of_processes()
    if is_source is not None:
        flags = process_allgather(np.bool_(is_source))
        if flags.sum() != 1:
            raise ValueError(
                "broadcast_one_to_all needs one process with is_source=True, not "
                f"{flags.sum()}"
            )
        source = int(np.argmax(flags))

    def taken(x: object) -> np.ndarray:
        own = np.asarray(as_array(x))
        if mesh.size == 1:
            return own
        values = everywhere(rows(own, mesh), mesh, lambda every: every[source])
        return values.view(own.dtype).reshape(own.shape)

    leaves, tree = pytrees.flatten(in_tree)
    return tree.unflatten([taken(leaf) for leaf in leaves])


def digest(tree: object) -> np.ndarray:
    """A checksum of structure, types and values; trees of all kinds have the same size.

    So processes can compare them, whatever they hold.
    """
    leaves, structure = pytrees.flatten(tree)
    out = hashlib.sha256(str(structure).encode())
    for leaf in leaves:
        values = np.asarray(as_array(leaf))
        out.update(f"{values.dtype}{values.shape}".encode())
        out.update(np.ascontiguousarray(values).tobytes())
    return np.frombuffer(out.digest(), np.uint8)


def assert_equal(in_tree: object, fail_message: str = "") -> None:
    """Raise in every process unless all have the same tree, to the last bit.

    Every process must call it; unlike elsewhere, shapes may differ.

    Raises:
        AssertionError: values, types or structures differ.

    >>> assert_equal({"step": 3}, "the processes are at different steps")
    """
    result = process_allgather(digest(in_tree))
    other = [i for i, row in enumerate(result) if (row != result[0]).any()]
    if other:
        named = ", ".join(map(str, other))
        raise AssertionError(
            f"{fail_message}: what processes passed to assert_equal differs from that "
            f"of process 0 in {named}; process {process_index()} has {in_tree}"
        )


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here, and their devices have.

    Raises:
        AssertionError: they wait under different names.

    >>> sync_global_devices("saved")
    """
    if process_count() > 1:
        assert_equal(
            np.frombuffer(name.encode(), np.uint8), f"sync_global_devices {name!r}"
        )


def places_of(
    what: str, mesh: object, specs: object, tree: object
) -> tuple[NamedSharding, ...]:
    """The sharding of each leaf, from a prefix tree of specs."""
    if not isinstance(mesh, Mesh):
        raise TypeError(f"{what} takes a Mesh, not {mesh!r}")
    entries, structure = pytrees.flatten(specs, is_leaf=is_spec)
    for spec in entries:
        if not isinstance(spec, PartitionSpec):
            raise ValueError(f"{what} takes PartitionSpecs, such as P(), not {spec!r}")
    prefix = structure.unflatten([NamedSharding(mesh, spec) for spec in entries])
    out = place_leaves(what, prefix, tree)
    return tuple([place for place in out if isinstance(place, NamedSharding)])


def is_spec(x: object) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def host_local_array_to_global_array(
    local_inputs: object, global_mesh: object, pspecs: object
) -> Any:
    """Arrays on the mesh, of the part that each process has as a whole array.

    `pspecs` is a prefix tree of the inputs. Dimensions that are split over devices of
    different processes are joined; in all others processes must pass the same. Arrays
    over several processes stay what they are.

    Raises:
        ValueError: the sizes do not fit, or an entry of `pspecs` is not a spec.
    """
    what = "host_local_array_to_global_array"
    leaves, tree = pytrees.flatten(local_inputs)
    outs = [
        x
        if isinstance(x, ConcreteArray) and not x.is_fully_addressable
        else from_processes(place, np.asarray(as_array(x)))
        for x, place in zip(
            leaves, places_of(what, global_mesh, pspecs, local_inputs), strict=True
        )
    ]
    return tree.unflatten(outs)


def global_array_to_host_local_array(
    global_inputs: object, global_mesh: object, pspecs: object
) -> Any:
    """The part of each array that this process has, as an array on its own devices.

    The inverse of `host_local_array_to_global_array`.

    Raises:
        ValueError: the devices of this process are not a block of the mesh.
    """
    what = "global_array_to_host_local_array"
    leaves, tree = pytrees.flatten(global_inputs)
    places = places_of(what, global_mesh, pspecs, global_inputs)
    outs = [local_part(x, place) for x, place in zip(leaves, places, strict=True)]
    return tree.unflatten(outs)


def local_part(x: object, place: NamedSharding) -> object:
    """The part of this process, divided over its devices as the whole is over all."""
    array = device_put(x, place)
    own = parts_of_process(place, array.ndim)
    sizes = place.shard_shape(array.shape)
    shape = tuple([len(parts) * n for parts, n in zip(own, sizes, strict=True)])
    local = place.update(mesh=place.concrete.local_mesh)
    shards = [shard.data for shard in array.addressable_shards]
    return make_array_from_single_device_arrays(shape, local, shards)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this is the step at which all processes should save, as one must end.

    The cluster announces that it will end a process by SIGTERM, which from the first
    call on does not end it any more. All processes must call this at every step, from
    the same step on; all get True at the same step.

    >>> reached_preemption_sync_point(1)
    False
    """
    return process_count() > 1 and reached_sync_point(step_id)
