"""Functions on pytrees: nested containers as one value (floor 5).

One idea: a pytree is a list of leaves and a structure, and every function here is a
few lines on that pair. Classes become nodes in `verax.api.trees.pytrees`.

    >>> from verax.api.trees.pytrees import tree_map
    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
"""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import Any, overload

from attrs import frozen

from verax.api.trees.mismatch import IsLeaf, differences, structure_mismatch
from verax.backend import pytrees
from verax.backend.pytrees import (
    Children,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyChildren,
    KeyPath,
    PyTreeDef,
    SequenceKey,
)
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array

type KeyEntry = Hashable


class Missing(Enum):
    """Stands for an argument that was not passed, where None means something."""

    ARGUMENT = "not given"


def tree_flatten(tree: object, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, in a fixed order, and its structure.

    Dicts are sorted by key; None is a node without leaves.

    >>> tree_flatten({"b": 1, "a": [2, None]})
    ([2, 1], PyTreeDef({'a': [*, None], 'b': *}))
    """
    return pytrees.flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[object]) -> Any:
    """The tree with this structure and these leaves.

    Raises:
        ValueError: the number of leaves is not that of the structure.

    >>> tree_unflatten(tree_structure([0, (0,)]), [1, 2])
    [1, (2,)]
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: object, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in the order of `tree_flatten`.

    >>> tree_leaves([1, {"a": 2}])
    [1, 2]
    """
    return pytrees.flatten(tree, is_leaf)[0]


def tree_structure(tree: object, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree, which can be compared and hashed.

    >>> tree_structure((1, [2, 3]))
    PyTreeDef((*, [*, *]))
    """
    return pytrees.flatten(tree, is_leaf)[1]


@overload
def tree_map[T](
    f: Callable[..., Array], tree: T, *rest: object, is_leaf: IsLeaf = None
) -> T: ...
@overload
def tree_map(
    f: Callable[..., object], tree: object, *rest: object, is_leaf: IsLeaf = None
) -> Any: ...
def tree_map(
    f: Callable[..., object], tree: object, *rest: object, is_leaf: IsLeaf = None
) -> Any:
    """The tree of `f` at each leaf of `tree` and at what the others have there.

    Raises:
        ValueError: a tree of `rest` does not start with the structure of `tree`; the
        message shows the first place where they differ.

    >>> tree_map(lambda x, y: (x, y), {"a": 1}, {"a": [2, 3]})
    {'a': (1, [2, 3])}
    """
    leaves, treedef = pytrees.flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    columns = flatten_all_up_to("tree_map", treedef, tree, rest, is_leaf)
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns, strict=True)])


def flatten_all_up_to(
    name: str,
    treedef: PyTreeDef,
    tree: object,
    rest: tuple[object, ...],
    is_leaf: IsLeaf,
) -> list[list[object]]:
    """The parts of each tree of `rest` at the leaves of `tree`, or a clear error."""
    columns = []
    for position, other in enumerate(rest):
        try:
            columns.append(treedef.flatten_up_to(other))
        except (ValueError, TypeError) as error:
            raise structure_mismatch(
                tree, other, f"{name}: tree {position + 2}", is_leaf
            ) from error
    return columns


def tree_all(tree: object, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true.

    >>> tree_all([True, {"a": 1}]), tree_all([True, {"a": 0}])
    (True, False)
    """
    return all(tree_leaves(tree, is_leaf))


def tree_reduce[T](
    function: Callable[[T, Any], T],
    tree: object,
    initializer: T | Missing = Missing.ARGUMENT,
    is_leaf: IsLeaf = None,
) -> T:
    """The leaves joined from the left, starting with `initializer` if it is passed.

    Raises:
        TypeError: there are neither leaves nor an initializer.

    >>> tree_reduce(lambda total, x: total + x, [1, (2, 3)], 10)
    16
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not Missing.ARGUMENT:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("tree_reduce: a tree without leaves needs an initializer.")
    out: T = functools.reduce(function, leaves)
    return out


def tree_reduce_associative[T](
    operation: Callable[[T, T], T],
    tree: object,
    *,
    identity: T | Missing = Missing.ARGUMENT,
    is_leaf: IsLeaf = None,
) -> T:
    """The leaves joined in pairs, in order: the depth grows with the logarithm.

    Raises:
        TypeError: there are neither leaves nor an identity.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", ["a", ["b", "c"], "d"])
    '((ab)(cd))'
    """
    values = tree_leaves(tree, is_leaf)
    if not values:
        if identity is Missing.ARGUMENT:
            raise TypeError(
                "tree_reduce_associative: a tree without leaves needs an identity."
            )
        return identity
    while len(values) > 1:
        odd = values[len(values) & ~1 :]
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [operation(left, right) for left, right in pairs] + odd
    out: T = values[0]
    return out


def tree_transpose(
    outer_treedef: PyTreeDef,
    inner_treedef: PyTreeDef | None,
    pytree_to_transpose: object,
) -> Any:
    """A tree of trees turned inside out; without `inner_treedef` it is inferred.

    Only leaves are counted: the metadata of a node may depend on what it holds.

    Raises:
        TypeError: the tree does not have the leaves of `outer_treedef` with
            `inner_treedef` at each leaf.

    >>> tree_transpose(tree_structure([0, 0]), None, [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    if inner_treedef is None:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not subtrees:
            raise TypeError(
                "tree_transpose: there is no leaf to take the inner structure from."
            )
        inner_treedef = tree_structure(subtrees[0])
    leaves, treedef = pytrees.flatten(pytree_to_transpose)
    size = inner_treedef.num_leaves
    if len(leaves) != size * outer_treedef.num_leaves:
        raise TypeError(
            f"tree_transpose: Mismatch: the tree has the structure\n  {treedef}\nbut "
            "the outer and inner structures make\n  "
            f"{outer_treedef.compose(inner_treedef)}"
        )
    if size == 0:
        return inner_treedef.unflatten([])
    columns = (leaves[position::size] for position in range(size))
    return inner_treedef.unflatten([outer_treedef.unflatten(c) for c in columns])


def broadcast_prefix(
    prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None
) -> list[Any]:
    """The leaves of the prefix, each repeated for the full tree's leaves there.

    Raises:
        ValueError: the first tree is not a prefix of the second.

    >>> broadcast_prefix([1, 2], [{"a": 0, "b": 0}, 0])
    [1, 1, 2]
    """
    leaves, treedef = pytrees.flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except (ValueError, TypeError) as error:
        raise structure_mismatch(
            prefix_tree, full_tree, "The full tree", is_leaf
        ) from error
    return repeated(leaves, [tree_structure(subtree, is_leaf) for subtree in subtrees])


def prefix_leaves(
    what: str, prefix: object, tree: object, is_leaf: IsLeaf
) -> list[Any]:
    """One entry of the prefix for each leaf of `tree`; `what` names it in errors.

    Raises:
        ValueError: it is not a prefix.

    >>> prefix_leaves("in_axes", (0, None), (1, [2, 3]), lambda x: x is None)
    [0, None, None]
    """
    entries, outline = pytrees.flatten(prefix, is_leaf)
    try:
        parts = outline.flatten_up_to(tree)
    except (ValueError, TypeError) as error:
        rule = f"{what} specification must be a tree prefix of the corresponding value;"
        hint = "one entry may stand for a whole container"
        if type(prefix) is type(tree) is tuple and len(prefix) != len(tree):
            hint = (
                f"but its length is {len(prefix)}, not {len(tree)}: give an entry for "
                "each value, or one for all"
            )
        places = list(differences(prefix, tree, what, is_leaf))
        told = "\n".join(
            f"  * pytree structure error: {x.kind} at key path\n    {x.place}\n"
            f"    {x.detail}"
            for x in places
        )
        raise ValueError(
            f"{rule} {hint}.\nMismatch details ({len(places)} found):\n"
            f"{told or f'  {error}'}"
        ) from None
    return repeated(entries, [pytrees.flatten(part)[1] for part in parts])


def repeated(entries: Sequence[object], trees: Sequence[PyTreeDef]) -> list[Any]:
    """Each entry once for each leaf of its tree."""
    pairs = zip(entries, trees, strict=True)
    return [entry for entry, tree in pairs for _ in range(tree.num_leaves)]


def tree_broadcast(
    prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None
) -> Any:
    """The full tree's structure, filled with the leaves of a prefix of it.

    Raises:
        ValueError: the first tree is not a prefix of the second.

    >>> tree_broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
    {'a': [1, 1], 'b': 2}
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree, is_leaf).unflatten(leaves)


def path_predicate(
    is_leaf: Callable[..., bool] | None, takes_path: bool
) -> Callable[[Any, Any], bool] | None:
    """The predicate in the form of the registry, which passes path and value."""
    if is_leaf is None or takes_path:
        return is_leaf
    return lambda _, value: is_leaf(value)


def tree_flatten_with_path(
    tree: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """As `tree_flatten`, each leaf with its key path.

    >>> tree_flatten_with_path([5])[0]
    [((SequenceKey(idx=0),), 5)]
    """
    return pytrees.flatten_with_path(tree, path_predicate(is_leaf, is_leaf_takes_path))


def tree_leaves_with_path(
    tree: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with its key path.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [5]})]
    [("['a'][0]", 5)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """As `tree_map`, with the key path as the first argument of `f`.

    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": [5]})
    {'a': ["['a'][0]"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    plain = None if is_leaf_takes_path else is_leaf
    columns = flatten_all_up_to("tree_map_with_path", treedef, tree, rest, plain)
    rows = zip(pairs, *columns, strict=True)
    return treedef.unflatten([f(path, x, *others) for (path, x), *others in rows])


def simple_key(key: object) -> str:
    """A key without brackets, dots and quotes."""
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return key.name
        case _:
            return str(key)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as a string: Python code or, if `simple`, plain keys.

    >>> (path, _), = tree_leaves_with_path({"a": [5]})
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("['a'][0]", 'a/0')
    """
    return separator.join(map(simple_key if simple else str, keys))


def all_leaves(iterable: Iterable[object], is_leaf: IsLeaf = None) -> bool:
    """Whether no item is a container.

    >>> all_leaves([1, 2]), all_leaves([1, [2]]), all_leaves([1, None])
    (True, False, False)
    """
    if is_leaf is None:
        return pytrees.all_leaves(iterable)
    items = list(iterable)
    leaves = tree_leaves(items, lambda x: x is not items and is_leaf(x))
    return len(leaves) == len(items) and all(
        leaf is item for leaf, item in zip(leaves, items, strict=True)
    )


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees with these structures.

    >>> treedef_tuple([tree_structure(1), tree_structure([2])])
    PyTreeDef((*, [*]))
    """
    return pytrees.treedef_tuple(treedefs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the root's children.

    >>> treedef_children(tree_structure([1, (2,)]))
    [PyTreeDef(*), PyTreeDef((*,))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is that of a single leaf.

    >>> treedef_is_leaf(tree_structure(1)), treedef_is_leaf(tree_structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def flatten_one_level(tree: object) -> tuple[Iterable[Any], Any]:
    """The children and the metadata of the root.

    Raises:
        ValueError: the tree is a leaf.

    >>> flatten_one_level({"a": [1]})
    (([1],), ('a',))
    """
    if (level := pytrees.flatten_one_level(tree)) is None:
        raise ValueError(
            f"can't tree-flatten type {type(tree).__name__}: a leaf has no children."
        )
    return level


def flatten_one_level_with_keys(tree: object) -> tuple[Iterable[Any], Any]:
    """The children of the root, each with its key, and the metadata.

    Raises:
        ValueError: the tree is a leaf.

    >>> flatten_one_level_with_keys([5])
    (((SequenceKey(idx=0), 5),), None)
    """
    if (level := pytrees.flatten_one_level_with_keys(tree)) is None:
        raise ValueError(
            f"can't tree-flatten type {type(tree).__name__}: a leaf has no children."
        )
    return level


def is_tree_node(typ: type) -> bool:
    """Whether values of this class are nodes; namedtuples are.

    >>> is_tree_node(dict), is_tree_node(set)
    (True, False)
    """
    return pytrees.is_node(typ)


# -----------------------------------------------------------------------------
# How classes become pytree nodes.
#
# A node class is a pair of functions, to children and back; decorators only
# write that pair for the common cases.


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
            "register_dataclass: data_fields and meta_fields must both be specified "
            f"when either is specified. Got {data_fields=} {meta_fields=}."
        )
    if data_fields is not None and meta_fields is not None:
        data, meta = list(data_fields), list(meta_fields)
    elif dataclasses.is_dataclass(nodetype):
        data, meta = fields_of_dataclass(nodetype)
        data = [name for name in data if name not in drop_fields]
        meta = [name for name in meta if name not in drop_fields]
    else:
        raise TypeError(
            "register_dataclass: data_fields and meta_fields are required when "
            f"nodetype is not a dataclass. Got nodetype={nodetype}."
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

    def rebuilt(self, arrays: Sequence[object]) -> Any:
        """The user's tree, from the leaves that are arrays and come first."""
        leaves = list(arrays[: self.tree.num_leaves - len(self.others)])
        for place, other in self.others:
            leaves.insert(place, other)
        return self.tree.unflatten(leaves)


def split_leaves(
    tree: object, is_array: Callable[[object], bool]
) -> tuple[list[object], KeptLeaves]:
    """The leaves for which `is_array` holds, and the rest of the tree."""
    leaves, structure = pytrees.flatten(tree)
    others = [(i, leaf) for i, leaf in enumerate(leaves) if not is_array(leaf)]
    places = {i for i, _ in others}
    arrays = [leaf for i, leaf in enumerate(leaves) if i not in places]
    return arrays, KeptLeaves(structure, tuple(others))
