"""Places of arrays in files: devices by their position in a program (floor 4).

One idea: a program that is loaded runs on other devices than the one that was saved, so
a file refers to the first, the second and the third device, whichever they are::

    places = SavedPlaces(placement.devices)
    places.read(places.write(sharding)) == sharding
"""

from typing import Any

import numpy as np
from attrs import frozen

from verax.backend.placement.mesh import UNCONSTRAINED, Mesh, PartitionSpec
from verax.backend.placement.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)
from verax.backend.programs.placement import Placement
from verax.backend.runtime.client import Device
from verax.ir.meshes import AxisType
from verax.ir.records import ReprMixin

FREE = "*"


@frozen(repr=False)
class SavedPlaces(ReprMixin):
    """Writes and reads places over some devices, which are in a fixed order."""

    devices: tuple[Device, ...]

    def write(self, place: Sharding | None) -> Any:
        """A sharding as JSON."""
        if place is None:
            return None
        if isinstance(place, NamedSharding):
            spec = [FREE if s is UNCONSTRAINED else s for s in place.spec]
            mesh = self.write_mesh(place.concrete)
            return {"mesh": mesh, "spec": spec, "memory": place.kind}
        number = self.devices.index(place.ordered[0])
        return number if place.kind is None else {"at": number, "memory": place.kind}

    def read(self, data: Any) -> Sharding | None:
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

    def write_mesh(self, mesh: Mesh | None) -> Any:
        """A mesh as JSON."""
        if mesh is None:
            return None
        position = {device: i for i, device in enumerate(self.devices)}
        order = [position[device] for device in mesh.devices.flat]
        sizes = list(mesh.devices.shape)
        types = [kind.name for kind in mesh.axis_types]
        names = list(mesh.axis_names)
        return {"names": names, "sizes": sizes, "order": order, "types": types}

    def read_mesh(self, data: Any) -> Mesh | None:
        if data is None:
            return None
        found = np.array([self.devices[i] for i in data["order"]], object)
        types = tuple([AxisType[name] for name in data["types"]])
        return Mesh(found.reshape(data["sizes"]), tuple(data["names"]), types)

    def write_placement(self, placement: Placement | None) -> Any:
        """A placement as JSON; None for a program without one."""
        if placement is None:
            return None
        return {
            "ins": [self.write(place) for place in placement.ins],
            "outs": [self.write(place) for place in placement.outs],
            "committed": placement.committed,
            "mesh": self.write_mesh(placement.mesh),
        }

    def read_placement(self, data: Any) -> Placement:
        """The placement that `write_placement` wrote, for a program that has one."""
        return Placement(
            self.devices,
            tuple([self.read(place) for place in data["ins"]]),
            tuple([self.read(place) for place in data["outs"]]),
            data["committed"],
            self.read_mesh(data["mesh"]),
        )
