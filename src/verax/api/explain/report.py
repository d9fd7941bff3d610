"""Floor 5: what a call of a jitted function would find, make and need, as a value.

One idea: a report is data, so that a program can ask it, and prints as text for people
who do not know the library inside::

    report = verax.jit(f).explain(x)
    report.hit, report.differences, report.stages
    print(report)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, Protocol

from attrs import field, frozen

from verax.api.arguments.direct_calls import Entry
from verax.api.tracing.wrapping import codes
from verax.backend.programs.program import Made, Program
from verax.backend.xla.executable import MemoryAnalysis
from verax.ir.library import Explorable
from verax.ir.memos import Recent
from verax.ir.records import ReprMixin
from verax.ir.reports.check import CapturedConstants
from verax.ir.text.columns import columns
from verax.ir.text.printer import escaped

# So many differences are printed; the value holds all of them.
SHOWN: Final = 8
NOTHING: Final[Mapping[str, float]] = MappingProxyType({})


ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "shape": "each shape gets its own program: pad arrays to a few fixed shapes, "
        "or map the function over a dimension with verax.vmap",
        "dtype": "each dtype gets its own program: convert before the call, with "
        "x.astype(...) or verax.numpy.asarray(x, dtype)",
        "weak type": "Python numbers are weakly typed and arrays are not, because "
        "they promote differently: pass verax.numpy.float32(x) or the like each time",
        "static value": "each value of a static argument gets its own program: if it "
        "is a number that is only computed with, remove it from static_argnums and "
        "static_argnames",
        "static type": "values of different classes are different static values, "
        "even though 1 == True == 1.0: pass the same class each time",
        "static identity": "objects that compare by identity are different static "
        "values even if they look alike: give their class __eq__ and __hash__, or pass "
        "the same object each time, not a new lambda for each call",
        "passed": "how an argument is passed is part of the structure: pass it the "
        "same way each time",
        "arguments": "each set of arguments gets its own program, even if those left "
        "out have defaults",
        "structure": "each structure of an argument gets its own program: give dicts "
        "the same keys and lists the same length each time",
        "place": "a program belongs to the devices and layouts of its arguments: put "
        "them in the same place each time, with verax.device_put",
        "option": "options that change what a function computes are part of the key: "
        "set them once, or make every call under the same ones",
    }
)
"""Advice for each kind of difference."""


@frozen(repr=False)
class Difference(ReprMixin):
    """One thing in which a call differs from an earlier one.

    `kind` is a key of `ADVICE`, `where` the argument or leaf, such as `params['w']`.
    """

    kind: str
    where: str
    what: str
    now: str
    before: str

    @property
    def advice(self) -> str:
        """Advice about differences of this kind."""
        return ADVICE[self.kind]

    def __str__(self) -> str:
        what = f"{self.what} " if self.what else ""
        return f"{self.where}: {what}{self.now}, previously {self.before}"


@frozen(repr=False)
class CacheAnswer(ReprMixin):
    """The answer of one of the caches; `hit` is None where it was not asked."""

    cache: str
    hit: bool | None
    note: str = ""

    def __str__(self) -> str:
        word = {True: "hit", False: "miss", None: "not asked"}[self.hit]
        return f"{word}: {self.note}" if self.note else word


@frozen(repr=False)
class StageReport(ReprMixin):
    """One stage of a call: its time and what it made.

    `seconds` is None for what has not happened. `when` is "before" (for an earlier
    call), "now" (for the report, and thrown away) or "at the call".
    """

    name: str
    seconds: float | None
    when: str
    sizes: Mapping[str, float] = field(default=NOTHING, eq=False)
    note: str = ""

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The words of its line in the table."""
        time = "-" if self.seconds is None else f"{self.seconds * 1e3:,.2f} ms"
        parts = [counted(number, what) for what, number in self.sizes.items()]
        result = ", ".join([*parts, self.note] if self.note else parts)
        return self.name, time, self.when, result


@frozen(eq=False, repr=False)
class Explanation(Explorable):
    """Whether a call would find its program, why not, and what each stage takes.

    Attributes:
        function: its name, file and line.
        signature: the arguments by name, with their types.
        hit: whether the call would run a program that this function has already.
        verdict: the same in a sentence, with what happens on a miss.
        reason: which earlier call the arguments were compared with, or why none.
        differences: how they differ from it.
        caches: what each cache said, from the innermost one.
        stages: trace, rewrite, lower, compile and run.
        constants: the arrays that the program has captured, and the lines they enter.
        memory: bytes that a run needs; None if the program is not compiled.
        again: makes the traced function again, for `explore`.
    """

    __module__ = "verax.debug"

    function: str
    signature: str
    hit: bool
    verdict: str
    reason: str
    differences: tuple[Difference, ...]
    caches: tuple[CacheAnswer, ...]
    stages: tuple[StageReport, ...]
    constants: CapturedConstants
    memory: MemoryAnalysis | None = None
    again: Callable[[], object] | None = None

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        return f'<pre style="line-height:1.3">{escaped(repr(self))}</pre>'

    def lines(self) -> Iterator[str]:
        """The printed report, line by line."""
        yield f"{self.function} called with {self.signature or 'nothing'}"
        yield self.verdict
        yield from reason_lines(self.reason, self.differences)
        if self.caches:
            yield ""
            yield from columns(
                [("cache", "answer"), *[(a.cache, str(a)) for a in self.caches]]
            )
        if self.stages:
            yield ""
            heads = ("stage", "time", "when", "result")
            yield from columns([heads, *[stage.row for stage in self.stages]])
        if self.memory is not None:
            yield ""
            yield f"memory of a run: {memory_text(self.memory)}"
        if len(self.constants):
            yield ""
            yield f"captured constants, {self.constants.nbytes:,} bytes in all:"
            yield from repr(self.constants).splitlines()


def counted(number: float, what: str) -> str:
    """`3 equations`, `1 equation`."""
    first, *rest = what.split()
    first = first.removesuffix("s") if number == 1 else first
    return " ".join([f"{number:,.0f}", first, *rest])


def reason_lines(reason: str, result: Sequence[Difference]) -> Iterator[str]:
    """Why nothing was found, in what the calls differ, and what to do about it."""
    if reason:
        yield reason
    yield from [f"  {difference}" for difference in result[:SHOWN]]
    if len(result) > SHOWN:
        yield f"  and {len(result) - SHOWN} more differences"
    yield from [f"  ({text})" for text in advice(result)]


def advice(result: Iterable[Difference]) -> tuple[str, ...]:
    """Advice, once for each kind of difference."""
    return tuple(dict.fromkeys([difference.advice for difference in result]))


def memory_text(memory: MemoryAnalysis) -> str:
    """The bytes of a run, largest uses in words."""
    text = (
        f"{memory.arguments:,} bytes of arguments, {memory.outputs:,} of results, "
        f"{memory.temporaries:,} of temporaries"
    )
    if memory.aliased:
        text += f"; {memory.aliased:,} of them shared by arguments and results"
    return text


# -----------------------------------------------------------------------------
# What every miss of jit's caches counts, whether it is logged or not.
#
# `jit` inside a loop makes a new object each time, with empty caches, so objects of one
# piece of code are counted. Why a call missed is worked out by `log`, which is imported
# where misses are logged::
#
#     with log_failure(miss):      # None where they are not
#         ...
#     uses_of(f).count


class Logged(Protocol):
    """A miss that is logged when its call has ended: see `log.Miss`."""

    def log(self, entry: Entry, made: Made | None, program: Program | None) -> None: ...
    def failed(self, error: BaseException) -> None: ...


@contextmanager
def log_failure(miss: Logged | None) -> Iterator[None]:
    """Log the miss when the block raises, if misses are logged."""
    try:
        yield
    except BaseException as error:
        if miss is not None:
            miss.failed(error)
        raise


REMEMBERED: Final = 1 << 12


class Uses:
    """A count."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


TRACED: Final = Recent[tuple[object, ...], Uses](REMEMBERED)
"""The uses of the codes that were traced last."""


def uses_of(fun: Callable[..., object]) -> Uses:
    """The number of traced jitted objects of the code of `fun`.

    Of `grad(f)` it is the code of both.
    """
    return TRACED.add(codes(fun), Uses())
