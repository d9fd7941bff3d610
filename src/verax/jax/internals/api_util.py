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
