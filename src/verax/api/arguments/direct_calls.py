"""Floor 5: calls that find their program by the kinds of their arguments.

The short way of every call that is counted in microseconds, of a jitted function and of
a compiled one: the key of the call, one look-up, and the pieces of the run::

    class Compiled(DirectCalls[..., Any]): ...   # which says what `slow_call` does
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, final

from attrs import frozen

from verax.api.arguments.call_keys import (
    Statics,
    Watched,
    call_key,
    given_kinds,
    leaf_kinds,
    leaf_places,
    taking,
    traced_places,
    warn_changed,
)
from verax.api.memory.budgets import Budget
from verax.api.sharding_args import Shardings
from verax.api.tracing.apply import ENGINE
from verax.api.tracing.trace import Traced
from verax.api.tracing.wrapping import Describe
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.calls import Call, kind_of
from verax.backend.eager.guarded import guarded_call, is_guarded
from verax.backend.programs.prepared import PreparedCall
from verax.backend.pytrees import REGISTRY
from verax.backend.xla.executable import FAILED, CompileOptions, fail
from verax.ir.records import ReprMixin, Unchanging
from verax.rules.values.state import STATE, State, current_mode

# Bound once: to look up a method of the registry takes a tenth of a flattening.
flatten_call: Final = REGISTRY.flatten

type Make = Callable[[Sequence[int] | None], Call]
"""Makes a call from the places of its leaves among the arguments passed."""

CACHE_SIZE = 4096


@final
class TreeCalls:
    """The calls among whose arguments, of known kinds, are trees.

    The traced arguments are at `places` among those passed, None if they are those; the
    calls are known by their structure and the kinds of their leaves.
    """

    __slots__ = ("known", "places")

    def __init__(self, places: tuple[int, ...], count: int) -> None:
        self.places = None if places == tuple(range(count)) else places
        self.known: dict[object, Call] = {}

    def flat(self, given: Sequence[object]) -> tuple[object, Sequence[Any]]:
        """The key of a call, and its leaves."""
        places = self.places
        leaves, tree = flatten_call(
            given if places is None else tuple([given[i] for i in places]), None
        )
        return (tree, *leaf_kinds(leaves)), leaves


class DirectCalls[**P, R]:
    """Base of what is called with arrays.

    `direct` has what calls do by their keys. `slow_call` is for those that are not
    there; it may `remember` what later ones like it do. `statics` is None where no
    argument is static.
    """

    __slots__ = ()

    statics: Statics | None = None
    direct: dict[object, Call | TreeCalls]

    @abstractmethod
    def slow_call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """The call, whatever the arguments are."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # in one frame
        """The result of the function, maybe not finished yet."""
        given: Sequence[Any] = (*args, *kwargs.values()) if kwargs else args
        mode = current_mode() if State.owners else State.shared
        try:
            if self.statics is not None:
                entry = self.direct.get(call_key(self.statics, given, kwargs))
            elif kwargs or len(args) != 1:  # as `call_key`, in this frame
                kinds = [
                    x.kind if type(x) is ConcreteArray else kind_of(x) for x in given
                ]
                key = (*kinds, mode, *kwargs) if kwargs else (*kinds, mode)
                entry = self.direct.get(key)
            else:
                kind = x.kind if type(x := args[0]) is ConcreteArray else kind_of(x)
                entry = self.direct.get((kind, mode))
            if type(entry) is TreeCalls:  # as `TreeCalls.flat`, in this frame
                places = entry.places
                given, tree = flatten_call(
                    given if places is None else tuple([given[i] for i in places]), None
                )
                kinds = [
                    x.kind if type(x) is ConcreteArray else kind_of(x) for x in given
                ]
                entry = entry.known.get((tree, *kinds))
        except (TypeError, ValueError, SystemError):
            entry = None  # no hash, or a tree that cannot be flattened
        if type(entry) is not PreparedCall:
            result: R = self.slow_call(args, kwargs) if entry is None else entry(given)
            return result
        try:  # as `PreparedCall.__call__`, in this frame
            ins = (
                fetch(given)
                if (fetch := entry.fetch) is not None
                else [
                    x.device_buffer() if (b := x.buffer) is None else b for x in given
                ]
                if (taken := entry.places) is None
                else [
                    x.device_buffer() if (b := (x := given[i]).buffer) is None else b
                    for i in taken
                ]
            )
        except OverflowError:
            result = self.slow_call(args, kwargs)  # says which argument it is
            return result
        try:
            outs = entry.run(ins).consume_with_handlers(entry.handlers)
        except FAILED as error:
            fail(error, ins)
        if entry.after is not None:
            entry.after(given, ins, outs)
        if entry.finish is not None:
            result = entry.finish(outs)
            return result
        made: Any = ConcreteArray()
        (made.buffer,), made.host = outs, None
        made.aval = made.kind = entry.aval
        result = made
        return result

    def remember(
        self, args: tuple[object, ...], kwargs: dict[str, object], make: Make
    ) -> None:
        """Keep the short way for calls with arguments of these kinds."""
        if len(self.direct) >= CACHE_SIZE:
            self.direct.clear()
        given = (*args, *kwargs.values())
        key = call_key(self.statics, given, kwargs)
        places = traced_places(self.statics, len(args), kwargs)
        kinds = given_kinds(places, given)
        if None not in kinds:
            self.direct[key] = make(leaf_places(places, kinds))
            return
        trees = self.direct.get(key)
        if type(trees) is not TreeCalls or len(trees.known) >= CACHE_SIZE:
            trees = self.direct[key] = TreeCalls(places, len(kinds))
        trees.known[trees.flat(given)[0]] = make(None)

    def is_remembered(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> bool:
        """Whether such a call takes the short way."""
        given = (*args, *kwargs.values())
        entry = self.direct.get(call_key(self.statics, given, kwargs))
        if isinstance(entry, TreeCalls):
            entry = entry.known.get(entry.flat(given)[0])
        return entry is not None


# -----------------------------------------------------------------------------
# What one signature of a jitted function led to, and how it is run.
#
# A signature leads to a trace, kept with all that a later call must know: its
# name, what it donates, and the static objects that must not have changed::
#
#     entry = Entry(traced, "f", (), watch(labelled))
#     run = watching(entry, run)


type Maker = Callable[..., Call]


@frozen(eq=False, repr=False)
class Settings(Unchanging, ReprMixin):
    """The settings of a jitted function: its arguments' and its program's."""

    statics: Statics
    keep_unused: bool
    inline: bool
    options: CompileOptions
    shardings: Shardings
    memory: Budget | None = None


@frozen(eq=False, repr=False)
class Entry(ReprMixin):
    """An entry of a cache: all that one signature led to.

    `lean` is for programs within a budget of memory; see `CompileOptions.lean`.
    """

    traced: Traced
    name: str
    donated: tuple[bool, ...]
    watched: tuple[Watched, ...]
    lean: bool = False


def watching(entry: Entry, run: Call) -> Call:
    """The call, which warns first if a static object has changed."""
    if not entry.watched:
        return run

    def watched(leaves: Sequence[object]) -> object:
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
        from verax.backend.eager.nan_checks import Search, checked_call, kinds_of

        how = Search(entry.name, describe)
        kinds = kinds_of(STATE.debug_nans, STATE.debug_infs)
        jaxpr, donated = entry.traced.jaxpr, entry.donated
        call = checked_call(ENGINE, jaxpr, how, donated, kinds, call)
    if keys:
        from verax.backend.eager.key_checks import checked_keys

        call = checked_keys(entry.name, entry.traced.jaxpr, call)
    return partial(taking, guarded_call(entry.name, call) if asks else call)
