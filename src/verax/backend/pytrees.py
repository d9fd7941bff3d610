"""verax's own registry of pytrees, on jaxlib's C++ implementation (floor 4).

One idea: jaxlib's default registry belongs to every library of the process, so verax
makes two of its own: one in which None is an empty node, one in which it is a leaf.
Each is complete when it is made; `BUILTIN_NODES` are what it holds besides jaxlib's.

    >>> from verax.backend import pytrees
    >>> leaves, treedef = pytrees.flatten({"b": [1, None], "a": (2,)})
    >>> leaves, treedef
    ([2, 1], PyTreeDef({'a': (*,), 'b': [*, None]}))
"""

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

import numpy as np
from attrs import frozen
from jaxlib._jax import pytree
from jaxlib._jax.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    PyTreeRegistry,
    SequenceKey,
)

from verax.ir.dtypes import float0
from verax.ir.memos import holds
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Linear, Zero
from verax.rules.values.reference import RefView

type Children = tuple[Iterable[Any], Any]
type KeyChildren = tuple[Iterable[tuple[Any, Any]], Any]


@frozen(repr=False)
class NodeType(ReprMixin):
    """The functions that take values of one class apart and build them."""

    node_type: type
    flatten: Callable[[Any], Children]
    unflatten: Callable[[Any, Any], Any]
    flatten_with_keys: Callable[[Any], KeyChildren]


def keyed(
    tree: dict[object, object], keys: Iterable[object]
) -> tuple[tuple[DictKey, object], ...]:
    """The items of a mapping, in the order of `keys`, with their path keys."""
    return tuple((DictKey(key), tree[key]) for key in keys)


@frozen(eq=False)
class Opaque:
    """A callable whose own arguments `functools.partial` must not merge.

    It equals the callable, so that structures with the same one are equal.
    """

    function: Callable[..., object]

    def __eq__(self, other: object) -> bool:
        function = other.function if isinstance(other, Opaque) else other
        return bool(self.function == function)

    def __hash__(self) -> int:
        return hash(self.function)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        """As the function prints itself."""
        return repr(self.function)


class Partial(functools.partial[Any]):
    """`functools.partial` as a pytree: the arguments are leaves, the function is not.

    >>> add = Partial(lambda x, y: x + y, 1)
    >>> add(2), add.args
    (3, (1,))
    """

    __module__ = "verax.tree_util"

    def __new__(
        cls, func: Callable[..., object], /, *args: object, **kwargs: object
    ) -> Any:
        """A partial of a partial stays nested: no function becomes a leaf."""
        if isinstance(func, functools.partial):
            func = Opaque(func)
        return super().__new__(cls, func, *args, **kwargs)


def typed_key(x: Zero | Linear) -> KeyChildren:
    """The children by key, none, and the type."""
    return (), x.aval


def part_keys(part: RefView) -> KeyChildren:
    """What a part of a reference is of, and its indices, by key."""
    (parent, *values), frame = part.split()
    indices = [(SequenceKey(i), x) for i, x in enumerate(values)]
    return ((GetAttrKey("parent"), parent), *indices), frame


BUILTIN_NODES: Final = (
    NodeType(
        OrderedDict,
        lambda tree: (tuple(tree.values()), tuple(tree)),
        lambda keys, values: OrderedDict(zip(keys, values, strict=True)),
        lambda tree: (keyed(tree, tree), tuple(tree)),
    ),
    NodeType(
        defaultdict,
        lambda tree: (
            tuple(tree[key] for key in sorted(tree)),
            (tree.default_factory, tuple(sorted(tree))),
        ),
        lambda data, values: defaultdict(data[0], zip(data[1], values, strict=True)),
        lambda tree: (
            keyed(tree, sorted(tree)),
            (tree.default_factory, tuple(sorted(tree))),
        ),
    ),
    NodeType(
        Partial,
        lambda partial: ((partial.args, partial.keywords), partial.func),
        lambda function, children: Partial(function, *children[0], **children[1]),
        lambda partial: (
            (
                (GetAttrKey("args"), partial.args),
                (GetAttrKey("keywords"), partial.keywords),
            ),
            partial.func,
        ),
    ),
    # What rules return beside arrays has types, and no values: nodes without leaves.
    NodeType(Zero, lambda x: ((), x.aval), lambda aval, _: Zero(aval), typed_key),
    NodeType(Linear, lambda x: ((), x.aval), lambda aval, _: Linear(aval), typed_key),
    NodeType(RefView, RefView.split, RefView.join, part_keys),
)


__all__ = [
    "NONE_LEAF_REGISTRY",
    "REGISTRY",
    "Children",
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyChildren",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "PyTreeRegistry",
    "SequenceKey",
    "all_leaves",
    "flatten",
    "flatten_none_leaf",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "flatten_with_path",
    "is_node",
    "node_of",
    "register_dataclass_node",
    "register_node",
    "tree_holds",
    "treedef_tuple",
    "unflatten",
]

type KeyPath = tuple[Any, ...]
type IsLeaf = Callable[[Any], bool] | None


def named_registry(name: str, *, none_is_node: bool) -> PyTreeRegistry:
    """A registry that knows its own module and name, by which treedefs are pickled."""
    registry = PyTreeRegistry(
        enable_none=none_is_node,
        enable_tuple=True,
        enable_namedtuple=True,
        enable_list=True,
        enable_dict=True,
    )
    registry.__module__ = __name__
    registry.__name__ = name
    for node in BUILTIN_NODES:
        registry.register_node(
            node.node_type, node.flatten, node.unflatten, node.flatten_with_keys
        )
    return registry


REGISTRY: Final = named_registry("REGISTRY", none_is_node=True)
NONE_LEAF_REGISTRY: Final = named_registry("NONE_LEAF_REGISTRY", none_is_node=False)


def node_of(kind: type, data: object, children: Sequence[PyTreeDef]) -> PyTreeDef:
    """The structure of a node of a registered class.

    jaxlib makes what looks like a namedtuple one, however it is registered; a pickled
    structure says what its nodes are, so this is written as one.
    """
    out = PyTreeDef.from_node_data_and_children(REGISTRY, (kind, data), children)
    if out.node_data() == (kind, data):
        return out
    (code, *_) = flatten(Partial(len))[1].__getstate__()[1][-1]
    nodes = [node for child in children for node in child.__getstate__()[1]]
    leaves = sum([child.num_leaves for child in children])
    nodes.append((code, len(children), data, kind, leaves, len(nodes) + 1))
    made = PyTreeDef.__new__(PyTreeDef)
    made.__setstate__((REGISTRY, nodes))
    return made


def tree_holds(tree: PyTreeDef) -> bool:
    """Whether a structure has data of the user's that a memo must not keep alive."""
    trees = [tree]  # a function that calls itself ends where containers are deep
    while trees:
        each = trees.pop()
        node = each.node_data()
        if node is None:
            continue
        kind, data = node
        if any(map(data_holds, data if kind is dict else (data,))):
            return True
        trees += each.children()
    return False


def data_holds(data: object) -> bool:
    """As `holds`, and within lists: libraries keep the paths of a node in them."""
    if isinstance(data, list | tuple):
        return any(map(data_holds, data))
    return holds(data)


def advise(error: Exception) -> NoReturn:
    """Raise the failure of a flattening, with advice where jaxlib gives none."""
    if isinstance(error, SystemError):
        raise RecursionError(
            "The pytree is nested too deeply to flatten, or contains itself."
        ) from error
    if "Comparator raised" in str(error):
        raise ValueError(
            "Comparator raised exception while sorting pytree dictionary keys: they "
            "cannot be sorted, because they have different types. Use keys of one "
            "type, or an OrderedDict, which keeps the order in which they were "
            "inserted."
        ) from error
    raise error


def flatten(tree: object, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves, in a fixed order, and the structure without them.

    Raises:
        ValueError: the keys of a dict cannot be sorted.
        RecursionError: the tree is too deep, or contains itself.

    >>> flatten([1, (2, None)])
    ([1, 2], PyTreeDef([*, (*, None)]))
    """
    try:
        return REGISTRY.flatten(tree, is_leaf)
    except (ValueError, SystemError) as error:
        advise(error)


def flatten_none_leaf(
    tree: object, is_leaf: IsLeaf = None
) -> tuple[list[object], PyTreeDef]:
    """As `flatten`, with None as a leaf; the structures of the two do not mix.

    >>> flatten_none_leaf([1, (2, None)])[0]
    [1, 2, None]
    """
    try:
        return NONE_LEAF_REGISTRY.flatten(tree, is_leaf)
    except (ValueError, SystemError) as error:
        advise(error)


def flatten_with_path(
    tree: object, is_leaf: Callable[[Any, Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """As `flatten`, each leaf with its key path; `is_leaf` takes path and value.

    >>> flatten_with_path({"a": 1})[0]
    [((DictKey(key='a'),), 1)]
    """
    try:
        return REGISTRY.flatten_with_path(tree, is_leaf)
    except (ValueError, SystemError) as error:
        advise(error)


def unflatten(treedef: PyTreeDef, leaves: Iterable[object]) -> Any:
    """The tree with this structure and these leaves.

    >>> unflatten(flatten({"a": 1, "b": 2})[1], [3, 4])
    {'a': 3, 'b': 4}
    """
    return treedef.unflatten(leaves)


def flatten_one_level(tree: object) -> tuple[Iterable[Any], Any] | None:
    """Children and metadata of the root, None if the tree is a leaf.

    >>> flatten_one_level([1, [2]])
    ([1, [2]], None)
    """
    return REGISTRY.flatten_one_level(tree)


def flatten_one_level_with_keys(
    tree: object,
) -> tuple[Iterable[tuple[Any, Any]], Any] | None:
    """As `flatten_one_level`, each child with its key."""
    return REGISTRY.flatten_one_level_with_keys(tree)


def is_node(node_type: type) -> bool:
    """Whether values of exactly this type are nodes; namedtuples always are.

    >>> is_node(list), is_node(set)
    (True, False)
    """
    return REGISTRY.is_node(node_type)


def all_leaves(values: Iterable[object]) -> bool:
    """Whether every value is a leaf.

    >>> all_leaves([1, "a"]), all_leaves([1, []])
    (True, False)
    """
    return pytree.all_leaves(REGISTRY, values)


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose items have these structures.

    >>> treedef_tuple([flatten(1)[1], flatten([2])[1]])
    PyTreeDef((*, [*]))
    """
    return pytree.treedef_tuple(REGISTRY, list(treedefs))


def register(node_type: type, add: Callable[[PyTreeRegistry], None]) -> None:
    """Add a class to both registries, in which a class has one meaning.

    A namedtuple is a node as such until it is added; then what was registered holds.
    """
    if not isinstance(node_type, type):
        raise TypeError(f"A pytree node type must be a class, got {node_type!r}.")
    try:
        add(REGISTRY)
    except ValueError as error:
        if "Duplicate" not in str(error):
            raise
        raise ValueError(
            f"The class {node_type.__qualname__!r} is already a pytree node: it can be "
            "registered only once, and the built-in containers not at all."
        ) from error
    add(NONE_LEAF_REGISTRY)


def register_node[T](
    node_type: type[T],
    to_iterable: Callable[[T], Children],
    from_iterable: Callable[[Any, Any], T],
    to_iterable_with_keys: Callable[[T], KeyChildren] | None = None,
) -> None:
    """Make a class a node of both registries.

    Raises:
        ValueError: the class is registered already.
    """
    register(
        node_type,
        lambda registry: registry.register_node(
            node_type, to_iterable, from_iterable, to_iterable_with_keys
        ),
    )


def register_dataclass_node(
    node_type: type, data_fields: Sequence[str], meta_fields: Sequence[str]
) -> None:
    """Make a class a node that is taken apart by attributes and built by keywords.

    Raises:
        ValueError: the class is registered already.
    """
    data, meta = list(data_fields), list(meta_fields)
    register(
        node_type,
        lambda registry: registry.register_dataclass_node(node_type, data, meta),
    )


# -----------------------------------------------------------------------------
# The results of a program as the tree that the user's function returned.
#
# An array of float0, the dtype of tangents of integers, has one value for each
# shape; so users get NumPy zeros for it, from a trace too, and the device, which has
# booleans instead, is never asked::
#
#     result_tree(out_tree, outs)


def result_tree(tree: PyTreeDef, arrays: Iterable[Any]) -> Any:
    """The tree with these leaves, those of float0 in NumPy."""
    return tree.unflatten(
        [np.zeros(x.shape, float0) if x.dtype is float0 else x for x in arrays]
    )
