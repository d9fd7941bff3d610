"""Floor 6: the function that a report is about, with the options that `jit` takes.

One idea: a report takes a function and options of `jit`, or a function that is jitted
already, which has its own::

    check_options("memory", fun, options)
    function = jitted(fun, options)
"""

from collections.abc import Callable
from typing import TypedDict

from verax.api.arguments.call_keys import Names, Numbers
from verax.api.arguments.jit_options import Inline
from verax.api.jit import Calls, Lowerings, PjitFunction, jit
from verax.api.memory.budgets import Budget
from verax.backend.runtime.client import Device


class PlaceOptions(TypedDict, total=False):
    """The options of `jit` for what has a device and a budget of its own."""

    in_shardings: object
    out_shardings: object
    static_argnums: Numbers
    static_argnames: Names
    donate_argnums: Numbers
    donate_argnames: Names
    keep_unused: bool
    backend: str | None
    inline: bool | Inline
    compiler_options: dict[str, str | bool | int | float] | None
    calls: Calls | None
    cpu_lowerings: Lowerings | None


class PlanOptions(PlaceOptions, total=False):
    """The options of `jit` for what has a device of its own."""

    memory: Budget | None


class JitOptions(PlanOptions, total=False):
    """The options of `jit`."""

    device: Device | None


def check_options(name: str, fun: object, options: PlaceOptions) -> None:
    """Raise TypeError where a function is jitted and there are options, too."""
    if isinstance(fun, PjitFunction) and options:
        raise TypeError(
            f"{name}: {', '.join(options)} are options of jit, and the function is "
            "jitted already: pass them there"
        )


def jitted[**P, R](fun: Callable[P, R], options: PlaceOptions) -> PjitFunction[P, R]:
    """The function under `jit`, unless it is so already."""
    return fun if isinstance(fun, PjitFunction) else jit(fun, **options)
