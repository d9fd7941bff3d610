"""Names of `jax` itself that differ from those of `verax`: its version."""

from verax.api.parallel.environment import environment_info
from verax.jax.names import VERSION, VERSION_INFO

__version__ = VERSION
__version_info__ = VERSION_INFO


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what a bug report should contain, or return it; jax's version is first."""
    text = f"{'jax:':8}{VERSION}\n{environment_info()}"
    if return_string:
        return text
    print(text)
    return None
