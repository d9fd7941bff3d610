"""Floor 2: whether random keys are the same.

One idea: keys are the same where all of their words are, whatever holds the words::

    same_keys(key(0), key(0))    # True
"""

from verax.ir.extended import KeyDType
from verax.ops.elementwise.compare import eq
from verax.ops.random.keys import random_unwrap
from verax.ops.reductions.reduce import reduce_and
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array


def key_pair(x: object, y: object) -> tuple[Array, Array] | None:
    """The operands, if both are keys of one generator."""
    if not isinstance(x, Array) or not isinstance(x.aval.dtype, KeyDType):
        return None
    return (x, y) if isinstance(y, Array) and x.aval.dtype == y.aval.dtype else None


def same_keys(x: Array, y: Array) -> Array:
    """Whether the keys are the same, each with each.

    The operands have one shape, or one of them has no dimensions.

    Raises:
        TypeError: the shapes disagree.
    """
    one, other = random_unwrap(x), random_unwrap(y)
    if one.ndim > other.ndim == 1:
        other = broadcast_in_dim(other, one.shape, (one.ndim - 1,))
    if other.ndim > one.ndim == 1:
        one = broadcast_in_dim(one, other.shape, (other.ndim - 1,))
    return reduce_and(eq(one, other), (one.ndim - 1,))
