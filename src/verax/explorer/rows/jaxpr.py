"""The rows of a jaxpr: one line for each input, equation and output (floor 6).

A program inside an equation follows it, with a head of its own and the names of its own
variables. The program is walked beside its marked copy, so that each row knows its
mark, and the one of what it was made from::

    table = Table()
    table.program(jaxpr, Marker(None).program(jaxpr))
    [row.op for row in table.rows]
"""

from collections.abc import Iterator, Sequence
from typing import Final

from verax.explorer.rows.equation_costs import Costs, bytes_of, trips
from verax.explorer.rows.marks import mark_of
from verax.explorer.rows.row import CONSTANT, EQUATION, HEAD, INPUT, OUTPUT, Row
from verax.ir.atoms import Atom, Identity, Literal, Var
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Params, field_names
from verax.ir.text.printer import Layout, Printer, Program, flat, used_indices

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
        self.constants: dict[Identity, int] = {}
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
        found: dict[int, None] = {}
        for atom in atoms:
            if isinstance(atom, Var):
                found[env[atom.index]] = None
            elif isinstance(atom, Literal) and atom.key in self.constants:
                found[self.constants[atom.key]] = None  # type: ignore[index]  # a key of it
        return list(found)

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
