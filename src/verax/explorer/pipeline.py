"""The stages of a program, from its trace to what XLA compiles (floor 6).

What the recording of the trace has seen comes first, then what `jit` does to a program
before it is lowered, then the module and the compiled program::

    Pipeline(recording, stage).stages(compile=True)
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import evolve, field, frozen

from verax.api.stages.stages import Traced
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import is_tunable, lower
from verax.backend.lowering.result import Lowered
from verax.backend.programs.placed_program import Uneven, spread_of
from verax.backend.programs.program import (
    Program,
    build,
    build_placed,
    platform_of,
)
from verax.explorer.document import Stage
from verax.explorer.recording import Record, Recording
from verax.explorer.rows.hlo import IN_MEMORY, hlo_rows
from verax.explorer.rows.jaxpr import Table, link, missing, places_of
from verax.explorer.rows.memory import Peak, fill_live
from verax.explorer.rows.operation_costs import fill_costs
from verax.explorer.rows.row import HEAD, INPUT, Row
from verax.explorer.rows.stablehlo import Locations, module_rows
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.values.state import changing
from verax.transforms.passes.outline import with_eqns
from verax.transforms.pipeline import COMPILE, Pass, Target, body_of

MAIN: Final = "@main"


@frozen(eq=False, repr=False)
class Explored(ReprMixin):
    """The stages of a program, and the compiled one, with the rows of its HLO."""

    stages: tuple[Stage, ...]
    program: Program | None = None
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
            self.link_inputs(record, level, [table.rows[i] for i in inputs[record.key]])
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
        program, instructions = self.compiled(lowered)
        return Explored(tuple(self.stages), program, instructions)

    def passes(self) -> Record:
        """Record what jit does before it lowers; the program that is lowered."""
        recording, stage = self.recording, self.stage
        jaxpr = stage.traced.jaxpr
        record = self.whole = recording.whole(jaxpr)
        spread = None if stage.placement is None else spread_of(stage.placement)
        one_cpu = is_tunable((platform_of(stage.placement),), spread, jaxpr)
        calls = stage.options.configured().calls or "auto"
        target = Target(one_cpu, calls)
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
        for i, row in enumerate(inputs):
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
            platforms=(platform_of(stage.placement),),
            keep_unused=stage.keep_unused,
            donated=stage.donated,
            spread=None if stage.placement is None else spread_of(stage.placement),
            located=locations.locate,
            calls=None,
        )
        spent = time.perf_counter() - started
        found = module_rows(lowered.text, locations, places_of(self.rows))
        fill_costs(found.rows, found.operations, self.rows)
        self.arguments = main_arguments(found.rows)
        kept = zip(self.inputs[record.key], lowered.kept, strict=True)
        taken = [row for row, flag in kept if flag]
        given = self.arguments[len(lowered.constants) :]
        if len(given) == len(taken):  # a module may take the platform, and tokens
            for number, row in zip(given, taken, strict=True):
                found.rows[number].origins = [row]
        title = f"StableHLO of {stage.fun_name}"
        gone = missing(found.rows, self.rows)
        self.add("stablehlo", "stablehlo", title, found.rows, spent, gone)
        return evolve(lowered, text=found.text)

    def compiled(self, lowered: Lowered) -> tuple[Program, dict[str, int]]:
        """The compiled program, as a stage, and the rows of its instructions.

        Nothing is read from the cache of compiled programs, or written to it, for the
        module of an exploration is not that of a call.
        """
        stage, started = self.stage, time.perf_counter()
        with changing({"enable_compilation_cache": False}):
            program = compiled(lowered, stage)
        spent = time.perf_counter() - started
        text = program.executable.hlo_text()
        rows, names = hlo_rows(text, self.rows, self.arguments)
        title = f"what XLA compiles of {stage.fun_name}"
        peak = fill_live(rows, lambda row: row.op in IN_MEMORY)
        self.add("hlo", "hlo", title, rows, spent, missing(rows, self.rows), peak)
        return program, names


def main_arguments(rows: Sequence[Row]) -> list[int]:
    """The rows of the arguments of the function `main` of a module."""
    heads = [i for i, row in enumerate(rows) if row.kind == HEAD and row.right == MAIN]
    inputs = [i for i, row in enumerate(rows) if row.kind == INPUT]
    return [i for i in inputs if rows[i].inside in heads]


def after_pass(one: Pass, target: Target, jaxpr: Jaxpr) -> Jaxpr:
    """The program that a pass makes of another, with the same inputs."""
    return with_eqns(jaxpr, one.run(ENGINE, body_of(jaxpr), target).live_eqns)


def compiled(lowered: Lowered, stage: Traced) -> Program:
    """The program of a module, where calls of the function would run."""
    options, placement = stage.options.configured(), stage.placement
    if placement is None:
        return build(lowered, options)
    try:
        return build_placed(lowered, options, placement)
    except Uneven as error:
        return build_placed(lowered, options, evolve(placement, outs=error.outs))
