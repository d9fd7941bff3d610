"""Dimension numbers that do not fit: the message names the user's own field."""

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

X = vnp.zeros((4, 5, 6))
INDICES = vnp.zeros((4, 3), np.int32)


@pytest.mark.parametrize(
    ("fields", "sizes", "words"),
    [
        (((2, 1), (0,), (0, 1, 2)), (1, 5, 6), "offset_dims in gather op must be sort"),
        (((1, 1), (0,), (0, 1, 2)), (1, 5, 6), "offset_dims in gather op must not rep"),
        (
            ((1, 9), (0,), (0, 1, 2)),
            (1, 5, 6),
            "Offset dimension 1 in gather op is out .* got 9",
        ),
        (((1, 2), (7,), (0, 1, 2)), (1, 5, 6), "Invalid collapsed_slice_dims .* got 7"),
        (((1, 2), (0,), (0, 1, 8)), (1, 5, 6), "Invalid start_index_map .* got 8"),
        (((1, 2), (0,), (0, 1)), (1, 5, 6), "has 2 elements in start_index_map"),
        (((1, 2), (0,), (0, 1, 2), (0,), (0,)), (1, 5, 6), "must be disjoint"),
        (((1, 2), (), (1, 2), (0,), (1,)), (1, 5, 6), "index vector dimension"),
        (
            ((1, 2), (), (0, 1, 2)),
            (1, 5, 6),
            "explicitly collapsed/batching, but f32.4,5,6. has",
        ),
        (((1, 2), (0,), (0, 1, 2)), (1, 5), "one slice size for every input"),
        (((1, 2), (0,), (0, 1, 2)), (1, 5, 7), "Slice size at index 2 .* out of range"),
        (((1, 2), (0,), (0, 1, 2)), (2, 5, 6), "bound is 2 for index 0 at position 0"),
    ],
)
def test_gather(
    fields: tuple[tuple[int, ...], ...], sizes: tuple[int, ...], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        lax.gather(X, INDICES, lax.GatherDimensionNumbers(*fields), sizes)


@pytest.mark.parametrize(
    ("fields", "shape", "words"),
    [
        (((2, 1), (0,), (0, 1, 2)), (4, 5, 6), "update_window_dims in scatter op must"),
        (((1, 2), (3,), (0, 1, 2)), (4, 5, 6), "Invalid inserted_window_dims .* got 3"),
        (((1, 2), (0,), (0, 1, 3)), (4, 5, 6), "scatter_dims_to_operand_dims mapping"),
        (((1, 2), (), (1, 2), (9,), (0,)), (4, 5, 6), "Invalid operand_batching_dims"),
        (((1, 2), (0,), (0, 1, 2)), (4, 5), "must be of rank 3; got 2"),
        (((1, 2), (0,), (0, 1, 2)), (4, 5, 7), "Bounds of the window dimensions"),
        (((1, 2), (0,), (0, 1, 2)), (3, 5, 6), "Bounds of the scatter dimensions"),
    ],
)
def test_scatter(
    fields: tuple[tuple[int, ...], ...], shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        verax.eval_shape(
            lambda u: lax.scatter(X, INDICES, u, lax.ScatterDimensionNumbers(*fields)),
            vnp.zeros(shape),
        )
