"""Floor 5: structures of pytrees as JSON, for files that leave the process.

One idea: built-in containers have one form each, and a user's class has a name and a
way to write its metadata, registered once::

    register_pytree_node_serialization(Point, serialized_name="app.Point", ...)
    read_tree(write_tree(tree)) == tree
"""

import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import frozen

from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.locks import new_lock
from verax.ir.records import ReprMixin

type Json = bool | int | float | str | list["Json"] | dict[str, Json] | None
KEYED: Final[dict[type, str]] = {dict: "dict", OrderedDict: "OrderedDict"}
PLAIN: Final[dict[type, str]] = {type(None): "None", tuple: "tuple", list: "list"}
BUILTINS: Final[dict[str, type]] = {
    name: kind for kind, name in (*KEYED.items(), *PLAIN.items())
}
KEYS: Final = (str, int, bool, float)
LEAF: Final = pytrees.flatten(0)[1]


@frozen(repr=False)
class NodeFormat(ReprMixin):
    """The written form of a class's nodes; a namedtuple has no metadata to write."""

    nodetype: type
    name: str
    write: Callable[[object], bytes] | None
    read: Callable[[bytes], object] | None
    from_children: Callable[[object, Sequence[object]], object] | None = None


class NodeFormats:
    """The formats that users have registered, by class and by name."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.by_type: dict[type, NodeFormat] = {}
        self.by_name: dict[str, NodeFormat] = {}

    def add(self, node: NodeFormat) -> None:
        """Keep a format; a class and a name have one each.

        Raises:
            ValueError: the class or the name has a format already.
        """
        with self.lock:
            if node.nodetype in self.by_type:
                raise ValueError(
                    f"the class {node.nodetype.__qualname__!r} already has a "
                    "serialised form: register it only once"
                )
            if node.name in self.by_name:
                other = self.by_name[node.name].nodetype.__qualname__
                raise ValueError(
                    f"the name {node.name!r} belongs to the class {other!r}; give "
                    f"{node.nodetype.__qualname__!r} another serialized_name"
                )
            self.by_type[node.nodetype] = self.by_name[node.name] = node


FORMATS: Final = NodeFormats()


def register_pytree_node_serialization[T](
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], object],
    from_children: Callable[[Any, Sequence[Any]], T] | None = None,
) -> type[T]:
    """Let exported functions take and return a class of pytree nodes.

    The metadata of a node is written by `serialize_auxdata`. `serialized_name` stands
    for the class in files: choose a name that will not change. `from_children` builds a
    node from metadata and children; without it the registered unflattening does.

    Raises:
        ValueError: the class is not a pytree node, or it or the name is registered.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> from verax.tree_util import register_pytree_node
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, c: Pair(*c))
    >>> Pair is register_pytree_node_serialization(
    ...     Pair,
    ...     serialized_name="example.Pair",
    ...     serialize_auxdata=lambda aux: b"",
    ...     deserialize_auxdata=lambda data: None,
    ... )
    True
    """
    if not pytrees.is_node(nodetype):
        raise ValueError(
            f"{nodetype!r} is not a pytree node: register it with "
            "verax.tree_util.register_pytree_node first"
        )
    FORMATS.add(
        NodeFormat(
            nodetype,
            checked_name(serialized_name),
            serialize_auxdata,
            deserialize_auxdata,
            from_children,
        )
    )
    return nodetype


def register_namedtuple_serialization[T](
    nodetype: type[T], *, serialized_name: str
) -> type[T]:
    """Let exported functions take and return a class of namedtuples.

    Raises:
        ValueError: the class is not a namedtuple, or it or the name is registered.

    >>> from collections import namedtuple
    >>> Move = namedtuple("Move", "x y")
    >>> register_namedtuple_serialization(Move, serialized_name="example.Move")
    <class '...Move'>
    """
    if not is_namedtuple(nodetype):
        raise ValueError(f"{nodetype!r} is not a namedtuple class")
    FORMATS.add(NodeFormat(nodetype, checked_name(serialized_name), None, None))
    return nodetype


def checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"serialized_name must be a string, not {name!r}")
    return name


def is_namedtuple(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_make")


def write_tree(tree: PyTreeDef) -> Json:
    """The structure as JSON.

    Raises:
        TypeError: it holds a class without a serialised form, or a key without one.
    """
    node = tree.node_data()
    if node is None:
        return "*"
    kind, data = node
    children: list[Json] = [write_tree(child) for child in tree.children()]
    if kind in PLAIN:
        return [PLAIN[kind], None, children]
    if kind in KEYED:
        return [KEYED[kind], [checked_key(key) for key in data], children]
    known = FORMATS.by_type.get(kind)
    if known is None:
        raise TypeError(without_form(kind, data))
    if known.write is None:
        if data is not None:
            raise TypeError(
                f"the namedtuple {kind.__qualname__!r} is registered as a node of its "
                "own, with metadata: give it a serialised form with verax.export."
                "register_pytree_node_serialization"
            )
        return [f":{known.name}", None, children]
    written = known.write(data)
    if not isinstance(written, bytes | bytearray):
        raise TypeError(
            f"serialize_auxdata of {kind.__qualname__!r} must return bytes, not "
            f"{type(written).__name__}"
        )
    return [f":{known.name}", base64.b64encode(written).decode(), children]


def without_form(kind: type, data: object) -> str:
    """Advice about a class without a serialised form."""
    if is_namedtuple(kind) and data is None:
        call = "register_namedtuple_serialization"
    else:
        call = "register_pytree_node_serialization"
    return (
        f"arguments or results contain the class {kind.__qualname__!r}, which has no "
        f"serialised form: give it one with verax.export.{call}"
    )


def checked_key(key: object) -> Json:
    """A key of a dict that JSON returns as it was."""
    if key is None or (isinstance(key, str | int | float) and type(key) in KEYS):
        return key
    raise TypeError(
        f"the key {key!r} of a dict cannot be serialised: only strings and numbers can"
    )


def read_tree(data: object) -> PyTreeDef:
    """The structure that `write_tree` wrote.

    Raises:
        ValueError: it is no such structure, or names a class unknown here.
    """
    if data == "*":
        return LEAF
    if not isinstance(data, list) or [*map(type, data[::2])] != [str, list]:
        raise ValueError(f"not the structure of a pytree: {data!r:.80}")
    name, metadata, inner = data
    children = [read_tree(child) for child in inner]
    if name in BUILTINS:
        return builtin_tree(BUILTINS[name], metadata, children)
    if not name.startswith(":"):
        raise ValueError(f"not the structure of a pytree: {data!r:.80}")
    known = FORMATS.by_name.get(name[1:])
    if known is None:
        raise ValueError(
            f"the file contains nodes called {name[1:]!r}, which this process does not "
            "know: register the class with the same serialized_name first"
        )
    return custom_tree(known, metadata, children)


def builtin_tree(kind: type, keys: object, children: list[PyTreeDef]) -> PyTreeDef:
    """The structure of a built-in container; for PyTreeDef, wrong keys are no error.

    Raises:
        ValueError: there is no container of the class with these keys and children.
    """
    fits = keys is None and (kind is not type(None) or not children)
    if kind in KEYED:
        fits = False
        if isinstance(keys, list) and len(keys) == len(children):
            keys = keys if kind is dict else tuple(keys)
            fits = keys_in_order(kind, keys)
    if not fits:
        raise ValueError(
            f"not the structure of a pytree: a {kind.__name__} with {len(children)} "
            f"entries and the keys {keys!r:.80}"
        )
    return PyTreeDef.from_node_data_and_children(
        pytrees.REGISTRY, (kind, keys), children
    )


def keys_in_order(kind: type, keys: Sequence[object]) -> bool:
    """Whether a dict of this class has just these keys, in this order."""
    try:
        one = kind(dict.fromkeys(map(checked_key, keys), 0))
        return pytrees.flatten(one)[1].node_data() == (kind, keys)
    except (TypeError, ValueError):
        return False


def custom_tree(
    node: NodeFormat, metadata: str | None, children: list[PyTreeDef]
) -> PyTreeDef:
    """The structure of a node of the user's class."""
    data = None
    if node.read is not None:
        data = node.read(base64.b64decode(metadata or ""))
    elif metadata is not None or len(children) != len(
        getattr(node.nodetype, "_fields", ())
    ):
        raise ValueError(
            f"{len(children)} entries do not make the namedtuple "
            f"{node.nodetype.__qualname__!r}"
        )
    if node.from_children is None:
        if node.read is None:
            return PyTreeDef.from_node_data_and_children(
                pytrees.REGISTRY, (node.nodetype, data), children
            )
        return pytrees.node_of(node.nodetype, data, children)
    filled = [child.unflatten([0] * child.num_leaves) for child in children]
    return pytrees.flatten(node.from_children(data, filled))[1]
