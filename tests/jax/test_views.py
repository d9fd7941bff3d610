"""What a program sees of the modules named jax: names, versions, errors."""

from pathlib import Path

import pytest

from tests.jax.programs import output

PROGRAM = Path(__file__).parent / "view_program.py"


@pytest.mark.slow
def test_a_program_that_looks_at_everything() -> None:
    assert output(PROGRAM) == "looked at everything\n"
