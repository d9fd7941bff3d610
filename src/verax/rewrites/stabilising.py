"""Numerical stabilisation: the same functions, without overflow and cancellation.

One idea: a composition that loses its value on the way (log of a sum of exponentials
that overflows, log of one plus a tiny number) is computed by the function that was
made for it. Where the program was stable already, its equations say so, and no rule
applies::

    log(sum(exp(x)))  ->  logsumexp(x)
    log(softmax(x))   ->  log_softmax(x)
    log(1 + x)        ->  log1p(x)
"""

from typing import Any

import verax.nn as nn
import verax.numpy as vnp
from verax.rewrites.guards import bounded, floats, shifted
from verax.transforms.patterns.rewrite_rules import Operand, Rewrite, rewrite

MATRIX = [["f32[2,3]"]]


def free(x: Operand, **params: object) -> bool:
    """Whether x is floating, and no maximum has been subtracted from it."""
    return floats(x) and not shifted(x)


def unbounded(x: Operand) -> bool:
    """Whether x is floating, and its exponential may overflow."""
    return floats(x) and not bounded(x)


@rewrite(
    lambda x, axes=(1,): vnp.log(vnp.sum(vnp.exp(x), axis=axes)),
    where=free,
    types=MATRIX,
    ulps=8,
    domain=(-80, 80),
)
def log_of_sum_of_exp(x: Any, axes: tuple[int, ...]) -> Any:
    return nn.logsumexp(x, axis=axes)


@rewrite(
    lambda x, axes=(1,): vnp.log(vnp.sum(vnp.exp(x), axis=axes, keepdims=True)),
    where=free,
    types=MATRIX,
    ulps=8,
    domain=(-80, 80),
)
def log_of_kept_sum_of_exp(x: Any, axes: tuple[int, ...]) -> Any:
    return nn.logsumexp(x, axis=axes, keepdims=True)


@rewrite(
    lambda x, axes=(1,): vnp.log(
        vnp.exp(x) / vnp.sum(vnp.exp(x), axis=axes, keepdims=True)
    ),
    where=free,
    types=MATRIX,
    ulps=16,
    domain=(-80, 80),
)
def log_of_ratio_of_exp(x: Any, axes: tuple[int, ...]) -> Any:
    return nn.log_softmax(x, axis=axes)


@rewrite(
    lambda x, axes=(1,): vnp.exp(x) / vnp.sum(vnp.exp(x), axis=axes, keepdims=True),
    where=free,
    types=MATRIX,
    ulps=256,
    domain=(-80, 80),
)
def ratio_of_exp(x: Any, axes: tuple[int, ...]) -> Any:
    return nn.softmax(x, axis=axes)


@rewrite(
    lambda x, axes=(1,): vnp.log(nn.softmax(x, axis=axes)),
    where=lambda x, **_: floats(x),
    types=MATRIX,
    ulps=16,
    domain=(-80, 80),
)
def log_of_softmax(x: Any, axes: tuple[int, ...]) -> Any:
    return nn.log_softmax(x, axis=axes)


@rewrite(lambda x: vnp.log(nn.sigmoid(x)), where=floats, ulps=8, domain=(-80, 80))
def log_of_sigmoid(x: Any) -> Any:
    return nn.log_sigmoid(x)


@rewrite(lambda x: vnp.log(1 - nn.sigmoid(x)), where=floats, ulps=8, domain=(-80, 80))
def log_of_one_minus_sigmoid(x: Any) -> Any:
    return nn.log_sigmoid(-x)


@rewrite(lambda x: vnp.log1p(vnp.exp(x)), where=unbounded, ulps=8, domain=(-80, 80))
def log1p_of_exp(x: Any) -> Any:
    return nn.softplus(x)


@rewrite(lambda x: vnp.log(1 + vnp.exp(x)), where=unbounded, ulps=8, domain=(-80, 80))
def log_of_one_plus_exp(x: Any) -> Any:
    return nn.softplus(x)


@rewrite(
    lambda x, y: vnp.log(vnp.exp(x) + vnp.exp(y)),
    where=lambda x, y: floats(x, y) and x.aval is y.aval,
    ulps=16,
    domain=(-80, 80),
)
def log_of_two_exps(x: Any, y: Any) -> Any:
    return vnp.logaddexp(x, y)


@rewrite(lambda x: vnp.log(1 + x), where=floats, ulps=4, domain=(-0.5, 1e6))
def log_of_one_plus(x: Any) -> Any:
    return vnp.log1p(x)


@rewrite(lambda x: vnp.log(1 - x), where=floats, ulps=4, domain=(-1e6, 0.5))
def log_of_one_minus(x: Any) -> Any:
    return vnp.log1p(-x)


@rewrite(lambda x: vnp.exp(x) - 1, where=floats, ulps=4, domain=(-80, 80))
def exp_minus_one(x: Any) -> Any:
    return vnp.expm1(x)


RULES: tuple[Rewrite, ...] = (
    log_of_ratio_of_exp,
    log_of_softmax,
    log_of_sum_of_exp,
    log_of_kept_sum_of_exp,
    ratio_of_exp,
    log_of_sigmoid,
    log_of_one_minus_sigmoid,
    log1p_of_exp,
    log_of_one_plus_exp,
    log_of_two_exps,
    log_of_one_plus,
    log_of_one_minus,
    exp_minus_one,
)


def stable() -> tuple[Rewrite, ...]:
    """Rules that keep logarithms and exponentials from overflow and cancellation.

    Results are nearer to the exact ones than what they replace; where that was
    accurate they agree with it within the rules' `ulps`.

    >>> import verax.nn, verax.numpy as vnp
    >>> from verax.rewrites import apply, stable
    >>> def loss(x): return vnp.log(verax.nn.sigmoid(x))
    >>> float(loss(-200.0)), float(apply(stable())(loss)(-200.0))
    (-inf, -200.0)
    """
    return RULES
