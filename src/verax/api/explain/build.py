"""Floor 5: making the reports of `jit(f).explain`.

One idea: a report does what the call would do up to the point where it would compile,
keeps nothing of it, and asks every cache on the way::

    explained(Asked(fun, key, seen, entry, traced, ...))
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from attrs import frozen

from verax.api.arguments.call_keys import changes
from verax.api.arguments.direct_calls import Entry
from verax.api.explain.differences import Key, differences, nearest, same, signature_of
from verax.api.explain.report import (
    CacheAnswer,
    Difference,
    Explanation,
    StageReport,
    counted,
    reason_lines,
)
from verax.api.tracing.wrapping import codes, name_and_line
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.programs.program import Made, Program, Recipe, lowered_of, made_of
from verax.backend.programs.serialize import stored
from verax.backend.runtime.log import LOGGER
from verax.backend.xla.disk_cache import DiskAnswer
from verax.backend.xla.executable import NOT_ASKED
from verax.ir.records import ReprMixin
from verax.ir.reports.check import CapturedConstants, captured_constants
from verax.ir.walk import count_eqns
from verax.rules.values.state import LIBRARY, user_source

type Reason = tuple[str, tuple[Difference, ...]]
NOTHING: Final[tuple[Difference, ...]] = ()
UNCALLED: Final = (
    "The function was traced for these arguments before, by trace(), lower() or within "
    "another function, but not called with them."
)
REHASHED: Final = (
    "The arguments equal those of an earlier call, but a static one has a different "
    "hash now, so it was changed. Use a new object for a new value."
)
BEFORE, NOW, LATER = "before", "now", "at the call"


@frozen(eq=False, repr=False)
class Asked(ReprMixin):
    """A call of a jitted function that was asked about, and what the function knows.

    `key` is that of its program, `seen` are those of the programs and traces there are.
    `traced` says whether `entry` was there; `kept` is whether calls with arguments of
    these kinds take the short way, None if that is unknown. `recipe` is None within a
    trace. `siblings` is how many other jitted objects of the same code were traced.
    """

    fun: Callable[..., object]
    key: Key
    seen: Sequence[Key]
    entry: Entry
    traced: bool
    kept: bool | None = None
    program: Program | None = None
    recipe: Recipe | None = None
    siblings: int = 0
    again: Callable[[], object] | None = None

    @property
    def hit(self) -> bool:
        """Whether the function need not be traced or compiled."""
        return self.traced if self.recipe is None else self.program is not None


def trace_key(key: Key) -> Key:
    """The key of the trace of a program: without the places of its arguments."""
    return (*key[: 2 + key[0].num_leaves], key[-1])


def seen_keys(programs: Sequence[Key], traces: Sequence[Key]) -> list[Key]:
    """The keys of the programs, and of the traces that have none, oldest first.

    Those that `check_purity` made are of no use.
    """
    made = {trace_key(key) for key in programs}
    out = [*[key for key in traces if key not in made], *programs]
    return [key for key in out if not key[1].fresh]


def why(
    fun: Callable[..., object],
    key: Key,
    seen: Sequence[Key],
    traced: bool,
    siblings: int,
) -> Reason:
    """Why a function has no program under `key`: a sentence, and what differs."""
    if any(same(key, other) for other in seen):
        return (UNCALLED if traced else REHASHED), NOTHING
    closest = nearest(key, seen)
    if closest is None:
        return first_call(siblings), NOTHING
    which = "only signature" if len(seen) == 1 else f"nearest of {len(seen)} signatures"
    out = differences(signature_of(fun, key), signature_of(fun, closest))
    return f"What differs from the {which} known so far:", out


def first_call(siblings: int) -> str:
    """The reason for the first call."""
    text = "This is the first call of this jitted object."
    if not siblings:
        return text
    others = (
        "One other object was" if siblings == 1 else f"{siblings} other objects were"
    )
    return (
        f"{text} {others} made from the same code and called. If they are the same "
        "function, call jit once, outside loops and functions that run often, and "
        "keep what it returns: each object has its own caches."
    )


def maker(made: Made) -> str:
    """For which function a program was compiled first."""
    name = made.program.lowered.name
    lines = [e.source for e in made.jaxpr.eqns if e.source.code is not None]
    return f"{name} ({lines[0].file}:{lines[0].line})" if lines else name


def explained(asked: Asked) -> Explanation:
    """The report on a call."""
    made = None
    if asked.recipe is not None and asked.program is None:
        made = made_of(asked.recipe)
    program = made.program if made else asked.program
    lowered, disk = None, NOT_ASKED
    if program is not None:
        lowered, disk = program.lowered, program.executable.disk
    if asked.recipe is not None and lowered is None:
        lowered = lowered_of(asked.recipe, asked.entry.name)
        disk = stored(asked.recipe, lowered)
    entry, differences = asked.entry, NOTHING
    reason = " ".join(changes(entry.name, entry.watched))
    if not asked.hit:
        seen, siblings = asked.seen, asked.siblings
        reason, differences = why(asked.fun, asked.key, seen, asked.traced, siblings)
    return Explanation(
        name_and_line(asked.fun),
        str(signature_of(asked.fun, asked.key)),
        asked.hit,
        verdict(asked, made, disk),
        reason,
        differences,
        tuple(cache_answers(asked, made, disk)),
        tuple(stages(asked, lowered, program)),
        captured_constants(asked.entry.traced.jaxpr),
        None if program is None else program.executable.memory_analysis(),
        asked.again,
    )


def unjitted(fun: Callable[..., object], key: Key) -> Explanation:
    """The report on a call while `disable_jit` is on."""
    return Explanation(
        name_and_line(fun),
        str(signature_of(fun, key)),
        hit=False,
        verdict="off: disable_jit is on, so the function runs as plain Python.",
        reason="",
        differences=(),
        caches=(),
        stages=(),
        constants=CapturedConstants(()),
    )


def verdict(asked: Asked, made: Made | None, disk: DiskAnswer) -> str:
    """A sentence about what the call would do."""
    if asked.recipe is None:
        if asked.entry.traced.captured:
            return (
                "miss: the function is traced each time, since it closes over values "
                "of the enclosing trace, and becomes part of the enclosing program."
            )
        if asked.traced:
            return "hit: the cached trace becomes part of the enclosing program."
        return "miss: the function is traced for the enclosing program."
    if asked.kept:
        return "hit: the call runs its compiled program at once."
    if asked.hit:
        return "hit: the call checks its arguments and runs its compiled program."
    return f"miss: the function is {steps(asked.traced, made, disk.origin)}."


def steps(traced: bool, made: Made | None, origin: str) -> str:
    """The stages that run on a miss: "traced, lowered and compiled"."""
    out = [] if traced else ["traced"]
    if made is not None:
        out.append(f"given the program that was compiled for {maker(made)}")
    elif origin == "disk":
        out += ["lowered", "read from the compilation cache on disk"]
    else:
        out += ["lowered", "compiled"]
    return " and ".join([", ".join(out[:-1]), out[-1]]) if out[1:] else out[0]


def cache_answers(
    asked: Asked, made: Made | None, disk: DiskAnswer
) -> Iterator[CacheAnswer]:
    """The answers of the caches, in the order in which a call asks them."""
    traces = CacheAnswer("traces of this function", asked.traced)
    if asked.recipe is None:
        yield traces
        return
    note = "" if asked.kept is not None else "for types without values"
    yield CacheAnswer("calls of this function", asked.kept, note)
    yield CacheAnswer("programs of this function", asked.program is not None)
    yield traces
    note = "" if made is None else f"compiled for {maker(made)}"
    shared = None if asked.program is not None else made is not None
    yield CacheAnswer("programs of this process", shared, note)
    yield CacheAnswer("programs on disk", disk.hit, disk.note)


def stages(
    asked: Asked, lowered: Lowered | None, program: Program | None
) -> Iterator[StageReport]:
    """The time and the product of each stage."""
    traced, recipe = asked.entry.traced, asked.recipe
    when = BEFORE if asked.traced else NOW
    sizes = {"equations": count_eqns(traced.jaxpr)}
    yield StageReport("trace", traced.seconds, when, sizes)
    if recipe is None or lowered is None:
        return
    when = NOW if program is None else BEFORE
    slim = traced.jaxpr
    if not recipe.keep_unused:
        slim, _ = recipe.engine.dce(slim, (True,) * len(slim.outvars))
    sizes = {"equations": count_eqns(slim)}
    yield StageReport("rewrite", lowered.seconds.rewrite, when, sizes)
    sizes = {"operations": lowered.operations, "bytes of StableHLO": len(lowered.text)}
    yield StageReport("lower", lowered.seconds.write, when, sizes)
    if program is None:
        yield StageReport("compile", None, LATER, note="not compiled for this report")
        return
    executable = program.executable
    note = "read from disk" if executable.origin == "disk" else ""
    code = executable.memory_analysis().generated_code
    sizes = {"bytes of code": code} if code else {}
    yield StageReport("compile", program.seconds, BEFORE, sizes, note)
    yield run_stage(program)


def run_stage(program: Program) -> StageReport:
    """The stage of a run as XLA expects it; nothing is run for it."""
    costs: dict[str, float] = {}
    with suppress(RuntimeError):  # not every platform estimates
        costs = program.executable.cost_analysis()
    expected = {"flops": "flops", "bytes accessed": "bytes moved"}
    sizes = {
        text: costs[name] for name, text in expected.items() if costs.get(name, -1) >= 0
    }
    return StageReport("run", None, LATER, sizes, "by XLA's estimate" if sizes else "")


def often(
    fun: Callable[..., object], key: Key, seen: Sequence[Key], siblings: int
) -> str:
    """The warning for a function of which many programs were compiled.

    "" for functions of this package, which are made for arrays of all shapes.
    """
    code = codes(fun)
    if not code or code[-1].co_filename.startswith(LIBRARY):
        return ""
    others = [one for one in seen if not same(one, key)]
    lines = [f"{len(seen) + siblings} programs of {name_and_line(fun)} were compiled."]
    closest = nearest(key, others)
    if closest is not None:
        what = differences(signature_of(fun, key), signature_of(fun, closest))
        lines += reason_lines("The last one differs from an earlier one in:", what)
    if siblings:
        lines.append(
            f"{siblings} of them are of other jitted objects of the same code: call "
            "jit once, outside loops and functions that run often, and keep what it "
            "returns."
        )
    lines.append(
        'verax.config.update("programs_warn_count", -1) turns this warning off.'
    )
    return "\n".join(lines)


# -----------------------------------------------------------------------------
# The log of calls that jit's caches did not hold, for `explain_cache_misses`.
#
# Why a call missed is worked out before the function is traced, while the
# caches are as the call found them, and is logged with the times afterwards::
#
#     miss = start_miss(f, key, seen, traced=False, siblings=0)
#     ...
#     miss.log(entry, made, program)     # logging.getLogger("verax").warning


@frozen(eq=False, repr=False)
class Miss(ReprMixin):
    """A call that found nothing: of what, from where, and why."""

    heading: str
    traced: bool
    reason: str
    differences: Sequence[Difference]

    def log(self, entry: Entry, made: Made | None, program: Program | None) -> None:
        """Say what had to be done; without a program, for a call within a trace."""
        traced = entry.traced
        times = [] if self.traced else [traced.seconds]
        done = "traced into the enclosing program"
        if program is not None:
            origin = program.executable.origin
            done = steps(self.traced, made, origin)
            if made is None:
                spent = program.lowered.seconds
                times += [spent.rewrite + spent.write, program.seconds]
        size = counted(count_eqns(traced.jaxpr), "equations")
        text = f"{self.heading}: {done}, in {sum(times) * 1e3:,.1f} ms ({size})"
        self.say(text)

    def failed(self, error: BaseException) -> None:
        """Say that the call raised, on the way to its program."""
        first = str(error).partition("\n")[0]
        self.say(f"{self.heading}: failed with {type(error).__name__}: {first}")

    def say(self, text: str) -> None:
        lines = [text, *reason_lines(self.reason, self.differences)]
        LOGGER.warning("%s", "\n".join(lines))


def start_miss(
    fun: Callable[..., object],
    key: Key,
    seen: Sequence[Key],
    traced: bool,
    siblings: int,
) -> Miss:
    """The miss of a call that begins now."""
    given = str(signature_of(fun, key)) or "nothing"
    heading = (
        f"cache miss: {name_and_line(fun)} called at {user_source(1)} with {given}"
    )
    return Miss(heading, traced, *why(fun, key, seen, traced, siblings))
