"""Floor 2: the primitives, one small file per family, each row with all its rules.

Functions here bind: `sin(x)` computes, or writes an equation, as the current
interpreter has it::

    y = mul(sin(x), 2.0)

`verax.ops.segment_sum` and its like are also what `jax.ops` has under these names.
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".indexing.scatter": "segment_max segment_min segment_prod segment_sum",
    },
)
