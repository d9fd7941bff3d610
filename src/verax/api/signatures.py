"""Floor 5: what a call of a jitted function is looked up by, as one flat tuple.

One idea: most calls have leaves for arguments, so the kinds of the arguments in the
order in which they were given, with the names of keywords, are the whole key; which of
them the program takes, in which order, is settled once per key::

    given = (*args, *kwargs.values())
    flat_kinds(statics, len(args), kwargs, given)    # (f32[8], (int, 3))
    places_of(statics, len(args), kwargs)            # (0,): the second is static
"""

from collections.abc import Mapping, Sequence
from typing import Any

from verax.api.static_values import EXACT, typed
from verax.api.statics import Statics
from verax.backend.array import ConcreteArray
from verax.backend.dispatch import Call, kind_of


def leaf_kinds(leaves: Sequence[Any]) -> tuple[object, ...]:
    """The kinds of arguments that are all traced; None for what is no leaf."""
    return tuple([x.kind if type(x) is ConcreteArray else kind_of(x) for x in leaves])


def flat_kinds(
    statics: Statics, count: int, kwargs: Mapping[str, Any], given: Sequence[Any]
) -> tuple[object, ...]:
    """The kinds of the traced arguments, and the static ones by class and value.

    It may not hash, if a static value does not.
    """
    flags = statics.flags((count, *kwargs))
    return tuple(
        [
            (x.kind if type(x) is ConcreteArray else kind_of(x))
            if not static
            else (cls, x)
            if (cls := type(x)) in EXACT
            else typed(x)
            for x, static in zip(given, flags, strict=True)
        ]
    )


def places_of(
    statics: Statics, count: int, kwargs: Mapping[str, Any]
) -> tuple[int, ...]:
    """Where the leaves of the program are among the arguments as they were given.

    Positional arguments come first, then keywords by name, none of them static.
    """
    flags = statics.flags((count, *kwargs))
    order = {name: count + i for i, name in enumerate(kwargs)}
    places = [*range(count), *[order[name] for name in sorted(kwargs)]]
    return tuple([i for i in places if not flags[i]])


def taking(run: Call, places: Sequence[int], total: int) -> Call:
    """`run` on the arguments at `places`, of `total` that are given."""
    if tuple(places) == tuple(range(total)):
        return run
    if len(places) == 1:
        (only,) = places
        return lambda given: run((given[only],))
    return lambda given: run([given[i] for i in places])
