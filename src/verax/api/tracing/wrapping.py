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
from types import CodeType, NoneType
from typing import Any, Final, Protocol

from attrs import frozen

from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.records import ReprMixin

# What a function takes for these attributes; others may be anything.
TYPES: Final[dict[str, tuple[type, ...]]] = {
    "__module__": (str,),
    "__name__": (str,),
    "__qualname__": (str,),
    "__doc__": (str, NoneType),
    "__annotations__": (dict,),
    "__type_params__": (tuple,),
}


def described(fun: Callable[..., object]) -> Iterator[tuple[str, object]]:
    """The attributes by which a function is known, those of `fun` that fit."""
    for name in functools.WRAPPER_ASSIGNMENTS:
        result = getattr(fun, name, TYPES)  # TYPES itself: there is none
        if result is not TYPES and isinstance(result, TYPES.get(name, object)):
            yield name, result


def wraps[F: Callable[..., Any]](
    fun: Callable[..., object], first: str | None = None
) -> Callable[[F], F]:
    """Give a function the name, documentation and attributes of `fun`.

    Its documentation begins with what the function does with `{fun}`, if that is given.

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
        if first is not None:
            made.__doc__ = documentation(first, fun)
        vars(made)["__wrapped__"] = fun
        return made

    return decorate


def documentation(first: str, fun: Callable[..., object]) -> str:
    """What is done with a function, then the documentation of its own.

    >>> documentation("The gradient of {fun}.", lambda x: x)
    'The gradient of <lambda>.'
    """
    own = f"\n\nOriginal documentation:\n\n{fun.__doc__}" if fun.__doc__ else ""
    return first.replace("{fun}", function_name(fun)) + own


def attributes(fun: Callable[..., object]) -> dict[str, Any]:
    """The values stored on `fun` beside the attributes by which it is known."""
    own: dict[str, object] = getattr(fun, "__dict__", {})
    known = functools.WRAPPER_ASSIGNMENTS
    return {name: value for name, value in own.items() if name not in known}


def look_like(made: object, fun: Callable[..., object]) -> None:
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


class Wrapped(Protocol):
    """A function that stands for another, as `functools.wraps` makes it."""

    __wrapped__: Callable[..., object]


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

    def __get__(self, made: Wrapped | None, owner: type) -> inspect.Signature:
        if made is None:
            raise AttributeError("__signature__")
        return inspect.signature(made.__wrapped__)


# -----------------------------------------------------------------------------
# What messages call an argument: the name of its parameter.
#
# Names come from the signature, which is read only for a message::
#
#     def model(w, *rest, **more): ...
#
#     names = ParameterNames(model)
#     names.label(0), names.label(2)      # "argument w", "argument rest[1]"
#     names.keyword_label("scale")        # "keyword argument scale", which `more` takes


CALL: Final = "__call__"
type Describe = Callable[[], Sequence[str]]

BY_POSITION = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


@frozen(repr=False)
class Callee(ReprMixin):
    """The remains of a function in a program: its name and those of its arguments.

    `parameters` are those of the positional arguments, as far as they have one.
    """

    __name__: str
    parameters: tuple[str | None, ...]


class ParameterNames:
    """The names of a function's arguments, as far as it has a signature."""

    def __init__(self, fun: object) -> None:
        self.names: Sequence[str | None]
        if isinstance(fun, Callee):
            self.names, self.keywords, self.rest = fun.parameters, set[str](), None
            return
        parameters = parameters_of(fun)
        self.names = [p.name for p in parameters if p.kind in BY_POSITION]
        self.keywords = {
            p.name
            for p in parameters
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
        rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
        self.rest = rest[0] if rest else None

    def name(self, i: int) -> str | None:
        """The name of positional argument `i`, `x` or `args[2]`, if it has one."""
        if i < len(self.names):
            return self.names[i]
        return None if self.rest is None else f"{self.rest}[{i - len(self.names)}]"

    def positional(self, i: int) -> str:
        """`x`, `args[2]`, or `argument 2` without a name."""
        return self.name(i) or f"argument {i}"

    def label(self, i: int) -> str:
        """`argument x`, `argument args[2]` or `argument 2`."""
        return f"argument {self.name(i) or i}"

    def keyword_label(self, name: str) -> str:
        """`argument y`, or `keyword argument y` if no parameter has this name."""
        kind = "argument" if name in self.keywords else "keyword argument"
        return f"{kind} {name}"


def parameters_of(fun: object) -> list[inspect.Parameter]:
    """The parameters of a function; none if it does not say what it takes."""
    if not callable(fun):
        return []
    try:
        return list(inspect.signature(fun).parameters.values())
    except Exception:  # a user's class may compute its signature: no second error
        return []


def function_name(fun: object) -> str:
    """The user's name of a callable, through partial and wrapped ones.

    A string is such a name.
    """
    if isinstance(fun, str):
        return fun
    name = getattr(fun, "__name__", None)
    if isinstance(name, str):
        return name
    inner = getattr(fun, "func", None)
    return function_name(inner) if inner is not None else type(fun).__name__


def short_name(described: str) -> str:
    """The name in `argument x of f`."""
    return described.removeprefix("argument ").rsplit(" of ", 1)[0]


def codes(fun: object) -> tuple[CodeType, ...]:
    """The code of a callable, and of those that it wraps, the user's own last."""
    out: list[CodeType] = []
    seen: set[int] = set()
    while fun is not None and id(fun) not in seen:
        seen.add(id(fun))
        if isinstance(code := getattr(fun, "__code__", None), CodeType):
            out.append(code)
        wrapped = getattr(fun, "__wrapped__", None) or getattr(fun, "func", None)
        if wrapped is None and not out:
            method = getattr(type(fun), CALL, None)  # of a callable object
            wrapped = method if hasattr(method, "__code__") else None
        fun = wrapped
    return tuple(out)


def stands_for(inner: Callable[..., object], fun: Callable[..., object]) -> None:
    """Give `inner`, made around the user's `fun`, its name and line in messages."""
    inner.__name__ = function_name(fun)
    inner.__dict__["func"] = fun


def name_and_line(fun: object, place: str = " ({})") -> str:
    """A function and where the user wrote it: `step (train.py:12)`."""
    name = function_name(fun)
    out = codes(fun)
    if not out:
        return name
    line = f"{out[-1].co_filename}:{out[-1].co_firstlineno}"
    return f"{name}{place.format(line)}"


def callee_of(fun: object, count: int, static: Sequence[int]) -> Callee:
    """The names of a function and of `count` positional arguments without `static`."""
    names = ParameterNames(fun)
    kept = [names.name(i) for i in range(count) if i not in static]
    return Callee(function_name(fun), tuple(kept))


def describe_arguments(
    fun: object,
    tree: PyTreeDef,
    static: Sequence[int] = (),
    places: Sequence[int] | None = None,
) -> Describe:
    """The names of leaves in messages: `argument x['w'] of f`.

    They are worked out only when needed. `static` are the positions of arguments that
    are not in the tree, in ascending order; or else `places` are the positions of those
    that are.
    """

    def describe() -> Sequence[str]:
        names, who = ParameterNames(fun), function_name(fun)
        out = []
        for path in leaf_paths(tree):
            kind, which, *rest = path
            inner = "".join(map(str, rest))
            if getattr(kind, "idx", 0) == 0:
                number = getattr(which, "idx", which)
                label = names.label(position(number, static, places))
            else:
                label = names.keyword_label(str(getattr(which, "key", which)))
            out.append(f"{label}{inner} of {who}")
        return out

    return describe


def position(number: int, static: Sequence[int], places: Sequence[int] | None) -> int:
    """The position in the signature of the argument of this number in the tree."""
    if places is not None:
        return places[number]
    for taken in static:
        number += taken <= number
    return number


def describe_leaves(name: str, tree: PyTreeDef) -> Describe:
    """The names in messages of the leaves of the one tree of `name`: `leaf ['w']`."""

    def describe() -> Sequence[str]:
        paths = leaf_paths(tree)
        return [f"{name}, leaf {''.join(map(str, p))}" if p else name for p in paths]

    return describe


def leaf_paths(tree: PyTreeDef) -> list[Sequence[Any]]:
    """The key path of each leaf."""
    filled = tree.unflatten(range(tree.num_leaves))
    return [path for path, _ in pytrees.flatten_with_path(filled)[0]]
