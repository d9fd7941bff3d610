"""Floor 5: the objects that functions with rules of the user's own are.

One idea: what became of a function's rules is kept by the function itself, so that it
dies with it::

    at_home(weak_reference(), traced_jvp, user, mask)
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from verax.api.custom.arguments import signature_of

RULES = 1 << 12
"""How many traces of its rules a function keeps."""


class Home:
    """A function with rules of its own; what became of them is kept here.

    So the traces of rules, and the arrays that these captured, die with the function.
    `parts` are the attributes that hold functions of the user's, `taken` is what the
    rules meant when somebody looked, and where that was looked up.
    """

    parts: ClassVar[tuple[str, ...]] = ("fun",)

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.traced: dict[object, Any] = {}
        self.taken: tuple[Sequence[Any], Sequence[Any], tuple[Any, ...]] | None = None
        self.weighed = False

    @functools.cached_property
    def signature(self) -> inspect.Signature | None:
        """The signature of the function; None if it does not say what it takes."""
        return signature_of(self.fun)

    def clear_cache(self) -> None:
        """Forget how the rules were traced."""
        self.traced.clear()
        self.taken = None


def at_home[R](home: Home | None, what: Callable[..., R], *key: Any) -> R:
    """`what(*key)`, kept by the function `home` if that still exists."""
    return what(*key) if home is None else kept_in(home.traced, what, *key)


def kept_in[R](traced: dict[object, Any], what: Callable[..., R], *key: Any) -> R:
    """`what(*key)`, kept in `traced`."""
    found: R | None = traced.get((what, key))  # others may clear it meanwhile
    if found is None:
        if len(traced) >= RULES:
            traced.clear()
        found = traced[what, key] = what(*key)
    return found
