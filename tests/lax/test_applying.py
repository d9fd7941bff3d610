"""Functions of the user applied to what is gathered, or called by name."""

from typing import Any

import numpy as np
import pytest

import verax
from verax import lax


def test_scatter_apply_counts_duplicates() -> None:
    z = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))

    def apply(z: Any) -> Any:
        places = np.array([[0], [0], [9]])
        return lax.scatter_apply(
            z, places, lambda v: 2 * v + 1, rows, update_shape=(3, 3)
        )

    expected = z.copy()
    expected[0] = 2 * (2 * z[0] + 1) + 1
    np.testing.assert_array_equal(apply(z), expected)
    np.testing.assert_array_equal(verax.jit(apply)(z), expected)


def test_scatter_apply_takes_batching_dimensions() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(2,),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=(2,),
        operand_batching_dims=(0, 1),
        scatter_indices_batching_dims=(1, 0),
    )
    where = np.array([[[0], [1]], [[2], [2]], [[1], [0]]])  # (3, 2, 1)
    want = x.copy()
    for j in range(3):
        for i in range(2):
            start = where[j, i, 0]
            want[i, j, start : start + 2] *= -1

    def turned(x: Any, where: Any) -> Any:
        return lax.scatter_apply(x, where, lax.neg, numbers, update_shape=(3, 2, 2))

    for run in (turned, verax.jit(turned)):
        np.testing.assert_array_equal(run(x, where), want)


def test_broadcast_in_dim_takes_dimensions_in_any_order() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    for shape, dims, want in (
        ((2, 3), (1, 0), x.T),
        ((2, 4, 3), (2, 0), np.broadcast_to(x.T[:, None], (2, 4, 3))),
    ):
        for run in (
            lax.broadcast_in_dim,
            verax.jit(lax.broadcast_in_dim, static_argnums=(1, 2)),
        ):
            np.testing.assert_array_equal(run(x, shape, dims), want)
    square = verax.numpy.asarray(x[:2])
    np.testing.assert_array_equal(lax.broadcast_in_dim(square, (2, 2), (1, 0)), x[:2].T)


def test_python_integers_are_converted_as_integers() -> None:
    assert int(lax.convert_element_type(2**32 + 5, np.int32)) == 5
    assert int(lax.convert_element_type(2**63, np.int32)) == 0
    assert int(lax.convert_element_type(-(2**40) - 1, np.uint8)) == 255
    assert float(lax.convert_element_type(2**70, np.float32)) == 2.0**70
    assert bool(lax.convert_element_type(2**40, np.bool_))
    traced = verax.jit(lambda: lax.convert_element_type(2**31, np.int32))()
    assert int(traced) == -(2**31)


def test_folds_say_what_of_their_arguments_is_wrong() -> None:
    x = {"x": np.ones(5, np.float32)}

    def add(a: Any, b: Any) -> Any:
        return {"x": a["x"] + b["x"]}

    cases: list[tuple[Any, Any, str]] = [
        ({"y": 0.0}, add, "same tree structure as init_values"),
        (x, add, r"init_values to be scalars but .* \[\(5,\)\]"),
        ({"x": 0.0}, lambda a, b: a["x"], "same tree structure as the operands"),
    ]
    for init, fold, message in cases:
        with pytest.raises(ValueError, match=message):
            lax.reduce(x, init, fold, (0,))
