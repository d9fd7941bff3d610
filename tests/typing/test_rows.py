"""A mistake inside a row is an error of mypy: params, arity and types of rules."""

from pathlib import Path

import pytest

from tests.typing.test_signatures import REPORT, ROOT

api = pytest.importorskip("mypy.api", reason="mypy is not installed")

SNIPPET = Path(__file__).parent / "rows_snippet.py"


@pytest.mark.slow
def test_mypy_sees_wrong_rows() -> None:
    promised = {
        number: line.partition("  # E: ")[2]
        for number, line in enumerate(SNIPPET.read_text().splitlines(), 1)
        if "  # E: " in line
    }
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
    actual = {
        int(match[1]): match[4]
        for match in map(REPORT.search, text.splitlines())
        if match is not None and match[2] == "error"
    }
    assert actual == promised, text
