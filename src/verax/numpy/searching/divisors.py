"""Floor 6: greatest common divisors and least common multiples.

One idea: Euclid's algorithm on all elements at once, until every remainder is 0::

    gcd(12, x), lcm(x, y)
"""

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
from verax.ops.elementwise.arith import div
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.remainder import rem
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

    Args:
        x1: an array or scalar of integers.
        x2: an array or scalar of integers that broadcasts with `x1`.

    Returns:
        The divisors, which are not negative, in the common dtype of both and of the
        shape to which they broadcast.

    Raises:
        ValueError: the operands are not integers, or do not broadcast.

    >>> import verax.numpy as vnp
    >>> int(vnp.gcd(12, -18))
    6
    >>> vnp.gcd(vnp.array([0, 0, 12]), vnp.array([0, -5, 8])).tolist()
    [0, 5, 4]
    """
    return euclid(*integers("gcd", x1, x2))


def euclid(x: Array, y: Array) -> Array:
    """Pairs become (divisor, remainder) where there is a remainder."""

    def unfinished(pair: tuple[Array, Array]) -> Array:
        return any(not_equal(pair[1], 0))

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        high, low = pair
        done = equal(low, 0)
        remainder = abs(rem(high, where(done, 1, low)))
        return where(done, high, low), where(done, low, remainder)

    out: Array = while_loop(unfinished, step, (x, y))[0]
    return out


@remembered
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiples of integers, by elements; 0 where one is 0.

    They overflow where the dtype cannot hold them.

    Args:
        x1: an array or scalar of integers.
        x2: an array or scalar of integers that broadcasts with `x1`.

    Returns:
        The multiples, which are not negative, in the common dtype of both and of the
        shape to which they broadcast.

    Raises:
        ValueError: the operands are not integers, or do not broadcast.

    >>> import verax.numpy as vnp
    >>> vnp.lcm(vnp.array([4, -6, 0]), vnp.array([6, 4, 3])).tolist()
    [12, 12, 0]
    """
    x, y = integers("lcm", x1, x2)
    divisor = euclid(x, y)
    divisor = where(equal(divisor, 0), 1, divisor)
    return multiply(abs(x), div(abs(y), divisor))
