"""Floor 3: where the digits of a run go, as values, as text and as a table.

One idea: lines are kept as they were measured, and texts are made when they are read::

    print(report)
    report.worst.line, report.by_line(26), report.alarms
"""

from typing import Any, Final

from attrs import frozen

from verax.ir.records import ReprMixin
from verax.ir.text.columns import columns
from verax.ir.text.html import Cell, report, table
from verax.transforms.precision.lines import PrecisionLine
from verax.transforms.precision.measures import RelativeError

LINES: Final = 20
"""So many lines of the table are printed."""
SAID: Final = 10
"""So many lines are spoken of in words."""
WIDTH: Final = 44
RED: Final = 0
HEADS: Final = (
    "line",
    "result",
    "runs",
    "lost",
    "of",
    "error",
    "own error",
    "cancels",
)


@frozen(eq=False, repr=False)
class PrecisionReport(ReprMixin):
    """Where the digits of a run go: its lines, those that lose most first.

    `shadow` names the arithmetic that ran beside it. `result` is what the function has
    returned, and `outputs` are the relative errors of its leaves by their names: of the
    worst element, and the mean. `narrow` are operations that the shadow had to run in
    their own dtypes, `skipped` those through which no cotangent goes. `loss` is the
    value to which the `effect` of a line belongs, None without `gradient=True`.

    >>> import verax
    >>> verax.debug.precision(lambda x: x * 2)(3.0)
    <PrecisionReport: <lambda> keeps its digits>
    """

    __module__ = "verax.debug"

    name: str
    shadow: str
    lines: tuple[PrecisionLine, ...]
    outputs: dict[str, RelativeError]
    result: Any
    loss: float | None
    narrow: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def worst(self) -> PrecisionLine | None:
        """The line that loses most digits; None if there is none with floats."""
        return self.lines[0] if self.lines else None

    @property
    def alarms(self) -> tuple[PrecisionLine, ...]:
        """The lines that lose two digits at least, or half of those of a short type."""
        return tuple([line for line in self.lines if line.alarm])

    @property
    def decisions(self) -> tuple[PrecisionLine, ...]:
        """The lines with something that exact arithmetic decides otherwise."""
        return tuple([line for line in self.lines if line.decisions])

    @property
    def by_effect(self) -> tuple[PrecisionLine, ...]:
        """The lines by what their rounding does to the loss, the most first.

        Without `gradient=True` all effects are 0.
        """
        return tuple(sorted(self.lines, key=lambda line: -line.effect))

    @property
    def error(self) -> float:
        """The largest relative error of an output."""
        return max([e.worst for e in self.outputs.values()], default=0.0)

    def by_line(self, line: int) -> tuple[PrecisionLine, ...]:
        """What was measured at a line: forwards, and on the way back of a gradient."""
        return tuple([x for x in self.lines if x.line == line])

    @property
    def title(self) -> str:
        """What was found, in a line."""
        count = len(self.alarms)
        texts = {0: "keeps its digits", 1: "loses digits at 1 line"}
        return f"{self.name} {texts.get(count, f'loses digits at {count} lines')}"

    def __str__(self) -> str:
        shares = f"{self.error:.2g} relative" if self.error else "none"
        lines = [f"{self.title}; error of the result, against {self.shadow}: {shares}"]
        said = [*self.alarms, *[x for x in self.decisions if not x.alarm]]
        for x in said[:SAID]:
            lines += [f"  {x}", f"      {place(x)}  {x.code}".rstrip()]
        lines += [f"  and {len(said) - SAID} more, in .lines"] * (len(said) > SAID)
        lines += by_loss(self)
        if self.lines:
            rows = [cells(x, self.loss is not None) for x in self.lines[:LINES]]
            table = columns([heads(self.loss is not None), *rows], left=2)
            lines += ["lines by digits lost", *[f"  {row}" for row in table]]
        left = len(self.lines) - LINES
        lines += [f"  and {left} more, in .lines"] * (left > 0)
        return "\n".join([*lines, *remarks(self)])

    def __repr__(self) -> str:
        return f"<PrecisionReport: {self.title}>"

    def _repr_html_(self) -> str:
        """The table, for notebooks; lines that lose digits are red."""
        weighed = self.loss is not None
        rows = []
        for x in self.lines:
            texts = cells(x, weighed)
            hue = RED if x.alarm else None
            row = [Cell(t, hue if i == LOST else None) for i, t in enumerate(texts)]
            rows.append([*row, Cell(x.reason, None, str(x.remedy or ""))])
        title = f"{self.title}, against {self.shadow}"
        return report(table(title, (*heads(weighed), "why"), rows))


LOST: Final = HEADS.index("lost")


def by_loss(report: PrecisionReport) -> list[str]:
    """The lines about what rounding does to the loss."""
    if report.loss is None:
        return []
    worst = [x for x in report.by_effect[:SAID] if x.effect]
    lines = [f"what rounding does to the loss, {report.loss:.4g}, at most"]
    for x in worst:
        share = f" ({x.effect / report.loss:.1g} of it)" if report.loss else ""
        lines.append(f"  {x.effect:.2g}{share} by line {x.line}: {x.code}")
    return lines


def remarks(report: PrecisionReport) -> list[str]:
    """What the shadow could not do."""
    texts = []
    if report.narrow:
        texts.append(f"no wider than in the program: {', '.join(report.narrow)}")
    if report.skipped:
        texts.append(f"without a derivative: {', '.join(report.skipped)}")
    return texts


def place(x: PrecisionLine) -> str:
    """The file and the line, and the iteration in which it is worst."""
    where = f"{x.file}:{x.line}" if x.line else "unknown line"
    if not x.iteration:
        return where
    return f"{where}, in iteration {', '.join(map(str, x.iteration))}"


def heads(weighed: bool) -> tuple[str, ...]:
    """The heads of the columns."""
    return (*HEADS, "effect", "counts") if weighed else (*HEADS, "counts")


def cells(x: PrecisionLine, weighed: bool) -> tuple[str, ...]:
    """The row of a line in a table."""
    code = x.code if len(x.code) <= WIDTH else f"{x.code[: WIDTH - 1]}…"
    arrow = "← " if x.backward else ""
    effect = (f"{x.effect:.2g}",) if weighed else ()
    return (
        f"{x.line:>4}  {code}",
        f"{arrow}{x.cause.primitive} {x.dtype}",
        f"{x.runs}",
        f"{x.lost:.1f}",
        f"{x.digits:.1f}",
        f"{x.error:.1e}" if x.error else "0",
        f"{x.local_error:.1e}" if x.local_error else "0",
        f"{x.cancelled:.1f}" if x.cancelled >= 1 else "",
        *effect,
        counts(x),
    )


def counts(x: PrecisionLine) -> str:
    """What happened to elements, in words."""
    pairs = [
        (x.overflow, "overflow"),
        (x.underflow, "underflow"),
        (x.subnormal, "denormal"),
        (x.nans, "NaN"),
        (x.decisions, "decided otherwise"),
    ]
    return ", ".join([f"{count:,} {name}" for count, name in pairs if count])
