"""Floor 5: what jit is told, looked at where it is told.

One idea: an argument of the wrong kind is an error of the line that gave it, and not of
the call, long after, that uses it::

    checked_options({"xla_cpu_enable_fast_math": True})
"""

import inspect
from collections.abc import Mapping

from verax.api.tracing.trace import function_name
from verax.backend.xla.compile_options import OptionValue


def checked_options(given: object) -> tuple[tuple[str, OptionValue], ...]:
    """The options in the order of their names.

    Raises:
        TypeError: it is no mapping from names to texts, booleans and numbers.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise TypeError(
            "compiler_options takes a mapping from names of XLA options to values, not "
            f"{given!r}"
        )
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str | bool | int | float):
            raise TypeError(
                f"the compiler option {name!r} needs a text as name and a text, a "
                f"boolean or a number as value, not {value!r}"
            )
    return tuple(sorted(given.items()))


def check_flags(**flags: object) -> None:
    """Raise TypeError unless all of them are booleans."""
    for word, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"jit takes True or False as {word}, not {flag!r}")


def check_function(fun: object) -> None:
    """Raise TypeError unless `fun` is a function that returns when it is called."""
    if not callable(fun):
        raise TypeError(f"jit takes a function, not {fun!r}")
    for kind, test in (
        ("generator", inspect.isgeneratorfunction),
        ("coroutine", inspect.iscoroutinefunction),
    ):
        if test(fun):
            raise TypeError(
                f"jit takes a function that returns arrays, and {function_name(fun)} "
                f"returns a {kind}: return a tuple or a stacked array instead"
            )
