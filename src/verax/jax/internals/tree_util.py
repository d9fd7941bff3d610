"""`jax._src.tree_util`: which classes are pytree nodes.

The registry is jaxlib's, which can be asked about a class, but not listed::

    list in _registry    # True
"""

from verax.backend.pytrees import is_node


class Registry:
    """The classes that are nodes; a namedtuple is one as a tuple, not by its class."""

    __slots__ = ()

    def __contains__(self, kind: type) -> bool:
        return is_node(kind) and not is_namedtuple(kind)


def is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


_registry = Registry()
