"""Classes of JAX's that are none here: objects are told from others by a test.

Libraries ask `isinstance(x, JVPTracer)`; verax has one class of tracers, and knows the
answer otherwise::

    BatchTracer = stand_in("BatchTracer", is_mapped, "the tracers of jax.vmap")
"""

from collections.abc import Callable
from typing import NoReturn


class Tested(type):
    """The type of such classes."""

    test: Callable[[object], bool]
    what: str

    def __instancecheck__(cls, x: object) -> bool:
        return cls.test(x)

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"verax makes {cls.what} itself")


def stand_in(name: str, test: Callable[[object], bool], what: str) -> type:
    """A class whose instances are what passes the test; none can be made."""
    told = {"test": staticmethod(test), "what": what}
    return Tested(name, (), {"__doc__": f"Stands for {what}."} | told)
