"""`jax._src.api_util`: which parameters argument numbers and names mean."""

import inspect
from collections.abc import Iterable


def infer_argnums_and_argnames(
    signature: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The numbers that names have, or the names that numbers have."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = list(signature.parameters.values())
    places = [p.name for p in named if p.kind in kinds]
    numbers = None if argnums is None else as_tuple(argnums)
    names = None if argnames is None else as_tuple(argnames)
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
    return numbers, names


def as_tuple(one_or_more):
    if isinstance(one_or_more, (str, int)):
        return (one_or_more,)
    return tuple(one_or_more)
