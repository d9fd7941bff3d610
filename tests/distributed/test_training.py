"""Training over several processes is training in one."""

from pathlib import Path

import pytest

from tests.distributed.groups import failures


@pytest.mark.parametrize(
    "count", [2, pytest.param(4, marks=pytest.mark.slow(jaxlib=True))]
)
def test_a_transformer(count: int, tmp_path: Path) -> None:
    assert failures("tests.distributed.checks_training", count, tmp_path) == {}
