"""Floor 5: what stands for a function looks like it.

One idea: as `functools.wraps`, for whatever can be called. A callable object may have
attributes of any kind under the names that functions have; those are left out::

    @wraps(fun)
    def made(*args): ...

    look_like(made, fun)                  # an object in place of a function
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import NoneType
from typing import Any, ClassVar, Final

from attrs import frozen

from verax.ir.jaxpr import Params, Primitive
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Scope, Staged
from verax.rules.values.array import Array
from verax.rules.values.state import STATE, Interpreter, interpreting

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


# -----------------------------------------------------------------------------
# Computing within a trace: what is known now, apart from what is not.
#
# An operation on values alone is computed; one with a tracer among its operands belongs
# to the trace around::
#
#     with interpreting(CompileTime(STATE.eager, STATE.interpreter)):
#         scale = float(numpy.sum(numpy.arange(3)))    # a number
#         y = x + scale                                # an equation of the trace of x


@frozen(eq=False, repr=False)
class CompileTime(ReprMixin):
    """The interpreter of `ensure_compile_time_eval`."""

    immediate: ClassVar[bool] = True

    eager: Interpreter
    outer: Interpreter

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results of `primitive`, computed or written into the trace around."""
        if not has_tracers(args):
            return self.eager.bind(primitive, params, args)
        with interpreting(self.outer):
            return self.outer.bind(primitive, params, args)


def has_tracers(values: Sequence[object]) -> bool:
    """Whether one of the values is a tracer."""
    return any([isinstance(x, Staged) for x in values])


def trace_around(
    values: Sequence[object], captured: Callable[[], Sequence[object]]
) -> Interpreter | None:
    """The interpreter of the trace around a compile-time block, for calls that need it.

    They pass tracers, or the function that they call has `captured` some.
    """
    interpreter = STATE.interpreter
    if not isinstance(interpreter, CompileTime):
        return None
    return interpreter.outer if has_tracers(values) or captured() else None


def enclosing_scope() -> Scope | None:
    """The innermost trace, also one around a compile-time block."""
    interpreter = STATE.interpreter
    if isinstance(interpreter, CompileTime):
        interpreter = interpreter.outer
    return interpreter if isinstance(interpreter, Scope) else None
