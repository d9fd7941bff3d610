"""The structural and indexing rows keep the laws on generated calls."""

from typing import Any

import pytest

from tests.ops.laws import check_row
from verax.ops.indexing import dynamic_slice, gather, scatter
from verax.ops.structure import joining, shape, slicing
from verax.rules.rows.row import Row

ROWS: tuple[Row[Any], ...] = (
    *shape.ROWS,
    *slicing.ROWS,
    *joining.ROWS,
    *dynamic_slice.ROWS,
    *gather.ROWS,
    *scatter.ROWS,
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_laws(row: Row[Any]) -> None:
    check_row(row, seed=1, count=25)
