"""Where two pytrees differ, in words (floor 5).

One idea: the first place at which one tree does not continue the other, as a key path,
says more than the two whole structures would.

    >>> from verax.api.trees.mismatch import structure_mismatch
    >>> print(structure_mismatch({"a": [1]}, {"a": (1,)}, "Tree 2", None))
    pytree structure error: Tree 2 has another structure at tree['a']: expected list,
    got tuple.
"""

from collections.abc import Callable
from typing import Any

from verax.backend import pytrees


def structure_mismatch(
    expected: object, actual: object, name: str, is_leaf: Callable[[Any], bool] | None
) -> ValueError:
    """The error for a tree that does not begin with the structure of another.

    >>> print(structure_mismatch({"a": 1}, {"b": 1}, "Tree 2", None))
    pytree structure error: Tree 2 has another structure at tree: the keys differ: 'a'
    is missing, 'b' is unexpected.
    """
    found = first_difference(expected, actual, "tree", is_leaf)
    if found is None:
        # Equal level by level, so that only the whole can tell them apart.
        return ValueError(f"{name} does not have the structure of the first tree.")
    place, difference = found
    return ValueError(
        f"pytree structure error: {name} has another structure at {place}: "
        f"{difference}."
    )


def first_difference(
    expected: object, actual: object, place: str, is_leaf: Callable[[Any], bool] | None
) -> tuple[str, str] | None:
    """The first place where `actual` does not continue `expected`, and how."""
    if is_leaf is not None and is_leaf(expected):
        return None
    wanted = pytrees.flatten_one_level_with_keys(expected)
    if wanted is None:
        return None
    if type(expected) is not type(actual):
        return place, f"expected {type(expected).__name__}, got {type(actual).__name__}"
    got = pytrees.flatten_one_level_with_keys(actual)
    if got is None:
        return place, "expected a container, got a leaf"
    left, right = list(wanted[0]), list(got[0])
    if (difference := level_difference(left, right, wanted[1], got[1])) is not None:
        return place, f"{difference}"
    for (key, child), (_, other) in zip(left, right, strict=True):
        if found := first_difference(child, other, f"{place}{key}", is_leaf):
            return found
    return None


def level_difference(
    left: list[tuple[Any, Any]],
    right: list[tuple[Any, Any]],
    expected_data: Any,
    actual_data: Any,
) -> str | None:
    """How two nodes of one type differ themselves, their children aside."""
    keys, others = ([key for key, _ in level] for level in (left, right))
    if all(isinstance(key, pytrees.DictKey) for key in (*keys, *others)):
        return key_difference([k.key for k in keys], [k.key for k in others]) or (
            None if expected_data == actual_data else "the metadata differ"
        )
    if len(left) != len(right):
        return f"expected {len(left)} children, got {len(right)}"
    if expected_data != actual_data:
        return f"expected the metadata {expected_data!r}, got {actual_data!r}"
    return None


def key_difference(keys: list[Any], others: list[Any]) -> str | None:
    """How the keys of two mappings differ."""
    missing = [f"{key!r} is missing" for key in keys if key not in others]
    unexpected = [f"{key!r} is unexpected" for key in others if key not in keys]
    if differences := missing + unexpected:
        return "the keys differ: " + ", ".join(differences)
    return None if keys == others else "the keys are the same but in another order"
