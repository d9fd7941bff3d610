"""What the architecture checks look at: parsed modules, their imports, violations.

module = Module.parse("verax.ir.avals", "import numpy", path="src/verax/ir/avals.py")
[statement.base for statement in imports(module)]  # ["numpy"]
"""

import ast
from collections.abc import Iterable, Iterator
from typing import Self

from attrs import field, frozen

PACKAGE = "verax"

type FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@frozen
class Violation:
    """One place where the package leaves its rules."""

    path: str
    line: int
    rule: str
    symbol: str
    message: str

    @property
    def key(self) -> str:
        """What an allowance names: stable when lines move."""
        return f"{self.rule} {self.path} {self.symbol}".rstrip()

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.message}"


@frozen
class Module:
    """A parsed module under its absolute name."""

    name: str
    path: str
    tree: ast.Module = field(repr=False)
    lines: int
    is_package: bool
    nodes: tuple[ast.AST, ...] = field(repr=False, eq=False)
    """All nodes of the tree: each check looks through them."""
    imported: tuple["Import", ...] = field(repr=False, eq=False)
    """What `imports` says."""

    @classmethod
    def parse(
        cls, name: str, source: str, *, path: str = "", is_package: bool = False
    ) -> Self:
        path = path or name.replace(".", "/") + ".py"
        tree = ast.parse(source, filename=path)
        lines = len(source.splitlines())
        nodes = tuple(ast.walk(tree))
        imported = tuple(imports_among(nodes, name, is_package))
        return cls(name, path, tree, lines, is_package, nodes, imported)

    def violation(self, line: int, rule: str, symbol: str, message: str) -> Violation:
        return Violation(self.path, line, rule, symbol, message)


@frozen
class Import:
    """One imported name; `name` is empty for `import base`."""

    line: int
    base: str
    name: str
    bound: str


# What names the module that it loads later by a literal first argument.
LAZY = frozenset({"LazyFunction", "LazyMapping", "LazyModule", "module_named"})


def imports(module: Module) -> tuple[Import, ...]:
    """Every import of a module, at whatever depth, with absolute names.

    What is loaded later counts: it is an import as any other to all rules but time.
    """
    return module.imported


def imports_among(
    nodes: Iterable[ast.AST], name: str, is_package: bool
) -> Iterator[Import]:
    """The imports among the nodes of a module of this name."""
    for node in nodes:
        if isinstance(node, ast.Call):
            match node:
                case ast.Call(ast.Name(called), [ast.Constant(str(base)), *_]):
                    if called in LAZY:
                        yield Import(node.lineno, base, "", base)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name
                yield Import(node.lineno, alias.name, "", bound)
        elif isinstance(node, ast.ImportFrom):
            base = absolute_base(node, name, is_package)
            for alias in node.names:
                bound = alias.asname or alias.name
                yield Import(node.lineno, base, alias.name, bound)


def absolute_base(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    """The module after `from`, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    climb = node.level - 1 if is_package else node.level
    parts = name.split(".")
    stem = parts[: len(parts) - climb]
    return ".".join([*stem, node.module] if node.module else stem)


def functions(module: Module) -> Iterator[FunctionNode]:
    """Every function of a module, nested ones and methods included."""
    for node in module.nodes:
        if isinstance(node, FUNCTIONS):
            yield node
