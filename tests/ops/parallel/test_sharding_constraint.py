"""The batch rule of sharding constraints: where the new dimension is split."""

from typing import Any

import pytest

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.meshes import Layout, MeshAxes
from verax.ops.parallel.sharding_constraint import ShardingParams, sharding_constraint
from verax.rules.rows.builder import program
from verax.rules.rows.row import BatchAxis
from verax.transforms.engine.engine import over_axis
from verax.verify.checking.functions import ENGINE

MESH = MeshAxes(("x", "y"), (1, 1), (0,))
SPLITS: tuple[Any, ...] = ((), (("x",),), (("x",), None), (None, (), ("x",)))


@pytest.mark.parametrize("spmd", [(), ("y",)])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_the_new_dimension_is_split_where_it_stands(axis: int, spmd: Any) -> None:
    engine = over_axis(ENGINE, BatchAxis(None, spmd))
    for splits in SPLITS:
        layout = Layout(MESH, splits)
        one = program(
            [ShapedArray((2, 3, 4), float32)],
            lambda x, layout=layout: [sharding_constraint(x, layout)],
        )
        batched, axes = engine.batch(one, 5, (axis,))
        (eqn,) = batched.eqns
        assert isinstance(eqn.params, ShardingParams)
        assert axes == (axis,)
        full = [*splits, *[()] * (3 - len(splits))]
        full.insert(axis, spmd or None)
        assert eqn.params.layout == Layout(MESH, tuple(full))
