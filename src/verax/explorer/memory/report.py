"""The report of `verax.debug.memory`: which lines hold memory at the fullest moment.

One idea: bytes are predicted from the program alone, step by step, and the compiler's
own numbers stand beside them::

    report = verax.debug.memory(verax.grad(loss))(params, batch)
    report.total, report.predicted, report.lines[0]
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

from attrs import field, frozen

from verax.explorer.costing import counted
from verax.ir.records import ReprMixin
from verax.ir.reports.lines import AtLine
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table

BARS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 64
"""The letters of a curve in text."""
CODE: Final = 27
"""The letters of a line's code in text."""
SHOWN: Final = 16
"""The lines that text shows of a table."""

type Kind = Literal["value", "cotangent"]


@frozen(repr=False)
class SourceLine(AtLine):
    """A line of the user's; `kind` is "cotangent" for what a gradient makes there.

    >>> import verax, verax.numpy as vnp
    >>> f = verax.grad(lambda x: vnp.sum(vnp.sin(vnp.exp(x) @ x)))
    >>> report = verax.debug.memory(f, measure=False)(vnp.ones((8, 8)))
    >>> report.lines[0].place.kind
    'cotangent'
    """

    __module__ = "verax.debug"

    kind: Kind

    @property
    def text(self) -> str:
        """The number and the code of the line, in so many letters."""
        code = ("← " if self.kind == "cotangent" else "") + (self.code or "(no line)")
        code = code if len(code) <= CODE else code[: CODE - 1] + "…"
        return f"{self.line:>4}  {code}"


@frozen(repr=False)
class MemoryUse(ReprMixin):
    """The bytes of a program: arguments, results, and what is in between.

    Results that take the place of donated arguments are `shared`.

    >>> from verax.debug import MemoryUse
    >>> MemoryUse(arguments=100, outputs=40, shared=40, temporaries=60).total
    160
    """

    __module__ = "verax.debug"

    arguments: int
    outputs: int
    shared: int
    temporaries: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.arguments + self.outputs - self.shared + self.temporaries


@frozen(repr=False)
class LineMemory(ReprMixin):
    """Values of a line that are alive at a moment.

    Attributes:
        place: the line, and whether they are values or cotangents.
        bytes: of all of them.
        count: how many they are.
        types: their types, each once, such as "f32[8,64]".
        length: the iterations of the loop that stacked them; None if no loop did.
        inside: whether they live in one step of a loop, or of what is called.

    >>> import verax, verax.numpy as vnp
    >>> f = verax.grad(lambda x: vnp.sum(vnp.sin(vnp.exp(x) @ x)))
    >>> report = verax.debug.memory(f, measure=False)(vnp.ones((8, 8)))
    >>> report.lines[0].bytes, report.lines[0].types
    (768, ('f32[8,8]',))
    """

    __module__ = "verax.debug"

    place: SourceLine
    bytes: int
    count: int
    types: tuple[str, ...]
    length: int | None
    inside: bool

    @property
    def file(self) -> str:
        """The file of the line."""
        return self.place.file

    @property
    def line(self) -> int:
        """Its number there."""
        return self.place.line

    @property
    def code(self) -> str:
        """Its text."""
        return self.place.code

    @property
    def kind(self) -> Kind:
        """ "value" or "cotangent"."""
        return self.place.kind

    @property
    def each(self) -> int | None:
        """The bytes of one iteration, if they are stacks of a loop."""
        return None if self.length is None else self.bytes // max(self.length, 1)

    def cells(self, whole: int) -> tuple[str, ...]:
        """The row of a table."""
        values = self.types[0] + (", …" if len(self.types) > 1 else "")
        if self.length is not None and self.each is not None:
            values = f"{self.length} x {in_bytes(self.each)}"
        elif self.inside:
            values = "within a step"
        return (
            self.place.text,
            in_bytes(self.bytes),
            f"{100 * self.bytes / max(whole, 1):.0f} %",
            f"{self.count}",
            values,
        )


@frozen(repr=False)
class LoopMemory(ReprMixin):
    """What a loop takes of memory.

    Attributes:
        place: its line.
        length: its iterations; None if only values say.
        depth: the number of loops around it.
        carried: bytes that go from an iteration to the next.
        read: bytes of the rows that an iteration reads.
        stacked: bytes of the rows that an iteration leaves, `rows` by line.
        peak: bytes in use within an iteration at most, beside all of these.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     return verax.lax.fori_loop(0, 5, lambda i, c: vnp.sin(c @ c), x)
    >>> (loop,) = verax.debug.memory(f, measure=False)(vnp.ones((8, 8))).loops
    >>> loop.length, loop.carried
    (5, 256)
    """

    __module__ = "verax.debug"

    place: SourceLine
    length: int | None
    depth: int
    carried: int
    read: int
    stacked: int
    peak: int
    rows: tuple[LineMemory, ...] = field(repr=False)

    @property
    def total(self) -> int:
        """The bytes of all that the loop stacks; of one iteration if that is all."""
        return self.stacked * (1 if self.length is None else self.length)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        return (
            "  " * self.depth + self.place.text,
            "?" if self.length is None else f"{self.length}",
            *map(in_bytes, (self.carried, self.read, self.stacked, self.peak)),
            in_bytes(self.total),
        )


@frozen(repr=False)
class CurvePoint(ReprMixin):
    """The bytes in use beside arguments and results at a step, and its line.

    >>> import verax, verax.numpy as vnp
    >>> f = verax.grad(lambda x: vnp.sum(vnp.sin(vnp.exp(x) @ x)))
    >>> report = verax.debug.memory(f, measure=False)(vnp.ones((8, 8)))
    >>> report.curve[0].step, report.curve[0].bytes
    (0, 256)
    """

    __module__ = "verax.debug"

    step: int
    bytes: int
    place: SourceLine


@frozen(repr=False)
class RunAgain(ReprMixin):
    """What a plan computes once more for a line: `flops` operations.

    `bytes` are those that the line keeps no longer until the way back begins.

    >>> import verax, verax.numpy as vnp
    >>> def loss(ws, x):
    ...     for w in ws:
    ...         x = vnp.tanh(vnp.sin(x @ w) + x)
    ...     return vnp.sum(x)
    >>> ws, x = [vnp.ones((8, 8))] * 8, vnp.ones((256, 8))
    >>> report = verax.debug.memory(verax.grad(loss), budget=0.7)(ws, x)
    >>> report.plan.again[0].flops > 0
    True
    """

    __module__ = "verax.debug"

    place: SourceLine
    flops: float
    bytes: int

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        return self.place.text, counted(self.flops), in_bytes(self.bytes)


@frozen(repr=False)
class MemoryPlan(ReprMixin):
    """How a program stays within a budget.

    Attributes:
        limit: the budget in bytes.
        before: the report of the program without it.
        total: the bytes of the program within it, as it is compiled.
        extra: the operations that run again, as a share of all without a budget.
        kept: what is kept until the way back of the gradient begins, by line.
        again: what is computed again, by line, with what that frees.
        least: the smallest budget that a plan was found for.
        away: what waits in memory of the host, by line.
        lean: whether sums are left to loops of XLA's own on a CPU, since its library
            for them stores constants.

    >>> import verax, verax.numpy as vnp
    >>> def loss(ws, x):
    ...     for w in ws:
    ...         x = vnp.tanh(vnp.sin(x @ w) + x)
    ...     return vnp.sum(x)
    >>> ws, x = [vnp.ones((8, 8))] * 8, vnp.ones((256, 8))
    >>> report = verax.debug.memory(verax.grad(loss), budget=0.7)(ws, x)
    >>> report.plan.fits, report.plan.total <= 0.7 * report.plan.before.total
    (True, True)
    """

    __module__ = "verax.debug"

    limit: int
    before: "MemoryReport" = field(repr=False)
    total: int
    extra: float
    kept: tuple[LineMemory, ...]
    again: tuple[RunAgain, ...]
    least: int
    lean: bool = False
    away: tuple[LineMemory, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the program stays within the budget."""
        return self.total <= self.limit

    @property
    def title(self) -> str:
        """What the plan changes, in a line or two."""
        first = f"budget {in_bytes(self.limit)}: "
        if not self.fits:
            return f"{first}no plan is within it; smallest budget {self.smallest}"
        if not (self.again or self.lean or self.away):
            now = in_bytes(self.total)
            return f"{first}{now} fits as it is; smallest budget {self.smallest}"
        price = f"for {100 * self.extra:.2g} % more operations" if self.again else ""
        sums = "with sums in XLA's own loops" if self.lean else ""
        waits = sum([line.bytes for line in self.away])
        moved = f"with {in_bytes(waits)} on the host" if waits else ""
        how = " and ".join(filter(None, (price, moved, sums)))
        return (
            f"{first}of {in_bytes(self.before.total)} to {in_bytes(self.total)} {how}; "
            f"smallest budget {self.smallest}"
        )

    @property
    def smallest(self) -> str:
        """The smallest budget, in words."""
        return in_bytes(self.least)

    def __str__(self) -> str:
        parts = [self.title]
        if self.away:
            rows = [(one.place.text, in_bytes(one.bytes)) for one in self.away]
            parts += table_text(AWAY, rows)
        if self.again:
            parts += table_text(AGAIN, [one.cells for one in self.again])
        return "\n".join(parts)


AWAY: Final = ("waits on the host", "bytes")
AGAIN: Final = ("runs again", "flops", "frees")
HEADS: Final = ("alive at the fullest moment", "bytes", "share", "count", "each")
LOOPS: Final = ("loops", "steps", "carry", "reads", "stacks", "inside", "in all")


@frozen(repr=False)
class MemoryReport(ReprMixin):
    """What a function takes of memory.

    Attributes:
        name: of the function.
        model: the bytes that are predicted, of all devices together.
        compiled: those of the compiled program on each device; None if not asked for.
        lines: the values alive at the fullest moment, the largest first.
        fullest: that moment.
        curve: bytes over the steps of the program, some hundred points.
        loops: the loops, each before those inside it.
        plan: of a budget, how the program stays within it. What the report says is
            of that program then, and `plan.before` is the report without.
        devices: how many share the program.

    >>> import verax, verax.numpy as vnp
    >>> x = verax.ShapeDtypeStruct((100, 100), vnp.float32)
    >>> report = verax.debug.memory(lambda x: vnp.sum(x @ x @ x), measure=False)(x)
    >>> report.arguments, report.temporaries, report.lines[0].types
    (40000, 80000, ('f32[100,100]',))
    """

    __module__ = "verax.debug"

    name: str
    model: MemoryUse
    compiled: MemoryUse | None
    lines: tuple[LineMemory, ...]
    fullest: CurvePoint
    curve: tuple[CurvePoint, ...] = field(repr=False)
    loops: tuple[LoopMemory, ...]
    plan: MemoryPlan | None = None
    devices: int = 1

    @property
    def use(self) -> MemoryUse:
        """The bytes of the compiled program, else those that are predicted."""
        return self.model if self.compiled is None else self.compiled

    @property
    def arguments(self) -> int:
        """The bytes of arguments."""
        return self.use.arguments

    @property
    def outputs(self) -> int:
        """The bytes of results."""
        return self.use.outputs

    @property
    def temporaries(self) -> int:
        """The bytes of what is in between, at the fullest moment."""
        return self.use.temporaries

    @property
    def total(self) -> int:
        """All bytes, those of the compiled program if it was measured."""
        return self.use.total

    @property
    def predicted(self) -> int:
        """All bytes, as predicted from the program alone."""
        return self.model.total

    @property
    def measured(self) -> int | None:
        """All bytes of the compiled program; None if it was not asked for."""
        return None if self.compiled is None else self.compiled.total

    def by_line(self, line: int) -> tuple[LineMemory, ...]:
        """The entries of a line at the fullest moment."""
        return tuple([entry for entry in self.lines if entry.line == line])

    @property
    def title(self) -> str:
        """The sums, in a line."""
        use = self.use
        parts = (
            f"{self.name}: {in_bytes(use.total)}, arguments {in_bytes(use.arguments)}, "
            f"results {in_bytes(use.outputs)}, in between {in_bytes(use.temporaries)}"
        )
        if self.measured is None:
            return f"{parts} (predicted)"
        each = f" on each of {self.devices} devices" if self.devices > 1 else ""
        return f"{parts}{each}\npredicted {in_bytes(self.predicted)}{self.error}"

    @property
    def error(self) -> str:
        """How far the prediction is from what was measured."""
        if not self.measured or self.devices > 1:
            return " for all together" if self.devices > 1 else ""
        return f" ({100 * (self.predicted / self.measured - 1):+.0f} %)"

    def rows(self) -> list[tuple[str, ...]]:
        """The rows of the table of lines."""
        whole = self.model.temporaries
        return [entry.cells(whole) for entry in self.lines]

    @property
    def moment(self) -> str:
        """The fullest moment, in words."""
        place, size = self.fullest.place, in_bytes(self.fullest.bytes)
        where = f"{os.path.basename(place.file)}:{place.line}"
        return f"fullest at step {self.fullest.step + 1}: {size}, {where}"

    def __str__(self) -> str:
        parts = [self.title]
        if len(self.curve) > 1:
            parts.append(bars([point.bytes for point in self.curve]))
            parts.append(self.moment)
        if self.lines:
            parts += table_text(HEADS, self.rows(), last_left=True)
        if self.loops:
            parts += table_text(LOOPS, [loop.cells for loop in self.loops])
        if self.plan is not None:
            parts.append(str(self.plan))
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        """The tables, for notebooks."""
        tables = [table(self.title, HEADS, self.rows())]
        if self.loops:
            rows = [loop.cells for loop in self.loops]
            tables.append(table("in bytes of an iteration", LOOPS, rows))
        if self.plan is not None:
            rows = [one.cells for one in self.plan.again]
            tables.append(table(self.plan.title, AGAIN, rows))
        return report(*tables)


def in_bytes(count: float) -> str:
    """Bytes with three digits.

    >>> in_bytes(1_234_567), in_bytes(0)
    ('1.23MB', '0B')
    """
    return f"{counted(count)}B"


def table_text(
    heads: Sequence[str], rows: Sequence[Sequence[str]], last_left: bool = False
) -> list[str]:
    """The first rows of a table in columns, and how many there are beside."""
    shown = [heads, *rows[:SHOWN]]
    if last_left:
        numbers = columns([row[:-1] for row in shown], left=1)
        texts = [f"{text}  {row[-1]}" for text, row in zip(numbers, shown, strict=True)]
    else:
        texts = list(columns(shown, left=1))
    rest = len(rows) - SHOWN
    return [*texts, f"and {rest} more"] if rest > 0 else texts


def bars(heights: Sequence[int]) -> str:
    """A curve in a line of text: of each group of points the highest.

    >>> bars([0, 4, 8, 4, 0])
    '▁▅█▅▁'
    """
    top, count = max(*heights, 1), min(len(heights), WIDTH)
    ends = [i * len(heights) // count for i in range(count + 1)]
    highest = [max(heights[a:b]) for a, b in pairwise(ends)]
    return "".join([BARS[min(7, h * 8 // top)] for h in highest])
