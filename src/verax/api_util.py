"""Helpers for libraries that wrap functions as `jit` does: `verax.api_util` (floor 6).

They say which leaves of the arguments are donated, what a prefix of their structure
says about each, and of which type a value is:

    >>> import verax
    >>> tree = verax.tree_util.tree_structure((({"a": 0, "b": 0}, 0), {}))
    >>> donation_vector((0,), (), tree)
    (True, True, False)
"""

from collections.abc import Callable, Iterable, Sequence

from verax.api.tracing.structs import struct_avals
from verax.api.trees.pytrees import prefix_leaves
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray

__all__ = [
    "donation_vector",
    "flatten_axes",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]


def donation_vector(
    donate_argnums: Iterable[int],
    donate_argnames: Iterable[str],
    in_tree: PyTreeDef,
    kws: bool = True,
) -> tuple[bool, ...]:
    """Whether each leaf of the arguments is donated.

    `in_tree` is the structure of the pair (args, kwargs), or of args without `kws`.

    >>> import verax
    >>> tree = verax.tree_util.tree_structure(((0, 0), {"k": 0}))
    >>> donation_vector((1,), ("k",), tree)
    (False, True, True)
    """
    places, names = frozenset(donate_argnums), frozenset(donate_argnames)
    leaves = [0] * in_tree.num_leaves
    args, kwargs = in_tree.unflatten(leaves) if kws else (in_tree.unflatten(leaves), {})
    given = [(x, i in places) for i, x in enumerate(args)]
    # The leaves of a dictionary are in the order of its keys.
    given += [(kwargs[name], name in names) for name in sorted(kwargs)]
    return tuple([flag for x, flag in given for _ in pytrees.flatten(x)[0]])


def rebase_donate_argnums(
    donate_argnums: Iterable[int], static_argnums: Iterable[int]
) -> tuple[int, ...]:
    """The positions of donated arguments among those that are not static, in order.

    Raises:
        ValueError: an argument is both.

    >>> rebase_donate_argnums((3, 4), (0, 1))
    (1, 2)
    """
    donated, static = sorted(set(donate_argnums)), sorted(set(static_argnums))
    both = sorted(set(donated) & set(static))
    if both:
        raise ValueError(
            f"static_argnums and donate_argnums cannot intersect, but both have {both}"
        )
    return tuple([i - sum([s < i for s in static]) for i in donated])


def flatten_axes(
    name: str,
    treedef: PyTreeDef,
    axis_tree: object,
    *,
    kws: bool = False,
    tupled_args: bool = False,
) -> list[object]:
    """The entry of `axis_tree`, a prefix of `treedef`, for each leaf; None is one.

    With `kws` both are pairs of what belongs to args and to kwargs. `tupled_args` says
    in the error that `name` is wrapped in a tuple, one entry for each argument.

    Raises:
        ValueError: it is not a prefix.

    >>> import verax
    >>> tree = verax.tree_util.tree_structure({"a": [0, 0], "b": 0})
    >>> flatten_axes("in_axes", tree, {"a": 0, "b": None})
    [0, 0, None]
    """
    whole = treedef.unflatten(range(treedef.num_leaves))
    try:
        return prefix_leaves(name, axis_tree, whole, lambda x: x is None)
    except ValueError as error:
        if not tupled_args:
            raise
        raise ValueError(
            f"{error}. Wrap {name} in a tuple with one entry for each argument"
        ) from None


def safe_map[R](f: Callable[..., R], *sequences: Sequence[object]) -> list[R]:
    """`f` of the first items, of the second ones and so on, as a list.

    Raises:
        ValueError: the lengths differ.

    >>> safe_map(max, [1, 5], (4, 2))
    [4, 5]
    """
    return [f(*items) for items in zip(*sequences, strict=True)]


def shaped_abstractify(x: object) -> ShapedArray:
    """The type of an array, scalar, tracer or `ShapeDtypeStruct`.

    Raises:
        TypeError: it is something else.

    >>> shaped_abstractify(1.0).weak_type
    True
    """
    return struct_avals([x])[0]
