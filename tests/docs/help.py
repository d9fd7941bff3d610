"""What `help` of a public function must say: arguments, result and an example.

`python -m tests.docs.help numpy/reducing` lists what is missing in the functions that
are defined below that folder, or in that file.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import verax

MODULES = (
    *("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn"),
    *("nn.initializers", "random", "ops", "image", "scipy.cluster.vq", "scipy.fft"),
    *("scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.optimize"),
    *("scipy.signal", "scipy.sparse.linalg", "scipy.special", "scipy.stats"),
)
SOURCES = Path(verax.__file__).parent
SECTION = re.compile(r"^(Args|Returns|Yields|Raises):$")
NAME = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):")


class Function(NamedTuple):
    """A public function under the first name that it has, and where it is defined."""

    name: str
    function: Callable[..., Any]
    path: str


def public_functions() -> Iterator[Function]:
    """Every function of the public modules, once."""
    seen = set()
    for module in MODULES:
        holder = importlib.import_module(f"verax.{module}")
        shown = getattr(holder, "__all__", None) or dir(holder)
        for name in sorted(name for name in shown if not name.startswith("_")):
            function = getattr(holder, name)
            plain = inspect.unwrap(getattr(function, "__wrapped__", function))
            if not isinstance(plain, FunctionType) or id(plain) in seen:
                continue
            seen.add(id(plain))
            source = Path(plain.__code__.co_filename)
            if source.is_relative_to(SOURCES):
                path = source.relative_to(SOURCES).as_posix()
                yield Function(f"{module}.{name}", function, path)


def sections(doc: str) -> dict[str, list[str]]:
    """The lines below each heading, and before the first one those below ""."""
    out: dict[str, list[str]] = {"": []}
    current = ""
    for line in doc.splitlines():
        heading = SECTION.match(line)
        if heading is not None:
            current = heading[1]
            out[current] = []
        elif line and not line.startswith(" "):
            out[""].append(line)
        else:
            out[current].append(line)
    return out


def described(lines: list[str]) -> list[str]:
    """The names of the arguments that a section describes, in its order."""
    entries = [NAME.match(line) for line in lines]
    return [
        name.strip("*")
        for entry in entries
        if entry is not None
        for name in entry[1].split(", ")
    ]


def missing(function: Callable[..., Any]) -> list[str]:
    """What the docstring of a function lacks."""
    doc = inspect.getdoc(function) or ""
    parts = sections(doc)
    due = list(inspect.signature(function).parameters)
    said = described(parts.get("Args", []))
    out = []
    if said != due:
        unsaid = [name for name in due if name not in said]
        unknown = [name for name in said if name not in due]
        out.append(
            f"Args: {unsaid} missing, {unknown} unknown"
            if unsaid or unknown
            else f"Args: in the order {said}, not {due}"
        )
    if not any("".join(parts.get(name, [])).strip() for name in ("Returns", "Yields")):
        out.append("Returns:")
    if ">>> " not in doc:
        out.append("an example")
    return out


def main(prefix: str = "") -> None:
    for entry in public_functions():
        if entry.path.startswith(prefix):
            for text in missing(entry.function):
                print(f"{entry.path}: {entry.name}: {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
