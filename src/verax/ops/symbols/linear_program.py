"""Floor 2: the least value of a linear form under linear inequalities, exactly.

By duality the least value is the best lower bound that a sum of multiples of the
inequalities gives, so what is returned is proved by them. The simplex method runs on
integers: each row of the tableau is an equation that may be multiplied::

    least({x: 1}, [{x: 2, ONE: -3}])     # Fraction(3, 2): from 2*x - 3 >= 0
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, inf

from verax.ops.symbols.expression import ONE, Term

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
    found = [x * scale - y * factor for x, y in zip(row, pivot, strict=True)]
    common = gcd(*found)
    return [x // common for x in found] if common > 1 else found


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
