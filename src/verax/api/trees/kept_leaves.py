"""Floor 5: trees with leaves that are not arrays of the program.

Such a leaf is taken out of the tree, and put back as it is when the arrays are there::

    arrays, rest = split_leaves((x, "name"), is_operand)
    rest.rebuilt(arrays)        # (x, "name")
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.records import ReprMixin


@frozen(eq=False, repr=False)
class KeptLeaves(ReprMixin):
    """The structure of a tree, and the leaves that are kept as they are, by place."""

    tree: PyTreeDef
    others: tuple[tuple[int, object], ...]

    def rebuilt(self, arrays: Sequence[Any]) -> Any:
        """The user's tree, from the leaves that are arrays and come first."""
        leaves = list(arrays[: self.tree.num_leaves - len(self.others)])
        for place, other in self.others:
            leaves.insert(place, other)
        return self.tree.unflatten(leaves)


def split_leaves(
    tree: object, is_array: Callable[[object], bool]
) -> tuple[list[Any], KeptLeaves]:
    """The leaves for which `is_array` holds, and the rest of the tree."""
    leaves, structure = pytrees.flatten(tree)
    others = [(i, leaf) for i, leaf in enumerate(leaves) if not is_array(leaf)]
    places = {i for i, _ in others}
    arrays = [leaf for i, leaf in enumerate(leaves) if i not in places]
    return arrays, KeptLeaves(structure, tuple(others))
