"""Floor 6: equality, of numbers and of random keys.

Numbers are compared by one equation, and keys by their words::

    eq(x, y), ne(key, other_key)
"""

from verax.ops.elementwise import compare
from verax.ops.elementwise.bits import bitwise_not
from verax.ops.random.keys import key_pair, same_keys
from verax.rules.values.array import Array


def eq(x: object, y: object) -> Array:
    """x = y, on operands of the same dtype and of the same shape or scalar.

    >>> from verax import lax, random
    >>> bool(lax.eq(random.key(0), random.key(0)))
    True
    """
    if (pair := key_pair(x, y)) is not None:
        return same_keys(*pair)
    return compare.eq(x, y)


def ne(x: object, y: object) -> Array:
    """x ≠ y, on operands of the same dtype and of the same shape or scalar."""
    if (pair := key_pair(x, y)) is not None:
        return bitwise_not(same_keys(*pair))
    return compare.ne(x, y)
