"""Modules below `jax._src` that libraries import, as far as they mean something."""
