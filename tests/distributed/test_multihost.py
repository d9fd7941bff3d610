"""`verax.experimental.multihost_utils` in several processes."""

from pathlib import Path

import pytest

from property_tests.levels import rarely
from tests.distributed.groups import failures


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("count", rarely([2, 4], 4))
def test_values_of_the_host(count: int, tmp_path: Path) -> None:
    assert failures("tests.distributed.checks_multihost", count, tmp_path) == {}
