"""Floor 3: what one run of an equation shows, added to its site."""

from collections.abc import Sequence
from math import log10
from typing import Final, Protocol

import numpy as np
from attrs import frozen

from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray
from verax.transforms.precision.arithmetic import Arithmetic, Wide
from verax.transforms.precision.measures import (
    EXACT,
    LEAST,
    RelativeError,
    Yardstick,
    accidents,
    cancellation,
    grown,
    is_finite,
    sampled,
    sizes_of,
    stride,
    yardstick,
)
from verax.transforms.precision.sites import Cell, Kind, Site

NOISE: Final = 13.0
"""A sum in float64 that is smaller than its terms by so many digits is 0."""


type Chosen = int | tuple[slice, ...]
"""Which elements of a result: every so many, or what an index picks."""


class Walking(Protocol):
    """A walk, as far as it is needed here."""

    arithmetic: Arithmetic
    steps: list[int]


@frozen(eq=False, repr=False)
class Due(ReprMixin):
    """What exact arithmetic makes of actual operands: all elements, or those `chosen`.

    If it is the `whole` shadow, the operands were exact.
    """

    values: list[Wide]
    chosen: Chosen = 1
    whole: bool = False


def note_result(
    walk: Walking,
    site: Site,
    cells: Sequence[Cell],
    both: tuple[NDArray, Wide],
    due: Due | None,
    number: int,
) -> Cell:
    """The cell of a result; what it shows is added to the site.

    `both` are the result and its shadow. Without `due` there is no error of its own.
    """
    out, shadow = both
    step = step_of(out, due)
    wide = walk.arithmetic.widen(sampled(out, step))
    exact = sampled(shadow, step)
    known = yardstick(wide, exact)
    error = known.error(exact)
    own = EXACT
    if due is not None:
        own, asked = error, exact
        if not due.whole:
            wide, asked, known = against_due(
                walk, out, step, (wide, known), due, number
            )
            own = known.error(asked)
        if own.worst or not known.finite:
            site.count(accidents(wide, asked, site.limit), out.size / wide.size)
    if step == 1 and not known.finite:
        error = beyond(site, cells, out, error)
    before, entry = errors_before(site, cells)
    if site.moving and not misled(cells):
        entry = entry * max(1.0, error.mean / before) if before else entry
        before = max(before, error.mean)
    terms = terms_before(site, cells)
    noise = False
    if site.kind is not Kind.OTHER:
        note_cancellation(site, cells, out, terms)
        noise = error.worst > 0 and cancellation(terms, exact) >= NOISE
        if noise:
            before, entry = max(before, error.mean), max(entry, error.mean)
    unit = unit_of(site, cells)
    note(site, (error, own), (before, entry), unit, walk.steps)
    same = error is EXACT and step == 1
    return Cell(
        out,
        None if same else shadow,
        error,
        entry,
        site.line,
        terms=terms,
        noise=noise,
        unit=unit,
    )


def step_of(out: NDArray, due: Due | None) -> int:
    """Every so many elements of a result are looked at: all where some are infinite."""
    step = stride(out.size)
    known_finite = due is not None and due.chosen != 1
    return step if step == 1 or known_finite or is_finite(out) else 1


def against_due(
    walk: Walking,
    out: NDArray,
    step: int,
    seen: tuple[Wide, Yardstick],
    due: Due,
    number: int,
) -> tuple[Wide, Wide, Yardstick]:
    """Elements of a result, what they should be, and the yardstick of both.

    `seen` are every `step`-th element and its yardstick, for where `due` has these.
    """
    wide, known = seen
    if isinstance(due.chosen, tuple):
        part, asked = picked(out, due.values[number], due.chosen)
        wide = walk.arithmetic.widen(part)
        return wide, asked, yardstick(wide, asked)
    asked = due.values[number]
    return wide, asked if due.chosen > 1 else sampled(asked, step), known


def beyond(
    site: Site, cells: Sequence[Cell], out: NDArray, error: RelativeError
) -> RelativeError:
    """The error of a result, where it is infinite in wide arithmetic as well.

    What overflows in both, such as exp(1000), has lost its digits all the same, and so
    has what comes of it; what is infinite by its meaning, such as log(0), has not. NaN
    that are made are lost, too.
    """
    infinite, nans = np.isinf(out), np.isnan(out)
    for c in cells:
        x = c.actual
        fit = site.elementwise and (x.size == 1 or x.shape == out.shape)
        if x.dtype.kind in "biu":
            continue
        poles = (x == 0) | (x == 1) | (x == -1)
        usable = np.isfinite(x) & (~poles if site.elementwise else True)
        infinite = infinite & (usable if fit else bool(np.isfinite(x).all()))
        nans = nans & (~np.isnan(x) if fit else not np.isnan(x).any())
    site.overflow = max(site.overflow, int(np.count_nonzero(infinite)))
    site.nans = max(site.nans, int(np.count_nonzero(nans)))
    wrong = infinite | nans
    if any([c.error.worst >= 1 for c in cells]):
        wrong = ~np.isfinite(out)
    count = int(np.count_nonzero(wrong))
    if not count:
        return error
    return RelativeError(1.0, max(error.mean, count / out.size))


def note_order(
    walk: Walking, site: Site, cell: Cell, out: NDArray, shadow: Wide
) -> Cell:
    """The cell of a result that has the elements of an operand in another order."""
    error = cell.error
    entry = cell.entry if cell.line == site.line else error.mean
    unit = unit_of(site, (cell,))
    note(site, (error, EXACT), (error.mean, entry), unit, walk.steps)
    places = (shadow, error, entry, site.line)
    return Cell(out, *places, terms=cell.terms, noise=cell.noise, unit=unit)


def picked(out: NDArray, due: Wide, chosen: tuple[slice, ...]) -> tuple[NDArray, Wide]:
    """The elements of a result that were computed again, and what they should be."""
    part = out[chosen]
    step = stride(part.size)
    return sampled(part, step), sampled(due, step)


def misled(cells: Sequence[Cell]) -> bool:
    """Whether an operand without digits is not as the shadow has it."""
    return any([c.shadow is not None and c.actual.dtype.kind in "biu" for c in cells])


def errors_before(site: Site, cells: Sequence[Cell]) -> tuple[float, float]:
    """The errors of the operands, and those with which the line began."""
    before = entry = 0.0
    for c in cells:
        mean = c.error.mean
        before = max(before, mean)
        entry = max(entry, c.entry if c.line == site.line else mean)
    return before, entry


def unit_of(site: Site, cells: Sequence[Cell]) -> float:
    """The roundoff of a result: of its type, or of a narrower one on its way."""
    known = [c.unit for c in cells if c.shadow is not None]
    return max(site.unit, *known) if known else site.unit


def note(
    site: Site,
    errors: tuple[RelativeError, RelativeError],
    given: tuple[float, float],
    unit: float,
    steps: Sequence[int],
) -> None:
    """Add a run to a site: the error so far and its own; those that were given."""
    error, own = errors
    before, entry = given
    site.coarse = max(site.coarse, unit)
    if error.worst > site.worst.worst or not site.worst_at:
        site.worst, site.worst_at = error, tuple(steps)
    if own.worst > site.local.worst:
        site.local = own
    site.total += error.mean
    site.local_total += own.mean
    lost = grown(before, error.mean, unit)
    if lost > site.lost:
        site.lost, site.lost_at = lost, tuple(steps)
    if site.leaves or site.turning:
        whole = grown(entry, error.mean, unit)
        if whole > site.line_lost:
            site.line_lost, site.line_at, site.entry = whole, tuple(steps), entry
    if site.turning:
        site.growth += log10(max(error.mean, unit, LEAST) / max(before, unit, LEAST))


def note_cancellation(
    site: Site, cells: Sequence[Cell], out: NDArray, terms: float
) -> None:
    """Add how much smaller a sum is than its terms, and what is lost of small ones."""
    values = [c.actual for c in cells]
    step = stride(out.size)
    result = sampled(out, step)
    site.cancelled = max(site.cancelled, cancellation(terms, result))
    if site.kind is Kind.DIFFERENCE and all(
        [x.shape == out.shape or x.size == 1 for x in values]
    ):
        left, right = [
            x.reshape(()) if x.size == 1 else sampled(x, step) for x in values
        ]
        site.absorbed += absorbed(left, right, result) * step


def terms_before(site: Site, cells: Sequence[Cell]) -> float:
    """The mean size of what a value is the sum of, through sums of sums.

    In wide arithmetic, too, a sum has no more digits than that leaves: if it is all
    rounding, it is 0 and has no digits to lose, as the term that compensates a sum, or
    a gradient that vanishes.
    """
    if site.kind is Kind.OTHER:
        return max([c.terms for c in cells], default=0.0) if site.moving else 0.0
    before = max([c.terms for c in cells])
    sizes = [mean_size(c.actual) for c in cells]
    if site.kind is Kind.DIFFERENCE:
        return max(before, sum(sizes))
    if site.kind is Kind.PRODUCT:
        return max(before, sizes[0] * sizes[1] * site.terms)
    return max(before, sizes[0]) * site.terms


def mean_size(x: NDArray) -> float:
    """The mean magnitude of the elements, of an even sample of many."""
    return float(sizes_of(sampled(x, stride(x.size))).mean()) if x.size else 0.0


def absorbed(left: NDArray, right: NDArray, result: NDArray) -> int:
    """How many elements of a sum are one of its terms, although the other is not 0."""
    same = (result == left) & (right != 0)
    whole = sizes_of(result) == sizes_of(right)
    return int(np.count_nonzero(same | (whole & (left != 0) & (right != 0))))


def note_decisions(site: Site, results: Sequence[Cell], steps: Sequence[int]) -> None:
    """Add how many decisions the shadow makes otherwise."""
    for cell, flag in zip(results, site.measured, strict=True):
        if not flag and cell.shadow is not None:
            count = int(np.count_nonzero(cell.actual != cell.shadow))
            if not site.decisions:
                site.lost_at = tuple(steps)
            site.decisions += count
