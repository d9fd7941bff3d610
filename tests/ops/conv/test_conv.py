"""Convolutions: values known from StableHLO's semantics, strings, and bad input."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
from verax import lax
from verax.ir.avals import ShapedArray
from verax.ops.conv.primitive import conv_general_dilated_p
from verax.rules.rows.builder import Builder
from verax.rules.values.state import interpreting


def ramp(modulus: int, *shape: int) -> np.ndarray:
    """Small integers as float32."""
    count = int(np.prod(shape))
    return (np.arange(count) % modulus).reshape(shape).astype(np.float32)


def grouped(x: Any, k: Any) -> Any:
    """Strides, padding that crops, both dilations and two groups of features."""
    pads = [(1, 0), (-1, 2)]
    return lax.conv_general_dilated(
        x, k, (2, 1), pads, (1, 2), (2, 1), feature_group_count=2
    )


def test_every_parameter_at_once() -> None:
    x, k = ramp(7, 1, 2, 4, 5), ramp(5, 4, 1, 2, 2)
    want = [
        [[18, 12, 0, 0, 3, 2, 6, 4, 0], [12, 4, 9, 6, 13, 8, 17, 10, 0]],
        [[12, 6, 0, 0, 2, 1, 4, 2, 0], [4, 26, 6, 3, 8, 8, 10, 13, 0]],
        [[5, 0, 6, 0, 0, 0, 1, 0, 0], [21, 15, 26, 18, 3, 0, 8, 3, 0]],
        [[0, 20, 0, 24, 0, 0, 0, 4, 0], [15, 14, 18, 20, 0, 12, 3, 18, 0]],
    ]
    for f in (grouped, verax.jit(grouped)):
        np.testing.assert_array_equal(f(x, k), [want])
    to_x, to_k = verax.grad(lambda *xs: grouped(*xs).sum(), (0, 1))(x, k)
    np.testing.assert_array_equal(to_x[0, :, 1::2, 1], [[13, 8], [17, 5]])
    np.testing.assert_array_equal(to_x[0, :, ::2], 0 * to_x[0, :, ::2])
    np.testing.assert_array_equal(to_k[0, 0], [[9, 9], [23, 23]])
    np.testing.assert_array_equal(to_k[3, 0], [[12, 12], [22, 22]])


def test_groups_of_batches() -> None:
    def f(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(x, k, (1,), "SAME", batch_group_count=2)

    x, k = ramp(5, 4, 1, 4), ramp(3, 4, 1, 2)
    want = [
        [[1, 2, 3, 0], [0, 2, 4, 6], [11, 4, 2, 1], [4, 0, 1, 0]],
        [[0, 1, 2, 0], [8, 0, 2, 4], [8, 11, 4, 0], [3, 4, 0, 0]],
    ]
    np.testing.assert_array_equal(f(x, k), want)
    back = verax.grad(lambda k: f(x, k).sum())(k)
    np.testing.assert_array_equal(back[:, 0], [[13, 9], [13, 9], [17, 12], [17, 12]])


@pytest.mark.parametrize(
    ("padding", "transposed", "want"),
    [
        ("SAME", False, [0, 0, 3, 2, 7, 4, 11, 6]),
        ("SAME", True, [0, 0, 1, 2, 5, 4, 9, 6]),
        ("VALID", False, [0, 0, 3, 2, 7, 4, 11, 6, 3]),
        ("VALID", True, [0, 0, 1, 2, 5, 4, 9, 6, 9]),
        ([(1, 2)], False, [0, 3, 2, 7, 4, 11, 6, 3]),
        ([(1, 2)], True, [0, 1, 2, 5, 4, 9, 6, 9]),
    ],
)
def test_transposed(padding: Any, transposed: bool, want: list[int]) -> None:
    x, k = ramp(9, 1, 4, 1), ramp(9, 3, 1, 1) + 1
    actual = lax.conv_transpose(x, k, (2,), padding, transpose_kernel=transposed)
    np.testing.assert_array_equal(actual.ravel(), want)


def test_consistent_padding_is_that_of_the_convolution_turned_back() -> None:
    x, k = ramp(9, 1, 4, 1), ramp(9, 3, 1, 1) + 1
    actual = lax.conv_transpose(x, k, (2,), [(1, 1)], use_consistent_padding=True)
    np.testing.assert_array_equal(actual.ravel(), [0, 3, 2, 7, 4, 11, 6])
    dims = ("NHC", "HIO", "NHC")

    def forward(z: Any) -> Any:
        return lax.conv_general_dilated(z, k[::-1], (2,), [(1, 1)], None, None, dims)

    (back,) = verax.linear_transpose(forward, np.zeros((1, 7, 1), np.float32))(x)
    np.testing.assert_array_equal(actual, back)


def test_patches_hold_features_then_places() -> None:
    x = ramp(9, 1, 2, 4)
    actual = lax.conv_general_dilated_patches(x, (2,), (2,), "VALID")
    np.testing.assert_array_equal(actual, [[[0, 2], [1, 3], [4, 6], [5, 7]]])
    kernel = np.ones((2, 4, 3), np.float32)
    local = lax.conv_general_dilated_local(
        x, kernel, (2,), "VALID", (2,), dimension_numbers=("NCH", "HIO", "NCH")
    )
    np.testing.assert_array_equal(local, [[[10, 18]] * 3])


def test_integers_wrap_and_widen() -> None:
    x, k = np.full((1, 1, 4), 100, np.int8), np.full((1, 1, 2), 3, np.int8)
    assert lax.conv(x, k, (1,), "VALID").tolist() == [[[88, 88, 88]]]
    wide = lax.conv(x, k, (1,), "VALID", preferred_element_type=np.int32)
    assert wide.tolist() == [[[600, 600, 600]]]


def test_gradient_through_a_wider_result() -> None:
    x, k = ramp(5, 1, 1, 4).astype(np.float16), ramp(3, 1, 1, 2).astype(np.float16)

    def f(x: Any, k: Any) -> Any:
        return lax.conv(x, k, (1,), "VALID", preferred_element_type=np.float32).sum()

    def doubled(x: Any, k: Any) -> Any:
        # The cotangents of the operands meet factors of their own dtype.
        return f(x * np.float16(2), k * np.float16(2))

    for fun, scale in ((f, 1), (doubled, 4)):
        to_x, to_k = verax.grad(fun, (0, 1))(x, k)
        assert (to_x.dtype, to_k.dtype) == (np.float16, np.float16)
        np.testing.assert_array_equal(to_x.ravel(), np.array([0, 1, 1, 1]) * scale)
        np.testing.assert_array_equal(to_k.ravel(), np.array([3, 6]) * scale)


def test_one_operation_forward_and_in_vmap() -> None:
    def count(f: Callable[..., Any], *args: Any) -> int:
        text = verax.jit(f).lower(*args).as_text()
        return int(text.count("= stablehlo.convolution("))

    x, k = ramp(5, 2, 3, 6), ramp(5, 4, 3, 2)

    def f(x: Any, k: Any) -> Any:
        return lax.conv(x, k, (1,), "SAME")

    assert count(f, x, k) == 1
    assert count(verax.vmap(f, (0, None)), x[None], k) <= 3


def test_dimension_numbers() -> None:
    actual = lax.conv_dimension_numbers(
        (1, 2, 3, 4), (5, 6, 7, 8), ("NHWC", "WHIO", "CNWH")
    )
    assert actual == ((0, 3, 2, 1), (3, 2, 0, 1), (1, 0, 2, 3))
    assert lax.padtype_to_pads((5, 6), (3, 3), (2, 2), "SAME") == [(1, 1), (0, 1)]


X, K = ramp(5, 1, 2, 4), ramp(5, 2, 2, 2)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: lax.conv(X, K, (1, 1), "SAME"), ValueError, "window_strides"),
        (lambda: lax.conv(X, K, (0,), "SAME"), ValueError, "positive"),
        (lambda: lax.conv(X, K, (1,), "HALF"), ValueError, "'SAME_LOWER'"),
        (
            lambda: lax.conv(X, K[0], (1,), "SAME"),
            TypeError,
            "the same number of dimensions",
        ),
        (lambda: lax.conv(X, K[:, :1], (1,), "SAME"), TypeError, "2 features"),
        (
            lambda: lax.conv(X, K.astype(np.int32), (1,), "SAME"),
            TypeError,
            "the same dtype",
        ),
        (
            lambda: lax.conv_general_dilated(X, K, (1,), "SAME", (2,)),
            ValueError,
            "conv_transpose",
        ),
        (
            lambda: lax.conv_general_dilated(
                X, K, (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCC")
            ),
            ValueError,
            "out has 3 dimensions",
        ),
        (
            lambda: lax.conv_general_dilated(
                X, K, (1,), "SAME", feature_group_count=2, batch_group_count=2
            ),
            ValueError,
            "not both",
        ),
        (
            lambda: lax.conv(X, K, (1,), "SAME", preferred_element_type=np.float16),
            TypeError,
            "narrower",
        ),
        *[
            (
                lambda dtype=dtype, wide=wide: lax.conv(
                    X.astype(dtype), K.astype(dtype), (1,), "SAME", None, wide
                ),
                TypeError,
                "another kind",
            )
            for dtype, wide in (
                (np.float32, np.int32),
                (np.complex64, np.float32),
                (np.float32, np.complex64),
                (np.int8, np.uint16),
                (np.int32, np.complex64),
            )
        ],
    ],
)
def test_bad_input_is_one_clear_error(
    call: Callable[[], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call()


def test_the_row_is_costly_so_large_ones_are_compiled() -> None:
    assert conv_general_dilated_p.costly


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_sums_of_four_bits_in_thirty_two(dtype: Any) -> None:
    def f(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(
            x, k, (1,), "VALID", preferred_element_type=np.int32
        )

    numbers: np.ndarray = np.arange(10) % 7
    x, k = numbers.reshape(1, 1, 10).astype(dtype), np.array([[[1, 2, 3]]], dtype)
    want = np.convolve(numbers, [3, 2, 1], "valid")
    for g in (f, verax.jit(f)):
        np.testing.assert_array_equal(g(x, k)[0, 0], want)


@pytest.mark.parametrize("preferred", [None, np.float32])
def test_weak_operands_give_a_weak_result_unless_a_type_is_preferred(
    preferred: Any,
) -> None:
    weak = ShapedArray((1, 1, 3), np.dtype(np.float32), True)
    builder = Builder("a test")
    x = builder.input(weak)
    with interpreting(builder):
        y = lax.conv_general_dilated(
            x, x, (1,), "SAME", preferred_element_type=preferred
        )
    assert y.aval.weak_type == (preferred is None)
