"""`jax._src.random.prng`: arrays of keys, told from others by their dtype."""

from verax.dtypes import issubdtype, prng_key
from verax.jax.stand_ins import stand_in
from verax.rules.values.array import Array


def is_key(x: object) -> bool:
    """Whether a value is an array of keys."""
    return isinstance(x, Array) and issubdtype(x.dtype, prng_key)


PRNGKeyArray = stand_in("PRNGKeyArray", is_key, "arrays of keys")
