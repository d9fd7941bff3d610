"""Writes the stubs of the packages that hold no code (`verax.ir.facade`).

One idea: a facade is a literal table in `__init__.py`, and `__init__.pyi` says the same
in imports, which type checkers and editors read; the one is made of the other::

    python -m tests.stubs     # after a change of a table
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from verax.ir.facade import homes

SOURCE = Path(__file__).parent.parent / "src" / "verax"
WIDTH = 88
HEAD = """\
# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
"""


def table_of(tree: ast.Module, package: str) -> dict[str, tuple[str, str]] | None:
    """The names that a parsed package gives to `facade`, if it does so."""
    for node in tree.body:
        match node:
            case ast.Assign(
                value=ast.Call(
                    func=ast.Name("facade"), args=[_, names], keywords=keywords
                )
            ):
                given = {k.arg: ast.literal_eval(k.value) for k in keywords}
                return homes(package, ast.literal_eval(names), given.get("modules", ""))
    return None


def stub(tree: ast.Module, package: str) -> str | None:
    """The text of the stub of a package, or None if it is no facade."""
    table = table_of(tree, package)
    if table is None:
        return None
    by_home: dict[str, dict[str, str]] = {}
    aliases = []
    for name, (home, original) in table.items():
        words = by_home.setdefault(home if original else package, {})
        if original in ("", name):
            words[name] = f"{name} as {name}"
        else:
            words.setdefault(original, original)
            aliases.append(f"{name} = {original}")
    shown = [name for name in table if not name.startswith("_")]
    public = [f'"{name}"' for name in sorted(shown, key=kind_and_name)]
    lines = [
        line
        for home, words in by_home.items()
        for line in statement(home, list(words.values()))
    ]
    listed = ["__all__ = [", *wrapped(", ".join(public)), "]"]
    return HEAD + "\n".join([*lines, *aliases, *constants(tree), *listed]) + "\n"


def kind_and_name(name: str) -> tuple[int, list[str | int]]:
    """The order of `__all__`: constants, classes, the rest; 2 comes before 10."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    parts = re.split(r"(\d+)", name)
    return kind, [int(part) if part.isdigit() else part for part in parts]


def statement(home: str, words: list[str]) -> Iterator[str]:
    """An import of these names, on as many lines as it needs."""
    whole = f"from {home} import {', '.join(words)}"
    if len(whole) <= WIDTH:
        yield whole
        return
    yield f"from {home} import ("
    # A name and its `as` stay together: the wrapping sees no space between them.
    for line in wrapped(", ".join(words).replace(" as ", "\0as\0")):
        yield line.replace("\0", " ")
    yield ")"


def wrapped(words: str) -> Iterator[str]:
    """Indented lines of words with a comma after each."""
    for line in textwrap.wrap(f"{words},", WIDTH - 4, break_on_hyphens=False):
        yield "    " + line


def constants(tree: ast.Module) -> Iterator[str]:
    """The types of the strings and numbers that the package itself holds."""
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(str())):
                yield f"{name}: str"
            case ast.Assign([ast.Name(name)], ast.Tuple(parts)):
                yield f"{name}: tuple[{', '.join(['int'] * len(parts))}]"


def stubs() -> Iterator[tuple[Path, str]]:
    """Every stub that is due, by its path."""
    for path in sorted(SOURCE.rglob("__init__.py")):
        parts = path.parent.relative_to(SOURCE.parent).parts
        text = stub(ast.parse(path.read_text()), ".".join(parts))
        if text is not None:
            yield path.with_suffix(".pyi"), text


def main() -> None:
    for path, text in stubs():
        path.write_text(text)


if __name__ == "__main__":
    main()
