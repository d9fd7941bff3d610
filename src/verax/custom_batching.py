"""Users' own batching rules, under JAX's names (floor 6).

One idea: a rule is a function of stacks; `sequential_vmap` is the rule that loops.

    >>> from verax.custom_batching import custom_vmap
    >>> custom_vmap.__name__
    'custom_vmap'
"""

from collections.abc import Callable
from typing import Any

from verax.api.custom.vmap import custom_vmap as custom_vmap
from verax.lax.looping import map as loop
from verax.tree_util import tree_flatten, tree_map


def sequential_vmap(f: Callable[..., object]) -> custom_vmap:
    """A function that vmap runs one element after the other, in a loop.

    >>> import verax, verax.numpy as vnp
    >>> add = verax.custom_batching.sequential_vmap(lambda x, y: x + y)
    >>> verax.vmap(add, in_axes=(0, None))(vnp.arange(3.0), 1.0).tolist()
    [1.0, 2.0, 3.0]
    """
    batched = custom_vmap(f)

    def rule(
        axis_size: int, in_batched: list[object], *args: object
    ) -> tuple[object, object]:
        leaves, tree = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]
        stacks = [x for x, flag in zip(leaves, flags, strict=True) if flag]

        def element(parts: list[object]) -> Any:
            given = iter(parts)
            filled = [
                next(given) if flag else x
                for x, flag in zip(leaves, flags, strict=True)
            ]
            return batched(*tree.unflatten(filled))

        out = loop(element, stacks)
        return out, tree_map(lambda _: True, out)

    batched.def_vmap(rule)
    return batched
