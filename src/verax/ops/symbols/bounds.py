"""Floor 2: what is true of a symbolic dimension for all values of its variables.

A dimension is linear in its terms, and much is known of each term: its interval, what
an operation means (`0 <= x - 2*floordiv(x, 2) <= 1`), what the user assumed. The least
value of the dimension under these facts is a linear program, and a lower bound of all
its values; where a max or min is inside, the two cases are bounded one by one::

    facts_for(terms, scope's assumptions) -> forms that are >= 0
    bounds_of_terms({b: 2, ONE: -1}, assumed, best=True) -> (1, inf)
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, gcd, inf

from attrs import frozen

from verax.ir.records import ReprMixin
from verax.ops.symbols.expression import (
    FLOORDIV,
    MAX,
    MOD,
    ONE,
    Bounds,
    Factor,
    Term,
    Terms,
    terms_of,
)

# -----------------------------------------------------------------------------
# The least value of a linear form under linear inequalities, exactly.
#
# By duality the least value is the best lower bound that a sum of multiples of the
# inequalities gives, so what is returned is proved by them. The simplex method runs on
# integers: each row of the tableau is an equation that may be multiplied::
#
#     least({x: 1}, [{x: 2, ONE: -3}])     # Fraction(3, 2): from 2*x - 3 >= 0


type Row = list[int]


def least(
    objective: Mapping[Term, int], facts: Sequence[Mapping[Term, int]]
) -> Fraction | float:
    """The least value of `objective` where each fact is >= 0.

    It is -inf where nothing bounds it, and inf where the facts contradict each other.
    """
    terms = sorted({t for form in (objective, *facts) for t in form if t.powers})
    width = len(facts)
    rows: list[Row] = []
    for i, term in enumerate(terms):
        row = [fact.get(term, 0) for fact in facts]
        end = objective.get(term, 0)
        if end < 0:
            row, end = [-x for x in row], -end
        rows.append([*row, *[int(i == j) for j in range(len(terms))], end])
    basis = [width + i for i in range(len(terms))]
    # First without the artificial columns: their sum must become 0.
    total = [-sum(column) for column in zip(*rows, strict=True)] or [0]
    total[width:-1] = [0] * len(terms)
    improve(rows, basis, total, width)
    if any(b >= width and row[-1] for b, row in zip(basis, rows, strict=True)):
        return -inf
    drop_artificial(rows, basis, width)
    cost = [*[fact.get(ONE, 0) for fact in facts], *[0] * len(terms), 0]
    for b, row in zip(basis, rows, strict=True):
        if b < width and cost[b]:
            cost = eliminated(cost, row, b)
    if not improve(rows, basis, cost, width):
        return inf
    value = Fraction(objective.get(ONE, 0))
    for b, row in zip(basis, rows, strict=True):
        if b < width:
            value -= facts[b].get(ONE, 0) * Fraction(row[-1], row[b])
    return value


def eliminated(row: Row, pivot: Row, column: int) -> Row:
    """`row` without `column`, by a multiple of the pivot row; scaled down."""
    factor, scale = row[column], pivot[column]
    if not factor:
        return row
    out = [x * scale - y * factor for x, y in zip(row, pivot, strict=True)]
    common = gcd(*out)
    return [x // common for x in out] if common > 1 else out


def improve(rows: list[Row], basis: list[int], cost: Row, width: int) -> bool:
    """Pivot until no column lowers the cost; False if that falls without end.

    The first column and the first row that serve are taken, so it cannot cycle.
    """
    while True:
        column = next((j for j in range(width) if cost[j] < 0), None)
        if column is None:
            return True
        best: int | None = None
        for i, row in enumerate(rows):
            if row[column] <= 0:
                continue
            if best is not None:
                other = rows[best]
                one, two = row[-1] * other[column], other[-1] * row[column]
                if one > two or (one == two and basis[i] > basis[best]):
                    continue
            best = i
        if best is None:
            return False
        pivot = rows[best]
        for i, row in enumerate(rows):
            if i != best:
                rows[i] = eliminated(row, pivot, column)
        cost[:] = eliminated(cost, pivot, column)
        basis[best] = column


def drop_artificial(rows: list[Row], basis: list[int], width: int) -> None:
    """Take artificial columns out of the basis, and rows that say nothing."""
    for i in reversed(range(len(rows))):
        if basis[i] < width:
            continue
        column = next((j for j in range(width) if rows[i][j]), None)
        if column is None:
            del rows[i], basis[i]
            continue
        if rows[i][column] < 0:
            rows[i] = [-x for x in rows[i]]
        pivot = rows[i]
        for k, row in enumerate(rows):
            if k != i:
                rows[k] = eliminated(row, pivot, column)
        basis[i] = column


# So many max and min are taken apart into cases.
CASES = 3
# Beyond these, only intervals are used: the program would be too large.
TERMS, FACTS = 40, 160


@frozen(eq=False, repr=False)
class Assumptions(ReprMixin):
    """The assumptions of a scope: forms that are >= 0, intervals of single terms."""

    forms: tuple[Terms, ...]
    intervals: Mapping[Term, Bounds]


def product(x: float, y: float) -> float:
    """A product in which 0 times infinity is 0."""
    return 0 if x == 0 or y == 0 else x * y


def product_interval(x: Bounds, y: Bounds) -> Bounds:
    """The interval of products of values in two intervals."""
    ends = [product(a, b) for a in x for b in y]
    return min(ends), max(ends)


def quotient(x: float, y: float) -> float:
    """The quotient rounded down; infinite values are limits."""
    if x in (inf, -inf):
        return x
    if y == inf:
        return -1 if x < 0 else 0
    return x // y


def interval_of_quotient(x: Bounds, y: Bounds) -> Bounds:
    """The interval of quotients, rounded down."""
    if y[1] < 0:
        x, y = (-x[1], -x[0]), (-y[1], -y[0])
    if y[0] <= 0:
        return -inf, inf
    return (
        quotient(x[0], y[1] if x[0] >= 0 else y[0]),
        quotient(x[1], y[0] if x[1] >= 0 else y[1]),
    )


def interval_of_remainder(x: Bounds, y: Bounds) -> Bounds:
    """The interval of remainders, which have the sign of the divisor."""
    if y[0] > 0:
        return 0, min(y[1] - 1, x[1]) if x[0] >= 0 else y[1] - 1
    return (y[0] + 1, 0) if y[1] < 0 else (-inf, inf)


def interval_of_factor(factor: Factor, known: Mapping[Term, Bounds]) -> Bounds:
    """The interval of a factor: its meaning, and what is assumed of it."""
    low: float = 1
    high: float = inf
    if factor.operands:
        x, y = [interval(terms_of(z), known) for z in factor.operands]
        if factor.name == FLOORDIV:
            low, high = interval_of_quotient(x, y)
        elif factor.name == MOD:
            low, high = interval_of_remainder(x, y)
        else:
            pick = max if factor.name == MAX else min
            low, high = pick(x[0], y[0]), pick(x[1], y[1])
    least_, most = known.get(Term([(factor, 1)]), (-inf, inf))
    return max(low, least_), min(high, most)


def interval_of_term(term: Term, known: Mapping[Term, Bounds]) -> Bounds:
    """The interval of a product."""
    out: Bounds = (1, 1)
    for factor, n in term.powers:
        one = interval_of_factor(factor, known)
        for _ in range(n):
            out = product_interval(out, one)
        if n % 2 == 0 and out[0] < 0 and len(term.powers) == 1:
            out = (0, out[1])
    if term.factor is None and term in known:
        low, high = known[term]
        return max(out[0], low), min(out[1], high)
    return out


def interval(terms: Terms, known: Mapping[Term, Bounds]) -> Bounds:
    """The interval of a sum, each term taken for itself."""
    low: float = 0
    high: float = 0
    for term, n in terms.items():
        one, other = interval_of_term(term, known) if term.powers else (1, 1)
        low += product(n, one if n > 0 else other)
        high += product(n, other if n > 0 else one)
    return low, high


def tightened(form: Terms) -> dict[Term, int]:
    """A form that is >= 0, with its coefficients divided by what they share."""
    common = gcd(*[n for term, n in form.items() if term.powers])
    if common <= 1:
        return dict(form)
    return {term: n // common for term, n in form.items()}


def combined(*parts: tuple[Terms, int]) -> dict[Term, int]:
    """A sum of multiples of forms, as it stands: a fact is not rewritten."""
    total: dict[Term, int] = {}
    for form, n in parts:
        for term, m in form.items():
            total[term] = total.get(term, 0) + n * m
    return {term: n for term, n in total.items() if n}


def multiplied(x: Terms, y: Terms) -> dict[Term, int]:
    """A product of forms, as it stands."""
    return combined(*[({t * u: m for u, m in y.items()}, n) for t, n in x.items()])


def interval_facts(term: Term, known: Mapping[Term, Bounds]) -> list[Terms]:
    """The interval of a term, as forms that are >= 0."""
    low, high = interval_of_term(term, known)
    out: list[Terms] = []
    if low > -inf:
        out.append({term: 1, ONE: -int(low)})
    if high < inf:
        out.append({term: -1, ONE: int(high)})
    return out


def meaning(factor: Factor, known: Mapping[Term, Bounds]) -> list[Terms]:
    """The meaning of an operation, as forms that are >= 0."""
    x, y = map(terms_of, factor.operands)
    value: Terms = {Term([(factor, 1)]): 1}
    if factor.name == MAX:
        return [combined((value, 1), (z, -1)) for z in (x, y)]
    if factor.name not in (FLOORDIV, MOD):
        return [combined((value, -1), (z, 1)) for z in (x, y)]
    low, high = interval(y, known)
    if low <= 0 <= high:
        return []
    sign = 1 if low > 0 else -1
    positive = sign > 0 and interval(x, known)[0] >= 0
    out: list[Terms] = [combined((x, 1), (value, -1))] if positive else []
    whole, rest = value, value
    if factor.name == FLOORDIV:
        rest = combined((x, 1), (multiplied(value, y), -1))
    else:
        whole = {Term([(Factor(FLOORDIV, *factor.operands), 1)]): 1}
        exact = combined((x, 1), (multiplied(whole, y), -1), (rest, -1))
        out += [exact, combined((exact, -1))]
    out.append(combined((rest, sign)))
    out.append(combined((y, sign), (rest, -sign), ({ONE: 1}, -1)))
    return out


def products(term: Term, known: Mapping[Term, Bounds]) -> list[Terms]:
    """The bounds of a product whose parts are in their intervals.

    From x >= p and y >= q follows (x - p)*(y - q) >= 0, and so for upper bounds.
    """
    factor, n = term.powers[0]
    one = Term([(factor, 1)])
    rest = Term([*([(factor, n - 1)] if n > 1 else []), *term.powers[1:]])
    out: list[Terms] = []
    for sign, p in zip((1, -1), interval_of_term(one, known), strict=True):
        for other, q in zip((1, -1), interval_of_term(rest, known), strict=True):
            if abs(p) == inf or abs(q) == inf:
                continue
            s, a, b = sign * other, int(p), int(q)
            form = {term: s, ONE: s * a * b}
            form[rest] = form.get(rest, 0) - s * a
            form[one] = form.get(one, 0) - s * b
            out.append(form)
    return out


def assumed_products(term: Term, assumed: Assumptions) -> list[Terms]:
    """Assumptions multiplied by what makes `term` of one of their terms."""
    out: list[Terms] = []
    for form in assumed.forms:
        for part in form:
            rest = term.over(part) if part.powers and part != term else None
            if rest is None or not rest.powers:
                continue
            low = interval_of_term(rest, assumed.intervals)[0]
            if low >= 0:
                out.append({other * rest: n for other, n in form.items()})
    return out


def facts_for(terms: Iterable[Term], assumed: Assumptions) -> list[Terms]:
    """Forms that are >= 0, for `terms` and the terms that come with them."""
    known = assumed.intervals
    out: list[Terms] = list(assumed.forms)
    waiting = [(term, True) for term in sorted(terms) if term.powers]
    waiting += [(t, True) for form in assumed.forms for t in sorted(form) if t.powers]
    seen: dict[Term, bool] = {}
    while waiting and len(seen) < TERMS and len(out) < FACTS:
        term, first = waiting.pop(0)
        if seen.get(term, False) >= first and term in seen:
            continue
        again = term in seen
        seen[term] = first
        new = [] if again else interval_facts(term, known)
        factor = term.factor
        if factor is not None and factor.operands and not again:
            new += meaning(factor, known)
        elif factor is None and first:
            new += products(term, known)
            new += assumed_products(term, assumed)
        out += new
        for form in new:
            waiting += [(t, False) for t in sorted(form) if t.powers and t not in seen]
    return out


def bounds_of_terms(terms: Terms, assumed: Assumptions, best: bool) -> Bounds | None:
    """The least and greatest value of a dimension, as far as facts tell.

    Unless the `best` bounds are asked for, such as tell its sign suffice. None where
    the facts contradict each other.
    """
    low, high = interval(terms, assumed.intervals)
    if low == high or (not best and (low > 0 or high < 0)):
        return low, high
    constant = terms.get(ONE, 0)
    common = gcd(*[n for term, n in terms.items() if term.powers])
    form = {term: n // common for term, n in terms.items() if term.powers}
    out = bounds_by_cases(form, assumed, (), CASES)
    if out is None:
        return None
    return out[0] * common + constant, out[1] * common + constant


def bounds_by_cases(
    form: Terms, assumed: Assumptions, cases: tuple[Terms, ...], depth: int
) -> Bounds | None:
    """The bounds of a form; None where the facts and `cases` contradict each other."""
    involved = {term for one in (form, *cases) for term in one}
    facts = [tightened(fact) for fact in (*cases, *facts_for(involved, assumed))]
    out = by_program(form, facts)
    if out is None or out[0] == out[1] or not depth:
        return out
    factor = next(iter(choices([form, *cases], cases)), None)
    if factor is None:
        return out
    return united(form, assumed, cases, depth, factor, out)


def united(
    form: Terms,
    assumed: Assumptions,
    cases: tuple[Terms, ...],
    depth: int,
    factor: Factor,
    whole: Bounds,
) -> Bounds | None:
    """The bounds where a max or min is its first operand, and where the second."""
    x, y = map(terms_of, factor.operands)
    value: Terms = {Term([(factor, 1)]): 1}
    sign = 1 if factor.name == MAX else -1
    parts = []
    for one, other, margin in ((x, y, 0), (y, x, -1)):
        less = combined((one, sign), (other, -sign), ({ONE: 1}, margin))
        same = combined((value, 1), (one, -1))
        case = (less, same, combined((same, -1)))
        result = bounds_by_cases(form, assumed, (*cases, *case), depth - 1)
        if result is not None:
            parts.append(result)
    if not parts:
        return None
    low, high = min(p[0] for p in parts), max(p[1] for p in parts)
    return max(low, whole[0]), min(high, whole[1])


def choices(forms: Iterable[Terms], cases: Sequence[Terms]) -> list[Factor]:
    """The max and min inside that are not taken apart yet, the smallest first."""
    taken = {Term([(f, 1)]) for f in taken_apart(cases)}
    members = {f for form in forms for f in inner(form) if f.operands}
    picks = [f for f in members if f.name not in (FLOORDIV, MOD)]
    return sorted([f for f in picks if Term([(f, 1)]) not in taken])


def taken_apart(cases: Sequence[Terms]) -> set[Factor]:
    """The max and min that a case has made equal to an operand."""
    equalities = [form for form in cases if {t: -n for t, n in form.items()} in cases]
    return {
        t.factor
        for form in equalities
        for t in form
        if t.factor is not None and t.factor.operands
    }


def inner(form: Terms) -> set[Factor]:
    """All factors of a form, those inside of operations included."""
    out: set[Factor] = set()
    for term in form:
        for factor, _ in term.powers:
            out.add(factor)
            for operand in factor.operands:
                out |= inner(terms_of(operand))
    return out


def by_program(form: Terms, facts: Sequence[Terms]) -> Bounds | None:
    """The bounds by linear programs; None where the facts contradict each other."""
    low = least(form, facts)
    if low == inf:
        return None
    high = least({term: -n for term, n in form.items()}, facts)
    return (
        -inf if low == -inf else ceil(low),
        inf if high in (inf, -inf) else -ceil(high),
    )
