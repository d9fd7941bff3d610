"""Floor 5: tracebacks that end in the user's line, without the frames of verax.

One idea: Python says where a function ends with an exception (`sys.monitoring`), so
the point where one leaves verax for the code that called it is seen from outside: each
function, method, operator and callback is covered, and none pays for it::

    watch(True)
    jnp.ones(3) + jnp.ones(4)     # the traceback: this line, then the error

Frames between two of the user's own go too, and frames of Python's library and of
NumPy's that verax called. Exceptions that are no errors, as Ctrl-C, stay as they are.
"""

import builtins
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType, FrameType, TracebackType
from typing import Final

from verax.rules.values.state import LIBRARY, STATE

TOOL: Final = "verax"
TOOLS: Final = (4, 3)
"""The numbers that Python leaves free, of which Hypothesis takes the second."""
GENERATED: Final = "<attrs generated "
STANDARD: Final = os.path.dirname(os.__file__) + os.sep
INSTALLED: Final = ("site-packages" + os.sep, "dist-packages" + os.sep)
DEPENDENCIES: Final = frozenset(
    ("attr", "attrs", "jaxlib", "ml_dtypes", "numpy", "opt_einsum", "scipy")
)
SUSPENDED: Final = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
)
"""Flags of generators and coroutines, which exceptions enter from outside."""
OPTION: Final = "VERAX_TRACEBACK_FILTERING=off"
LEFT_OUT: Final = (
    "For simplicity, verax has removed its internal frames from the traceback: "
    f"{OPTION} shows them."
)
"""The end of the note that is added to an error."""
PAGES: Final = "verax.errors"
"""The classes that `docs/errors.md` explains."""


class UnfilteredStackTrace(Exception):
    """The cause of an error under `remove_frames`: its traceback has all frames."""


def watch(filtering: bool) -> None:
    """From now on, have Python say where exceptions leave functions; or no longer.

    Where the library has another name, its messages are changed in any case. Without a
    free number of a tool, tracebacks and messages stay as they are.
    """
    on = filtering or SPOKEN.name != TOOL
    monitoring = sys.monitoring
    free = [n for n in TOOLS if monitoring.get_tool(n) in (None, TOOL)]
    ours = [n for n in free if monitoring.get_tool(n) == TOOL]
    if not free or (not on and not ours):
        return
    tool, event = (ours or free)[0], monitoring.events.PY_UNWIND
    if on:
        if not ours:
            monitoring.use_tool_id(tool, TOOL)
        monitoring.register_callback(tool, event, watcher())
        monitoring.set_events(tool, event)
    else:
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(tool)


def watcher() -> Callable[[CodeType, int, BaseException], None]:
    """The function that Python calls where another ends with an exception.

    It runs for the user's functions, too, so what it needs stands in its closure. The
    function is the one that ends, and its caller is the frame around it.
    """
    library, frame_at, ends = LIBRARY, sys._getframe, filtered
    suppressed = suppress(Exception)

    def unwound(code: CodeType, instruction: int, error: BaseException) -> None:
        if code.co_filename.startswith(library):
            caller = frame_at(1).f_back
            if caller is not None and not caller.f_code.co_filename.startswith(library):
                with suppressed:  # whatever happens here, the error gets through
                    ends(code, caller, error)

    return unwound


class Spoken:
    """The name of the library in its messages, for which another may stand."""

    name = TOOL

    def shows(self, name: str) -> bool:
        """Whether the library has a name as the program calls it."""
        return name in dir(sys.modules.get(self.name))


SPOKEN: Final = Spoken()
NAMED: Final = re.compile(r"\bverax\.(?=([a-zA-Z]\w*))")


def spoken(error: BaseException) -> None:
    """Have an error of ours name the library as the program does."""
    error.args = tuple([in_words(x) if isinstance(x, str) else x for x in error.args])
    for part in ("text", "rest"):
        if isinstance(text := getattr(error, part, None), str):
            setattr(error, part, in_words(text))


def in_words(text: str) -> str:
    """A text of ours that names the library as the program does; warnings need it."""
    if SPOKEN.name == TOOL:
        return text

    def named(match: re.Match[str]) -> str:
        return f"{SPOKEN.name}." if SPOKEN.shows(match[1]) else match[0]

    return NAMED.sub(named, text)


def filtered(code: CodeType, caller: FrameType, error: BaseException) -> None:
    """Take our frames out of the traceback of an error that a caller gets from us."""
    if not isinstance(error, Exception) or isinstance(
        error, StopIteration | StopAsyncIteration
    ):
        return
    user = asking(caller)
    mode = STATE.traceback_filtering
    whole = error.__traceback__
    if user is not None and SPOKEN.name != TOOL and after_ours(whole) is None:
        spoken(error)
    if user is None or mode == "off":
        return
    if code.co_flags & SUSPENDED and came_from(caller, whole):
        return
    if mode == "tracebackhide" or (mode == "auto" and hasattr(builtins, "get_ipython")):
        for each in chain(error):
            hide(each.__traceback__)
        return
    for each in chain(error):
        each.__traceback__ = after_ours(each.__traceback__)
    if mode == "remove_frames":
        keep_whole(error, whole)
    else:
        say_so(error, user)


def asking(caller: FrameType) -> FrameType | None:
    """The frame that asked us for something; None where that was verax itself.

    Python's library and NumPy's call us on behalf of others.
    """
    frame: FrameType | None = caller
    while frame is not None and is_between(frame):
        frame = frame.f_back
    if frame is None:
        return caller  # a thread, or a callback of C
    return None if is_ours(frame.f_code.co_filename) else frame


def is_ours(file: str) -> bool:
    """Whether code of this file is verax's."""
    return file.startswith(LIBRARY) or (
        file.startswith(GENERATED) and " verax." in file
    )


def is_between(frame: FrameType) -> bool:
    """Whether a frame is of Python's library, or of what verax needs."""
    file = frame.f_code.co_filename
    if file.startswith(STANDARD):
        return not file.startswith(INSTALLED, len(STANDARD)) or is_dependency(frame)
    return file.startswith("<frozen ") or is_dependency(frame)


def is_dependency(frame: FrameType) -> bool:
    """Whether a frame is of a package that verax needs."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in DEPENDENCIES


def came_from(caller: FrameType, trace: TracebackType | None) -> bool:
    """Whether an exception was thrown in by a caller, so that it comes out again."""
    above = set()
    frame: FrameType | None = caller
    while frame is not None:
        above.add(frame)
        frame = frame.f_back
    return any(each.tb_frame in above for each in entries(trace))


def entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback, outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def after_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is the user's, if it starts in ours.

    What follows has lost our frames already, where it left us.
    """
    if trace is None or not is_ours(trace.tb_frame.f_code.co_filename):
        return trace
    for each in entries(trace):
        if not is_ours(each.tb_frame.f_code.co_filename) and not is_between(
            each.tb_frame
        ):
            return each
    return None


def hide(trace: TracebackType | None) -> None:
    """Mark what `after_ours` leaves out, for IPython, pytest and pdb."""
    shown = after_ours(trace)
    for each in entries(trace):
        if each is shown:
            return
        if each.tb_frame.f_code.co_name != "<module>":  # its locals are the module's
            each.tb_frame.f_locals["__tracebackhide__"] = True


def chain(error: BaseException) -> list[BaseException]:
    """An error, and those before it that Python prints with it; none is made here."""
    seen: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and not any(each is other for other in seen):
        if not isinstance(each, UnfilteredStackTrace):
            seen.append(each)
        implied = None if each.__suppress_context__ else each.__context__
        each = each.__cause__ or implied
    return seen


def page_of(error: Exception) -> str | None:
    """The address of the page on the class of an error, if the pages are somewhere."""
    for kind in type(error).__mro__:
        if kind.__module__ == PAGES and STATE.docs_url is not None:
            return f"{STATE.docs_url.rstrip('/')}/errors/#{kind.__name__.lower()}"
    return None


def say_so(error: Exception, user: FrameType) -> None:
    """Note on the error where it comes from, how to see all frames, and its page.

    Where it passes through several of our functions, the innermost says it.
    """
    page = page_of(error)
    if page is not None and page not in getattr(error, "__notes__", ()):
        error.add_note(page)
    notes: list[str] = getattr(error, "__notes__", [])
    old = [note for note in notes if note.endswith(LEFT_OUT)]
    if error.__traceback__ is not None:  # it was raised by a function of the user's
        if not old:
            error.add_note(LEFT_OUT)
        return
    for note in old:  # the error of an earlier call, raised again
        notes.remove(note)
    place = f"{user.f_code.co_filename}:{user.f_lineno} ({user.f_code.co_name})"
    error.add_note(f"Raised by the call at {place}. {LEFT_OUT}")


def keep_whole(error: Exception, whole: TracebackType | None) -> None:
    """Make the whole traceback that of the error's cause."""
    cause = error.__cause__
    if isinstance(cause, UnfilteredStackTrace):  # from further in
        cause.__traceback__ = joined(whole, cause.__traceback__)
        return
    text = "".join(traceback.format_exception_only(error)).strip()
    full = UnfilteredStackTrace(
        f"{text}\n\nThis traceback has all frames; the one below, of the error itself, "
        "leaves out those of verax."
    )
    full.__traceback__ = whole
    full.__cause__, full.__context__ = cause, error.__context__
    full.__suppress_context__ = error.__suppress_context__
    error.__cause__ = full


def joined(
    outer: TracebackType | None, inner: TracebackType | None
) -> TracebackType | None:
    """The traceback of an outer function, with the whole of the inner one."""
    caller = None if inner is None else inner.tb_frame.f_back
    kept = []
    for each in entries(outer):
        kept.append(each)
        if each.tb_frame is caller:
            break
    else:
        return outer
    for each in reversed(kept):
        inner = TracebackType(inner, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return inner
