"""Checkpoints that several processes write, read by them and by one alone."""

from pathlib import Path

import numpy as np
import pytest

from property_tests.levels import rarely
from tests.distributed.groups import failures
from verax.experimental import checkpoint


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("count", rarely([2, 4], 4))
def test_checkpoints_of_several_processes(count: int, tmp_path: Path) -> None:
    assert failures("tests.distributed.checks_checkpoints", count, tmp_path) == {}
    # The number of processes may be another one when they are read.
    actual = checkpoint.restore(tmp_path / "specs")
    assert actual.pop("step") == 7
    np.testing.assert_array_equal(actual.pop("own"), np.ones(3))
    for x in actual.values():
        np.testing.assert_array_equal(x, np.arange(64).reshape(8, 8))
