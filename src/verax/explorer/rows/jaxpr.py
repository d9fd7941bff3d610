"""The rows of a jaxpr: one line for each input, equation and output (floor 6).

A program inside an equation follows it, with a head of its own and the names of its own
variables. The program is walked beside its marked copy, so that each row knows its
mark, and the one of what it was made from::

    table = Table()
    table.program(jaxpr, Marker(None).program(jaxpr))
    [row.op for row in table.rows]
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from verax.explorer.rows.row import (
    CHANGED,
    CONSTANT,
    EQUATION,
    HEAD,
    INPUT,
    NEW,
    OUTPUT,
    SAME,
    Mark,
    Row,
    mark_of,
)
from verax.ir.atoms import Atom, Identity, Literal, Var
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Params, field_names
from verax.ir.text.printer import Layout, Printer, Program, flat, used_indices
from verax.rules.rows.costs import Costs, bytes_of, trips

MOST: Final = 50_000
"""Rows from which a program that stands in the table already is not written again."""
LONGEST: Final = 600
"""Characters of a line, of which the rest is cut off."""


class RowPrinter(Printer):
    """Prints equations whose programs stand in rows of their own."""

    def program(self, program: Program) -> Layout:
        """The reference to a program inside."""
        return "{…}"


class Table:
    """The rows of one stage, as they are written."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.printer = RowPrinter(sources=False, types=True)
        self.written: dict[Jaxpr, int] = {}
        self.constants: dict[bytes | Identity, int] = {}
        self.costs = Costs()

    def add(self, row: Row) -> int:
        """Write a row; its number."""
        self.rows.append(row)
        return len(self.rows) - 1

    def head(self, text: str, depth: int = 0, inside: int = -1) -> int:
        """The row that opens a program."""
        return self.add(Row(HEAD, "", "", text, depth, inside))

    def program(
        self,
        jaxpr: Jaxpr,
        marked: Jaxpr,
        depth: int = 0,
        inside: int = -1,
        operands: Sequence[Sequence[int]] = (),
        times: float = 1.0,
    ) -> list[int]:
        """The rows of a program, which runs so many times; those of its inputs.

        `operands` are the rows that its inputs stand for.
        """
        self.written.setdefault(jaxpr, len(self.rows))
        for use in jaxpr.used_consts if inside < 0 or depth == 1 else ():
            self.constant(use.literal, depth, inside)
        env: dict[int, int] = {}
        given = operands if len(operands) == len(jaxpr.invars) else ()
        for i, var in enumerate((*jaxpr.constvars, *jaxpr.invars)):
            reads = list(given[i]) if given else []
            kind = CONSTANT if i < len(jaxpr.constvars) else INPUT
            left, size = self.printer.binder(var), bytes_of(var.aval)
            env[var.index] = self.add(
                Row(kind, "", left, "", depth, inside, reads, size=size, lasting=True)
            )
        inputs = list(env.values())
        used = used_indices(jaxpr)
        for eqn, twin in zip(jaxpr.eqns, marked.eqns, strict=True):
            self.equation(eqn, twin, env, used, depth, inside, times)
        outs = ", ".join([self.printer.atom(a) for a in jaxpr.outvars])
        reads = self.reads(jaxpr.outvars, env)
        self.add(Row(OUTPUT, "", "", f"({outs})", depth, inside, reads))
        return inputs

    def constant(self, literal: Literal, depth: int, inside: int) -> None:
        """The row of an array that the program captured, once in a stage."""
        assert isinstance(literal.key, Identity)
        if literal.key in self.constants:
            return
        size = bytes_of(literal.aval)
        self.constants[literal.key] = self.add(
            Row(
                CONSTANT,
                "",
                self.printer.atom(literal),
                "",
                depth,
                inside,
                size=size,
                lasting=True,
                note=f"captured: {size_text(size)}",
            )
        )

    def cost(self, eqn: Eqn, times: float) -> tuple[float | None, float | None]:
        """The operations and bytes of all runs of an equation."""
        cost = self.costs.of(eqn)
        flops = None if cost.flops is None else cost.flops * times
        return flops, None if cost.bytes is None else cost.bytes * times

    def reads(self, atoms: Sequence[Atom], env: dict[int, int]) -> list[int]:
        """The rows that define atoms, each once."""
        out: dict[int, None] = {}
        for atom in atoms:
            if isinstance(atom, Var):
                out[env[atom.index]] = None
            elif atom.key in self.constants:
                out[self.constants[atom.key]] = None
        return list(out)

    def equation(
        self,
        eqn: Eqn,
        twin: Eqn,
        env: dict[int, int],
        used: frozenset[int],
        depth: int,
        inside: int,
        times: float,
    ) -> None:
        """The row of an equation, and those of the programs inside it."""
        printer, params = self.printer, eqn.params
        left = " ".join(
            [printer.binder(v, "" if v.index in used else "_") for v in eqn.outvars]
        )
        row = Row(
            EQUATION,
            eqn.primitive.name,
            left,
            shortened(right_of(printer, eqn)),
            depth,
            inside,
            self.reads(eqn.invars, env),
            mark_of(twin.source),
            mark_of(eqn.source),
            eqn.source,
            *self.cost(eqn, times),
            sum([bytes_of(v.aval) for v in eqn.outvars]),
        )
        if params.effects:
            row.note = f"effects: {', '.join(sorted(map(str, params.effects)))}"
        number = self.add(row)
        for var in eqn.outvars:
            env[var.index] = number
        if params is NO_PARAMS:
            return
        operands = [self.reads([a], env) for a in eqn.invars]
        count = trips(eqn)
        if count is None:
            row.note = "; ".join([*filter(None, [row.note]), "costs are of one trip"])
        inside_times = times if count is None else times * count
        inner = zip(programs(params), programs(twin.params), strict=True)
        for (name, body), (_, marked) in inner:
            if len(self.rows) > MOST and body in self.written:
                head = self.head(name, depth + 1, number)
                self.rows[head].note = f"as in row {self.written[body]}"
                continue
            head = self.head(name, depth + 1, number)
            self.program(body, marked, depth + 2, head, operands, inside_times)


def right_of(printer: Printer, eqn: Eqn) -> str:
    """The text after the name of the primitive."""
    params = printer.params(eqn.params)
    ins = " ".join([printer.atom(a) for a in eqn.invars])
    if not params:
        return ins
    return f"[{' '.join(map(flat, params))}] {ins}".rstrip()


def programs(params: Params) -> Iterator[tuple[str, Jaxpr]]:
    """The programs that run where the equation does, under the names of the fields."""
    for name in field_names(type(params)):
        value: object = getattr(params, name)
        if isinstance(value, Jaxpr):
            yield name, value
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, Jaxpr):
                    yield f"{name}[{i}]", item


def shortened(text: str) -> str:
    """A line without what nobody reads of a long one."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def size_text(size: float) -> str:
    """A number of bytes for readers: `4.0 MB`."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


# -----------------------------------------------------------------------------
# Links from the rows of a stage to those of the stage before.
#
# A row came from those rows that have the mark of its source. Equal programs share
# their marks, so of these the ones that stand inside what the row around it came from
# are meant::
#
#     link(rows, parent_rows)     # fills `origins` and `change`; the rows that are gone


type Places = Mapping[Mark, Sequence[int]]


def places_of(rows: Sequence[Row]) -> dict[Mark, list[int]]:
    """The rows by their marks."""
    out: dict[Mark, list[int]] = {}
    for number, row in enumerate(rows):
        if row.mark is not None:
            out.setdefault(row.mark, []).append(number)
    return out


def link(rows: Sequence[Row], before: Sequence[Row]) -> tuple[int, ...]:
    """Fill in what each row came from, and how it differs; which rows are gone."""
    places = places_of(before)
    for row in rows:
        if row.before is not None:
            entry = places.get(row.before, ())
            row.origins = within(entry, around(rows, row), rows, before)
    for row in rows:
        if row.kind == EQUATION and before:
            row.change = change_of(row, rows, before)
    return missing(rows, before)


def missing(rows: Sequence[Row], before: Sequence[Row]) -> tuple[int, ...]:
    """The equations of a stage that nothing in the next one came from."""
    left = {origin for row in rows for origin in row.origins}
    out = [i for i, row in enumerate(before) if row.kind == EQUATION]
    return tuple([i for i in out if i not in left])


def around(rows: Sequence[Row], row: Row) -> Row | None:
    """The equation in whose program a row stands."""
    while row.inside >= 0:
        row = rows[row.inside]
        if row.kind == EQUATION:
            return row
    return None


def within(
    places: Sequence[int],
    holder: Row | None,
    rows: Sequence[Row],
    before: Sequence[Row],
) -> list[int]:
    """Of the rows `places`, those inside what `holder` came from, if there are any."""
    if len(places) < 2 or holder is None or not holder.origins:
        return list(places)
    expected = set(holder.origins)
    inner = [i for i in places if is_inside(before, i, expected)]
    return inner or list(places)


def is_inside(rows: Sequence[Row], number: int, holders: set[int]) -> bool:
    """Whether a row is one of `holders`, or inside one of them."""
    while number >= 0:
        if number in holders:
            return True
        number = rows[number].inside
    return False


def change_of(row: Row, rows: Sequence[Row], before: Sequence[Row]) -> int:
    """The change of an equation from the one it came from."""
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
