"""Floor 6: greatest common divisors and least common multiples.

Euclid's algorithm on all elements at once, until every remainder is 0::

    gcd(12, x), lcm(x, y)
"""

from typing import Any

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import is_integer
from verax.lax.looping import while_loop
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    promote,
    stretched_together,
)
from verax.numpy.elementwise.arithmetic import abs, multiply
from verax.numpy.elementwise.comparison import equal, not_equal
from verax.numpy.reducing.reductions import any
from verax.numpy.searching.where_nonzero import where
from verax.ops.elementwise.arith import div, rem
from verax.ops.elementwise.convert import convert
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array


def integers(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Array, Array]:
    """The absolute values, in one dtype and shape.

    Raises:
        TypeError: the operands are not integers.
    """
    pair = [as_array(name, x) for x in promote(name, x1, x2)]
    if not is_integer(pair[0].dtype):
        raise ValueError(f"{name} takes integers, not {pair[0].aval}")
    x, y = stretched_together(name, [abs(x) for x in pair])
    shape = x.shape or y.shape
    return filled_to(x, shape), filled_to(y, shape)


def filled_to(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` in a shape; weak only if that has no dimensions, as in JAX."""
    if not shape:
        return x
    wide = x if x.shape == shape else broadcast_in_dim(x, shape, ())
    return convert(wide, wide.dtype)


@remembered
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisors of integers, by elements; gcd(x, 0) is |x|.

    Raises:
        TypeError: the operands are not integers.

    >>> import verax.numpy as vnp
    >>> int(vnp.gcd(12, -18))
    6
    """
    return euclid(*integers("gcd", x1, x2))


def euclid(x: Array, y: Array) -> Array:
    """Pairs become (divisor, remainder) where there is a remainder."""

    def unfinished(pair: Any) -> Array:
        return any(not_equal(pair[1], 0))

    def step(pair: Any) -> Any:
        high, low = pair
        done = equal(low, 0)
        remainder = abs(rem(high, where(done, 1, low)))
        return where(done, high, low), where(done, low, remainder)

    found: Array = while_loop(unfinished, step, (x, y))[0]
    return found


@remembered
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiples of integers, by elements; 0 where one is 0.

    Raises:
        TypeError: the operands are not integers.
    """
    x, y = integers("lcm", x1, x2)
    divisor = euclid(x, y)
    divisor = where(equal(divisor, 0), 1, divisor)
    return multiply(abs(x), div(abs(y), divisor))
