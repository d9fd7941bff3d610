"""The soak itself, in small: it runs, it is right, and it sees what is wrong."""

import numpy as np
import pytest
from attrs import evolve

from tests.soak import work
from tests.soak.harness import Reading, Report, soak


@pytest.mark.slow
def test_a_tiny_soak() -> None:
    report = soak(0, 1, pieces_per_round=6)
    assert report.readings[-1].pieces == 18
    assert "all right" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.__name__ for each in work.WORK])
def test_each_piece_of_work(name: str) -> None:
    getattr(work, name)(np.random.default_rng(3))


def test_wrong_results_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "host_double", lambda x: x * 2)
    with pytest.raises(AssertionError):
        work.check(np.ones(2), np.zeros(2))
    monkeypatch.setattr("tests.soak.harness.WORK", (lambda rng: work.check(1, 2),))
    with pytest.raises(AssertionError, match="seed 5, piece 0"):
        soak(0, 5, pieces_per_round=1)


def test_growth_is_noticed() -> None:
    start = Reading(1, 10, 100, 3, 3, 200, 5)
    assert Report((start,) * 3).flat
    for grown in (
        evolve(start, megabytes=500),
        evolve(start, arrays=4),
        evolve(start, buffers=9),
        evolve(start, held_megabytes=500),
        evolve(start, held_arrays=6),
    ):
        assert not Report((start, start, grown)).flat
