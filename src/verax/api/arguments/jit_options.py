"""Floor 5: the options of jit, checked where they are passed, and usable donations.

One idea: an argument of the wrong kind is an error at the line that passes it, not at
the later call that uses it. Donated memory goes to an output of the same shape and
dtype, each piece once; what fits no output is not donated, and the user is told::

    checked_options({"xla_cpu_enable_fast_math": True})
    usable((True, True), (f32_3, f32_4), (f32_3,))    # (True, False)
"""

import inspect
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum

from verax.api.tracing.apply import current_builder
from verax.api.tracing.wrapping import function_name
from verax.backend.xla.compile_options import CompilerEffortLevel, OptionValue
from verax.ir.avals import ShapedArray
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.state import LIBRARY


class Inline(Enum):
    """A jitted function's place in the trace in which it is written out.

    verax does so in the outer trace for JAX_EARLY, or leaves a call, which XLA inlines
    as it sees fit.
    """

    __module__ = "verax"

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def as_inline(inline: object) -> bool:
    """Whether calls are written into an outer trace.

    Raises:
        TypeError: it is neither a boolean nor an `Inline`.
    """
    if isinstance(inline, Inline):
        return inline is Inline.JAX_EARLY
    check_flags(inline=inline)
    return bool(inline)


def usable(
    donated: Sequence[bool], ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> tuple[bool, ...]:
    """The donations that have an output of the same shape and dtype."""
    free = Counter((aval.shape, aval.dtype) for aval in outs)
    out = []
    for flag, aval in zip(donated, ins, strict=False):
        kind = (aval.shape, aval.dtype)
        out.append(flag and free[kind] > 0)
        free[kind] -= out[-1]
    return tuple(out)


def warn_unusable(
    given: Sequence[bool], taken: Sequence[bool], avals: Sequence[ShapedArray]
) -> None:
    """Tell the user of donations that no output can take."""
    wasted = [
        str(aval)
        for aval, flag, used in zip(avals, given, taken, strict=False)
        if flag and not used
    ]
    if wasted:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(wasted)}; no output has "
            "that shape and dtype, or there are fewer such outputs than donations",
            UserWarning,
            skip_file_prefixes=(LIBRARY,),
        )


def checked_options(given: object) -> tuple[tuple[str, OptionValue], ...]:
    """The options in the order of their names.

    Raises:
        TypeError: it does not map names to strings, booleans and numbers.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise TypeError(
            "compiler_options takes a mapping from names of XLA options to values, not "
            f"{given!r}"
        )
    plain = {
        name: value.name if isinstance(value, CompilerEffortLevel) else value
        for name, value in given.items()
    }
    for name, value in plain.items():
        if not isinstance(name, str) or not isinstance(value, str | bool | int | float):
            raise TypeError(
                f"the compiler option {name!r} must have a string as its name and a "
                f"string, boolean or number as its value, not {shown(value)}"
            )
    return tuple(sorted(plain.items()))


def check_outermost(name: str, overrides: Sequence[tuple[str, OptionValue]]) -> None:
    """Raise ValueError for options of a function that another compiles with its own."""
    builder = current_builder()
    if builder is not None and builder.purpose == "jit":
        raise ValueError(
            "`compiler_options` can only be passed to top-level `verax.jit`. Got "
            f"{dict(overrides)} on {name}, which is called within a jitted function: "
            "pass them to that"
        )


def check_flags(**flags: object) -> None:
    """Raise TypeError unless all of them are booleans."""
    for word, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"jit takes True or False as {word}, not {shown(flag)}")


def check_function(fun: object) -> None:
    """Raise TypeError unless `fun` is a function that returns when it is called."""
    check_callable("jit", fun)
    if isinstance(fun, staticmethod):
        raise TypeError(
            f"staticmethod arguments are not supported, got {shown(fun)}: an object of "
            "its class would be passed, too; write @staticmethod above @verax.jit"
        )
    for kind, test in (
        ("generator", inspect.isgeneratorfunction),
        ("coroutine", inspect.iscoroutinefunction),
    ):
        if test(fun):
            raise TypeError(
                f"Expected a function, got a {kind} function: {function_name(fun)} "
                f"returns a {kind}, but jit takes a function that returns arrays; "
                "return a tuple or a stacked array instead"
            )
