"""Floor 6: quasi-Newton methods: BFGS, and L-BFGS with limited memory.

One idea: both walk along the direction that an approximation of the inverse Hessian
makes of the gradient; BFGS holds it as a matrix, L-BFGS as its last updates::

    minimize(fun, x0, method="BFGS", options={"gtol": 1e-6})

J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithms 6.1 and 7.4.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from verax import lax, numpy as vnp
from verax.api.autodiff.grad import value_and_grad
from verax.ir.dtypes import is_complex, is_inexact
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, as_array, shown
from verax.rules.values.array import Array

# -----------------------------------------------------------------------------
# How far to go along a direction: a search for Wolfe's strong conditions.
#
# An interval between a good step and one that goes too far holds a step that is right;
# while there is no step too far, the interval has no end, so that widening and
# narrowing it are one loop::
#
#     found = line_search(value_and_slope, direction, f, gradient)
#
# J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6; near
# the minimum, where values are all rounding noise, slopes decide, as in W. Hager, H.
# Zhang, "A new conjugate gradient method", 2005.


# How much a step must gain of what the slope promises, and how much slope may remain.
GAIN = 1e-4
REST = 0.9


class Step(NamedTuple):
    """A step, the value there, and the slope along the direction."""

    length: Array
    value: Array
    slope: Array


class Found(NamedTuple):
    """The end of a search, the number of its evaluations, and whether it failed."""

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
    pairs = zip(x, y, strict=True)
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


# -----------------------------------------------------------------------------
# Quasi-Newton methods: BFGS, and L-BFGS with limited memory.


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "bfgs": {
        "maxiter": None,
        "norm": np.inf,
        "gtol": 1e-5,
        "line_search_maxiter": 10,
    },
    "l-bfgs-experimental-do-not-rely-on-this": {
        "maxiter": None,
        "norm": np.inf,
        "maxcor": 10,
        "ftol": 2.220446049250313e-09,
        "gtol": 1e-5,
        "maxfun": None,
        "maxgrad": None,
        "maxls": 20,
    },
}
# A search that narrows an interval needs more steps than one that widens it.
NARROWING = 20


class OptimizeResults(NamedTuple):
    """A minimum and how it was found.

    `status` is 0 for a small gradient, 1 for too many steps, 2 for too many
    evaluations, 3 where a line search finds no better point, and 4 for a gain below
    `ftol`. `hess_inv` is None for L-BFGS.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


# The body of a NamedTuple takes nothing but fields.
OptimizeResults.__module__ = "verax.scipy.optimize"


class State(NamedTuple):
    """A point, and the memory of the approximation."""

    x: Array
    value: Array
    gradient: Array
    memory: Any
    steps: Array
    evaluations: Array
    status: Array


def minimize(
    fun: Callable[..., object],
    x0: ArrayLike,
    args: tuple[object, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, object] | None = None,
) -> OptimizeResults:
    """A local minimum of a function of a vector.

    The whole search is one loop that compiles; it has derivatives in forward mode only.

    Args:
        fun: `fun(x, *args)`, a scalar.
        x0: a vector of floats, where to start. Complex ones are searched as their real
            parts followed by their imaginary ones, which `hess_inv` is about.
        args: further arguments.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" for L-BFGS.
        tol: the norm of the gradient at which to stop, if no option `gtol` says it.
        options: for BFGS `maxiter`, `norm`, `gtol` and `line_search_maxiter`; for
            L-BFGS `maxiter`, `norm`, `maxcor`, `ftol`, `gtol`, `maxfun`, `maxgrad` and
            `maxls`.

    Returns:
        An `OptimizeResults`: the point `x`, the value `fun` and the gradient `jac`
        there, whether it is a minimum (`success`, and why: `status`), `hess_inv` for
        BFGS, and how many evaluations and steps there were.

    Raises:
        TypeError: `args` is not a tuple, or `x0` does not hold floats.
        ValueError: there is no such method or option, or `x0` is not a vector.

    >>> def f(x, a):
    ...     return (x @ x - a) ** 2
    >>> found = minimize(f, vnp.ones(1), (4.0,), method="BFGS")
    >>> round(float(found.x[0]), 3)
    2.0
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args for fun must be a tuple, not {shown(args)}")
    kind, settings = chosen(method, tol, options)
    start = checked_start(x0)
    parts = is_complex(start.dtype)
    if parts:
        start = vnp.concatenate([start.real, start.imag])
    evaluate = value_and_grad(lambda x: fun(joined(x) if parts else x, *args))
    limited = kind != "bfgs"
    state = walk(evaluate, start, limited, settings)
    inverse = None if limited else state.memory
    return OptimizeResults(
        joined(state.x) if parts else state.x,
        state.status == 0 if not limited else (state.status == 0) | (state.status == 4),
        state.status,
        state.value,
        vnp.conj(joined(state.gradient)) if parts else state.gradient,
        inverse,
        state.evaluations,
        state.evaluations,
        state.steps,
    )


def joined(parts: Array) -> Array:
    """Complex numbers of their real parts, followed by the imaginary ones."""
    real, imag = vnp.split(parts, 2)
    return lax.complex(real, imag)


def chosen(
    method: str, tol: float | None, options: Mapping[str, object] | None
) -> tuple[str, dict[str, Any]]:
    """The name of a method, and its options.

    Raises:
        ValueError: there is no such method or option.
    """
    kind = method.lower()
    if kind not in OPTIONS:
        raise ValueError(
            f"minimize: method must be 'BFGS' or {list(OPTIONS)[1]!r}, not {method!r}"
        )
    settings = dict(OPTIONS[kind])
    unknown = sorted(set(options or {}) - set(settings))
    if unknown:
        raise ValueError(
            f"minimize: unknown options of method {method}: {', '.join(unknown)}"
        )
    settings.update({"gtol": tol} if tol is not None else {}, **(options or {}))
    return kind, settings


def checked_start(x0: ArrayLike) -> Array:
    """A vector of real or complex floats.

    Raises:
        TypeError: it holds other numbers.
        ValueError: it is not a vector.
    """
    start = as_array("minimize", x0)
    if start.ndim != 1:
        raise ValueError(
            f"minimize: x0 must be a vector, not {start.aval}; flatten it with "
            "verax.flatten_util.ravel_pytree"
        )
    if not is_inexact(start.dtype):
        raise TypeError(f"minimize: x0 must be floats, not {start.aval}")
    return start


def walk(
    evaluate: Callable[..., Any], x: Array, limited: bool, settings: Mapping[str, Any]
) -> State:
    """The loop over steps."""
    gtol, order = settings["gtol"], settings["norm"]
    counts = [settings.get("maxfun"), settings.get("maxgrad")]
    most = min([n for n in counts if n is not None], default=np.inf)
    most_steps = settings["maxiter"]
    most_steps = x.size * 200 if most_steps is None else most_steps
    searches = settings["maxls" if limited else "line_search_maxiter"] + NARROWING
    gain = settings.get("ftol", -1.0)
    direction, updated, memory = (
        limited_memory(x, settings["maxcor"]) if limited else full_memory(x)
    )

    def small(gradient: Array) -> Array:
        out: Array = vnp.linalg.norm(gradient, ord=order) < gtol
        return out

    def unfinished(s: State) -> Array:
        return s.status < 0

    def step(s: State) -> State:
        p = direction(s.memory, s.gradient)
        length = vnp.linalg.norm(s.gradient)
        # Nothing is known of the scale before the first step.
        first = where(s.steps == 0, vnp.minimum(1.0, 1.0 / length), 1.0)
        line = line_search(evaluate, s.x, p, s.value, s.gradient, first, searches)
        move = line.length * p
        turn = line.gradient - s.gradient
        evaluations = s.evaluations + line.evaluations
        largest = vnp.maximum(vnp.maximum(abs(s.value), abs(line.value)), 1.0)
        status = first_true(
            (small(line.gradient), 0),
            (line.failed, 3),
            (s.value - line.value <= gain * largest, 4),
            (s.steps + 1 >= most_steps, 1),
            (evaluations >= most, 2),
        )
        return State(
            s.x + move,
            line.value,
            line.gradient,
            updated(s.memory, move, turn, s.steps),
            s.steps + 1,
            evaluations,
            status,
        )

    value, gradient = evaluate(x)
    status = first_true((small(gradient), 0), (vnp.array(most_steps <= 0), 1))
    one, none = vnp.array(1), vnp.array(0)
    start = State(x, value, gradient, memory, none, one, status)
    out: State = lax.while_loop(unfinished, step, start)
    return out


def first_true(*cases: tuple[Array, int]) -> Array:
    """The number of the first condition that holds, else -1."""
    out = vnp.array(-1)
    for condition, number in reversed(cases):
        out = where(condition, number, out)
    return out


def product(x: Array, y: Array) -> Array:
    return vnp.dot(x, y, precision=lax.Precision.HIGHEST)


def full_memory(x: Array) -> tuple[Callable[..., Array], Callable[..., object], object]:
    """Direction and update by a matrix, and the matrix to begin with."""
    unit = vnp.eye(x.size, dtype=x.dtype)

    def direction(inverse: Array, gradient: Array) -> Array:
        return -product(inverse, gradient)

    def updated(inverse: Array, move: Array, turn: Array, steps: Array) -> Array:
        rho = 1 / product(turn, move)
        valid = vnp.isfinite(rho) & (rho > 0)
        safe = where(valid, rho, 0.0)
        # The first step tells the scale, beside which its own share could vanish:
        # (6.20) of the book.
        scale = 1 / where(valid, rho * product(turn, turn), 1.0)
        inverse = where((steps == 0) & vnp.isfinite(scale), scale * unit, inverse)
        left = unit - safe * move[:, None] * turn[None, :]
        array = product(product(left, inverse), left.T)
        return where(valid, array + safe * move[:, None] * move[None, :], inverse)

    return direction, updated, unit


def limited_memory(
    x: Array, size: int
) -> tuple[Callable[..., Array], Callable[..., object], object]:
    """Direction and update by the last `size` updates, oldest first; none at first."""

    def direction(memory: Any, gradient: Array) -> Array:
        moves, turns, rhos = memory

        def back(q: Array, pair: Any) -> tuple[Array, Array]:
            move, turn, rho = pair
            alpha = rho * product(move, q)
            return q - alpha * turn, alpha

        def forth(q: Array, pair: Any) -> tuple[Array, None]:
            (move, turn, rho), alpha = pair
            return q + move * (alpha - rho * product(turn, q)), None

        q, alphas = lax.scan(back, gradient, memory, reverse=True)
        length = product(turns[-1], turns[-1])
        scale = product(moves[-1], turns[-1]) / where(length == 0, 1.0, length)
        q = q * where(rhos[-1] == 0, 1.0, scale)
        out: Array = lax.scan(forth, q, (memory, alphas))[0]
        return -out

    def updated(memory: Any, move: Array, turn: Array, steps: Array) -> object:
        rho = 1 / product(turn, move)
        valid = vnp.isfinite(rho) & (rho > 0)
        new = (move, turn, rho)

        def appended(old: Array, last: Array) -> Array:
            return where(valid, vnp.concatenate([old[1:], last[None]]), old)

        return tuple(
            [appended(old, last) for old, last in zip(memory, new, strict=True)]
        )

    empty = vnp.zeros((size, x.size), x.dtype)
    return direction, updated, (empty, empty, vnp.zeros(size, x.dtype))
