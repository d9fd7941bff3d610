"""Choices, bounds and identities."""

import numpy as np
import pytest

from tests.ops.laws import emitted, slopes, trace, value
from verax.ops.elementwise import select

F = np.float32


@pytest.mark.parametrize(
    ("which", "chosen"), [(-5, 1), (-1, 1), (0, 1), (1, 2), (2, 3), (3, 3), (9, 3)]
)
def test_a_number_outside_means_the_nearest_case(which: int, chosen: int) -> None:
    actual = value(select.select_n, np.int32(which), F(1), F(2), F(3))
    assert actual == chosen


def test_predicates_without_dimensions_stay_so() -> None:
    x = np.ones((3,), np.float32)
    assert emitted(select.select_n, np.True_, x, x) == 1
    assert emitted(select.clamp, F(0), x, F(1)) == 1
    assert emitted(select.stop_gradient, x) == 0
    assert emitted(select.copy, x) == 0


def test_slopes_of_choices() -> None:
    assert slopes(select.select, np.True_, F(1), F(2)) == [1.0, 0.0]
    assert slopes(select.clamp, F(0), F(0), F(1)) == [1.0, 0.0, 0.0]
    assert slopes(select.clamp, F(0), F(1), F(1)) == [0.0, 0.0, 1.0]
    assert slopes(select.clamp, F(0), F(2), F(1)) == [0.0, 0.0, 1.0]
    assert slopes(select.clamp, F(0), F(-2), F(1)) == [1.0, 0.0, 0.0]
    assert slopes(select.stop_gradient, F(2)) == [0.0]


def test_clamp_at_odd_bounds() -> None:
    assert value(select.clamp, F(3), F(2), F(1)) == 1
    assert np.isnan(value(select.clamp, F(0), F(np.nan), F(1)))
    x, high = np.array([-1, 2, 9], F), np.array([1, 1, 5], F)
    assert value(select.clamp, F(0), x, high).tolist() == [0, 1, 5]
    assert value(select.clamp, -high, x, F(3)).tolist() == [-1, 2, 3]


def test_one_case_is_chosen_whatever_the_number() -> None:
    """And its derivative is that of the case, not zero."""
    assert value(select.select_n, np.int32(7), F(5)) == 5
    for which in (np.int32(-1), np.False_):
        assert slopes(lambda x, i=which: select.select_n(i, x), F(5)) == [1.0]
    x, y = F(1), F(2)
    assert slopes(lambda x: select.select_n(np.False_, x, y), x) == [1.0]
    assert slopes(lambda y: select.select_n(np.True_, x, y), y) == [1.0]


def test_errors() -> None:
    with pytest.raises(TypeError, match="boolean predicate for two cases"):
        trace(select.select_n, np.asarray(1.0, np.float32), F(1), F(2))
    with pytest.raises(TypeError, match="cases of the same dtype"):
        trace(select.select_n, np.asarray(True), F(1), np.int32(2))
    with pytest.raises(TypeError, match="the same shape"):
        trace(select.select_n, np.asarray(True), np.ones(2, F), np.ones(3, F))


@pytest.mark.parametrize(
    "dtype", ["int8", "float16", "float32", "int32", "float64", "complex64"]
)
def test_masks_of_many_elements_choose_by_bits(dtype: str) -> None:
    rng = np.random.default_rng(0)
    shape = (130, 64)
    x, y = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    which = rng.normal(size=shape) > 0
    zero = np.zeros((), dtype)
    minus = np.asarray(-1.5).astype(dtype)
    x = x.T[:, ::2].T if dtype == "float32" else x
    which, y = which[: len(x)], y[: len(x)]
    for yes, no in [
        (x, y),
        (x, zero),
        (zero, x),
        (x, -zero),
        (minus, x),
        (minus, zero),
    ]:
        actual = select.evaluate_select(which, np.asarray(no), np.asarray(yes))
        due = np.where(which, yes, no)
        assert actual.dtype == dtype
        assert actual.tobytes() == due.tobytes()
