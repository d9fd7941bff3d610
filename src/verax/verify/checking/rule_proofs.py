"""Floor 6: proofs of what rewrite rules claim.

One idea: both sides of a rule are evaluated on symbols, and what comes out is shown to
be equal for all real numbers, or there are numbers for which it is not; the same bits
are a matter of search, at the points where floats differ from numbers first::

    prove_rewrite(common_factor_fast)      # x*y + x*z = x*(y + z): proved
    prove_rewrite(double_negation)         # the same bits: tested
"""

from collections.abc import Iterator, Sequence
from functools import partial
from inspect import signature
from itertools import product
from typing import Final

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_bool, is_inexact, numpy_dtype, real_dtype
from verax.ir.jaxpr import Jaxpr, Literal
from verax.rules.rows.row import Domain, NDArray, traits_of
from verax.transforms.engine.engine import StandardEngine
from verax.transforms.patterns.rewrite_rules import Rewrite
from verax.verify.cases.case import double_precision
from verax.verify.cases.tolerance import wide_aval
from verax.verify.checking.check import CASES, Rules, engine_of
from verax.verify.checking.check_rewrites import (
    RewriteRule,
    Sides,
    check_rewrite,
    program_if,
    sides,
    spread,
)
from verax.verify.checking.closed_forms import PROVED, TESTED
from verax.verify.checking.equality import (
    Counterexample,
    Outcome,
    Pair,
    Proof,
    decided,
    named,
)
from verax.verify.checking.symbols import (
    MOVES,
    NoClosedForm,
    Symbolic,
    array_of,
    objects,
    symbolic,
    sympy,
)
from verax.verify.strategies import PLAIN, filled, special_points

BITS, REALS, BOUND = "bits", "reals", "bound"
CHOICES: Final = 6
"""So many truth values of a rule are tried in all combinations."""
TURNS: Final = 8
"""So often other special points meet in the operands of a rule."""


def prove_rewrite(
    rule: RewriteRule, *, rules: Rules = None, cases: int = CASES, seed: int = 0
) -> Proof:
    """Proves what a rewrite rule claims, or refutes it.

    A rule that claims equality over the reals (`claim` is "reals") is evaluated on
    symbols and both sides are reduced to one form; it holds wherever both sides have a
    real value, in the shapes of the rule's samples, and says nothing of rounding, which
    `check_rewrite` tests. One that claims the same bits is proved if it only moves
    elements; otherwise it is tried on operands that Hypothesis draws, special points
    among them, and so is a bound.

    Args:
        rule: a rule of `verax.rewrites`, or what `check_rewrite` takes.
        rules: the table to evaluate under.
        cases: how many operands are drawn where there is no proof.
        seed: draws the same operands each time.

    Returns:
        A `Proof`: `status` is "proved", "tested" or "refuted".

    Raises:
        ModuleNotFoundError: SymPy is not installed; the extra `verify` has it.
        ValueError: the rule applies to none of its types.

    >>> import verax.numpy as vnp
    >>> from verax.rewrites import rewrite
    >>> @rewrite(lambda x, y: vnp.exp(x) * vnp.exp(y), ulps=8)
    ... def product_of_exps(x, y):
    ...     return vnp.exp(x + y)
    >>> prove_rewrite(product_of_exps).status
    'proved'
    """
    sympy()
    engine, claim = engine_of(rules), claim_of(rule)
    if claim != BOUND:
        outcome = over_symbols(engine, rule, only_moves=claim == BITS)
        if outcome is not None:
            return named(outcome, rule.name, claim)
    return searched(rule, claim, rules, cases, seed)


def claim_of(rule: RewriteRule) -> str:
    """What a rule claims; one that is no `Rewrite` says it by its `ulps`."""
    if isinstance(rule, Rewrite):
        return rule.claim
    return REALS if rule.ulps else BITS


def searched(
    rule: RewriteRule, claim: str, rules: Rules, cases: int, seed: int
) -> Proof:
    """What Hypothesis finds, which is a counterexample or nothing."""
    if claim == BITS:
        example = other_bits(engine_of(rules), rule)
        if example is not None:
            return Proof(rule.name, claim, "refuted", "search", example)
    report = check_rewrite(rule, rules=rules, cases=cases, seed=seed)
    note = f"{report.tried} cases"
    if report:
        return Proof(rule.name, claim, "tested", "search", note=note)
    (first, *_) = report.broken
    proof = first.proof
    if proof is None:
        return Proof(rule.name, claim, "refuted", "search", note=first.evidence)
    names = variables(rule, len(proof.case.values))
    operands = dict(zip(names, proof.case.values, strict=True))
    example = Counterexample(operands, proof.want, proof.got)
    return Proof(rule.name, claim, "refuted", "search", example, proof.what)


def variables(rule: RewriteRule, count: int) -> Sequence[str]:
    """The names of a rule's variables; literals are none."""
    own = [name for name in signature(rule.pattern).parameters]
    known = [name for name in own if name not in rule.params]
    return known if len(known) == count else [f"operand {i}" for i in range(count)]


# -----------------------------------------------------------------------------
# The same bits, where floats differ from numbers.


def other_bits(engine: StandardEngine, rule: RewriteRule) -> Counterexample | None:
    """Special points at which a rule does not keep the bits, if there are any.

    The signs of zeros count, and infinities, unless the rule has a domain.
    """
    domain = Domain(*rule.domain)
    for avals in spread(rule):
        for one in sides(engine, rule, avals):
            for turn in range(TURNS):
                args = [
                    special(aval, domain, turn * (3 + 4 * place) + place)
                    for place, aval in enumerate(one.pattern.in_avals)
                ]
                due = engine.evaluate(one.pattern, args)
                got = engine.evaluate(one.replacement, args)
                for a, b in zip(due, got, strict=True):
                    if a.shape != b.shape or differ(a, b, domain).any():
                        operands = dict(
                            zip(variables(rule, len(args)), args, strict=True)
                        )
                        return Counterexample(operands, a, b)
    return None


def special(aval: ShapedArray, domain: Domain, turn: int) -> NDArray:
    """An array of the points where rules go wrong, other ones at each turn."""
    values: list[float] = [0, 1, 2, 3, 7, 100, 127]
    if is_inexact(aval.dtype):
        values = [*PLAIN, *special_points(real_dtype(aval.dtype), domain)]
    inside = [x for x in values if domain.low <= x <= domain.high]
    if domain == Domain() and is_inexact(aval.dtype):
        inside.append(np.nan)
    turn %= len(inside)
    return filled(inside[turn:] + inside[:turn], aval.shape, numpy_dtype(aval.dtype))


def differ(a: NDArray, b: NDArray, domain: Domain) -> NDArray:
    """Where two arrays have other bits; any NaN is as good as another."""
    wrong: NDArray = ~((a == b) | ((a != a) & (b != b)))
    if domain != Domain():
        return wrong & np.isfinite(a)
    if np.issubdtype(a.dtype, np.inexact):
        wrong |= (np.signbit(a.real) != np.signbit(b.real)) & (a == a)
    return wrong


# -----------------------------------------------------------------------------
# Rules on symbols.


def over_symbols(
    engine: StandardEngine, rule: RewriteRule, only_moves: bool
) -> Outcome | None:
    """What is known of both sides over the reals; None where symbols do not decide.

    With `only_moves` it is None, too, unless both sides do nothing but move elements:
    then equal symbols are equal bits.
    """
    pairs: list[Pair] = []
    general = False
    with double_precision():
        for avals in sorted(rule.samples(), key=size):
            wide = [wide_aval(aval) for aval in avals]
            for one in sides(engine, rule, wide):
                if only_moves and not (moves(one.pattern) and moves(one.replacement)):
                    return None
                try:
                    pairs += pairs_of(symbolic(engine), rule, one)
                except NoClosedForm:
                    return None
                general |= len(one.pattern.in_avals) == len(avals)
    if not pairs:
        return None
    outcome = decided(pairs, rule.domain)
    if outcome.status == TESTED:
        shifted = decided(list(inside(pairs, rule.domain)))
        outcome = shifted if shifted.status == PROVED else outcome
    if not general and outcome.status == PROVED and not without_guard(engine, rule):
        note = "proved for a few literals alone, which its guard asks for"
        outcome = Outcome("tested", outcome.method, note=note)
    return None if only_moves and outcome.status == TESTED else outcome


def without_guard(engine: StandardEngine, rule: RewriteRule) -> bool:
    """Whether a rule is proved for any numbers where it wants literals."""
    functions = [partial(f, **rule.params) for f in (rule.pattern, rule.replacement)]
    pairs: list[Pair] = []
    with double_precision():
        for avals in rule.samples():
            wide = [wide_aval(aval) for aval in avals]
            before, after = (program_if(f, wide, None) for f in functions)
            if before is None or after is None:
                return False
            try:
                pairs += pairs_of(symbolic(engine), rule, Sides(before, after, None))
            except NoClosedForm:
                return False
    return decided(pairs, rule.domain).status == PROVED


def size(avals: Sequence[ShapedArray]) -> float:
    """The number of elements, so that counterexamples are sought among few first."""
    return sum([aval.size for aval in avals])


def moves(jaxpr: Jaxpr) -> bool:
    """Whether a program computes nothing: its results are elements of its operands.

    A literal is a number to proofs, which know no sign of zero, so there must be none.
    """
    atoms = [*jaxpr.outvars, *[a for eqn in jaxpr.eqns for a in eqn.invars]]
    return not any(isinstance(a, Literal) for a in atoms) and all(
        eqn.primitive.name in MOVES for eqn in jaxpr.eqns
    )


def alike(jaxpr: Jaxpr) -> bool:
    """Whether a program does the same to each element, so that one stands for all."""
    shapes = {aval.shape for aval in (*jaxpr.in_avals, *jaxpr.out_avals)}
    elementwise = all(traits_of(eqn.primitive).elementwise for eqn in jaxpr.eqns)
    return elementwise and len(shapes) == 1


def pairs_of(engine: Symbolic, rule: RewriteRule, one: Sides) -> Iterator[Pair]:
    """Each element of both sides, for all choices of truth values."""
    names = variables(rule, len(one.pattern.in_avals))
    if any(
        not is_inexact(a.dtype) and not is_bool(a.dtype) for a in one.pattern.in_avals
    ):
        raise NoClosedForm("integers")
    if one.replacement.in_avals != one.pattern.in_avals:
        raise NoClosedForm("a replacement that takes other operands")
    low, _ = rule.domain
    given = [
        array_of(partial(real_symbol, low), name.replace(" ", "_"), aval)
        for name, aval in zip(names, one.pattern.in_avals, strict=True)
    ]
    for args in chosen(given, one.pattern.in_avals):
        left = engine.evaluate(one.pattern, args)
        right = engine.evaluate(one.replacement, args)
        for a, b in zip(left, right, strict=True):
            rows = list(zip(objects(a).ravel(), objects(b).ravel(), strict=True))
            yield from (
                rows[:1] if alike(one.pattern) and alike(one.replacement) else rows
            )


def real_symbol(low: float, name: str) -> object:
    """A symbol for a real number above `low`, as far as SymPy can assume it."""
    s = sympy()
    if low > 0:
        return s.Symbol(name, positive=True)
    return s.Symbol(name, nonnegative=True) if low == 0 else s.Symbol(name, real=True)


def chosen(
    given: Sequence[NDArray], avals: Sequence[ShapedArray]
) -> Iterator[list[NDArray]]:
    """The operands with every combination of truth values in the place of booleans."""
    s = sympy()
    choices = [
        x for g, a in zip(given, avals, strict=True) if is_bool(a.dtype) for x in g.flat
    ]
    if len(choices) > CHOICES:
        raise NoClosedForm("too many truth values")
    for values in product((s.true, s.false), repeat=len(choices)):
        known = dict(zip(choices, values, strict=True))
        out = []
        for x in given:
            one = np.empty(x.shape, object)
            for index in np.ndindex(x.shape):
                one[index] = known.get(x[index], x[index])
            out.append(one)
        yield out


def inside(pairs: Sequence[Pair], domain: tuple[float, float]) -> Iterator[Pair]:
    """The pairs with symbols for which SymPy knows the bounds of the domain."""
    s = sympy()
    low, high = (s.Rational(x) if np.isfinite(x) else None for x in domain)
    for left, right in pairs:
        new = {}
        for symbol in left.free_symbols | right.free_symbols:
            p = s.Symbol(f"{symbol}_", positive=True)
            if low is not None and high is not None:
                new[symbol] = (low + high * p) / (1 + p)
            elif low is not None:
                new[symbol] = low + p
            elif high is not None:
                new[symbol] = high - p
        yield left.subs(new), right.subs(new)
