"""Shapes in annotations, checked when a function is traced (floor 5).

One idea: jaxtyping knows what `Float[Array, "batch d"]` means and beartype what is
inside containers; a wrapper asks them once per trace, and says which argument of which
function was wrong, called from where::

    checked(attend)(q, k)    # attend (model.py:8): k is f32[4,3] where ...
"""

import re
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Final

from verax.api.tracing.wrapping import name_and_line, wraps
from verax.ir.jaxpr import Source
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.state import user_source

PROBLEM: Final = re.compile(
    r"Type-check error whilst checking the (?P<what>parameters|return value) of .*?"
    r"(parameter '(?P<name>\w+)'\.\n)?Actual value: (?P<value>.*?)"
    r"\nExpected type: (?P<type>.*?)\.\n-{4}.*?"
    r"(axis annotation are as follows\.\n(?P<sizes>.*))?",
    re.DOTALL,
)
CLASS: Final = re.compile(r"<class '(.*?)'>$")


def checked[**P, R](fun: Callable[P, R]) -> Callable[P, R]:
    """`fun`, whose annotations hold for arguments and results of every call.

    Annotations of jaxtyping name the dimensions: the same name is the same size
    throughout one call. Other annotations are checked as well. Under `jit` the check
    runs when the function is traced, and costs a compiled call nothing.

    Args:
        fun: a function with annotations, of which those left out hold always.

    Returns:
        A function with the same arguments and results.

    Raises:
        ImportError: jaxtyping or beartype is not installed, the extra `verax[shapes]`.
        TypeError: (from a call, as `jaxtyping.TypeCheckError`) an argument or the
            result is not what its annotation says.

    >>> from jaxtyping import Float
    >>> import verax, verax.numpy as vnp
    >>> from verax import Array
    >>> @verax.jit
    ... @verax.typing.checked
    ... def scores(q: Float[Array, "n d"], k: Float[Array, "m d"]) -> Array:
    ...     return q @ k.T
    >>> scores(vnp.ones((2, 4)), vnp.ones((3, 4))).shape
    (2, 3)
    >>> scores(vnp.ones((2, 4)), vnp.ones((3, 5)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    jaxtyping.TypeCheckError: scores (...): k is f32[3,5], not Float[Array, 'm d'] ...
    """
    check_callable("checked", fun)
    try:
        from beartype import beartype
        from jaxtyping import TypeCheckError, jaxtyped
    except ImportError as error:
        raise ImportError(
            "verax.typing.checked checks annotations with jaxtyping and beartype: "
            "pip install 'verax[shapes]'"
        ) from error
    typed = jaxtyped(fun, typechecker=beartype)

    @wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            out: R = typed(*args, **kwargs)
        except TypeCheckError as error:
            problem = PROBLEM.fullmatch(str(error))
            if problem is None:  # of a checked function within, which has said it
                raise
            values = signature(fun).bind(*args, **kwargs).arguments
            text = explained(problem, fun, values, user_source(1))
            raise TypeCheckError(text) from None
        return out

    return call


def explained(
    problem: re.Match[str],
    fun: Callable[..., object],
    values: Mapping[str, object],
    caller: Source,
) -> str:
    """What was wrong, in one line."""
    name, sizes = problem["name"], problem["sizes"]
    value = short(problem["value"]) if name is None else typed_text(values[name])
    expected = CLASS.sub(r"\1", problem["type"])
    known = f" where {', '.join(sizes.splitlines())}" if sizes else ""
    return (
        f"{name_and_line(fun)}: {name or 'the result'} is {value}, not "
        f"{expected}{known}; called at {caller}"
    )


def short(text: str) -> str:
    """A text in one line of at most 60 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def typed_text(x: object) -> str:
    """An array by its type, anything else by its value."""
    return str(x.aval) if isinstance(x, Array) else short(shown(x))
