"""Finds lists of primitives that stand outside rows, where a trait of the row belongs.

A pass that asks `eqn.primitive.name in CHEAP` knows nothing of a primitive of the
user's; one that asks `traits_of(eqn.primitive)` does. So sets, tables and texts that
name primitives stand in `ops/` only, with few exceptions::

    list(check_primitive_lists(load(Path("src/verax"))))
"""

import ast
from collections.abc import Iterator, Sequence

from tests.parsed import Module, Violation

type Collection = ast.Set | ast.List | ast.Tuple | ast.Dict
COLLECTIONS = (ast.Set, ast.List, ast.Tuple, ast.Dict)

# Where rows are the subject, and why.
HOMES = {
    "verax.ops": "the rows themselves",
    "verax.jax": "which params and names JAX has for a row",
    "verax.transforms.precision.multiple": "which functions mpmath has for a row",
    "verax.verify": "which rows the laws draw, and what XLA does to some",
}
# So many names of primitives are a list of them, if most of the items are.
NAMES = 3
ROWS = 2


def primitive_names(modules: Sequence[Module]) -> frozenset[str]:
    """The names of all rows: the first argument of what makes `sin_p`."""
    return frozenset(
        [
            name
            for module in modules
            for target, value in assignments(module.tree)
            if target.endswith("_p")
            for name in first_texts(value)
        ]
    )


def assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names that a module gives values to, and these."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                yield name, value


def first_texts(node: ast.expr) -> list[str]:
    """The first argument of a call, or of the call that is its first argument."""
    match node:
        case ast.Call(args=[ast.Constant(str(name)), *_]):
            return [name]
        case ast.Call(args=[ast.Call() as inner, *_]):
            return first_texts(inner)
        case _:
            return []


def texts(nodes: Sequence[ast.expr | None]) -> list[str]:
    """The literal strings among expressions."""
    constants = [node for node in nodes if isinstance(node, ast.Constant)]
    return [node.value for node in constants if isinstance(node.value, str)]


def check_primitive_lists(modules: Sequence[Module]) -> Iterator[Violation]:
    """Nothing outside `HOMES` lists primitives, by name or by row.

    A package's own file is a facade: functions have the names of primitives there.
    """
    names = primitive_names(modules)
    for module in modules:
        if module.is_package or any(module.name.startswith(home) for home in HOMES):
            continue
        for owner, node in owned(module.tree):
            if lists_primitives(node, names):
                message = f"{owner} lists primitives: give their rows a trait"
                yield module.violation(node.lineno, "primitives", owner, message)


def owned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Each expression of a module, with the name of what it stands in."""
    for statement in tree.body:
        targets = ast.Module([statement], [])
        owner = next((name for name, _ in assignments(targets)), "")
        owner = getattr(statement, "name", owner)
        for node in ast.walk(statement):
            if isinstance(node, ast.expr):
                yield owner, node


def lists_primitives(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression is a collection of primitives, or a text of their names."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = node.value.split()
        return mostly(words, len(words), names)
    if not isinstance(node, COLLECTIONS):
        return False
    items = node.keys if isinstance(node, ast.Dict) else node.elts
    rows = [item for item in items if row_name(item).endswith("_p")]
    return len(rows) >= ROWS or mostly(texts(items), len(items), names)


def mostly(words: Sequence[str], count: int, names: frozenset[str]) -> bool:
    """Whether two of three items are names of primitives, and enough are."""
    known = len(names.intersection(words))
    return known >= NAMES and 3 * known >= 2 * count


def row_name(item: ast.expr | None) -> str:
    """The name by which an item is read, without its module; none for C's types."""
    match item:
        case ast.Name(name) | ast.Attribute(attr=name) if not name.startswith("c_"):
            return name
        case _:
            return ""
