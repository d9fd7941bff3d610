"""Threads that do everything at once, as in `races.py`; a few seconds of it."""

import pytest

from tests.robustness.races import WORKS, races


@pytest.mark.slow
def test_threads_that_do_everything_at_once_get_what_they_would_alone() -> None:
    result = races(threads=6, most=40)
    assert not result.errors
    assert result.count == 6 * 40 > 20 * len(WORKS)
