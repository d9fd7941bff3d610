"""Floor 5: looking at values while a program runs.

One idea: a print is a callback that returns nothing, so it goes wherever callbacks go,
and what it prints is an equation of the program::

    debug_print("x = {x}, mean {:.2f}", x.mean(), x=x)
"""

import logging
import string
import sys
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen

from verax.api.host.callbacks import Held, UserFunction, call_host
from verax.api.tracing.argument_names import function_name
from verax.backend import pytrees
from verax.backend.runtime.log import LOGGER
from verax.ir.dtypes import DType
from verax.ir.effects import DEBUG, ORDERED_DEBUG
from verax.ir.jaxpr import Source
from verax.ir.records import ReprMixin
from verax.ops.calls.callbacks import debug_callback_p
from verax.rules.programs.host import CallbackError
from verax.rules.values.constants import aval_of
from verax.rules.values.source import user_source
from verax.rules.values.typed import NotAnArray, check_callable


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
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
    callback: Callable[..., Any],
    /,
    *args: Any,
    **kwargs: Any,
) -> None:
    """A debug callback with only its options so far."""
    check_callable("debug.callback", callback)
    leaves, tree = pytrees.flatten((args, kwargs))
    statics: list[tuple[int, Held]] = []
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
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise TypeError if the first of two calls has values for the second."""
    if args or kwargs:
        first = next(iter(kwargs), None)
        what = f"{first}=..." if first is not None else repr(args[0])
        raise TypeError(
            f"debug.{name} received unexpected arguments: without a function or a "
            f"format it takes options only, not {what}, which belongs to the second "
            f"call, debug.{name}(ordered=True)(...)"
        )


class FormatCheck(string.Formatter):
    """Formats nothing: only checks that every argument has a placeholder."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [i for i in range(len(args)) if i not in used_args]
        if unused:
            raise ValueError(
                "debug.print: the format has no placeholder for positional argument "
                f"{unused[0]}; add one, as in 'x = {{}}'"
            )
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"debug.print: the format has no placeholder for {names[0]}=...; pass "
                f"a plain format string, 'x = {{{names[0]}}}', not an f-string, which "
                "Python fills in while tracing"
            )


def has_fields(fmt: str) -> bool:
    """Whether a format has a placeholder for a value."""
    return any(name is not None for _, name, _, _ in string.Formatter().parse(fmt))


@frozen(repr=False)
class Printing(ReprMixin):
    """What `debug.print` calls: a format, and how NumPy printed when it was traced."""

    fmt: str
    options: Held
    fields: bool
    record: logging.LogRecord | None = field(default=None, eq=False)

    @property
    def __name__(self) -> str:
        return "debug.print"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
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
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
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
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
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
    *args: Any,
    **kwargs: Any,
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
