"""Wrapped functions keep their signatures under mypy --strict."""

import re
from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api", reason="mypy is not installed")

ROOT = Path(__file__).parents[2]
SNIPPET = Path(__file__).parent / "snippet.py"
REPORT = re.compile(r"snippet\.py:(\d+): (error|note): (.*?)(?:  \[([\w-]+)\])?$")
REVEALED = re.compile(r'Revealed type is "(.*)"$')


def expected() -> tuple[dict[int, set[str]], dict[int, str]]:
    """The errors and the revealed types that the comments of the snippet promise."""
    errors: dict[int, set[str]] = {}
    types: dict[int, str] = {}
    for number, line in enumerate(SNIPPET.read_text().splitlines(), 1):
        code, _, promise = line.partition("  # ")
        if code and promise.startswith("E: "):
            errors[number] = set(promise[3:].split(", "))
        elif code and promise.startswith("R: "):
            types[number] = promise[3:]
    return errors, types


def found(text: str) -> tuple[dict[int, set[str]], dict[int, str]]:
    """The errors and the revealed types that mypy reports."""
    errors: dict[int, set[str]] = {}
    types: dict[int, str] = {}
    for line in text.splitlines():
        match = REPORT.search(line)
        if match is None:
            continue
        number, kind, message, code = match.groups()
        if kind == "error":
            errors.setdefault(int(number), set()).add(code)
        elif revealed := REVEALED.match(message):
            types[int(number)] = revealed.group(1).replace("builtins.", "")
    return errors, types


@pytest.mark.slow
def test_mypy_sees_what_the_snippet_says() -> None:
    text, problems, _ = api.run(
        [
            "--config-file",
            str(ROOT / "pyproject.toml"),
            "--cache-dir",
            str(ROOT / ".mypy_cache"),
            "--no-error-summary",
            "--hide-error-context",
            str(SNIPPET),
        ]
    )
    assert problems == ""
    errors, types = found(text)
    wanted_errors, wanted_types = expected()
    assert types == wanted_types
    # One of the promised codes is enough: releases of mypy choose differently.
    assert errors.keys() == wanted_errors.keys(), text
    for line, codes in wanted_errors.items():
        assert errors[line] & codes, (line, errors[line])
