"""The kit from the command line, from pytest, and as a page."""

from pathlib import Path

import pytest

from verax.verify.__main__ import main
from verax.verify.page import page, static_part

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["sin", "--cases", "3", "--law", "typed", "--law", "vmap"], 0),
        (["tests.verify.planted:larger_p", "--law", "special", "--seed", "1"], 1),
        (["verax.ops.elementwise.trig:cos_p", "--cases", "3", "--law", "typed"], 0),
        (["nothing.like:this_p"], 2),
        (["verax.ops.elementwise.trig:nothing"], 2),
        (["verax.ops.elementwise.trig:math"], 2),
        (["sin", "--law", "gravity"], 2),
        ([], 2),
    ],
)
def test_exit_status(
    arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    out = capsys.readouterr()
    assert bool(out.err) == (status == 2)
    assert ("to see it again" in out.out) == (status == 1)


@pytest.mark.slow
def test_one_line_per_primitive_in_pytest(pytester: pytest.Pytester) -> None:
    """In a test file, and in the configuration; broken laws are failed tests."""
    pytester.makeini(
        f"[pytest]\npythonpath = {ROOT} {ROOT / 'src'}\n"
        "verax_primitives = tests.verify.planted:larger_p\n"
    )
    pytester.makepyfile(
        "from verax.verify.plugin import laws_of_primitive\n"
        "test_not = laws_of_primitive('not', cases=3)\n"
    )
    options = ["-p", "verax.verify.plugin", "--verax-cases", "300"]
    result = pytester.runpytest_inprocess(*options, "-k", "typed or special or adjoint")
    result.assert_outcomes(failed=1, passed=3, skipped=2)
    result.stdout.fnmatch_lines(["*special: the tangent of result 0 is not between*"])


def test_page_is_up_to_date() -> None:
    text = (ROOT / "docs" / "primitives.md").read_text()
    command = "python -m verax.verify --page docs/primitives.md"
    assert text.startswith(static_part()), (
        f"rows have changed: run `{command} --cases 0`, which keeps the verdicts of "
        "the laws, or without --cases 0 to try the new rows too"
    )
    assert "**broken** (" not in text, f"a law was broken: repair it, run `{command}`"


def test_page_of_one_row_has_its_verdicts() -> None:
    lines = static_part().splitlines()
    (line,) = [line for line in lines if line.startswith("| `sin` |")]
    assert line.split("|")[2:7] == [
        " tested ",
        " proved ",
        " - ",
        " tested ",
        " tested ",
    ]
    assert page.__doc__
