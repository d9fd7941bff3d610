"""The stages of a program, from its trace to what XLA compiles (floor 6).

What the recording of the trace has seen comes first, then what `jit` does to a program
before it is lowered, then the module and the compiled program::

    Pipeline(recording, stage).stages(compile=True)
"""

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

import numpy as np
from attrs import evolve, field, frozen

from verax.api.stages.stages import Traced
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import is_tunable, lower
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.programs.partitioned import (
    compile_for_mesh,
    is_absent,
    platform_for,
)
from verax.backend.programs.program import (
    Program,
    Uneven,
    build,
    build_placed,
    spread_of,
)
from verax.backend.runtime.profiling import (
    ProfileData,
    ProfileEvent,
    ProfileLine,
    ProfileOptions,
    ProfilePlane,
    ProfileSession,
)
from verax.backend.xla.virtual import Partitioned
from verax.explorer.naming import short
from verax.explorer.recording import ProfileNote, Record, Recording, Stage
from verax.explorer.rows.collectives import Talks
from verax.explorer.rows.costs import fill_costs
from verax.explorer.rows.hlo import IN_MEMORY, hlo_rows
from verax.explorer.rows.jaxpr import Table, link, missing, places_of
from verax.explorer.rows.row import HEAD, INPUT, SAME, Peak, Row, fill_live
from verax.explorer.rows.stablehlo import Locations, module_rows
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.values.state import changing
from verax.transforms.passes.outline import with_eqns
from verax.transforms.pipeline import COMPILE, Pass, Target, body_of

MAIN: Final = "@main"


@frozen(eq=False, repr=False)
class Explored(ReprMixin):
    """The stages of a program, and the compiled one, with the rows of its HLO.

    Of a program for several devices `part` is that of each; there is no `program` to
    run where the devices are not there.
    """

    stages: tuple[Stage, ...]
    program: Program | None = None
    part: Partitioned | None = None
    instructions: Mapping[str, int] = field(factory=dict)


class ProgramStages:
    """The stages of what a recording has seen."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.stages: list[Stage] = []
        self.inputs: dict[object, list[int]] = {}

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of the last stage so far."""
        return self.stages[-1].rows

    def add_all(self) -> None:
        """Add the stages."""
        for level, records in enumerate(self.recording.levels()):
            self.add_programs(level, records)

    def add_programs(self, level: int, records: Sequence[Record]) -> None:
        """The stage of some programs."""
        table, inputs = Table(), {}
        for record in records:
            start = len(table.rows)
            place = (0, -1) if len(records) == 1 else (1, table.head(record.title))
            inputs[record.key] = table.program(record.jaxpr, record.marked, *place)
            given = [table.rows[i] for i in inputs[record.key]]
            self.link_inputs(record, level, given)
            self.name_inputs(record, given)
            if record.level < level:  # it is here again, as it was
                for row in table.rows[start:]:
                    row.before = row.mark
        self.inputs = inputs
        self.describe_inputs(level, table.rows)
        new = [record for record in records if record.level == level]
        seconds = [record.seconds for record in new if record.seconds is not None]
        self.add(
            ", ".join(dict.fromkeys([record.name for record in new])),
            "jaxpr",
            "; ".join(dict.fromkeys([record.title for record in new])),
            table.rows,
            sum(seconds) if seconds else None,
            link(table.rows, self.rows if self.stages else ()),
            fill_live(table.rows),
        )

    def link_inputs(self, record: Record, level: int, rows: Sequence[Row]) -> None:
        """Link inputs that are those of the program before, by contract of the rewrite.

        `jvp` has others after them.
        """
        before: list[int] = []
        if record.level < level:
            before = self.inputs[record.key]
        elif record.keeps_inputs and len(record.parents) == 1:
            (parent,) = record.parents
            before = self.inputs[parent.key]
        for row, number in zip(rows, before, strict=False):
            row.origins = [number]

    def name_inputs(self, record: Record, rows: Sequence[Row]) -> None:
        """Name inputs as the user does: by the function, or by what they come from."""
        names = self.recording.scopes.names(record.jaxpr)
        for row, name in zip(rows, names, strict=True):
            row.right = name or (self.name_of(row.origins) if row.origins else "")

    def name_of(self, rows: Sequence[int]) -> str:
        """The name of the input that these rows of the last stage are; else none."""
        names = {self.rows[i].right for i in rows if self.rows[i].kind == INPUT}
        return names.pop() if len(names) == 1 else ""

    def describe_inputs(self, level: int, rows: Sequence[Row]) -> None:
        """Note what is known of the inputs of a stage: nothing here."""

    def add(
        self,
        name: str,
        kind: str,
        title: str,
        rows: Sequence[Row],
        seconds: float | None,
        gone: tuple[int, ...],
        peak: Peak | None = None,
    ) -> None:
        """Add a stage that was made from the last one."""
        parent = len(self.stages) - 1 if self.stages else None
        self.stages.append(Stage(name, kind, title, parent, rows, seconds, gone, peak))


class Pipeline(ProgramStages):
    """Makes the stages of one traced function."""

    def __init__(self, recording: Recording, stage: Traced) -> None:
        super().__init__(recording)
        self.stage = stage

    def explored(self, compile: bool) -> Explored:
        """All stages; without `compile` those that need no XLA."""
        record = self.passes()
        self.add_all()
        lowered = self.lowered(record)
        if not compile:
            return Explored(tuple(self.stages))
        program, part, instructions = self.compiled(lowered)
        return Explored(tuple(self.stages), program, part, instructions)

    def passes(self) -> Record:
        """Record what jit does before it lowers; the program that is lowered."""
        recording, stage = self.recording, self.stage
        jaxpr = stage.traced.jaxpr
        record = self.whole = recording.whole(jaxpr)
        spread = None if stage.placement is None else spread_of(stage.placement)
        one_cpu = is_tunable((platform_for(stage.placement),), spread, jaxpr)
        options = stage.options.configured()
        calls = options.calls or "auto"
        target = Target(one_cpu, calls, kernels=options.kernels)
        for one in COMPILE:
            if one.wanted(target):
                make = partial(after_pass, one, target)
                record = self.passed(one.name, record, make)
        return record

    def passed(
        self, name: str, record: Record, make: Callable[[Jaxpr], Jaxpr]
    ) -> Record:
        """The record of what a pass makes of a program, if it changes anything."""
        started = time.perf_counter()
        made = make(record.marked)
        spent = time.perf_counter() - started
        if made is record.marked:
            return record
        title = f"{name} of {self.stage.fun_name}"
        after = self.recording.add(name, made, title, [record], spent)
        after.keeps_inputs = True
        return after

    def describe_inputs(self, level: int, rows: Sequence[Row]) -> None:
        """Note of the arguments which are donated, and where they lie."""
        if level < self.whole.level:
            return
        placement, donated = self.stage.placement, self.stage.donated
        inputs = [row for row in rows if row.kind == INPUT and row.inside < 0]
        names = self.stage.interface.names()
        for i, row in enumerate(inputs):
            if not row.right and len(names) == len(inputs):
                row.right = short(names[i])
            notes = [f"sharding: {placement.of_input(i)}"] if placement else []
            if i < len(donated) and donated[i]:
                row.lasting = False
                notes.append("donated")
            row.note = "; ".join(notes)

    def lowered(self, record: Record) -> Lowered:
        """The module, as a stage; its text names the rows."""
        stage, locations = self.stage, Locations()
        started = time.perf_counter()
        lowered = lower(
            ENGINE,
            record.marked,
            stage.fun_name,
            platforms=(platform_for(stage.placement),),
            keep_unused=stage.keep_unused,
            donated=stage.donated,
            spread=None if stage.placement is None else spread_of(stage.placement),
            located=locations.locate,
            calls=None,
        )
        spent = time.perf_counter() - started
        out = module_rows(lowered.text, locations, places_of(self.rows))
        fill_costs(out.rows, out.operations, self.rows)
        self.arguments = main_arguments(out.rows)
        kept = zip(self.inputs[record.key], lowered.kept, strict=True)
        taken = [row for row, flag in kept if flag]
        given = self.arguments[len(lowered.constants) :]
        if len(given) == len(taken):  # a module may take the platform, and tokens
            for number, row in zip(given, taken, strict=True):
                given_row = out.rows[number]
                given_row.origins, given_row.size = [row], self.rows[row].size
                given_row.right = self.name_of([row])
        title = f"StableHLO of {stage.fun_name}"
        gone = missing(out.rows, self.rows)
        self.add("stablehlo", "stablehlo", title, out.rows, spent, gone)
        return evolve(lowered, text=out.text)

    def compiled(
        self, lowered: Lowered
    ) -> tuple[Program | None, Partitioned | None, dict[str, int]]:
        """The compiled program, as a stage, and the rows of its instructions.

        Nothing is read from the cache of compiled programs, or written to it, for the
        module of an exploration is not that of a call.
        """
        stage, started = self.stage, time.perf_counter()
        with changing({"enable_compilation_cache": False}):
            program, part = compiled(lowered, stage)
        spent = time.perf_counter() - started
        text = part.text
        rows, names = hlo_rows(text, self.rows, self.arguments)
        for row in rows:
            if row.kind == INPUT and row.inside < 0:
                row.right = self.name_of(row.origins)
        several = stage.placement is not None and len(stage.placement.devices) > 1
        if several:
            link_talks(rows, names, text, self.rows)
        title = f"what XLA compiles of {stage.fun_name}"
        peak = fill_live(rows, lambda row: row.op in IN_MEMORY)
        self.add("hlo", "hlo", title, rows, spent, missing(rows, self.rows), peak)
        return program, part if several else None, names


def link_talks(
    rows: Sequence[Row], names: Mapping[str, int], text: str, before: Sequence[Row]
) -> None:
    """Link collectives that name no row to what next to them does.

    XLA names none where it joins several, or adds one.
    """
    sources: dict[int, list[int]] = defaultdict(list)
    for talk in Talks(text).all():
        number, origin = names.get(talk.name), talk.origin
        if number is not None and origin is not None and origin < len(before):
            sources[number].append(origin)
    for number, origins in sources.items():
        row = rows[number]
        if not row.origins:
            row.origins, row.change = sorted(set(origins)), SAME
            row.source = before[origins[0]].source


def main_arguments(rows: Sequence[Row]) -> list[int]:
    """The rows of the arguments of the function `main` of a module."""
    heads = [i for i, row in enumerate(rows) if row.kind == HEAD and row.right == MAIN]
    inputs = [i for i, row in enumerate(rows) if row.kind == INPUT]
    return [i for i in inputs if rows[i].inside in heads]


def after_pass(one: Pass, target: Target, jaxpr: Jaxpr) -> Jaxpr:
    """The program that a pass makes of another, with the same inputs."""
    return with_eqns(jaxpr, one.run(ENGINE, body_of(jaxpr), target).live_eqns)


def compiled(lowered: Lowered, stage: Traced) -> tuple[Program | None, Partitioned]:
    """The program of a module, where calls of the function would run; what each does.

    There is none for devices that are not there.
    """
    options, placement = stage.options.configured(), stage.placement
    if is_absent(placement):
        return None, compile_for_mesh(lambda *_: lowered, options, placement)
    if placement is None:
        program = build(lowered, options)
    else:
        try:
            program = build_placed(lowered, options, placement)
        except Uneven as error:
            even = evolve(placement, outs=error.outs)
            program = build_placed(lowered, options, even)
    executable = program.executable
    return program, Partitioned(executable.hlo_text(), executable.memory_analysis())


# -----------------------------------------------------------------------------
# Measured times of a compiled program, brought back to the user's lines.
#
# The runtime records how long each instruction of the compiled program takes; an
# instruction that came from several rows of the stage before gives each an equal share,
# and so on, back to what was traced::
#
#     note = profiled(explored, leaves, donated)      # fills `time` of the rows


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
    args: list[object] = [
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
    out: dict[int, float] = defaultdict(float)
    for plane in planes:
        for line in own_lines(plane):
            for event in line.events:
                row = instructions.get(name(event))
                if row is not None:
                    out[row] += event.duration_ns / 1e9 / runs
    return out


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
    out: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        outer = row.inside
        while outer >= 0:
            out.setdefault(outer, []).append(number)
            outer = rows[outer].inside
    return out


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
    out: dict[int, float] = defaultdict(float)
    for number, spent in own.items():
        origins: Iterable[int] = rows[number].origins
        for origin in origins:
            out[origin] += spent / len(rows[number].origins)
    return out
