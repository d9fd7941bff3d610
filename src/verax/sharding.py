"""Meshes and shardings under JAX's names: `verax.sharding` (floor 6).

The values are defined in `verax.backend`.

    >>> import verax
    >>> from verax.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = verax.make_mesh((1,), ("x",))
    >>> NamedSharding(mesh, P("x", None)).shard_shape((4, 2))
    (4, 2)
"""

from verax.api.parallel.specs import (
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
    reshard as reshard,
)
from verax.backend.placement.abstract_mesh import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
)
from verax.backend.placement.mesh import (
    Mesh as Mesh,
    PartitionSpec as PartitionSpec,
    make_mesh as make_mesh,
)
from verax.backend.placement.mesh_context import (
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from verax.backend.placement.sharding import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)
from verax.backend.runtime.client import Device
from verax.ir.meshes import (
    AxisType as AxisType,
    ManualAxisType as ManualAxisType,
    UnreducedKind as UnreducedKind,
)

P = PartitionSpec


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The place of whole arrays on one device.

    >>> import verax
    >>> make_single_device_sharding(verax.devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
