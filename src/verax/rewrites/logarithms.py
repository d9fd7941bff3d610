"""Logarithms and exponentials without overflow and cancellation.

One idea: a composition that loses its value on the way (log of a sum of exponentials
that overflows, log of one plus a tiny number) is computed by the function that was made
for it. Where the program was stable already, its equations say so, and no rule
applies::

    log(sum(exp(x)))  ->  logsumexp(x)
    log(softmax(x))   ->  log_softmax(x)
    log(1 + x)        ->  log1p(x)

`weak` are operands where the pattern loses digits in float32, `gain` how many of them
are there again. A branch that is not taken gets operands on which its derivative is
finite, since 0 times infinity is NaN.
"""

from functools import partial
from math import log as ln

import verax.lax as lax
import verax.nn as nn
import verax.numpy as vnp
from verax.rewrites.applying import bounded, chosen, floats, shifted
from verax.rules.values.array import Array
from verax.transforms.patterns.rewrite_rules import Operand, Rewrite, rewrite

VECTOR = [["f32[3]"]]
MATRIX = [["f32[2,3]"]]
WIDE = (-80, 80)
LARGE = (([90.0, 80.0, 85.0],),)
TINY = ((3e-6,), (-1e-5,))


def free(x: Operand, **params: object) -> bool:
    """Whether x is floating, and no maximum has been subtracted from it."""
    return floats(x) and not shifted(x)


def unbounded(x: Operand) -> bool:
    """Whether x is floating, and its exponential may overflow."""
    return floats(x) and not bounded(x)


def free_mean(x: Operand, n: Operand, **params: object) -> bool:
    """The same for a mean, with a number that divides."""
    return free(x) and n.literal is not None and float(n.literal) > 0


of_free = partial(rewrite, where=free, domain=WIDE, weak=LARGE)
"""Makes rules of exponentials that overflow, unless a maximum was subtracted."""
near_one = partial(rewrite, where=floats, weak=TINY, gain=3, ulps=4)
"""Makes rules of sums with 1, in which a small number is lost."""
of_unbounded = partial(rewrite, where=unbounded, ulps=8)
"""Makes rules of exponentials that may overflow."""
of_floats = partial(rewrite, where=floats, ulps=8, domain=WIDE)
"""Makes rules of floats of any size."""


@of_free(
    lambda x, axes=(1,): vnp.log(vnp.sum(vnp.exp(x), axis=axes)),
    types=MATRIX,
    ulps=8,
    gain=5,
)
def log_of_sum_of_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.logsumexp(x, axis=axes)


@of_free(
    lambda x, axes=(1,): vnp.log(vnp.sum(vnp.exp(x), axis=axes, keepdims=True)),
    types=MATRIX,
    ulps=8,
    gain=5,
)
def log_of_kept_sum_of_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.logsumexp(x, axis=axes, keepdims=True)


@rewrite(
    lambda x, n, axes=(1,): vnp.log(vnp.sum(vnp.exp(x), axis=axes) / n),
    where=free_mean,
    types=[("f32[2,3]", "f32[]")],
    ulps=16,
    domain=(1, 80),
    weak=(([90.0, 80.0, 85.0], 3.0),),
    gain=5,
)
def log_of_mean_of_exp(x: Array, n: Array, axes: tuple[int, ...]) -> Array:
    return nn.logsumexp(x, axis=axes) - ln(float(n))


@of_free(
    lambda x, axes=(1,): vnp.log(
        vnp.exp(x) / vnp.sum(vnp.exp(x), axis=axes, keepdims=True)
    ),
    types=MATRIX,
    ulps=16,
    gain=5,
)
def log_of_ratio_of_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.log_softmax(x, axis=axes)


@of_free(
    lambda x, axes=(0,): vnp.log(vnp.exp(x) / vnp.sum(vnp.exp(x), axis=axes)),
    types=VECTOR,
    ulps=16,
    gain=5,
)
def log_of_whole_ratio_of_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.log_softmax(x, axis=axes)


@of_free(
    lambda x, axes=(1,): vnp.exp(x) / vnp.sum(vnp.exp(x), axis=axes, keepdims=True),
    types=MATRIX,
    ulps=256,
    gain=4,
)
def ratio_of_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.softmax(x, axis=axes)


@of_free(
    lambda x, axes=(0,): vnp.exp(x) / vnp.sum(vnp.exp(x), axis=axes),
    types=VECTOR,
    ulps=256,
    gain=4,
)
def whole_ratio_of_exp(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.softmax(x, axis=axes)


@of_free(
    lambda x, axes=(0,): vnp.exp(x) * (1 / vnp.sum(vnp.exp(x), axis=axes)),
    types=VECTOR,
    ulps=256,
    gain=4,
)
def exp_times_inverse_sum(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.softmax(x, axis=axes)


@rewrite(
    lambda x, axes=(1,): vnp.log(nn.softmax(x, axis=axes)),
    where=lambda x, **_: floats(x),
    types=MATRIX,
    ulps=16,
    domain=WIDE,
    weak=(([0.0, -120.0, -150.0],),),
    gain=5,
)
def log_of_softmax(x: Array, axes: tuple[int, ...]) -> Array:
    return nn.log_softmax(x, axis=axes)


@of_floats(
    lambda x: vnp.log(nn.sigmoid(x)),
    weak=((16.0,), (-110.0,)),
    gain=5,
)
def log_of_sigmoid(x: Array) -> Array:
    return nn.log_sigmoid(x)


@of_floats(
    lambda x: vnp.log(1 - nn.sigmoid(x)),
    weak=((20.0,),),
    gain=5,
)
def log_of_one_minus_sigmoid(x: Array) -> Array:
    return nn.log_sigmoid(-x)


@of_unbounded(
    lambda x: vnp.log1p(vnp.exp(x)),
    domain=WIDE,
    weak=((90.0,),),
    gain=5,
)
def log1p_of_exp(x: Array) -> Array:
    return nn.softplus(x)


@of_unbounded(
    lambda x: vnp.log(1 + vnp.exp(x)),
    domain=WIDE,
    weak=((90.0,), (-12.0,)),
    gain=2,
)
def log_of_one_plus_exp(x: Array) -> Array:
    return nn.softplus(x)


@rewrite(
    lambda x, y: vnp.log(vnp.exp(x) + vnp.exp(y)),
    where=lambda x, y: floats(x, y) and x.aval is y.aval,
    ulps=16,
    domain=WIDE,
    weak=((90.0, 89.0),),
    gain=5,
)
def log_of_two_exps(x: Array, y: Array) -> Array:
    out: Array = vnp.logaddexp(x, y)
    return out


@of_unbounded(
    lambda x: vnp.log(1 - vnp.exp(x)),
    domain=(-80, -1e-6),
    weak=((-3e-7,), (-20.0,), (-1e-8,)),
    gain=1,
)
def log_of_one_minus_exp(x: Array) -> Array:
    return log1mexp(x)


@of_unbounded(
    lambda x: vnp.log1p(-vnp.exp(x)),
    domain=(-80, -1e-6),
    weak=((-3e-7,), (-1e-8,)),
    gain=1,
)
def log1p_of_minus_exp(x: Array) -> Array:
    return log1mexp(x)


def log1mexp(x: Array) -> Array:
    """log(1 - exp(x)) for x < 0.

    Mächler, "Accurately computing log(1 - exp(-|a|))", 2012: which of two forms keeps
    its digits changes at -log(2).
    """
    near = x > -ln(2)
    close = vnp.log(-vnp.expm1(vnp.where(near, x, -1)))
    return vnp.where(near, close, vnp.log1p(-vnp.exp(vnp.where(near, -1, x))))


@near_one(
    lambda x: vnp.log(1 + x),
    domain=(-0.5, 1e6),
)
def log_of_one_plus(x: Array) -> Array:
    return vnp.log1p(x)


@near_one(
    lambda x: vnp.log(1 - x),
    domain=(-1e6, 0.5),
)
def log_of_one_minus(x: Array) -> Array:
    return vnp.log1p(-x)


@rewrite(
    lambda x, y: vnp.log(x) - vnp.log(y),
    where=lambda x, y: floats(x, y) and not chosen(x) and x.aval is y.aval,
    ulps=8,
    domain=(1e-6, 1e6),
    weak=((1000.01, 1000.0),),
    gain=1.5,
)
def difference_of_logs(x: Array, y: Array) -> Array:
    near = (x < 2 * y) & (y < 2 * x)
    far = vnp.log(vnp.where(near, 1, x)) - vnp.log(vnp.where(near, 1, y))
    ratio = vnp.where(near, x - y, 0) / vnp.where(near, y, 1)
    return vnp.where(near, vnp.log1p(ratio), far)


@rewrite(
    lambda x: vnp.log((1 + x) / (1 - x)),
    where=floats,
    ulps=8,
    domain=(-0.999, 0.999),
    weak=((1e-5,),),
    gain=2,
)
def log_of_odds(x: Array) -> Array:
    return 2 * vnp.arctanh(x)


@of_unbounded(
    lambda x: vnp.log(vnp.cosh(x)),
    domain=WIDE,
    weak=((1e-2,), (100.0,)),
    gain=2,
)
def log_of_cosh(x: Array) -> Array:
    near = vnp.abs(x) < 1
    small = vnp.log1p(2 * vnp.sinh(vnp.where(near, x, 0) / 2) ** 2)
    large = vnp.abs(vnp.where(near, 1, x))
    return vnp.where(near, small, large + vnp.log1p(vnp.exp(-2 * large)) - ln(2))


@rewrite(
    lambda x, axes=(1,): vnp.log(lax.reduce_prod(x, axes)),
    where=lambda x, **_: floats(x),
    types=MATRIX,
    ulps=16,
    domain=(1e-6, 1e3),
    weak=(([1e-20, 1e-15, 1e-18],),),
    gain=5,
)
def log_of_product(x: Array, axes: tuple[int, ...]) -> Array:
    sign = vnp.prod(vnp.sign(x), axis=axes)
    total = vnp.sum(vnp.log(vnp.abs(x)), axis=axes)
    return vnp.where(sign < 0, vnp.nan, total)


# -----------------------------------------------------------------------------
# Exponentials.


@near_one(
    lambda x: vnp.exp(x) - 1,
    domain=WIDE,
    also=[lambda x: vnp.exp(x) + -1],
)
def exp_minus_one(x: Array) -> Array:
    return vnp.expm1(x)


@near_one(
    lambda x: 1 - vnp.exp(x),
    domain=WIDE,
)
def one_minus_exp(x: Array) -> Array:
    return -vnp.expm1(x)


@of_floats(
    lambda x: (vnp.exp(x) - vnp.exp(-x)) / (vnp.exp(x) + vnp.exp(-x)),
    weak=((90.0,), (1e-4,)),
    gain=2,
)
def ratio_of_sinh_and_cosh(x: Array) -> Array:
    return vnp.tanh(x)


@of_floats(
    lambda x: (vnp.exp(x) - 1) / (vnp.exp(x) + 1),
    weak=((90.0,), (1e-4,)),
    gain=2,
)
def ratio_of_exp_minus_and_plus_one(x: Array) -> Array:
    return vnp.tanh(x / 2)


@of_floats(
    lambda x: vnp.exp(x) - vnp.exp(-x),
    weak=((1e-4,),),
    gain=2,
)
def difference_of_exps(x: Array) -> Array:
    return 2 * vnp.sinh(x)


@rewrite(
    lambda x: vnp.exp(x) / (1 + vnp.exp(x)),
    where=floats,
    ulps=128,
    domain=WIDE,
    weak=((90.0,),),
    gain=5,
)
def ratio_of_exp_and_one_plus(x: Array) -> Array:
    return nn.sigmoid(x)


@rewrite(
    lambda x: 1 - nn.sigmoid(x),
    where=floats,
    ulps=128,
    domain=WIDE,
    weak=((15.0,),),
    gain=4,
)
def one_minus_sigmoid(x: Array) -> Array:
    return nn.sigmoid(-x)


@rewrite(
    lambda x: 1 - vnp.tanh(x),
    where=floats,
    ulps=128,
    domain=(-40, 40),
    weak=((7.0,),),
    gain=4,
)
def one_minus_tanh(x: Array) -> Array:
    return 2 * nn.sigmoid(-2 * x)


@rewrite(
    lambda x: 1 - lax.erf(x),
    where=floats,
    ulps=64,
    domain=(-8, 8),
    weak=((3.5,),),
    gain=3,
)
def one_minus_erf(x: Array) -> Array:
    return lax.erfc(x)


LOGARITHMS: tuple[Rewrite, ...] = (
    log_of_ratio_of_exp,
    log_of_whole_ratio_of_exp,
    log_of_softmax,
    log_of_sum_of_exp,
    log_of_kept_sum_of_exp,
    log_of_mean_of_exp,
    ratio_of_exp,
    whole_ratio_of_exp,
    exp_times_inverse_sum,
    log_of_sigmoid,
    log_of_one_minus_sigmoid,
    log1p_of_exp,
    log1p_of_minus_exp,
    log_of_one_plus_exp,
    log_of_one_minus_exp,
    log_of_two_exps,
    log_of_odds,
    log_of_cosh,
    log_of_product,
    difference_of_logs,
    log_of_one_plus,
    log_of_one_minus,
    ratio_of_sinh_and_cosh,
    ratio_of_exp_minus_and_plus_one,
    ratio_of_exp_and_one_plus,
    difference_of_exps,
    one_minus_sigmoid,
    one_minus_tanh,
    one_minus_erf,
    exp_minus_one,
    one_minus_exp,
)
