"""Clients of the runtime under the names of `jax.extend.backend` (floor 6).

A client is jaxlib's own object, with its own methods::

    get_backend().platform_version

>>> get_backend().platform in backends()
True
"""

from verax.api.config.caches import clear_caches as clear_in_memory_compilation_cache
from verax.backend.runtime.client import (
    Client,
    Device,
    check_backend,
    default_client,
    local_devices,
    platform_name,
)
from verax.rules.values.state import STATE

__all__ = [
    "backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_default_device",
]


def get_backend(platform: str | None = None) -> Client:
    """The client of a platform, by default that of the process.

    Raises:
        RuntimeError: there is no such platform.
    """
    return check_backend(platform)


def backends() -> dict[str, Client]:
    """The client of the process by the name of its platform."""
    client = default_client()
    return {platform_name(client): client}


def get_default_device() -> Device:
    """The place of arrays that have no other."""
    chosen: Device | None = STATE.default_device
    return local_devices()[0] if chosen is None else chosen
