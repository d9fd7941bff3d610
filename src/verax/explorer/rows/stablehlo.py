"""The rows of a StableHLO module, and the module with a location for each (floor 6).

The lowering names for each operation the equation that it belongs to; here each gets
the number of its row instead, which XLA carries on into the compiled program::

    found = module_rows(text, equations)
    found.rows[3].origins, found.text
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from verax.explorer.rows.jaxpr import shortened
from verax.explorer.rows.marks import Mark, mark_of
from verax.explorer.rows.row import EQUATION, HEAD, INPUT, NEW, OUTPUT, SAME, Row
from verax.ir.jaxpr import Eqn, Source
from verax.ir.records import ReprMixin

LOCATION: Final = re.compile(r' loc\("m(\d+)/[^"]*"\)$')
OPERATION: Final = re.compile(r'^\s*(?:(%\w+)(?::\d+)? = )?"?([a-zA-Z]\w*\.\w+)"?(.*)$')
FUNCTION: Final = re.compile(r"^\s*func\.func (?:public |private )?@(\S+?)\((.*)$")
ARGUMENT: Final = re.compile(r"(%\w+): ((?:[^,<(){}]|<[^>]*>)+)")
CALLEE: Final = re.compile(r"callee = (@[\w.$-]+)")
NAME: Final = re.compile(r"%\w+")
RETURNS: Final = ("return", "func.return")


class Locations:
    """Numbers for the marks of equations, as locations that the lowering writes."""

    def __init__(self) -> None:
        self.marks: dict[Mark, int] = {}
        self.sources: list[Source] = []

    def locate(self, eqn: Eqn) -> str:
        """The location of an equation: the number of its mark.

        What a rule composes of other equations has no mark, and no location.
        """
        mark = mark_of(eqn.source)
        if mark is None:
            return ""
        number = self.marks.get(mark)
        if number is None:
            number = self.marks[mark] = len(self.sources)
            self.sources.append(eqn.source)
        return f'loc("m{number}/{eqn.primitive.name}")'


@frozen(eq=False, repr=False)
class ModuleRows(ReprMixin):
    """The rows, and the module in which each operation names the number of its row."""

    rows: list[Row]
    text: str


@define(eq=False, repr=False)
class Open(ReprMixin):
    """An operation whose regions are being read.

    Operations inside that have no location, `unplaced`, belong to its equation.
    """

    row: int
    unplaced: list[int] = field(factory=list)


def module_rows(
    text: str, locations: Locations, places: Mapping[Mark, Sequence[int]]
) -> ModuleRows:
    """The rows of a module; `places` are those of the stage before, by their marks."""
    reader = Reader(locations, places)
    for line in text.splitlines():
        reader.line(line)
    link_shared(reader.rows)
    return ModuleRows(reader.rows, "\n".join(reader.lines) + "\n")


def link_shared(rows: Sequence[Row]) -> None:
    """Link functions that several equations share: they come from all that call them.

    A function calls those that are written before it.
    """
    callers: dict[str, list[Row]] = {}
    bodies: dict[str, list[Row]] = {}
    name = ""
    for row in rows:
        if row.kind == HEAD:
            name = row.right
        elif row.kind == EQUATION:
            bodies.setdefault(name, []).append(row)
        for callee in CALLEE.findall(row.right):
            callers.setdefault(callee, []).append(row)
    for name in reversed(bodies):
        found = [i for row in callers.get(name, ()) for i in row.origins]
        for row in bodies[name] if found else ():
            if not row.origins:
                row.origins, row.change = sorted(set(found)), SAME
                row.source = callers[name][0].source


class Reader:
    """Reads a module line by line."""

    def __init__(
        self, locations: Locations, places: Mapping[Mark, Sequence[int]]
    ) -> None:
        self.sources = locations.sources
        # In the order of their numbers.
        self.origins = [list(places.get(mark, ())) for mark in locations.marks]
        self.rows: list[Row] = []
        self.lines: list[str] = []
        self.env: dict[str, int] = {}
        self.open: list[Open] = []
        self.function = -1

    def line(self, line: str) -> None:
        """One line of the module."""
        stripped = line.strip()
        found = FUNCTION.match(line)
        if found is not None:
            self.head(found[1], found[2])
        elif self.function < 0 or not stripped:
            pass
        elif stripped.startswith("^"):
            self.arguments(stripped)
        elif stripped.startswith("}"):
            line = self.close(line, stripped)
        elif stripped.startswith(RETURNS):
            self.add(Row(OUTPUT, "", "", stripped, *self.place()), stripped)
        else:
            line = self.operation(line, OPERATION.match(line))
        self.lines.append(line)

    def place(self) -> tuple[int, int]:
        """The depth of the next row, and the row around it."""
        if self.open:
            holder = self.open[-1].row
            return self.rows[holder].depth + 1, holder
        return 1, self.function

    def add(self, row: Row, reads: str = "") -> int:
        """Write a row that reads the values named in `reads`."""
        found = [self.env[name] for name in NAME.findall(reads) if name in self.env]
        row.uses = list(dict.fromkeys(found))
        self.rows.append(row)
        return len(self.rows) - 1

    def head(self, name: str, rest: str) -> None:
        """The first line of a function."""
        self.env, self.open = {}, []
        self.rows.append(Row(HEAD, "", "", f"@{name}", 0, -1))
        self.function = len(self.rows) - 1
        self.arguments(rest.rpartition(" -> ")[0])

    def arguments(self, text: str) -> None:
        """The arguments of a function or of a block."""
        for name, kind in ARGUMENT.findall(text):
            row = Row(INPUT, "", f"{name}:{kind.strip()}", "", *self.place())
            self.env[name] = self.add(row)

    def operation(self, line: str, found: re.Match[str] | None) -> str:
        """A line that is an operation, or the first one of an operation."""
        if found is None:
            self.add(Row(EQUATION, "", "", shortened(line.strip()), *self.place()))
            return line
        name, op, rest = found[1] or "", found[2], found[3]
        opens = rest.endswith("{")
        row = Row(EQUATION, op, name, "", *self.place())
        number = self.add(row, rest)
        if name:
            self.env[name] = number
        if opens:
            row.right = shortened(rest[:-1].strip().removesuffix("({").rstrip(" ({"))
            self.open.append(Open(number))
            return line
        return self.located(line, number, rest)

    def located(self, line: str, number: int, rest: str) -> str:
        """The last line of an operation: where it came from, and its own location."""
        row = self.rows[number]
        mark = LOCATION.search(line)
        if mark is not None:
            line, rest = line[: mark.start()], LOCATION.sub("", rest)
            which = int(mark[1])
            row.origins, row.source = self.origins[which], self.sources[which]
        elif self.open:
            self.open[-1].unplaced.append(number)
        row.change = SAME if row.origins else NEW
        words, _, types = rest.rpartition(" : ")
        row.right = shortened(f"{row.right}{words}".strip())
        if row.left:
            row.left = f"{row.left}:{types.rpartition(' -> ')[2] or types}"
        label = row.op.rpartition(".")[2]
        return f'{line} loc("r{number}/{label}")'

    def close(self, line: str, stripped: str) -> str:
        """A line that ends a region, an operation, a function or the module."""
        if not self.open:
            self.function = -1
            return line
        if stripped.startswith("})"):
            ended = self.open.pop()
            line = self.located(line, ended.row, f" {stripped[2:].strip()}")
            self.inherit(ended)
            return line
        return line

    def inherit(self, ended: Open) -> None:
        """Give what stands without a location in an operation that of its equation."""
        holder = self.rows[ended.row]
        if not holder.origins and self.open:
            self.open[-1].unplaced += ended.unplaced
        for number in ended.unplaced if holder.origins else ():
            row = self.rows[number]
            row.origins, row.source, row.change = holder.origins, holder.source, SAME
