"""`jax._src.api_util`: which parameters argument numbers and names mean."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import SupportsIndex

type Numbers = int | Iterable[int] | None
type Names = str | Iterable[str] | None


def infer_argnums_and_argnames(
    signature: inspect.Signature,
    argnums: Numbers,
    argnames: Names,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The numbers that names have, or the names that numbers have."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = list(signature.parameters.values())
    places = [p.name for p in named if p.kind in kinds]
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    names = (argnames,) if isinstance(argnames, str) else argnames
    if numbers is None and names is None:
        return (), ()
    if numbers is None:
        numbers = tuple([i for i, name in enumerate(places) if name in (names or ())])
    if names is None:
        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        by_number = [
            p.name for i, p in enumerate(named) if i in numbers and p.kind == keyword
        ]
        names = tuple(by_number)
    return tuple(numbers), tuple(names)


def _ensure_index(x: SupportsIndex | Iterable[SupportsIndex]) -> int | tuple[int, ...]:
    """An integer, or integers."""
    return index(x) if isinstance(x, SupportsIndex) else tuple(map(index, x))


def check_callable(fun: object) -> None:
    """Raise TypeError for what cannot be called."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")


def resolve_kwargs(
    fun: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[object, ...]:
    """The arguments of a call by position.

    Raises:
        TypeError: the function does not take them, or some by name alone.
    """
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{', '.join(bound.kwargs)} cannot be passed by position")
    return bound.args


def resolve_argnums(
    fun: Callable[..., object],
    signature: inspect.Signature | None,
    donate_argnums: Numbers,
    donate_argnames: Names,
    static_argnums: Numbers,
    static_argnames: Names,
) -> tuple[tuple[object, ...], ...]:
    """Numbers and names of donated and static arguments, each told from the other."""
    own = inspect.signature(fun) if signature is None else signature
    static = infer_argnums_and_argnames(own, static_argnums, static_argnames)
    donated = infer_argnums_and_argnames(own, donate_argnums, donate_argnames)
    return (*donated, *static)
