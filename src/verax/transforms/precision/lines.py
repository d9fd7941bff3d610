"""Floor 3: what was measured, put together for each line of the user's.

One idea: a line has lost what its last value has lost against those that came in; the
equation of it that has lost most says why, and what to write instead::

    lines_of(walk.root)         # the worst first
"""

from collections.abc import Iterable, Sequence
from math import log10
from typing import Final

from attrs import define, field, frozen

from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.reports.lines import AtLine
from verax.transforms.precision.measures import roundoff
from verax.transforms.precision.remedies import Forms, Remedy
from verax.transforms.precision.sites import Body, Kind, Line, Site

ALARM: Final = 2.0
"""So many digits lost are worth a look; of short types, half of those there are."""
LITTLE: Final = 0.3
"""Fewer digits than this are not lost but rounded."""
FEW: Final = 4
"""An error of so many roundings is one of its own, not of a single rounding."""
REPAIRED: Final = 0.5


@frozen(eq=False, repr=False)
class PrecisionEquation(ReprMixin):
    """An equation and its errors, in all of its runs.

    `error` and `mean` are the relative errors of its results so far: of the worst
    element in the worst run, and the mean. `local_error` and `local_mean` are those
    that the equation makes by itself, on its actual operands. `lost` are the digits by
    which a run has made errors grow, at most, and `drift` those that all runs of a loop
    have lost together; `iteration` is the worst run, in the loops around from the
    outermost in. `cancelled` are the digits by which a sum is smaller than its terms.
    Elements that overflow, become 0 or denormal, or NaN, are counted; `absorbed` are
    terms that a sum does not show, `decisions` what exact arithmetic decides otherwise.
    `effect` is what its rounding does to the loss at most, 0 without `gradient=True`.

    >>> import verax, verax.numpy as vnp
    >>> report = verax.debug.precision(lambda x: vnp.log(1 + x))(1e-9)
    >>> [(e.primitive, round(e.lost)) for e in report.worst.equations]
    [('add', 0), ('log', 7)]
    """

    __module__ = "verax.debug"

    eqn: Eqn
    levels: tuple[Eqn, ...]
    runs: int
    error: float
    mean: float
    local_error: float
    local_mean: float
    lost: float
    drift: float
    iteration: tuple[int, ...]
    cancelled: float
    overflow: int
    underflow: int
    subnormal: int
    nans: int
    absorbed: int
    decisions: int
    effect: float

    @property
    def primitive(self) -> str:
        """The name of the operation."""
        return self.eqn.primitive.name

    def __repr__(self) -> str:
        return f"<PrecisionEquation: {self.eqn!r}, {self.lost:.1f} digits lost>"


@frozen(eq=False, repr=False)
class PrecisionLine(AtLine):
    """A line and its digits: how many it has `lost`, of those that its type has.

    What a line loses is by how much the errors of its results are larger than those of
    the values that came in. `reason` says in words why, `remedy` what to write instead,
    if that is known; `cause` is the equation that has lost most. `error` is the largest
    relative error of a value that leaves the line. Counts are those of all equations.

    >>> import verax
    >>> report = verax.debug.precision(lambda x: (x + 1) - x)(1e8 / 3)
    >>> report.worst.reason
    'x - y with x nearly y'
    """

    __module__ = "verax.debug"

    backward: bool
    dtype: str
    digits: float
    lost: float
    error: float
    mean: float
    reason: str
    remedy: Remedy | None
    cause: PrecisionEquation
    iteration: tuple[int, ...]
    effect: float
    equations: tuple[PrecisionEquation, ...]

    @property
    def alarm(self) -> bool:
        """Whether it loses two digits at least, or half of those of a short type."""
        return self.lost >= min(ALARM, self.digits / 2)

    @property
    def runs(self) -> int:
        """How often the equation that has lost most has run."""
        return self.cause.runs

    @property
    def overflow(self) -> int:
        """The elements that became infinite."""
        return sum([e.overflow for e in self.equations])

    @property
    def underflow(self) -> int:
        """The elements that became zero."""
        return sum([e.underflow for e in self.equations])

    @property
    def subnormal(self) -> int:
        """The elements that became too small to have all of their digits."""
        return sum([e.subnormal for e in self.equations])

    @property
    def nans(self) -> int:
        """The elements that became NaN."""
        return sum([e.nans for e in self.equations])

    @property
    def decisions(self) -> int:
        """The comparisons, choices and orders that exact arithmetic has otherwise."""
        return sum([e.decisions for e in self.equations])

    @property
    def local_error(self) -> float:
        """The largest error that an equation of the line makes by itself."""
        return max([e.local_error for e in self.equations])

    @property
    def cancelled(self) -> float:
        """The digits by which a sum is smaller than its terms, at most."""
        return max([e.cancelled for e in self.equations])

    def __str__(self) -> str:
        """What is lost, and why, in words."""
        text = f"line {self.line} loses {self.lost:.1f} digits of {self.digits:.1f}"
        if self.lost < LITTLE:
            text = f"line {self.line} loses no digits"
        if self.reason:
            text += f": {self.reason}"
        return f"{text}; write {self.remedy}" if self.remedy else text

    def __repr__(self) -> str:
        return f"<PrecisionLine: {self}>"


@define(eq=False, repr=False)
class Gathered(ReprMixin):
    """The sites of a line, each with the program that it stands in."""

    sites: list[tuple[Jaxpr, Site]] = field(factory=list)


def lines_of(root: Body) -> list[PrecisionLine]:
    """What was measured at each line, the most digits lost first."""
    groups: dict[tuple[Line, bool], Gathered] = {}
    for jaxpr, site in sites_in(root):
        if (site.runs and not site.opened) or site.decisions:
            key = site.line, site.source.backward
            groups.setdefault(key, Gathered()).sites.append((jaxpr, site))
    forms: dict[int, Forms] = {}
    lines = []
    for gathered in groups.values():
        if any(has_digits(site) for _, site in gathered.sites):
            lines.append(line_of(gathered.sites, forms))
    return sorted(lines, key=lambda line: -round(line.lost, 2))


def sites_in(body: Body) -> Iterable[tuple[Jaxpr, Site]]:
    """All sites, each with the program that it stands in, in order."""
    for number, site in enumerate(body.sites):
        yield body.jaxpr, site
        for (place, _), inner in body.inner.items():
            if place == number:
                yield from sites_in(inner)


def has_digits(site: Site) -> bool:
    """Whether an equation has to do with floats."""
    return site.dtype is not None or site.decisions > 0


def line_of(
    sites: Sequence[tuple[Jaxpr, Site]], forms: dict[int, Forms]
) -> PrecisionLine:
    """What was measured at a line."""
    own = [site for _, site in sites]
    last = max(own, key=importance)
    lost = max(last.line_lost if last.leaves else 0.0, last.drift)
    jaxpr, cause = blamed(sites, last)
    kind = cause.dtype if cause.dtype is not None else last.dtype
    if kind is None:
        kind = next((s.dtype for s in own if s.dtype is not None), None)
    remedy = None
    if lost >= REPAIRED:
        remedy = remedy_of(sites, jaxpr, cause, forms)
    source = cause.source
    leaving = [s for s in own if s.leaves] or own
    at = last.line_at or cause.lost_at or cause.worst_at
    return PrecisionLine(
        source.file,
        source.line,
        source.function,
        source.text,
        source.backward,
        "" if kind is None else str(kind),
        0.0 if kind is None else -log10(max(cause.coarse, roundoff(kind))),
        lost,
        max([s.worst.worst for s in leaving]),
        max([s.total / max(s.runs, 1) for s in leaving]),
        reason_of(cause, own, lost),
        remedy,
        equation_of(cause),
        at,
        sum([s.effect for s in own]),
        tuple([equation_of(s) for s in own]),
    )


def importance(site: Site) -> tuple[float, bool, float]:
    """What makes a site the one that stands for its line, in this order."""
    lost = max(site.line_lost if site.leaves else 0.0, site.drift)
    return lost, site.leaves and site.dtype is not None, site.worst.mean


def blamed(sites: Sequence[tuple[Jaxpr, Site]], last: Site) -> tuple[Jaxpr, Site]:
    """The equation of a line that has lost most; of a loop, all runs together."""
    if last.drift > LITTLE and last.drift >= max([s.lost for _, s in sites]):
        return max(sites, key=lambda pair: pair[1].drift)
    worst = max(sites, key=lambda pair: pair[1].lost)
    if worst[1].lost >= LITTLE:
        return worst
    wrong = [pair for pair in sites if pair[1].decisions]
    if wrong:
        return wrong[0]
    return next(pair for pair in sites if pair[1] is last)


def equation_of(site: Site) -> PrecisionEquation:
    """What a site has added up, as a value."""
    runs = max(site.runs, 1)
    return PrecisionEquation(
        site.eqn,
        site.levels,
        site.runs,
        site.worst.worst,
        site.total / runs,
        site.local.worst,
        site.local_total / runs,
        site.lost,
        site.drift,
        site.lost_at if site.lost >= LITTLE else site.worst_at,
        site.cancelled,
        site.overflow,
        site.underflow,
        site.subnormal,
        site.nans,
        site.absorbed,
        site.decisions,
        site.effect,
    )


# -----------------------------------------------------------------------------
# Why, and what to do.


def reason_of(cause: Site, sites: Sequence[Site], lost: float) -> str:
    """Why a line loses digits, in words; what else happened, where it loses none."""
    decided = sum([s.decisions for s in sites])
    other = ""
    if decided:
        word = "decision" if decided == 1 else "decisions"
        other = f"exact arithmetic has {decided} {word} otherwise"
    if lost < LITTLE:
        return other
    before = [accident_of(s, 0.0) for s in sites if s is not cause]
    texts = [cause_of(cause, lost), *dict.fromkeys(before), other]
    return ", ".join([text for text in texts if text])


def cause_of(site: Site, lost: float) -> str:
    """Why an equation loses digits, in words."""
    text = accident_of(site) or growth_of(site) or cancelled_by(site)
    if text:
        return text
    name, kind = site.name, str(site.dtype)
    if rounds(site):
        terms = site.terms
        many = f" adds up {terms:,} terms" if terms > 1 else " rounds"
        return f"{name}{many} in {kind}"
    if name == "select_n":
        return "select_n takes another case than in exact arithmetic"
    return f"{name} makes the error of its operand {10**lost:.2g} times larger"


def rounds(site: Site) -> bool:
    """Whether an equation makes larger errors by itself than one rounding does."""
    return site.local_total / max(site.runs, 1) > FEW * site.unit


def accident_of(site: Site, least: float = FEW) -> str:
    """The end of a range that was met, in words; with an error of some roundings."""
    name, kind = site.name, str(site.dtype)
    if site.overflow:
        return f"{name} overflows {kind}"
    if site.nans:
        return f"{name} makes NaN"
    if site.local.worst <= least * site.unit:
        return ""
    if site.underflow:
        return f"{name} is too small for {kind}, and becomes 0"
    if site.subnormal:
        return f"{name} is too small for {kind} to have all of its digits"
    return ""


def growth_of(site: Site) -> str:
    """The growth of errors from one run to the next, in words."""
    if site.drift >= max(site.lost, LITTLE):
        count = max(site.drift_runs, site.runs)
    elif site.turning and site.runs > 1 and site.line_lost > site.lost + LITTLE:
        count = site.runs
    else:
        return ""
    return f"the errors of {site.name} add up over {count:,} runs"


def cancelled_by(site: Site) -> str:
    """What cancels in a sum or a difference, in words."""
    if site.cancelled < LITTLE:
        return ""
    if site.kind is Kind.SUM:
        return "" if rounds(site) else "a sum of terms that cancel"
    words = {"sub": "x - y with x nearly y", "add": "x + y with x nearly -y"}
    return words.get(site.name, "")


def remedy_of(
    sites: Sequence[tuple[Jaxpr, Site]],
    jaxpr: Jaxpr,
    cause: Site,
    forms: dict[int, Forms],
) -> Remedy | None:
    """What to write instead of a line: by its worst equation, or by another of it."""
    pairs = [(jaxpr, cause)]
    pairs += sorted(sites, key=lambda pair: -pair[1].lost)
    for program, site in pairs:
        if id(program) not in forms:
            forms[id(program)] = Forms(program)
        remedy = forms[id(program)].remedy(site.eqn)
        if remedy is not None:
            return remedy
    drifting = cause.drift >= LITTLE or (cause.turning and cause.runs > 1)
    if drifting and cause.kind is Kind.DIFFERENCE:
        around = cause.levels[-1].primitive.name if cause.levels else ""
        return Remedy(
            "a sum that carries what was rounded off (Kahan), a wider carry, or n * x "
            "in place of n additions",
            "sum_in_a_while" if around == "while" else "sum_in_a_loop",
        )
    if cause.name == "convert_element_type" and is_inexact(
        cause.eqn.invars[0].aval.dtype
    ):
        return Remedy("the values in their wider type until here")
    return None
