"""Which tests run when: always, with `make test-all`, or with `make test-nightly`.

One idea: a test with many parameters runs every day with those that differ in kind, and
at night with all of them.

    @pytest.mark.parametrize("name", rarely(CASES, "beta", "poisson"))
"""

from collections.abc import Iterable
from typing import Any

import pytest

NIGHTLY = pytest.mark.slow(nightly=True)


def nightly(*values: Any) -> Any:
    """Parameters of a test that only `make test-nightly` runs."""
    return pytest.param(*values, marks=NIGHTLY)


def rarely(values: Iterable[Any], *less: Any) -> list[Any]:
    """All of `values`; those that are also in `less` are for the night."""
    values = list(values)
    assert not [one for one in less if one not in values]
    return [
        (nightly(*one) if isinstance(one, tuple) else nightly(one))
        if one in less
        else one
        for one in values
    ]


def crossed(first: Iterable[Any], second: Iterable[Any], by_day: int = 2) -> list[Any]:
    """Pairs of two lists: by day one in `by_day` of them, of each row and column."""
    others = list(second)
    return [
        nightly(one, other) if (i + j) % by_day else (one, other)
        for i, one in enumerate(first)
        for j, other in enumerate(others)
    ]
