"""`verax.experimental.multihost_utils` in several processes."""

from pathlib import Path

import pytest

from tests.distributed.groups import failures


@pytest.mark.parametrize(
    "count", [2, pytest.param(4, marks=pytest.mark.slow(jaxlib=True))]
)
def test_values_of_the_host(count: int, tmp_path: Path) -> None:
    assert failures("tests.distributed.checks_multihost", count, tmp_path) == {}
