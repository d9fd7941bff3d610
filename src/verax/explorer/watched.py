"""The values of a run, for the rows of the page (floor 6).

The program that is shown is written again so that it measures itself; each measure has
the source, and so the mark, of the row that it is of::

    watched_rows("loss", record.marked, leaves)
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from verax.api.inspect.watching import LoopCourse, Watched, WatchedValue
from verax.api.jit import jit
from verax.api.tracing.apply import apply
from verax.explorer.recording import Json, WatchNote
from verax.explorer.rows.row import Mark, Row, mark_of
from verax.ir.jaxpr import Jaxpr, Source
from verax.rules.values.state import changing
from verax.transforms.watching import watch

MOST: Final = 60
"""Equations up to which each is measured; of more, those whose results leave a line."""
PARTS: Final = 1000
"""Into so many parts a histogram divides the elements."""


def watched_note(
    name: str,
    jaxpr: Jaxpr,
    leaves: Sequence[object],
    stage: int,
    rows: Sequence[Row],
) -> WatchNote:
    """Run a marked program, of which these are the rows, and note their values."""
    every = len(rows) <= MOST
    made = watch(jaxpr, every)

    def measuring(*operands: object) -> list[object]:
        return list(apply(made.jaxpr, operands))

    # The program runs once, so its machine code need not be good.
    once = {"enable_compilation_cache": False, "compile_effort": "fast"}
    with changing(once):
        outs = jit(measuring)(*leaves)
    seen = Watched(name, outs[len(jaxpr.outvars) :], made.sites, made.courses)
    values = [value_json(value) for value in seen.measured]
    return WatchNote(stage, places(rows, made.sites), values, every)


class Sourced(Protocol):
    """What was measured of an equation."""

    @property
    def source(self) -> Source:
        """The source of the equation."""
        ...


def places(rows: Sequence[Row], sites: Sequence[Sourced]) -> dict[int, Sequence[int]]:
    """The sites of each row, by the marks of both.

    Equal programs share their marks, so the rows of a mark share its sites, in order.
    """
    by_mark: dict[Mark, list[int]] = {}
    for number, site in enumerate(sites):
        if (mark := mark_of(site.source)) is not None:
            by_mark.setdefault(mark, []).append(number)
    marked: dict[Mark, list[int]] = {}
    for number, row in enumerate(rows):
        if row.mark in by_mark:
            marked.setdefault(row.mark, []).append(number)
    out: dict[int, Sequence[int]] = {}
    for mark, numbers in marked.items():
        own = by_mark[mark]
        each, rest = divmod(len(own), len(numbers))
        for i, number in enumerate(numbers):
            part = own[i * each : (i + 1) * each]
            out[number] = own if rest or not each else part
    return out


def value_json(value: WatchedValue) -> Mapping[str, Json]:
    """A value as the page reads it."""
    parts = np.round(value.exponents * PARTS).astype(int)
    parts[(parts == 0) & (value.exponents > 0)] = 1
    some = np.flatnonzero(parts)
    first = int(some[0]) if some.size else 0
    bins = parts[first : some[-1] + 1].tolist() if some.size else []
    return {
        "op": value.primitive,
        "type": value.type,
        "back": value.kind == "cotangent",
        "runs": value.runs,
        "least": rounded(value.least),
        "greatest": rounded(value.greatest),
        "mean": rounded(value.mean),
        "std": rounded(value.std),
        "zeros": rounded(value.zeros),
        "nans": value.nans,
        "infinite": value.infinite,
        "first": first,
        "bins": bins,
        "notes": value.notes,
        "courses": [course_json(course) for course in value.courses],
    }


def course_json(course: LoopCourse) -> dict[str, Json]:
    """The course of a loop as the page reads it."""
    lines = ("least", "greatest", "mean", "std")
    columns: dict[str, Json] = {
        name: [rounded(x) for x in getattr(course, name)] for name in lines
    }
    place = course.loop.partition(", by ")[0].replace("\\", "/").rpartition("/")[2]
    at = course.iterations.tolist()
    return {"loop": place, "at": at, **columns, "nans": course.nans.tolist()}


def rounded(x: float) -> float | None:
    """A number with four digits; None for what JSON does not have."""
    return float(f"{float(x):.4g}") if np.isfinite(x) else None
