"""Batching a program to axes that are asked for, and to the sum over the batch."""

import numpy as np
import pytest

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ops.elementwise.arith import mul
from verax.ops.elementwise.trig import sin
from verax.rules.programs.batched import SUM, Wanted, batch_to
from verax.rules.rows.builder import program
from verax.rules.rows.row import Axis
from verax.verify.checking.functions import ENGINE

SIZE, SHAPE = 5, (2, 3)
ROWS = np.arange(SIZE * 6, dtype=np.float32).reshape(SIZE, *SHAPE)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("expected", [0, 1, 2, SUM])
def test_a_result_is_batched_where_it_is_wanted_or_summed(
    axis: int, expected: Wanted
) -> None:
    aval = ShapedArray(SHAPE, float32)
    jaxpr = program((aval,), lambda x: (mul(x, x),))
    batched = batch_to(ENGINE, jaxpr, SIZE, (axis,), (expected,))
    (actual,) = ENGINE.evaluate(batched, (np.moveaxis(ROWS, 0, axis),))
    squares = ROWS * ROWS
    due = (
        np.moveaxis(squares, 0, expected)
        if isinstance(expected, int)
        else squares.sum(0)
    )
    assert actual.shape == batched.out_avals[0].shape
    assert actual.tolist() == due.tolist()


@pytest.mark.parametrize("expected", [None, 0, 1, 2, SUM])
def test_what_is_not_batched_is_repeated_or_summed_as_often(expected: Wanted) -> None:
    aval = ShapedArray(SHAPE, float32)
    jaxpr = program((aval, aval), lambda x, y: (sin(y),))
    axes: tuple[Axis, ...] = (0, None)
    batched = batch_to(ENGINE, jaxpr, SIZE, axes, (expected,))
    y = np.full(SHAPE, 0.5, np.float32)
    (actual,) = ENGINE.evaluate(batched, (ROWS, y))
    one = np.sin(y)
    repeated = np.broadcast_to(one, (SIZE, *SHAPE))
    if expected is None:
        due = one
    elif isinstance(expected, int):
        due = np.moveaxis(repeated, 0, expected)
    else:
        due = repeated.sum(0)
    np.testing.assert_allclose(actual, due, rtol=1e-6)
