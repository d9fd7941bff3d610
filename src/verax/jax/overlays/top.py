"""Names of `jax` itself that differ from those of `verax`: its version."""

from verax.jax.names import VERSION, VERSION_INFO

__version__ = VERSION
__version_info__ = VERSION_INFO
