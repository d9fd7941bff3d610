"""Floor 1: what is said of a tracer in the wrong place: who made it, who holds it.

Tracers are used after their trace has ended, in another thread, or for a value that
they do not have. The builder raises; the messages are made here, below it, from what a
tracer and its builder show of themselves::

    leaked(tracer)
    # LeakedTracer: Encountered an unexpected tracer: a tracer of type float32[] has
    # left the function that was traced for jit: it was created on line model.py:3, held
    # by the global 'kept' of module model, used at ...
"""

import ast
import gc
import linecache
import math
import re
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from threading import get_ident
from types import FrameType, MappingProxyType, ModuleType
from typing import Final, Protocol

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Source, Var
from verax.rules.values.conversions import (
    AbstractValueError,
    ConcretizationTypeError,
    JAXTypeError,
    Refusal,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from verax.rules.values.object_holders import holder, is_kept, reachable
from verax.rules.values.state import SOURCES, user_source

# -----------------------------------------------------------------------------
# What to do about a tracer that was asked for its value.
#
# The advice depends on what asked: a NumPy function, a shape, an `if`, `float(x)`.
# Which function that was is read from the user's line, for the message alone::
#
#     np.sin(tracer)      # Use verax.numpy.sin, which takes tracers


OUTSIDE: Final = "read a Python value from outside the function"
FIXED: Final = MappingProxyType(
    {
        "vmap": "leave the argument unmapped (in_axes=None)",
        "scan": OUTSIDE,
        "while_loop": OUTSIDE,
        "cond": OUTSIDE,
        "switch": OUTSIDE,
    }
)
STATIC: Final = "make the argument static (static_argnums, static_argnames)"
SMALLER: Final = (
    ".\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
    "subfunctions."
)
RUNNING: Final = (
    "verax.debug.print shows values of the running program, and verax.pure_callback "
    "calls Python functions on them"
)


OPENINGS: Final = MappingProxyType(
    {
        "an index or a size": "The __index__() method was called on traced array",
        "__dlpack__()": "The __dlpack__() method was called on traced array",
        "x.tolist()": "The tolist() method was called on traced array",
        "x.tobytes()": "The tobytes() method was called on traced array",
        TracerBoolConversionError: "Attempted boolean conversion of traced array",
        TracerArrayConversionError: (
            "The numpy.ndarray conversion method __array__() was called on traced array"
        ),
        ConcretizationTypeError: (
            "Abstract tracer value encountered where concrete value is expected"
        ),
    }
)
"""JAX's words on the same question, for those who search for them."""


MISSING: Final = re.compile(r"without (\w+=)")
SIZES: Final = MappingProxyType(
    {
        "an index or a size": (
            ". To index a list by a tracer, convert it first (verax.numpy.asarray); "
            "for a loop of as many steps, use verax.lax.fori_loop"
        )
    }
)
"""What else helps who asked a tracer for an integer."""


def opening(refusal: Refusal, expected: str, aval: ShapedArray) -> str:
    """The beginning of the message: what was `expected` of a tracer of this type."""
    if "shape" in expected:
        return expected
    out = OPENINGS.get(expected) or OPENINGS.get(refusal)
    if not out:
        return expected
    if "traced" not in out:
        return f"{out}: {expected}"
    asked = re.sub(r"^an?\b", lambda found: found[0].capitalize(), expected)
    return f"{out} with shape {aval.str_short()}. {asked}"


def advice(refusal: Refusal, expected: str, purpose: str) -> str:
    """Advice for what was `expected` of a tracer of a trace for `purpose`."""
    fixed = FIXED.get(purpose, STATIC)
    if issubclass(refusal, TracerArrayConversionError):
        name = called_function()
        ours = f"verax.numpy.{name}" if name else "the functions of verax.numpy"
        takes = "which takes tracers" if name else "which take tracers"
        return (
            f"Use {ours}, {takes}; to index a NumPy array by a tracer, convert it "
            f"first (verax.numpy.asarray). {RUNNING}"
        )
    if missing := MISSING.search(expected):
        return (
            f"Pass {missing[1]}, which fixes the shape: what is over is cut off, and "
            f"what is missing filled. Or {fixed}"
        )
    if issubclass(refusal, TracerIntegerConversionError) or "shape" in expected:
        return (
            "Shapes, axes and Python's own integers are part of the program, so they "
            "cannot depend on its inputs: take them from shapes (x.shape) or "
            f"constants, or {fixed}{SIZES.get(expected, '')}"
            f"{SMALLER if 'shape' in expected and fixed == STATIC else ''}"
        )
    if issubclass(refusal, TracerBoolConversionError):
        return (
            "Use verax.numpy.where, verax.lax.cond or verax.lax.while_loop for a "
            "choice that depends on values, &, | and ~ for `and`, `or` and `not`, or "
            f"{fixed}. {RUNNING}"
        )
    name = called_function()
    ours = f"Use verax.numpy.{name}, which takes tracers. " if name else ""
    kind = expected.removesuffix("(x)")
    astype = f"x.astype({kind})" if kind in ("float", "int", "complex") else "x.astype"
    return (
        f"{ours}To convert an array to another dtype, try using `{astype}`; for "
        f"Python's own value, {fixed}. {RUNNING}"
    )


def called_function() -> str | None:
    """The name in verax.numpy of the function of NumPy or math that the user called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_passed_over(frame):
        frame = frame.f_back
    if frame is None:
        return None
    try:
        call = ast.parse(running_text(frame).strip(), mode="eval").body
        result = resolved(frame, call.func) if isinstance(call, ast.Call) else None
        name = getattr(result, "__name__", None)
    except Exception:  # no source, or a user's own attribute: the message must appear
        return None
    if not isinstance(name, str):
        return None
    # NumPy loads its modules when they are first read, as here.
    spaces = (("", np), ("linalg.", np.linalg), ("fft.", np.fft), ("", math))
    for prefix, space in spaces:
        if getattr(space, name, None) is result and (prefix or hasattr(np, name)):
            return prefix + name
    return None


def is_passed_over(frame: FrameType) -> bool:
    """Whether a frame is ours or NumPy's."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.startswith("numpy.") or SOURCES.is_library(frame.f_code.co_filename)


def running_text(frame: FrameType) -> str:
    """The source of the expression that a frame is evaluating."""
    places = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    first, last, start, stop = places
    if first is None or last is None:
        return ""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    chosen = [line.encode() for line in lines[first - 1 : last]]
    chosen[-1] = chosen[-1][:stop]
    chosen[0] = chosen[0][start:]
    return b"".join(chosen).decode()


def resolved(frame: FrameType, node: ast.expr) -> object:
    """The value of `np.linalg.norm` in a frame; None unless names and modules."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        space = resolved(frame, node.value)
        if isinstance(space, ModuleType):
            return getattr(space, node.attr, None)
    return None


INPUT: Final = "an input of that trace"
REMEDY: Final = (
    "Return the value from the function, or pass it in as an argument, instead of "
    "saving it to an object or to global state"
)
# So many tracers are listed, and of so many their holders are looked up.
SHOWN: Final = 3
ASKED: Final = 8


class BuilderLike(Protocol):
    """A builder, as the messages read it."""

    purpose: str
    alive: bool
    thread: int
    inputs: list[Var]
    eqns: list[Eqn]
    describe: Callable[[], Sequence[str]] | None

    @property
    def captured(self) -> Mapping[tuple[int, Atom], tuple[object, Var]]: ...


class TracerLike(Protocol):
    """A tracer, as the messages read it."""

    @property
    def aval(self) -> ShapedArray: ...
    @property
    def atom(self) -> Atom: ...
    @property
    def builder(self) -> BuilderLike: ...


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used where it means nothing; JAX's name for the next class."""

    __module__ = "verax.errors"


class LeakedTracer(UnexpectedTracerError, RuntimeError):
    """A tracer was used after the function that made it had been traced.

    Who holds the tracer is looked up when the message is read, between `text` and
    `rest`: that goes through all objects of the process.
    """

    __module__ = "verax.errors"

    def __init__(
        self, text: str, tracer: "TracerLike | None" = None, rest: str = ""
    ) -> None:
        super().__init__(text + rest)
        self.text = text
        self.tracer = tracer
        self.rest = rest

    def __str__(self) -> str:
        if self.tracer is not None:
            self.text += held(self.tracer)
            self.tracer = None
        return self.text + self.rest


def origin(tracer: TracerLike) -> Source:
    """The line of the equation that made the tracer."""
    for eqn in tracer.builder.eqns:
        if tracer.atom in eqn.outvars:
            return eqn.source
    return UNKNOWN_SOURCE


def birth(tracer: TracerLike) -> str:
    """The origin of a tracer: a line, or an argument."""
    made = origin(tracer)
    if made.code is not None:
        return f"it was created on line {made}"
    named = depends_on(tracer)
    return f"an input of that trace ({', '.join(named)})" if named else INPUT


def held(tracer: TracerLike) -> str:
    """The holder of a tracer, if it has a name."""
    by = holder(tracer)
    return f", held by {by}" if by else ""


def leaked(tracer: TracerLike) -> LeakedTracer:
    """The error for a tracer outside its trace: who made, holds and uses it."""
    if tracer.builder.alive and tracer.builder.thread != get_ident():
        return LeakedTracer(
            f"a tracer of type {tracer.aval} was used in a thread other than the one "
            f"that traces a function for {tracer.builder.purpose}: {birth(tracer)}, "
            f"used at {user_source(1)}. A function is traced in one thread: start "
            "threads outside the function, and pass them arrays"
        )
    return LeakedTracer(
        "Encountered an unexpected tracer: "
        f"a tracer of type {tracer.aval.str_short()} has left the function that was "
        f"traced for {tracer.builder.purpose}: {birth(tracer)}",
        tracer,
        f", used at {user_source(1)}. {REMEDY}",
    )


def left_behind[T: TracerLike](
    builder: BuilderLike, fun: object, kind: type[T]
) -> list[T]:
    """The tracers of `fun`, whose trace has ended, that its user holds nevertheless.

    They are instances of `kind`, and held by what the function can reach, or by
    something with a name. Others are in rules of the user's, which close over what
    they like.
    """
    left: list[T] = []
    for generation in (1, 2):  # what a trace makes is young, as a rule
        gc.collect(generation)
        left = [x for x in gc.get_referrers(builder) if isinstance(x, kind)]
        if not left:
            return left
    inside = reachable(fun, kind, type(builder))
    kept = [x for x in left if id(x) in inside]
    return kept or [x for x in left[:ASKED] if is_kept(x)]


def abandoned(name: str, tracers: Sequence[TracerLike]) -> LeakedTracer:
    """The error for tracers that are held though their trace has ended."""
    lines = [f"  type {x.aval}, {birth(x)}{held(x)}" for x in tracers[:SHOWN]]
    if len(tracers) > SHOWN:
        lines.append(f"  and {len(tracers) - SHOWN} more")
    count = "a tracer has" if len(tracers) == 1 else f"{len(tracers)} tracers have"
    first = f"Leaked trace: {count} left {name}, which was traced:"
    return LeakedTracer("\n".join([first, *lines, REMEDY]))


def behind(tracer: TracerLike) -> tuple[list[Eqn], set[Atom]]:
    """The equations from which a tracer is computed, in order, and their atoms."""
    atoms: set[Atom] = {tracer.atom}
    eqns = []
    for eqn in reversed(tracer.builder.eqns):
        if not atoms.isdisjoint(eqn.outvars):
            atoms.update(eqn.invars)
            eqns.append(eqn)
    return eqns[::-1], atoms


def roots(tracer: TracerLike) -> list[Var]:
    """The inputs of its trace from which the value of a tracer is computed."""
    _, atoms = behind(tracer)
    return [var for var in tracer.builder.inputs if var in atoms]


def depends_on(tracer: TracerLike, known: Container[Var] = ()) -> list[str]:
    """The arguments, as strings, from which the value of a tracer is computed.

    Those that are `known` are left out.
    """
    builder = tracer.builder
    if builder.describe is None:
        return []
    below = roots(tracer)
    captured = {inner for _, inner in builder.captured.values()}
    own = [var for var in builder.inputs if var not in captured]
    return [
        text
        for text, var in zip(builder.describe(), own, strict=False)
        if var in below and var not in known
    ]


def abstract(
    tracer: TracerLike,
    expected: str,
    refusal: Refusal = ConcretizationTypeError,
    known: Container[Var] = (),
) -> AbstractValueError:
    """The error for a value that does not exist yet: which input, what to do.

    Inputs that are `known` are not to blame.
    """
    builder = tracer.builder
    named = depends_on(tracer, known)
    inputs = f" It depends on {', '.join(named)}." if named else ""
    return refusal(
        f"{opening(refusal, expected, tracer.aval)} needs the value of a tracer of "
        f"type {tracer.aval}, at {user_source(1)}, but the function is being traced "
        f"for {builder.purpose}, where only types are known.{inputs} "
        f"{advice(refusal, expected, builder.purpose)}"
    )
