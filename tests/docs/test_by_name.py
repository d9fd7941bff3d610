"""The examples of `docs/by_name`: what they print, but for last digits of numbers."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

from tests.docs.reference_pages import EXAMPLES

NUMBER = re.compile(r"-?\b\d+\.\d*(?:e[+-]?\d+)?|-?\b\d+e[+-]?\d+")
PAGES = sorted(EXAMPLES.glob("*.md"))


class NearlyEqual(doctest.OutputChecker):
    """Output that agrees with what is written, each float to five digits.

    How sines and exponentials round in their last digit is the processor's affair.
    """

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        if "".join(NUMBER.sub("#", want).split()) != "".join(
            NUMBER.sub("#", got).split()
        ):
            return False
        expected, actual = (
            np.array([float(x) for x in NUMBER.findall(text)]) for text in (want, got)
        )
        return bool(np.allclose(expected, actual, rtol=1e-5, atol=1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("little_effort")
def test_examples_print_what_is_written(path: Path) -> None:
    test = doctest.DocTestParser().get_doctest(
        path.read_text(), {}, path.stem, str(path), 0
    )
    runner = doctest.DocTestRunner(
        NearlyEqual(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert runner.run(test).failed == 0


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        (
            "Array([0.84147096], dtype=float32)",
            "Array([0.841471], dtype=float32)",
            True,
        ),
        ("Array([ 1. , 20.5])", "Array([1. , 20.500001])", True),
        ("Array([0.84])", "Array([0.85])", False),
        ("Array([1.0], dtype=float32)", "Array([1.0], dtype=float64)", False),
        ("(2, 3)", "(2, 4)", False),
        ("[1.0, 2.0]", "[1.0]", False),
    ],
)
def test_only_the_last_digits_are_free(want: str, got: str, same: bool) -> None:
    assert NearlyEqual().check_output(want, got, 0) is same
