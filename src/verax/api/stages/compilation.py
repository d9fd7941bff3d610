"""Floor 5: programs that threads compile beside the user's work.

One idea: the function is traced and lowered now, so that its errors appear where it is
called, and only XLA's part is left to a thread, under the lock that every call takes
which would compile the same program::

    started = jit(step).warm(state, batch)       # returns at once
    ...                                          # load data meanwhile
    step(state, batch)                           # waits for the rest
"""

from collections.abc import Callable

from verax.api.arguments.jit_options import warn_unusable
from verax.api.stages.interfaces import Interface, Stage
from verax.api.stages.stages import Compiled, Traced, check_sizes_known
from verax.api.tracing.apply import ENGINE
from verax.backend.programs.program import Pending, Program, pending
from verax.backend.runtime.background import Job
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.leaks import leaked

type Finish = Callable[[Interface, Program, Jaxpr], Compiled]


class Compilation(Stage):
    """A compilation under way, begun by `jit(f).warm`.

    Nobody needs to wait for it: a call that needs the program does so itself, and if
    the compiler fails, fails with the same error. It holds no arguments.
    """

    __module__ = "verax.stages"
    __slots__ = ("compiled", "finish", "interface", "jaxpr", "job", "pending")

    def __init__(
        self, stage: Traced, order: Pending, job: Job[Program], finish: Finish
    ) -> None:
        self.interface, self.jaxpr = stage.interface, stage.traced.jaxpr
        self.pending, self.job, self.finish = order, job, finish
        self.compiled: Compiled | None = None

    def done(self) -> bool:
        """Whether it has ended, with a program or with an error."""
        return self.job.ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end, at most `timeout` seconds; whether it has come.

        Raises:
            RuntimeError: this process was forked from the one that compiles.
        """
        return self.job.wait(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for its end: what went wrong, or None.

        Raises:
            TimeoutError: it has not ended within `timeout` seconds.
        """
        self.ended(timeout)
        return self.job.error

    def result(self, timeout: float | None = None) -> Compiled:
        """Wait for the program, which `lower(...).compile()` makes, too.

        Raises:
            CompileError: the compiler refused the program.
            TimeoutError: it has not ended within `timeout` seconds.
        """
        self.ended(timeout)
        if self.compiled is None:
            program = self.pending.completed(self.job.result())
            self.compiled = self.finish(self.interface, program, self.jaxpr)
        return self.compiled

    def ended(self, timeout: float | None) -> None:
        """Wait for the end.

        Raises:
            TimeoutError: it has not come within `timeout` seconds.
        """
        if not self.wait(timeout):
            raise TimeoutError(
                f"the compilation of {self.fun_name} has not ended within {timeout} "
                "seconds: call result() or wait() again, or the function, which waits"
            )


def start_compiling(stage: Traced, finish: Finish = Compiled) -> Compilation:
    """Have the program of a traced function compiled; `finish` makes the last stage.

    Raises:
        LeakedTracer: the function closes over a tracer of an outer trace.
        MissingRule: a primitive has no lowering for the platform.
        ValueError: an argument has a symbolic size.
    """
    traced, interface = stage.traced, stage.interface
    if traced.captured:
        raise leaked(traced.captured[0])
    check_sizes_known(stage.fun_name, traced.jaxpr)
    warn_unusable(interface.donated, stage.donated, interface.in_avals)
    order = pending(
        ENGINE,
        traced.jaxpr,
        stage.fun_name,
        stage.options,
        stage.keep_unused,
        stage.donated,
        stage.placement,
    )
    return Compilation(stage, order, order.start(), finish)
