"""The cache of compiled programs, as JAX names it (floor 6).

`verax.config` says the same, and more::

    verax.config.update("compilation_cache_dir", "/var/cache/programs")

>>> reset_cache()
"""

from verax.api.config.config import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str) -> None:
    """Store compiled programs in this directory from now on."""
    config.update("compilation_cache_dir", path)


def reset_cache() -> None:
    """Forget which directory was opened: verax opens it for each program, so nothing.

    The next program that is compiled is looked for where `compilation_cache_dir` says.
    """
