"""The cache of compiled programs, as `jax.experimental.compilation_cache` (floor 6).

>>> from verax.experimental.compilation_cache import compilation_cache
>>> compilation_cache.reset_cache()
"""
