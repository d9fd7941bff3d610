"""The map of the packages, floor by floor, for docs/contributing.md.

The order is that of `tests.layout`, and what a package holds is the first line of its
docstring::

    python -m tests.docs.package_map        # writes the map into the page
"""

import ast
from pathlib import Path

from tests.layout import ORDER

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "verax"
PAGE = ROOT / "docs" / "contributing.md"
START, END = "<!-- packages -->\n", "<!-- end of packages -->\n"
FLOORS = {
    "ir": 0,
    "rules": 1,
    "ops": 2,
    "transforms": 3,
    "backend": 4,
    "api": 5,
    "numpy": 6,
    "verify": 6,
}


def summary(floor: str, name: str) -> str:
    """The first line of the docstring of a package or a module, without its floor."""
    base = SOURCE / floor / name
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    first = paragraph.removeprefix(f"Floor {FLOORS[floor]}: ")
    return first.removesuffix(f" (floor {FLOORS[floor]}).").rstrip(".")


def package_map() -> str:
    """One table for each floor that has packages, lowest package first."""
    lines: list[str] = []
    for floor, number in FLOORS.items():
        lines += [f"**Floor {number}, `{floor}/`**", "", "| | |", "|---|---|"]
        for level in ORDER[floor]:
            for name in sorted(level.split()):
                folder = (SOURCE / floor / name).is_dir()
                label = f"{floor}/{name}/" if folder else f"{floor}/{name}.py"
                lines.append(f"| `{label}` | {summary(floor, name)} |")
        lines.append("")
    return "\n".join(lines)


def parts(page: str) -> tuple[str, str, str]:
    """What stands before the map, the map, and what stands after it."""
    before, _, rest = page.partition(START)
    inside, _, after = rest.partition(END)
    return before, inside, after


def main() -> None:
    """Write the map into the page."""
    before, _, after = parts(PAGE.read_text())
    PAGE.write_text(before + START + package_map() + END + after)


if __name__ == "__main__":
    main()
