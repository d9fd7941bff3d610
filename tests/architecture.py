"""Reads the package and tells where it leaves its own rules; it parses, never imports.

Every check is a plain function from parsed modules to violations, so that each can be
tried on a planted snippet as well as on the real tree.

    for violation in check_all(load(Path("src/verax"))):
        print(violation)
"""

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from attrs import frozen

from tests.layout import LATE, ORDER, PACKAGE_FILES, level
from tests.module_state import check_module_state
from tests.parsed import (
    FUNCTIONS,
    LAZY,
    PACKAGE,
    FunctionNode,
    Import,
    Module,
    Violation,
    functions,
    imports,
)
from tests.primitive_lists import check_primitive_lists

FLOORS = {"ir": 0, "rules": 1, "ops": 2, "transforms": 3, "backend": 4, "api": 5}
FRONTENDS = 6
TOP = 7
ROOF = 8
"""What shows the whole package under another name: nothing imports it."""

FILE_LINES = 800
FUNCTION_LINES = 60
CLASS_METHODS = 20

# Third-party packages, and the folder that alone may import one of them.
COMMON_PACKAGES = frozenset({"attrs", "ml_dtypes", "numpy", "pyrsistent"})
SHAPE_CHECKERS = frozenset({"beartype", "jaxtyping"})
ABOVE_IR_PACKAGES = frozenset({"opt_einsum", "scipy"})
PACKAGE_HOMES = {
    "jaxlib": "backend",
    "hypothesis": "verify",
    "matplotlib": "api",
    "mpmath": "verify",
    "pytest": "verify",
    "rich": "verify",
    "sympy": "verify",
}
# Modules that draw on the terminal, and load what they need for it when asked to.
DISPLAYS = frozenset(
    {"verax.experimental.checkpoint.progress", "verax.backend.runtime.background"}
)
# The module that runs programs in mpmath's numbers, and loads it when asked to.
LONG_NUMBERS = "verax.transforms.precision.multiple"

# What only some operating systems have, and the one module that may ask for it.
SYSTEM_HOME = "verax.ir.system"
SYSTEM_MODULES = frozenset(
    (
        *("fcntl", "grp", "msvcrt", "posix", "pty", "pwd", "resource", "syslog"),
        *("termios", "tty", "winreg"),
    )
)
SYSTEM_PARTS = {
    "os": frozenset(
        (
            *("fork", "forkpty", "getegid", "geteuid", "getgid", "getuid", "killpg"),
            *("mkfifo", "name", "register_at_fork", "sched_getaffinity", "setsid"),
            "uname",
        )
    ),
    "sys": frozenset(("getwindowsversion", "platform")),
}

type Check = Callable[[Sequence[Module]], Iterator[Violation]]


@frozen
class Edge:
    """One import of a module of the package by another."""

    statement: Import
    target: str


def floor(name: str) -> int:
    """The floor of a module; what is in no named folder belongs to the frontends."""
    if name == PACKAGE:
        return TOP
    top = name.split(".")[1]
    return ROOF if top == "jax" else FLOORS.get(top, FRONTENDS)


def folder(name: str) -> str:
    """The top folder of a module below the package, or its own name."""
    return "" if name == PACKAGE else name.split(".")[1]


def internal_edges(module: Module, known: frozenset[str]) -> Iterator[Edge]:
    """The imports of a module that stay inside the package."""
    for statement in imports(module):
        if statement.base.split(".")[0] != PACKAGE:
            continue
        member = f"{statement.base}.{statement.name}"
        # What is missing from `known` is an attribute, defined in the base itself.
        names_folder = statement.base == PACKAGE and statement.name in FLOORS
        target = member if member in known or names_folder else statement.base
        yield Edge(statement, target)


def module_names(modules: Sequence[Module]) -> frozenset[str]:
    return frozenset(module.name for module in modules)


def check_floors(modules: Sequence[Module]) -> Iterator[Violation]:
    """Imports go down, or sideways on one floor; nobody imports the package itself."""
    known = module_names(modules)
    for module in modules:
        here = floor(module.name)
        for edge in internal_edges(module, known):
            there = floor(edge.target)
            if there > here:
                message = f"imports upward: {edge.target} (floor {there} from {here})"
                yield module.violation(
                    edge.statement.line, "floors", edge.target, message
                )


def check_cycles(modules: Sequence[Module]) -> Iterator[Violation]:
    """Modules of one floor may import each other, but never in a circle."""
    known = module_names(modules)
    graph = {
        module.name: {
            edge.target
            for edge in internal_edges(module, known)
            if edge.target != module.name
        }
        for module in modules
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = list(reversed(error.args[1]))
        module = next(module for module in modules if module.name == cycle[0])
        line = next(
            edge.statement.line
            for edge in internal_edges(module, known)
            if edge.target == cycle[1]
        )
        message = "imports in a circle: " + " -> ".join(cycle)
        yield module.violation(line, "cycles", cycle[1], message)


def check_packages(modules: Sequence[Module]) -> Iterator[Violation]:
    """Only runtime packages; jaxlib only in backend/, testing packages in verify/."""
    for module in modules:
        for statement in imports(module):
            package = statement.base.split(".")[0]
            complaint = package_complaint(module.name, package)
            if complaint:
                yield module.violation(statement.line, "packages", package, complaint)


def package_complaint(module: str, package: str) -> str:
    """What is wrong with this import of a package, or nothing."""
    if package == PACKAGE or package in sys.stdlib_module_names:
        return ""
    if package == "jax":
        return "imports jax, which verax never does"
    if package in PACKAGE_HOMES:
        home = PACKAGE_HOMES[package]
        if folder(module) == home or (package == "rich" and module in DISPLAYS):
            return ""
        if package == "mpmath" and module == LONG_NUMBERS:
            return ""
        return f"imports {package} outside {home}/"
    if package in SHAPE_CHECKERS:
        right = module == "verax.api.arguments.checked_shapes"
        return "" if right else f"imports {package} outside checked_shapes"
    allowed = COMMON_PACKAGES | (ABOVE_IR_PACKAGES if floor(module) else frozenset())
    return "" if package in allowed else f"imports {package}, not allowed here"


def check_late_imports(modules: Sequence[Module]) -> Iterator[Violation]:
    """Imports inside functions are of what may wait, and none calls the machinery."""
    known, used = module_names(modules), set[str]()
    for module in modules:
        spans = [(f.lineno, f.end_lineno or f.lineno) for f in functions(module)]
        inside = {
            line
            for node in module.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            and any(first <= node.lineno <= last for first, last in spans)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        for statement in imports(module):
            if statement.line not in inside or is_named(module, statement.line):
                continue
            target = late_target(statement, known)
            used.add(target)
            if target not in LATE:
                message = f"imports {target} inside a function: see LATE in the layout"
                yield module.violation(statement.line, "late", target, message)
        for name in ("__import__", "import_module"):
            for line in mentions(module, name):
                message = "imports by calling the import machinery"
                yield module.violation(line, "late", name, message)
    for target in sorted(LATE.keys() - used):
        if target in known:
            module = next(m for m in modules if m.name == target)
            message = "is in LATE, but nothing imports it inside a function"
            yield module.violation(1, "late", target, message)


def late_target(statement: Import, known: frozenset[str]) -> str:
    """What `LATE` calls an import: a module of ours, or the name of another package."""
    member = f"{statement.base}.{statement.name}"
    if statement.base.split(".")[0] != PACKAGE:
        return statement.base.split(".")[0]
    return member if member in known else statement.base


def is_named(module: Module, line: int) -> bool:
    """Whether what is imported on this line is named in a call, and not by `import`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in LAZY
        and node.lineno == line
        for node in module.nodes
    )


def check_type_checking(modules: Sequence[Module]) -> Iterator[Violation]:
    """No import that only the type checker sees."""
    for module in modules:
        for line in mentions(module, "TYPE_CHECKING"):
            message = "hides an import behind TYPE_CHECKING"
            yield module.violation(line, "type-checking", "", message)


def check_any(modules: Sequence[Module]) -> Iterator[Violation]:
    """`Any` is nowhere in ir/, but for what programs of users read by name.

    A param or a constant has the type that its name says, and `bind` returns it.
    """
    for module in modules:
        if folder(module.name) != "ir" or module.name == "verax.ir.jaxpr":
            continue
        for line in mentions(module, "Any"):
            yield module.violation(line, "any", "", "says Any in ir/")


MEMO_HOMES = frozenset({"verax.rules.values.memo", "verax.rules.values.state"})
BARE_MEMOS = ("lru_cache", "cache")


def check_memos(modules: Sequence[Module]) -> Iterator[Violation]:
    """Above ir/, memos are made by `memo` and `pure`, whose keys are complete.

    `memoised` of ir/ may wrap a class there, whose constructor reads no state.
    """
    for module in modules:
        if folder(module.name) == "ir" or module.name in MEMO_HOMES:
            continue
        for node in module.nodes:
            match node:
                case ast.ImportFrom(module="functools", names=names, lineno=line):
                    bare = [a.name for a in names if a.name in BARE_MEMOS]
                case ast.Attribute(
                    value=ast.Name(id="functools"), attr=attr, lineno=line
                ):
                    bare = [attr] if attr in BARE_MEMOS else []
                case ast.FunctionDef(decorator_list=marks, lineno=line):
                    names_of = [m.id for m in marks if isinstance(m, ast.Name)]
                    bare = [name for name in names_of if name == "memoised"]
                case _:
                    continue
            for name in bare:
                message = (
                    f"makes a memo by {name}: use memo or pure of rules/values/memo.py"
                )
                yield module.violation(line, "memos", name, message)


def check_system(modules: Sequence[Module]) -> Iterator[Violation]:
    """What only some operating systems have is used in one module, which says so."""
    for module in modules:
        if module.name == SYSTEM_HOME:
            continue
        for statement in imports(module):
            if statement.base.split(".")[0] in SYSTEM_MODULES:
                yield special(module, statement.line, statement.base)
        for node in module.nodes:
            match node:
                case ast.Attribute(value=ast.Name(id=base), attr=attr, lineno=line):
                    if attr in SYSTEM_PARTS.get(base, ()):
                        yield special(module, line, f"{base}.{attr}")
                case ast.Call(
                    func=ast.Attribute(attr="CDLL"),
                    args=[ast.Constant(value=None)],
                    lineno=line,
                ):
                    yield special(module, line, "CDLL(None)")


def special(module: Module, line: int, name: str) -> Violation:
    message = f"uses {name}, which not every system has: ir/system.py is for that"
    return module.violation(line, "system", name, message)


def check_reprs(modules: Sequence[Module]) -> Iterator[Violation]:
    """Attrs classes share their text: attrs would compile one at each import."""
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and compiles_repr(node):
                message = f"{node.name} has a repr of its own: repr=False, ReprMixin"
                yield module.violation(node.lineno, "reprs", node.name, message)


def compiles_repr(node: ast.ClassDef) -> bool:
    """Whether attrs writes a method `__repr__` for the class."""
    for mark in node.decorator_list:
        name, options = (
            (mark.func, mark.keywords) if isinstance(mark, ast.Call) else (mark, [])
        )
        if isinstance(name, ast.Name) and name.id in ("frozen", "define"):
            methods = [item.name for item in node.body if isinstance(item, FUNCTIONS)]
            chosen = [option.arg for option in options]
            return "repr" not in chosen and "__repr__" not in methods
    return False


def mentions(module: Module, name: str) -> list[int]:
    """The lines on which a name is read, reached as an attribute, or imported."""
    lines = set()
    for node in module.nodes:
        match node:
            case (
                ast.Name(id=found, lineno=line)
                | ast.Attribute(attr=found, lineno=line)
                | ast.alias(name=found, lineno=line)
            ) if found == name:
                lines.add(line)
    return sorted(lines)


def check_sizes(modules: Sequence[Module]) -> Iterator[Violation]:
    """Files, functions and classes that one can read at a sitting."""
    for module in modules:
        lines = module.lines - sum(map(docstring_lines, module.nodes))
        if lines > FILE_LINES:
            message = f"is {lines} lines long, more than {FILE_LINES}"
            yield module.violation(1, "file-lines", "", message)
        for node in module.nodes:
            if isinstance(node, FUNCTIONS):
                yield from long_function(module, node)
            elif isinstance(node, ast.ClassDef):
                yield from wide_class(module, node)


def long_function(module: Module, node: FunctionNode) -> Iterator[Violation]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
    if lines > FUNCTION_LINES:
        message = f"{node.name} is {lines} lines long, more than {FUNCTION_LINES}"
        yield module.violation(node.lineno, "function-lines", node.name, message)


def docstring_lines(node: ast.AST) -> int:
    """How many lines the docstring of a function has beside its first.

    They say what each argument is and show an example: a limit on them would be paid
    by the reader of `help`.
    """
    if not isinstance(node, FUNCTIONS) or ast.get_docstring(node) is None:
        return 0
    text = node.body[0]
    return (text.end_lineno or text.lineno) - text.lineno


def wide_class(module: Module, node: ast.ClassDef) -> Iterator[Violation]:
    methods = sum(isinstance(item, FUNCTIONS) for item in node.body)
    if methods > CLASS_METHODS:
        message = f"{node.name} has {methods} methods, more than {CLASS_METHODS}"
        yield module.violation(node.lineno, "class-methods", node.name, message)


def check_docstrings(modules: Sequence[Module]) -> Iterator[Violation]:
    """A module opens by saying what it is."""
    for module in modules:
        if not ast.get_docstring(module.tree):
            yield module.violation(1, "docstrings", "", "has no module docstring")


def room(name: str) -> tuple[str, str] | None:
    """The floor and the package in it, or the lone module, where a module stands."""
    parts = name.split(".")
    return (parts[1], parts[2]) if len(parts) > 2 and parts[1] in ORDER else None


def check_order(modules: Sequence[Module]) -> Iterator[Violation]:
    """Inside a floor, packages import those that stand before them."""
    known = module_names(modules)
    for module in modules:
        here = room(module.name)
        if here is None:
            continue
        rank = level(*here)
        if rank is None:
            message = f"has no place in the order of {here[0]}/ (tests/layout.py)"
            yield module.violation(1, "order", here[1], message)
            continue
        for edge in internal_edges(module, known):
            there = room(edge.target)
            if there is None or there == here or there[0] != here[0]:
                continue
            other = level(*there)
            if other is not None and other >= rank:
                message = f"{here[1]} imports {edge.target}, which does not stand below"
                yield module.violation(
                    edge.statement.line, "order", edge.target, message
                )


def check_package_sizes(modules: Sequence[Module]) -> Iterator[Violation]:
    """Packages in which one finds a file by its name."""
    packages = {module.name: module for module in modules if module.is_package}
    counts = Counter(
        module.name.rpartition(".")[0] for module in modules if not module.is_package
    )
    for name, package in packages.items():
        if counts[name] > PACKAGE_FILES:
            message = f"holds {counts[name]} files, more than {PACKAGE_FILES}"
            yield package.violation(1, "package-files", "", message)


CHECKS: tuple[Check, ...] = (
    check_floors,
    check_cycles,
    check_order,
    check_package_sizes,
    check_packages,
    check_late_imports,
    check_type_checking,
    check_module_state,
    check_any,
    check_memos,
    check_system,
    check_reprs,
    check_primitive_lists,
    check_sizes,
    check_docstrings,
)


def check_all(modules: Sequence[Module]) -> list[Violation]:
    """Everything that every check finds, in the order of the files."""
    actual = [violation for check in CHECKS for violation in check(modules)]
    return sorted(actual, key=lambda violation: (violation.path, violation.line))


def load(root: Path) -> tuple[Module, ...]:
    """Parse every module of the package that lies in this folder.

    What a facade loads when it is asked is written in its stub, as imports.
    """
    return tuple(load_module(root, path) for path in sorted(root.rglob("*.py")))


def load_module(root: Path, path: Path) -> Module:
    parts = path.relative_to(root).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join((PACKAGE, *(parts[:-1] if is_package else parts)))
    shown = path.relative_to(root.parent.parent).as_posix()
    stub = path.with_suffix(".pyi")
    module = Module.parse(name, path.read_text(), path=shown, is_package=is_package)
    if stub.exists():
        module.tree.body += ast.parse(stub.read_text()).body
    return module
