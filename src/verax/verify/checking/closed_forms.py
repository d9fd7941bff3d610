"""Floor 6: the functions that elementwise rows compute, in SymPy's words.

One idea: a row says its function in NumPy, where nothing can be proved; here it stands
once more as an expression, with the pieces of its domain on which it is smooth::

    FORMS["log"]          # log x, for x = p > 0
    FORMS["abs"]          # |x|, for x = p > 0 and for x = -p < 0

A piece maps free parameters to operands: those called p, q and r stand for positive
numbers, m and n for positive integers, i for the imaginary unit, others for reals. So
1 + p is every number above 1, and (p - 1) / (p + 1) every one of (-1, 1): SymPy
simplifies with assumptions of signs better than with intervals.

Nothing here imports SymPy: forms take its namespace `s` as their first argument.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final, Protocol

from attrs import frozen

from verax.ir.records import ReprMixin

type Sign = bool | None


class Known(Protocol):
    """What SymPy knows of an expression; a `Sign` is None if it is not known."""

    @property
    def is_number(self) -> bool: ...
    @property
    def is_Boolean(self) -> bool: ...
    @property
    def is_Float(self) -> bool: ...
    @property
    def is_Rational(self) -> bool: ...
    @property
    def is_finite(self) -> Sign: ...
    @property
    def is_integer(self) -> Sign: ...
    @property
    def is_negative(self) -> Sign: ...
    @property
    def is_nonnegative(self) -> Sign: ...
    @property
    def is_nonpositive(self) -> Sign: ...
    @property
    def is_positive(self) -> Sign: ...
    @property
    def is_real(self) -> Sign: ...


class Arithmetic(Protocol):
    """Python's operators on expressions."""

    def __add__(self, other: object) -> "Expression": ...
    def __radd__(self, other: object) -> "Expression": ...
    def __sub__(self, other: object) -> "Expression": ...
    def __rsub__(self, other: object) -> "Expression": ...
    def __mul__(self, other: object) -> "Expression": ...
    def __rmul__(self, other: object) -> "Expression": ...
    def __truediv__(self, other: object) -> "Expression": ...
    def __pow__(self, other: object) -> "Expression": ...
    def __ge__(self, other: object) -> "Expression": ...
    def __neg__(self) -> "Expression": ...
    def __abs__(self) -> "Expression": ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __int__(self) -> int: ...


class Expression(Known, Arithmetic, Protocol):
    """An expression of SymPy, by what is asked of it here."""

    @property
    def args(self) -> "tuple[Expression, ...]": ...
    @property
    def free_symbols(self) -> "set[Expression]": ...
    def as_real_imag(self) -> "tuple[Expression, Expression]": ...
    def atoms(self, *kinds: object) -> "set[Expression]": ...
    def count_ops(self) -> int: ...
    def has(self, *patterns: object) -> bool: ...
    def replace(self, query: object, value: object) -> "Expression": ...
    def rewrite(self, *kinds: object) -> "Expression": ...
    def subs(self, *points: object) -> "Expression": ...
    def xreplace(self, rule: "Mapping[Expression, object]") -> "Expression": ...


class Rational(Expression, Protocol):
    """A fraction of SymPy."""

    @property
    def p(self) -> int: ...
    @property
    def q(self) -> int: ...


type Form = Callable[..., Any]
type Piece = Callable[..., tuple[Expression | bool, ...]]

PROVED: Final = "proved"
TESTED: Final = "tested"

REAL: Final[tuple[Piece, ...]] = (lambda x: (x,),)
REALS: Final[tuple[Piece, ...]] = (lambda x, y: (x, y),)
POSITIVE: Final[tuple[Piece, ...]] = (lambda p: (p,),)
NOT_ZERO: Final[tuple[Piece, ...]] = (lambda p: (p,), lambda p: (-p,))
WITHIN_ONE: Final[tuple[Piece, ...]] = (lambda p: ((p - 1) / (p + 1),),)
# Beyond, exp(-x^2) is less than any float, and the rows cut it off.
UP_TO_30: Final[tuple[Piece, ...]] = (lambda p: (30 * (p - 1) / (p + 1),),)
ABOVE_ONE: Final[tuple[Piece, ...]] = (lambda p: (1 + p,),)
ABOVE_MINUS_ONE: Final[tuple[Piece, ...]] = (lambda p: (p - 1,),)
COMPLEX: Final[tuple[Piece, ...]] = (lambda x, y, i: (x + i * y,),)
BY_NOT_ZERO: Final[tuple[Piece, ...]] = (lambda x, p: (x, p), lambda x, p: (x, -p))
BOTH_NOT_ZERO: Final[tuple[Piece, ...]] = (
    lambda p, q: (p, q),
    lambda p, q: (p, -q),
    lambda p, q: (-p, q),
    lambda p, q: (-p, -q),
)
APART: Final[tuple[Piece, ...]] = (lambda x, p: (x, x + p), lambda x, p: (x, x - p))


@frozen(eq=False, repr=False)
class ClosedForm(ReprMixin):
    """The function of a row, and where it is smooth.

    Attributes:
        form: `(sympy, *operands) -> expression`.
        pieces: `(*parameters) -> operands`, one for each part of the domain.
        active: the operands that have a derivative; None for all of them.
        jvp, transpose: what the page of primitives says of these columns; the tests of
            proofs hold both to it.
    """

    form: Form
    pieces: tuple[Piece, ...] = REAL
    active: tuple[int, ...] | None = None
    jvp: str = PROVED
    transpose: str = PROVED


def cube_root(s: ModuleType, x: Expression) -> object:
    """The real root, of negative numbers too."""
    return s.sign(x) * s.Abs(x) ** s.Rational(1, 3)


def whole(s: ModuleType, x: Expression) -> Any:
    """x without its fraction, towards zero."""
    return s.sign(x) * s.floor(s.Abs(x))


def above(s: ModuleType, x: Expression, y: Expression) -> bool | None:
    """Whether x is the larger, if that follows from what is assumed of symbols.

    Where they are equal, either will do.
    """
    if not (x - y).free_symbols:
        return bool(x >= y)
    difference = s.cancel(s.together(x - y))
    if difference.is_nonnegative:
        return True
    return False if difference.is_nonpositive else None


def larger(s: ModuleType, x: Expression, y: Expression) -> Any:
    """The larger one, which is known where the sign of x - y is."""
    known = above(s, x, y)
    return s.Max(x, y) if known is None else x if known else y


def smaller(s: ModuleType, x: Expression, y: Expression) -> Any:
    """The smaller one."""
    known = above(s, x, y)
    return s.Min(x, y) if known is None else y if known else x


def choice(s: ModuleType, which: Expression, *cases: Expression) -> Any:
    """The case of a truth value, or of a number."""
    if which in (s.true, s.false):
        return cases[int(bool(which))]
    if which.is_number:
        return cases[int(which)]
    return s.Piecewise((cases[1], which), (cases[0], True))


LINEAR: Final[Mapping[str, ClosedForm]] = MappingProxyType(
    {
        "add": ClosedForm(lambda s, x, y: x + y, REALS),
        "sub": ClosedForm(lambda s, x, y: x - y, REALS),
        "mul": ClosedForm(lambda s, x, y: x * y, REALS),
        "div": ClosedForm(lambda s, x, y: x / y, BY_NOT_ZERO),
        "neg": ClosedForm(lambda s, x: -x),
        "copy": ClosedForm(lambda s, x: x),
        "real": ClosedForm(lambda s, z: s.re(z), COMPLEX),
        "imag": ClosedForm(lambda s, z: s.im(z), COMPLEX),
        "conj": ClosedForm(lambda s, z: s.conjugate(z), COMPLEX),
        "complex": ClosedForm(lambda s, x, y: x + s.I * y, REALS),
        "select_n": ClosedForm(
            choice, (lambda x, y: (True, x, y), lambda x, y: (False, x, y)), (1, 2)
        ),
    }
)
ALGEBRAIC: Final[Mapping[str, ClosedForm]] = MappingProxyType(
    {
        "square": ClosedForm(lambda s, x: x * x),
        "one_minus_square": ClosedForm(lambda s, x: 1 - x * x),
        "sqrt": ClosedForm(lambda s, x: s.sqrt(x), POSITIVE),
        "rsqrt": ClosedForm(lambda s, x: 1 / s.sqrt(x), POSITIVE),
        "cbrt": ClosedForm(cube_root, NOT_ZERO),
        "abs": ClosedForm(lambda s, x: s.Abs(x), NOT_ZERO),
        "max": ClosedForm(larger, APART),
        "min": ClosedForm(smaller, APART),
        "clamp": ClosedForm(
            lambda s, low, x, high: smaller(s, larger(s, low, x), high),
            (
                lambda x, p, q: (x - p, x, x + q),
                lambda x, p, q: (x + p, x, x + p + q),
                lambda x, p, q: (x - p - q, x, x - p),
            ),
        ),
        "rem": ClosedForm(lambda s, x, y: x - y * whole(s, x / y), BOTH_NOT_ZERO),
        "sign": ClosedForm(lambda s, x: s.sign(x), NOT_ZERO),
        "floor": ClosedForm(lambda s, x: s.floor(x)),
        "ceil": ClosedForm(lambda s, x: s.ceiling(x)),
    }
)
TRANSCENDENTAL: Final[Mapping[str, ClosedForm]] = MappingProxyType(
    {
        "exp": ClosedForm(lambda s, x: s.exp(x)),
        "exp2": ClosedForm(lambda s, x: s.Integer(2) ** x),
        "expm1": ClosedForm(lambda s, x: s.exp(x) - 1),
        "log": ClosedForm(lambda s, x: s.log(x), POSITIVE),
        "log2": ClosedForm(lambda s, x: s.log(x) / s.log(2), POSITIVE),
        "log1p": ClosedForm(lambda s, x: s.log(1 + x), ABOVE_MINUS_ONE),
        "logistic": ClosedForm(lambda s, x: 1 / (1 + s.exp(-x))),
        "logaddexp": ClosedForm(lambda s, x, y: s.log(s.exp(x) + s.exp(y)), REALS),
        "pow": ClosedForm(lambda s, x, y: x**y, (lambda p, y: (p, y),)),
        "xlogy": ClosedForm(lambda s, x, y: x * s.log(y), (lambda p, q: (p, q),)),
        "xlog1py": ClosedForm(
            lambda s, x, y: x * s.log(1 + y), (lambda p, q: (p, q - 1),)
        ),
        "sin": ClosedForm(lambda s, x: s.sin(x)),
        "cos": ClosedForm(lambda s, x: s.cos(x)),
        "tan": ClosedForm(lambda s, x: s.tan(x)),
        "asin": ClosedForm(lambda s, x: s.asin(x), WITHIN_ONE),
        "acos": ClosedForm(lambda s, x: s.acos(x), WITHIN_ONE),
        "atan": ClosedForm(lambda s, x: s.atan(x)),
        "atan2": ClosedForm(lambda s, x, y: s.atan2(x, y), BY_NOT_ZERO),
        "sinh": ClosedForm(lambda s, x: s.sinh(x)),
        "cosh": ClosedForm(lambda s, x: s.cosh(x)),
        "tanh": ClosedForm(lambda s, x: s.tanh(x)),
        "asinh": ClosedForm(lambda s, x: s.asinh(x)),
        "acosh": ClosedForm(lambda s, x: s.acosh(x), ABOVE_ONE),
        "atanh": ClosedForm(lambda s, x: s.atanh(x), WITHIN_ONE),
    }
)
SPECIAL: Final[Mapping[str, ClosedForm]] = MappingProxyType(
    {
        "erf": ClosedForm(lambda s, x: s.erf(x), UP_TO_30),
        "erfc": ClosedForm(lambda s, x: s.erfc(x), UP_TO_30),
        "erf_inv": ClosedForm(lambda s, x: s.erfinv(x), WITHIN_ONE),
        "lgamma": ClosedForm(lambda s, x: s.loggamma(x), POSITIVE),
        "digamma": ClosedForm(lambda s, x: s.digamma(x), POSITIVE),
        "polygamma": ClosedForm(
            lambda s, m, x: s.polygamma(m, x), (lambda m, p: (m, p),), (1,)
        ),
        "zeta": ClosedForm(
            lambda s, x, q: s.zeta(x, q), (lambda p, q: (1 + p, q),), (1,), jvp=TESTED
        ),
        "bessel_i0e": ClosedForm(
            lambda s, x: s.exp(-s.Abs(x)) * s.besseli(0, x), NOT_ZERO
        ),
        "bessel_i1e": ClosedForm(
            lambda s, x: s.exp(-s.Abs(x)) * s.besseli(1, x), NOT_ZERO
        ),
        "igamma": ClosedForm(
            lambda s, a, x: s.lowergamma(a, x) / s.gamma(a),
            (lambda p, q: (p, q),),
            (1,),
            jvp=TESTED,
        ),
        "igammac": ClosedForm(
            lambda s, a, x: s.uppergamma(a, x) / s.gamma(a),
            (lambda p, q: (p, q),),
            (1,),
            jvp=TESTED,
        ),
    }
)
FORMS: Final[Mapping[str, ClosedForm]] = MappingProxyType(
    {**LINEAR, **ALGEBRAIC, **TRANSCENDENTAL, **SPECIAL}
)
"""The closed forms by the names of rows; those that are missing have none here.

Of `igamma`, `igammac` and `zeta` only the derivative in the last operand is proved:
SymPy has no closed form of the other, and so their column is called tested. That of
the incomplete beta function is none over the reals: it uses a finite series where
parameters are large."""
