"""Arrays of devices for meshes, as `jax.experimental.mesh_utils` has them (floor 6).

One idea: verax runs on processors and GPUs, among which no pair of devices of a machine
is closer than another, so the order is that of their numbers, and only the borders
between machines matter::

    Mesh(create_hybrid_device_mesh((1, 8), (2, 1), process_is_granule=True), ("a", "b"))
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from verax.backend.runtime.client import Device, devices as all_devices
from verax.rules.values.conversions import shown

__all__ = [
    "create_device_mesh",
    "create_hybrid_device_mesh",
    "device_kind_handler_dict",
]

device_kind_handler_dict: Mapping[str, Callable[..., Any]] = MappingProxyType({})
"""Kinds of devices with an order of their own: none of those that verax runs on."""


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices, by default all, as an array of this shape.

    `contiguous_submeshes` and `allow_split_physical_axes` are for devices on a torus
    and change nothing here.

    Raises:
        ValueError: the shape is not a sequence of integers, or has another size.

    >>> import verax
    >>> create_device_mesh((1, 1), verax.devices()[:1]).shape
    (1, 1)
    """
    result = list(all_devices() if devices is None else devices)
    shape = checked_shape("mesh_shape", mesh_shape)
    if prod(shape) != len(result):
        raise ValueError(
            f"create_device_mesh got the shape {shape}, which has {prod(shape)} "
            f"elements, for {len(result)} devices"
        )
    if result and result[-1].platform != "cpu":
        result.sort(key=lambda device: device.id)
    mesh = np.empty(len(result), object)
    mesh[:] = result
    return mesh.reshape(shape)


def checked_shape(what: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape as a tuple of integers."""
    try:
        return tuple([operator.index(size) for size in shape])
    except TypeError:
        raise ValueError(
            f"{what} is a sequence of integers, not {shown(shape)}"
        ) from None


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices as an array whose axes are each a product: between machines, and inside.

    Axis i has `dcn_mesh_shape[i] * mesh_shape[i]` devices, those of one group side by
    side. Groups are the processes, or the slices where devices have a `slice_index`.

    Raises:
        ValueError: devices have no `slice_index` and `process_is_granule` is False, or
            the shapes do not have the sizes of the groups and their number.
    """
    result = list(all_devices() if devices is None else devices)
    inner = checked_shape("mesh_shape", mesh_shape)
    outer = checked_shape("dcn_mesh_shape", dcn_mesh_shape)
    attribute = "process_index" if process_is_granule else "slice_index"
    if not all(hasattr(device, attribute) for device in result):
        raise ValueError(
            f"create_hybrid_device_mesh: the devices have no {attribute}; pass "
            "process_is_granule=True to group them by process"
        )
    if len(inner) != len(outer):
        raise ValueError(
            f"create_hybrid_device_mesh got shapes of {len(inner)} and {len(outer)} "
            "axes; both say something about each axis"
        )
    groups: dict[int, list[Device]] = {}
    for device in result:
        groups.setdefault(getattr(device, attribute), []).append(device)
    keys = sorted(groups) if should_sort_granules_by_key else list(groups)
    if len(keys) != prod(outer):
        raise ValueError(
            f"create_hybrid_device_mesh got dcn_mesh_shape={outer}, which has "
            f"{prod(outer)} elements, for {len(keys)} groups of devices"
        )
    blocks = [create_device_mesh(inner, groups[key]) for key in keys]
    stacked = np.stack(blocks).reshape(*outer, *inner)
    axes = [axis for i in range(len(inner)) for axis in (i, len(inner) + i)]
    whole = [a * b for a, b in zip(outer, inner, strict=True)]
    return stacked.transpose(axes).reshape(whole)
