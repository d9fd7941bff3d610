"""Floor 5: debugging: prints and breakpoints in programs, and the commands of a stop.

The frames of the stack are noted while the function is traced; the tracers among their
variables are the operands of a debug callback, which opens a command line on the frames
with the values of that run in their places::

    y = jnp.sin(x)
    breakpoint()          # (jdb) p x, y
"""

import cmd
import inspect
import linecache
import logging
import pprint
import string
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from types import CodeType, FrameType
from typing import IO, Any, ClassVar

import numpy as np
from attrs import evolve, field, frozen

from verax.api.host.callbacks import Held, UserFunction, call_host, pure_callback
from verax.api.tracing.apply import current_builder
from verax.api.tracing.wrapping import function_name
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.backend.runtime.log import LOGGER
from verax.ir.dtypes import DType, is_inexact
from verax.ir.effects import DEBUG, ORDERED_DEBUG
from verax.ir.jaxpr import Source
from verax.ir.locks import Lock, locked
from verax.ir.records import ReprMixin
from verax.ops.calls.callbacks import debug_callback_p
from verax.ops.elementwise.select import stop_gradient
from verax.rules.programs.host import CallbackError
from verax.rules.rows.builder import Scope, Tracer
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import NotAnArray, check_callable
from verax.rules.values.state import SOURCES, user_source

# -----------------------------------------------------------------------------
# Looking at values while a program runs.
#
# A print is a callback that returns nothing, so it goes wherever callbacks go,
# and what it prints is an equation of the program::
#
#     debug_print("x = {x}, mean {:.2f}", x.mean(), x=x)


def debug_callback(
    callback: Callable[..., object] | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: object,
) -> Any:
    """Call a Python function with values of a running program; returns nothing.

    The function gets arrays in the structure of `args` and `kwargs`; leaves that are no
    arrays, such as strings, reach it as they are. It is called each time the program
    reaches it, also under `vmap` (for each element, in order) and `grad` (with the
    primal values, in the forward pass). With `ordered`, all ordered callbacks are
    called in the order of the program. In a program over several devices the first one
    calls the function, with whole arrays; with `partitioned` each device does, with
    what it has of them, unless the callback is ordered or mapped by `vmap`. Without
    `callback`, the options are kept for a second call:
    `callback(ordered=True)(function, *args)`.

    Raises:
        TypeError: `callback` is not a function.
        CallbackError: the function raised an exception in a compiled program, which
            raises this when it runs; otherwise the exception comes as it is.

    >>> import verax
    >>> seen = []
    >>> f = verax.jit(lambda x: verax.debug.callback(seen.append, x))
    >>> f(1.0)
    >>> verax.effects_barrier()
    >>> seen
    [Array(1., dtype=float32)]
    """
    if callback is None:
        check_only_options("callback", args, kwargs)
        return partial(called_with, ordered, partitioned)
    called_with(ordered, partitioned, callback, *args, **kwargs)
    return None


def called_with(
    ordered: bool,
    partitioned: bool,
    callback: Callable[..., object],
    /,
    *args: object,
    **kwargs: object,
) -> None:
    """A debug callback with only its options so far."""
    check_callable("debug.callback", callback)
    leaves, tree = pytrees.flatten((args, kwargs))
    statics: list[tuple[int, Held[object]]] = []
    operands: list[object] = []
    dtypes: list[DType] = []
    for i, leaf in enumerate(leaves):
        try:
            dtypes.append(aval_of(leaf).dtype)
            operands.append(leaf)
        except NotAnArray:
            statics.append((i, Held(leaf)))
    function = UserFunction(
        function_name(callback),
        Held(callback),
        tree,
        tuple(dtypes),
        tuple(statics),
        None,
        user_source(1),
    )
    effect = ORDERED_DEBUG if ordered else DEBUG
    try:
        call_host(
            debug_callback_p,
            function,
            operands,
            (),
            effect,
            "sequential",
            partitioned,
        )
    except CallbackError as error:
        # Outside of programs this is a call of the function, as in JAX.
        raise error.__cause__ or error from None


def check_only_options(
    name: str, args: tuple[object, ...], kwargs: dict[str, Any]
) -> None:
    """Raise TypeError if the first of two calls has values for the second."""
    if args or kwargs:
        first = next(iter(kwargs), None)
        what = f"{first}=..." if first is not None else repr(args[0])
        raise TypeError(
            f"debug_{name} received unexpected arguments in the two-call form, "
            f"debug.{name}(ordered=True)(...): the first call takes options only, not "
            f"{what}, which belongs to the second"
        )


class FormatCheck(string.Formatter):
    """Formats nothing: only checks that every argument has a placeholder."""

    def format_field(self, value: object, format_spec: str) -> str:
        return ""

    def convert_field(self, value: object, conversion: object) -> object:
        return value

    def check_unused_args(
        self,
        used_args: set[int | str],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> None:
        unused = [i for i in range(len(args)) if i not in used_args]
        if unused:
            raise ValueError(
                f"Unused positional arguments to `verax.debug.print`: {unused}. The "
                "format has no placeholder for them; add one, as in 'x = {}'"
            )
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `verax.debug.print`: {names}. You may be "
                "passing an f-string, which Python fills in while tracing: pass a "
                f"plain format string, 'x = {{{names[0]}}}'"
            )


def has_fields(fmt: str) -> bool:
    """Whether a format has a placeholder for a value."""
    return any(name is not None for _, name, _, _ in string.Formatter().parse(fmt))


@frozen(repr=False)
class Printing(ReprMixin):
    """The callback of `debug.print`: a format, and NumPy's options at the trace."""

    fmt: str
    options: Held[tuple[tuple[str, Any], ...]]
    fields: bool
    record: logging.LogRecord | None = field(default=None, eq=False)

    @property
    def __name__(self) -> str:
        return "debug.print"

    def __call__(self, *args: object, **kwargs: object) -> None:
        with np.printoptions(**dict(self.options.value)):
            text = self.fmt.format(*args, **kwargs)
            if not self.fields:
                text = " ".join((text, *map(str, args)))
        if self.record is None:
            sys.stdout.write(text + "\n")
        elif LOGGER.isEnabledFor(self.record.levelno):
            record = copy(self.record)
            record.msg = text
            LOGGER.handle(record)


def debug_print(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> Any:
    """Print values of a running program, formatted by `fmt.format(*args, **kwargs)`.

    Arguments are arrays, pytrees of them, and anything else that can be printed; a
    format without placeholders is printed in front of them. It prints each time the
    program reaches it; see `debug.callback`, also for the options. NumPy's print
    options are those at the time of tracing. Without `fmt`, the options are kept for a
    second call: `print(ordered=True)("x = {x}", x=x)`.

    Raises:
        TypeError: `fmt` is not a string.
        ValueError: an argument has no placeholder, unless `skip_format_check` is set.

    >>> import verax
    >>> @verax.jit
    ... def f(x):
    ...     verax.debug.print("x = {x}, twice {}", x * 2, x=x)
    ...     return x
    >>> y = f(3.0).block_until_ready()
    x = 3.0, twice 6.0
    """
    if fmt is None:
        check_only_options("print", args, kwargs)
        return partial(printed_with, ordered, partitioned, skip_format_check, None)
    printed_with(ordered, partitioned, skip_format_check, None, fmt, *args, **kwargs)
    return None


def debug_log(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> Any:
    """`debug.print` into the logger "verax", at level INFO, from the line of the call.

    >>> import logging, verax
    >>> logging.getLogger("verax").setLevel(logging.WARNING)
    >>> verax.debug.log("x = {}", 3)
    """
    record = log_record(user_source(1))
    if fmt is None:
        check_only_options("log", args, kwargs)
        return partial(printed_with, ordered, partitioned, skip_format_check, record)
    printed_with(ordered, partitioned, skip_format_check, record, fmt, *args, **kwargs)
    return None


def log_record(source: Source) -> logging.LogRecord:
    """A record without a message, which says where the user's call is."""
    return LOGGER.makeRecord(
        LOGGER.name, logging.INFO, source.file, source.line, "", (), None
    )


def printed_with(
    ordered: bool,
    partitioned: bool,
    skip_format_check: bool,
    record: logging.LogRecord | None,
    fmt: str,
    /,
    *args: object,
    **kwargs: object,
) -> None:
    """A print with only its options so far."""
    if not isinstance(fmt, str):
        raise TypeError(
            f"debug.print takes a format string first, not {type(fmt).__name__}: "
            'debug.print("{}", x)'
        )
    fields = has_fields(fmt)
    if not skip_format_check and (fields or kwargs):
        FormatCheck().format(fmt, *args, **kwargs)
    options = Held(tuple(sorted(np.get_printoptions().items())))
    called_with(
        ordered, partitioned, Printing(fmt, options, fields, record), *args, **kwargs
    )


# -----------------------------------------------------------------------------
# The commands of `debug.breakpoint`: looking at the frames of a stopped run.
#
# A command line on frames that are values, so it can move among them, evaluate
# expressions in them and show their source, but not step: the program runs elsewhere::
#
#     CommandLine(stops, stdin=stdin, stdout=stdout).run()


@frozen(eq=False, repr=False)
class Stop(ReprMixin):
    """A frame: where it is, and what its variables are."""

    code: CodeType
    line: int
    variables: dict[str, object]
    globals: dict[str, object]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression; local variables hide global ones."""
        # One dictionary: functions and comprehensions in it see all variables.
        return eval(expression, {**self.globals, **self.variables})

    def source(self) -> tuple[list[str], int]:
        """The lines of the function, and the number of the first; none if unknown."""
        if self.code.co_name == "<module>":
            whole = linecache.getlines(self.code.co_filename, self.globals)
            return [line.rstrip("\n") for line in whole], 1
        try:
            lines, first = inspect.getsourcelines(self.code)
        except (OSError, TypeError):
            return [], 0
        # An empty line at the end shows that the function ends there.
        return [*[line.rstrip("\n") for line in lines], ""], max(first, 1)

    def context(self, around: int) -> str:
        """The lines of source around it: so many before and after."""
        shown = [f"> {self.code.co_filename}({self.line})"]
        lines, first = self.source()
        for number, line in enumerate(lines, first):
            if -around - 1 <= number - self.line <= around:
                mark = "->  " if number == self.line else "    "
                shown.append(mark + line)
        return "\n".join(shown)

    def place(self) -> str:
        """Its two lines of a backtrace."""
        lines, first = self.source()
        known = 0 <= self.line - first < len(lines)
        text = lines[self.line - first].strip() if known else "<no source>"
        return f'  File "{self.code.co_filename}", line {self.line}\n    {text}'


class CommandLine(cmd.Cmd):
    """Reads commands, and answers them, until one lets the program go on."""

    prompt = "(jdb) "
    intro = "Entering jdb:"

    def __init__(
        self,
        stops: Sequence[Stop],
        *,
        completekey: str = "tab",
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
    ) -> None:
        super().__init__(completekey, stdin, stdout)
        self.use_rawinput = stdin is None
        self.stops = stops
        self.index = 0

    def run(self) -> None:
        """Read commands; Ctrl-C ends a command, not the debugger."""
        while True:
            try:
                self.cmdloop()
            except KeyboardInterrupt:
                self.say("--KeyboardInterrupt--")
            else:
                return

    def say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def show(self, expression: str, form: Callable[[object], str]) -> None:
        """Print the value of an expression, or the error that it raises."""
        try:
            text = form(self.stops[self.index].evaluate(expression))
        except Exception as error:
            last = traceback.format_exception_only(error)[-1]
            text = f"*** {last.strip()}"
        self.say(text)

    def move(self, step: int, end: str) -> None:
        """Go `step` frames outwards, unless that is past the end; show where it is."""
        if 0 <= self.index + step < len(self.stops):
            self.index += step
        else:
            self.say(f"At {end} frame.")
        self.say(self.stops[self.index].context(2))

    def default(self, line: str) -> None:
        """Evaluate what is not a command."""
        self.show(line, repr)

    def do_p(self, arg: str) -> None:
        """p expression: print its value."""
        self.show(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp expression: print its value over several lines."""
        self.show(arg, pprint.pformat)

    def do_up(self, arg: str) -> None:
        """u(p): go to the caller of this frame."""
        self.move(1, "topmost")

    def do_down(self, arg: str) -> None:
        """d(own): go to the frame that this one has called."""
        self.move(-1, "bottommost")

    def do_list(self, arg: str) -> None:
        """l(ist): show the source around the line of this frame."""
        self.say(self.stops[self.index].context(5))

    def do_where(self, arg: str) -> None:
        """w(here), bt: show the stack, the innermost frame last."""
        places = [stop.place() for stop in reversed(self.stops)]
        self.say("\n".join(["Traceback:", *places]))

    def do_continue(self, arg: str) -> bool:
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, arg: str) -> None:
        """q(uit), exit: end the program."""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit


def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: object = None,
    **kwargs: object,
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


def passed_on(token: object, stopping: "Stopping", tracers: Sequence[Tracer]) -> object:
    """`token`, by way of a callback that stops first."""
    leaves, tree = pytrees.flatten(token)
    held = tree.unflatten(map(constant_in_derivatives, leaves))

    def stop_and_pass(token: object, *operands: object) -> object:
        stopping(*operands)
        return token

    operands = list(map(constant_in_derivatives, tracers))
    return pure_callback(stop_and_pass, held, held, *operands, vmap_method="sequential")


def constant_in_derivatives(x: object) -> object:
    """An array without its gradient: a callback has none."""
    return stop_gradient(x) if is_inexact(aval_of(x).dtype) else x


def stack(frame: FrameType | None, filtered: bool) -> list[FrameType]:
    """The frames from one outwards, without those of the library if `filtered`."""
    out = []
    while frame is not None:
        if not (filtered and SOURCES.is_library(frame.f_code.co_filename)):
            out.append(frame)
        frame = frame.f_back
    return out


@frozen(eq=False, repr=False)
class Pick(ReprMixin):
    """A variable that holds tracers: its structure, and what its leaves are.

    An integer is the number of an operand, and anything else a leaf in a tuple.
    """

    tree: PyTreeDef
    leaves: tuple[int | tuple[object], ...]

    def value(self, operands: Sequence[object]) -> Any:
        """The variable with the values of a run."""
        return self.tree.unflatten(
            [operands[x] if isinstance(x, int) else x[0] for x in self.leaves]
        )


def in_run(stop: Stop, operands: Sequence[object]) -> Stop:
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
    out = []
    while builder is not None:
        out.append(builder)
        builder = builder.outer
    return out


@locked
class Turn:
    """Programs in several threads may stop at the same time; one talks at a time."""

    lock: ClassVar[Lock]


@frozen(eq=False, repr=False)
class Stopping:
    """The callback of `debug.breakpoint`: the frames, and the debugger's options."""

    stops: Sequence[Stop]
    options: tuple[tuple[str, Any], ...]

    @property
    def __name__(self) -> str:
        return "debug.breakpoint"

    def __call__(self, *operands: object) -> None:
        stops = [in_run(stop, operands) for stop in self.stops]
        with Turn.lock:
            CommandLine(stops, **dict(self.options)).run()
