"""Floor 5: what one signature of a jitted function led to, and how it is run.

One idea: a signature leads to a trace, kept with all that a later call must know: its
name, what it donates, and the static objects that must not have changed::

    entry = Entry(traced, "f", (), watch(labelled))
    run = watching(entry, run)
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from verax.api.arguments.call_keys import taking
from verax.api.arguments.static_argnums import Statics
from verax.api.arguments.static_keys import Watched, warn_changed
from verax.api.sharding_args import Shardings
from verax.api.tracing.apply import ENGINE
from verax.api.tracing.argument_names import Describe
from verax.api.tracing.trace import Traced
from verax.backend.calls.fast_call import Call
from verax.backend.eager.guarded import guarded_call, is_guarded
from verax.backend.xla.executable import CompileOptions
from verax.ir.records import ReprMixin, Unchanging
from verax.rules.values.lazy import LazyModule
from verax.rules.values.state import STATE

type Maker = Callable[..., Call]
# Few programs look for NaN, or for keys that are used twice.
KEYS = LazyModule("verax.backend.eager.key_checks")
CHECKS = LazyModule("verax.backend.eager.nan_checks")
SEARCH = LazyModule("verax.backend.eager.nan_checks")


@frozen(eq=False, repr=False)
class Settings(Unchanging, ReprMixin):
    """How a jitted function treats its arguments and its program."""

    statics: Statics
    keep_unused: bool
    inline: bool
    options: CompileOptions
    shardings: Shardings


@frozen(eq=False, repr=False)
class Entry(ReprMixin):
    """What one signature led to."""

    traced: Traced
    name: str
    donated: tuple[bool, ...]
    watched: tuple[Watched, ...]


def watching(entry: Entry, run: Call) -> Call:
    """The call, which warns first if a static object has changed."""
    if not entry.watched:
        return run

    def watched(leaves: Sequence[Any]) -> Any:
        warn_changed(entry.name, entry.watched)
        return run(leaves)

    return watched


def debugged(entry: Entry, describe: Describe, make: Maker) -> Maker:
    """Make calls that check outputs, or ask first, if that is configured.

    `make` and the result take the places of the leaves among the arguments of the call.
    """
    checks = STATE.debug_nans or STATE.debug_infs
    asks, keys = is_guarded(), STATE.debug_key_reuse
    if not (checks or asks or keys):
        return make
    call = make()
    if checks:
        how = SEARCH.Search(entry.name, describe)
        kinds = CHECKS.kinds_of(STATE.debug_nans, STATE.debug_infs)
        jaxpr, donated = entry.traced.jaxpr, entry.donated
        call = CHECKS.checked_call(ENGINE, jaxpr, how, donated, kinds, call)
    if keys:
        call = KEYS.checked_keys(entry.name, entry.traced.jaxpr, call)
    return partial(taking, guarded_call(entry.name, call) if asks else call)
