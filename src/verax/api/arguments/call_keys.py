"""Floor 5: the keys by which calls of a jitted function are looked up.

One idea: most calls have leaves for arguments, so the kinds of the arguments in the
order in which they were passed, with the names of keywords, are the whole key; which of
them the program takes, in which order, is settled once per key::

    call_key(statics, (x, 3))                    # (f32[8], (int, 3), mode)
    traced_places(statics, 2, {})                # (0,): the second is static

Where that finds nothing, a call has a `Signature`: its trace is kept by one key, its
program by another, which also says where the arguments lie.
"""

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

from verax.api.arguments.static_argnums import CallArguments, Layout, Statics
from verax.api.arguments.static_keys import EXACT, typed
from verax.api.tracing.argument_names import Describe, describe_arguments
from verax.api.tracing.structs import ShapeDtypeStruct, struct_aval
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.calls.fast_call import Call, kind_of
from verax.backend.pytrees import PyTreeDef, flatten
from verax.ir.avals import ShapedArray
from verax.rules.values.state import State, current_context, current_mode

type Key = tuple[Any, ...]
type AvalsOf = Callable[[Sequence[Any], Describe], Sequence[ShapedArray]]


def call_key(
    statics: Statics | None,
    given: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
) -> Key:
    """The key of a call: the kinds, the mode, and the names of keywords.

    `given` are the arguments as they were passed, those by keyword last. Static ones
    come first in the key, by class and value. `statics` is None for a function that has
    no static arguments.
    """
    mode = current_mode() if State.owners else State.shared
    if statics is None:
        if len(given) == 1 and not kwargs:
            x = given[0]
            return (x.kind if type(x) is ConcreteArray else kind_of(x), mode)
        kinds = [x.kind if type(x) is ConcreteArray else kind_of(x) for x in given]
        return (*kinds, mode, *kwargs) if kwargs else (*kinds, mode)
    layout: Layout = (len(given) - len(kwargs), *kwargs) if kwargs else len(given)
    static, traced = statics.layouts.get(layout) or statics.split(layout)
    own = [
        (cls, value) if (cls := type(value := given[i])) in EXACT else typed(value)
        for i in static
    ]
    kinds = [
        x.kind if type(x := given[i]) is ConcreteArray else kind_of(x) for i in traced
    ]
    return (*own, *kinds, mode, *kwargs) if kwargs else (*own, *kinds, mode)


def leaf_kinds(leaves: Sequence[Any]) -> tuple[object, ...]:
    """The kinds of arguments that are all traced; None for what is not a leaf."""
    return tuple([x.kind if type(x) is ConcreteArray else kind_of(x) for x in leaves])


class Signature(NamedTuple):
    """What a call, or a question about one, is traced and compiled for.

    `key` is that of the trace: structure, context, types and static values.
    """

    call_args: CallArguments
    leaves: Sequence[Any]
    tree: PyTreeDef
    describe: Describe
    avals: Sequence[ShapedArray]
    key: Key

    @property
    def program_key(self) -> Key:
        """The key of the program: that of its trace, and where its arguments lie.

        What is placed differently shares the trace, but not the program.
        """
        own = [
            (i, kind)
            for i, x in enumerate(self.leaves)
            if (kind := placed_kind(x)) is not None
        ]
        return (*self.key[:-1], *own, self.key[-1]) if own else self.key


def signature(
    fun: Callable[..., Any],
    statics: Statics,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    avals_of: AvalsOf,
) -> Signature:
    """The signature of a call; `avals_of` decides what may stand for an array.

    Raises:
        ValueError: a static value is not hashable.
        TypeError: an argument is not an array.
    """
    call_args = statics.bind(args, kwargs)
    leaves, tree = flatten(call_args.dynamic)
    describe = describe_arguments(fun, tree, call_args.positions)
    avals = avals_of(leaves, describe)
    key = (tree, current_context(), *avals, call_args.key)
    return Signature(call_args, leaves, tree, describe, avals, key)


def placed_kind(x: object) -> object:
    """The kind of an array that somebody placed, or of a type with a sharding."""
    if type(x) is ConcreteArray:
        return x.placed
    if type(x) is not ShapeDtypeStruct or x.sharding is None:
        return None
    return struct_aval(x), x.sharding, True


def traced_places(
    statics: Statics | None, count: int, kwargs: Mapping[str, Any]
) -> tuple[int, ...]:
    """Where the traced arguments are among those passed.

    Positional arguments come first, then keywords by name.
    """
    layout: Layout = (count, *kwargs) if kwargs else count
    static = () if statics is None else statics.places(layout)
    order = {name: count + i for i, name in enumerate(kwargs)}
    places = [*range(count), *[order[name] for name in sorted(kwargs)]]
    return tuple([i for i in places if i not in static])


def given_kinds(traced: Sequence[int], given: Sequence[Any]) -> tuple[object, ...]:
    """The kinds of the arguments as they were passed; a static one has its class."""
    return tuple([kind_of(x) if i in traced else type(x) for i, x in enumerate(given)])


def leaf_places(
    traced: Sequence[int], kinds: Sequence[object]
) -> tuple[int, ...] | None:
    """Where the leaves of the program are, if no argument is a tree of several.

    None if they are the arguments as they were passed.
    """
    found = tuple([i for i in traced if kinds[i] is not NoneType])
    return None if found == tuple(range(len(kinds))) else found


def taking(run: Call, places: Sequence[int] | None = None) -> Call:
    """`run` on the arguments at `places`; on all of them without."""
    if places is None:
        return run
    return lambda given: run([given[i] for i in places])
