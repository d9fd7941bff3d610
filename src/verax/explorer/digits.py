"""Where a run's digits go, for the rows and lines of the page (floor 6).

The program that is shown runs beside a shadow; each equation has the source, and so the
mark, of its row::

    digits_note(record.marked, leaves, level, rows)
"""

from collections.abc import Mapping, Sequence

import numpy as np

from verax.api.inspect.precision import arithmetic_for
from verax.api.tracing.apply import ENGINE
from verax.backend.eager.interpreter import host_of
from verax.explorer.recording import DigitsNote, Json
from verax.explorer.rows.row import Row
from verax.explorer.watched import places, rounded
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.callbacks import silenced
from verax.transforms.engine.engine import as_typed
from verax.transforms.precision.lines import (
    PrecisionLine,
    has_digits,
    lines_of,
    sites_in,
)
from verax.transforms.precision.sites import Site
from verax.transforms.precision.walking import Walk


def digits_note(
    jaxpr: Jaxpr, leaves: Sequence[object], stage: int, rows: Sequence[Row]
) -> DigitsNote:
    """Run a marked program, of which these are the rows, and note what it loses."""
    program = silenced(jaxpr)
    values = [
        as_typed(host_of(x), v.aval)
        for x, v in zip(leaves, program.invars, strict=True)
    ]
    walk = Walk(ENGINE, arithmetic_for(program, None))
    with np.errstate(all="ignore"):
        walk.run(program, values)
    assert walk.root is not None, "it has run"
    sites = [site for _, site in sites_in(walk.root) if has_digits(site)]
    lines = [(each.file, each.line, line_json(each)) for each in lines_of(walk.root)]
    return DigitsNote(stage, places(rows, sites), list(map(site_json, sites)), lines)


def site_json(site: Site) -> Mapping[str, Json]:
    """What an equation loses, as the page reads it."""
    return {
        "op": site.name,
        "back": site.source.backward,
        "runs": site.runs,
        "lost": rounded(site.lost),
        "of": rounded(-np.log10(site.unit)) if site.unit else None,
        "error": rounded(site.worst.worst),
        "own": rounded(site.local.worst),
        "cancels": rounded(site.cancelled),
        "decisions": site.decisions,
    }


def line_json(line: PrecisionLine) -> Mapping[str, Json]:
    """What a line loses, as the page reads it."""
    remedy = "" if line.remedy is None else str(line.remedy)
    return {
        "back": line.backward,
        "lost": rounded(line.lost),
        "of": rounded(line.digits),
        "error": rounded(line.error),
        "reason": line.reason,
        "remedy": remedy,
        "alarm": line.alarm,
        "decisions": line.decisions,
    }
