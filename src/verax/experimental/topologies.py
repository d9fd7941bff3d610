"""Devices as a value to compile for, as `jax.experimental.topologies` (floor 6).

Only the devices of this process can be described::

    mesh = make_mesh(get_attached_topology(), (2, 4), ("x", "y"))

>>> len(get_attached_topology().devices) >= 1
True
"""

from collections.abc import Sequence
from typing import ClassVar

from attrs import frozen

from verax.api.parallel.device_put import devices
from verax.backend.placement.mesh import Mesh
from verax.backend.runtime.client import Device
from verax.experimental.mesh_utils import create_device_mesh
from verax.ir.records import ReprMixin

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "make_mesh"]


@frozen(eq=False, repr=False)
class TopologyDescription(ReprMixin):
    """Some devices."""

    transient: ClassVar[bool] = False

    devices: list[Device]


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of this process.

    Raises:
        RuntimeError: there is no such platform.
    """
    return TopologyDescription(devices(platform))


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """The devices as a mesh.

    Raises:
        ValueError: the shape has another size.
    """
    values = create_device_mesh(
        mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes
    )
    return Mesh(values, axis_names)
