"""`jax._src.random.prng`: arrays of keys, told from others by their dtype."""

from typing import Any

from verax.dtypes import issubdtype, prng_key
from verax.jax.stand_ins import stand_in
from verax.ops.random.generators import generator
from verax.random.keys import resolved
from verax.rules.values.array import Array


def is_key(x: object) -> bool:
    """Whether a value is an array of keys."""
    return isinstance(x, Array) and issubdtype(x.dtype, prng_key)


PRNGKeyArray = stand_in("PRNGKeyArray", is_key, "arrays of keys")


def default_prng_impl() -> Any:
    """The generator of keys for which none is named."""
    return generator(resolved(None))
