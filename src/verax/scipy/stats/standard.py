"""Floor 6: how a distribution is written down: functions of a standardised variable.

One idea: a distribution says its formulas for location 0 and scale 1, and each kind of
function knows how location and scale enter it; what follows by exp and log is derived::

    @density
    def logpdf(z):                         # of (x, loc=0, scale=1) for callers
        return -z * z / 2 - LOG_SQRT_2_PI

    pdf = exponential("pdf", logpdf)

As in SciPy, a scale that is not positive gives NaN.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from verax import numpy as vnp
from verax.numpy import where
from verax.rules.values.array import Array
from verax.scipy.special.arguments import reals

type Function = Callable[..., Array]
# From the formula, the variable, the parameters of shape, location and scale.
type Rule = Callable[[Function, Array, list[Array], object, object], Array]


def kind(rule: Rule, variable: str, **defaults: int) -> Callable[[Function], Function]:
    """A decorator: a formula in the standard variable as a function for callers."""

    def decorate(formula: Function) -> Function:
        shapes = [*signature(formula).parameters][1:]
        public = public_signature([variable, *shapes], defaults)
        name = f"{formula.__module__.rpartition('.')[2]}.{formula.__name__}"

        @wraps(formula)
        def called(*args: object, **kwargs: object) -> Array:
            given = bound(name, public, args, kwargs)
            typed = reals(name, *given.values())
            count = 1 + len(shapes)
            # What is 0 and 1 by default costs no equation.
            loc, scale = (
                None if i >= len(typed) or is_default(given[key], default) else typed[i]
                for key, default, i in (("loc", 0, count), ("scale", 1, count + 1))
            )
            return rule(formula, typed[0], typed[1:count], loc, scale)

        called.__signature__ = public  # type: ignore[attr-defined]  # for inspect
        return called

    return decorate


def public_signature(names: list[str], defaults: dict[str, int]) -> Signature:
    """The signature for callers."""
    usual = Parameter.POSITIONAL_OR_KEYWORD
    required = [Parameter(name, usual) for name in names]
    optional = [Parameter(n, usual, default=value) for n, value in defaults.items()]
    return Signature([*required, *optional], return_annotation=Array)


def bound(
    name: str, public: Signature, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, Any]:
    """Arguments by name, defaults included.

    Raises:
        TypeError: they do not fit the signature.
    """
    try:
        out = public.bind(*args, **kwargs)
    except TypeError as error:
        text = str(public).partition(" ->")[0]
        raise TypeError(f"{name}{text}: {error}") from None
    out.apply_defaults()
    return out.arguments


def is_default(value: object, default: int) -> bool:
    return type(value) is int and value == default


def standardised(x: Array, loc: Array | None, scale: Array | None) -> Array:
    """(x - loc) / scale."""
    z = x if loc is None else x - loc
    return z if scale is None else z / scale


def positive(parameter: Array) -> Array:
    """A parameter, NaN where it is not positive."""
    return where(parameter > 0, parameter, np.nan)


def checked(array: Array, scale: Array | None) -> Array:
    """NaN where the scale is not positive."""
    return array if scale is None else where(scale > 0, array, np.nan)


def as_density(
    f: Function, x: Array, shapes: list[Array], loc: Any, scale: Any
) -> Array:
    out = f(standardised(x, loc, scale), *shapes)
    if scale is None:
        return out
    return out - vnp.log(positive(scale))


def as_probability(
    f: Function, x: Array, shapes: list[Array], loc: Any, scale: Any
) -> Array:
    return checked(f(standardised(x, loc, scale), *shapes), scale)


def as_quantile(
    f: Function, q: Array, shapes: list[Array], loc: object, scale: Any
) -> Array:
    inside = (q >= 0) & (q <= 1)
    array = f(where(inside, q, 0.5), *shapes)
    array = array if scale is None else array * scale
    array = array if loc is None else array + loc
    return checked(where(inside, array, np.nan), scale)


def as_strict_quantile(
    f: Function, q: Array, shapes: list[Array], loc: object, scale: Any
) -> Array:
    """As `as_quantile`, of a function that is NaN outside [0, 1] by itself."""
    array = f(q, *shapes)
    array = array if scale is None else array * scale
    return checked(array if loc is None else array + loc, scale)


# The logarithm of a density, a function of probability, and a quantile; then the same
# without scale for counts, and without location for what is given on a circle.
density = kind(as_density, "x", loc=0, scale=1)
probability = kind(as_probability, "x", loc=0, scale=1)
quantile = kind(as_quantile, "q", loc=0, scale=1)
strict_quantile = kind(as_strict_quantile, "q", loc=0, scale=1)
mass = kind(as_probability, "k", loc=0)
of_count = kind(as_probability, "k")
of_number = kind(as_probability, "x")
plain_quantile = kind(as_quantile, "q")


def derived(
    name: str, function: Function, then: Callable[[Array], Array], word: str
) -> Function:
    """`then` after `function`, of the same arguments, under a name of its own."""

    @wraps(function)
    def called(*args: object, **kwargs: object) -> Array:
        return then(function(*args, **kwargs))

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"{word} of `{function.__name__}`."
    return called


def exponential(name: str, function: Function) -> Function:
    """exp of a function that gives logarithms."""
    return derived(name, function, vnp.exp, "The exponential")


def logarithm(name: str, function: Function, rest: Function) -> Function:
    """log of a function that gives probabilities, of which `rest` is 1 less it.

    Near 1 it is taken from the rest, which has the digits there.
    """

    @wraps(function)
    def called(*args: object, **kwargs: object) -> Array:
        value, other = function(*args, **kwargs), rest(*args, **kwargs)
        high = value > 0.5
        near = vnp.log1p(-where(high, other, 0.0))
        return where(high, near, vnp.log(where(high, 1.0, value)))

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"The logarithm of `{function.__name__}`."
    return called


def log1p_square(z: Array) -> Array:
    """log(1 + z²), also where the square overflows: there twice log(1 + |z|)."""
    far = abs(z) > 1e9
    near = where(far, 0.0, z)
    logarithm = vnp.log1p(where(far, abs(z), near * near))
    return where(far, 2 * logarithm, logarithm)


def supported(
    outside: Array, z: Array, safe: float, f: Callable[[Array], Array], beyond: float
) -> Array:
    """`f(z)` inside a support and `beyond` outside, with slope 0 there.

    Outside `f` is called at `safe`, so that no infinity spoils the derivative.
    """
    return where(outside, beyond, f(where(outside, safe, z)))
