"""What of `ops` and `rules` is a rule: the columns of rows, and what these call.

One idea: the rows of a module stand in its `ROWS`, so what a row can reach is what
that names, what this names, and so on; what remains is the front, which checks
arguments for users, and what draws calls for tests::

    ("verax.ops.elementwise.trig", "sin_p") in in_scope()
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeGuard

from property_tests.mutants.kinds import assigned, inner, passed_over

SOURCE = Path(__file__).parents[2] / "src"
type Name = tuple[str, str]
"""A module, and what it defines at its top."""


def modules() -> list[str]:
    """The modules that hold rules."""
    actual = []
    for folder in ("ops", "rules"):
        for path in sorted((SOURCE / "verax" / folder).rglob("*.py")):
            if path.stem != "__init__":
                parts = path.relative_to(SOURCE).with_suffix("").parts
                actual.append(".".join(parts))
    return actual


def path_of(module: str) -> Path:
    return SOURCE.joinpath(*module.split(".")).with_suffix(".py")


@cache
def source_of(module: str) -> str:
    """The text of a module as it was at first: a run may outlast an edit of it."""
    return path_of(module).read_text()


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(source_of(module))


def imports(module: str) -> Iterator[tuple[str, Name]]:
    """What names of other modules mean here; of a module itself, with "" for a name."""
    known = set(modules())
    for node in tree_of(module).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                local, whole = alias.asname or alias.name, f"{node.module}.{alias.name}"
                yield (
                    local,
                    ((whole, "") if whole in known else (node.module, alias.name)),
                )


def defined(module: str) -> dict[str, ast.AST]:
    """The functions, classes and constants at the top of a module."""
    actual: dict[str, ast.AST] = {}
    for node in tree_of(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            actual[node.name] = node
        if isinstance(node, ast.Assign | ast.AnnAssign):
            actual[assigned(node)] = node
    return actual


def named(node: ast.AST, module: str, meanings: Mapping[str, Name]) -> Iterator[Name]:
    """What a node and all that is in it refers to, without types and draws."""
    if passed_over(node):
        return
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        home, name = meanings.get(node.value.id, ("", "?"))
        if not name:
            yield home, node.attr
    if isinstance(node, ast.Name):
        yield meanings.get(node.id, (module, node.id))
    for child in inner(node):
        yield from named(child, module, meanings)


@cache
def in_scope() -> frozenset[Name]:
    """The functions and classes that the columns of rows reach."""
    meanings = {module: dict(imports(module)) for module in modules()}
    homes = {module: defined(module) for module in modules()}
    waiting: list[Name] = []
    for module in modules():
        waiting.append((module, "ROWS"))
    waiting += [
        ("verax.rules.programs.derived", "standard"),
        ("verax.ops.core", "CORE"),
    ]
    actual: set[Name] = set()
    while waiting:
        home, name = waiting.pop()
        if (home, name) in actual or name not in homes.get(home, {}):
            continue
        actual.add((home, name))
        waiting += named(homes[home][name], home, meanings[home])
    return frozenset(actual)


def is_rule(module: str, function: str) -> bool:
    """Whether a place in a function, or outside of all, belongs to a rule."""
    return not function or (module, function.split(".")[0]) in in_scope()


@cache
def used_by() -> Mapping[Name, frozenset[Name]]:
    """Each definition, and the definitions that refer to it."""
    actual: dict[Name, set[Name]] = {}
    for module in modules():
        meanings = dict(imports(module))
        for name, node in defined(module).items():
            for other in named(node, module, meanings):
                actual.setdefault(other, set()).add((module, name))
    return {name: frozenset(users) for name, users in actual.items()}


def above(module: str, function: str) -> Iterator[list[tuple[str, int]]]:
    """The statements that use a definition, those that use these, and so on.

    Statements are told by a line of theirs; the definition itself comes first.
    """
    level, seen = {(module, function)}, {(module, function)}
    while level:
        homes = [(home, defined(home).get(name)) for home, name in sorted(level)]
        yield [(home, node.lineno) for home, node in homes if is_statement(node)]
        level = {user for name in level for user in used_by().get(name, ())} - seen
        seen |= level


def is_statement(node: ast.AST | None) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.stmt)


@cache
def strings_in(module: str, line: int) -> frozenset[str]:
    """The texts in the statement of a module that a line belongs to."""
    for node in tree_of(module).body:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            return frozenset(
                x.value
                for x in ast.walk(node)
                if isinstance(x, ast.Constant) and isinstance(x.value, str)
            )
    return frozenset()
