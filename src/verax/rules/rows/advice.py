"""Floor 1: what to do about a tracer that was asked for its value.

The advice depends on what asked: a NumPy function, a shape, an `if`, `float(x)`. Which
function that was is read from the user's line, for the message alone::

    np.sin(tracer)      # Use verax.numpy.sin, which takes tracers
"""

import ast
import linecache
import math
import sys
from types import FrameType, MappingProxyType, ModuleType
from typing import Final

import numpy as np

from verax.rules.values.conversions import (
    ConcretizationTypeError,
    Refusal,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from verax.rules.values.source import SOURCES

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
RUNNING: Final = (
    "verax.debug.print shows values of the running program, and verax.pure_callback "
    "calls Python functions on them"
)


OPENINGS: Final = MappingProxyType(
    {
        "an index or a size": "The __index__() method was called on traced array",
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
"""What JAX says of the same question, for those who search for it."""


def opening(refusal: Refusal, wanted: str) -> str:
    """How the message about what was `wanted` of a tracer begins."""
    if "shape" in wanted:
        return ""
    found = OPENINGS.get(wanted) or OPENINGS.get(refusal)
    return f"{found}: " if found else ""


def advice(refusal: Refusal, wanted: str, purpose: str) -> str:
    """What to write, for what was `wanted` of a tracer of a trace for `purpose`."""
    fixed = FIXED.get(purpose, STATIC)
    if issubclass(refusal, TracerArrayConversionError):
        name = called_function()
        ours = f"verax.numpy.{name}" if name else "the functions of verax.numpy"
        takes = "which takes tracers" if name else "which take tracers"
        return (
            f"Use {ours}, {takes}; to index a NumPy array by a tracer, convert it "
            f"first (verax.numpy.asarray). {RUNNING}"
        )
    if issubclass(refusal, TracerIntegerConversionError) or "shape" in wanted:
        return (
            "Shapes, axes and Python's own integers are part of the program, so they "
            "cannot depend on its inputs: take them from shapes (x.shape) or "
            f"constants, or {fixed}. To index a list by a tracer, convert it first "
            "(verax.numpy.asarray)"
        )
    if issubclass(refusal, TracerBoolConversionError):
        return (
            "Use verax.numpy.where, verax.lax.cond or verax.lax.while_loop for a "
            "choice that depends on values, &, | and ~ for `and`, `or` and `not`, or "
            f"{fixed}. {RUNNING}"
        )
    name = called_function()
    ours = f"Use verax.numpy.{name}, which takes tracers. " if name else ""
    kind = wanted.removesuffix("(x)")
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
        found = resolved(frame, call.func) if isinstance(call, ast.Call) else None
        name = getattr(found, "__name__", None)
    except Exception:  # no source, or a user's own attribute: the message must appear
        return None
    if not isinstance(name, str):
        return None
    # NumPy loads its modules when they are first read, as here.
    spaces = (("", np), ("linalg.", np.linalg), ("fft.", np.fft), ("", math))
    for prefix, space in spaces:
        if getattr(space, name, None) is found and (prefix or hasattr(np, name)):
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
    """What `np.linalg.norm` stands for in a frame; None unless names and modules."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        space = resolved(frame, node.value)
        if isinstance(space, ModuleType):
            return getattr(space, node.attr, None)
    return None
