"""Floor 5: the log of calls that jit's caches did not hold, for `explain_cache_misses`.

One idea: why a call missed is worked out before the function is traced, while the
caches are as the call found them, and is logged with the times afterwards::

    miss = start_miss(f, key, seen, traced=False, siblings=0)
    ...
    miss.log(entry, made, program)     # logging.getLogger("verax").warning
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from verax.api.arguments.cache_entries import Entry
from verax.api.explain.build import steps, why
from verax.api.explain.keys import Key, signature_of
from verax.api.explain.report import Difference, counted, reason_lines
from verax.api.tracing.argument_names import name_and_line
from verax.backend.programs.program import Made, Program
from verax.backend.runtime.log import LOGGER
from verax.ir.records import ReprMixin
from verax.ir.walk import count_eqns
from verax.rules.values.source import user_source


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
