"""Floor 0: which values keep mortal objects alive, so that memos must not keep them.

One idea: a memo that outlives its callers may keep numbers, types and programs, but no
array that a closure captured and no function that captured one. A value says by
`transient` that it holds such an object; everything else is judged by its class::

    holds(3), holds(lambda: 0), holds((lambda x: lambda: x)(0))    # False, False, True
"""

import enum
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    ModuleType,
    NoneType,
    UnionType,
)
from typing import Final, TypeAliasType, Union, get_args, get_origin

import numpy as np
from attrs import fields, has

PLAIN: Final = frozenset(
    (bool, int, float, complex, str, bytes, NoneType, type, slice, range, type(...))
)
"""Classes whose values hold nothing."""
PLAIN_BASES: Final = (
    np.generic,
    np.dtype,
    np.ufunc,
    enum.Enum,
    BuiltinFunctionType,
    ModuleType,
)
CONTAINERS: Final = (tuple, frozenset)


def holds(value: object) -> bool:
    """Whether a value holds an array, or a function or object that may hold one.

    Functions without closure and defaults hold nothing but code. An object of an
    unknown class may hold anything, unless it says `transient = False`.
    """
    kind = type(value)
    if kind in PLAIN:
        return False
    known = getattr(value, "transient", None)
    if type(known) is bool:
        return known
    if isinstance(value, CONTAINERS):
        return any(map(holds, value))
    if kind is FunctionType:
        return captures(value)  # type: ignore[arg-type]  # a function
    if isinstance(value, PLAIN_BASES):
        return False
    if isinstance(value, type):
        return False
    if has(kind):
        return any([holds(getattr(value, a.name)) for a in fields(kind)])
    return True


def captures(function: FunctionType) -> bool:
    """Whether a function holds values of the place where it was made."""
    if function.__closure__:
        return True
    named = function.__kwdefaults__ or {}
    return any(map(holds, (*(function.__defaults__ or ()), *named.values())))


def is_plain_type(kind: object) -> bool:
    """Whether all values of an annotated type hold nothing."""
    if isinstance(kind, TypeAliasType):
        return is_plain_type(kind.__value__)
    if kind is None or kind is ...:
        return True
    origin = get_origin(kind)
    if origin in (Union, UnionType, *CONTAINERS):
        return all(map(is_plain_type, get_args(kind)))
    if isinstance(kind, GenericAlias) or origin is not None:
        return isinstance(origin, type) and issubclass(origin, PLAIN_BASES)
    return isinstance(kind, type) and (
        kind in PLAIN
        or issubclass(kind, PLAIN_BASES)
        or getattr(kind, "transient", None) is False
    )
