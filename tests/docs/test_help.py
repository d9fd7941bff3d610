"""`help` of every public function says what it takes, what it returns, and shows it."""

import pytest

from tests.docs.help import Function, described, missing, public_functions, sections

FUNCTIONS = list(public_functions())


@pytest.mark.parametrize("entry", FUNCTIONS, ids=lambda entry: entry.name)
def test_a_docstring_is_whole(entry: Function) -> None:
    assert not missing(entry.function)


def test_what_is_missing_is_found() -> None:
    def bare(x: int, *rest: int) -> None:
        """Does nothing."""

    def whole(x: int, *rest: int) -> None:
        """Does nothing.

        Args:
            x: a number, on
                two lines.
            *rest: others.

        Returns:
            nothing.

        >>> whole(1)
        """

    assert missing(bare) == [
        "Args: ['x', 'rest'] missing, [] unknown",
        "Returns:",
        "an example",
    ]
    assert not missing(whole)
    parts = sections("First.\n\nArgs:\n    a, b: two.\n\n>>> 1")
    assert described(parts["Args"]) == ["a", "b"]


def test_all_modules_are_looked_through() -> None:
    assert len(FUNCTIONS) > 750
