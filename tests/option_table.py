"""The page of options, written from the table that is the mechanism.

python -m tests.option_table     # after a change of an option
"""

from collections.abc import Iterator
from pathlib import Path

from verax.api.config import config
from verax.api.config.options import ROWS, Option

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
START = "<!-- The tables below are written by `python -m tests.option_table`. -->"


def tables() -> str:
    """Three tables: options that do something, that change nothing, that are fixed."""
    live = [row for row in ROWS if not (row.fixed or row.idle)]
    parts = [
        ("Options", "| option | values | default | |", live, live_cells),
        ("Without effect", "| option | why |", rows("idle"), short_cells),
        ("With one value", "| option | value | why |", rows("fixed"), fixed_cells),
    ]
    text = ""
    for title, heading, actual, cells in parts:
        rule = "|---" * (heading.count("|") - 1) + "|"
        lines = [f"| {' | '.join(cells(row))} |" for row in actual]
        text += "\n".join([f"\n## {title}\n", heading, rule, *lines, ""])
    return text


def rows(kind: str) -> Iterator[Option]:
    """The options of a kind."""
    return (row for row in ROWS if getattr(row, kind))


def live_cells(row: Option) -> list[str]:
    """Name, values, default, effect; a star says that there is a context manager."""
    values = ", ".join(row.choices) or row.kind.__name__
    if row.optional:
        values += ", None"
    star = "*" if hasattr(config, row.name) else ""
    return [f"`{row.name}`{star}", values, f"`{row.default!r}`", row.does]


def short_cells(row: Option) -> list[str]:
    return [f"`{row.name}`", row.does]


def fixed_cells(row: Option) -> list[str]:
    return [f"`{row.name}`", f"`{row.default!r}`", row.does]


def page() -> str:
    """The page with its tables as they must be."""
    return PAGE.read_text().partition(START)[0] + START + "\n" + tables()


if __name__ == "__main__":
    PAGE.write_text(page())
