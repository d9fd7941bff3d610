"""The memory of the whole program, for the page of `verax.explore`.

One idea: the page shows one curve over the program, with the line of each point; of a
function within a budget, that without the budget behind it::

    note = memory_note(function, stage, args, kwargs)
"""

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from verax.api.jit import PjitFunction
from verax.api.stages.stages import Traced
from verax.explorer.exploration import of_arrays
from verax.explorer.memory.measuring import Taken
from verax.explorer.recording import MemoryNote, Moment

POINTS: Final = 160
"""The most points of a curve."""


def memory_note(
    function: PjitFunction[..., object],
    stage: Traced,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> MemoryNote | None:
    """The curve of a traced call; None where sizes are symbols or nothing is kept."""
    if any([aval.symbolic for aval in stage.traced.jaxpr.in_avals]):
        return None
    after = curve_of(stage)
    if not any([count for _, _, count in after]):
        return None
    settings = function.settings
    if settings.memory is None:
        return MemoryNote(after, None)
    plain = PjitFunction(function.fun, evolve(settings, memory=None))
    return MemoryNote(after, curve_of(plain.trace(*args, **kwargs)))


def curve_of(stage: Traced) -> list[Moment]:
    """The bytes over the steps of a program."""
    stage = of_arrays(stage)
    curve = Taken("", stage, measure=False).report(stage.traced.jaxpr).curve
    group = -(-len(curve) // POINTS) or 1
    points = [
        max(curve[i : i + group], key=lambda point: point.bytes)
        for i in range(0, len(curve), group)
    ]
    return [(one.place.file, one.place.line, one.bytes) for one in points]
