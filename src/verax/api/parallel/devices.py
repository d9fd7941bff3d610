"""Floor 5: devices and waiting.

One idea: a function on pytrees is a function on the leaves::

    block_until_ready({"w": x, "b": y})
"""

import os
import platform
import sys
import warnings
from typing import Any

from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray, block_all
from verax.backend.runtime.client import (
    Device,
    default_client,
    devices as client_devices,
    local_devices as client_local_devices,
    process_indices,
)
from verax.rules.values.lazy import LazyModule

# Imported when first called: it costs as much as sixty modules of ours.
metadata = LazyModule("importlib.metadata")

VARIABLES = ("VERAX_", "JAX_", "XLA_", "TF_CPP_")


def block_until_ready(x: object) -> Any:
    """Wait until every array in the tree is computed; returns the tree.

    >>> import verax, verax.numpy as vnp
    >>> verax.block_until_ready(vnp.ones(2) + 1).tolist()
    [2.0, 2.0]
    """
    block_all(pytrees.flatten(x)[0])
    return x


def copy_to_host_async(x: object) -> Any:
    """Start the transfers of all arrays of the tree to the host; returns the tree.

    >>> import verax, verax.numpy as vnp
    >>> verax.copy_to_host_async([vnp.ones(2), 3])
    [Array([1., 1.], dtype=float32), 3]
    """
    for leaf in pytrees.flatten(x)[0]:
        if isinstance(leaf, ConcreteArray):
            leaf.copy_to_host_async()
    return x


def devices(backend: str | None = None) -> list[Device]:
    """All devices of the platform, the default one first."""
    return client_devices(backend)


def local_devices(
    process_index: int | None = None,
    backend: str | None = None,
    host_id: int | None = None,
) -> list[Device]:
    """The devices of one process, which is this one unless `process_index` says which.

    `host_id` is a former name of `process_index`, and warns.

    Raises:
        ValueError: there is no such process.

    >>> import verax
    >>> verax.local_devices() == verax.local_devices(verax.process_index())
    True
    """
    if host_id is not None:
        warnings.warn(
            "local_devices: host_id is now called process_index",
            UserWarning,
            stacklevel=2,
        )
        process_index = host_id
    if process_index is None:
        return client_local_devices(backend)
    if process_index not in process_indices(backend):
        raise ValueError(
            f"there is no process {process_index!r}; the processes are "
            f"{process_indices(backend)}"
        )
    every = client_devices(backend)
    return [device for device in every if device.process_index == process_index]


def version_of(name: str) -> str:
    """The version of an installed package."""
    try:
        found: str = metadata.version(name)
        return found
    except ModuleNotFoundError:  # PackageNotFoundError is one
        return "not installed, run from its sources"


def environment_info() -> str:
    """Versions, devices and the relevant environment variables, for bug reports."""
    options = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(VARIABLES)
    ]
    found = ", ".join(map(str, client_devices()))
    lines = [
        f"verax:   {version_of('verax')}",
        f"jaxlib:  {version_of('jaxlib')}",
        f"numpy:   {version_of('numpy')}",
        f"python:  {sys.version}",
        f"system:  {platform.platform()}",
        f"devices: {found} ({default_client().platform_version.splitlines()[0]})",
        *options,
    ]
    return "\n".join(lines)


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what a bug report should contain, or return it.

    >>> import verax
    >>> verax.print_environment_info(return_string=True).startswith("verax:")
    True
    """
    text = environment_info()
    if return_string:
        return text
    print(text)
    return None
