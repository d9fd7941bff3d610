"""Floor 5: stopping a running program to look at the variables around a line.

The frames of the stack are noted while the function is traced; the tracers among their
variables are the operands of a debug callback, which opens a command line on the frames
with the values of that run in their places::

    y = jnp.sin(x)
    breakpoint()          # (jdb) p x, y
"""

import sys
from collections.abc import Iterator, Sequence
from threading import RLock
from types import FrameType
from typing import Any, ClassVar

from attrs import evolve, frozen

from verax.api.host.callbacks import pure_callback
from verax.api.host.command_line import CommandLine, Stop
from verax.api.host.debug_print import called_with
from verax.api.tracing.apply import current_builder
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.dtypes import is_inexact
from verax.ir.memos.locks import locked
from verax.ir.records import ReprMixin
from verax.ops.elementwise.select import stop_gradient
from verax.rules.rows.builder import Scope, Tracer
from verax.rules.values.constants import aval_of
from verax.rules.values.source import SOURCES


def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop a running program here, and read commands about its variables.

    The program stops each time it gets here, under `jit` too: under `vmap` once for
    each element, under `grad` in the forward pass. Commands are those of `pdb` that
    look and do not step; `help` lists them:

    * `p x, y` and `pp x` print the value of an expression, as does a line that is not
      a command;
    * `l` shows the source, `bt` the stack, `u` and `d` move to the caller and back;
    * `c` goes on, and `q` ends the program with `SystemExit`.

    Args:
        backend: the debugger; "cli" is the only one, which other names choose too.
        filter_frames: leave frames of verax out.
        num_frames: how many frames to show, the innermost ones; all by default.
        ordered: stop in the order of the program, among other ordered callbacks.
        token: a pytree of arrays: stop when these are computed, if the program uses
            what `breakpoint` returns, which is `token` again, without its gradient.
        kwargs: `stdin`, `stdout` and `completekey`, as for `cmd.Cmd`.

    Raises:
        ValueError: both `ordered` and `token` are given.

    >>> import io, verax
    >>> commands, answers = io.StringIO("p x, y\\nc\\n"), io.StringIO()
    >>> @verax.jit
    ... def f(x):
    ...     y = x + 1
    ...     verax.debug.breakpoint(stdin=commands, stdout=answers)
    ...     return y
    >>> x = f(1.0)
    >>> verax.effects_barrier()
    >>> answers.getvalue().splitlines()[1]
    '(jdb) (Array(1., dtype=float32), Array(2., dtype=float32))'
    """
    if ordered and token is not None:
        raise ValueError(
            "debug.breakpoint takes either ordered=True or a token, which orders it "
            "already"
        )
    frames = stack(sys._getframe(1), filter_frames)[:num_frames]
    stops, tracers = stops_of(frames)
    stopping = Stopping(stops, tuple(kwargs.items()))
    if token is None:
        called_with(ordered, False, stopping, *tracers)
        return None
    return passed_on(token, stopping, tracers)


def passed_on(token: Any, stopping: "Stopping", tracers: Sequence[Tracer]) -> Any:
    """`token`, by way of a callback that stops first."""
    leaves, tree = pytrees.flatten(token)
    held = tree.unflatten(map(constant_in_derivatives, leaves))

    def stop_and_pass(token: Any, *operands: Any) -> Any:
        stopping(*operands)
        return token

    operands = list(map(constant_in_derivatives, tracers))
    return pure_callback(stop_and_pass, held, held, *operands, vmap_method="sequential")


def constant_in_derivatives(x: Any) -> Any:
    """An array without its gradient: a callback has none."""
    return stop_gradient(x) if is_inexact(aval_of(x).dtype) else x


def stack(frame: FrameType | None, filtered: bool) -> list[FrameType]:
    """The frames from one outwards, without those of the library if `filtered`."""
    found = []
    while frame is not None:
        if not (filtered and SOURCES.is_library(frame.f_code.co_filename)):
            found.append(frame)
        frame = frame.f_back
    return found


@frozen(eq=False, repr=False)
class Pick(ReprMixin):
    """A variable that holds tracers: its structure, and what its leaves are.

    An integer is the number of an operand, and anything else a leaf in a tuple.
    """

    tree: PyTreeDef
    leaves: tuple[int | tuple[object], ...]

    def value(self, operands: Sequence[Any]) -> Any:
        """The variable with the values of a run."""
        return self.tree.unflatten(
            [operands[x] if isinstance(x, int) else x[0] for x in self.leaves]
        )


def in_run(stop: Stop, operands: Sequence[Any]) -> Stop:
    """A frame noted by `stops_of`, with the values of a run."""
    variables = {
        name: x.value(operands) if isinstance(x, Pick) else x
        for name, x in stop.variables.items()
    }
    return evolve(stop, variables=variables)


def stops_of(frames: Sequence[FrameType]) -> tuple[list[Stop], list[Tracer]]:
    """Frames as they are now, and the tracers among their variables, each once.

    Variables that hold tracers are picks from the operands of a run.
    """
    numbers: dict[int, int] = {}
    tracers: list[Tracer] = []
    around = builders_around(current_builder())

    def leaf(x: object) -> int | tuple[object]:
        if not isinstance(x, Tracer) or x.builder not in around:
            return (x,)
        if id(x) not in numbers:
            numbers[id(x)] = len(tracers)
            tracers.append(x)
        return numbers[id(x)]

    def variable(x: object) -> object:
        try:
            leaves, tree = pytrees.flatten(x, is_iterator)
        except Exception:
            return x  # what cannot be taken apart is shown as it is
        if not any([isinstance(y, Tracer) for y in leaves]):
            return x
        return Pick(tree, tuple(map(leaf, leaves)))

    stops = [
        Stop(
            frame.f_code,
            frame.f_lineno,
            {name: variable(x) for name, x in dict(frame.f_locals).items()},
            frame.f_globals,
        )
        for frame in frames
    ]
    return stops, tracers


def is_iterator(x: object) -> bool:
    """Whether looking into `x` would use it up."""
    return isinstance(x, Iterator)


def builders_around(builder: Scope | None) -> list[Scope]:
    """A builder and those of the traces around it: their tracers have values here."""
    found = []
    while builder is not None:
        found.append(builder)
        builder = builder.outer
    return found


@locked
class Turn:
    """Programs in several threads may stop at the same time; one talks at a time."""

    lock: ClassVar[RLock]


@frozen(eq=False, repr=False)
class Stopping:
    """What `debug.breakpoint` calls: the frames, and the options of the debugger."""

    stops: Sequence[Stop]
    options: tuple[tuple[str, Any], ...]

    @property
    def __name__(self) -> str:
        return "debug.breakpoint"

    def __call__(self, *operands: Any) -> None:
        stops = [in_run(stop, operands) for stop in self.stops]
        with Turn.lock:
            CommandLine(stops, **dict(self.options)).run()
