"""The function that `python -m verax explore` looks at, from its options (floor 6).

One idea: options are held against the call before anything of the user's is traced, by
the same transformations of a function that does nothing; what they refuse is a line::

    wanted = Flags(static="mode", grad="w", vmap="None,0,None")
    composed(loss, wanted, (w, xs, "mean"), {})    # jit(vmap(grad(loss), ...), ...)
"""

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, Final

from attrs import evolve, frozen

from verax.api.arguments.call_keys import Statics, resolve_statics
from verax.api.autodiff.grad import check_output, grad
from verax.api.jit import PjitFunction, jit
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.tracing.wrapping import (
    BY_POSITION,
    describe_arguments,
    function_name,
    parameters_of,
    wraps,
)
from verax.api.vmap import vmap
from verax.backend import pytrees
from verax.ir.records import ReprMixin
from verax.rules.values.constants import aval_of

type Fun = Callable[..., object]
type Args = tuple[object, ...]
type Kwargs = Mapping[str, object]

NONE: Final = Statics((), frozenset(), (), frozenset())


class Mistake(Exception):
    """The command cannot be understood."""


@frozen(repr=False)
class Flags(ReprMixin):
    """The options `--static`, `--grad` and `--vmap` as they were written.

    With `inline` a function behind jit is written out in its transformation.
    """

    static: str | None = None
    grad: str | None = None
    vmap: str | None = None
    inline: bool = False

    @property
    def transforms(self) -> bool:
        """Whether the function is not looked at as it is."""
        return self.grad is not None or self.vmap is not None


@frozen(repr=False)
class Plan(ReprMixin):
    """The same options, read: gradients by `argnums`, `axes` to map, if `mapped`."""

    statics: Statics
    argnums: int | tuple[int, ...] | None
    mapped: bool
    axes: object

    def of(self, fun: Fun) -> Fun:
        """The transformations of a function: grad first, then vmap."""
        if self.argnums is not None:
            fun = grad(scalar(fun), self.argnums)
        return over_elements(fun, self.axes, self.statics) if self.mapped else fun


def composed(
    fun: Fun, flags: Flags, args: Args, kwargs: Kwargs
) -> PjitFunction[..., Any]:
    """The function behind jit, with its static arguments and transformations.

    Raises:
        Mistake: an option does not fit the function, or the call.
    """
    base, own = unbound(fun)
    statics = with_more(base, own, flags.static)
    plan = planned(base, flags, statics, args, kwargs)
    check_plan(base, plan, args, kwargs)
    if isinstance(base, PjitFunction):
        if statics is not own:
            base = PjitFunction(base.fun, evolve(base.settings, statics=statics))
        if not flags.transforms:
            return base
        if flags.inline:
            base = base.fun
    return jitted(plan.of(base), statics)


def jitted(fun: Fun, statics: Statics) -> PjitFunction[..., Any]:
    """A function behind jit with these static arguments; nothing is donated."""
    static = Statics(statics.positions, statics.names, (), frozenset())
    return PjitFunction(fun, evolve(jit(fun).settings, statics=static))


# -----------------------------------------------------------------------------
# Static arguments.


def unbound(fun: Fun) -> tuple[Fun, Statics]:
    """The function and its own static arguments, if it is behind jit.

    A jitted method that is bound becomes the method, without its jit and `self`.
    """
    if isinstance(fun, PjitFunction):
        return fun, fun.settings.statics
    method = getattr(fun, "__func__", None)
    if isinstance(fun, MethodType) and isinstance(method, PjitFunction):
        own = method.settings.statics
        places = tuple([p - (p > 0) for p in own.positions if p != 0])
        if places or own.names:
            static = Statics(places, own.names, (), frozenset())
            return MethodType(method.fun, fun.__self__), static
    return fun, NONE


def with_more(fun: Fun, own: Statics, text: str | None) -> Statics:
    """The static arguments with those that the option names; `own` without one.

    Raises:
        Mistake: there is no such argument, or it is donated.
    """
    if text is None:
        return own
    words = words_of("--static", text)
    for word in words:
        check_word(fun, "--static", word)
    places = {p.name: i for i, p in enumerate(positional(fun))}
    numbers = [places.get(w, w) if isinstance(w, str) else w for w in words]
    given = [n for n in numbers if isinstance(n, int)]
    names = [n for n in numbers if isinstance(n, str)]
    try:
        by_number = resolve_statics(fun, given, None, None, None)
        by_name = resolve_statics(fun, None, names, None, None)
    except (TypeError, ValueError) as error:
        raise Mistake(f"--static {text}: {error}") from None
    more = {*by_number.positions, *by_name.positions}
    named = by_number.names | by_name.names
    if more & {*own.donate_positions} or named & own.donate_names:
        raise Mistake(
            f"--static {text}: an argument whose memory is donated is not static"
        )
    return Statics(
        tuple(sorted(more | {*own.positions})),
        own.names | named,
        own.donate_positions,
        own.donate_names,
    )


def words_of(option: str, text: str) -> list[int | str]:
    """Names and numbers of arguments, with commas between.

    Raises:
        Mistake: it is something else.
    """
    out: list[int | str] = []
    for part in map(str.strip, text.split(",")):
        if part.isidentifier():
            out.append(part)
            continue
        try:
            out.append(int(part))
        except ValueError:
            raise Mistake(
                f"{option} {text}: write names or numbers of arguments, with commas "
                f"between, as in {option} 0,scale"
            ) from None
    return out


def positional(fun: Fun) -> list[inspect.Parameter]:
    """The parameters that have a number."""
    return [p for p in parameters_of(fun) if p.kind in BY_POSITION]


def check_word(fun: Fun, option: str, word: int | str) -> None:
    """Find a name or number that no argument has.

    Raises:
        Mistake: it is one.
    """
    parameters = parameters_of(fun)
    if not parameters and isinstance(word, int):
        return  # some functions of C do not say what they take
    kinds = {p.kind for p in parameters}
    if isinstance(word, int):
        count = len(positional(fun))
        known = -count <= word < count or inspect.Parameter.VAR_POSITIONAL in kinds
    else:
        names = [p.name for p in parameters]
        known = word in names or inspect.Parameter.VAR_KEYWORD in kinds
    if not known:
        there = ", ".join([p.name for p in parameters]) or "none that is known"
        raise Mistake(
            f"{option} {word}: {function_name(fun)} has no argument {word}; it has "
            f"{there}"
        )


# -----------------------------------------------------------------------------
# Gradients and mapped dimensions.


def planned(
    fun: Fun, flags: Flags, statics: Statics, args: Args, kwargs: Kwargs
) -> Plan:
    """The options, read for a call.

    Raises:
        Mistake: one does not fit it.
    """
    static = statics.places(len(args))
    argnums, axes = None, None
    if flags.grad is not None:
        words = words_of("--grad", flags.grad)
        places = [number_of(fun, word, statics, static, args, kwargs) for word in words]
        argnums = places[0] if len(places) == 1 else tuple(places)
    if flags.vmap is not None:
        axes = axes_of(flags.vmap, len(args), static)
    return Plan(statics, argnums, flags.vmap is not None, axes)


def number_of(
    fun: Fun,
    word: int | str,
    statics: Statics,
    static: Sequence[int],
    args: Args,
    kwargs: Kwargs,
) -> int:
    """The place among the positional arguments that a gradient is taken by.

    Raises:
        Mistake: there is none, or it is static.
    """
    check_word(fun, "--grad", word)
    names = [p.name for p in positional(fun)]
    name, number = word, word
    if isinstance(word, str):
        number = names.index(word) if word in names else len(args)
    elif -len(names) <= word < len(names):
        name = names[word]
    assert isinstance(number, int)
    if name in kwargs or not -len(args) <= number < len(args):
        hint = f"; pass {word} by its position" if isinstance(word, str) else ""
        raise Mistake(
            f"--grad {word}: the gradient is by positional arguments, of which --args "
            f"has {len(args)}{hint}"
        )
    if number % len(args) in static or name in statics.names:
        raise Mistake(f"--grad {word}: this argument is static and has no gradient")
    return number


def scalar(fun: Fun) -> Fun:
    """The function, whose result must be one that has a gradient."""

    @wraps(fun)
    def checked(*args: object, **kwargs: object) -> Any:
        out = fun(*args, **kwargs)
        try:
            check_output(fun, out, holomorphic=False)
        except TypeError:
            leaves, tree = pytrees.flatten(out)
            types = tree.unflatten([str(aval_of(leaf)) for leaf in leaves])
            raise Mistake(
                f"--grad: {function_name(fun)} returns {types}, and a gradient is of "
                "one real number"
            ) from None
        return out

    return checked


def axes_of(text: str, count: int, static: Sequence[int]) -> object:
    """The dimensions to map, as vmap takes them as in_axes.

    Raises:
        Mistake: they cannot be read, or are not those of so many arguments.
    """
    try:
        axes = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        raise Mistake(
            f"--vmap {text}: write dimensions as in_axes of vmap takes them: 0, or one "
            "for each argument as in 0,None"
        ) from None
    if not isinstance(axes, list | tuple):
        return axes
    if len(axes) != count:
        raise Mistake(
            f"--vmap {text}: this has {len(axes)} entries, and the call {count} "
            "positional arguments; arguments by keyword are mapped over dimension 0"
        )
    for place in static:
        if axes[place] is not None:
            raise Mistake(
                f"--vmap {text}: argument {place} is static, so None stands for it"
            )
    return tuple(axes)


def over_elements(fun: Fun, axes: Any, statics: Statics) -> Fun:
    """`fun` mapped over dimensions of the arguments that are not static."""
    if not statics.any:
        return vmap(fun, axes)

    @wraps(fun)
    def mapped(*args: object, **kwargs: object) -> Any:
        call = statics.bind(args, kwargs)
        entries = axes
        if isinstance(axes, tuple):
            entries = tuple([a for i, a in enumerate(axes) if i not in call.positions])
        element: Any = call.with_statics(fun)
        if element is not fun:
            fixed = {positional(fun)[i].name for i in call.positions} | statics.names
            element.__signature__ = inspect.Signature(
                [p for p in parameters_of(fun) if p.name not in fixed]
            )
        given, named = call.dynamic
        return vmap(element, entries)(*given, **named)

    return mapped


# -----------------------------------------------------------------------------
# The call.


def check_plan(fun: Fun, plan: Plan, args: Args, kwargs: Kwargs) -> None:
    """Find what jit, grad and vmap do not take, by a function that does nothing.

    Raises:
        Mistake: there is something.
    """

    @wraps(fun)
    def nothing(*args: object, **kwargs: object) -> float:
        return 0.0

    try:
        jitted(plan.of(nothing), plan.statics).trace(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise Mistake(str(error).replace("static_argnums", "--static")) from None


def check_values(
    option: str, fun: PjitFunction[..., object], args: Args, kwargs: Kwargs
) -> None:
    """Find types that stand for arguments, which an option needs the values of.

    Raises:
        Mistake: there is one.
    """
    call = fun.settings.statics.bind(args, dict(kwargs))
    leaves, tree = pytrees.flatten(call.dynamic)
    names = describe_arguments(fun, tree, call.positions)()
    for leaf, name in zip(leaves, names, strict=True):
        if isinstance(leaf, ShapeDtypeStruct):
            raise Mistake(
                f"{option} runs the function, and {name} is a type without a value: "
                "pass an array"
            )
