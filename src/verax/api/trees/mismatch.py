"""Where two pytrees differ, in words (floor 5).

One idea: the places at which one tree does not continue the other, as key paths,
say more than the two whole structures would.

    >>> from verax.api.trees.mismatch import structure_mismatch
    >>> print(structure_mismatch({"a": [1]}, {"a": (1,)}, "Tree 2", None))
    pytree structure error: Tree 2 has another structure at tree['a']: different types:
    expected list, got tuple.
"""

from collections.abc import Iterator, Sequence

from attrs import frozen

from verax.backend import pytrees
from verax.backend.pytrees import IsLeaf as IsLeaf, KeyPath
from verax.ir.records import ReprMixin


@frozen(repr=False)
class Difference(ReprMixin):
    """What differs at a place of two trees.

    Attributes:
        place: the path of the node in both trees.
        kind: what is different, in JAX's words.
        detail: what was expected and what is there.
        keys: the keys that one of two mappings or classes has alone.

    >>> print(Difference("tree[0]", "different types", "expected list, got int"))
    tree[0]: different types: expected list, got int
    """

    place: str
    kind: str
    detail: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.detail}"


def structure_mismatch(
    expected: object, actual: object, name: str, is_leaf: IsLeaf
) -> ValueError:
    """The error for a tree that does not begin with the structure of another.

    >>> print(structure_mismatch([1], [1, 2], "Tree 2", None))
    pytree structure error: Tree 2 has another structure at tree: different lengths of
    list: expected 1 children, got 2.
    """
    result = first_difference(expected, actual, "tree", is_leaf)
    if result is None:
        # Equal level by level, so that only the whole can tell them apart.
        return ValueError(f"{name} does not have the structure of the first tree.")
    return ValueError(
        f"pytree structure error: {name} has another structure at {result}."
    )


def first_difference(
    expected: object, actual: object, place: str, is_leaf: IsLeaf
) -> Difference | None:
    """The first place where `actual` does not continue `expected`, and how."""
    return next(differences(expected, actual, place, is_leaf), None)


def differences(
    expected: object, actual: object, place: str, is_leaf: IsLeaf
) -> Iterator[Difference]:
    """Every place where `actual` does not continue `expected`, and how."""
    if is_leaf is not None and is_leaf(expected):
        return
    target = pytrees.flatten_one_level_with_keys(expected)
    if target is None:
        return
    if type(expected) is not type(actual):
        names = type(expected).__name__, type(actual).__name__
        detail = "expected {}, got {}".format(*names)
        yield Difference(place, "different types", detail)
        return
    got = pytrees.flatten_one_level_with_keys(actual)
    if got is None:
        yield Difference(place, "different types", "expected a container, got a leaf")
        return
    left, right = list(target[0]), list(got[0])
    keys, others = (tuple([key for key, _ in level]) for level in (left, right))
    if what := level_difference(keys, others, target[1], got[1]):
        alone = tuple(
            [str(key) for key in (*keys, *others) if (key in keys) != (key in others)]
        )
        yield Difference(place, level_kind(expected, keys, others), what, alone)
        return
    for (key, child), (_, other) in zip(left, right, strict=True):
        yield from differences(child, other, f"{place}{key}", is_leaf)


def level_kind(node: object, keys: Sequence[object], others: Sequence[object]) -> str:
    """What is different between two nodes of one class, in JAX's words."""
    if len(keys) == len(others):
        return "different pytree metadata"
    if isinstance(node, tuple | list):
        return f"different lengths of {type(node).__name__}"
    return "different numbers of pytree children"


def level_difference(
    keys: KeyPath, others: KeyPath, expected_data: object, actual_data: object
) -> str | None:
    """The difference of two nodes of one type, their children aside."""
    if all(isinstance(key, pytrees.DictKey) for key in (*keys, *others)):
        return key_difference([k.key for k in keys], [k.key for k in others]) or (
            None if expected_data == actual_data else "the metadata differ"
        )
    if len(keys) != len(others):
        return f"expected {len(keys)} children, got {len(others)}"
    if expected_data != actual_data:
        return f"expected the metadata {expected_data!r}, got {actual_data!r}"
    return None


def key_difference(keys: list[object], others: list[object]) -> str | None:
    """The difference of the keys of two mappings."""
    missing = [f"{key!r} is missing" for key in keys if key not in others]
    unexpected = [f"{key!r} is unexpected" for key in others if key not in keys]
    if out := missing + unexpected:
        return "the keys differ: " + ", ".join(out)
    return None if keys == others else "the keys are the same but in another order"
