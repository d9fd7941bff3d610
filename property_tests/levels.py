"""Which tests run when: always, with `make test-all`, or with `make test-nightly`.

One idea: a test with many parameters runs every day with those that differ in kind, and
at night with all of them.

    @pytest.mark.parametrize("name", rarely(CASES, "beta", "poisson"))
"""

from collections.abc import Iterable
from typing import Any

import pytest

SLOW = pytest.mark.slow
NIGHTLY = pytest.mark.slow(nightly=True)


def marked(mark: pytest.MarkDecorator, value: Any) -> Any:
    """The same parameter of a test, with a mark; a tuple is one value for each name."""
    if hasattr(value, "marks"):
        return pytest.param(*value.values, marks=[*value.marks, mark], id=value.id)
    return pytest.param(*(value if isinstance(value, tuple) else [value]), marks=mark)


def nightly(*values: Any) -> Any:
    """Parameters of a test that only `make test-nightly` runs."""
    return pytest.param(*values, marks=NIGHTLY)


def by_turns(
    values: Iterable[Any], by_day: int = 2, mark: pytest.MarkDecorator = SLOW
) -> list[Any]:
    """All of `values`, where all but one in `by_day` have the mark.

    Those that are slow run with `make test-all`, those with `NIGHTLY` at night alone.
    """
    return [marked(mark, one) if i % by_day else one for i, one in enumerate(values)]


def rarely(values: Iterable[Any], *less: Any) -> list[Any]:
    """All of `values`; those that are also in `less` are for the night."""
    values = list(values)
    assert not [one for one in less if one not in values]
    return [marked(NIGHTLY, one) if one in less else one for one in values]


def crossed(first: Iterable[Any], second: Iterable[Any], by_day: int = 2) -> list[Any]:
    """Pairs of two lists: by day one in `by_day` of them, of each row and column."""
    first, others = list(first), list(second)
    assert by_day <= min(len(first), len(others)), "not each is tried by day"
    return [
        nightly(one, other) if (i + j) % by_day else (one, other)
        for i, one in enumerate(first)
        for j, other in enumerate(others)
    ]
