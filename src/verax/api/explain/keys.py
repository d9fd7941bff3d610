"""Floor 5: what a key of jit's caches says, in the words of the user's function.

One idea: a key is a flat tuple, made for looking up; taken apart it is a signature, in
which every argument has the name that the function gives it, so that two signatures can
be compared::

    signature_of(f, key).arguments["x"].avals     # (f32[3],)
"""

import reprlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import FunctionType, NoneType
from typing import Any, Final

from attrs import frozen

from verax.api.arguments.static_keys import FLOATS
from verax.api.tracing.argument_names import (
    ParameterNames,
    name_and_line,
)
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.records import ReprMixin
from verax.rules.values.state import TRACED

type Key = tuple[Any, ...]
# Arguments with more leaves are not shown one by one.
SHOWN: Final = 4
PLAIN: Final = (dict, list, tuple, NoneType)
BY_POSITION, BY_KEYWORD = "by position", "by keyword"


@frozen(eq=False, repr=False)
class Argument(ReprMixin):
    """An argument that is traced: its structure, and the types of its leaves.

    `places` has (sharding, committed) for each leaf that somebody placed, else None.
    """

    passed: str
    tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    places: tuple[object, ...]

    def paths(self) -> list[str]:
        """The key path of each leaf, as Python writes it: `['w'][0]`."""
        filled = self.tree.unflatten(range(self.tree.num_leaves))
        found, _ = pytrees.flatten_with_path(filled)
        return ["".join(map(str, path)) for path, _ in found]

    def leaf_names(self, label: str) -> list[str]:
        """The names of the leaves in messages: `params['w']`."""
        try:
            return [label + path for path in self.paths()]
        except Exception:  # the user's class refuses numbers instead of arrays
            return [f"leaf {i} of {label}" for i in range(self.tree.num_leaves)]


@frozen(eq=False, repr=False)
class StaticArgument(ReprMixin):
    """An argument that is part of the key: its value as text, its class, its key.

    `identity` says that no other object is equal to it.
    """

    passed: str
    text: str
    kind: str
    key: Hashable
    identity: bool


@frozen(eq=False, repr=False)
class Signature(ReprMixin):
    """What one call of a jitted function is told apart by."""

    arguments: Mapping[str, Argument]
    statics: Mapping[str, StaticArgument]
    options: Mapping[str, object]

    def __str__(self) -> str:
        traced = [
            f"{name}: {avals_text(argument.avals, argument.tree)}"
            for name, argument in self.arguments.items()
        ]
        static = [f"{name}={value.text}" for name, value in self.statics.items()]
        return ", ".join([*traced, *static])


def avals_text(avals: Sequence[ShapedArray], tree: PyTreeDef) -> str:
    """The type of an argument; of a large tree, how many arrays it has."""
    if len(avals) > SHOWN:
        return f"{len(avals)} arrays"
    words = [Word(aval_text(aval)) for aval in avals]
    if is_plain(tree):
        return repr(tree.unflatten(words))
    return f"({', '.join(map(repr, words))})"


@frozen(repr=False)
class Word:
    """A string that containers print without quotes."""

    text: str

    def __repr__(self) -> str:
        return self.text


def is_plain(tree: PyTreeDef) -> bool:
    """Whether a tree is made of containers that print as Python writes them."""
    node = tree.node_data()
    return node is None or (
        node[0] in PLAIN and all([is_plain(child) for child in tree.children()])
    )


def aval_text(aval: ShapedArray) -> str:
    """A type with its weakness in a word."""
    return f"weak {aval.strong()}" if aval.weak_type else str(aval)


def signature_of(fun: Callable[..., Any], key: Key) -> Signature:
    """The signature that a key of `fun` stands for; see `PjitFunction.slow_call`."""
    tree, context, *rest, (positions, values, named) = key
    count = tree.num_leaves
    places = dict(rest[count:])
    names = ParameterNames(fun)
    kept = without(positions)
    args, kwargs = tree.children()
    found: dict[str, Argument] = {}
    start = 0
    for passed, label, child in [
        *[(BY_POSITION, names.positional(next(kept)), c) for c in args.children()],
        *[
            (BY_KEYWORD, name, c)
            for name, c in zip(kwargs.node_data()[1], kwargs.children(), strict=True)
        ],
    ]:
        leaves = range(start, start + child.num_leaves)
        if label in found:  # of `def f(x, /, **others)`, called with x=...
            label = f"{label} ({BY_KEYWORD})"
        found[label] = Argument(
            passed,
            child,
            tuple([rest[i] for i in leaves]),
            tuple([placement_kind(places.get(i)) for i in leaves]),
        )
        start += child.num_leaves
    static = {
        **{
            names.positional(i): static_argument(BY_POSITION, value)
            for i, value in zip(positions, values, strict=True)
        },
        **{name: static_argument(BY_KEYWORD, value) for name, value in named},
    }
    words = [words for _, words in TRACED]
    options = dict(zip(words, context.values, strict=True))
    return Signature(found, static, options)


def placement_kind(kind: Any) -> object:
    """Where a leaf lies, and whether it must stay there, of the kind of an array."""
    return None if kind is None else kind[1:]


def without(taken: Sequence[int]) -> Iterator[int]:
    """The positions of the arguments that are not static, in order."""
    place = 0
    while True:
        if place not in taken:
            yield place
        place += 1


def static_argument(passed: str, key: Any) -> StaticArgument:
    cls: type = key[0]
    equal: object = cls.__eq__
    identity = equal is object.__eq__
    return StaticArgument(passed, static_text(key), cls.__name__, key, identity)


def static_text(key: Any) -> str:
    """The value that `static_values.typed` made this key of, as Python writes it."""
    cls, *items = key
    if cls is tuple:
        inner = ", ".join([static_text(item) for item in items])
        return f"({inner},)" if len(items) == 1 else f"({inner})"
    (value,) = items
    if cls is frozenset:
        return f"frozenset({{{', '.join(sorted(map(static_text, value)))}}})"
    if issubclass(cls, FLOATS) and isinstance(value, str):
        return value
    if cls is FunctionType:
        return name_and_line(value)
    try:
        return reprlib.Repr(maxstring=60, maxother=60).repr(value)
    except Exception:
        return f"an object of class {cls.__name__}"
