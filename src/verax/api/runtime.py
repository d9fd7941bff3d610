"""Floor 5: devices and waiting.

One idea: a function on pytrees is a function on the leaves::

    block_until_ready({"w": x, "b": y})
"""

from typing import Any

from verax.backend import pytrees
from verax.backend.array import block_all
from verax.backend.client import Device, devices as client_devices


def block_until_ready(x: Any) -> Any:
    """Wait until every array in the tree is computed; returns the tree.

    >>> import verax, verax.numpy as vnp
    >>> verax.block_until_ready(vnp.ones(2) + 1).tolist()
    [2.0, 2.0]
    """
    block_all(pytrees.flatten(x)[0])
    return x


def devices(backend: str | None = None) -> list[Device]:
    """All devices of the platform, the default one first."""
    return client_devices(backend)
