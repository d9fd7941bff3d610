"""Floor 5: the residuals of a pullback that are arguments of its function.

They stand apart from the others, so that a caller may drop them and put them back::

    y, pull = vjp(f, x, w, saveable_args=(True, False))
    pull.args_res               # [x, NotSaveable()]
    pull.args_res[1] = w
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from attrs import frozen

from verax.api.trees.pytrees import register_pytree_node_class
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.records import ReprMixin

type Layout = PyTreeDef | tuple[Layout, ...]
"""The structure of an argument, or a tuple where `saveable_args` has one."""


@frozen(repr=False)
class Absent(ReprMixin):
    """Stands where an argument is not kept; a pytree without leaves."""

    def tree_flatten(self) -> tuple[tuple[()], None]:
        """No children."""
        return (), None

    @classmethod
    def tree_unflatten(cls, metadata: None, children: object) -> Self:
        """It again."""
        return cls()


@register_pytree_node_class
class NotNeeded(Absent):
    """Stands for an argument whose value the derivative does not need."""

    def __repr__(self) -> str:
        return "NotNeeded()"


@register_pytree_node_class
class NotSaveable(Absent):
    """Stands for an argument that the derivative needs and must not keep."""

    def __repr__(self) -> str:
        return "NotSaveable()"


def is_absent(x: object) -> bool:
    """Whether `x` stands for an argument that is not kept."""
    return isinstance(x, Absent)


def layouts_of(
    saveable: object, trees: Sequence[PyTreeDef], what: str = "saveable_args"
) -> tuple[list[bool], list[Layout]]:
    """Which leaves of the arguments may be kept, and how each argument is shown.

    Raises:
        ValueError: `saveable`, which messages call `what`, is not a bool, or a tuple of
            such for each argument.
    """
    if isinstance(saveable, bool):
        return [saveable] * sum([tree.num_leaves for tree in trees]), [*trees]
    parts = parts_of(saveable, trees, what, "")
    return [x for own, _ in parts for x in own], [layout for _, layout in parts]


def parts_of(
    saveable: object, trees: Sequence[PyTreeDef], what: str, place: str
) -> list[tuple[list[bool], Layout]]:
    """`layout_of` for each entry of a tuple, which stands for the `trees`."""
    if not isinstance(saveable, tuple):
        raise ValueError(
            f"{what} must be a tuple-tree of bools, but {what}{place} is "
            f"{saveable!r} of type {type(saveable).__name__}"
        )
    if len(saveable) != len(trees):
        whole = f"args{place}" if place else "the arguments"
        raise ValueError(
            f"{what}{place} has {len(saveable)} entries, but {whole} have "
            f"another number of children: {len(trees)}"
        )
    return [
        layout_of(entry, tree, what, f"{place}[{i}]")
        for i, (entry, tree) in enumerate(zip(saveable, trees, strict=True))
    ]


def layout_of(
    saveable: object, tree: PyTreeDef, what: str, place: str
) -> tuple[list[bool], Layout]:
    """Which leaves of one part of the arguments may be kept, and how it is shown."""
    if isinstance(saveable, bool):
        return [saveable] * tree.num_leaves, tree
    if isinstance(saveable, tuple) and tree.num_nodes == 1 and tree.num_leaves == 1:
        raise ValueError(
            f"{what}{place} is a tuple, but args{place} is a leaf: it takes "
            "True or False"
        )
    parts = parts_of(saveable, tree.children(), what, place)
    flags = [x for own, _ in parts for x in own]
    return flags, tuple([layout for _, layout in parts])


def laid_out(layout: Layout, leaves: Iterator[Any]) -> Any:
    """The next leaves in a layout."""
    if isinstance(layout, tuple):
        return tuple([laid_out(part, leaves) for part in layout])
    return layout.unflatten([next(leaves) for _ in range(layout.num_leaves)])


def argument_leaves(result: Sequence[Any], trees: Sequence[PyTreeDef]) -> list[Any]:
    """The leaves that stand in `args_res` for those of the arguments.

    Raises:
        ValueError: there is another number of arguments, or of leaves of one.
    """
    if len(result) != len(trees):
        raise ValueError(
            f"args_res must hold one entry for each of the {len(trees)} arguments, not "
            f"{len(result)}"
        )
    leaves = []
    for i, (part, tree) in enumerate(zip(result, trees, strict=True)):
        own, _ = pytrees.flatten(part, is_absent)
        if len(own) != tree.num_leaves:
            raise ValueError(
                f"args_res[{i}] has {len(own)} leaves where args[{i}] has "
                f"{tree.num_leaves}: put the argument back that the pullback needs, as "
                f"in pullback.args_res[{i}] = ..."
            )
        leaves += own
    return leaves


def leaf_place(tree: PyTreeDef, i: int) -> str:
    """Where leaf `i` of (args, kwargs) is: `args[1]['w']`."""
    numbered = tree.unflatten(range(tree.num_leaves))
    path, _ = pytrees.flatten_with_path(numbered)[0][i]
    return "args" + "".join(map(str, path[1:]))
