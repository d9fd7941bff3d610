"""Floor 6: programs evaluated on symbols instead of numbers.

One idea: arrays of objects hold SymPy's expressions; rows that move elements run as
they are, elementwise ones have a closed form, and bodies are evaluated by the same
engine, so a program of any rows becomes one expression for each element::

    (y,) = symbolic(ENGINE).evaluate(jaxpr, [array_of("x", aval)])

Numbers are real: a literal that is the nearest double to 1/3, log 2 or 2/sqrt(pi)
stands for that number, and nothing overflows.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any, Final

import numpy as np
from attrs import field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_bool, is_inexact, is_integer
from verax.ir.facade import module_named
from verax.ir.jaxpr import Eqn, Jaxpr, Literal
from verax.ir.walk import interpret
from verax.ops.contraction.dot import DotParams
from verax.rules.rows.row import NDArray
from verax.rules.values.memo import pure
from verax.transforms.engine.engine import StandardEngine, evaluate_eqn, literal_value
from verax.transforms.precision.multiple import summed_products
from verax.verify.checking.closed_forms import FORMS, Expression, Form

ULP: Final = 4.0 * float(np.finfo(np.float64).eps)
"""A constant that was computed in doubles may have lost its last place."""
SMALL: Final = 1 << 10
"""The largest denominator of fractions that a literal stands for."""
FEW: Final = 64
"""The same under roots and logarithms."""
LARGE: Final = 1 << 20
"""Larger doubles have too few places left to tell fractions apart."""
MOVES: Final = frozenset(
    (
        "broadcast_in_dim",
        "concatenate",
        "copy",
        "pad",
        "reshape",
        "rev",
        "select_n",
        "slice",
        "split",
        "squeeze",
        "stop_gradient",
        "transpose",
    )
)
"""Rows that compute nothing: their results are elements of their operands."""
SUMS: Final = frozenset(("cumprod", "cumsum", "reduce_prod", "reduce_sum"))
"""Rows that compute, whose rules work on arrays of objects as on others."""
BODIES: Final = frozenset(
    ("checkpoint", "custom_jvp_call", "custom_vjp_call", "jit", "pjit")
)
"""Rows that evaluate a program, which they hold, once."""


class NoClosedForm(ValueError):
    """A program computes what has no closed form here; the message names the row."""


@pure()
def sympy() -> Any:
    """SymPy itself.

    Raises:
        ModuleNotFoundError: it is not installed; says how to install it.
    """
    try:
        return module_named("sympy")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "verax.verify proves with SymPy, which is not installed; install it with: "
            "pip install 'verax[verify]'"
        ) from error


@pure()
def constants() -> tuple[tuple[float, Expression], ...]:
    """Numbers that literals of programs stand for, beside fractions."""
    s = sympy()
    two_pi = 2 * s.pi
    basic = (s.pi, s.log(2), s.log(10), s.sqrt(2), s.sqrt(s.pi), s.sqrt(two_pi))
    more = (2 / s.sqrt(s.pi), s.log(two_pi) / 2, s.EulerGamma, s.E)
    exact = [y for x in (*basic, *more) for y in (x, x / 2, 1 / x)]
    return tuple([(float(x), x) for x in exact])


def exact(value: float) -> Any:
    """The real number that a double stands for.

    >>> exact(1 / 3), exact(2 * np.log(2.0) / 2), exact(0.75), exact(np.sqrt(3.0))
    (1/3, log(2), 3/4, sqrt(3))
    """
    s = sympy()
    if not np.isfinite(value):
        return s.nan if np.isnan(value) else s.oo * (1 if value > 0 else -1)
    near = fraction(value, SMALL)
    if near is not None:
        return near
    for size, constant in constants():
        if abs(abs(value) - size) <= ULP * size:
            return constant if value > 0 else -constant
    if abs(value) < FEW:
        power, square = fraction(float(np.exp(value)), FEW), fraction(value**2, FEW)
        if power is not None:
            return s.log(power)
        if square is not None:
            return s.sqrt(square) * (1 if value > 0 else -1)
    own = Fraction(value)
    return s.Rational(own.numerator, own.denominator)


def fraction(value: float, largest: int) -> object:
    """The fraction with a small denominator that a double is nearest to, if any is."""
    own = Fraction(value)
    near = own.limit_denominator(largest) if abs(own) < LARGE else own
    if abs(near - own) > ULP * abs(own):
        return None
    return sympy().Rational(near.numerator, near.denominator)


def expression(x: object) -> Any:
    """An element of an array as SymPy has it."""
    s = sympy()
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, bool):
        return s.true if x else s.false
    if isinstance(x, complex):
        return exact(x.real) + s.I * exact(x.imag)
    return exact(x) if isinstance(x, float) else s.sympify(x)


def objects(x: object) -> NDArray:
    """An array of expressions: of an array, or of one alone."""
    values = np.asarray(x, object)
    out = np.empty(values.shape, object)
    for index in np.ndindex(values.shape):
        out[index] = expression(values[index])
    return out


def array_of(symbols: Callable[[str], object], name: str, aval: ShapedArray) -> NDArray:
    """A symbol for each element: x, or x0, x1, ... in row-major order."""
    out = np.empty(aval.shape, object)
    for number, index in enumerate(np.ndindex(aval.shape)):
        out[index] = symbols(f"{name}{number}" if aval.shape else name)
    return out


def mapped(form: Form, operands: Sequence[NDArray]) -> NDArray:
    """A closed form of each element, with the shapes that elementwise rows take."""
    s = sympy()
    broadcast = np.broadcast_arrays(*operands)
    out = np.empty(broadcast[0].shape, object)
    for index in np.ndindex(out.shape):
        out[index] = form(s, *[expression(x[index]) for x in broadcast])
    return out


def power(eqn: Eqn, operands: Sequence[NDArray]) -> list[NDArray]:
    """An integer power."""
    return [mapped(lambda s, x: x ** getattr(eqn.params, "y", 1), operands)]


def extreme(eqn: Eqn, operands: Sequence[NDArray]) -> list[NDArray]:
    """The largest or smallest element along some axes."""
    s = sympy()
    (x,), axes = operands, tuple(getattr(eqn.params, "axes", ()))
    pick = s.Max if eqn.primitive.name == "reduce_max" else s.Min
    front = np.moveaxis(x, axes, range(len(axes)))
    rows = front.reshape(-1, *front.shape[len(axes) :])
    return [mapped(lambda s, *xs: pick(*xs), list(rows))]


def product(eqn: Eqn, operands: Sequence[NDArray]) -> list[NDArray]:
    """A product of arrays."""
    assert isinstance(eqn.params, DotParams), "the row's own"
    return [objects(summed_products(eqn.params, *operands))]


def conversion(eqn: Eqn, operands: Sequence[NDArray]) -> list[NDArray]:
    """A conversion: to floats without rounding, of truth values to 0 and 1."""
    if not is_inexact(eqn.outvars[0].aval.dtype):
        raise NoClosedForm("convert_element_type to integers")
    if not is_bool(eqn.invars[0].aval.dtype):
        return list(operands)
    return [mapped(lambda s, x: s.Piecewise((1, x), (0, True)), operands)]


def at_least(s: ModuleType, x: Expression, y: Expression) -> object:
    """x >= y, as a truth value where it is known."""
    difference = s.cancel(s.together(x - y))
    if difference.is_nonnegative:
        return s.true
    return s.false if difference.is_negative else x >= y


RULES: Final[Mapping[str, Callable[[Eqn, Sequence[NDArray]], list[NDArray]]]] = {
    "integer_pow": power,
    "reduce_max": extreme,
    "reduce_min": extreme,
    "dot_general": product,
    "convert_element_type": conversion,
}
ON_REALS: Final[Mapping[str, Form]] = {
    "eq": lambda s, x, y: s.Eq(x, y),
    "ne": lambda s, x, y: s.Ne(x, y),
    "lt": lambda s, x, y: s.Not(at_least(s, x, y)),
    "le": lambda s, x, y: at_least(s, y, x),
    "gt": lambda s, x, y: s.Not(at_least(s, y, x)),
    "ge": lambda s, x, y: at_least(s, x, y),
    "and": lambda s, x, y: s.And(x, y),
    "or": lambda s, x, y: s.Or(x, y),
    "not": lambda s, x: s.Not(x),
    "is_finite": lambda s, x: s.true,
    "stop_gradient": lambda s, x: x,
}
"""Beside `FORMS`: what programs ask of numbers; reals are finite."""


@frozen(eq=False, repr=False)
class Symbolic(StandardEngine):
    """An engine that evaluates programs on symbols.

    `own` are closed forms by the names of rows, which come before those of `FORMS`.
    """

    own: Mapping[str, Form] = field(factory=dict)

    @property
    def numbers(self) -> StandardEngine:
        """The engine with the same rows that evaluates on numbers."""
        return StandardEngine(self.rules, self.core, self.axis)

    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        """The expressions of the outputs.

        Raises:
            NoClosedForm: an equation of the program has none.
        """
        return interpret(jaxpr, args, self.results, literal_of)

    def results(self, eqn: Eqn, operands: list[NDArray]) -> list[NDArray]:
        """The results of one equation; integers and truth values stay NumPy's."""
        if all(x.dtype != object for x in operands):
            plain = [literal(x) for x in evaluate_eqn(self, eqn, operands)]
            return plain
        name = eqn.primitive.name
        form = self.own.get(name) or ON_REALS.get(name)
        if form is None and name in FORMS:
            form = FORMS[name].form
        try:
            if form is not None and not of_integers(eqn):
                return [mapped(form, operands)]
            if name in RULES:
                return RULES[name](eqn, operands)
            evaluate = self.rules[eqn.primitive].evaluate
            if evaluate is None or name not in MOVES | SUMS | BODIES:
                raise NoClosedForm(name)
            outs = evaluate(self, eqn.params, operands)
        except (TypeError, AttributeError, ArithmeticError) as error:
            raise NoClosedForm(f"{name}: {error}") from error
        return [objects(x) for x in outs]


def of_integers(eqn: Eqn) -> bool:
    """Whether an equation is on bits rather than on numbers."""
    return any(is_integer(a.aval.dtype) for a in eqn.outvars)


def literal(x: NDArray) -> NDArray:
    """An array of floats as exact numbers; others as they are."""
    return objects(x) if x.dtype.kind in "fcV" else x


def literal_of(one: Literal) -> NDArray:
    """The value of a literal."""
    return literal(literal_value(one))


def symbolic(engine: StandardEngine, own: Mapping[str, Form] | None = None) -> Symbolic:
    """The engine with the same rows that evaluates on symbols."""
    return Symbolic(engine.rules, engine.core, engine.axis, own or {})
