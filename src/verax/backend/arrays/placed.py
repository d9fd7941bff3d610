"""Arrays with a chosen place: on one device, or split over several (floor 4).

An array without a chosen place is on the first device and takes the short paths; every
other says in its `kind` where it is::

    x = put(values, SingleDeviceSharding(device), committed=True)
    x.sharding, x.committed, x.addressable_shards
"""

from collections.abc import Callable, Sequence

import numpy as np

from verax.backend.arrays.concrete import (
    ConcreteArray,
    from_buffer,
    from_host,
    kind_at,
    of_kind,
    placed,
)
from verax.backend.arrays.places import Placed, stored_aval
from verax.backend.placement.mesh import (
    AbsentDevice,
    Mesh,
    PartitionSpec,
    current_mesh,
)
from verax.backend.placement.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    is_local,
    runtime_sharding,
)
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray
from verax.rules.values.array import Array
from verax.rules.values.lazy import LazyModule
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

check_transfer = LazyModule("verax.backend.runtime.transfers").check_transfer


def default_place() -> SingleDeviceSharding:
    """Where arrays without a place go, in this thread, now."""
    device = STATE.default_device
    return SingleDeviceSharding(local_devices()[0] if device is None else device)


def is_plain(place: Sharding, committed: bool) -> bool:
    """Whether an array with this place is an ordinary one."""
    if committed or place.other_memory is not None:
        return False
    return place.ordered == (local_devices()[0],)


def fresh(values: np.ndarray, aval: ShapedArray) -> ConcreteArray:
    """A new array of read-only NumPy values, on the default device."""
    if STATE.default_device is None:
        return from_host(values, aval)
    place = default_place()
    if is_plain(place, False):
        return from_host(values, aval)
    return placed(aval, place, False, host=values)


def at_home(x: Array) -> Array:
    """A new array where new arrays go: whole on the mesh in force, if it is explicit.

    Tracers, and arrays that have a place already, stay as they are.
    """
    mesh = current_mesh()
    if mesh is None or not STATE.interpreter.immediate:
        return x
    if not isinstance(x, ConcreteArray) or x.kind is not x.aval:
        return x
    place = whole_place(mesh, x.ndim)
    return x if place is None else put(x, place, committed=True)


@pure()
def whole_place(mesh: Mesh, ndim: int) -> NamedSharding | None:
    """Whole on every device of an explicit mesh, if the process sees these devices."""
    absent = any([isinstance(device, AbsentDevice) for device in mesh.devices.flat])
    if absent or not mesh.are_all_axes_explicit:
        return None
    return NamedSharding(mesh, PartitionSpec(*[None] * ndim))


def wrapper(
    aval: ShapedArray, place: Sharding, committed: bool
) -> Callable[[Buffer], ConcreteArray]:
    """Makes an array from a result that lies as `place` says."""
    kind = result_kind(aval, place, committed)
    if isinstance(kind, Placed):
        return lambda buffer: of_kind(kind, None, buffer)
    return lambda buffer: from_buffer(buffer, kind)


def result_kind(
    aval: ShapedArray, place: Sharding, committed: bool
) -> ShapedArray | Placed:
    """The kind of an array that lies as `place` says."""
    if is_plain(place, committed):
        return aval.with_explicit(None)
    return kind_at(aval, place, committed)


def put(x: ConcreteArray, place: Sharding, committed: bool) -> ConcreteArray:
    """The array at another place; memory is shared where it is there already.

    Raises:
        RuntimeError: the array was deleted or donated.
        ValueError: an array of this shape cannot lie so.
    """
    place.check(x.shape, f"an array {x.aval}")
    wrap = wrapper(x.aval, place, committed)
    if x.is_deleted():
        raise x.gone()
    if x.buffer is not None or x.host is None:
        buffer = x.device_buffer()
        if x.sharding.is_equivalent_to(place, x.ndim):
            return keeping_host(wrap(buffer), x)
        if is_whole(place) and is_whole(x.sharding):
            return wrap(buffers.copy_to_device(buffer, place.ordered[0]))
    if is_plain(place, committed):
        return from_host(x.numpy(), x.aval.with_explicit(None))
    return placed(x.aval, place, committed, host=x.numpy())


def is_whole(place: Sharding) -> bool:
    """Whether arrays lie undivided in the own memory of a device."""
    return place.num_devices == 1 and place.other_memory is None


def keeping_host(made: ConcreteArray, x: ConcreteArray) -> ConcreteArray:
    made.host = x.host
    return made


def buffer_at(x: ConcreteArray, place: Sharding) -> Buffer:
    """The values of an array on the devices of `place`."""
    if x.sharding.is_equivalent_to(place, x.ndim):
        return x.device_buffer()
    if x.buffer is not None:
        check_transfer("device_to_device", f"{x.aval} from {x.sharding} to {place}")
    return put(x, place, committed=True).device_buffer()


def joined(parts: Sequence[object], aval: ShapedArray, place: Sharding) -> Buffer:
    """One buffer of the parts on the local devices, in the order of their numbers."""
    stored = stored_aval(aval)
    local = [device for device in place.ordered if is_local(device)]
    sharding = runtime_sharding(place, len(stored.shape))
    return buffers.put_parts(stored, sharding, parts, local)


def devices_text(devices: Sequence[Device]) -> str:
    """Devices as messages name them."""
    return ", ".join(str(device) for device in devices)
