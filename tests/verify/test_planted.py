"""A wrong rule in a user's row is found, and what is printed shows it to anybody."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen

import verax
from tests.verify.planted import larger_p, log10_p, plus_p, square_size_p, total_p
from verax import verify
from verax.rules.rows.row import Row

# A scalar and a matrix of six, at most: what broadcasts needs two operands.
HANDFUL = 7
SOURCE = Path(__file__).parents[2] / "src"


@frozen
class Planted:
    """A wrong row, the law that must notice, and what its message says."""

    row: Row  # type: ignore[type-arg]  # rows of any params
    law: str
    says: str


PLANTED = (
    Planted(square_size_p, "jvp", "central difference"),
    Planted(total_p, "vmap", "vmap of size"),
    Planted(larger_p, "special", "not between the slopes"),
    Planted(log10_p, "digits", "wrong digits"),
    Planted(plus_p, "adjoint", "transpose"),
)


def found(planted: Planted) -> verify.Finding:
    report = verify.check_primitive(planted.row, laws=[planted.law], cases=100, seed=1)
    assert not report
    return report[planted.law]


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.row.name)
def test_wrong_rule_is_found_in_a_handful_of_numbers(planted: Planted) -> None:
    finding = found(planted)
    assert planted.says in finding.evidence
    assert finding.case is not None
    assert sum(x.size for x in finding.case.values) <= HANDFUL
    for part in ("before:", "to see it again:", f"row: {planted.row.name}"):
        assert part in finding.evidence


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.row.name)
def test_snippet_fails_the_same_way(planted: Planted) -> None:
    finding = found(planted)
    assert finding.proof is not None
    with pytest.raises(verify.LawBroken) as caught:
        exec(finding.proof.snippet, {})
    assert caught.value.evidence.what == finding.proof.what


@pytest.mark.slow
def test_snippet_runs_by_itself_anywhere(tmp_path: Path) -> None:
    """In a fresh process, elsewhere: it imports the user's module and fails alike."""
    finding = found(PLANTED[2])
    assert finding.proof is not None
    done = subprocess.run(
        [sys.executable, "-c", finding.proof.snippet],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert f"LawBroken: {finding.evidence.splitlines()[0]}" in done.stderr
    assert "from tests.verify.planted import larger_p" in finding.evidence


@pytest.mark.slow
def test_raise_if_broken_shows_table_and_evidence() -> None:
    report = verify.check_primitive(larger_p, laws=["typed", "special"], seed=1)
    with pytest.raises(verify.LawsBroken, match="1 broken") as caught:
        report.raise_if_broken()
    assert "typed" in str(caught.value)
    assert "to see it again" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "remove_frames", "off"])
def test_shrinking_does_not_depend_on_how_tracebacks_are_shown(mode: str) -> None:
    """Hypothesis tells failures apart by the frames that raised them."""
    before = verax.config.read("traceback_filtering")
    verax.config.update("traceback_filtering", mode)
    try:
        report = verify.check_primitive(larger_p, laws=["special"], seed=1)
    finally:
        verax.config.update("traceback_filtering", before)
    case = report["special"].case
    assert case is not None
    assert [x.shape for x in case.values] == [(), ()]
