"""The rows of a StableHLO module, and the module with a location for each (floor 6).

The lowering names for each operation the equation that it belongs to; here each gets
the number of its row instead, which XLA carries on into the compiled program::

    module = module_rows(text, equations)
    module.rows[3].origins, module.text
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from attrs import define, field, frozen

from verax.explorer.rows.costs import Operation, Types
from verax.explorer.rows.jaxpr import shortened
from verax.explorer.rows.row import (
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
from verax.ir.jaxpr import Eqn, Source
from verax.ir.records import ReprMixin

LOCATION: Final = re.compile(r' loc\("m(\d+)/[^"]*"\)$')
OPERATION: Final = re.compile(r'^\s*(?:(%\w+)(?::\d+)? = )?"?([a-zA-Z]\w*\.\w+)"?(.*)$')
FUNCTION: Final = re.compile(r"^\s*func\.func (?:public |private )?@(\S+?)\((.*)$")
ARGUMENT: Final = re.compile(r"(%\w+): ((?:[^,<(){}]|<[^>]*>)+)")
CALLEE: Final = re.compile(r"callee = (@[\w.$-]+)")
NAME: Final = re.compile(r"%\w+")
OPERAND: Final = re.compile(r"%\w+(?:#\d+)?")
RETURN: Final = re.compile(r'"?(?:\w+\.)?return"?')
DENSE: Final = re.compile(r"dense<(-?\d+)>")
REGIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "stablehlo.while": ("cond", "body"),
        "stablehlo.if": ("true_branch", "false_branch"),
        "stablehlo.case": ("branches[{}]",),
    }
)
"""The names of regions that run as they are, of which there may be many."""


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
    operations: dict[int, Operation]


@define(eq=False, repr=False)
class Open(ReprMixin):
    """An operation whose regions are being read.

    Operations inside that have no location, `unplaced`, belong to its equation.
    """

    row: int
    regions: list[int] = field(factory=list)
    unplaced: list[int] = field(factory=list)


def module_rows(
    text: str, locations: Locations, places: Mapping[Mark, Sequence[int]]
) -> ModuleRows:
    """The rows of a module; `places` are those of the stage before, by their marks."""
    reader = Reader(locations, places)
    for line in text.splitlines():
        reader.line(line)
    link_shared(reader.rows)
    text = "\n".join(reader.lines) + "\n"
    return ModuleRows(reader.rows, text, reader.operations)


def link_shared(rows: Sequence[Row]) -> None:
    """Link functions that several equations share: they come from all that call them.

    A function calls those that are written before it.
    """
    callers: dict[str, list[Row]] = {}
    bodies: dict[str, list[Row]] = {}
    name = ""
    for row in rows:
        if row.kind == HEAD and row.inside < 0:
            name = row.right
        elif row.kind == EQUATION:
            bodies.setdefault(name, []).append(row)
        for callee in CALLEE.findall(row.right):
            callers.setdefault(callee, []).append(row)
    for name in reversed(bodies):
        result = [i for row in callers.get(name, ()) for i in row.origins]
        for row in bodies[name] if result else ():
            if not row.origins:
                row.origins, row.change = sorted(set(result)), SAME
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
        self.operations: dict[int, Operation] = {}
        self.types = Types()
        self.lines: list[str] = []
        self.env: dict[str, int] = {}
        self.open: list[Open] = []
        self.function = -1

    def line(self, line: str) -> None:
        """One line of the module."""
        stripped = line.strip()
        match = FUNCTION.match(line)
        if match is not None:
            self.head(match[1], match[2])
        elif self.function < 0 or not stripped:
            pass
        elif stripped.startswith("^"):
            self.arguments(stripped)
        elif stripped.startswith("}"):
            line = self.close(line, stripped)
        elif RETURN.match(stripped):
            line = self.returned(line)
        else:
            line = self.operation(line, OPERATION.match(line))
        self.lines.append(line)

    def place(self) -> tuple[int, int]:
        """The depth of the next row, and the row around it."""
        if self.open:
            holder = [self.open[-1].row, *self.open[-1].regions][-1]
            return self.rows[holder].depth + 1, holder
        return 1, self.function

    def add(self, row: Row, reads: str = "") -> int:
        """Write a row that reads the values named in `reads`."""
        result = [self.env[name] for name in NAME.findall(reads) if name in self.env]
        row.uses = list(dict.fromkeys(result))
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

    def operation(self, line: str, match: re.Match[str] | None) -> str:
        """A line that is an operation, or the first one of an operation."""
        if match is None:
            self.add(Row(EQUATION, "", "", shortened(line.strip()), *self.place()))
            return line
        name, op, rest = match[1] or "", match[2], match[3]
        opens = rest.endswith("{")
        row = Row(EQUATION, op, name, "", *self.place())
        number = self.add(row, rest)
        if name:
            self.env[name] = number
        if opens:
            row.right = shortened(rest[:-1].strip().removesuffix("({").rstrip(" ({"))
            self.operations[number] = Operation("", tuple(OPERAND.findall(rest)))
            self.open.append(Open(number))
            self.region()
            return line
        self.operations[number] = Operation("", tuple(OPERAND.findall(rest)))
        return self.located(line, number, rest)

    def region(self) -> None:
        """The head of a region that starts, if it has a name."""
        opened = self.open[-1]
        row, count = self.rows[opened.row], len(opened.regions)
        names = REGIONS.get(row.op, ())
        if names:
            name = names[min(count, len(names) - 1)].format(count)
            head = Row(HEAD, "", "", name, row.depth + 1, opened.row)
            self.rows.append(head)
            opened.regions.append(len(self.rows) - 1)

    def returned(self, line: str) -> str:
        """The line that ends a region or a function."""
        line = LOCATION.sub("", line)
        words = RETURN.sub("return", line.strip(), count=1)
        row = Row(OUTPUT, "", "", words.rpartition(" : ")[0] or words, *self.place())
        self.add(row, words)
        return line

    def located(
        self, line: str, number: int, rest: str, heads: Sequence[int] = ()
    ) -> str:
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
        self.operations[number] = self.costed(number, words, types, heads)
        row.right = shortened(f"{row.right}{words}".strip())
        if row.left:
            row.left = f"{row.left}:{types.rpartition(' -> ')[2] or types}"
        label = row.op.rpartition(".")[2]
        return f'{line} loc("r{number}/{label}")'

    def costed(
        self, number: int, words: str, types: str, heads: Sequence[int]
    ) -> Operation:
        """An operation, for its cost; its operands are known already."""
        name = self.rows[number].op.rpartition(".")[2]
        ins, arrow, outs = types.rpartition(" -> ")
        callee = CALLEE.search(words)
        return Operation(
            name,
            self.operations[number].operands,
            self.types.of(ins),
            self.types.of(outs if arrow else types),
            words,
            self.trips(number, heads) if name == "while" else 1.0,
            "" if callee is None else callee[1],
        )

    def trips(self, number: int, heads: Sequence[int]) -> float | None:
        """The number of turns of a loop up to a constant; None for others."""
        if len(heads) != len(REGIONS["stablehlo.while"]):
            return None
        (cond, body), init = heads, self.operations[number].operands
        ends = {row.inside: row for row in self.rows[cond:] if row.kind == OUTPUT}
        test = self.operations.get(next(iter(ends[cond].uses), -1))
        if test is None or not test.attributes.endswith("direction LT>}"):
            return None
        place = self.env.get(test.operands[0], -1) - cond - 1
        if not 0 <= place < len(init):
            return None
        following = OPERAND.findall(ends[body].right)[place]
        step = self.operations.get(self.env.get(following, -1))
        if step is None or step.name != "add" or len(step.operands) < 2:
            return None
        if self.env.get(step.operands[0]) != body + 1 + place:
            return None
        names = (init[place], test.operands[1], step.operands[1])
        first, last, by = map(self.integer, names)
        if first is None or last is None or not by or by < 0:
            return None
        return float(max(0, -((first - last) // by)))

    def integer(self, name: str) -> int | None:
        """The value of an integer constant; None for anything else."""
        row = self.rows[self.env[name]] if name in self.env else None
        if row is None or row.op != "stablehlo.constant":
            return None
        match = DENSE.match(row.right)
        return None if match is None else int(match[1])

    def close(self, line: str, stripped: str) -> str:
        """A line that ends a region, an operation, a function or the module."""
        if not self.open:
            self.function = -1
            return line
        if stripped.startswith("})"):
            ended = self.open.pop()
            rest = f" {stripped[2:].strip()}"
            line = self.located(line, ended.row, rest, ended.regions)
            self.inherit(ended)
        elif stripped == "}, {":
            self.region()
        return line

    def inherit(self, ended: Open) -> None:
        """Give what stands without a location in an operation that of its equation."""
        holder = self.rows[ended.row]
        if not holder.origins and self.open:
            self.open[-1].unplaced += ended.unplaced
        for number in ended.unplaced if holder.origins else ():
            row = self.rows[number]
            row.origins, row.source, row.change = holder.origins, holder.source, SAME
