"""What a function takes of memory where sizes are symbols: formulas in them.

One idea: which step is fullest depends on sizes, but what is kept when the way back of
a gradient begins does not, and its bytes are polynomials; `at` traces the function with
numbers and gives the whole report::

    b, d = verax.export.symbolic_shape("b, d")
    report = verax.debug.memory(verax.grad(loss))(w, struct((b, d)))
    report.kept                  # 8*b*d + 4*d^2
    report.at(b=64, d=512)       # the MemoryReport
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from attrs import field, frozen

from verax.api.tracing.structs import ShapeDtypeStruct
from verax.backend import pytrees
from verax.explorer.formulas import (
    TERMS,
    Formula,
    bytes_of,
    check_names,
    sure,
    text_of,
)
from verax.explorer.memory.lines import Places, kept_at_turn
from verax.explorer.memory.report import MemoryReport, SourceLine, table_text
from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.jaxpr import Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ir.text.html import report, table
from verax.transforms.memory.alive import Held, flat_program

LARGE: Final = 4096
"""The size at which lines are put in order."""
HEADS: Final = ("kept for the way back", "bytes", "count", "values")

type Again = Callable[[Mapping[str, int]], MemoryReport]
"""The report for sizes."""


@frozen(repr=False)
class LineMemoryFormula(ReprMixin):
    """What a line keeps until the way back of a gradient begins: `bytes`, a formula.

    `count` are the values, `types` their types, and `length` the iterations of the loop
    that stacked them, which may be a size, or None.

    >>> import verax, verax.numpy as vnp
    >>> (n,) = verax.export.symbolic_shape("n")
    >>> x = verax.ShapeDtypeStruct((n, 8), vnp.float32)
    >>> f = verax.grad(lambda x: vnp.sum(vnp.sin(vnp.exp(x) @ x.T)))
    >>> str(verax.debug.memory(f)(x).lines[0].bytes)
    '4*n^2 + 64*n'
    """

    __module__ = "verax.debug"

    place: SourceLine
    bytes: Formula
    count: int
    types: tuple[str, ...]
    length: object

    @property
    def line(self) -> int:
        """The number of the line in its file."""
        return self.place.line

    @property
    def code(self) -> str:
        """Its text."""
        return self.place.code

    def at(self, **sizes: int) -> float:
        """The bytes for these sizes.

        Raises:
            TypeError: a variable has no size.
        """
        check_names(self.bytes.variables(), sizes, exactly=False)
        value: float = self.bytes.evaluated(sizes)
        return value

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        more = ", …" if len(self.types) > 1 else ""
        loop = "" if self.length is None else f", {self.length} iterations"
        text = text_of(self.bytes.terms, TERMS)
        return self.place.text, text, f"{self.count}", f"{self.types[0]}{more}{loop}"


@frozen(repr=False)
class MemoryFormulas(ReprMixin):
    """What a function takes of memory where sizes are symbols.

    Attributes:
        name: of the function.
        arguments: the bytes of arguments.
        outputs: those of results.
        kept: those of values that are alive when the way back of a gradient begins.
        lines: these values by line.

    `at` gives the report for sizes, whose program is traced, and compiled if the
    function was to be measured.

    >>> import verax, verax.numpy as vnp
    >>> b, d = verax.export.symbolic_shape("b, d")
    >>> w, x = [verax.ShapeDtypeStruct((n, d), vnp.float32) for n in (d, b)]
    >>> loss = verax.grad(lambda w, x: vnp.sum(vnp.tanh(x @ w) @ w))
    >>> report = verax.debug.memory(loss, measure=False)(w, x)
    >>> report.arguments, report.outputs, report.kept
    (4*b*d + 4*d^2, 4*d^2, 4*b*d)
    >>> report.at(b=64, d=32).arguments
    12288
    """

    __module__ = "verax.debug"

    name: str
    arguments: Formula
    outputs: Formula
    kept: Formula
    lines: tuple[LineMemoryFormula, ...]
    again: Again = field(repr=False, eq=False)

    def variables(self) -> set[str]:
        """The names of the sizes."""
        parts = (self.arguments, self.outputs, self.kept)
        return set().union(*[formula.variables() for formula in parts])

    def at(self, **sizes: int) -> MemoryReport:
        """The report for these sizes.

        Raises:
            TypeError: a variable has no size, or a name is no variable.
        """
        check_names(self.variables(), sizes, exactly=True)
        return self.again(sizes)

    @property
    def title(self) -> str:
        """The sums, in two lines."""
        first, second, third = [
            text_of(x.terms, TERMS) for x in (self.arguments, self.outputs, self.kept)
        ]
        return (
            f"{self.name}: arguments {first} B, results {second} B\n"
            f"kept for the way back {third} B"
        )

    def __str__(self) -> str:
        rows = [line.cells for line in self.lines]
        table = table_text(HEADS, rows, last_left=True) if rows else []
        return "\n".join([self.title, *table])

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return report(table(self.title, HEADS, [line.cells for line in self.lines]))


def summed(avals: Iterable[ShapedArray]) -> Formula:
    """The bytes of arrays of these types."""
    return sum([sure(bytes_of(aval)) for aval in avals], sure(0))


def read_inputs(jaxpr: Jaxpr) -> list[Var]:
    """The inputs that some equation reads, or that are results."""
    read = {a for eqn in jaxpr.eqns for a in eqn.invars}
    read.update(jaxpr.outvars)
    return [v for v in jaxpr.invars if v in read]


def memory_formulas(name: str, jaxpr: Jaxpr, again: Again) -> MemoryFormulas:
    """The formulas of a program."""
    program, places = flat_program(jaxpr), Places()
    groups: dict[tuple[SourceLine, object], list[Held]] = {}
    for one in kept_at_turn(program):
        groups.setdefault((places.of(one.source), one.length), []).append(one)
    lines = [
        LineMemoryFormula(
            place,
            summed([one.aval for one in values]),
            len(values),
            tuple(dict.fromkeys([repr(one.aval) for one in values])),
            length,
        )
        for (place, length), values in groups.items()
    ]
    names = set().union(*[line.bytes.variables() for line in lines])
    lines.sort(key=lambda line: -line.at(**dict.fromkeys(names, LARGE)))
    outs = [a.aval for a in program.jaxpr.outvars]
    return MemoryFormulas(
        name,
        summed([v.aval for v in read_inputs(program.jaxpr)]),
        summed(outs),
        sum([line.bytes for line in lines], sure(0)),
        tuple(lines),
        again,
    )


def with_sizes(tree: object, sizes: Mapping[str, int]) -> object:
    """Arguments with numbers in place of the symbols in their shapes."""
    leaves, structure = pytrees.flatten(tree)

    def numbered(x: object) -> object:
        if not isinstance(x, ShapeDtypeStruct):
            return x
        shape = [
            n.evaluated(sizes) if isinstance(n, SymbolicSize) else n for n in x.shape
        ]
        return x.update(shape=tuple(shape))

    return pytrees.unflatten(structure, map(numbered, leaves))
