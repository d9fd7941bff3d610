"""Floor 5: the keys by which calls of a jitted function are looked up.

One idea: most calls have leaves for arguments, so the kinds of the arguments in the
order in which they were passed, with the names of keywords, are the whole key; which of
them the program takes, in which order, is settled once per key::

    call_key(statics, (x, 3))                    # (f32[8], (int, 3), mode)
    traced_places(statics, 2, {})                # (0,): the second is static

Where that finds nothing, a call has a `Signature`: its trace is kept by one key, its
program by another, which also says where the arguments lie.
"""

import inspect
import operator
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import is_
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import NamedTuple, SupportsIndex

import numpy as np
from attrs import field, frozen

from verax.api.tracing.structs import ShapeDtypeStruct, struct_aval
from verax.api.tracing.wrapping import (
    Describe,
    describe_arguments,
    function_name,
    short_name,
)
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.calls import Call, kind_of
from verax.backend.pytrees import PyTreeDef, flatten
from verax.ir.avals import ShapedArray, check_fits
from verax.ir.records import ReprMixin
from verax.rules.values.conversions import SHOWN, shown
from verax.rules.values.state import LIBRARY, State, current_context, current_mode

# -----------------------------------------------------------------------------
# Static values as keys of traces, and what happens when one of them changes.
#
# A trace may use all that can be seen of a static value, so its key tells apart
# what `==` calls equal: types, the signs of zeros, also inside tuples; and objects that
# compare by identity are looked at again, because a key cannot see them change::
#
#     typed(1) != typed(True) and typed((1,)) != typed((1.0,))


# Classes whose equal values are the same value, which are most static values.
EXACT = frozenset((int, str, bool, NoneType))
FLOATS = (float, complex, np.inexact)
# Objects of these classes compare by identity, and may have attributes that no trace
# depends on.
UNWATCHED = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)


def typed(value: Hashable) -> Hashable:
    """The key of a static value: its class and the value, tuples item by item.

    >>> typed(1) == typed(True), typed(0.0) == typed(-0.0), typed((1,)) == typed((1.0,))
    (False, False, False)
    """
    cls = type(value)
    if cls in EXACT:
        return (cls, value)
    if type(value) is tuple:
        return (tuple, *[typed(item) for item in value])
    if type(value) is frozenset:
        return (frozenset, frozenset([typed(item) for item in value]))
    if is_floating(cls) and (value == 0 or value != value):  # NaN
        return (cls, repr(value))
    return (cls, value)


def is_floating(cls: type) -> bool:
    """Whether objects of a class have zeros with a sign, and values without equals."""
    return issubclass(cls, FLOATS)


@frozen(eq=False, repr=False)
class Watched(ReprMixin):
    """A static object that compares by identity, as it was when it was traced."""

    label: str
    value: object
    attributes: dict[str, object]

    def changed(self) -> list[str]:
        """The attributes that were set, replaced or deleted since."""
        now, then = vars(self.value), self.attributes
        if [*now] == [*then] and all(map(is_, now.values(), then.values())):
            return []
        missing = object()
        names = {**then, **now}
        return [n for n in names if now.get(n, missing) is not then.get(n, missing)]


def by_identity(cls: type) -> bool:
    """Whether objects of a class compare by identity and may change unseen."""
    own: object = cls.__hash__
    return own is object.__hash__ and not issubclass(cls, UNWATCHED)


def watch(labelled: Iterable[tuple[str, object]]) -> tuple[Watched, ...]:
    """Those of the static values whose changes their keys cannot show."""
    return tuple(
        [
            Watched(label, value, dict(vars(value)))
            for label, value in labelled
            if by_identity(type(value)) and hasattr(value, "__dict__")
        ]
    )


def warn_changed(name: str, watched: Iterable[Watched]) -> None:
    """Warn of static objects that have changed since `name` was traced."""
    for text in changes(name, watched):
        warnings.warn(text, skip_file_prefixes=(LIBRARY,))


def changes(name: str, watched: Iterable[Watched]) -> list[str]:
    """The warning for static objects that have changed."""
    return [
        f"static {held.label} of {name}, an object of class "
        f"{type(held.value).__name__}, has changed since {name} was traced "
        f"(attributes: {', '.join(names)}); the compiled program still uses the old "
        "values. Give the class __eq__ and __hash__ that depend on its attributes, "
        "make it a pytree, or pass what changes as an argument"
        for held in watched
        if (names := held.changed())
    ]


class Hashes:
    """The hashes that static objects had, to notice those that change."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[object, int]] = {}

    def check(self, name: str, labelled: Iterable[tuple[str, object]]) -> None:
        """Warn of objects whose hash differs from an earlier call."""
        for label, value in labelled:
            result, now = self.known.get(id(value)), hash(value)
            if result is not None and result[0] is value and result[1] != now:
                warnings.warn(
                    f"static {label} of {name}, an object of class "
                    f"{type(value).__name__}, has a different hash than in an earlier "
                    f"call, so it was changed. {name} compiles again for each of its "
                    "states and keeps the old programs; use a new object for a new "
                    "value",
                    skip_file_prefixes=(LIBRARY,),
                )
            self.known[id(value)] = (value, now)


# -----------------------------------------------------------------------------
# Static and donated arguments of jit.
#
# Resolve positions and names against the signature once, then take the static
# values out of each call, as a key that compares type and value::
#
#     resolve_statics(f, static_argnums=1, ...).bind((x, 3), {})


type Numbers = int | Sequence[int] | None
type Names = str | Iterable[str] | None
type Layout = int | tuple[int | str, ...]
type Split = tuple[tuple[int, ...], tuple[int, ...]]


@frozen(eq=False, repr=False)
class CallArguments(ReprMixin):
    """The arguments of one call: those that are traced, and those that are not.

    `dynamic` is (positional arguments without the static ones, keyword arguments
    without the static ones).
    """

    dynamic: tuple[tuple[object, ...], dict[str, object]]
    positions: tuple[int, ...]
    values: tuple[object, ...]
    named: tuple[tuple[str, object], ...]
    statics: "Statics"

    @property
    def key(self) -> Hashable:
        """The static values, by type and value: 1, True and 1.0 differ."""
        return (
            self.positions,
            tuple([typed(v) for v in self.values]),
            tuple([(n, typed(v)) for n, v in self.named]),
        )

    def labelled(self) -> list[tuple[str, object]]:
        """The static values with what messages call them."""
        places = zip(self.positions, self.values, strict=True)
        return [
            *[(f"argument {i}", value) for i, value in places],
            *[(f"keyword argument {name!r}", value) for name, value in self.named],
        ]

    def with_statics(self, fun: Callable[..., object]) -> Callable[..., object]:
        """`fun` as a function of the traced arguments alone."""
        if not self.positions and not self.named:
            return fun

        def dynamic(*args: object, **kwargs: object) -> object:
            filled = list(args)
            for position, value in zip(self.positions, self.values, strict=True):
                filled.insert(position, value)
            return fun(*filled, **kwargs, **dict(self.named))

        dynamic.__name__ = function_name(fun)
        return dynamic

    def donated(self, tree: PyTreeDef) -> tuple[bool, ...]:
        """The flags of the traced arguments' leaves: True where a leaf is donated."""
        statics = self.statics
        if not statics.donate_positions and not statics.donate_names:
            return ()
        args_tree, kwargs_tree = tree.children()
        total = len(self.dynamic[0]) + len(self.positions)
        kept = [i for i in range(total) if i not in self.positions]
        given = {p % total for p in statics.donate_positions if -total <= p < total}
        marks: list[bool] = []
        for i, child in zip(kept, args_tree.children(), strict=True):
            marks += [i in given] * child.num_leaves
        names = sorted(self.dynamic[1])
        for name, child in zip(names, kwargs_tree.children(), strict=True):
            marks += [name in statics.donate_names] * child.num_leaves
        return tuple(marks)


@frozen(eq=False, repr=False)
class Statics(ReprMixin):
    """The static and the donated arguments, by position and by name."""

    positions: tuple[int, ...]
    names: frozenset[str]
    donate_positions: tuple[int, ...]
    donate_names: frozenset[str]
    layouts: dict[Layout, Split] = field(factory=dict)

    @property
    def any(self) -> bool:
        """Whether calls need more than flattening."""
        return bool(self.positions or self.names)

    def places(self, layout: Layout) -> tuple[int, ...]:
        """The places of the static arguments, for `layout`.

        `layout` is the number of positional ones, or that and the names of keywords.
        """
        return self.split(layout)[0]

    def split(self, layout: Layout) -> Split:
        """Splits arguments into static and traced ones."""
        entry = self.layouts.get(layout)
        if entry is None:
            count, *names = (layout,) if isinstance(layout, int) else layout
            assert isinstance(count, int)
            chosen = {p % count for p in self.positions if -count <= p < count}
            named = [count + i for i, name in enumerate(names) if name in self.names]
            static = (*sorted(chosen), *named)
            every = range(count + len(names))
            traced = tuple([i for i in every if i not in static])
            entry = self.layouts[layout] = (static, traced)
        return entry

    def bind(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> CallArguments:
        """Sort the arguments of a call.

        Raises:
            ValueError: a static value is not hashable.
        """
        out = self.taken(args, kwargs)
        for position, value in zip(out.positions, out.values, strict=True):
            check_hashable(position, value)
        for name, value in out.named:
            check_hashable(name, value)
        return out

    def taken(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> CallArguments:
        """`bind` without checking that static values are hashable."""
        if not self.any:
            return CallArguments((args, kwargs), (), (), (), self)
        count = len(args)
        places = self.places(count)
        values = tuple([args[i] for i in places])
        rest = tuple([x for i, x in enumerate(args) if i not in places])
        named = tuple(
            [(n, kwargs[n]) for n in sorted(kwargs.keys() & self.names)]
            if kwargs
            else ()
        )
        others = {n: v for n, v in kwargs.items() if n not in self.names}
        return CallArguments((rest, others), places, values, named, self)


def check_hashable(label: int | str, value: object) -> None:
    try:
        hash(value)
    except TypeError:
        kind = "argument" if isinstance(label, int) else "keyword argument"
        raise ValueError(
            "Non-hashable static arguments are not supported: static "
            f"{kind} {label!r} of type {type(value).__name__} is not hashable: "
            f"{shown(value, SHOWN)}; pass a tuple instead of a list, or an object with "
            "__hash__ and __eq__"
        ) from None


def numbers(name: str, given: Numbers) -> tuple[int, ...]:
    """Positions as a tuple.

    Raises:
        TypeError: they are not integers.
    """
    if given is None:
        return ()
    if isinstance(given, SupportsIndex):
        with suppress(TypeError):  # an array may be a sequence
            return (operator.index(given),)
    if isinstance(given, Iterable):
        with suppress(TypeError):
            return tuple([operator.index(number) for number in given])
    word = name.removesuffix("argnums")
    more = f"; for names use {word}argnames" if word else ""
    raise TypeError(
        f"{name} takes an integer or a sequence of integers, not {shown(given)}{more}"
    )


def names(word: str, given: Names) -> frozenset[str]:
    """Names as a set.

    Raises:
        TypeError: they are not strings.
    """
    if given is None:
        return frozenset()
    out = [given] if isinstance(given, str) else given
    if isinstance(out, Iterable):
        out = list(out)
        if all(isinstance(name, str) for name in out):
            return frozenset(out)
    raise TypeError(
        f"{word}_argnames takes a name or a sequence of names, not {shown(given)}; for "
        f"numbers use {word}_argnums"
    )


def resolve_statics(
    fun: Callable[..., object],
    static_argnums: Numbers,
    static_argnames: Names,
    donate_argnums: Numbers,
    donate_argnames: Names,
) -> Statics:
    """Positions and names, each completed from the other by the signature.

    Raises:
        ValueError: a position or name does not exist, or is static and donated; or
            names are donated of a function without a signature.
    """
    static = complete(fun, "static", static_argnums, static_argnames)
    donated = complete(fun, "donate", donate_argnums, donate_argnames)
    # Where there is a signature, each of these has a name too.
    shared = static[1] & donated[1]
    both = sorted(map(repr, shared or set(static[0]) & set(donated[0])))
    if both:
        raise ValueError(
            "static_argnames and donate_argnames cannot intersect, nor their numbers, "
            f"but both have {', '.join(both)}; a static value has no memory to donate"
        )
    return Statics(*static, *donated)


def complete(
    fun: Callable[..., object], word: str, argnums: Numbers, argnames: Names
) -> tuple[tuple[int, ...], frozenset[str]]:
    """Positions for names and names for positions, where there is a signature.

    If both are passed, they hold as they are: positions for positional arguments and
    names for keywords. With a signature, a negative
    position counts from the last parameter, whatever a call passes.
    """
    given, named = numbers(f"{word}_argnums", argnums), names(word, argnames)
    if not given and not named:
        return given, named
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        if named and word == "donate":
            raise ValueError(
                f"Getting the signature of function {shown(fun)} failed. Pass "
                "donate_argnums instead of donate_argnames."
            ) from None
        return given, named
    kinds = inspect.Parameter
    places = [
        p.name
        for p in parameters
        if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    open_ended = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    for number in given:
        if not open_ended and not -len(places) <= number < len(places):
            raise ValueError(
                f"{word}_argnums names argument {number}, but the function has "
                f"{len(places)} positional parameters"
            )
    if not open_ended:
        given = tuple([number % len(places) for number in given])
    known = {p.name for p in parameters}
    free = any(p.kind is kinds.VAR_KEYWORD for p in parameters)
    unknown = sorted(named - known)
    if unknown and not free:
        raise ValueError(
            f"{word}_argnames names {unknown}, which the function does not have; its "
            f"parameters are {sorted(known)}"
        )
    by_name = (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY, kinds.VAR_KEYWORD)
    unnamed = sorted(named & {p.name for p in parameters if p.kind not in by_name})
    if unnamed:
        raise ValueError(
            f"{word}_argnames names {unnamed}, which cannot be passed by keyword; use "
            f"{word}_argnums"
        )
    if argnums is not None and argnames is not None:
        return given, named
    more = tuple(i for i, name in enumerate(places) if name in named)
    extra = frozenset(places[n] for n in given if -len(places) <= n < len(places))
    return tuple(dict.fromkeys((*given, *more))), named | extra


# -----------------------------------------------------------------------------
# The keys by which calls of a jitted function are looked up.


type Key = tuple[Hashable, ...]
type AvalsOf = Callable[[Sequence[object], Describe], Sequence[ShapedArray]]


def call_key(
    statics: Statics | None,
    given: Sequence[object],
    kwargs: Mapping[str, object] | None = None,
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


def leaf_kinds(leaves: Sequence[object]) -> tuple[object, ...]:
    """The kinds of arguments that are all traced; None for what is not a leaf."""
    return tuple([x.kind if type(x) is ConcreteArray else kind_of(x) for x in leaves])


class Signature(NamedTuple):
    """The key under which a call, or a question about one, is traced and compiled.

    `key` is that of the trace: structure, context, types and static values.
    """

    call_args: CallArguments
    leaves: Sequence[object]
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

    def overflow(self, error: OverflowError) -> OverflowError:
        """The error for an integer that its type does not hold, with its place."""
        for i, (x, aval) in enumerate(zip(self.leaves, self.avals, strict=True)):
            try:
                check_fits(x if type(x) is int else 0, aval.dtype)
            except OverflowError:
                return OverflowError(
                    "An overflow was encountered while parsing an argument to a jitted "
                    "computation, whose argument path is "
                    f"{short_name(self.describe()[i])}: {error}"
                )
        return error


def signature(
    fun: Callable[..., object],
    statics: Statics,
    args: tuple[object, ...],
    kwargs: dict[str, object],
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
    statics: Statics | None, count: int, kwargs: Mapping[str, object]
) -> tuple[int, ...]:
    """The places of the traced arguments among those passed.

    Positional arguments come first, then keywords by name.
    """
    layout: Layout = (count, *kwargs) if kwargs else count
    static = () if statics is None else statics.places(layout)
    order = {name: count + i for i, name in enumerate(kwargs)}
    places = [*range(count), *[order[name] for name in sorted(kwargs)]]
    return tuple([i for i in places if i not in static])


def given_kinds(traced: Sequence[int], given: Sequence[object]) -> tuple[object, ...]:
    """The kinds of the arguments as they were passed; a static one has its class."""
    return tuple([kind_of(x) if i in traced else type(x) for i, x in enumerate(given)])


def leaf_places(
    traced: Sequence[int], kinds: Sequence[object]
) -> tuple[int, ...] | None:
    """The places of the program's leaves, if no argument is a tree of several.

    None if they are the arguments as they were passed.
    """
    out = tuple([i for i in traced if kinds[i] is not NoneType])
    return None if out == tuple(range(len(kinds))) else out


def taking(run: Call, places: Sequence[int] | None = None) -> Call:
    """`run` on the arguments at `places`; on all of them without."""
    if places is None:
        return run
    return lambda given: run([given[i] for i in places])
