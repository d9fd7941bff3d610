"""Floor 6: how far to go along a direction: a search for Wolfe's strong conditions.

One idea: an interval between a good step and one that goes too far holds a step that
is right; while there is no step too far, the interval has no end, so that widening and
narrowing it are one loop::

    found = line_search(value_and_slope, direction, f, gradient)

J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6; near the
minimum, where values are all rounding noise, slopes decide, as in W. Hager, H. Zhang,
"A new conjugate gradient method", 2005.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from verax import lax, numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array

# How much a step must gain of what the slope promises, and how much slope may remain.
GAIN = 1e-4
REST = 0.9


class Step(NamedTuple):
    """A step, the value there, and the slope along the direction."""

    length: Array
    value: Array
    slope: Array


class Found(NamedTuple):
    """Where a search has ended, how often it evaluated, and whether it failed."""

    length: Array
    value: Array
    gradient: Array
    evaluations: Array
    failed: Array


class Search(NamedTuple):
    """The state of a search: the interval, the next step, and what was found."""

    low: Step
    high: Step
    trial: Array
    found: Step
    gradient: Array
    low_gradient: Array
    evaluations: Array
    done: Array


def line_search(
    evaluate: Callable[[Array], tuple[Array, Array]],
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    first: Array | float,
    maxiter: int,
) -> Found:
    """A step along `direction` from `x` with enough gain and little remaining slope.

    `evaluate` gives value and gradient. After `maxiter` steps the best one is taken;
    the search has failed if none is better than no step.
    """
    slope = vnp.dot(gradient, direction, precision=lax.Precision.HIGHEST)
    noise = 10 * float(vnp.finfo(value.dtype).eps) * abs(value)
    zero = vnp.zeros_like(value)
    start = Step(zero, value, slope)
    beyond = Step(zero + np.inf, zero, zero)

    def unfinished(s: Search) -> Array:
        return ~s.done & (s.evaluations < maxiter)

    def step(s: Search) -> Search:
        f, g = evaluate(x + s.trial * direction)
        d = vnp.dot(g, direction, precision=lax.Precision.HIGHEST)
        here = Step(s.trial, f, d)
        gains = f <= value + GAIN * s.trial * slope
        gains = gains | ((f <= value + noise) & (d <= (2 * GAIN - 1) * slope))
        too_far = ~gains | (f > s.low.value + noise) | ~vnp.isfinite(d)
        right = ~too_far & (abs(d) <= -REST * slope)
        turned = ~too_far & (d * (s.high.length - s.low.length) >= 0)
        high = choose(too_far, here, choose(turned, s.low, s.high))
        low = choose(too_far, s.low, here)
        return Search(
            low,
            high,
            next_length(low, high),
            here,
            g,
            where(too_far, s.low_gradient, g),
            s.evaluations + 1,
            right,
        )

    trial = zero + first
    begin = Search(
        start, beyond, trial, start, gradient, gradient, vnp.array(0), slope >= 0
    )
    s: Search = lax.while_loop(unfinished, step, begin)
    best = choose(s.done, s.found, s.low)
    return Found(
        best.length,
        best.value,
        where(s.done, s.gradient, s.low_gradient),
        s.evaluations,
        best.length == 0,
    )


def choose(condition: Array, x: Step, y: Step) -> Step:
    pairs: Any = zip(x, y, strict=True)
    return Step(*[where(condition, a, b) for a, b in pairs])


def next_length(low: Step, high: Step) -> Array:
    """Twice as far, or where a parabola through both ends has its minimum.

    The parabola has the value and slope of the better end; away from both ends.
    """
    endless = vnp.isinf(high.length)
    width = where(endless, 1.0, high.length - low.length)
    rise = high.value - low.value - low.slope * width
    part = -0.5 * low.slope * width / where(rise == 0, 1.0, rise)
    part = where(vnp.isfinite(part), vnp.clip(part, 0.1, 0.9), 0.5)
    farther = where(low.length == 0, 1.0, 2 * low.length)
    return where(endless, farther, low.length + part * width)
