"""Arrays and programs over several processes."""

from pathlib import Path

import pytest

from tests.distributed.groups import failures


@pytest.mark.parametrize(
    "count", [2, pytest.param(4, marks=pytest.mark.slow(jaxlib=True))]
)
def test_arrays_and_programs(count: int, tmp_path: Path) -> None:
    assert failures("tests.distributed.checks_arrays", count, tmp_path) == {}
