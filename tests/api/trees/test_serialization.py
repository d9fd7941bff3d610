"""Structures of pytrees as JSON: there and back, and none that no container has."""

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest

from verax.api.trees.serialization import (
    read_tree,
    register_namedtuple_serialization,
    write_tree,
)
from verax.tree_util import tree_structure


class Move(NamedTuple):
    """A class of containers with a name in files."""

    left: Any
    right: Any


register_namedtuple_serialization(Move, serialized_name="tests.Move")
TREES: list[Any] = [
    1,
    None,
    {},
    (),
    [1, (2, None), {}],
    {"b": 1, "a": [2], "": None},
    {2: 1, -1: 2, 1.5: 3, True: 4},
    Move(1, [2]),
    OrderedDict(b=1, a={"c": 2}),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_there_and_back(tree: Any) -> None:
    structure = tree_structure(tree)
    assert read_tree(write_tree(structure)) == structure


@pytest.mark.parametrize(
    "data",
    [
        ["dict", ["a"], ["*", "*"]],
        ["dict", ["a", "b"], ["*"]],
        ["dict", ["a", "a"], ["*", "*"]],
        ["dict", ["b", "a"], ["*", "*"]],
        ["dict", [1, "a"], ["*", "*"]],
        ["dict", [["x"], "y"], ["*", "*"]],
        ["dict", {"a": 1}, ["*"]],
        ["dict", "ab", ["*", "*"]],
        ["dict", None, ["*"]],
        ["OrderedDict", ["a"], ["*", "*"]],
        ["OrderedDict", ["a", "a"], ["*", "*"]],
        ["OrderedDict", [[1]], ["*"]],
        ["None", None, ["*"]],
        ["tuple", 3, ["*"]],
        ["list", [], []],
        ["set", None, ["*"]],
        [":tests.Move", None, ["*"]],
        [":tests.Move", "", ["*", "*"]],
        [1, None, ["*"]],
        [[], None, ["*"]],
        ["dict"],
        [],
        None,
        3,
        "x",
    ],
    ids=str,
)
def test_structures_that_no_container_has(data: Any) -> None:
    """jaxlib would build some of these, and end the process when they are filled."""
    with pytest.raises(ValueError, match=r"structure of a pytree|do not make|entries"):
        read_tree(["list", None, ["*", data]])
