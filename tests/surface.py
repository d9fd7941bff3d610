"""The public surface: every name that users reach from `verax`, with its signature.

One idea: a public name may move to another file and nobody notices, but it may not lose
an argument; so the names and signatures stand sorted in a file, and a test compares::

    python -m tests.surface     # after a change of what users see
"""

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, NewType

GOLDEN = Path(__file__).parent / "goldens" / "surface.txt"
ROOTS = ("verax", "verax.verify")
OURS = "verax"
LONG = 8
"""Default values with so many parts are named by their type."""


def public_names(module: ModuleType) -> list[str]:
    """What a module shows: its `__all__`, or what a type checker lets others import.

    That is what it defines itself, and what it imports under a repeated name
    (`import x as x`).
    """
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    tree = ast.parse(inspect.getsource(module))
    actual = {name for node in tree.body for name in shown(node)}
    return sorted(name for name in actual if not name.startswith("_"))


def shown(node: ast.stmt) -> Iterator[str]:
    """The names that one statement of a module gives to others."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (x.id for x in targets if isinstance(x, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.TypeAlias(name=ast.Name(id=name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (x.name for x in names if x.asname == x.name)


def surface() -> list[str]:
    """All lines, sorted: one for each name, and one for each member of a class."""
    lines: set[str] = set()
    for module, name, value in public_values():
        if isinstance(value, ModuleType):
            lines.add(f"{module}.{name}: module")
        else:
            lines.update(described(f"{module}.{name}", value))
    return sorted(lines)


def public_values() -> Iterator[tuple[str, str, Any]]:
    """Every public value with its name and the module that shows it.

    Modules are among them, but not those of others.
    """
    seen: set[ModuleType] = set()
    waiting = [import_module(name) for name in ROOTS]
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        for name in public_names(module):
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                if not value.__name__.startswith(f"{OURS}."):
                    continue
                waiting.append(value)
            yield module.__name__, name, value


def public_classes() -> dict[type, set[str]]:
    """The classes of ours that users reach, with the modules that show them."""
    actual: dict[type, set[str]] = {}
    for module, _, value in public_values():
        if isinstance(value, type) and is_ours(value):
            actual.setdefault(value, set()).add(module)
    return actual


def described(name: str, value: Any) -> Iterator[str]:
    """The line of a value, and those of its members if it is a class of ours."""
    if isinstance(value, type):
        yield f"class {name}({', '.join(foreign_bases(value))})"
        if is_ours(value):
            yield from members(name, value)
    else:
        text = signature(value) if is_ours(value) or is_ours(type(value)) else ""
        yield f"{name}{text}" if text else f"{name}: {kind_of(value)}"


def kind_of(value: object) -> str:
    """The name of a type; that of unions varies between versions of Python."""
    return "UnionType" if isinstance(value, UnionType) else type(value).__name__


def is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).split(".")[0] == OURS


def foreign_bases(cls: type) -> list[str]:
    """The nearest ancestors that Python or NumPy defines: what `except` may name."""
    actual: list[type] = []
    for base in cls.__mro__[1:]:
        covered = any(issubclass(other, base) for other in actual)
        if not (covered or is_ours(base) or base is object):
            actual.append(base)
    return [base.__name__ for base in actual]


def members(name: str, cls: type) -> Iterator[str]:
    """How a class is called, and what it or a base of ours defines publicly."""
    if not issubclass(cls, Enum) and not getattr(cls, "_is_protocol", False):
        yield f"{name}.__init__{signature(cls) if is_called_as_ours(cls) else '(...)'}"
    for member in dir(cls):
        home = next((base for base in cls.__mro__ if member in vars(base)), object)
        if member.startswith("_") or not is_ours(home):
            continue
        actual = inspect.getattr_static(cls, member)
        if isinstance(actual, classmethod | staticmethod):
            actual = actual.__func__
        text = signature(actual) if inspect.isroutine(actual) else ""
        yield f"{name}.{member}{text}" if text else f"{name}.{member}"


def is_called_as_ours(cls: type) -> bool:
    """Whether no class of C makes its objects: what Python knows of these varies."""
    makers = [base for base in cls.__mro__ if {"__init__", "__new__"} & {*vars(base)}]
    return makers[0] is object or is_ours(makers[0])


def signature(value: Any) -> str:
    """The parameters of a callable with their defaults, without types."""
    if not callable(value):
        return ""
    if isinstance(value, NewType):
        return "(...)"
    try:
        actual = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    empty = inspect.Parameter.empty
    parameters = [
        p.replace(
            annotation=empty,
            default=p.default if p.default is empty else Default(p.default),
        )
        for p in actual.parameters.values()
    ]
    return str(inspect.Signature(parameters))


class Default:
    """A default value that prints alike in every process."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        value = self.value
        if value is None or isinstance(value, bool | int | float | complex | str):
            return repr(value)
        if isinstance(value, Enum):
            return f"{type(value).__name__}.{value.name}"
        if isinstance(value, tuple) and len(value) < LONG:
            inner = ", ".join(repr(Default(x)) for x in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        name = getattr(value, "__name__", None)
        return str(name) if name else f"<{type(value).__name__}>"


def main() -> None:
    GOLDEN.write_text("\n".join(surface()) + "\n")


if __name__ == "__main__":
    main()
