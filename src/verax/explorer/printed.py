"""What `python -m verax explore` prints, as JSON (floor 6).

One idea: a report is one object that says its kind and its version; numbers are
numbers, and NaN and infinities, which JSON does not have, are strings::

    {"kind": "costs", "version": 1, "name": "loss", ..., "lines": [...]}
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from attrs import AttrsInstance, fields

from verax.api.inspect.watching import Watched, WatchedValue
from verax.explorer.costing import CostReport, Costs
from verax.explorer.exploration import Exploration
from verax.explorer.formulas import CostFormulas
from verax.explorer.recording import Json

VERSION: Final = 1
"""Of the objects: it changes when an entry goes or gets another meaning."""
type Report = Exploration | Costs | Watched


def printed(report: Report) -> str:
    """A report as a line of JSON.

    >>> import verax, verax.numpy as vnp
    >>> report = verax.debug.costs(vnp.sin, device="h100")(vnp.ones(1000))
    >>> printed(report)[:58]
    '{"kind": "costs", "version": 1, "name": "sin", "device": {'
    """
    if isinstance(report, Exploration):
        kind, content = "exploration", {"document": report.document}
    elif isinstance(report, CostReport):
        kind, content = "costs", costs_of(report)
    elif isinstance(report, CostFormulas):
        kind, content = "formulas", formulas_of(report)
    elif isinstance(report, Watched):
        kind, content = "watched", watched_of(report)
    else:
        raise TypeError(f"{type(report).__name__} is not printed")
    return json.dumps(plain({"kind": kind, "version": VERSION} | content))


def costs_of(report: CostReport) -> dict[str, Any]:
    """The sums, and the lines, the most expensive first."""
    return {
        "name": report.name,
        "device": entries(report.device),
        "devices": report.devices,
        "flops": report.flops,
        "bytes": report.bytes,
        "time": report.time,
        "lines": [
            entries(line) | {"intensity": line.intensity} for line in report.lines
        ],
    }


def formulas_of(report: CostFormulas) -> dict[str, Any]:
    """The sums, and the lines, as texts."""
    names = ("file", "line", "function", "code", "kind", "notes")
    return {
        "name": report.name,
        "device": entries(report.device),
        "flops": str(report.flops),
        "bytes": str(report.bytes),
        "lines": [
            {name: getattr(line, name) for name in names}
            | {"flops": str(line.flops), "bytes": str(line.bytes)}
            for line in report.lines
        ],
    }


def watched_of(report: Watched) -> dict[str, Any]:
    """The values in the order of the program."""
    return {"name": report.name, "values": [value_of(v) for v in report.values]}


def value_of(value: WatchedValue) -> dict[str, object]:
    """A watched value; its exponents are those that occur."""
    some = {str(e): x for e, x in enumerate(value.exponents) if x}
    return entries(value) | {
        "exponents": some,
        "courses": [entries(course) for course in value.courses],
        "notes": value.notes,
    }


def entries(record: AttrsInstance) -> dict[str, Any]:
    """The attributes of a record by name."""
    return {f.name: getattr(record, f.name) for f in fields(type(record))}


def plain(x: object) -> Json:
    """The same in types that JSON has.

    >>> plain({"x": np.float32(0.5), "y": np.arange(2), "z": [np.nan, -np.inf, None]})
    {'x': 0.5, 'y': [0, 1], 'z': ['NaN', '-Infinity', None]}
    """
    if isinstance(x, np.ndarray | np.generic):
        x = x.tolist()
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    if x is None or isinstance(x, str | bool | int | float):
        return x
    if isinstance(x, Mapping):
        return {str(name): plain(value) for name, value in x.items()}
    if isinstance(x, Sequence):
        return [plain(value) for value in x]
    raise TypeError(f"{type(x).__name__} has no form in JSON")
