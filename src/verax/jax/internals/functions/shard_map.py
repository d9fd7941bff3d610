"""`jax._src.shard_map`: the function that JAX has at its top, with `check_vma`."""

from verax import shard_map as shard_map, smap as smap
