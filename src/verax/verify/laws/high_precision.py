"""Floor 6: a second opinion on derivatives, computed with many digits.

One idea: an evaluate rule that is plain NumPy also runs on numbers of fifty digits,
where a difference quotient has no rounding error worth speaking of: what is left is
the error of the rule, in units of the rounding errors that it must make::

    LAWS["digits"](engine, case)      # jvp against 50 digits, to a few units
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from verax.ir.dtypes import float64, is_inexact
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Skipped, broken
from verax.verify.cases.tolerance import Difference, sensitivity
from verax.verify.laws.agreement import SLACK, Run
from verax.verify.laws.derivatives import (
    directions,
    filled,
    need_double,
    need_forward,
    rest_of,
    tangent_types,
)

try:
    import mpmath
except ModuleNotFoundError:  # the extra `verify` has it; other laws do without
    mpmath = None

PLACES = 60
CONTEXT: Any = None if mpmath is None else mpmath.mp.clone()
EPS = float(np.finfo(np.float64).eps)
ULPS = 64.0
"""A rule composes a few functions, each exact to some units in the last place."""
STEP = "1e-15"
"""The difference quotient errs by STEP^2 (curvature) and 1e-60 / STEP (rounding)."""


class Digits:
    """A real number of sixty digits, with the methods that NumPy asks objects for."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Callable[[], "Digits"]:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return lambda: Digits(FUNCTIONS[name](self.value))

    def __add__(self, other: Any) -> "Digits":
        return Digits(self.value + number(other))

    def __radd__(self, other: Any) -> "Digits":
        return Digits(number(other) + self.value)

    def __sub__(self, other: Any) -> "Digits":
        return Digits(self.value - number(other))

    def __rsub__(self, other: Any) -> "Digits":
        return Digits(number(other) - self.value)

    def __mul__(self, other: Any) -> "Digits":
        return Digits(self.value * number(other))

    def __rmul__(self, other: Any) -> "Digits":
        return Digits(number(other) * self.value)

    def __truediv__(self, other: Any) -> "Digits":
        return Digits(self.value / number(other))

    def __rtruediv__(self, other: Any) -> "Digits":
        return Digits(number(other) / self.value)

    def __pow__(self, other: Any) -> "Digits":
        return Digits(self.value ** number(other))

    def __neg__(self) -> "Digits":
        return Digits(-self.value)

    def __abs__(self) -> "Digits":
        return Digits(abs(self.value))

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < number(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > number(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= number(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= number(other))


FUNCTION_NAMES = {
    **{n: n for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log")},
    **{n: n for n in ("sqrt", "expm1", "log1p", "floor", "ceil")},
    **{f"arc{n}": f"a{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "cbrt": "cbrt",
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = (
    {name: getattr(CONTEXT, own) for name, own in FUNCTION_NAMES.items()}
    if CONTEXT is not None
    else {}
)


def number(x: Any) -> Any:
    """An operand of arithmetic with many digits: exact, whatever it is."""
    if isinstance(x, Digits):
        return x.value
    return CONTEXT.mpf(x.item() if isinstance(x, np.generic) else x)


def precise(x: NDArray) -> NDArray:
    """An array of numbers with many digits, exactly equal to those of `x`."""
    found = np.empty(x.shape, object)
    for index in np.ndindex(x.shape):
        found[index] = Digits(CONTEXT.mpf(float(x[index])))
    return found


def quotient(
    engine: StandardEngine, case: Case, tangents: Sequence[NDArray]
) -> list[NDArray]:
    """Central differences of every result along the tangents, as doubles.

    Raises:
        Skipped: the evaluate rule does not run on such numbers.
    """
    (eqn,) = case.jaxpr.eqns
    evaluate = engine.rules[eqn.primitive].evaluate
    assert evaluate is not None
    step = Digits(CONTEXT.mpf(STEP))
    sides = []
    for sign in (1, -1):
        moved = [
            precise(x) + precise(t) * step * sign
            for x, t in zip(case.values, tangents, strict=True)
        ]
        try:
            sides.append(evaluate(engine, eqn.params, moved))
        except Exception as error:  # NumPy's own refusals have many types
            raise Skipped("its evaluate rule is not plain NumPy") from error
    return [difference(p, m, step) for p, m in zip(*sides, strict=True)]


def difference(plus: Any, minus: Any, step: Digits) -> NDArray:
    """(plus - minus) / 2 step, rounded to double at the end."""
    a, b = np.asarray(plus, object), np.asarray(minus, object)
    found = np.empty(a.shape, np.float64)
    for index in np.ndindex(a.shape):
        if not (isinstance(a[index], Digits) and isinstance(b[index], Digits)):
            raise Skipped("its evaluate rule leaves numbers of many digits")
        exact = (a[index] - b[index]) / (step * 2)
        if not CONTEXT.isfinite(exact.value) or CONTEXT.im(exact.value):
            raise Skipped("the derivative is not a finite real number here")
        found[index] = float(exact.value)
    return found


def jvp_to_the_last_digits(engine: StandardEngine, case: Case) -> None:
    """`jvp` has the digits of a difference quotient computed with sixty of them.

    The bound comes from the dtype and the conditioning: a few units in the last place
    of the tangent, and what one unit in each operand and intermediate result does to it
    (measured).
    """
    if CONTEXT is None:
        raise Skipped("mpmath is not installed: pip install 'verax[verify]'")
    need_double(case)
    need_forward(case)
    CONTEXT.dps = PLACES
    if case.row is None or len(case.jaxpr.eqns) != 1:
        raise Skipped("many digits are for the calls of one row")
    avals = (*case.jaxpr.in_avals, *case.jaxpr.out_avals)
    if not all(case.active) or any(aval.dtype != float64 for aval in avals):
        raise Skipped("many digits are for real numbers")
    jaxpr, values, active = case.jaxpr, case.values, case.active
    tangents = directions(case, tangent_types(jaxpr.in_avals, active), 12)
    full = filled(jaxpr.in_avals, active, tangents)
    slopes = quotient(engine, case, full)
    program, mask = engine.jvp(jaxpr, active)
    run = Run(rest_of(program, len(jaxpr.outvars), mask), (*values, *tangents))
    live = engine.evaluate(run.jaxpr, run.args)
    pushed = filled(jaxpr.out_avals, mask, live)
    spread = filled(jaxpr.out_avals, mask, sensitivity(engine, run.jaxpr, run.args))
    for i, (t, slope, s) in enumerate(zip(pushed, slopes, spread, strict=True)):
        if not is_inexact(t.dtype) or t.shape != slope.shape:
            continue
        allowed = ULPS * EPS * np.abs(slope) + SLACK * s + np.finfo(np.float64).tiny
        wrong = ~(np.abs(t - slope) <= allowed)
        if np.any(wrong):
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            first = Difference(index, t[index], slope[index], float(allowed[index]))
            what = f"the tangent of result {i} has wrong digits"
            raise broken(
                "digits", case, what, got=t, want=slope, first=first, after=program
            )
