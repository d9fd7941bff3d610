"""Floor 5: objects that stand for functions look like them.

One idea: as `functools.update_wrapper`, except that attributes of the function never
shadow what the object itself can do::

    look_like(made, fun)
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any


def look_like(made: Any, fun: Callable[..., Any]) -> None:
    """Give `made` the name, documentation and attributes of `fun`.

    >>> class Wrapper:
    ...     def trace(self): return "traced"
    >>> def f(): "Documented."
    >>> f.trace, f.note = "mine", "mine too"
    >>> made = Wrapper()
    >>> look_like(made, f)
    >>> made.__doc__, made.trace(), made.note
    ('Documented.', 'traced', 'mine too')
    """
    cls, own = type(made), getattr(fun, "__dict__", {})
    vars(made).update({name: x for name, x in own.items() if not hasattr(cls, name)})
    functools.update_wrapper(made, fun, updated=())


class WrappedSignature:
    """The attribute `__signature__` of objects that stand for a function.

    A class has none: `inspect` reads the one of its constructor.

    >>> class Wrapper:
    ...     __signature__ = WrappedSignature()
    ...     def __init__(self, fun): self.__wrapped__ = fun
    ...     def __call__(self, *args): return self.__wrapped__(*args)
    >>> inspect.signature(Wrapper(lambda x, y=2: x), follow_wrapped=False)
    <Signature (x, y=2)>
    >>> inspect.signature(Wrapper)
    <Signature (fun)>
    """

    def __get__(self, made: Any, owner: type) -> inspect.Signature:
        if made is None:
            raise AttributeError("__signature__")
        return inspect.signature(made.__wrapped__)
