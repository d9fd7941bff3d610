"""Floor 6: a second opinion on derivatives, computed with many digits.

One idea: an evaluate rule that is plain NumPy also runs on numbers of fifty digits,
where a difference quotient has no rounding error worth speaking of: what is left is
the error of the rule, in units of the rounding errors that it must make::

    LAWS["digits"](engine, case)      # jvp against 50 digits, to a few units
"""

import operator
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
CONTEXT: Any = None if mpmath is None else mpmath.mp.clone()
EPS = float(np.finfo(np.float64).eps)
ULPS = 64.0
"""A rule composes a few functions, each exact to some units in the last place."""
LEVELS = ((60, 24), (120, 40), (480, 120))
"""Digits, and those of the step of a difference quotient: with sixty, it errs by 1e-48
(curvature) and 1e-36 (rounding). Where they cancel, as in log(1 - exp(-700)), more
decide."""


class Compared:
    """A number as comparisons ask of it, and NumPy's beside it."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]  # numbers that compare as NumPy's do

    def __init__(self, value: Any) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == number(other))

    def __ne__(self, other: object) -> bool:
        return bool(self.value != number(other))

    def __lt__(self, other: object) -> bool:
        return bool(self.value < number(other))

    def __gt__(self, other: object) -> bool:
        return bool(self.value > number(other))

    def __le__(self, other: object) -> bool:
        return bool(self.value <= number(other))

    def __ge__(self, other: object) -> bool:
        return bool(self.value >= number(other))


class Digits(Compared):
    """A real number of sixty digits, with the methods that NumPy asks objects for.

    Where NumPy's function of a real number gives NaN or an infinity, so does this: the
    logarithm of -1 is not a number, though mpmath knows a complex one.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Callable[..., "Digits"]:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return lambda *others: real(FUNCTIONS[name], self, *others)

    def __add__(self, other: object) -> "Digits":
        return real(operator.add, self, other)

    def __radd__(self, other: object) -> "Digits":
        return real(operator.add, other, self)

    def __sub__(self, other: object) -> "Digits":
        return real(operator.sub, self, other)

    def __rsub__(self, other: object) -> "Digits":
        return real(operator.sub, other, self)

    def __mul__(self, other: object) -> "Digits":
        return real(operator.mul, self, other)

    def __rmul__(self, other: object) -> "Digits":
        return real(operator.mul, other, self)

    def __truediv__(self, other: object) -> "Digits":
        return real(quotient_of, self, other)

    def __rtruediv__(self, other: object) -> "Digits":
        return real(quotient_of, other, self)

    def __mod__(self, other: object) -> "Digits":
        return real(operator.mod, self, other)

    def __rmod__(self, other: object) -> "Digits":
        return real(operator.mod, other, self)

    def __floordiv__(self, other: object) -> "Digits":
        return real(floored_quotient, self, other)

    def __rfloordiv__(self, other: object) -> "Digits":
        return real(floored_quotient, other, self)

    def __pow__(self, other: object) -> "Digits":
        return real(power_of, self, other)

    def __rpow__(self, other: object) -> "Digits":
        return real(power_of, other, self)

    def __neg__(self) -> "Digits":
        return Digits(-self.value)

    def __pos__(self) -> "Digits":
        return self

    def __abs__(self) -> "Digits":
        return Digits(abs(self.value))


def real(function: Callable[..., Any], *operands: object) -> Digits:
    """A function of real numbers, as NumPy has it: NaN where it has no real value."""
    try:
        out = function(*map(number, operands))
    except (ValueError, ZeroDivisionError):  # a pole without a sign
        return Digits(CONTEXT.nan)
    if isinstance(out, CONTEXT.mpc):
        return Digits(CONTEXT.nan if out.imag else out.real)
    return Digits(out)


def quotient_of(x: Any, y: Any) -> object:
    """x / y: infinite at y = 0, unless x is 0, too."""
    return x / y if y or CONTEXT.isnan(y) else x * CONTEXT.inf


def floored_quotient(x: object, y: object) -> object:
    return CONTEXT.floor(quotient_of(x, y))


def power_of(x: Any, y: Any) -> object:
    """x ** y: infinite where 0 has a negative exponent."""
    return x**y if x or not y < 0 else CONTEXT.inf


def cube_root(x: Any) -> object:
    """The real root, of negative numbers too."""
    return CONTEXT.sign(x) * CONTEXT.cbrt(abs(x))


FUNCTION_NAMES = {
    **{n: n for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log")},
    **{n: n for n in ("sqrt", "expm1", "log1p", "floor", "ceil", "log10", "hypot")},
    **{f"arc{n}": f"a{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": "atan2",
    "rint": "nint",
}
FUNCTIONS: dict[str, Callable[..., Any]] = (
    {
        **{name: getattr(CONTEXT, own) for name, own in FUNCTION_NAMES.items()},
        "cbrt": cube_root,
        "exp2": lambda x: CONTEXT.mpf(2) ** x,
        "log2": lambda x: CONTEXT.log(x, 2),
        "trunc": lambda x: CONTEXT.sign(x) * CONTEXT.floor(abs(x)),
        "conjugate": lambda x: x,
        "degrees": CONTEXT.degrees,
        "radians": CONTEXT.radians,
    }
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
    out = np.empty(x.shape, object)
    for index in np.ndindex(x.shape):
        out[index] = Digits(CONTEXT.mpf(float(x[index])))
    return out


def quotient(
    engine: StandardEngine,
    case: Case,
    tangents: Sequence[NDArray],
    level: tuple[int, int],
) -> list[NDArray]:
    """Central differences of every result along the tangents, as doubles.

    `level` is one of `LEVELS`.

    Raises:
        Skipped: the evaluate rule does not run on such numbers.
    """
    (eqn,) = case.jaxpr.eqns
    evaluate = engine.rules[eqn.primitive].evaluate
    assert evaluate is not None
    CONTEXT.dps, places = level
    step = Digits(CONTEXT.mpf(10) ** -places)
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


def difference(plus: object, minus: object, step: Digits) -> NDArray:
    """(plus - minus) / 2 step, rounded to double at the end; NaN where it is none."""
    a, b = np.asarray(plus, object), np.asarray(minus, object)
    out = np.empty(a.shape, np.float64)
    for index in np.ndindex(a.shape):
        if not (isinstance(a[index], Digits) and isinstance(b[index], Digits)):
            raise Skipped("its evaluate rule leaves numbers of many digits")
        out[index] = float(((a[index] - b[index]) / (step * 2)).value)
    return out


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
    if case.row is None or len(case.jaxpr.eqns) != 1:
        raise Skipped("many digits are for the calls of one row")
    avals = (*case.jaxpr.in_avals, *case.jaxpr.out_avals)
    if not all(case.active) or any(aval.dtype != float64 for aval in avals):
        raise Skipped("many digits are for real numbers")
    jaxpr, values, active = case.jaxpr, case.values, case.active
    tangents = directions(case, tangent_types(jaxpr.in_avals, active), 12)
    full = filled(jaxpr.in_avals, active, tangents)
    slopes = quotient(engine, case, full, LEVELS[0])
    if not any(np.isfinite(slope).any() for slope in slopes if slope.size):
        raise Skipped("no element has a derivative that is a finite real number here")
    program, mask = engine.jvp(jaxpr, active)
    run = Run(rest_of(program, len(jaxpr.outvars), mask), (*values, *tangents))
    live = engine.evaluate(run.jaxpr, run.args)
    pushed = filled(jaxpr.out_avals, mask, live)
    spread = filled(jaxpr.out_avals, mask, sensitivity(engine, run.jaxpr, run.args))
    if wrong_digits(pushed, slopes, spread) is None:
        return
    more = [quotient(engine, case, full, level) for level in LEVELS[1:]]
    result = wrong_digits(pushed, agreeing(*more), spread)
    if result is not None:
        i, first = result
        what = f"the tangent of result {i} has wrong digits"
        got, want = pushed[i], more[-1][i]
        raise broken(
            "digits", case, what, got=got, want=want, first=first, after=program
        )


def wrong_digits(
    pushed: Sequence[NDArray], slopes: Sequence[NDArray], spread: Sequence[NDArray]
) -> tuple[int, Difference] | None:
    """The first result with a tangent that is not the slope, where that is a number."""
    for i, (t, slope, s) in enumerate(zip(pushed, slopes, spread, strict=True)):
        if not is_inexact(t.dtype) or t.shape != slope.shape:
            continue
        allowed = ULPS * EPS * np.abs(slope) + SLACK * s + np.finfo(np.float64).tiny
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(t - slope) <= allowed) & np.isfinite(slope)
        if np.any(wrong):
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            return i, Difference(index, t[index], slope[index], float(allowed[index]))
    return None


def agreeing(one: Sequence[NDArray], other: Sequence[NDArray]) -> list[NDArray]:
    """The second slopes, NaN where the first, of fewer digits, are others."""
    return [
        np.where(np.abs(x - y) <= ULPS * EPS * np.abs(y), y, np.nan)
        for x, y in zip(one, other, strict=True)
    ]
