"""Which primitives have several results: a fact of each row, as in JAX."""

import json
from random import Random
from typing import Any

import pytest

from tests.jax.programs import run_python
from verax.ops.table import ROWS
from verax.rules.rows.row import Row

DRAWN = [row for row in ROWS if row.draw is not None and not row.multiple_results]


@pytest.mark.parametrize("row", DRAWN, ids=str)
def test_other_rows_have_one(row: Row[Any]) -> None:
    assert row.draw is not None
    for seed in range(20):
        sample = row.draw(Random(seed))
        assert len(row.typing(sample.params, sample.avals)) == 1


NAMED = """
import gc, json, jax, jax.numpy, jax.scipy
from jax.extend.core import Primitive
print(json.dumps({p.name: p.multiple_results for p in gc.get_objects()
                  if isinstance(p, Primitive)}))
"""


def test_as_in_jax() -> None:
    done = run_python("-c", NAMED)
    if done.returncode:
        pytest.skip("jax is not installed, so that there is nothing to compare with")
    named = json.loads(done.stdout)
    both = [row for row in ROWS if row.name in named]
    assert len(both) > 100
    assert [row.name for row in both if row.multiple_results != named[row.name]] == []
