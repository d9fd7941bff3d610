"""`verax.debug.memory`: a function's memory, predicted, measured, within a budget.

One idea: a report is read off a program, and the compiler is asked what it made of the
program; with a budget that happens for the program before and after its plan::

    taken = Taken("loss", jit(loss).trace(params, batch), measure=True)
    taken.report(taken.jaxpr), taken.within("2GB")
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import compress
from math import inf
from typing import Final, Unpack

from attrs import evolve, frozen
from pyrsistent import pvector

from verax.api.jit import PjitFunction
from verax.api.memory.budgets import Budget, check_budget
from verax.api.memory.search import Fit, Measure, Measured, host_of, search
from verax.api.stages.stages import Traced
from verax.api.tracing.apply import ENGINE
from verax.api.tracing.wrapping import function_name, wraps
from verax.backend.lowering.lower import is_tunable, lower
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.programs.partitioned import (
    LowerFor,
    compile_for_mesh,
    is_absent,
    platform_for,
)
from verax.backend.programs.placement import Placement
from verax.backend.programs.program import compiled, spread_of
from verax.backend.xla.executable import MemoryAnalysis
from verax.explorer.costing import Counter
from verax.explorer.exploration import of_arrays
from verax.explorer.functions import JitOptions, check_options, jitted
from verax.explorer.memory.lines import Places, kept_at_turn
from verax.explorer.memory.report import (
    MemoryPlan,
    MemoryReport,
    MemoryUse,
    RunAgain,
    SourceLine,
)
from verax.explorer.meshes.devices import Device
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import renumber
from verax.rules.rows.infer import Mask
from verax.rules.rows.leaks import leaked
from verax.rules.values.conversions import check_callable
from verax.rules.values.lazy import loaded
from verax.rules.values.state import NEUTRAL, entered, widths_of
from verax.transforms.memory.alive import Held, Program, flat_program, program_on_cpu
from verax.transforms.memory.plan import planned
from verax.transforms.memory.storage import Timeline, bytes_of, flat, total
from verax.transforms.pipeline import Target, passed

ANY_DEVICE: Final = Device("any", inf, inf, inf)


# -----------------------------------------------------------------------------
# Taking the measure.


@frozen(eq=False, repr=False)
class Taken(ReprMixin):
    """A traced function whose memory is asked for; `measure` compiles it."""

    name: str
    stage: Traced
    measure: bool

    @property
    def jaxpr(self) -> Jaxpr:
        """The program as it was traced."""
        return self.stage.traced.jaxpr

    @property
    def devices(self) -> int:
        """How many share the program."""
        placement = self.stage.placement
        return 1 if placement is None else len(placement.devices)

    def compiled(self, jaxpr: Jaxpr, lean: bool = False) -> MemoryUse:
        """What the compiler says of a program of the same types.

        Raises:
            LeakedTracer: it closes over a tracer.
        """
        stage = self.stage
        if stage.traced.captured:
            raise leaked(stage.traced.captured[0])
        options = stage.options
        if lean:
            options = options.lean(platform_for(stage.placement))
        if is_absent(stage.placement):
            options = options.configured()
            executable = compile_for_mesh(self.module(jaxpr), options, stage.placement)
            return use_of(executable.memory)
        program = compiled(
            ENGINE,
            jaxpr,
            self.name,
            options,
            stage.keep_unused,
            stage.donated,
            stage.placement,
        )
        return use_of(program.executable.memory_analysis())

    def module(self, jaxpr: Jaxpr) -> LowerFor:
        """How a program is lowered for devices that are not there."""
        stage = self.stage

        def lowered(placement: Placement | None, platform: str) -> Lowered:
            return lower(
                ENGINE,
                jaxpr,
                self.name,
                platforms=(platform,),
                keep_unused=stage.keep_unused,
                donated=stage.donated,
                spread=None if placement is None else spread_of(placement),
                calls=stage.options.calls or "auto",
                kernels=stage.options.kernels,
            )

        return lowered

    def lowered(self, jaxpr: Jaxpr, lean: bool) -> tuple[Program, Mask]:
        """What the compiler is given for a program, and the inputs that are left."""
        stage, options = self.stage, self.stage.options.configured()
        here, spread = platform_for(stage.placement), None
        if stage.placement is not None:
            spread = spread_of(stage.placement)
        target = Target(
            is_tunable((here,), spread, jaxpr),
            options.calls or "auto",
            stage.keep_unused,
            kernels=False,
        )
        dtypes = {v.aval.dtype for eqn in jaxpr.eqns for v in eqn.outvars}
        with entered(NEUTRAL), widths_of(dtypes):
            body = passed(ENGINE, jaxpr, target)
            eqns = pvector(body.live_eqns)
            made = renumber(Jaxpr((), body.invars, eqns, body.outvars), body.invars)
            if here == "cpu":
                return program_on_cpu(made, sums=not lean), body.kept
            return flat_program(made), body.kept

    def predicted(self, program: Program, kept: Mask) -> MemoryUse:
        """What is expected of a program of the same types."""
        jaxpr = program.jaxpr
        outs = sum([bytes_of(a.aval) for a in jaxpr.outvars])
        donated = compress(self.stage.donated, kept)
        pairs = zip(jaxpr.invars, donated, strict=False)
        shared = total([v for v, given in pairs if given])
        peak = program.line.peak
        return MemoryUse(total(jaxpr.invars), outs, min(shared, outs), peak)

    def report(
        self, jaxpr: Jaxpr, use: MemoryUse | None = None, plan: MemoryPlan | None = None
    ) -> MemoryReport:
        """The report of a program of the same types."""
        lean = plan is not None and plan.lean
        program, kept = self.lowered(jaxpr, lean)
        places, number = Places(), program.line.fullest
        if use is None and self.measure:
            use = self.compiled(jaxpr)
        values = program.held(number) if program.line.steps else []
        return MemoryReport(
            self.name,
            self.predicted(program, kept),
            use,
            places.lines(values),
            places.point(program, number),
            places.curve(program),
            tuple(map(places.loop, program.loops())),
            plan,
            self.devices,
        )

    def within(self, budget: Budget) -> MemoryReport:
        """The report of the program within a budget, with its plan."""
        uses: dict[tuple[int, bool], tuple[Jaxpr, MemoryUse]] = {}

        def compiled(jaxpr: Jaxpr, lean: bool) -> Measured:
            use = self.compiled(jaxpr, lean)
            uses[id(jaxpr), lean] = jaxpr, use
            return Measured(use.total - use.temporaries, use.temporaries)

        host = host_of(budget)
        measured: Measure = compiled
        if host is not None and platform_for(self.stage.placement) == "cpu":
            measured = as_if_moved(compiled)
        fit = search(self.jaxpr, budget, measured, host)
        smallest = planned(self.jaxpr, 0, host)
        totals = (fit.unplanned.total, fit.measured.total)
        least = min(*totals, measured(smallest.jaxpr, fit.lean).total)
        _, before = uses[id(self.jaxpr), False]
        _, after = uses[id(fit.plan.jaxpr), fit.lean]
        plan = self.plan(fit, self.report(self.jaxpr, before), least)
        return self.report(fit.plan.jaxpr, after, plan)

    def plan(self, fit: Fit, before: MemoryReport, least: int) -> MemoryPlan:
        """What a plan keeps, and what it computes again."""
        places = Places()
        first, second = flat_program(self.jaxpr), flat_program(fit.plan.jaxpr)
        old, new = kept_at_turn(first), kept_at_turn(second)
        freed = sums(places, old)
        for place, size in sums(places, new).items():
            freed[place] = freed.get(place, 0) - size
        once, all_runs = [operations(places, p.jaxpr) for p in (first, second)]
        more = {p: n - once.get(p, 0.0) for p, n in all_runs.items()}
        again = [
            RunAgain(place, flops, max(freed.get(place, 0), 0))
            for place, flops in sorted(more.items(), key=lambda one: -one[1])
            if flops > 0
        ]
        return MemoryPlan(
            fit.limit,
            before,
            fit.measured.total,
            sum([one.flops for one in again]) / max(sum(once.values()), 1.0),
            places.lines(new),
            tuple(again),
            least,
            fit.lean,
            places.lines(second.values_away()),
        )


def as_if_moved(measure: Measure) -> Measure:
    """A measure for devices without a host that has memory of its own.

    The compiler's, less what would wait on the host at the fullest moment.
    """

    def measured(jaxpr: Jaxpr, lean: bool) -> Measured:
        whole, program = measure(jaxpr, lean), flat(jaxpr)
        with_host, without = (
            Timeline.of(program, host=host).peak for host in (True, False)
        )
        share = with_host / max(without, 1)
        return evolve(whole, temporaries=int(share * whole.temporaries))

    return measured


def use_of(analysis: MemoryAnalysis) -> MemoryUse:
    """What a compiler says, as a report has it."""
    return MemoryUse(
        analysis.arguments, analysis.outputs, analysis.aliased, analysis.temporaries
    )


def sums(places: Places, values: Iterable[Held]) -> dict[SourceLine, int]:
    """The bytes of values by line."""
    totals: dict[SourceLine, int] = {}
    for one in values:
        place = places.of(one.source)
        totals[place] = totals.get(place, 0) + one.bytes
    return totals


def operations(places: Places, jaxpr: Jaxpr) -> dict[SourceLine, float]:
    """The operations of a program by line."""
    counter = Counter(ANY_DEVICE)
    counter.count(jaxpr, 1.0, True)
    totals: dict[SourceLine, float] = {}
    for entry in counter.sums.values():
        place = places.of(entry.source)
        totals[place] = totals.get(place, 0.0) + entry.flops
    return totals


# -----------------------------------------------------------------------------
# The function.


def memory(
    fun: Callable[..., object],
    *,
    budget: Budget | None = None,
    measure: bool = True,
    **options: Unpack[JitOptions],
) -> Callable[..., MemoryReport]:
    """A function that says what `fun` takes of memory, and which lines hold it.

    The program is traced, and its memory is predicted step by step; with `measure` it
    is compiled too, not run, and the compiler says what it takes. `budget` plans a
    program within so much memory as `jit(memory=)` does, and says what it computes
    again; a function that has a budget is reported with it.

    Args:
        fun: the function; it may be a gradient or any other composition, and jitted.
        budget: bytes, text such as "2GB", or a share (0 to 1) of what it takes anyway.
        measure: whether to compile the program. Plans are always measured.
        options: those of `jit`, such as `static_argnums` and `donate_argnums`.

    Returns:
        A function of the arguments of `fun`, which may be `ShapeDtypeStruct`s, that
        returns a `MemoryReport`; of symbolic sizes, `MemoryFormulas`, whose `at` plans
        and measures.

    Raises:
        TypeError: `fun` is not a function, or is jitted and there are options of `jit`.
        ValueError: `budget` says no number of bytes.

    >>> import verax, verax.numpy as vnp
    >>> def loss(w, x):
    ...     for _ in range(8):
    ...         x = vnp.tanh(x @ w)
    ...     return vnp.mean(x**2)
    >>> types = [verax.ShapeDtypeStruct(s, vnp.float32) for s in ((32, 32), (512, 32))]
    >>> report = verax.debug.memory(verax.grad(loss))(*types)
    >>> [(line.code, line.count) for line in report.lines[:1]]
    [('x = vnp.tanh(x @ w)', 7)]
    >>> plan = verax.debug.memory(verax.grad(loss), budget=0.75)(*types).plan
    >>> plan.total < 0.75 * report.total, plan.again[0].place.line
    (True, 3)
    """
    check_callable("memory", fun)
    check_budget(budget)
    check_options("memory", fun, options)
    function = jitted(fun, options)
    limit = budget
    if function.settings.memory is not None:
        limit = function.settings.memory if budget is None else budget
        function = PjitFunction(function.fun, evolve(function.settings, memory=None))

    @wraps(fun)
    def measuring(*args: object, **kwargs: object) -> MemoryReport:
        stage = of_arrays(function.trace(*args, **kwargs))
        taken = Taken(function_name(fun), stage, measure)
        if any([aval.symbolic for aval in stage.traced.jaxpr.in_avals]):
            formulas = loaded("verax.explorer.memory.formulas", "memory_formulas")
            again = loaded("verax.explorer.memory.formulas", "with_sizes")

            def at(sizes: Mapping[str, int]) -> MemoryReport:
                given, named = again((args, kwargs), sizes)
                return measuring(*given, **named)

            report: MemoryReport = formulas(taken.name, taken.jaxpr, at)
            return report
        return taken.report(taken.jaxpr) if limit is None else taken.within(limit)

    return measuring
