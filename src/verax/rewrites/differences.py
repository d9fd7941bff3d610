"""Differences of nearly equal numbers, and squares that overflow, in other words.

One idea: a difference takes away the digits in which its operands agree, so what is
computed before it should have taken them away exactly::

    x**2 - y**2                ->  (x - y) * (x + y)
    1 - cos(x)                 ->  2 * sin(x / 2)**2
    mean(x**2) - mean(x)**2    ->  mean((x - mean(x))**2)
    sqrt(x**2 + y**2)          ->  hypot(x, y)

Squares are written in several ways, so `in_squares` makes a pattern of each.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod, sqrt
from typing import TypedDict

import verax.lax as lax
import verax.numpy as vnp
from verax.rewrites.applying import alike, floats, scaled
from verax.rules.values.array import Array
from verax.transforms.patterns.rewrite_rules import Operand, Rewrite, rewrite

type Axes = tuple[int, ...]
type Square = Callable[[Array], Array]

MEAN = [("f32[2,3]", "f32[]")]
MEANS = [("f32[2,3]", "f32[2,3]", "f32[]")]
NEAR = [1000.1, 1000.3, 1000.2, 999.9, 1000.7, 1000.4]


def by_itself(x: Array) -> Array:
    """x² as a product."""
    return x * x


def by_power(x: Array) -> Array:
    """x² as a power."""
    return lax.integer_pow(x, 2)


def by_square(x: Array) -> Array:
    """x² as it is called."""
    return lax.square(x)


SQUARES: tuple[Square, ...] = (by_power, by_itself, by_square)


class Patterns(TypedDict):
    """Arguments of `rewrite`: a pattern, and others with the same meaning."""

    pattern: Callable[..., object]
    also: Sequence[Callable[..., object]]


def in_squares(count: int, *patterns: Callable[..., object]) -> Patterns:
    """Arguments of `rewrite`, from functions that first take `count` squares."""
    ways = product(patterns, product(SQUARES, repeat=count))
    first, *others = [partial(pattern, *squares) for pattern, squares in ways]
    return {"pattern": first, "also": others}


# -----------------------------------------------------------------------------
# Differences of elementary functions.


@rewrite(
    lambda x: 1 - vnp.cos(x),
    where=floats,
    ulps=8,
    domain=(-10, 10),
    weak=((3e-3,), (-1e-3,)),
    gain=2,
)
def one_minus_cos(x: Array) -> Array:
    return 2 * vnp.sin(x / 2) ** 2


@rewrite(
    lambda x: vnp.cos(x) - 1,
    where=floats,
    ulps=8,
    domain=(-10, 10),
    weak=((3e-3,), (-1e-3,)),
    gain=2,
    also=[lambda x: vnp.cos(x) + -1],
)
def cos_minus_one(x: Array) -> Array:
    return -2 * vnp.sin(x / 2) ** 2


@rewrite(
    lambda x, y: vnp.sqrt(x + y) - vnp.sqrt(x),
    where=floats,
    ulps=8,
    domain=(1e-3, 1e4),
    weak=((1e6, 0.3), (3e4, 1e-2)),
    gain=2,
)
def step_of_sqrt(x: Array, y: Array) -> Array:
    return y / (vnp.sqrt(x + y) + vnp.sqrt(x))


@rewrite(
    lambda x, y: vnp.sqrt(x) - vnp.sqrt(y),
    where=floats,
    ulps=8,
    domain=(0.0, 1e6),
    weak=((1000.1, 1000.0),),
    gain=1.5,
)
def difference_of_roots(x: Array, y: Array) -> Array:
    total = vnp.sqrt(x) + vnp.sqrt(y)
    return (x - y) / vnp.where(total == 0, 1, total)


@rewrite(
    lambda x: vnp.sqrt(1 + x) - 1,
    where=floats,
    ulps=8,
    domain=(-1.0, 1e6),
    weak=((1e-5,), (-3e-6,)),
    gain=2,
)
def sqrt_of_one_plus_minus_one(x: Array) -> Array:
    return x / (vnp.sqrt(1 + x) + 1)


@rewrite(
    lambda x, y: 1 / (x + y) - 1 / x,
    where=floats,
    ulps=16,
    domain=(1e-2, 1e4),
    weak=((1000.0, 1e-2),),
    gain=2,
)
def step_of_inverse(x: Array, y: Array) -> Array:
    return -(y / (x + y)) / x


@rewrite(
    lambda x, y: 1 / x - 1 / y,
    where=floats,
    ulps=16,
    domain=(1e-2, 1e4),
    weak=((1000.1, 1000.0),),
    gain=1.5,
)
def difference_of_inverses(x: Array, y: Array) -> Array:
    larger = vnp.abs(x) > vnp.abs(y)
    return (y - x) / vnp.where(larger, x, y) / vnp.where(larger, y, x)


@rewrite(
    lambda x, y: (1 + x) * (1 + y) - 1,
    where=alike,
    ulps=8,
    domain=(-0.5, 1e3),
    weak=((1e-5, 3e-5),),
    gain=2,
)
def product_near_one(x: Array, y: Array) -> Array:
    return x + y + x * y


# -----------------------------------------------------------------------------
# Differences of squares, and roots of quadratics.


@rewrite(
    **in_squares(2, lambda p, q, x, y: p(x) - q(y)),
    where=alike,
    ulps=8,
    domain=(-1e3, 1e3),
    weak=((1000.1, 1000.0),),
    gain=1.5,
)
def difference_of_squares(x: Array, y: Array) -> Array:
    return (x - y) * (x + y)


@rewrite(
    **in_squares(1, lambda p, x: 1 - p(x)),
    where=floats,
    ulps=8,
    domain=(-1e3, 1e3),
    weak=((0.99999,), (-0.9999,)),
    gain=1.5,
)
def one_minus_square(x: Array) -> Array:
    return (1 - x) * (1 + x)


@rewrite(
    **in_squares(1, lambda p, x: p(x) - 1),
    where=floats,
    ulps=8,
    domain=(-1e3, 1e3),
    weak=((0.99999,), (1.0001,)),
    gain=1.5,
)
def square_minus_one(x: Array) -> Array:
    return (x - 1) * (x + 1)


def are_coefficients(b: Operand, c: Operand) -> bool:
    """Whether b and c are floating, and c is a number or as b is."""
    return alike(b, c) or (floats(b, c) and not c.shape)


quadratic = partial(rewrite, where=are_coefficients, domain=(1e-2, 1e2), ulps=64)
"""Makes rules of the roots of a quadratic equation."""


@quadratic(
    **in_squares(
        1,
        lambda p, b, c: -b + vnp.sqrt(p(b) - c),
        lambda p, b, c: vnp.sqrt(p(b) - c) - b,
    ),
    weak=((100.0, 0.5),),
    gain=2,
)
def upper_root(b: Array, c: Array) -> Array:
    return upper(b, c, vnp.sqrt(b * b - c))


@quadratic(
    **in_squares(1, lambda p, b, c: -b - vnp.sqrt(p(b) - c)),
    weak=((-100.0, 0.5),),
    gain=2,
)
def lower_root(b: Array, c: Array) -> Array:
    return -upper(-b, c, vnp.sqrt(b * b - c))


@quadratic(
    **in_squares(
        1,
        lambda p, b, c: -b + vnp.sqrt(p(b) + c),
        lambda p, b, c: vnp.sqrt(p(b) + c) - b,
    ),
    weak=((100.0, 0.5),),
    gain=2,
)
def upper_root_of_sum(b: Array, c: Array) -> Array:
    return upper(b, -c, vnp.sqrt(b * b + c))


@quadratic(
    **in_squares(1, lambda p, b, c: -b - vnp.sqrt(p(b) + c)),
    weak=((-100.0, 0.5),),
    gain=2,
)
def lower_root_of_sum(b: Array, c: Array) -> Array:
    return -upper(-b, -c, vnp.sqrt(b * b + c))


def upper(b: Array, c: Array, root: Array) -> Array:
    """root - b, where root² = b² - c: by -c / (root + b) where b is positive."""
    minus = b > 0
    return vnp.where(
        minus, -c / vnp.where(minus, root + b, 1), root - vnp.where(minus, 0, b)
    )


@rewrite(
    **in_squares(1, lambda p, x: vnp.log(x + vnp.sqrt(p(x) + 1))),
    where=floats,
    ulps=8,
    domain=(-20, 1e6),
    weak=((1e-4,), (-300.0,)),
    gain=2,
)
def log_of_sum_with_root(x: Array) -> Array:
    return vnp.arcsinh(x)


# -----------------------------------------------------------------------------
# Moments.


def is_mean(x: Operand, n: Operand, axes: Axes) -> bool:
    """Whether n is how many elements of x are added up."""
    count = prod([x.shape[i] for i in axes])
    return floats(x) and n.literal is not None and float(n.literal) == count


def are_means(x: Operand, y: Operand, n: Operand, axes: Axes) -> bool:
    """The same for two arrays of one type."""
    return alike(x, y) and is_mean(x, n, axes)


def centred(x: Array, axes: Axes) -> Array:
    """x without its mean."""
    return x - vnp.mean(x, axis=axes, keepdims=True)


def mean_less_square(
    p: Square,
    q: Square,
    x: Array,
    n: Array,
    axes: Axes = (0,),
    *,
    keepdims: bool = False,
) -> Array:
    """mean(x²) - mean(x)², where n elements are added up."""
    total = partial(vnp.sum, axis=axes, keepdims=keepdims)
    out: Array = total(p(x)) / n - q(total(x) / n)
    return out


def mean_less_product(
    x: Array, y: Array, n: Array, axes: Axes = (0,), *, keepdims: bool = False
) -> Array:
    """mean(x * y) - mean(x) * mean(y), where n elements are added up."""
    total = partial(vnp.sum, axis=axes, keepdims=keepdims)
    return total(x * y) / n - (total(x) / n) * (total(y) / n)


moment = partial(rewrite, ulps=64, domain=(-100, 100), gain=2)
"""Makes rules of variances and covariances."""


@moment(
    **in_squares(2, lambda p, q, x, n, axes=(0,): mean_less_square(p, q, x, n, axes)),
    where=is_mean,
    types=MEAN,
    weak=((NEAR, 2.0),),
)
def variance(x: Array, n: Array, axes: Axes) -> Array:
    return vnp.mean(centred(x, axes) ** 2, axis=axes)


@moment(
    **in_squares(
        2,
        lambda p, q, x, n, axes=(0,): mean_less_square(p, q, x, n, axes, keepdims=True),
    ),
    where=is_mean,
    types=MEAN,
    weak=((NEAR, 2.0),),
)
def kept_variance(x: Array, n: Array, axes: Axes) -> Array:
    return vnp.mean(centred(x, axes) ** 2, axis=axes, keepdims=True)


@moment(
    lambda x, y, n, axes=(0,): mean_less_product(x, y, n, axes),
    where=are_means,
    types=MEANS,
    weak=((NEAR, [99.1, 98.7, 100.2, 98.0, 100.0, 100.3], 2.0),),
)
def covariance(x: Array, y: Array, n: Array, axes: Axes) -> Array:
    return vnp.mean(centred(x, axes) * centred(y, axes), axis=axes)


@moment(
    lambda x, y, n, axes=(0,): mean_less_product(x, y, n, axes, keepdims=True),
    where=are_means,
    types=MEANS,
    weak=((NEAR, [99.1, 98.7, 100.2, 98.0, 100.0, 100.3], 2.0),),
)
def kept_covariance(x: Array, y: Array, n: Array, axes: Axes) -> Array:
    return vnp.mean(centred(x, axes) * centred(y, axes), axis=axes, keepdims=True)


# -----------------------------------------------------------------------------
# Norms.


@rewrite(
    **in_squares(2, lambda p, q, x, y: vnp.sqrt(p(x) + q(y))),
    where=lambda x, y: alike(x, y) and not scaled(x),
    ulps=8,
    domain=(-1e6, 1e6),
    weak=((3e30, 4e30), (1e-30, 2e-30)),
    gain=5,
)
def root_of_two_squares(x: Array, y: Array) -> Array:
    return vnp.hypot(x, y)


def unscaled(x: Operand, **params: object) -> bool:
    """Whether x is floating, and has not been divided by its size."""
    return floats(x) and not scaled(x)


def positive(x: Operand, c: Operand, **params: object) -> bool:
    """The same, with a positive number c that is added."""
    return unscaled(x) and c.literal is not None and float(c.literal) > 0


def size_of(x: Array, axes: Axes, least: float, *, keepdims: bool) -> Array:
    """The largest magnitude, no less than `least`; 1 where it is 0 or not finite."""
    size = vnp.max(vnp.abs(lax.stop_gradient(x)), axis=axes, keepdims=keepdims)
    size = vnp.maximum(size, least)
    return vnp.where((size > 0) & vnp.isfinite(size), size, 1)


def norm(x: Array, axes: Axes, root: float = 0.0, *, keepdims: bool = False) -> Array:
    """sqrt(sum(x²) + root²) from what has been divided by the largest element."""
    size = size_of(x, axes, root, keepdims=keepdims)
    shares = x / (size if keepdims else vnp.expand_dims(size, axes))
    total = vnp.sum(shares * shares, axis=axes, keepdims=keepdims)
    if root:
        total = total + (root / size) ** 2
    return size * vnp.sqrt(total)


of_norm = partial(rewrite, ulps=16, domain=(-1e6, 1e6), gain=5)
"""Makes rules of roots of sums of squares."""
ENDS = (([1e30, 2e30, 3e30],), ([1e-30, 2e-30, 3e-30],))


@of_norm(
    **in_squares(1, lambda p, x, axes=(1,): vnp.sqrt(vnp.sum(p(x), axis=axes))),
    where=unscaled,
    types=[["f32[2,3]"]],
    weak=ENDS,
)
def root_of_sum_of_squares(x: Array, axes: Axes) -> Array:
    return norm(x, axes)


@of_norm(
    **in_squares(
        1, lambda p, x, axes=(1,): vnp.sqrt(vnp.sum(p(x), axis=axes, keepdims=True))
    ),
    where=unscaled,
    types=[["f32[2,3]"]],
    weak=ENDS,
)
def root_of_kept_sum_of_squares(x: Array, axes: Axes) -> Array:
    return norm(x, axes, keepdims=True)


@of_norm(
    **in_squares(1, lambda p, x, c, axes=(1,): vnp.sqrt(vnp.sum(p(x), axis=axes) + c)),
    where=positive,
    types=MEAN,
    weak=(([1e30, 2e30, 3e30], 3.0),),
)
def root_of_sum_of_squares_and_number(x: Array, c: Array, axes: Axes) -> Array:
    # The root of a number that is denormal may be too.
    return norm(x, axes, sqrt(float(c)))


DIFFERENCES: tuple[Rewrite, ...] = (
    log_of_sum_with_root,
    one_minus_cos,
    cos_minus_one,
    variance,
    kept_variance,
    covariance,
    kept_covariance,
    upper_root,
    lower_root,
    upper_root_of_sum,
    lower_root_of_sum,
    sqrt_of_one_plus_minus_one,
    step_of_sqrt,
    difference_of_roots,
    step_of_inverse,
    difference_of_inverses,
    product_near_one,
    one_minus_square,
    square_minus_one,
    difference_of_squares,
    root_of_two_squares,
    root_of_sum_of_squares,
    root_of_kept_sum_of_squares,
    root_of_sum_of_squares_and_number,
)
