"""`jax.experimental.colocated_python`: the CPUs beside devices."""

from collections.abc import Sequence

import verax
from verax.backend.runtime.client import Device
from verax.sharding import Mesh

__all__ = ["colocated_cpu_devices"]


def colocated_cpu_devices(
    devices_or_mesh: Mesh | Sequence[Device],
) -> Mesh | list[Device]:
    """The CPU devices of the processes that the devices belong to, or a mesh of them.

    Raises:
        ValueError: a process has too few of them.
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        flat = beside(list(mesh.devices.flat))
        grid = mesh.devices.copy()
        grid.flat[:] = flat
        return Mesh(grid, mesh.axis_names, axis_types=mesh.axis_types)
    return beside(devices_or_mesh)


def beside(devices: Sequence[Device]) -> list[Device]:
    """For each device a CPU of its process: the one at its place there."""
    if all([device.platform == "cpu" for device in devices]):
        return list(devices)
    own = verax.devices("cpu")
    out, used = [], dict.fromkeys({device.process_index for device in devices}, 0)
    for device in devices:
        index = device.process_index
        here = [cpu for cpu in own if cpu.process_index == index]
        if used[index] >= len(here):
            raise ValueError(
                f"process {index} has {len(here)} CPU devices, but more other ones; "
                "set jax_num_cpu_devices"
            )
        out.append(here[used[index]])
        used[index] += 1
    return out
