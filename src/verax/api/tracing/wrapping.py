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
from typing import Any, ClassVar, Final, cast

import numpy as np
from attrs import frozen

from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray, fresh
from verax.backend.eager.interpreter import eager_interpreter
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Params, Primitive, Source
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret
from verax.rules.rows.builder import Builder, Scope, Staged
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.state import (
    STATE,
    ElementError,
    Interpreter,
    current_context,
    interpreting,
)
from verax.transforms.engine.engine import STANDARD
from verax.transforms.engine.templates import Writer

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
        result = getattr(fun, name, TYPES)  # TYPES itself: there is none
        if result is not TYPES and isinstance(result, TYPES.get(name, object)):
            yield name, result


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


# -----------------------------------------------------------------------------
# The standard engine, and running a jaxpr under whatever is current.
#
# After the rewriting there is one way on, `apply`: under a trace the equations
# are written into it, else they are computed::
#
#     outs = apply(jaxpr, args)


type Value = Array | Literal

ENGINE = STANDARD
EAGER = eager_interpreter(ENGINE, None)


def current_builder() -> Builder | None:
    """The builder of the innermost trace of this thread, if there is one."""
    interpreter = STATE.interpreter
    return interpreter if isinstance(interpreter, Builder) else None


def is_tracing() -> bool:
    """Whether operations belong to a trace, which may be one of a program's own."""
    return isinstance(STATE.interpreter, Scope)


def apply(jaxpr: Jaxpr, args: Sequence[object]) -> Sequence[Array]:
    """The outputs of `jaxpr` on arguments of its input types."""
    builder = current_builder()
    if builder is not None:
        return builder.call(jaxpr, args)
    return bound(jaxpr, args)


def bound(jaxpr: Jaxpr, args: Sequence[object]) -> Sequence[Array]:
    """The outputs of `jaxpr`, whose equations are bound one by one on what there is.

    So the arguments may be of other types than the inputs, if the equations take them.
    """
    outs = interpret(jaxpr, args, bound_eqn, literal_array)
    return [as_array(x) for x in outs]


def bound_eqn(eqn: Eqn, operands: Sequence[object]) -> Sequence[Array]:
    """The results of `eqn`, bound on these operands."""
    try:
        return STATE.interpreter.bind(eqn.primitive, eqn.params, operands)
    except ElementError as error:
        raise error.at(eqn) from None


class Computing:
    """A writer that computes: what templates write, on values, under what is current.

    A transformation of concrete values runs as it goes, without a program. Literals
    stand for themselves until an operation, or `as_arrays`, makes arrays of them.
    """

    def copy(self, eqn: Eqn, values: Sequence[Value], /) -> Sequence[Array]:
        """The results of `eqn` on these operands."""
        return bound_eqn(eqn, as_arrays(values))

    def inline(
        self, jaxpr: Jaxpr, values: Sequence[Value], source: Source | None = None, /
    ) -> Sequence[Array]:
        """The outputs of `jaxpr`; errors say `source` instead of its own lines."""
        script = jaxpr.script
        env: list[Any] = [*as_arrays(script.literals), *as_arrays(values)]
        bind = STATE.interpreter.bind
        for primitive, params, pick, _, own in script.steps:
            ins = (env[pick],) if type(pick) is int else pick(env)  # type: ignore[operator]  # else a function
            try:
                env += bind(primitive, params, ins)
            except ElementError as error:
                raise error.at(Eqn(primitive, params, (), (), source or own)) from None
        return [env[i] for i in script.outs]


COMPUTING = Computing()


def as_arrays(values: Sequence[Value]) -> list[Array]:
    """Values as arrays: literals become such, on the device where they are."""
    return [literal_array(x) if isinstance(x, Literal) else x for x in values]


def typed_atoms(
    args: Sequence[object], avals: Sequence[ShapedArray]
) -> list[Atom] | None:
    """What stands for arguments in the current trace, if their types are exactly these.

    A transformation then writes there at once what it makes of a program; otherwise it
    makes a program of these types, for `apply`.
    """
    builder = current_builder()
    if builder is None:
        return None
    atoms = [builder.atom(x) for x in args]
    same = [atom.aval is aval for atom, aval in zip(atoms, avals, strict=True)]
    return atoms if all(same) else None


def is_observed() -> bool:
    """Whether somebody sees what transformations make: then they make programs."""
    return current_context().observer is not None


def observed[E](
    name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, E]]
) -> tuple[Jaxpr, E]:
    """The program that `make` makes of `jaxpr`, seen by whoever observes the trace."""
    observer = current_context().observer
    return make(jaxpr) if observer is None else observer.rewrite(name, jaxpr, make)


def rewritten[E](
    name: str,
    jaxpr: Jaxpr,
    args: Sequence[object],
    avals: Callable[[], Sequence[ShapedArray]],
    into: Callable[[Writer[Any], Sequence[Any]], tuple[Sequence[Any], E]],
    program: Callable[[Jaxpr], tuple[Jaxpr, E]],
) -> tuple[Sequence[Array], E]:
    """What the rewrite `name` makes of `jaxpr` on `args`, and says of the outputs.

    Values are computed as the rewrite goes, by `into`. Under a trace it writes there,
    if the arguments have just its input types `avals`; else `program` is applied, as
    where it is observed.
    """
    builder = current_builder()
    if builder is not None and is_observed():
        made, out = observed(name, jaxpr, program)
        return apply(made, args), out
    if builder is None:
        outs, out = into(COMPUTING, [as_array(x) for x in args])
        return as_arrays(outs), out
    atoms = typed_atoms(args, avals())
    if atoms is None:
        made, out = program(jaxpr)
        return apply(made, args), out
    with builder.undone_on_error():
        outs, out = into(builder, atoms)
    return builder.tracers(outs), out


def literal_array(literal: Literal) -> Array:
    """The value of a literal, which keeps its type, weakness included."""
    if isinstance(literal.value, Array):
        return literal.value
    return as_typed_array(literal.value, literal.aval)


def as_array(x: object) -> Array:
    """An operand as an array: Python scalars and NumPy arrays are converted."""
    if isinstance(x, Array):
        return x
    if is_reference(x):  # an operand as it is
        return cast(Array, x)
    return as_typed_array(x, aval_of(x))


def as_typed_array(x: object, aval: ShapedArray) -> ConcreteArray:
    """A copy of a Python or NumPy value as an array of type `aval`."""
    return fresh(np.array(x, stored_dtype(aval.dtype)), aval)


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
    """What is left of a function in a program: its name and those of its arguments.

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
    try:
        return list(inspect.signature(fun).parameters.values())  # type: ignore[arg-type]  # raises for what is not callable
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


def stands_for(inner: Callable[..., Any], fun: Callable[..., Any]) -> None:
    """Give `inner`, made around the user's `fun`, its name and line in messages."""
    inner.__name__ = function_name(fun)
    inner.__dict__["func"] = fun


def name_and_line(fun: object) -> str:
    """A function and where the user wrote it: `step (train.py:12)`."""
    name = function_name(fun)
    out = codes(fun)
    if not out:
        return name
    return f"{name} ({out[-1].co_filename}:{out[-1].co_firstlineno})"


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
    """Where a function takes the argument of this number in the tree."""
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
