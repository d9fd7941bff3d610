"""Floor 5: the commands of `debug.breakpoint`: looking at the frames of a stopped run.

A command line on frames that are values, so it can move among them, evaluate
expressions in them and show their source, but not step: the program runs elsewhere::

    CommandLine(stops, stdin=stdin, stdout=stdout).run()
"""

import cmd
import inspect
import linecache
import pprint
import sys
import traceback
from collections.abc import Callable, Sequence
from types import CodeType
from typing import IO, Any

from attrs import frozen

from verax.ir.records import ReprMixin


@frozen(eq=False, repr=False)
class Stop(ReprMixin):
    """A frame: where it is, and what its variables are."""

    code: CodeType
    line: int
    variables: dict[str, Any]
    globals: dict[str, Any]

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
        """Where it is, with so many lines of source before and after."""
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
