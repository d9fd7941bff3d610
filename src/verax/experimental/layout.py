"""Layouts of arrays in memory, under the names of `jax.experimental.layout` (floor 6).

A compiled function tells the formats of what it takes::

    verax.jit(f).lower(x).compile().input_formats

>>> Layout.row_major(2).major_to_minor
(0, 1)
"""

from typing import Any

from verax.api.trees.pytrees import prefix_leaves
from verax.backend import pytrees
from verax.backend.arrays.concrete import Format, Layout
from verax.ops.structure.layout_constraint import (
    LayoutConstraintParams,
    layout_constraint_p,
)

__all__ = ["Format", "Layout", "with_layout_constraint"]


def is_layout(x: object) -> bool:
    """Whether `x` is a layout, none of which is a pytree."""
    return isinstance(x, Layout)


def with_layout_constraint(x: object, layouts: object) -> Any:
    """The arrays of a pytree, which a compiled program has in these orders in memory.

    `layouts` is a `Layout`, or a pytree of them that is a prefix of `x`. Values do not
    change, and arrays outside of compiled functions stay as they are. Tiles are for the
    compiler to choose.

    Raises:
        ValueError: a layout is none, or orders another number of dimensions.

    >>> import verax, verax.numpy as vnp
    >>> f = verax.jit(lambda x: with_layout_constraint(x, Layout((1, 0))) + 1)
    >>> f(vnp.zeros((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    leaves, tree = pytrees.flatten(x)
    chosen = prefix_leaves("layouts", layouts, x, is_layout)
    wrong = [layout for layout in chosen if not isinstance(layout, Layout)]
    if wrong:
        raise ValueError(
            "layouts passed to `with_layout_constraint` must be of type `Layout`, not "
            f"{wrong[0]!r}"
        )
    outs = [
        layout_constraint_p.call(LayoutConstraintParams(layout.major_to_minor), leaf)
        for leaf, layout in zip(leaves, chosen, strict=True)
    ]
    return tree.unflatten(outs)
