"""Floor 5: static and donated arguments of jit.

One idea: resolve positions and names against the signature once, then take the static
values out of each call, as a key that compares type and value::

    resolve_statics(f, static_argnums=1, ...).bind((x, 3), {})
"""

import inspect
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from attrs import field, frozen

from verax.api.arguments.static_keys import typed
from verax.api.tracing.argument_names import function_name
from verax.backend.pytrees import PyTreeDef
from verax.ir.records import ReprMixin
from verax.rules.values.conversions import SHOWN, shown

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

    dynamic: tuple[tuple[Any, ...], dict[str, Any]]
    positions: tuple[int, ...]
    values: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]
    statics: "Statics"

    @property
    def key(self) -> Hashable:
        """The static values, by type and value: 1, True and 1.0 differ."""
        return (
            self.positions,
            tuple([typed(v) for v in self.values]),
            tuple([(n, typed(v)) for n, v in self.named]),
        )

    def labelled(self) -> list[tuple[str, Any]]:
        """The static values with what messages call them."""
        places = zip(self.positions, self.values, strict=True)
        return [
            *[(f"argument {i}", value) for i, value in places],
            *[(f"keyword argument {name!r}", value) for name, value in self.named],
        ]

    def with_statics(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """`fun` as a function of the traced arguments alone."""
        if not self.positions and not self.named:
            return fun

        def dynamic(*args: Any, **kwargs: Any) -> Any:
            filled = list(args)
            for position, value in zip(self.positions, self.values, strict=True):
                filled.insert(position, value)
            return fun(*filled, **kwargs, **dict(self.named))

        dynamic.__name__ = function_name(fun)
        return dynamic

    def donated(self, tree: PyTreeDef) -> tuple[bool, ...]:
        """Which leaves of the traced arguments are donated."""
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
    """Which arguments are static and which donated, by position and by name."""

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
        """Which arguments are static, for `layout`.

        `layout` is the number of positional ones, or that and the names of keywords.
        """
        return self.split(layout)[0]

    def split(self, layout: Layout) -> Split:
        """Which arguments are static, and which are traced."""
        found = self.layouts.get(layout)
        if found is None:
            count, *names = (layout,) if isinstance(layout, int) else layout
            assert isinstance(count, int)
            chosen = {p % count for p in self.positions if -count <= p < count}
            named = [count + i for i, name in enumerate(names) if name in self.names]
            static = (*sorted(chosen), *named)
            every = range(count + len(names))
            traced = tuple([i for i in every if i not in static])
            found = self.layouts[layout] = (static, traced)
        return found

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallArguments:
        """Sort the arguments of a call.

        Raises:
            ValueError: a static value is not hashable.
        """
        found = self.taken(args, kwargs)
        for position, value in zip(found.positions, found.values, strict=True):
            check_hashable(position, value)
        for name, value in found.named:
            check_hashable(name, value)
        return found

    def taken(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallArguments:
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
    try:
        return (operator.index(given),)  # type: ignore[arg-type]  # may be a sequence
    except TypeError:
        pass
    try:
        return tuple([operator.index(number) for number in given])  # type: ignore[union-attr]  # checked by this
    except TypeError:
        word = name.removesuffix("argnums")
        more = f"; for names use {word}argnames" if word else ""
        raise TypeError(
            f"{name} takes an integer or a sequence of integers, not "
            f"{shown(given)}{more}"
        ) from None


def names(word: str, given: Names) -> frozenset[str]:
    """Names as a set.

    Raises:
        TypeError: they are not strings.
    """
    if given is None:
        return frozenset()
    found = [given] if isinstance(given, str) else given
    if isinstance(found, Iterable):
        found = list(found)
        if all(isinstance(name, str) for name in found):
            return frozenset(found)
    raise TypeError(
        f"{word}_argnames takes a name or a sequence of names, not {shown(given)}; for "
        f"numbers use {word}_argnums"
    )


def resolve_statics(
    fun: Callable[..., Any],
    static_argnums: Numbers,
    static_argnames: Names,
    donate_argnums: Numbers,
    donate_argnames: Names,
) -> Statics:
    """Positions and names, each completed from the other by the signature.

    Raises:
        ValueError: a position or name does not exist, or is static and donated.
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
    fun: Callable[..., Any], word: str, argnums: Numbers, argnames: Names
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
