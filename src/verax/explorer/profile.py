"""Measured times of a compiled program, brought back to the user's lines (floor 6).

The runtime records how long each instruction of the compiled program takes; an
instruction that came from several rows of the stage before gives each an equal share,
and so on, back to what was traced::

    note = profiled(explored, leaves, donated)      # fills `time` of the rows
"""

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np

from verax.backend.programs.program import Program
from verax.backend.runtime.profiling import (
    ProfileData,
    ProfileEvent,
    ProfileLine,
    ProfileOptions,
    ProfilePlane,
    ProfileSession,
)
from verax.explorer.document import ProfileNote, Stage
from verax.explorer.rows.row import Row

FEW, MANY = 3, 50
"""The least and the most runs of a measurement."""
LONG: Final = 0.5
"""Seconds that the runs may take together, if there are more than a few."""
SHARES: Final = (
    "seconds per run; where the compiler has joined operations, each row that they "
    "came from has an equal share"
)


DEVICES: Final = "/device:"
"""The start of the names of planes on which devices report what they ran."""
STREAM: Final = "Stream"
HLO_OP: Final = "hlo_op"


def profiled(
    stages: Sequence[Stage],
    program: Program,
    instructions: Mapping[str, int],
    leaves: Sequence[object],
) -> ProfileNote:
    """Run a program several times and fill in how long its rows take.

    Raises:
        TypeError: an argument has no value.
        RuntimeError: something is being recorded already.
    """
    run = runner(program, leaves)
    run()  # what happens only once is not measured
    started = time.perf_counter()
    run()
    once = time.perf_counter() - started
    runs = min(MANY, max(FEW, int(LONG / max(once, 1e-6))))
    options = ProfileOptions()
    options.python_tracer_level = 0
    with ProfileSession(profiler_options=options) as session:
        started = time.perf_counter()
        for _ in range(runs):
            run()
        spent = time.perf_counter() - started
    assert session.profile_data is not None
    fill_times(stages, seconds_of(session.profile_data, instructions, runs))
    return ProfileNote(runs, spent / runs, SHARES)


def runner(program: Program, leaves: Sequence[object]) -> Callable[[], None]:
    """A function that runs a program once on these arguments, which it may use up."""
    used = program.lowered.donated
    # A donated argument comes from the host, so that each run has its own.
    args: list[Any] = [
        np.array(leaf) if i in used else leaf for i, leaf in enumerate(leaves)
    ]

    def run() -> None:
        for out in program.run(args):
            out.block_until_ready()

    return run


def seconds_of(
    data: ProfileData, instructions: Mapping[str, int], runs: int
) -> dict[int, float]:
    """The seconds of each row of the compiled program, per run.

    Where a device reports what it ran itself, the host only says when it was launched.
    """
    with warnings.catch_warnings():
        # What jaxlib warns of at the first event ends the process if it is an error.
        warnings.simplefilter("ignore", DeprecationWarning)
        planes = list(data.planes)
        devices = [plane for plane in planes if plane.name.startswith(DEVICES)]
        measured = sum_by_row(devices, instruction_of_kernel, instructions, runs)
        return measured or sum_by_row(planes, attrgetter("name"), instructions, runs)


def sum_by_row(
    planes: Sequence[ProfilePlane],
    name: Callable[[ProfileEvent], str],
    instructions: Mapping[str, int],
    runs: int,
) -> dict[int, float]:
    """The seconds of each row per run, of events that are named by `name`."""
    found: dict[int, float] = defaultdict(float)
    for plane in planes:
        for line in own_lines(plane):
            for event in line.events:
                row = instructions.get(name(event))
                if row is not None:
                    found[row] += event.duration_ns / 1e9 / runs
    return found


def own_lines(plane: ProfilePlane) -> Sequence[ProfileLine]:
    """The lines of a plane that were recorded: of a GPU, those of its streams.

    Tools add others, which say the same by modules and by steps.
    """
    lines = list(plane.lines)
    return [line for line in lines if line.name.startswith(STREAM)] or lines


def instruction_of_kernel(event: ProfileEvent) -> str:
    """The instruction for which a kernel ran, which may have another name."""
    for key, value in event.stats:
        if key == HLO_OP:
            return str(value)
    return event.name


def fill_times(stages: Sequence[Stage], seconds: Mapping[int, float]) -> None:
    """Fill in the times of all stages from those of the last one."""
    last = stages[-1].rows
    own = dict(seconds)
    for row, children in inner_rows(last).items():
        if row in own:  # the time of a loop holds that of its body
            inside = sum([own.get(child, 0.0) for child in children])
            own[row] = max(0.0, own[row] - inside)
    for stage in reversed(stages):
        write_times(stage.rows, own)
        own = shared_times(stage.rows, own)


def inner_rows(rows: Sequence[Row]) -> dict[int, list[int]]:
    """For each row, all those inside it."""
    found: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        outer = row.inside
        while outer >= 0:
            found.setdefault(outer, []).append(number)
            outer = rows[outer].inside
    return found


def write_times(rows: Sequence[Row], own: Mapping[int, float]) -> None:
    """The time of each row, with that of what is inside it."""
    total: dict[int, float] = defaultdict(float)
    for number in reversed(range(len(rows))):
        spent = own.get(number, 0.0) + total[number]
        if spent:
            rows[number].time = spent
            total[rows[number].inside] += spent


def shared_times(rows: Sequence[Row], own: Mapping[int, float]) -> dict[int, float]:
    """The times of the rows of the stage before, by equal shares."""
    found: dict[int, float] = defaultdict(float)
    for number, spent in own.items():
        origins: Iterable[int] = rows[number].origins
        for origin in origins:
            found[origin] += spent / len(rows[number].origins)
    return found
