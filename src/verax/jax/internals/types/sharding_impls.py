"""`jax._src.sharding_impls` and `jax._src.mesh`: shardings that nobody said."""

import sys
from typing import Any, Final

import numpy as np

import verax
from verax.backend.runtime.buffers import place_of_part
from verax.backend.runtime.client import Device
from verax.jax.overlays.xla import thread_resources as thread_resources
from verax.rules.values.state import LIBRARY
from verax.sharding import (
    AbstractMesh,
    Mesh,
    NamedSharding,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
)


class EmptyEnvironment:
    """The environment without a mesh."""

    physical_mesh: Final = Mesh(np.empty((), object), ())


EMPTY_ENV: Final = EmptyEnvironment()
empty_concrete_mesh: Final = EMPTY_ENV.physical_mesh
empty_abstract_mesh: Final = AbstractMesh((), ())


class UnspecifiedValue:
    """The type of the sharding that nobody said."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED: Final = UnspecifiedValue()


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> Any:
    """The sharding of what lies on one device.

    jaxlib finds this function by its name where it makes the parts of arrays that
    verax holds, and gets its own class.
    """
    if sys._getframe(1).f_code.co_filename.startswith(LIBRARY):
        return place_of_part(device, memory_kind)
    return verax.sharding.make_single_device_sharding(device, memory_kind=memory_kind)


def get_concrete_mesh() -> Any:
    """The mesh in force, with devices."""
    return get_mesh()


def canonicalize_sharding(
    sharding: object, api_name: str = "", check_mesh_consistency: bool = True
) -> "verax.sharding.Sharding | None":
    """A sharding for a spec, over the mesh in force; None for no sharding.

    Raises:
        ValueError: there is a spec, and no mesh.
    """
    if sharding is None or isinstance(sharding, NamedSharding):
        return sharding
    if isinstance(sharding, PartitionSpec):
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise ValueError(
                f"{api_name or 'a sharding'}: the spec {sharding} needs a mesh; set "
                "one with jax.set_mesh"
            )
        return NamedSharding(mesh, sharding)
    assert isinstance(sharding, verax.sharding.Sharding)
    return sharding
