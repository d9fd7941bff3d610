"""The names of files and functions that a page mentions, looked up in the tree.

A page says them in backticks; paths start at the top of the repository, at src/verax or
at docs::

    `api/jit.py`                    the file exists
    `api/autodiff/grad.py: grad, one_like`   and defines these
    `PjitFunction.slow_call`                  a file that the page mentions defines it
    `verax.transforms.evaluate`              the attribute is there
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "verax"
HOMES = (ROOT, SOURCE, ROOT / "docs")
TOPS = frozenset(("docs", "property_tests", "src", "tests", "typings"))
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TOKEN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"((?:[\w.-]+/)*[\w-]+\.(?:py|pyi|md|txt|toml)|(?:[\w.-]+/)+)")
NAMES = re.compile(r"[A-Za-z_][\w.]*(?:, [A-Za-z_][\w.]*)*")
MEMBER = re.compile(r"[A-Z]\w*\.[a-z_]\w*")
PUBLIC = re.compile(r"verax(?:\.\w+)+")


def tokens(text: str) -> list[str]:
    """What stands in backticks, outside of examples."""
    return TOKEN.findall(FENCE.sub("", text))


def is_ours(path: str) -> bool:
    """Whether a path claims to be one of this repository."""
    first, _, rest = path.partition("/")
    return bool(rest) and (first in TOPS or (SOURCE / first).is_dir())


def found(path: str) -> Path | None:
    """The file or folder of that path."""
    places = [home / path for home in HOMES]
    return next((place for place in places if place.exists()), None)


@cache
def defined(path: Path) -> frozenset[str]:
    """What a file defines at its top, and the members of its classes."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        names.update(bound(node))
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                names.update(f"{node.name}.{name}" for name in bound(member))
    return frozenset(names)


def bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement binds; imports do not count."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.TypeAlias):
        yield node.name.id
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def has_attribute(name: str) -> bool:
    """Whether `verax.a.b` leads to something."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value: object = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def mistakes(text: str) -> list[str]:
    """What a page says of the tree that is not so."""
    wrong: list[str] = []
    known: set[str] = set()
    members: list[str] = []
    for token in tokens(text):
        path, colon, names = token.partition(": ")
        if FILE.fullmatch(path) and is_ours(path):
            file = found(path)
            if file is None:
                wrong.append(f"{path} does not exist")
                continue
            here = defined(file) if file.suffix == ".py" else frozenset[str]()
            known |= here
            if colon and NAMES.fullmatch(names):
                missing = [name for name in names.split(", ") if name not in here]
                wrong += [f"{path} does not define {name}" for name in missing]
        elif FILE.fullmatch(path):
            continue  # somebody else's, or at the top of the repository
        elif PUBLIC.fullmatch(token) and not has_attribute(token):
            wrong.append(f"{token} does not exist")
        elif MEMBER.fullmatch(token):
            members.append(token)
    if known:
        lacking = [name for name in members if name not in known]
        wrong += [f"no file of the page defines {name}" for name in lacking]
    return wrong
