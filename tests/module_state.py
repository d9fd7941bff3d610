"""Finds state that outlives a call: module-level containers that functions change,
names that functions rebind, and statements that act when a module is imported.

    TABLE = {}                # fine by itself: a value
    def register(name, rule):
        TABLE[name] = rule    # the violation: a registry
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import override

from attrs import field, frozen

from tests.parsed import FUNCTIONS, FunctionNode, Import, Module, Violation, imports

CONTAINERS = frozenset(
    {
        "ChainMap",
        "Counter",
        "OrderedDict",
        "WeakKeyDictionary",
        "WeakSet",
        "WeakValueDictionary",
        "bytearray",
        "defaultdict",
        "deque",
        "dict",
        "list",
        "set",
    }
)
CHANGES = frozenset(
    {
        "__delitem__",
        "__setitem__",
        "add",
        "append",
        "appendleft",
        "clear",
        "difference_update",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "intersection_update",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "symmetric_difference_update",
        "update",
    }
)
_DISPLAYS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def check_module_state(modules: Sequence[Module]) -> Iterator[Violation]:
    """No mutable registry, no rebinding of globals, no action on import."""
    containers = {module.name: module_containers(module) for module in modules}
    for module in modules:
        yield from changed_containers(module, containers)
        yield from rebound_globals(module)
        yield from import_effects(module)


def changed_containers(
    module: Module, containers: Mapping[str, frozenset[str]]
) -> Iterator[Violation]:
    """Changes to a module-level container, of this module or of another one."""
    finder = _ChangeFinder()
    finder.visit(module.tree)
    aliases = {entry.bound: import_target(entry) for entry in imports(module)}
    for change in finder.found:
        home, name = resolve(module.name, change.name, aliases)
        if name not in containers.get(home, frozenset()):
            continue
        if home == module.name and not change.in_function:
            continue  # a module may build its own value
        message = f"changes {name}, module-level state of {home}"
        yield module.violation(change.line, "state", name, message)


def import_target(entry: Import) -> str:
    return f"{entry.base}.{entry.name}" if entry.name else entry.base


def resolve(here: str, name: str, aliases: Mapping[str, str]) -> tuple[str, str]:
    """The module and the plain name that a dotted name in a module stands for."""
    if name in aliases:
        home, _, plain = aliases[name].rpartition(".")
        return home, plain
    prefix, _, plain = name.rpartition(".")
    if not prefix:
        return here, plain
    return aliases.get(prefix, prefix), plain


def rebound_globals(module: Module) -> Iterator[Violation]:
    """Functions that say `global`."""
    for node in module.nodes:
        if isinstance(node, ast.Global):
            for name in node.names:
                message = f"rebinds {name}, a module-level name"
                yield module.violation(node.lineno, "state", name, message)


def import_effects(module: Module) -> Iterator[Violation]:
    """Calls made at module level for their effect alone."""
    for statement in module_level(module.tree.body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            called = ast.unparse(statement.value.func)
            message = f"calls {called} when imported; importing must register nothing"
            yield module.violation(statement.lineno, "on-import", called, message)


def module_containers(module: Module) -> frozenset[str]:
    """Module-level names bound to a dict, list, set or the like."""
    return frozenset(
        target.id
        for statement in module_level(module.tree.body)
        for target, value in bindings(statement)
        if isinstance(target, ast.Name) and is_container(value)
    )


def module_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run on import, those in branches and loops included."""
    for statement in body:
        yield statement
        if isinstance(statement, _SCOPES):
            continue
        for block in ("body", "orelse", "finalbody", "handlers"):
            for child in getattr(statement, block, ()):
                inner = child.body if isinstance(child, ast.ExceptHandler) else [child]
                yield from module_level(inner)


def bindings(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The target and value pairs of an assignment."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield target, statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value


def is_container(value: ast.expr) -> bool:
    """Whether an expression makes a mutable container."""
    if isinstance(value, _DISPLAYS):
        return True
    if not isinstance(value, ast.Call):
        return False
    maker = value.func
    if isinstance(maker, ast.Subscript):  # dict[str, int]()
        maker = maker.value
    return (dotted(maker) or "").rpartition(".")[2] in CONTAINERS


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` for a chain of names, nothing for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        prefix = dotted(node.value)
        return f"{prefix}.{node.attr}" if prefix else None
    return None


def local_names(function: FunctionNode | ast.Lambda) -> frozenset[str]:
    """The names that a function binds for itself."""
    arguments = function.args
    names = {
        argument.arg
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *filter(None, (arguments.vararg, arguments.kwarg)),
        )
    }
    shared: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Global):
            shared.update(node.names)
    return frozenset(names - shared)


@frozen
class Change:
    """One place that changes a container in place."""

    line: int
    name: str
    in_function: bool


@frozen
class _ChangeFinder(ast.NodeVisitor):
    """Collects changes to names that the enclosing functions do not bind."""

    found: list[Change] = field(factory=list)
    scopes: list[FunctionNode | ast.Lambda] = field(factory=list)
    bound: dict[ast.AST, frozenset[str]] = field(factory=dict)
    """What functions bind for themselves, of those in which something changes."""

    @override
    def visit(self, node: ast.AST) -> None:
        for target in changed_targets(node):
            self.record(target)
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            self.scopes.append(node)
            self.generic_visit(node)
            self.scopes.pop()
        else:
            self.generic_visit(node)

    def record(self, target: ast.expr) -> None:
        name = dotted(target)
        if name is None:
            return
        first = name.split(".")[0]
        if not any(first in self.locals_of(scope) for scope in self.scopes):
            self.found.append(Change(target.lineno, name, bool(self.scopes)))

    def locals_of(self, scope: FunctionNode | ast.Lambda) -> frozenset[str]:
        if scope not in self.bound:
            self.bound[scope] = local_names(scope)
        return self.bound[scope]


def changed_targets(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that one node changes in place."""
    match node:
        case ast.Subscript(value=target, ctx=ast.Store() | ast.Del()):
            yield target
        case ast.Call(func=ast.Attribute(value=target, attr=method)):
            if method in CHANGES:
                yield target
        case ast.AugAssign(target=ast.Name() | ast.Attribute() as target):
            yield target
