"""Floor 6: what checking has shown: one finding for each law, and their table.

One idea: a report is a value that is true if nothing is broken, prints as a table, and
raises only when it is asked to::

    report = check_primitive(sin_p)
    print(report)
    report.raise_if_broken()
"""

import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from threading import Thread
from types import MappingProxyType
from typing import Any, Final, TextIO

from attrs import evolve, field, frozen
from hypothesis import HealthCheck, Phase, given, seed as seeded, settings
from hypothesis.errors import Flaky

from verax.backend.lowering.lower import lower
from verax.backend.lowering.mlir_text import OPERATION
from verax.backend.programs.program import Program, compiled, platform_of
from verax.backend.xla.executable import CompileOptions
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.text.html import Cell, folded, report, table
from verax.rules.values.state import STATE, changing, refresh_own
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Evidence, LawBroken, Skipped
from verax.verify.cases.edges import element_of, without_element
from verax.verify.laws import Law
from verax.verify.laws.compose import transformed
from verax.verify.strategies import Strategy

try:
    import rich
    from rich.table import Table

    RICH = True
except ModuleNotFoundError:  # the plain table says the same
    RICH = False

HOLDS, BROKEN, VACUOUS, SILENT = "holds", "broken", "vacuous", "does not apply"
SHOWN = 3
"""So many broken laws are shown with their evidence: most have one cause."""
COLUMNS = ("law", "cases", "verdict", "notes")
STYLES: Mapping[str, str] = MappingProxyType(
    {HOLDS: "green", BROKEN: "bold red", VACUOUS: "yellow", SILENT: "dim"}
)
HUES: Mapping[str, int] = MappingProxyType({HOLDS: 130, BROKEN: 0, VACUOUS: 50})


@frozen(repr=False)
class Finding(ReprMixin):
    """The outcome of trying a law on a subject.

    `verdict` is `holds`, `broken`, `vacuous` (all cases were skipped) or `does not
    apply`; `skips` counts cases that said nothing, by reason; `proof` is the smallest
    case that breaks the law, and `evidence` its text.
    """

    __module__ = "verax.verify"

    subject: str
    law: str
    verdict: str
    tried: int = 0
    skips: tuple[tuple[str, int], ...] = ()
    evidence: str = field(default="", repr=False)
    proof: Evidence | None = field(default=None, repr=False)

    def __str__(self) -> str:
        text = f"{self.subject}: {self.law} {self.verdict} in {self.tried} cases"
        for reason, count in self.skips:
            text += f"; {count} skipped: {reason}"
        return f"{text}\n{self.evidence}" if self.evidence else text

    def after(self, known: "Finding") -> "Finding":
        """It, with the cases of the same law that were tried before and not broken."""
        counts = Counter(dict(known.skips)) + Counter(dict(self.skips))
        tried = known.tried + self.tried
        verdict = self.verdict if known.verdict == VACUOUS else known.verdict
        return evolve(
            self,
            tried=tried,
            skips=tuple(counts.items()),
            verdict=BROKEN if self.verdict == BROKEN else verdict,
        )

    @property
    def case(self) -> Case | None:
        """The smallest case that breaks the law, if one was found."""
        return None if self.proof is None else self.proof.case

    @property
    def notes(self) -> str:
        """Why cases were skipped, with how many; or the first line of the evidence."""
        if self.verdict == BROKEN:
            return self.evidence.split("\n")[0]
        return "; ".join(
            f"{count} skipped: {reason}" if count else reason
            for reason, count in self.skips
        )


class LawsBroken(AssertionError):
    """At least one law does not hold; the text has the table and the evidence."""

    __module__ = "verax.verify"


@frozen(eq=False, repr=False)
class Report:
    """The findings on one subject, and what of it was derived rather than written.

    Raises only in `raise_if_broken`. `derived` has a line for each column that follows
    from others: (column, by what means).
    """

    __module__ = "verax.verify"

    subject: str
    findings: tuple[Finding, ...]
    derived: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return not self.broken

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, law: str) -> Finding:
        """The finding of a law by its name.

        Raises:
            KeyError: that law was not tried.
        """
        for finding in self.findings:
            if finding.law == law:
                return finding
        tried = ", ".join(finding.law for finding in self.findings)
        raise KeyError(f"the law {law!r} was not tried on {self.subject}, only {tried}")

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings that show a broken law."""
        return tuple(f for f in self.findings if f.verdict == BROKEN)

    @property
    def tried(self) -> int:
        """All cases of all laws."""
        return sum(finding.tried for finding in self.findings)

    def raise_if_broken(self) -> "Report":
        """This report, if no law is broken.

        Raises:
            LawsBroken: the table, and for each broken law the smallest case, both
                programs, both values and a program that shows it again.
        """
        if self.broken:
            raise LawsBroken(f"\n{self}")
        return self

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The cells of the table, without its head."""
        return [(f.law, str(f.tried), f.verdict, f.notes) for f in self.findings]

    def __str__(self) -> str:
        """The plain table, then the evidence of what is broken."""
        cells = [COLUMNS, *self.rows()]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        lines = [self.title]
        for row in cells:
            text = "  ".join(c.ljust(w) for c, w in zip(row[:3], widths, strict=True))
            lines.append(f"  {text}  {row[3]}".rstrip())
        shown = [f"\n{f.evidence}" for f in self.broken[:SHOWN]]
        if len(self.broken) > SHOWN:
            shown.append("\nThe evidence of the others: report[law].evidence")
        return "\n".join([*lines, *shown])

    __repr__ = __str__

    @property
    def title(self) -> str:
        """The subject and the verdict on all of it, and what is derived."""
        count = len(self.broken)
        verdict = f"{count} broken" if count else "no law broken"
        text = f"{self.subject}: {verdict}"
        for column, means in self.derived:
            text += f"\n  {column} is derived: {means}"
        return text

    def _repr_html_(self) -> str:
        """Shows it in a notebook, with the evidence of broken laws folded."""
        rows = [
            (law, tried, Cell(verdict, HUES.get(verdict)), notes)
            for law, tried, verdict, notes in self.rows()
        ]
        evidence = [
            folded(f"{f.law}: evidence", f.evidence, f"report[{f.law!r}].evidence")
            for f in self.broken
        ]
        return report(table(self.title, COLUMNS, rows), *evidence)

    def __rich__(self) -> Any:
        """The table for a console of rich."""
        table = Table(*COLUMNS, title=self.title, title_justify="left")
        for law, tried, verdict, notes in self.rows():
            table.add_row(law, tried, f"[{STYLES[verdict]}]{verdict}[/]", notes)
        return table

    def show(self, file: TextIO | None = None) -> None:
        """Print the table: in colour where rich is installed, else plain."""
        out = sys.stdout if file is None else file
        if not RICH:
            print(self, file=out)
            return
        rich.print(self, file=out)
        for finding in self.broken[:SHOWN]:
            print(f"\n{finding.evidence}", file=out)


# -----------------------------------------------------------------------------
# The search for a case that breaks a law.
#
# Hypothesis draws and shrinks; what comes back is a finding, which keeps what
# was found, how many cases were tried, and why others said nothing::
#
#     search(LAWS["jvp"], "sin", engine, cases(sin_p, wide=True), 30)


# Hypothesis would also say which parts of its own choices matter: the case itself does.
PHASES = (Phase.generate, Phase.shrink)
OPEN = 64
"""So many elements of a case may be such that a law leaves their value open."""
LEAST = 3
"""Expensive laws are tried on a few cases at least."""


def at_edges(
    law: Law, subject: str, engine: StandardEngine, cases: Iterable[Case]
) -> Finding:
    """The finding of `law` on cases that are listed, not drawn.

    An element that breaks it alone is shown alone.
    """
    skips: Counter[str] = Counter()
    tried = 0
    for case in cases:
        tried += 1
        try:
            held_by_elements(law, engine, case)
        except Skipped as skipped:
            skips[str(skipped)] += 1
        except LawBroken as error:
            evidence = error.evidence
            counts = tuple(skips.items())
            return Finding(
                subject, law.name, BROKEN, tried, counts, str(evidence), evidence
            )
    verdict = VACUOUS if tried == sum(skips.values()) else HOLDS
    return Finding(subject, law.name, verdict, tried, tuple(skips.items()))


def held_by_elements(law: Law, engine: StandardEngine, case: Case) -> None:
    """Try a law on a case, or else on each element that breaks it.

    A law that leaves something open, as compilers do with subnormals, leaves it open
    for each element.

    Raises:
        LawBroken: it does not hold, by one element if that shows it.
        Skipped: the case says nothing about the law.
    """
    for _ in range(OPEN):
        try:
            return law(engine, case)
        except LawBroken as error:
            first = error.evidence.first
            one = None if first is None else element_of(case, first.index)
            if first is None or one is None:
                raise
            law(engine, one)
            case = without_element(case, first.index)
    return law(engine, case)


def search(
    law: Law,
    subject: str,
    engine: StandardEngine,
    source: Strategy[Case],
    cases: int,
    *,
    after: Sequence[str] = (),
    seed: int | None = None,
) -> Finding:
    """The finding of `law` on the cases that `source` draws.

    `after` names transformations (see `compose.LINKS`) that come before the law, in
    order. With a `seed`, the same cases are drawn each time.
    """
    skips: Counter[str] = Counter()
    tried = 0

    @settings(
        max_examples=max(LEAST, cases // law.cost),
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    @given(source)
    def attempt(case: Case) -> None:
        nonlocal tried
        tried += 1
        try:
            law(engine, transformed(engine, case, after) if after else case)
        except Skipped as skipped:
            skips[str(skipped)] += 1

    run = attempt if seed is None else seeded(seed)(attempt)
    name = " of ".join([law.name, *reversed(after)])
    try:
        # Hypothesis tells failures apart, and shrinks each, by where they were raised.
        with changing({"traceback_filtering": "off"}):
            run()
    except LawBroken as error:
        evidence = error.evidence
        return Finding(
            subject, name, BROKEN, tried, tuple(skips.items()), str(evidence), evidence
        )
    except Flaky as error:
        text = (
            f"{name}: the same case gives a different verdict when tried again\n{error}"
        )
        return Finding(subject, name, BROKEN, tried, tuple(skips.items()), text)
    except Exception:  # the subject's own code: its draw, its type rule
        text = f"{name}: no case could be drawn for {subject}\n{traceback.format_exc()}"
        return Finding(subject, name, BROKEN, tried, tuple(skips.items()), text)
    verdict = VACUOUS if tried == sum(skips.values()) else HOLDS
    return Finding(subject, name, verdict, tried, tuple(skips.items()))


# -----------------------------------------------------------------------------
# Compiling ends, and its result is not much larger than the program.
#
# LLVM takes a time exponential in the rotations of words (`x << r | x >> 32-r`)
# that XLA fuses into one loop, so they are counted, as are the instructions; only what
# nobody thought of is left to the clock::
#
#     program = held(engine, jaxpr)     # raises CompiledTooLarge or CompilesTooLong


ROTATIONS: Final = 36
"""In one loop: a hash has 20, and the equations of a small program a few."""
GROWTH: Final = 48
"""Instructions for each operation lowered, as XLA writes some functions out."""
ALWAYS: Final = 1000
"""Instructions that a program may have beside those."""
SECONDS: Final = 300.0
"""The time that one program of the kit may take to compile, on a busy machine too."""

FUNCTION: Final = re.compile(r"^  func\.func \w+ @([\w.]+)", re.MULTILINE)
CALL: Final = re.compile(r"callee = @([\w.]+)")
INSTRUCTION: Final = re.compile(r"^  (?:ROOT )?%?[\w.\-]+ = ", re.MULTILINE)
SHIFTS: Final = re.compile(r"stablehlo\.shift_left")
SHIFTED: Final = re.compile(r" shift-left\(")


class CompiledTooLarge(AssertionError):
    """XLA made a program much larger than it was."""


class CompilesTooLong(AssertionError):
    """A compilation did not finish."""


def held(engine: StandardEngine, jaxpr: Jaxpr, name: str = "law") -> Program:
    """The compiled program, held to its size and to the clock.

    Raises:
        CompiledTooLarge: it is many times as large as what was lowered, or more than
            one hash of random bits is in one loop.
        CompilesTooLong: it takes longer than `SECONDS`.
    """
    module = lower(engine, jaxpr, name, platforms=(platform_of(None),)).text
    if count(module, SHIFTS) > ROTATIONS:
        # Without LLVM's optimisations, which may not end.
        quick = compiled(engine, jaxpr, name, CompileOptions(effort="fast"))
        check_rotations(quick.executable.hlo_text())
    program = in_time(lambda: compiled(engine, jaxpr, name, CompileOptions()))
    check_size(count(module, OPERATION), program.executable.hlo_text())
    return program


def count(module: str, pattern: re.Pattern[str]) -> int:
    """The number of times a pattern occurs in a module with every call written out."""
    starts = [match.start() for match in FUNCTION.finditer(module)]
    bodies = [
        module[i:j] for i, j in zip(starts, [*starts[1:], len(module)], strict=True)
    ]
    texts = dict(zip(FUNCTION.findall(module), bodies, strict=True))
    known: dict[str, int] = {}

    def full(name: str) -> int:
        if name not in known:
            inside = sum(map(full, CALL.findall(texts[name])))
            known[name] = len(pattern.findall(texts[name])) + inside
        return known[name]

    return full("main")


def check_rotations(hlo: str) -> None:
    """Raise if a computation of an optimised program shifts words too often.

    Raises:
        CompiledTooLarge: it does.
    """
    most = max(len(SHIFTED.findall(part)) for part in hlo.split("\n\n"))
    if most > ROTATIONS:
        raise CompiledTooLarge(
            f"{most} shifts in one loop, which LLVM may never finish optimising: keep "
            "each hash apart from what uses it"
        )


def check_size(asked: int, hlo: str) -> None:
    """Hold the size of an optimised program to the operations that it was made from.

    Raises:
        CompiledTooLarge: it is many times as large.
    """
    result = len(INSTRUCTION.findall(hlo))
    if result > ALWAYS + GROWTH * asked:
        raise CompiledTooLarge(
            f"{asked} operations became {result} instructions: fusions repeat them"
        )


def in_time[T](compile: Callable[[], T], seconds: float = SECONDS) -> T:
    """Returns what `compile` gives, under the configuration of this thread.

    Raises:
        CompilesTooLong: it takes longer than `seconds`. It goes on beside, as XLA
            cannot be stopped, until the process ends.
    """
    future: Future[T] = Future()
    configuration = dict(vars(STATE))

    def run() -> None:
        vars(STATE).update(configuration)
        refresh_own()
        try:
            future.set_result(compile())
        except BaseException as error:  # it is raised where the result is asked for
            future.set_exception(error)
        finally:
            vars(STATE).clear()
            refresh_own()

    Thread(target=run, daemon=True, name="compiling").start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():
            raise
        raise CompilesTooLong(f"not compiled within {seconds:g} s") from None
