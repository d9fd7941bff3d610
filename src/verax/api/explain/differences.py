"""Floor 5: why a call found nothing in a cache: what differs, in words.

One idea: a call that misses differs from each call before in something; what differs
from the nearest one is the reason::

    [print(line) for line in differences(signature, nearest)]
    # x: shape (8, 3), previously (4, 3)
"""

import reprlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import FunctionType, NoneType
from typing import Any, Final

from attrs import frozen

from verax.api.arguments.call_keys import FLOATS
from verax.api.explain.report import Difference
from verax.api.tracing.wrapping import ParameterNames, name_and_line
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.records import ReprMixin
from verax.rules.values.state import TRACED

# -----------------------------------------------------------------------------
# What a key of jit's caches says, in the words of the user's function.
#
# A key is a flat tuple, made for looking up; taken apart it is a signature, in which
# every argument has the name that the function gives it, so that two signatures can be
# compared::
#
#     signature_of(f, key).arguments["x"].avals     # (f32[3],)


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
        out, _ = pytrees.flatten_with_path(filled)
        return ["".join(map(str, path)) for path, _ in out]

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
    """The key by which calls of a jitted function are told apart."""

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


def signature_of(fun: Callable[..., object], key: Key) -> Signature:
    """The signature that a key of `fun` stands for; see `PjitFunction.slow_call`."""
    tree, context, *rest, (positions, values, named) = key
    count = tree.num_leaves
    places = dict(rest[count:])
    names = ParameterNames(fun)
    kept = without(positions)
    args, kwargs = tree.children()
    out: dict[str, Argument] = {}
    start = 0
    for passed, label, child in [
        *[(BY_POSITION, names.positional(next(kept)), c) for c in args.children()],
        *[
            (BY_KEYWORD, name, c)
            for name, c in zip(kwargs.node_data()[1], kwargs.children(), strict=True)
        ],
    ]:
        leaves = range(start, start + child.num_leaves)
        if label in out:  # of `def f(x, /, **others)`, called with x=...
            label = f"{label} ({BY_KEYWORD})"
        out[label] = Argument(
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
    return Signature(out, static, options)


def placement_kind(kind: Any) -> object:
    """The place of a leaf, and whether it must stay there, of the kind of an array."""
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


# -----------------------------------------------------------------------------
# Why a call found nothing in a cache: what differs, in words.


# A function with so many signatures has a bigger problem than the nearest of them.
COMPARED: Final = 512
# A difference of structure weighs as much as so many others.
STRUCTURE: Final = 16


def nearest(key: Key, seen: Sequence[Key]) -> Key | None:
    """The key that differs least from `key`, of several the latest; None if no other.

    Only the latest `COMPARED` are looked at.
    """
    others = [other for other in seen[-COMPARED:] if not same(other, key)]
    return min(reversed(others), key=lambda k: distance(key, k), default=None)


def same(now: object, before: object) -> bool:
    """Whether two keys, or parts of them, are equal; not if their classes cannot say.

    A look-up compares what has equal hashes; here anything may meet anything.
    """
    try:
        return bool(now == before)
    except Exception:
        return False


def distance(now: Key, before: Key) -> int:
    """The size of a difference, without its words."""
    tree, context, *leaves, static = now
    other_tree, other_context, *other_leaves, other_static = before
    out: int = 0 if tree == other_tree else STRUCTURE
    pairs = zip(context.values, other_context.values, strict=True)
    out += sum([a != b for a, b in pairs])
    for leaf, other in zip_longest(leaves, other_leaves):
        if leaf is not other:
            out += leaf_distance(leaf, other)
    for part, rest in zip(static, other_static, strict=True):
        out += sum([not same(a, b) for a, b in zip_longest(part, rest)])
    return out


def leaf_distance(now: object, before: object) -> int:
    """The difference of two types, or of two places, as a number."""
    if not isinstance(now, ShapedArray) or not isinstance(before, ShapedArray):
        return int(now != before)
    pairs = (
        (now.shape, before.shape),
        (now.dtype, before.dtype),
        (now.weak_type, before.weak_type),
    )
    return sum([a != b for a, b in pairs])


def differences(now: Signature, before: Signature) -> tuple[Difference, ...]:
    """Everything in which two signatures differ, arguments first."""
    return tuple(
        [
            *presence(now.arguments, before.arguments),
            *presence(now.statics, before.statics),
            *of_arguments(now.arguments, before.arguments),
            *of_statics(now.statics, before.statics),
            *of_options(now.options, before.options),
        ]
    )


def presence(
    now: Mapping[str, Argument | StaticArgument],
    before: Mapping[str, Argument | StaticArgument],
) -> Iterator[Difference]:
    """Arguments that only one of the calls has, and those passed in another way."""
    for name in (*now, *[name for name in before if name not in now]):
        here, there = now.get(name), before.get(name)
        if here is None or there is None:
            words = ("not given", "given") if here is None else ("given", "not given")
            yield Difference("arguments", name, "", *words)
        elif here.passed != there.passed:
            yield Difference("passed", name, "passed", here.passed, there.passed)


def of_arguments(
    now: Mapping[str, Argument], before: Mapping[str, Argument]
) -> Iterator[Difference]:
    """Differences of the traced arguments that both calls have."""
    for name, here in now.items():
        there = before.get(name)
        if there is None:
            continue
        if here.tree != there.tree:
            yield of_structures(name, here.tree, there.tree)
            continue
        if here.avals == there.avals and here.places == there.places:
            continue
        for i, leaf in enumerate(here.leaf_names(name)):
            yield from of_types(leaf, here.avals[i], there.avals[i])
            if here.places[i] != there.places[i]:
                words = place_words(here.places[i], there.places[i])
                yield Difference("place", leaf, *words)


def of_structures(name: str, now: PyTreeDef, before: PyTreeDef) -> Difference:
    """The first place at which two structures differ.

    It is found in the structures themselves, since classes of the user's may refuse
    anything but arrays.
    """
    here, there = now.node_data(), before.node_data()
    if here is None or there is None or here[0] is not there[0]:
        return Difference("structure", name, "", node_text(now), node_text(before))
    keys, others = keys_of(here), keys_of(there)
    if set(keys) != set(others):
        words = key_words(keys, others)
        return Difference("structure", name, here[0].__name__, *words)
    children, rest = now.children(), before.children()
    if len(children) != len(rest):
        return Difference("structure", name, "", node_text(now), node_text(before))
    if here[1] != there[1]:
        texts = [reprlib.repr(data[1]) for data in (here, there)]
        return Difference("structure", name, "static part", *texts)
    for i, (child, other) in enumerate(zip(children, rest, strict=True)):
        if child != other:
            return of_structures(name + step(here, i), child, other)
    return Difference("structure", name, "", str(now), str(before))


def keys_of(node: tuple[type, Any]) -> list[object]:
    """The keys of a mapping of Python's, in order; none of any other node."""
    cls, data = node
    if cls is defaultdict:
        return list(data[1])
    return list(data) if cls in (dict, OrderedDict) else []


def node_text(tree: PyTreeDef) -> str:
    """The text of the node at the top of a structure."""
    node = tree.node_data()
    if node is None:
        return "an array"
    count = len(tree.children())
    return "None" if node[0] is type(None) else f"{node[0].__name__} of {count}"


def key_words(now: Sequence[object], before: Sequence[object]) -> tuple[str, str]:
    """The keys that only one of two dicts has, in words."""
    more = ", ".join([repr(key) for key in now if key not in before])
    less = ", ".join([repr(key) for key in before if key not in now])
    if more and less:
        return f"with {more} and without {less}", "the other way round"
    return (f"with {more}", "without") if more else (f"without {less}", "with")


def step(node: tuple[type, object], i: int) -> str:
    """The way to child `i` of a node as Python writes it, as far as it is known."""
    cls = node[0]
    if keys := keys_of(node):
        return f"[{keys[i]!r}]"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return f".{cls._fields[i]}"
    return f"[{i}]" if cls in (list, tuple) else f"<part {i}>"


def of_types(leaf: str, now: ShapedArray, before: ShapedArray) -> Iterator[Difference]:
    if now.shape != before.shape:
        yield Difference("shape", leaf, "shape", str(now.shape), str(before.shape))
    if now.dtype != before.dtype:
        yield Difference("dtype", leaf, "dtype", str(now.dtype), str(before.dtype))
    if now.weak_type != before.weak_type:
        words = weakness(now.weak_type), weakness(before.weak_type)
        yield Difference("weak type", leaf, "type", *words)


def weakness(weak: bool) -> str:
    return "weak (a Python number)" if weak else "strong (an array)"


def place_words(now: Any, before: Any) -> tuple[str, str, str]:
    """The difference of two places, and both of them, in words."""
    if now is not None and before is not None and now[0] == before[0]:
        return "", committed(now[1]), committed(before[1])
    return "", place_text(now), place_text(before)


def committed(flag: bool) -> str:
    return "committed to its devices" if flag else "not committed to them"


def place_text(place: Any) -> str:
    """The place of an array in words: `on cpu:1`, or its sharding."""
    if place is None:
        return "on the default device"
    sharding = place[0]
    if sharding.num_devices == 1:
        return f"on {sharding.ordered[0]}"
    return f"sharded as {sharding!r}"


def of_statics(
    now: Mapping[str, StaticArgument], before: Mapping[str, StaticArgument]
) -> Iterator[Difference]:
    """Differences of the static arguments that both calls have."""
    for name, here in now.items():
        there = before.get(name)
        if there is None or same(here.key, there.key):
            continue
        if here.kind != there.kind:
            words = [f"{x.text} of type {x.kind}" for x in (here, there)]
            yield Difference("static type", name, "static value", *words)
            continue
        alike = here.text == there.text
        kind = "static identity" if alike or here.identity else "static value"
        text = "another object that prints the same" if alike else there.text
        yield Difference(kind, name, "static value", here.text, text)


def of_options(
    now: Mapping[str, object], before: Mapping[str, object]
) -> Iterator[Difference]:
    for name, here in now.items():
        there = before[name]
        if here != there:
            yield Difference("option", name, "", option_text(here), option_text(there))


def option_text(value: object) -> str:
    """An option's value; of a tuple, such as the meshes around, its items."""
    if isinstance(value, tuple):
        return ", ".join(map(repr, value)) or "none"
    return str(value)
