"""Pytrees under the short names of `verax.tree` (floor 6).

This module only gives names; the work is done in `verax.api`.

    >>> from verax import tree
    >>> tree.map(lambda x: x + 1, [1, {"a": 2}])
    [2, {'a': 3}]
"""

from verax.api.trees import pytrees
from verax.api.trees.pytrees import static

all = pytrees.tree_all
broadcast = pytrees.tree_broadcast
flatten = pytrees.tree_flatten
flatten_with_path = pytrees.tree_flatten_with_path
leaves = pytrees.tree_leaves
leaves_with_path = pytrees.tree_leaves_with_path
map = pytrees.tree_map
map_with_path = pytrees.tree_map_with_path
reduce = pytrees.tree_reduce
reduce_associative = pytrees.tree_reduce_associative
structure = pytrees.tree_structure
transpose = pytrees.tree_transpose
unflatten = pytrees.tree_unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
