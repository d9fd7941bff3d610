"""Compiled functions as bytes, as `jax.experimental.serialize_executable` (floor 6).

`Compiled.serialize` and `verax.stages.deserialize` do the same with the structures in
the bytes::

    data, in_tree, out_tree = serialize(compiled)
    deserialize_and_load(data, in_tree, out_tree)(x)

>>> import verax
>>> compiled = verax.jit(lambda x: x + 1).lower(1).compile()
>>> int(deserialize_and_load(*serialize(compiled))(2))
3
"""

from verax.api.stages.loading import deserialize_and_load, serialize

__all__ = ["deserialize_and_load", "serialize"]
