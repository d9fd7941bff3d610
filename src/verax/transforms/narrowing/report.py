"""Floor 3: what a plan makes of a program, in numbers.

One idea: the share of the operations that run in the narrow type says what was gained,
line by line, and each line that stays wide says why::

    report = reported(plan, jaxpr)
    report.share, report.casts, report.wide
"""

import linecache
from collections.abc import Iterator
from pathlib import PurePath

from attrs import define, field, frozen

from verax.ir.dtypes import DType
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.walk import walk
from verax.ops.elementwise.convert import convert_element_type_p
from verax.rules.rows.costs import bytes_moved, flops_of, holds_programs, trips
from verax.rules.rows.row import traits_of
from verax.transforms.narrowing.plan import Narrowing, Place, place_of
from verax.transforms.narrowing.writer import narrowed


@frozen(eq=False, repr=False)
class NarrowLine(ReprMixin):
    """A line with products: the operations of these, and of those that are narrow.

    `reason` says why a line has products that stay wide; it is empty if none do.

    >>> import verax, verax.numpy as vnp
    >>> report = verax.rewrites.narrow_report(lambda x: x @ x)(vnp.ones((4, 4)))
    >>> report.lines[0].flops, report.lines[0].narrow_flops
    (128.0, 128.0)
    """

    __module__ = "verax.rewrites"

    file: str
    line: int
    flops: float
    narrow_flops: float
    reason: str

    @property
    def code(self) -> str:
        """The text of the line; empty if there is no file to read it from."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def place(self) -> str:
        """The line as `narrow(..., keep=...)` takes it."""
        return f"{PurePath(self.file).name}:{self.line}"

    def __str__(self) -> str:
        kind = "wide" if self.reason else "narrow"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.place}  {kind}  {self.flops:.3g} flops{why}  {self.code}"


@frozen(eq=False, repr=False)
class NarrowReport(ReprMixin):
    """What `narrow` makes of a program.

    Attributes:
        to: the narrow type.
        flops: the operations of the program, loops counted with their steps.
        narrow_flops: those in products of narrow operands.
        casts: the conversions to the narrow type that are written.
        bytes: what the products of the wide program read and write.
        narrow_bytes: what those of the narrow program do.
        lines: the lines with products, those with most operations first.
        error: the relative error of the outputs that was measured, against the wide
            program; None without `tolerance`.
        tolerance: the error that was allowed.
        trials: the programs that were compiled to find the lines.

    >>> import verax, verax.numpy as vnp
    >>> report = verax.rewrites.narrow_report(lambda x: x @ x)(vnp.ones((4, 4)))
    >>> report.share, report.casts
    (1.0, 1)
    """

    __module__ = "verax.rewrites"

    to: DType
    flops: float
    narrow_flops: float
    casts: int
    bytes: float
    narrow_bytes: float
    lines: tuple[NarrowLine, ...]
    error: float | None = None
    tolerance: float | None = None
    trials: int = 0

    @property
    def share(self) -> float:
        """The share of the operations that is in products of narrow operands."""
        return self.narrow_flops / self.flops if self.flops else 0.0

    @property
    def wide(self) -> tuple[NarrowLine, ...]:
        """The lines with products that stay wide."""
        return tuple([line for line in self.lines if line.reason])

    @property
    def keep(self) -> tuple[str, ...]:
        """The lines that were found to lose too much, for `narrow(..., keep=...)`."""
        return tuple([line.place for line in self.lines if line.reason == LOSES])

    def __str__(self) -> str:
        saved = 1 - self.narrow_bytes / self.bytes if self.bytes else 0.0
        head = (
            f"{self.share:.1%} of {self.flops:.3g} flops in {self.to}, "
            f"{self.casts} casts, {saved:.0%} fewer bytes in products"
        )
        if self.error is not None:
            head += f"; error {self.error:.1e}, allowed {self.tolerance:.1e}"
        return "\n".join([head, *[f"  {line}" for line in self.lines]])

    def __repr__(self) -> str:
        return str(self)


KEPT = "kept"
LOSES = "loses too much"
SUM = "a sum"
ASKED = "a precision was requested"
OTHER = "other types"


def runs_of(jaxpr: Jaxpr, times: float = 1.0) -> Iterator[tuple[Eqn, float]]:
    """All equations without programs, with how often each runs.

    A loop of unknown length counts once.
    """
    for eqn in jaxpr.eqns:
        if not holds_programs(eqn):
            yield eqn, times
            continue
        count = trips(eqn)
        inner = times * (1.0 if count is None else count)
        for body in eqn.params.subjaxprs(aside=False):
            yield from runs_of(body, inner)


@define(eq=False, repr=False)
class Tally(ReprMixin):
    """What is added up for a line."""

    flops: float = 0.0
    narrow: float = 0.0
    reasons: dict[str, None] = field(factory=dict)


def reported(plan: Narrowing, jaxpr: Jaxpr) -> NarrowReport:
    """What the plan makes of a program."""
    tallies: dict[Place, Tally] = {}
    total = 0.0
    for eqn, times in runs_of(jaxpr):
        ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        symbolic = any([aval.symbolic for aval in (*ins, *outs)])
        flops = 0.0 if symbolic else times * (flops_of(eqn, ins, outs) or 0.0)
        total += flops
        if traits_of(eqn.primitive).accumulate is None:
            continue
        tally = tallies.setdefault(place_of(eqn.source), Tally())
        tally.flops += flops
        if plan.product(eqn) is not None:
            tally.narrow += flops
        else:
            tally.reasons[reason_of(plan, eqn)] = None
    lines = [
        NarrowLine(file, line, tally.flops, tally.narrow, ", ".join(tally.reasons))
        for (file, line), tally in tallies.items()
    ]
    made = narrowed(plan, jaxpr)
    return NarrowReport(
        plan.to,
        total,
        sum([tally.narrow for tally in tallies.values()]),
        casts_in(plan, made),
        product_bytes(jaxpr),
        product_bytes(made),
        tuple(sorted(lines, key=lambda one: -one.flops)),
    )


def reason_of(plan: Narrowing, eqn: Eqn) -> str:
    """Why a product stays wide."""
    suits = all([plan.suits(a.aval) for a in eqn.invars])
    if not suits or not any([plan.narrows(a.aval) for a in eqn.invars]):
        return OTHER
    if plan.is_sum(eqn):
        return SUM
    if plan.kept(eqn):
        return KEPT
    if plan.lines is not None and place_of(eqn.source) not in plan.lines:
        return LOSES
    return ASKED


def product_bytes(jaxpr: Jaxpr) -> float:
    """The bytes that products read and write."""
    return sum(
        [
            times * bytes_moved(eqn)
            for eqn, times in runs_of(jaxpr)
            if traits_of(eqn.primitive).accumulate is not None
        ]
    )


def casts_in(plan: Narrowing, jaxpr: Jaxpr) -> int:
    """The conversions of wide values to the narrow type, in programs inside too."""
    return sum(
        [
            eqn.primitive is convert_element_type_p
            and eqn.outvars[0].aval.dtype == plan.to
            and plan.narrows(eqn.invars[0].aval)
            for _, eqn in walk(jaxpr)
        ]
    )
