"""`--doctor`: which names of jax a program needs, read from its sources.

Nothing runs. The script, or the module of a name, and every module that it imports are
read, as far as they have Python sources; those of verax, numpy and the standard library
are not. Where a file says nothing of jax, only its imports are looked for::

    python -m verax.jax --doctor train.py
"""

import ast
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from time import monotonic
from typing import Final, NamedTuple

from verax.jax.names import MODULES, Inert, InertFunction
from verax.jax.views import ABSENT, View

type Uses = dict[str, list[Place]]
"""Full names of jax, each with the places that mention it."""


class Place(NamedTuple):
    """A line that mentions a name, and whether the program is ready to miss it."""

    file: str
    line: int
    guarded: bool


UNREAD = frozenset(sys.stdlib_module_names) | set(
    [
        "jax",
        "jaxlib",
        "numpy",
        "scipy",
        "verax",
        "ml_dtypes",
        "pytest",
        "_pytest",
        "setuptools",
    ]
)
"""Modules whose sources say nothing about what a program needs of jax."""


KINDS = {
    "missing": "Missing",
    "guarded": "Missing, in code that is ready for it (try, hasattr, type checking)",
    "inert": "Can be imported, fails when used",
}
"""The kinds that the report lists, and their titles."""


NAMES_ONLY: Final = (
    "This looks for names alone; what a name means is seen only where it runs. What "
    "differs on purpose is in docs/differences.md."
)


IMPORTS: Final = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+"
    rb"(\((?:[^)#]|#[^\n]*)*|[^\n#;]*)"
    rb"|import[ \t]+([^\n#;]*))",
    re.MULTILINE,
)
"""The imports of a file, as far as they begin a line."""
COMMENT: Final = re.compile(rb"#[^\n]*")
PATIENCE: Final = 2.0
"""Seconds until the first word on how far the reading is."""


class Unreadable(Exception):
    """There is no such script or module, or no Python in it."""


def examine(script: str) -> str:
    """The report on a script or module and all that it imports, as lines for people.

    Raises:
        Unreadable: the script itself cannot be read.
    """
    uses, files = collect(script)
    kinds: dict[str, list[str]] = defaultdict(list)
    for name in sorted(uses):
        kinds[kind(name, uses[name])].append(name)
    lines = [
        f"{script}: {files} files read, which use {len(uses)} names of jax; "
        f"{len(kinds['missing'])} of them missing"
    ]
    for each, title in KINDS.items():
        if kinds[each]:
            lines += ["", f"{title}:", *table(kinds[each], uses)]
    lines += ["", NAMES_ONLY]
    return "\n".join(lines)


def table(names: Sequence[str], uses: Uses) -> Iterator[str]:
    """One line a name: how often it is mentioned, and where first."""
    width = max(map(len, names))
    for name in names:
        place = min(uses[name], key=lambda place: place.guarded)
        where = f"{shortened(place.file)}:{place.line}"
        yield f"  {name:{width}}  {len(uses[name]):3}x  {where}"


def shortened(file: str) -> str:
    """A file's path from the folder that Python imports it from."""
    above = [p for p in sys.path if p and file.startswith(os.path.join(p, ""))]
    return os.path.relpath(file, max(above, key=len)) if above else file


def collect(script: str) -> tuple[Uses, int]:
    """All uses of jax in a script and what it imports, and how many files were read."""
    path = [os.path.dirname(os.path.abspath(script)), *sys.path]
    uses: Uses = defaultdict(list)
    seen: set[str] = set()
    waiting = [start(script, path, seen)]
    files, next_word = 0, monotonic() + PATIENCE
    while waiting:
        module, file = waiting.pop()
        try:
            reader = read(module, file)
        except (OSError, SyntaxError, ValueError) as error:
            if not files:
                raise Unreadable(f"{script} cannot be read: {error}") from None
            continue
        files += 1
        for name, line in reader.used:
            uses[name].append(Place(file, line, line in reader.guarded))
        waiting += new_sources(reader.imported, seen, path)
        if monotonic() > next_word:
            print(f"{files} files read, {len(waiting)} to go", file=sys.stderr)
            next_word = monotonic() + PATIENCE
    return uses, files


def start(script: str, path: Sequence[str], seen: set[str]) -> tuple[str, str]:
    """The file of a script, or of a module that is named like one.

    Raises:
        Unreadable: there is none.
    """
    if os.path.isfile(script):
        return "__main__", script
    found = dict(new_sources([script], seen, path))
    if script not in found:
        raise Unreadable(
            f"there is no script {script!r}, and no module of that name that has a "
            "Python source"
        )
    return script, found[script]


def read(module: str, file: str) -> "Reader":
    """What a file says of jax, and what it imports.

    Raises:
        OSError, SyntaxError, ValueError: it cannot be read.
    """
    with open(file, "rb") as source:
        text = source.read()
    reader = Reader(module, file)
    if b"jax" in text or module == "__main__":
        reader.read_tree(ast.parse(text, file))
    else:
        reader.read_imports(text)
    return reader


def new_sources(
    names: Iterable[str], seen: set[str], path: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The source files of modules not seen before, and of the packages above them."""
    for name in names:
        parts = name.split(".")
        if parts[0] in UNREAD or name in seen:
            continue
        where: Sequence[str] | None = path
        for i in range(len(parts)):
            full = ".".join(parts[: i + 1])
            spec = PathFinder.find_spec(parts[i], where)
            if spec is None:
                break
            if full not in seen and spec.origin and spec.origin.endswith(".py"):
                yield full, spec.origin
            seen.add(full)
            if spec.submodule_search_locations is None:
                break
            where = list(spec.submodule_search_locations)
        seen.add(name)


class Reader:
    """The imports of one module, and its uses of jax."""

    def __init__(self, module: str, file: str) -> None:
        self.module = module
        self.is_package = os.path.basename(file) == "__init__.py"
        self.known: dict[str, str] = {}
        self.used: list[tuple[str, int]] = []
        self.imported: list[str] = []
        self.guarded: set[int] = set()

    def read_imports(self, text: bytes) -> None:
        """Note the imports of a file that does not speak of jax."""
        for dots, home, names, plain in IMPORTS.findall(text):
            listed = COMMENT.sub(b"", names or plain).decode(errors="replace")
            for part in listed.split(","):
                name = part.strip("() \t\r\n\\").partition(" ")[0]
                if plain:
                    self.imported.append(name)
                else:
                    above = self.above(len(dots), home.decode())
                    self.imported += [above, f"{above}.{name}"]

    def read_tree(self, tree: ast.Module) -> None:
        """Note imports and uses."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                self.read_import(node)
            elif isinstance(node, ast.ImportFrom):
                self.read_import_from(node)
            elif isinstance(node, ast.Try | ast.If) and is_guard(node):
                for inner in node.body:
                    end = inner.end_lineno or inner.lineno
                    self.guarded |= set(range(inner.lineno, end + 1))
        for node in nodes if self.known else ():
            if isinstance(node, ast.Attribute) and (name := self.dotted(node)):
                self.used.append((name, node.lineno))

    def read_import(self, node: ast.Import) -> None:
        """Note `import jax.numpy as jnp`."""
        for alias in node.names:
            self.imported.append(alias.name)
            if is_jax(alias.name):
                self.used.append((alias.name, node.lineno))
                self.known[alias.asname or "jax"] = (
                    alias.name if alias.asname else "jax"
                )

    def read_import_from(self, node: ast.ImportFrom) -> None:
        """Note `from jax import numpy as jnp`."""
        home = self.resolve(node)
        self.imported.append(home)
        for alias in node.names:
            full = f"{home}.{alias.name}"
            self.imported.append(full)
            if is_jax(home):
                self.used.append((home if alias.name == "*" else full, node.lineno))
                self.known[alias.asname or alias.name] = full

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of `a.b` where `a` is a module of jax."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            start = self.dotted(node.value)
            return f"{start}.{node.attr}" if start in MODULES else None
        return None

    def resolve(self, node: ast.ImportFrom) -> str:
        """The full name of the module that `from ... import` names."""
        return self.above(node.level, node.module or "")

    def above(self, level: int, module: str) -> str:
        """The full name of a module, so many levels up."""
        if not level:
            return module
        parts = self.module.split(".")
        keep = len(parts) - level + self.is_package
        return ".".join([*parts[:keep], *([module] if module else [])])


def is_jax(name: str) -> bool:
    """Whether a name is jax or something below it."""
    return name == "jax" or name.startswith("jax.")


def is_guard(node: ast.Try | ast.If) -> bool:
    """Whether a program asks first whether a name is there."""
    if isinstance(node, ast.If):
        asked = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
        asked |= {n.attr for n in ast.walk(node.test) if isinstance(n, ast.Attribute)}
        return not asked.isdisjoint({"hasattr", "TYPE_CHECKING", "__version__"})
    caught = [n for h in node.handlers for n in ([h.type] if h.type else [])]
    names = {n.id for c in caught for n in ast.walk(c) if isinstance(n, ast.Name)}
    errors = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception"}
    return len(caught) < len(node.handlers) or not names.isdisjoint(errors)


def kind(name: str, places: Sequence[Place]) -> str:
    """Whether verax has a name of jax: there, inert, guarded or missing."""
    home, _, last = name.rpartition(".")
    if name in MODULES:
        return "there"
    if home in MODULES:
        result = getattr(View(home, MODULES[home], frozenset()), last, ABSENT)
        if isinstance(result, Inert | InertFunction):
            return "inert"
        if result is not ABSENT:
            return "there"
    return "guarded" if all(place.guarded for place in places) else "missing"
