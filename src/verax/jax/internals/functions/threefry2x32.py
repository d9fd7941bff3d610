"""`jax._src.random.threefry2x32`: the generator behind keys, on their words."""

from verax.extend.random import (
    threefry_2x32 as threefry_2x32,
    threefry_prng_impl as threefry_prng_impl,
)
from verax.ops.random.threefry import (
    fold_in as threefry_fold_in,
    random_bits as threefry_random_bits,
    seed as threefry_seed,
    split as threefry_split,
)

__all__ = [
    "threefry_2x32",
    "threefry_fold_in",
    "threefry_prng_impl",
    "threefry_random_bits",
    "threefry_seed",
    "threefry_split",
]
