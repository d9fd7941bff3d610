"""Links from the rows of a stage to those of the stage before (floor 6).

A row came from those rows that have the mark of its source. Equal programs share their
marks, so of these the ones that stand inside what the row around it came from are
meant::

    link(rows, parent_rows)     # fills `origins` and `change`; the rows that are gone
"""

from collections.abc import Mapping, Sequence

from verax.explorer.rows.marks import Mark
from verax.explorer.rows.row import CHANGED, EQUATION, NEW, SAME, Row

type Places = Mapping[Mark, Sequence[int]]


def places_of(rows: Sequence[Row]) -> dict[Mark, list[int]]:
    """The rows by their marks."""
    found: dict[Mark, list[int]] = {}
    for number, row in enumerate(rows):
        if row.mark is not None:
            found.setdefault(row.mark, []).append(number)
    return found


def link(rows: Sequence[Row], before: Sequence[Row]) -> tuple[int, ...]:
    """Fill in what each row came from, and how it differs; which rows are gone."""
    places = places_of(before)
    for row in rows:
        if row.before is not None:
            found = places.get(row.before, ())
            row.origins = within(found, around(rows, row), rows, before)
    for row in rows:
        if row.kind == EQUATION and before:
            row.change = change_of(row, rows, before)
    return missing(rows, before)


def missing(rows: Sequence[Row], before: Sequence[Row]) -> tuple[int, ...]:
    """The equations of a stage that nothing in the next one came from."""
    left = {origin for row in rows for origin in row.origins}
    found = [i for i, row in enumerate(before) if row.kind == EQUATION]
    return tuple([i for i in found if i not in left])


def around(rows: Sequence[Row], row: Row) -> Row | None:
    """The equation in whose program a row stands."""
    while row.inside >= 0:
        row = rows[row.inside]
        if row.kind == EQUATION:
            return row
    return None


def within(
    found: Sequence[int], holder: Row | None, rows: Sequence[Row], before: Sequence[Row]
) -> list[int]:
    """Of the rows `found`, those inside what `holder` came from, if there are any."""
    if len(found) < 2 or holder is None or not holder.origins:
        return list(found)
    wanted = set(holder.origins)
    inner = [i for i in found if is_inside(before, i, wanted)]
    return inner or list(found)


def is_inside(rows: Sequence[Row], number: int, holders: set[int]) -> bool:
    """Whether a row is one of `holders`, or inside one of them."""
    while number >= 0:
        if number in holders:
            return True
        number = rows[number].inside
    return False


def change_of(row: Row, rows: Sequence[Row], before: Sequence[Row]) -> int:
    """How an equation differs from what it came from."""
    if len(row.origins) != 1:
        return NEW
    old = before[row.origins[0]]
    if old.op != row.op:
        return NEW
    return SAME if is_same(row, old, rows) else CHANGED


def is_same(row: Row, old: Row, rows: Sequence[Row]) -> bool:
    """Whether types, params and the equations that are read are those of `old`."""
    if types_of(row.left) != types_of(old.left) or len(row.uses) != len(old.uses):
        return False
    if params_of(row.right) != params_of(old.right):
        return False
    pairs = zip(row.uses, old.uses, strict=True)
    return all([not rows[i].origins or j in rows[i].origins for i, j in pairs])


def types_of(left: str) -> list[str]:
    """The types of results, without the names."""
    return [word.partition(":")[2] for word in left.split()]


def params_of(right: str) -> str:
    """The printed params, without operands."""
    return right.rpartition("] ")[0] if right.startswith("[") else ""
