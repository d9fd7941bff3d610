"""Floor 5: what stands for a function looks like it.

One idea: as `functools.wraps`, for whatever can be called. A callable object may have
attributes of any kind under the names that functions have; those are left out::

    @wraps(fun)
    def made(*args): ...

    look_like(made, fun)                  # an object in place of a function
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, Final

# What a function takes for these attributes; others may be anything.
TYPES: Final[dict[str, tuple[type, ...]]] = {
    "__module__": (str,),
    "__name__": (str,),
    "__qualname__": (str,),
    "__doc__": (str, NoneType),
    "__annotations__": (dict,),
    "__type_params__": (tuple,),
}


def described(fun: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The attributes by which a function is known, those of `fun` that fit."""
    for name in functools.WRAPPER_ASSIGNMENTS:
        found = getattr(fun, name, TYPES)  # TYPES itself: there is none
        if found is not TYPES and isinstance(found, TYPES.get(name, object)):
            yield name, found


def wraps[F: Callable[..., Any]](fun: Callable[..., Any]) -> Callable[[F], F]:
    """Give a function the name, documentation and attributes of `fun`.

    >>> class Model:
    ...     def __call__(self): return 1
    >>> model = Model()
    >>> model.__name__, model.note = None, "mine"
    >>> @wraps(model)
    ... def call(): return model()
    >>> call.__name__, call.note, call.__wrapped__ is model
    ('call', 'mine', True)
    """

    def decorate(made: F) -> F:
        vars(made).update(attributes(fun))
        for name, value in described(fun):
            setattr(made, name, value)
        vars(made)["__wrapped__"] = fun
        return made

    return decorate


def attributes(fun: Callable[..., Any]) -> dict[str, Any]:
    """What is stored on `fun` beside the attributes by which it is known."""
    own: dict[str, Any] = getattr(fun, "__dict__", {})
    known = functools.WRAPPER_ASSIGNMENTS
    return {name: value for name, value in own.items() if name not in known}


def look_like(made: Any, fun: Callable[..., Any]) -> None:
    """Do it to an object; attributes of `fun` never shadow what it can do itself.

    >>> class Wrapper:
    ...     def trace(self): return "traced"
    >>> def f(): "Documented."
    >>> f.trace, f.note = "mine", "mine too"
    >>> made = Wrapper()
    >>> look_like(made, f)
    >>> made.__doc__, made.trace(), made.note
    ('Documented.', 'traced', 'mine too')
    """
    cls, own = type(made), attributes(fun)
    vars(made).update({name: x for name, x in own.items() if not hasattr(cls, name)})
    vars(made).update(described(fun))
    vars(made)["__wrapped__"] = fun


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
