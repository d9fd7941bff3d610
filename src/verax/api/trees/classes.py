"""How classes become pytree nodes (floor 5).

One idea: a node class is a pair of functions, to children and back; decorators only
write that pair for the common cases.

    >>> from dataclasses import dataclass
    >>> from verax.api.trees.classes import register_dataclass, static
    >>> from verax.api.trees.pytrees import tree_map
    >>> @register_dataclass
    ... @dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = static(default="dense")
    >>> tree_map(lambda x: 2 * x, Layer(3.0))
    Layer(weight=6.0, name='dense')
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import frozen

from verax.backend import pytrees
from verax.backend.pytrees import Children, KeyChildren, PyTreeDef
from verax.ir.records import ReprMixin


def register_pytree_node[T](
    nodetype: type[T],
    flatten_func: Callable[[T], Children],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Callable[[T], KeyChildren] | None = None,
) -> None:
    """Make a class a node: to (children, metadata), and from metadata and children.

    The metadata must be comparable, since it is part of the structure, by which
    programs are looked up. A dict of plain values will do.

    Raises:
        ValueError: the class is a node already.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, c: Pair(*c))
    >>> pytrees.flatten(Pair(1, 2))[0]
    [1, 2]
    """
    pytrees.register_node(
        nodetype, flatten_func, unflatten_func, flatten_with_keys_func
    )


def register_pytree_with_keys[T](
    nodetype: type[T],
    flatten_with_keys: Callable[[T], KeyChildren],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], Children] | None = None,
) -> None:
    """As `register_pytree_node`, for a function that returns (key, child) pairs.

    Raises:
        ValueError: the class is a node already.
    """

    def without_keys(tree: T) -> Children:
        pairs, metadata = flatten_with_keys(tree)
        return [child for _, child in pairs], metadata

    pytrees.register_node(
        nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys
    )


def register_pytree_node_class[C: type[Any]](cls: C) -> C:
    """Class decorator: a node by `tree_flatten` and the class's `tree_unflatten`.

    Raises:
        ValueError: the class is a node already.

    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children):
    ...         return cls(*children)
    >>> pytrees.flatten(Box(1))[0]
    [1]
    """
    pytrees.register_node(cls, cls.tree_flatten, cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class[C: type[Any]](cls: C) -> C:
    """Class decorator: `tree_flatten_with_keys`, `tree_unflatten`, or `tree_flatten`.

    Raises:
        ValueError: the class is a node already.
    """
    flatten = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(
        cls, cls.tree_flatten_with_keys, cls.tree_unflatten, flatten
    )
    return cls


def static(**settings: Any) -> Any:
    """A dataclass field that belongs to the structure; takes the arguments of `field`.

    >>> static(default=1).metadata["static"]
    True
    """
    metadata = {"static": True, **(settings.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **settings)


def fields_of_dataclass(nodetype: type) -> tuple[list[str], list[str]]:
    """Names of the leaves and of the static fields, as the metadata of each says."""
    fields = dataclasses.fields(nodetype)
    statics = {entry.name for entry in fields if entry.metadata.get("static", False)}
    data = [entry.name for entry in fields if entry.name not in statics]
    return data, [entry.name for entry in fields if entry.name in statics]


def check_fields(
    nodetype: type, data: list[str], meta: list[str], drop: Sequence[str]
) -> None:
    """The lists must name each field of the constructor exactly once."""
    name = f"of {nodetype.__qualname__}"
    if both := set(data) & set(meta):
        raise ValueError(
            "register_dataclass: data_fields and meta_fields must not overlap: a field "
            f"{name} is one of the two. Overlapping fields: {braced(both)}"
        )
    if not dataclasses.is_dataclass(nodetype):
        return
    fields = {entry.name for entry in dataclasses.fields(nodetype) if entry.init}
    rule = (
        "register_dataclass: data_fields and meta_fields must include all dataclass "
        f"fields {name} that its constructor takes, and no others"
    )
    if missing := fields - set(data) - set(meta) - set(drop):
        raise ValueError(
            f"{rule}. Missing fields: {braced(missing)}; add them to a list, or to "
            "drop_fields."
        )
    if unexpected := (set(data) | set(meta)) - fields:
        raise ValueError(
            f"{rule}. Unexpected fields: {braced(unexpected)}; pass fields with "
            "init=False as drop_fields."
        )


def braced(names: Iterable[str]) -> str:
    """Names in order, as a set is written."""
    return f"{{{', '.join(map(repr, sorted(names)))}}}"


def register_dataclass[C: type[Any]](
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Make a dataclass a node; also a decorator.

    Without lists, the fields marked `static` are metadata and the others data, except
    `drop_fields`, which the constructor sets itself. A class that is not a dataclass
    needs both lists, and a constructor with these keywords.

    Raises:
        TypeError: only one of the lists is passed, or neither for a plain class.
        ValueError: the lists are not the fields of the constructor, or the class is
            a node already.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     label: str = dataclasses.field(metadata={"static": True}, default="p")
    >>> pytrees.flatten(Point(1.0))[0]
    [1.0]
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass takes both data_fields and meta_fields, or neither."
        )
    if data_fields is not None and meta_fields is not None:
        data, meta = list(data_fields), list(meta_fields)
    elif dataclasses.is_dataclass(nodetype):
        data, meta = fields_of_dataclass(nodetype)
        data = [name for name in data if name not in drop_fields]
        meta = [name for name in meta if name not in drop_fields]
    else:
        raise TypeError(
            f"register_dataclass: {nodetype.__qualname__} is not a dataclass, so "
            "data_fields and meta_fields are required."
        )
    check_fields(nodetype, data, meta, drop_fields)
    pytrees.register_dataclass_node(nodetype, data, meta)
    return nodetype


def register_static[C: type[Any]](cls: C) -> C:
    """Class decorator: a node without leaves; the object itself is the structure.

    The class needs `__hash__` and `__eq__`.

    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> pytrees.flatten([Mode("train"), 1])[0]
    [1]
    """
    pytrees.register_node(cls, lambda obj: ((), obj), lambda obj, _: obj)
    return cls


# -----------------------------------------------------------------------------
# Trees with leaves that are not arrays of the program.
#
# Such a leaf is taken out of the tree, and put back as it is when the arrays are
# there::
#
#     arrays, rest = split_leaves((x, "name"), is_operand)
#     rest.rebuilt(arrays)        # (x, "name")


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
