"""Floor 4: running a flagged program, compiled or interpreted, and what it found.

One idea: one run finds the equation, a second one of the part before it gives its
operands::

    outs, finding = search(engine, jaxpr, args, Kind.NAN, Run("f", names))
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from verax.backend.eager.interpreter import host_of
from verax.backend.eager.single_op import OPTIONS
from verax.backend.programs.program import compiled
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Engine
from verax.transforms.engine.evaluate import as_typed
from verax.transforms.nans.control_flow import NONE
from verax.transforms.nans.flags import Kind, flag, is_bad_value
from verax.transforms.nans.probe import is_reachable, place_of, probe, repeatable
from verax.transforms.nans.report import Finding


@frozen(eq=False, repr=False)
class Search(ReprMixin):
    """How a program is searched: names for the report, and what runs it."""

    name: str
    describe: Callable[[], Sequence[str]]
    compiled: bool = True


def search(
    engine: Engine, jaxpr: Jaxpr, args: Sequence[object], kind: Kind, how: Search
) -> tuple[list[np.ndarray], Finding | None]:
    """The outputs of a program, and where the first NaN or infinity was made.

    The finding is None if there is none, nor any in the inputs.
    """
    values = [
        as_typed(host_of(x), v.aval) for x, v in zip(args, jaxpr.invars, strict=True)
    ]
    outs = run(engine, flag(jaxpr, kind), values, how)
    count = len(jaxpr.outvars)
    site, *steps = map(int, outs[count:])
    bad = [
        text
        for text, x, v in zip(how.describe(), values, jaxpr.invars, strict=False)
        if is_inexact(v.aval.dtype) and is_bad_value(x, kind)
    ]
    if site == NONE:
        found = None
        if bad:
            name = name_of(kind, values)
            found = Finding(how.name, name, None, None, None, tuple(bad))
        return outs[:count], found
    place = place_of(jaxpr, site, steps)
    operands = results = None
    if repeatable(jaxpr) and is_reachable(place):
        both = run(engine, probe(engine, jaxpr, place), values, how)
        given = len(place.eqn.invars)
        operands, results = tuple(both[:given]), tuple(both[given:])
    name = name_of(kind, results or ())
    return outs[:count], Finding(how.name, name, place, operands, results, tuple(bad))


def run(
    engine: Engine, jaxpr: Jaxpr, values: Sequence[np.ndarray], how: Search
) -> list[np.ndarray]:
    """The outputs of a program, as NumPy arrays."""
    if not how.compiled:
        return list(map(np.asarray, engine.evaluate(jaxpr, values)))
    outs = compiled(engine, jaxpr, how.name, OPTIONS).run(values)
    return [host_of(x) for x in outs]


def name_of(kind: Kind, values: Sequence[np.ndarray]) -> str:
    """Which of the two kinds the values have, if both were looked for."""
    if kind is not Kind.EITHER:
        return str(kind.value)
    inexact = [x for x in values if x.dtype.kind not in "biu"]
    nan = any(is_bad_value(x, Kind.NAN) for x in inexact)
    return str((Kind.NAN if nan or not inexact else Kind.INFINITY).value)
