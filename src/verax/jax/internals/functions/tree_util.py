"""`jax._src.tree_util`: which classes are pytree nodes, where trees differ.

The registry is jaxlib's, which can be asked about a class, but not listed::

    list in _registry    # True
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from verax.api.trees.mismatch import Difference, IsLeaf, differences
from verax.api.trees.pytrees import flatten_one_level, tree_structure
from verax.backend.pytrees import PyTreeDef, is_node, node_of
from verax.tree_util import treedef_is_leaf


class Registry:
    """The classes that are nodes; a namedtuple is one as a tuple, not by its class."""

    __slots__ = ()

    def __contains__(self, kind: type) -> bool:
        return is_node(kind) and not is_namedtuple(kind)

    def __getitem__(self, kind: type) -> "Entry":
        """How nodes of a class are taken apart and made.

        Raises:
            KeyError: the class is none of nodes.
        """
        if kind not in self:
            raise KeyError(kind)
        return Entry(kind)


class Entry:
    """What is registered for one class."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def to_iter(self, node: object) -> tuple[tuple[object, ...], object]:
        """The children of a node, and what else makes it."""
        children, aside = flatten_one_level(node)
        return tuple(children), aside

    def from_iter(self, aside: Any, children: Iterable[object]) -> Any:
        """The node of such children."""
        if self.kind is dict:
            return dict(zip(aside, children, strict=True))
        if self.kind in (list, tuple):
            return self.kind(children)
        leaf, items = tree_structure(0), list(children)
        return node_of(self.kind, aside, [leaf] * len(items)).unflatten(items)


def is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


_registry = Registry()


def prefix_errors(
    prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None
) -> list[Callable[[str], ValueError]]:
    """The reasons why a tree is no prefix of another: errors, but for a name.

    Each has the words of `jax.tree_util` that programs match.
    """
    places = differences(prefix_tree, full_tree, "", is_leaf)
    return [functools.partial(prefix_error, place) for place in places]


def prefix_error(difference: Difference, name: str) -> ValueError:
    """The error of one place of a tree called `name`."""
    keys = (
        ", so the symmetric difference on key sets is\n    " if difference.keys else ""
    )
    return ValueError(
        f"pytree structure error: {difference.kind} at key path\n"
        f"    {name}{difference.place}\n"
        f"{difference.detail}{keys}{' '.join(difference.keys)}"
    )


def broadcast_flattened_prefix_with_treedef(
    prefix_leaves: Sequence[object], prefix_treedef: PyTreeDef, full_treedef: PyTreeDef
) -> list[object]:
    """The leaves of a prefix, each as often as the whole tree has leaves below it.

    Raises:
        ValueError: the one is no prefix of the other.
    """
    if treedef_is_leaf(prefix_treedef) and prefix_treedef.num_nodes == 1:
        (leaf,) = prefix_leaves
        return [leaf] * int(full_treedef.num_leaves)
    if treedef_is_leaf(full_treedef) and full_treedef.num_nodes == 1:
        raise ValueError("`prefix_treedef` is not a prefix of `full_treedef`")
    if prefix_treedef.node_data() != full_treedef.node_data():
        raise ValueError(
            f"expected {full_treedef.node_data()}, got {prefix_treedef.node_data()}"
        )
    parts, whole = prefix_treedef.children(), full_treedef.children()
    if len(parts) != len(whole):
        raise ValueError(f"expected {len(whole)} children, got {len(parts)}")
    out, rest = [], list(prefix_leaves)
    for prefix, full in zip(parts, whole, strict=True):
        own, rest = rest[: prefix.num_leaves], rest[prefix.num_leaves :]
        out += broadcast_flattened_prefix_with_treedef(own, prefix, full)
    return out
