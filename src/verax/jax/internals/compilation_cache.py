"""`jax._src.compilation_cache`: whether programs are kept on disk."""

from verax.rules.values.state import STATE


def is_persistent_cache_enabled() -> bool:
    """Whether compiled programs are kept in a folder for the next process."""
    return bool(STATE.enable_compilation_cache and STATE.compilation_cache_dir)
