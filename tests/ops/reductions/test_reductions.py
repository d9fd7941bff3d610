"""Reductions, places of extremes, running folds: goldens."""

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.agreement import both, trace
from tests.ops.laws import ENGINE
from verax.backend.programs.program import compiled
from verax.backend.xla.executable import CompileOptions
from verax.ops.reductions import cumulative, reduce
from verax.rules.families.cumulative import ScanParams
from verax.rules.rows.row import Row
from verax.rules.values.array import Array

NAN, INF = np.nan, np.inf
ALL_ROWS = (*reduce.ROWS, *cumulative.ROWS)


def run(f: Callable[..., Array], *xs: object) -> np.ndarray:
    arrays = [np.asarray(x) for x in xs]
    return ENGINE.evaluate(trace(f, *arrays), arrays)[0]


def gradient(f: Callable[..., Array], x: list[float]) -> list[float]:
    """The transpose of the derivative of f, applied to ones."""
    value = np.asarray(x, np.float32)
    forward, tangent, _ = ENGINE.linearize(trace(f, value), (True,))
    y, *saved = ENGINE.evaluate(forward, [value])
    linear = (False,) * len(saved) + (True,)
    back, _ = ENGINE.transpose(tangent, linear, (True,))
    actual: list[float] = ENGINE.evaluate(back, [*saved, np.ones_like(y)])[0].tolist()
    return actual


def test_reductions_of_nothing_are_identities() -> None:
    empty = np.zeros((0, 2), np.float32)
    assert run(lambda x: reduce.reduce_sum(x, (0,)), empty).tolist() == [0, 0]
    assert run(lambda x: reduce.reduce_prod(x, (0,)), empty).tolist() == [1, 1]
    assert run(lambda x: reduce.reduce_max(x, (0,)), empty).tolist() == [-INF, -INF]
    bytes_ = np.zeros((0,), np.uint8)
    assert run(lambda x: reduce.reduce_min(x, (0,)), bytes_) == 255
    assert run(lambda x: reduce.reduce_and(x, (0,)), bytes_) == 255
    assert run(lambda x: reduce.reduce_or(x, (0,)), bytes_) == 0
    flags = np.zeros((0,), bool)
    assert run(lambda x: reduce.reduce_max(x, (0,)), flags).tolist() is False
    assert run(lambda x: reduce.reduce_min(x, (0,)), flags).tolist() is True


def test_integers_wrap_and_small_floats_accumulate_wide() -> None:
    assert run(lambda x: reduce.reduce_sum(x, (0,)), np.full(3, 100, np.int8)) == 44
    ones = np.ones(1000, ml_dtypes.bfloat16)
    assert float(run(lambda x: reduce.reduce_sum(x, (0,)), ones)) == 1000
    assert float(run(lambda x: cumulative.cumsum(x), ones)[-1]) == 1000


def test_extremes_propagate_nan_and_order_complex_numbers() -> None:
    assert np.isnan(
        run(lambda x: reduce.reduce_max(x, (0,)), np.array([1, NAN], np.float32))
    )
    z = np.array([1 + 1j, 1 + 3j, 0 + 9j], np.complex64)
    assert run(lambda x: reduce.reduce_max(x, (0,)), z) == 1 + 3j


def test_derivatives_at_ties_and_zeros() -> None:
    assert gradient(lambda x: reduce.reduce_max(x, (0,)), [1, 3, 3]) == [0, 0.5, 0.5]
    assert gradient(lambda x: reduce.reduce_prod(x, (0,)), [0, 3, 4]) == [12, 0, 0]
    assert gradient(lambda x: reduce.reduce_prod(x, (0,)), [0, 0, 4]) == [0, 0, 0]
    assert gradient(lambda x: cumulative.cumprod(x), [2, 0, 3]) == [1, 8, 0]
    assert gradient(lambda x: cumulative.cummax(x), [1, 1, 0]) == [2, 1, 0]
    assert gradient(lambda x: cumulative.cumsum(x), [1, 1, 0]) == [3, 2, 1]


def test_argmax_takes_the_first_extreme_and_nan() -> None:
    def place(x: object, axis: int = 0) -> np.ndarray:
        return run(
            lambda x: reduce.argmax(x, axis, np.int32), np.asarray(x, np.float32)
        )

    assert place([1, 3, 3]) == 1
    assert place([1, NAN, INF, NAN]) == 1
    assert place([-INF, -INF]) == 0
    assert place([[1, 2], [3, 0]], 1).tolist() == [1, 0]


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0), (1, 0), (1,)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_running_reductions_of_nothing(dtype: Any, shape: tuple[int, ...]) -> None:
    for row in (cumulative.cumsum_p, cumulative.cumlogsumexp_p):
        for axis in range(len(shape)):
            params = ScanParams(axis, reverse=axis == 1)
            x = np.zeros(shape, dtype)
            assert run(partial(row.call, params), x).shape == shape


def test_running_log_sum_exp_of_infinities() -> None:
    x = np.array([-INF, -INF, 0, 1000, INF])
    actual = run(lambda x: cumulative.cumlogsumexp(x), x)
    assert actual.tolist() == [-INF, -INF, 0, 1000, INF]


@pytest.mark.parametrize("reverse", [False, True])
def test_long_running_sums_are_compiled_in_two_levels(reverse: bool) -> None:
    x = np.arange(5001 * 2, dtype=np.int32).reshape(5001, 2)
    jaxpr = trace(lambda x: cumulative.cumsum(x, 0, reverse), x)
    (actual,) = compiled(ENGINE, jaxpr, "f", CompileOptions()).run([x])
    (expected,) = ENGINE.evaluate(jaxpr, [x])
    np.testing.assert_array_equal(np.asarray(actual), expected)


@pytest.mark.slow
@pytest.mark.parametrize("row", cumulative.ROWS, ids=str)
def test_what_stands_before_the_first_block_is_neutral(row: Row[ScanParams]) -> None:
    """Blocks of a long running fold are folded into what is before them."""
    x = np.where(np.arange(5001) % 7 == 0, -1.0, 1.0)
    for reverse in (False, True):
        jaxpr = trace(lambda x, r=reverse: row.call(ScanParams(0, r), x), x)
        (actual,) = compiled(ENGINE, jaxpr, "f", CompileOptions()).run([x])
        (expected,) = ENGINE.evaluate(jaxpr, [x])
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-12)


def test_running_log_sum_exp_of_complex_numbers_does_not_overflow() -> None:
    x = np.array([-1000 + 1j, 1 + 2j, 1000 - 1j, 999 + 1j])
    terms = np.exp(x[2:] - 1000)
    want = [x[0], x[1], x[2], np.log(terms.sum()) + 1000]
    np.testing.assert_allclose(run(cumulative.cumlogsumexp, x), want, rtol=1e-12)


def test_signs_of_zeros() -> None:
    """Sums start from 0.0; what else is folded stays as it is."""
    zero = np.array([-0.0], np.float32)
    assert not np.signbit(run(lambda x: reduce.reduce_sum(x, (0,)), zero))
    assert np.signbit(run(lambda x: reduce.reduce_max(x, (0,)), zero))
    assert np.signbit(run(lambda x: reduce.reduce_prod(x, (0,)), zero))


def test_an_extreme_of_nothing_has_no_slope() -> None:
    empty = np.zeros((0, 2), np.float32)
    for f in (reduce.reduce_max, reduce.reduce_min):
        jaxpr = trace(lambda x, f=f: f(x, (0,)), empty)
        pushed, mask = ENGINE.jvp(jaxpr, (True,))
        tangents = ENGINE.evaluate(pushed, [empty, empty])[1:]
        assert [t.tolist() for t in tangents] == [[0, 0]] * sum(mask)


def test_errors_say_what_to_do() -> None:
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="out of bounds"):
        run(lambda x: reduce.reduce_sum(x, (2,)), x)
    with pytest.raises(ValueError, match="repeated axis"):
        run(lambda x: reduce.reduce_sum(x, (0, -2)), x)
    with pytest.raises(TypeError, match="convert the operand"):
        run(lambda x: reduce.reduce_sum(x, (0,)), np.zeros(2, bool))
    with pytest.raises(ValueError, match="is empty along axis 0"):
        run(lambda x: reduce.argmax(x, 0, np.int32), np.zeros((0,), np.float32))


def test_sums_of_negative_zeros_are_positive() -> None:
    x = np.full(2, -0.0, np.float32)
    (total,) = both(lambda x: reduce.reduce_sum(x, (0,)), x)
    assert not np.signbit(total)
