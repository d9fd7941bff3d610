"""Floor 6: whether two expressions are equal over the reals.

One idea: points that tell them apart come first, with forty digits, so that what is
wrong is refuted by small numbers; what is left is reduced to a normal form, in which
equal rational functions are the same, or simplified with what is assumed of symbols::

    decided([(x * y + x * z, x * (y + z))]).status     # "proved"

Maxima, roundings and the like are first replaced by symbols of their own: what holds
for any value of a maximum holds for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any, Final, Literal

from attrs import field, frozen

from verax.ir.records import ReprMixin
from verax.verify.checking.closed_forms import PROVED, TESTED, Expression, Rational
from verax.verify.checking.symbols import sympy

type Status = Literal["proved", "tested", "refuted"]
type Method = Literal["normal form", "sympy", "search", ""]
type Pair = tuple[Expression, Expression]

REFUTED: Final = "refuted"
POINTS: Final = 24
"""So many points are tried before a proof is."""
DIGITS: Final = 40
CLOSE: Final = Fraction(1, 10**25)
LARGEST: Final = 400
"""Expressions of more operations are left alone, for they could take minutes."""
SIMPLIFIED: Final = 60
"""Those of more are not given to all that SymPy has to simplify by."""
SIGNED: Final = 3
"""So many symbols are tried with both signs."""
SIMPLE: Final = tuple(
    map(
        Fraction,
        ("2", "3", "1/2", "-1", "1", "0", "-2", "-1/2", "3/2", "1/3", "-3", "5"),
    )
)


STRENGTH: Final = {PROVED: 0, TESTED: 1, REFUTED: 2}


class Refuted(AssertionError):
    """A claim does not hold; the text has the counterexample.

    >>> example = Counterexample({"x": -1}, 1, -1)
    >>> proof = Proof("root of x²", "reals", "refuted", "search", example)
    >>> proof.raise_if_refuted()
    Traceback (most recent call last):
    ...
    verax.verify.Refuted: root of x²: reals refuted by search at x = -1: 1 is not -1
    """

    __module__ = "verax.verify"


@frozen(repr=False)
class Counterexample(ReprMixin):
    """Operands on which two sides that should be equal differ.

    `operands` are numbers or arrays by name; `left` and `right` are what the two sides
    give, in a rule the pattern and the replacement, in a row the derivative of its
    function and what its rule says.

    >>> print(Counterexample({"x": 2, "y": -1}, 1, 5))
    at x = 2, y = -1: 1 is not 5
    """

    __module__ = "verax.verify"

    operands: Mapping[str, object]
    left: object
    right: object

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {x}" for name, x in self.operands.items())
        return f"at {where or 'every point'}: {self.left} is not {self.right}"


@frozen(repr=False)
class Proof(ReprMixin):
    """The outcome of an attempt at a proof; false if it refutes what is claimed.

    Attributes:
        subject: the rule, or the row and its column.
        claim: what it says: `bits`, `reals` or `bound` for rules, else the column.
        status: `proved`, `tested` (no point tells the sides apart, and no proof was
            possible) or `refuted`.
        method: `normal form`, `sympy` or `search`.
        counterexample: operands that refute it.
        note: for what it was proved, or why it was not.

    >>> Proof("twice", "reals", "proved", "normal form")
    twice: reals proved by normal form
    """

    __module__ = "verax.verify"

    subject: str
    claim: str
    status: Status
    method: Method
    counterexample: Counterexample | None = None
    note: str = field(default="")

    def __bool__(self) -> bool:
        return self.status != REFUTED

    def __str__(self) -> str:
        text = f"{self.subject}: {self.claim} {self.status} by {self.method}"
        if self.counterexample is not None:
            text += f" {self.counterexample}"
        return f"{text} ({self.note})" if self.note else text

    __repr__ = __str__

    def raise_if_refuted(self) -> "Proof":
        """This proof, unless it is the contrary.

        Raises:
            Refuted: it has a counterexample, which the text shows.
        """
        if not self:
            raise Refuted(str(self))
        return self


@frozen(repr=False)
class Outcome(ReprMixin):
    """What is known of a list of equations: the weakest of what is known of each."""

    status: Status
    method: Method
    counterexample: Counterexample | None = None
    note: str = ""


def decided(
    pairs: Sequence[Pair], within: tuple[float, float] | None = None
) -> Outcome:
    """Whether the two sides of each pair are equal, wherever both are real.

    `within` bounds the real symbols at the points that are tried, where a claim is
    about an interval.
    """
    if not pairs:
        return Outcome("tested", "search", note="there was nothing to compare")
    out = Outcome("proved", "normal form")
    for left, right in dict.fromkeys(pairs):
        out = weaker(out, decided_one(left, right, within))
        if out.status == REFUTED:
            break
    return out


def weaker(first: Outcome, second: Outcome) -> Outcome:
    """What is known of two equations together."""
    return max(first, second, key=lambda x: (STRENGTH[x.status], x.method == "sympy"))


def decided_one(
    left: Expression, right: Expression, within: tuple[float, float] | None
) -> Outcome:
    """The same for one pair."""
    if left == right:
        return Outcome("proved", "normal form")
    tried, example = 0, None
    for point in points(left, right, within):
        told = told_apart(left, right, point)
        if told is None:
            continue
        tried += 1
        if told:
            names = {str(k): Fraction(int(v.p), int(v.q)) for k, v in point.items()}
            s = sympy()
            values = [str(s.N(side.subs(point), 15)) for side in (left, right)]
            if values[0] == values[1]:
                values = [str(s.N(side.subs(point), 30)) for side in (left, right)]
            example = Counterexample(names, *values)
            return Outcome("refuted", "search", example)
    if not tried:
        return Outcome("tested", "search", note="it has no real value where tried")
    method = proof_of(left, right)
    if method:
        return Outcome("proved", method)
    return Outcome("tested", "search", note=f"{tried} points, {DIGITS} digits")


# -----------------------------------------------------------------------------
# Points that tell two expressions apart.


def points(
    left: Expression, right: Expression, within: tuple[float, float] | None
) -> Iterator[Mapping[Expression, Rational]]:
    """Rational values of all symbols: simple ones first, so that examples are small."""
    s, random = sympy(), Random(0)
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    low, high = (-4.0, 4.0) if within is None else within
    low, high = max(low, -40.0), min(high, 40.0)
    for turn in range(POINTS):
        out = {}
        for place, symbol in enumerate(symbols):
            x = value_of(symbol, turn + 3 * place, random, (low, high))
            out[symbol] = s.Rational(x.numerator, x.denominator)
        yield out
    if low <= 0 <= high and not any(x.is_positive for x in symbols):
        yield dict.fromkeys(symbols, s.Integer(0))


def value_of(
    symbol: Expression, turn: int, random: Random, within: tuple[float, float]
) -> Fraction:
    """A value that a symbol may have by what is assumed of it."""
    x = SIMPLE[turn % len(SIMPLE)] if turn < 2 * len(SIMPLE) else None
    low, high = within
    if symbol.is_integer:
        return Fraction(1 + turn % 4)
    if symbol.is_positive and low < 0:
        low, high = 0.01, max(high, 1.0)
    if x is not None and low <= x <= high and (x or not symbol.is_positive):
        return x
    return Fraction(random.uniform(low, high)).limit_denominator(97) or Fraction(1, 97)


def told_apart(
    left: Expression, right: Expression, point: Mapping[Expression, Expression]
) -> bool | None:
    """Whether the sides differ at a point; None where the left one has no real value.

    A side that has none where the left one has one differs from it.
    """
    s = sympy()
    try:
        a, b = (s.N(side.subs(point), DIGITS, maxn=400) for side in (left, right))
    except (TypeError, ValueError, ArithmeticError, NotImplementedError):
        return None
    if a.is_Boolean or b.is_Boolean:
        return bool(a != b)
    if not (a.is_number and b.is_number and is_real(a)):
        return None
    if not is_real(b):
        return not b.has(s.Function, s.Integral, s.Derivative)
    size = 1 + max(abs(a), abs(b))
    return bool(abs(a - b) > s.Rational(CLOSE.numerator, CLOSE.denominator) * size)


def is_real(x: Expression) -> bool:
    """Whether a number is real and finite, but for what rounding leaves of i."""
    s = sympy()
    if x.is_finite is False or x in (s.nan, s.zoo):
        return False
    real, imag = x.as_real_imag()
    if not (real.is_Float or real.is_Rational):
        return False
    return bool(abs(imag) <= s.Float(10) ** -25 * (1 + abs(real)))


# -----------------------------------------------------------------------------
# Proofs, from the cheapest to the dearest.


def proof_of(left: Expression, right: Expression) -> Method:
    """The method by which two expressions are shown to be equal; "" if none did."""
    s = sympy()
    whole = left - right
    method: Method = "normal form"
    for difference in abstracted(whole):
        if difference.count_ops() > LARGEST:
            return ""
        if s.expand(difference) == 0:
            continue
        for case in cases_of(difference):
            how = proof_of_case(case)
            if not how:
                return ""
            method = how if how == "sympy" else method
    return method


def cases_of(difference: Expression) -> Iterator[Expression]:
    """What must be zero: by the signs of symbols, each branch of a choice.

    Every branch is asked for, also those that the signs exclude, so what holds of all
    of them holds of the choice.
    """
    s = sympy()
    signed = sorted(
        [
            x
            for x in difference.free_symbols
            if x.is_real and x.is_positive is None and touched(difference, x)
        ],
        key=str,
    )
    if len(signed) > SIGNED:
        signed = []
    for signs in product((1, -1, 0), repeat=len(signed)):
        new = {
            x: sign * s.Dummy(f"p{i}", positive=True)
            for i, (x, sign) in enumerate(zip(signed, signs, strict=True))
        }
        one = s.piecewise_fold(difference.subs(new))
        if isinstance(one, s.Piecewise):
            yield from [known_equal(branch, when) for branch, when in one.args]
        else:
            yield one


def known_equal(branch: Expression, when: object) -> Expression:
    """A branch with what its condition says is equal put in."""
    s = sympy()
    parts = when.args if isinstance(when, s.And) else (when,)
    for part in parts:
        if isinstance(part, s.Eq) and part.lhs.is_Symbol:
            branch = branch.subs(part.lhs, part.rhs)
    return branch


def touched(difference: Expression, symbol: object) -> bool:
    """Whether a sign or a choice depends on a symbol."""
    s = sympy()
    atoms = difference.atoms(s.Abs, s.sign, s.Piecewise)
    return any(symbol in atom.free_symbols for atom in atoms)


def proof_of_case(difference: Expression) -> Method:
    """The method by which an expression without choices is shown to be zero."""
    s = sympy()
    if rational(s.expand_func(difference)):
        return "normal form"
    for change in (by_gamma, by_exponentials, by_logarithms):
        changed = change(difference)
        if changed.count_ops() <= LARGEST and (
            rational(s.powsimp(s.expand(changed, power_exp=True)))
            or constant_one(changed)
        ):
            return "sympy"
    if difference.count_ops() <= SIMPLIFIED and vanishes(difference):
        return "sympy"
    return ""


def abstracted(expression: Expression) -> list[Expression]:
    """What stands for an expression without its maxima, minima and roundings.

    Where both the larger and the smaller of two values occur, it is one expression
    for each order of the two.
    """
    return [out for ordered in orders(expression) for out in with_symbols(ordered)]


def orders(expression: Expression) -> list[Expression]:
    """An expression by which of two values is the larger, where it asks for both.

    Of |x| and |y| the larger is positive, or both are zero.
    """
    s = sympy()
    for larger in sorted(expression.atoms(s.Max), key=str):
        smaller = s.Min(*larger.args)
        if len(larger.args) != 2 or not expression.has(smaller):
            continue
        ways = (larger.args, larger.args[::-1])
        out = [expression.xreplace({larger: a, smaller: b}) for a, b in ways]
        if not is_length(larger):
            return out
        x, y = (part.args[0] for part in larger.args)
        sides = [sign * s.Dummy("side", positive=True) for sign in (1, -1)]
        by_sign = [
            one.subs(long, side)
            for one, long in zip(out, (x, y), strict=True)
            for side in sides
        ]
        return [*by_sign, expression.subs({x: 0, y: 0})]
    return [expression]


def with_symbols(expression: Expression) -> list[Expression]:
    """With a symbol for each maximum, minimum and rounding, whatever its value is.

    Its sign is kept, where it is known to have one. The largest of |x|, |y|, ...
    is positive, or all of them are zero: that makes two expressions.
    """
    s = sympy()
    atoms = sorted(expression.atoms(s.Max, s.Min, s.floor, s.ceiling), key=str)
    names = {}
    for i, atom in enumerate(atoms):
        sign = {"nonnegative": True} if atom.is_nonnegative else {"real": True}
        sign = {"positive": True} if atom.is_positive else sign
        names[atom] = s.Dummy(f"m{i}", **sign)
    lengths = [atom for atom in atoms if is_length(atom)]
    if len(lengths) != 1:
        return [expression.xreplace(names)]
    (length,) = lengths
    nowhere = expression.subs({part.args[0]: 0 for part in length.args})
    names[length] = s.Dummy("length", positive=True)
    return [expression.xreplace(names), nowhere.xreplace(names)]


def is_length(atom: object) -> bool:
    """Whether an expression is the largest of the absolute values of symbols."""
    s = sympy()
    return isinstance(atom, s.Max) and all(
        isinstance(part, s.Abs) and part.args[0].is_Symbol for part in atom.args
    )


def rational(difference: object) -> bool:
    """Whether it is zero as a rational function of what it is made of."""
    s = sympy()
    expanded = s.expand(difference, power_exp=True, log=True, force=False)
    return bool(s.cancel(s.together(expanded)) == 0)


def by_gamma(expression: Expression) -> Any:
    """With gamma functions instead of their relatives, exponentials for powers."""
    s = sympy()

    def logarithm(x: Expression) -> Any:
        return s.log(s.gamma(x)) if x.is_positive else s.loggamma(x)

    out = expression.rewrite(s.gamma).replace(s.loggamma, logarithm)
    return out.replace(
        lambda x: x.is_Pow and x.base.is_positive and bool(x.exp.free_symbols),
        lambda x: s.exp(s.expand(x.exp * s.expand_log(s.log(x.base)))),
    )


def by_exponentials(expression: Expression) -> Any:
    """With exponentials instead of circular and hyperbolic functions."""
    return expression.rewrite(sympy().exp)


def by_logarithms(expression: Expression) -> Any:
    """With logarithms instead of the inverses of hyperbolic functions."""
    s = sympy()
    inverse = (s.asinh, s.acosh, s.atanh)
    return (
        expression.rewrite(inverse, s.log) if expression.has(*inverse) else expression
    )


def vanishes(difference: object) -> bool:
    """Whether it simplifies to zero."""
    try:
        return bool(sympy().simplify(difference) == 0)
    except (TypeError, ValueError, NotImplementedError, RecursionError):
        return False


def constant_one(difference: Expression) -> bool:
    """Whether its exponential is 1, as that of a sum of logarithms of quotients.

    The exponential function of a real number is 1 at 0 alone.
    """
    s = sympy()
    if not difference.has(s.log) or difference.is_real is False:
        return False
    power = s.powsimp(s.expand(s.exp(s.expand_log(difference))))
    return power.count_ops() <= LARGEST and rational(power - 1)


def named(outcome: Outcome, subject: str, claim: str) -> Proof:
    """A proof of what was decided."""
    return Proof(
        subject,
        claim,
        outcome.status,
        outcome.method,
        outcome.counterexample,
        outcome.note,
    )
