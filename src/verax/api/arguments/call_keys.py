"""Floor 5: what a call of a jitted function is looked up by, as one flat tuple.

One idea: most calls have leaves for arguments, so the kinds of the arguments in the
order in which they were given, with the names of keywords, are the whole key; which of
them the program takes, in which order, is settled once per key::

    given = (*args, *kwargs.values())
    flat_key(statics, len(args), kwargs, given)      # (f32[8], (int, 3), mode)
    traced_places(statics, len(args), kwargs)        # (0,): the second is static
"""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, final

from verax.api.arguments.static_argnums import Statics
from verax.api.arguments.static_keys import EXACT, typed
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.calls.fast_call import CachedCall, Call, kind_of
from verax.backend.pytrees import flatten
from verax.rules.values.state import State, current_mode


def leaf_kinds(leaves: Sequence[Any]) -> tuple[object, ...]:
    """The kinds of arguments that are all traced; None for what is no leaf."""
    return tuple([x.aval if type(x) is ConcreteArray else kind_of(x) for x in leaves])


def flat_key(
    statics: Statics | None,
    count: int,
    kwargs: Mapping[str, Any],
    given: Sequence[Any],
) -> tuple[object, ...]:
    """What a call is looked up by: the kinds, the mode, and the names of keywords.

    A static argument stands there by class and value; without a hash, the key has none.
    """
    key: list[object]
    key = [x.aval if type(x) is ConcreteArray else kind_of(x) for x in given]
    if statics is not None:
        for i in statics.places((count, *kwargs) if kwargs else count):
            cls = type(value := given[i])
            key[i] = (cls, value) if cls in EXACT else typed(value)
    key.append(current_mode() if State.owners else State.shared)
    if kwargs:
        key += kwargs
    return tuple(key)


def traced_places(
    statics: Statics, count: int, kwargs: Mapping[str, Any]
) -> tuple[int, ...]:
    """Where the traced arguments are among the arguments as they were given.

    Positional arguments come first, then keywords by name.
    """
    static = statics.places((count, *kwargs) if kwargs else count)
    order = {name: count + i for i, name in enumerate(kwargs)}
    places = [*range(count), *[order[name] for name in sorted(kwargs)]]
    return tuple([i for i in places if i not in static])


def leaf_places(
    traced: Sequence[int], kinds: Sequence[object]
) -> tuple[int, ...] | None:
    """Where the leaves of the program are, if no argument is a tree of several.

    None if they are the arguments, as they were given.
    """
    found = tuple([i for i in traced if kinds[i] is not NoneType])
    return None if found == tuple(range(len(kinds))) else found


def taking(run: Call, places: Sequence[int] | None = None) -> Call:
    """`run` on the arguments at `places`; on all of them without."""
    if places is None:
        return run
    return lambda given: run([given[i] for i in places])


@final
class TreeCalls:
    """The calls among whose arguments, of known kinds, are trees.

    The traced arguments are at `places` among those given; their structure and the
    kinds of their leaves are looked up in `known`.
    """

    __slots__ = ("known", "places")

    def __init__(self, places: tuple[int, ...], count: int) -> None:
        self.places = None if places == tuple(range(count)) else places
        self.known: dict[object, CachedCall] = {}

    def find(self, given: Sequence[Any]) -> tuple[CachedCall | None, Sequence[Any]]:
        """What to call, None if that is not known yet, and with which leaves."""
        places = self.places
        traced = given if places is None else tuple([given[i] for i in places])
        leaves, tree = flatten(traced)
        kinds = [x.aval if type(x) is ConcreteArray else kind_of(x) for x in leaves]
        return self.known.get((tree, *kinds)), leaves

    def add(self, given: Sequence[Any], run: CachedCall) -> None:
        """What to call for arguments like these."""
        places = self.places
        traced = given if places is None else tuple([given[i] for i in places])
        leaves, tree = flatten(traced)
        self.known[(tree, *leaf_kinds(leaves))] = run
