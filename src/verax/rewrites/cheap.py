"""Strength reduction: the same results from cheaper operations.

One idea: powers of two are exact, so dividing by one is multiplying by its inverse,
and on integers it is a shift; small powers are products::

    x / 8        ->  x * 0.125          every bit kept
    n * 8        ->  n << 3             integers
    x ** 2.0     ->  x * x              within one unit in the last place
"""

import math
from typing import Any

import verax.lax as lax
from verax.ir.dtypes import numpy_dtype
from verax.ir.limits import finfo
from verax.rewrites.guards import exponent, floats, integers, reals, unsigned
from verax.transforms.patterns.rewrite_rules import Operand, Rewrite, rewrite

PAIR = [("f32[2,3]", "f32[]")]
INTEGER_PAIR = [("i32[2,3]", "i32[]")]


def inverse_is_normal(x: Operand, c: Operand) -> bool:
    """Whether c is a power of two whose inverse is one, without loss of bits."""
    power = exponent(c)
    if power is None or not floats(x):
        return False
    tiny, largest = finfo(x.dtype).tiny, finfo(x.dtype).max
    return float(tiny) <= math.ldexp(1.0, -power) <= float(largest)


@rewrite(lambda x, c: x / c, where=inverse_is_normal, types=PAIR)
def over_power_of_two(x: Any, c: Any) -> Any:
    return x * (1 / float(c))


def integer_power(x: Operand, c: Operand) -> bool:
    power = exponent(c)
    return power is not None and power > 0 and integers(x)


def unsigned_power(x: Operand, c: Operand) -> bool:
    return unsigned(x) and integer_power(x, c)


def log2(c: Any, like: Any) -> Any:
    """The exponent of a power of two, as a scalar of another operand's dtype."""
    return numpy_dtype(like.dtype).type(int(c).bit_length() - 1)


@rewrite(lambda x, c: x * c, where=integer_power, types=INTEGER_PAIR)
def times_power_of_two(x: Any, c: Any) -> Any:
    return lax.shift_left(x, log2(c, x))


@rewrite(lambda x, c: lax.div(x, c), where=unsigned_power, types=INTEGER_PAIR)
def unsigned_over_power_of_two(x: Any, c: Any) -> Any:
    return lax.shift_right_logical(x, log2(c, x))


@rewrite(lambda x, c: lax.rem(x, c), where=unsigned_power, types=INTEGER_PAIR)
def unsigned_rest_of_power_of_two(x: Any, c: Any) -> Any:
    return x & numpy_dtype(x.dtype).type(int(c) - 1)


@rewrite(lambda x: lax.integer_pow(x, 1), where=reals)
def first_power(x: Any) -> Any:
    return x


@rewrite(lambda x: lax.integer_pow(x, 2), where=reals)
def second_power(x: Any) -> Any:
    return x * x


@rewrite(lambda x: x**1.0, where=floats)
def power_one(x: Any) -> Any:
    return x


@rewrite(lambda x: x**2.0, where=floats, ulps=1)
def power_two(x: Any) -> Any:
    return x * x


@rewrite(lambda x: x**-1.0, where=floats, ulps=1)
def power_minus_one(x: Any) -> Any:
    return 1 / x


EXACT: tuple[Rewrite, ...] = (
    over_power_of_two,
    times_power_of_two,
    unsigned_over_power_of_two,
    unsigned_rest_of_power_of_two,
    first_power,
    second_power,
    power_one,
    power_two,
    power_minus_one,
)


# x**0.5 of -0.0 is 0.0 and of -inf is inf; a square root gives -0.0 and NaN.
@rewrite(lambda x: x**0.5, where=floats, ulps=1, domain=(0.0, float("inf")))
def power_half_fast(x: Any) -> Any:
    return lax.sqrt(x)


@rewrite(lambda x, y: x / lax.sqrt(y), where=floats, ulps=4, domain=(1e-6, 1e6))
def over_sqrt_fast(x: Any, y: Any) -> Any:
    return x * lax.rsqrt(y)


FAST: tuple[Rewrite, ...] = (power_half_fast, over_sqrt_fast)


def cheaper(*, fast: bool = False) -> tuple[Rewrite, ...]:
    """Cheaper operations instead of expensive ones.

    Without `fast`, results keep every bit, except for powers written with a float,
    which keep all but the last. With it, square roots stand for powers of a half and
    inverse square roots for quotients.

    >>> import verax
    >>> from verax.rewrites import apply, cheaper
    >>> print(verax.make_jaxpr(apply(cheaper())(lambda x: x / 8))(3.0))
    { lambda ; a:~f32[]. let b:~f32[] = mul a 0.125:~f32[] in (b,) }
    """
    return (*EXACT, *FAST) if fast else EXACT
