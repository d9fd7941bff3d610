"""Floor 6: `verax.experimental.ode`: ordinary differential equations.

One idea: steps adapt inside one loop between the times that are asked for, and the
gradient is the solution of another equation, backward in time, so that no step is
remembered::

    ys = odeint(lambda y, t, k: -k * y, y0, times, 0.5)

J. Dormand, P. Prince, "A family of embedded Runge-Kutta formulae", 1980, with the
interpolation of L. Shampine, "Some practical Runge-Kutta formulas", 1986; step sizes as
in E. Hairer, S. Nørsett, G. Wanner, "Solving Ordinary Differential Equations I", 1993,
section II.4; the adjoint equation as in R. Chen, Y. Rubanova, J. Bettencourt, D.
Duvenaud, "Neural ordinary differential equations", 2018.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from attrs import frozen

from verax import lax, numpy as vnp
from verax.api.autodiff.jvp_vjp import vjp
from verax.api.custom.vjp import closure_convert, custom_vjp
from verax.api.trees.pytrees import (
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from verax.api.vmap import vmap
from verax.flatten_util import ravel_pytree
from verax.ir.dtypes import is_float, is_inexact
from verax.ir.records import ReprMixin
from verax.numpy import where
from verax.numpy.arguments.arguments import as_array, shown
from verax.ops.structure.casts import together
from verax.rules.values.array import Array
from verax.scipy.tables import constant

__all__ = ["odeint"]

# Of stages 2 to 7: the times, and the weights of the stages before; the last stage is
# the solution. Then the weights of the error, and of the solution at half the step.
TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
ERROR = STAGES[-1] - np.array(
    [5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]
)
HALF = 0.5 * np.array(
    [
        6025192743 / 30085553152,
        0,
        51252292925 / 65400821598,
        -2691868925 / 45128329728,
        187940372067 / 1594534317056,
        -1776094331 / 19743644256,
        11237099 / 235043384,
    ]
)
ORDER = 5
SAFETY, LEAST_FACTOR, LARGEST_FACTOR = 0.9, 0.2, 10.0

type Slope = Callable[[Array, Array], Array]


@frozen(repr=False)
class Limits(ReprMixin):
    """Tolerances, the most steps between two times, and the longest step."""

    rtol: Any
    atol: Any
    mxstep: Any
    hmax: Any


class State(NamedTuple):
    """A point of the solution, the next step, and the last step as a polynomial.

    The polynomial has shape (5, n), its variable runs from 0 at `before` to 1 at `t`.
    """

    y: Array
    f: Array
    t: Array
    dt: Array
    before: Array
    polynomial: Array


def combined(weights: np.ndarray, k: Array) -> Array:
    """A sum of slopes."""
    return vnp.dot(constant(weights, k), k, precision=lax.Precision.HIGHEST)


def scaled(dt: Array, y: Array) -> Array:
    """A length of time in the dtype of the solution."""
    return dt.astype(y.dtype)


def mean_square(x: Array) -> Array:
    """The root of the mean of squares."""
    return vnp.sqrt(vnp.mean(abs(x) ** 2))


def first_step(f: Slope, y: Array, t: Array, slope: Array, limits: Limits) -> Array:
    """The first step, from the sizes of slope and curvature."""
    size = limits.atol + abs(y) * limits.rtol
    d0, d1 = vnp.linalg.norm(y / size), vnp.linalg.norm(slope / size)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = where(small, 1e-6, 0.01 * d0 / where(small, 1.0, d1)).astype(t.dtype)
    moved = f(y + scaled(h0, y) * slope, t + h0)
    d2 = vnp.linalg.norm((moved - slope) / size) / h0
    most = vnp.maximum(d1, d2)
    flat = most <= 1e-15
    curved = (0.01 / where(flat, 1.0, most)) ** (1 / ORDER)
    h1 = where(flat, vnp.maximum(1e-6, h0 * 1e-3), curved)
    return vnp.clip(vnp.minimum(100 * h0, h1), 0.0, limits.hmax).astype(t.dtype)


def slopes(f: Slope, s: State) -> Array:
    """The slopes of seven stages, of shape (7, n)."""

    def stage(k: Array, how: Any) -> tuple[Array, None]:
        i, time, weights = how
        y = s.y + scaled(s.dt, s.y) * vnp.dot(
            weights, k, precision=lax.Precision.HIGHEST
        )
        return k.at[i].set(f(y, s.t + s.dt * time)), None

    start = vnp.zeros((7, s.y.size), s.y.dtype).at[0].set(s.f)
    rows = (vnp.arange(1, 7), constant(TIMES, s.t), constant(STAGES, s.y))
    out: Array = lax.scan(stage, start, rows)[0]
    return out


def step(f: Slope, s: State, limits: Limits) -> State:
    """The state after a step, or the same state with a shorter one to try."""
    k = slopes(f, s)
    dt = scaled(s.dt, s.y)
    y = s.y + dt * combined(STAGES[-1], k)
    allowed = limits.atol + limits.rtol * vnp.maximum(abs(s.y), abs(y))
    ratio = mean_square(dt * combined(ERROR, k) / allowed.astype(y.dtype))
    accepted = ratio <= 1
    safe = where(ratio > 0, ratio, 1.0)
    least = where(accepted, 1.0, LEAST_FACTOR)
    factor = vnp.clip(SAFETY * safe ** (-1 / ORDER), least, LARGEST_FACTOR)
    factor = where(ratio == 0, LARGEST_FACTOR, factor)
    # A slope that is not a number asks for a shorter step.
    factor = where(vnp.isnan(ratio), LEAST_FACTOR, factor)
    following = vnp.clip(s.dt * factor, 0.0, limits.hmax).astype(s.dt.dtype)
    new = State(y, k[-1], s.t + s.dt, following, s.t, quartic(s, y, k, dt))
    old = s._replace(dt=following)
    return State(*[where(accepted, a, b) for a, b in zip(new, old, strict=True)])


def quartic(s: State, y: Array, k: Array, dt: Array) -> Array:
    """The polynomial with values and slopes at both ends, and the value halfway."""
    middle = s.y + dt * combined(HALF, k)
    rise, start, end = dt * k[0], s.y, y
    fall = dt * k[-1]
    return vnp.stack(
        [
            2 * (fall - rise) - 8 * (start + end) + 16 * middle,
            5 * rise - 3 * fall + 18 * start + 14 * end - 32 * middle,
            -4 * rise + fall - 11 * start - 5 * end + 16 * middle,
            rise,
            start,
        ]
    )


def solution(f: Slope, y: Array, times: Array, limits: Limits) -> Array:
    """The solution at all times, of shape (times, n)."""

    def advance(s: State, target: Array) -> tuple[State, Array]:
        def unfinished(loop: Any) -> Array:
            s, count = loop
            going: Array = (s.t < target) & (count < limits.mxstep) & (s.dt > 0)
            return going

        def further(loop: Any) -> Any:
            s, count = loop
            return step(f, s, limits), count + 1

        s, _ = lax.while_loop(unfinished, further, (s, 0))
        part = scaled((target - s.before) / (s.t - s.before), s.y)
        value = s.polynomial[0]
        for row in range(1, 5):
            value = value * part + s.polynomial[row]
        reached: Array = s.t >= target
        return s, where(reached, value, np.nan)

    slope = f(y, times[0])
    dt = first_step(f, y, times[0], slope, limits)
    start = State(y, slope, times[0], dt, times[0], vnp.stack([y] * 5))
    _, rest = lax.scan(advance, start, times[1:])
    return vnp.concatenate([y[None], rest])


def odeint(
    func: Callable[..., object],
    y0: object,
    t: object,
    *args: object,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) at increasing times, by Dormand-Prince.

    Derivatives in reverse mode are those of the continuous solution, by the adjoint
    equation with the same tolerances: in `y0`, `t`, `args` and what `func` closes over.

    Args:
        func: returns a tree like `y0`.
        y0: the solution at `t[0]`, an array or a pytree of arrays.
        t: an increasing vector of floats.
        args: further arguments, pytrees of arrays.
        rtol: the error allowed for a step, relative to the solution.
        atol: the absolute error allowed for a step, in addition.
        mxstep: the most steps between two times; NaN if these are too few.
        hmax: the longest step.

    Returns:
        A tree like `y0` with a leading dimension for the times.

    Raises:
        TypeError: times are not floats, or the solution is made of integers.
        ValueError: times are not a vector, or there are none.

    >>> times = vnp.array([0.0, 1.0, 2.0])
    >>> odeint(lambda y, t: -y, vnp.array(1.0), times).round(3).tolist()
    [1.0, 0.36..., 0.13...]
    """
    if not callable(func):
        raise TypeError(f"odeint takes a function, not {shown(func)}")
    times = as_times(t)
    flat, unravel = ravel_pytree(tree_map(partial(as_array, "odeint"), y0))
    if not is_inexact(flat.dtype):
        raise TypeError(
            f"odeint takes y0 of float dtype, not {flat.dtype}; convert it with astype"
        )
    given = tree_map(partial(as_array, "odeint"), args)
    converted, consts = closure_convert(func, unravel(flat), times[0], *given)
    if any([x.aval.vma for x in (flat, times, *tree_leaves(given), *consts)]):
        flat, times, given = varying_together(flat, times, given, consts)
        converted, consts = closure_convert(func, unravel(flat), times[0], *given)

    def slope(y: Array, t: Array, parameters: Any) -> Array:
        state = unravel(y)
        out = converted(state, t, *parameters[0], *parameters[1])
        check_slope(state, out)
        return ravel_pytree(out)[0].astype(y.dtype)

    limits = Limits(rtol, atol, mxstep, hmax)
    solved = with_adjoint(slope, limits)
    return vmap(unravel)(solved(flat, times, (given, tuple(consts))))


def as_times(t: Any) -> Array:
    """The times as an array, which is a vector of floats."""
    times = as_array("odeint", t, 2)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"odeint takes a vector of times, not {times.aval}")
    if not is_float(times.dtype):
        raise TypeError(f"odeint takes times of float dtype, not {times.aval}")
    return times


def varying_together(
    flat: Array, times: Array, given: object, consts: list[Array]
) -> tuple[Array, Array, Any]:
    """The values that an equation begins with, varying alike inside `shard_map`.

    Slopes, and cotangents, vary where one of all these does.
    """
    leaves, tree = tree_flatten((flat, times, given, consts))
    flat, times, given, _ = tree_unflatten(tree, together(leaves))
    return flat, times, given


def check_slope(state: object, slope: object) -> None:
    """Raise TypeError unless a slope has as many elements as the solution.

    A list of numbers is a slope of a vector.
    """
    kinds = [
        (tree_structure(tree), [np.shape(x) for x in tree_leaves(tree)])
        for tree in (state, slope)
    ]
    sizes = [sum([prod(shape) for shape in shapes]) for _, shapes in kinds]
    if sizes[0] != sizes[1]:
        raise TypeError(
            f"odeint: func must return a tree like y0, with the shapes {kinds[0][1]} "
            f"in {kinds[0][0]}, not {kinds[1][1]} in {kinds[1][0]}"
        )


def with_adjoint(f: Callable[..., Array], limits: Limits) -> Callable[..., Array]:
    """The solver of one equation, with its derivative in reverse mode."""

    @custom_vjp
    def solve(y: Array, times: Array, parameters: object) -> Array:
        return solution(lambda y, t: f(y, t, parameters), y, times, limits)

    def forward(y: Array, times: Array, parameters: object) -> Any:
        out = solve(y, times, parameters)
        return out, (out, times, parameters)

    def backward(saved: Any, ct: Array) -> Any:
        ys, times, parameters = saved
        return adjoint(f, limits, ys, times, parameters, ct)

    solve.defvjp(forward, backward)
    return solve


def adjoint(
    f: Callable[..., Array],
    limits: Limits,
    ys: Array,
    times: Array,
    parameters: object,
    ct: Array,
) -> tuple[Array, Array, Any]:
    """Cotangents of the start, the times and the parameters.

    Backward from time to time goes a state of the solution, its cotangent, and the sums
    for the first time and the parameters.
    """
    live, rebuilt = floats_of(parameters)

    def augmented(state: Any, s: Array, *live: Array) -> object:
        y, y_bar, _, _ = state
        rate, pull = vjp(lambda y, t, *live: f(y, t, rebuilt(live)), y, -s, *live)
        y_ct, t_ct, *rest = pull(y_bar)
        return -rate, y_ct, t_ct, tuple(rest)

    def back(carry: Any, rows: Any) -> tuple[Any, Array]:
        y_bar, start_bar, sums = carry
        y, t, earlier, ct_here, ct_earlier = rows
        slope = f(y, t, parameters)
        here = vnp.sum(slope * ct_here).real.astype(times.dtype)
        span = vnp.stack([-t, -earlier])
        state = (y, y_bar, start_bar - here, sums)
        moved = odeint(
            augmented,
            state,
            span,
            *live,
            rtol=limits.rtol,
            atol=limits.atol,
            mxstep=limits.mxstep,
            hmax=limits.hmax,
        )
        _, y_bar, start_bar, sums = tree_map(lambda x: x[1], moved)
        return (y_bar + ct_earlier, start_bar, sums), here

    zero = vnp.zeros((), times.dtype)
    carry = (ct[-1], zero, tuple([vnp.zeros_like(x) for x in live]))
    rows = (ys[1:], times[1:], times[:-1], ct[1:], ct[:-1])
    (y_bar, start_bar, sums), rest = lax.scan(back, carry, rows, reverse=True)
    return y_bar, vnp.concatenate([start_bar[None], rest]), rebuilt(sums, None)


def floats_of(parameters: object) -> tuple[list[Array], Callable[..., object]]:
    """The leaves with derivatives, and the way back, with other leaves as they were."""
    leaves = tree_leaves(parameters)
    live = [is_inexact(x.dtype) for x in leaves]

    def rebuilt(values: Any, *other: object) -> Any:
        given, kept = iter(values), zip(leaves, live, strict=True)
        filled = iter(
            [next(given) if flag else (other[0] if other else x) for x, flag in kept]
        )
        return tree_map(lambda _: next(filled), parameters)

    return [x for x, flag in zip(leaves, live, strict=True) if flag], rebuilt
