"""Training over several processes is training in one."""

from pathlib import Path

import pytest

from property_tests.levels import rarely
from tests.distributed.groups import failures


@pytest.mark.slow(nightly=True)
@pytest.mark.parametrize("count", rarely([2, 4], 4))
def test_a_transformer(count: int, tmp_path: Path) -> None:
    assert failures("tests.distributed.checks_training", count, tmp_path) == {}
