"""`jax._src.tree_util`: which classes are pytree nodes, where trees differ.

The registry is jaxlib's, which can be asked about a class, but not listed::

    list in _registry    # True
"""

from collections.abc import Callable
from typing import Any

from verax.api.trees.pytrees import first_difference
from verax.backend.pytrees import is_node


class Registry:
    """The classes that are nodes; a namedtuple is one as a tuple, not by its class."""

    __slots__ = ()

    def __contains__(self, kind: type) -> bool:
        return is_node(kind) and not is_namedtuple(kind)


def is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


_registry = Registry()


def prefix_errors(
    prefix_tree: object, full_tree: object, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """The reasons why a tree is no prefix of another: errors, but for a name.

    There is one, for the first place at which they differ, or none.
    """
    result = first_difference(prefix_tree, full_tree, "", is_leaf)
    if result is None:
        return []
    place, difference = result
    return [
        lambda name: ValueError(
            f"{name} must be a prefix of the tree that it applies to, but at "
            f"{name}{place}: {difference}"
        )
    ]
