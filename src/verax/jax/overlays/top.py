"""Names of `jax` itself that differ from those of `verax`: its version."""

from verax.jax.names import VERSION as __version__

__version_info__ = tuple(map(int, __version__.split(".")))
