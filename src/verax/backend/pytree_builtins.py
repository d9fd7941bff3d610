"""The classes that are pytree nodes from the beginning, besides jaxlib's (floor 4).

One idea: a registry is complete when it is made, so that importing registers nothing;
each class is a record of its functions.

    >>> from verax.backend.pytree_builtins import BUILTIN_NODES
    >>> [node.node_type.__name__ for node in BUILTIN_NODES]
    ['OrderedDict', 'defaultdict', 'Partial']
"""

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

from attrs import frozen
from jaxlib._jax.pytree import DictKey, GetAttrKey

type Children = tuple[Iterable[Any], Any]
type KeyChildren = tuple[Iterable[tuple[Any, Any]], Any]


@frozen
class NodeType:
    """How the values of one class are taken apart and built."""

    node_type: type
    flatten: Callable[[Any], Children]
    unflatten: Callable[[Any, Any], Any]
    flatten_with_keys: Callable[[Any], KeyChildren]


def keyed(tree: dict[Any, Any], keys: Iterable[Any]) -> tuple[tuple[DictKey, Any], ...]:
    """The items of a mapping, in the order of `keys`, with their path keys."""
    return tuple((DictKey(key), tree[key]) for key in keys)


@frozen
class Opaque:
    """A callable whose own arguments `functools.partial` shall not merge."""

    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """A partial of a partial stays nested: what was no leaf does not become one."""
        if isinstance(func, functools.partial):
            func = Opaque(func)
        return super().__new__(cls, func, *args, **kwargs)


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
)
