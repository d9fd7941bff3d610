"""A mutant put into modules that are loaded already, by giving functions other code.

One idea: a change inside of functions that only run when they are called needs no new
import: every live function of the old code gets the new one::

    patched(module, old_tree, new_tree, early)     # False: import it anew
"""

import ast
import functools
import gc
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

OPTIMIZED = 1
"""The flag of code that belongs to a function, and not to a module or a class."""
type Key = tuple[str, int, str]


def name_in_verax(path: str) -> str:
    """A file of verax, named alike in every checkout: what is found out is kept."""
    return path.rpartition("/verax/")[2]


def key_of(code: CodeType) -> Key:
    return name_in_verax(code.co_filename), code.co_firstlineno, code.co_qualname


@cache
def live() -> dict[Key, list[FunctionType]]:
    """All functions of verax in memory, by the place of their code."""
    actual: dict[Key, list[FunctionType]] = {}
    for x in gc.get_objects():
        if isinstance(x, FunctionType) and "/verax/" in x.__code__.co_filename:
            actual.setdefault(key_of(x.__code__), []).append(x)
    return actual


@cache
def memos() -> list[Any]:
    """Every memo of verax: a call must not profit from another one."""
    kind = type(functools.lru_cache(lambda: None))
    every = gc.get_objects()
    return [x for x in every if isinstance(x, kind) and "verax" in of(x)]


def of(memo: Any) -> str:
    return str(getattr(memo, "__module__", ""))


def own(code: CodeType) -> object:
    """What a code does itself, without the functions that it makes."""
    consts = [repr(x) for x in code.co_consts if not isinstance(x, CodeType)]
    return code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars


def inside(code: CodeType) -> list[CodeType]:
    return [x for x in code.co_consts if isinstance(x, CodeType)]


def changes(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The codes that differ, the innermost first."""
    if len(inside(old)) == len(inside(new)):
        for a, b in zip(inside(old), inside(new), strict=True):
            yield from changes(a, b)
    if old != new:
        yield old, new


def patched(path: str, old: ast.Module, new: ast.Module, early: set[Key]) -> bool:
    """Whether the change could be made in memory.

    `early` are the codes that have run while modules were imported: what they made is
    there already, so such a change needs an import. So does one of a module or a class.
    """
    plans: list[tuple[FunctionType, CodeType]] = []
    before, after = (compile(tree, path, "exec") for tree in (old, new))
    for a, b in changes(before, after):
        itself = own(a) != own(b) or len(inside(a)) != len(inside(b))
        if not a.co_flags & OPTIMIZED or key_of(a) in early:
            if itself:
                return False
            continue
        if a.co_freevars != b.co_freevars:
            return False
        functions = [f for f in live().get(key_of(a), []) if f.__code__ == a]
        plans += [(f, b) for f in functions]
    for function, code in plans:
        function.__code__ = code
    for memo in memos():
        memo.cache_clear()
    return bool(plans)
