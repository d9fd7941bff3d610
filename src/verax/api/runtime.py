"""Floor 5: devices, transfers and waiting.

One idea: a function on pytrees is a function on the leaves::

    block_until_ready({"w": x, "b": y})
"""

from typing import Any

import numpy as np

from verax.api.engine import as_array, current_builder
from verax.backend import buffers, pytrees
from verax.backend.array import ConcreteArray, block_all, from_buffer
from verax.backend.client import Device, devices as client_devices
from verax.rules.builder import Tracer
from verax.rules.constants import aval_of


def block_until_ready(x: Any) -> Any:
    """Wait until every array in the tree is computed; returns the tree.

    >>> import verax, verax.numpy as vnp
    >>> verax.block_until_ready(vnp.ones(2) + 1).tolist()
    [2.0, 2.0]
    """
    block_all(pytrees.flatten(x)[0])
    return x


def device_put(x: Any, device: Device | None = None) -> Any:
    """The tree with its leaves as arrays on `device`, or on the default device.

    Raises:
        TypeError: a leaf is no array, or `device` is no device.
    """
    if device is not None and device not in client_devices():
        raise TypeError(f"device_put takes one of verax.devices(), not {device!r}")
    leaves, tree = pytrees.flatten(x)
    return tree.unflatten([put_leaf(leaf, device) for leaf in leaves])


def put_leaf(leaf: Any, device: Device | None) -> Any:
    if isinstance(leaf, Tracer) or current_builder() is not None:
        return leaf if isinstance(leaf, Tracer) else as_array(leaf)
    aval_of(leaf)
    array = as_array(leaf)
    assert isinstance(array, ConcreteArray)
    buffer = array.device_buffer()
    if device is None:
        return array
    moved = buffers.copy_to_device(buffer, device)
    return from_buffer(moved, array.aval, committed=True)


def device_get(x: Any) -> Any:
    """The tree with its arrays as NumPy arrays; all transfers start before any waits.

    >>> import verax, verax.numpy as vnp
    >>> verax.device_get((vnp.ones(2), 3))
    (array([1., 1.], dtype=float32), 3)
    """
    leaves, tree = pytrees.flatten(x)
    for leaf in leaves:
        if isinstance(leaf, ConcreteArray):
            leaf.copy_to_host_async()
    return tree.unflatten(
        [np.asarray(x) if isinstance(x, ConcreteArray) else x for x in leaves]
    )


def devices(backend: str | None = None) -> list[Device]:
    """All devices of the platform, the default one first."""
    return client_devices(backend)
