"""`jax.interpreters.xla` and `pxla`: what is left of them, as older programs use it.

In the tables, libraries say that a class of theirs is to be taken as an array. verax
takes what says that it is one of NumPy's arrays as it is, so an entry that says the
same changes nothing; any other entry is refused, since it would change nothing either.
"""

from typing import Any, Final, Protocol

import numpy as np

from verax.sharding import get_mesh


class Handlers(dict[type, Any]):
    """Entries that say: as NumPy's arrays."""

    def __init__(self) -> None:
        super().__init__({np.ndarray: np.asarray})

    def __setitem__(self, kind: type, handler: object) -> None:
        if handler is not self[np.ndarray]:
            raise NotImplementedError(
                f"verax cannot be told how to take {kind!r} as an array; give the "
                "class a method __jax_array__"
            )
        super().__setitem__(kind, handler)


class Environment:
    """The mesh of this thread, as older libraries read it."""

    @property
    def physical_mesh(self) -> Any:
        return get_mesh()


class Resources:
    """What this thread has: its environment."""

    env: Final = Environment()


thread_resources: Final = Resources()


canonicalize_dtype_handlers = Handlers()
pytype_aval_mappings = Handlers()
global_result_handlers = Handlers()
shard_arg_handlers = Handlers()


class Bound(Protocol):
    """A primitive, as programs make them with `Primitive`."""

    def bind(self, *args: object, **params: object) -> object:
        """The results of an equation."""
        ...


def apply_primitive(primitive: Bound, *args: object, **params: object) -> object:
    """Compile the lowering of a primitive and run it."""
    return primitive.bind(*args, **params)


apply_primitive.compiles_the_lowering = True  # type: ignore[attr-defined]  # a mark
