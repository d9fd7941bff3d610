"""Meshes and shardings under JAX's names: `verax.sharding` (floor 6).

This module only gives names; the values are defined in `verax.backend`.

    >>> import verax
    >>> from verax.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = verax.make_mesh((1,), ("x",))
    >>> NamedSharding(mesh, P("x", None)).shard_shape((4, 2))
    (4, 2)
"""

from verax.backend.placement.mesh import (
    AxisType as AxisType,
    Mesh as Mesh,
    PartitionSpec as PartitionSpec,
    make_mesh as make_mesh,
)
from verax.backend.placement.sharding import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)

P = PartitionSpec
