"""Folds by any computation: of nothing, of weak operands, in the order of elements."""

from typing import Any

import numpy as np
import pytest

import verax
from verax import lax
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.reports.check import check_jaxpr
from verax.ops.calls.call import inline
from verax.ops.elementwise.arith import mul
from verax.ops.windows.general_reduce import FoldParams, computation, reduce_p
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import infer
from verax.rules.values.state import interpreting
from verax.verify.checking.functions import ENGINE

SCALAR = ShapedArray((), float32)
EMPTY = np.zeros((0, 3), np.float32)


def test_nothing_folds_to_the_initial_value() -> None:
    def fold(x: Any, start: Any) -> Any:
        return lax.reduce(x, start, lambda a, b: a * b * 1, (0,))

    for f in (fold, verax.jit(fold)):
        np.testing.assert_array_equal(f(EMPTY, np.float32(2)), [2, 2, 2])
    starts = np.array([2, 3], np.float32)
    batched = verax.vmap(fold, (None, 0))(EMPTY, starts)
    np.testing.assert_array_equal(batched, [[2, 2, 2], [3, 3, 3]])
    _, slope = verax.jvp(fold, (EMPTY, np.float32(2)), (EMPTY, np.float32(5)))
    np.testing.assert_array_equal(slope, [5, 5, 5])


def test_a_result_may_need_no_operand() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    ones = np.ones_like(x)

    def sums(x: Any, ones: Any) -> Any:
        return lax.reduce((x, ones), (0.0, 1.0), lambda a, b: (a[0] + b[0], 1.0), (1,))

    for f in (sums, verax.jit(sums)):
        total, one = f(x, ones)
        assert (total.tolist(), one.tolist()) == ([3, 12], [1, 1])
    starts = np.array([1, 2], np.float32)
    total, one = verax.vmap(
        lambda s, y, z: lax.reduce(
            (y, z), (s, 1.0), lambda a, b: (a[0] + b[0], 1.0), (0,)
        )
    )(starts, x, ones)
    assert (total.tolist(), one.tolist()) == ([4, 14], [1, 1])


def test_derivatives_of_weak_folds_are_well_typed_when_inlined() -> None:
    """A call takes weak operands for strong ones; its equations do not."""
    body = computation(lambda x, y: (mul(x, y),), (SCALAR,))
    builder = Builder("a test")
    inputs = [builder.input(ShapedArray(s, float32, True)) for s in ((3,), ())]
    with interpreting(builder):
        outs = reduce_p.bind(FoldParams(body, (0,)), *inputs)
    pushed, _ = ENGINE.jvp(builder.finish(outs)[0], (True, True))
    check_jaxpr(inline(pushed), infer)


def affine(a: Any, b: Any) -> Any:
    """Composition of maps x -> p x + q: associative, but not commutative."""
    return a[0] * b[0], a[1] * b[0] + b[1]


@pytest.mark.parametrize("window", [(2, 2), (3, 2), (2, 1, 2)])
def test_padded_windows_are_folded_in_order(window: tuple[int, ...]) -> None:
    """XLA on CPU goes through padded windows of several dimensions by columns."""
    shape = (4, 5, 3)[: len(window)]
    x = np.linspace(0.5, 2, np.prod(shape), dtype=np.float32).reshape(shape)
    pads = [(1, 2)] * len(window)

    def f(x: Any) -> Any:
        return lax.reduce_window((x, x), (1.0, 0.0), affine, window, None, pads)

    for got, want in zip(verax.jit(f)(x), f(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_pooling_sends_ties_to_the_same_place_when_compiled() -> None:
    x = np.array([[0, 1, 0, 2], [1, 0, 2, 0], [0, 0, 0, 0]], np.float32)

    def pooled(x: Any) -> Any:
        pads = [(1, 1), (1, 1)]
        return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), pads).sum()

    slope = verax.grad(pooled)
    np.testing.assert_array_equal(verax.jit(slope)(x), slope(x))


@pytest.mark.parametrize(("start", "fold"), [(0.0, lax.add), (1.0, lax.mul)])
def test_windows_of_one_element_over_a_cropped_array(start: float, fold: Any) -> None:
    """XLA aborts where it takes such a window for a function of elements."""
    x = np.arange(5, dtype=np.float32)

    def f(x: Any) -> Any:
        return lax.reduce_window(x, start, fold, (1,), (1,), [(-2, -1)])

    for g in (f, verax.jit(f)):
        assert g(x).tolist() == [2, 3]


def test_a_compiled_fold_reads_elements_of_arrays() -> None:
    """Those are known when it is traced; a region of XLA could not read the array."""
    table = verax.device_put(np.array([3, 2], np.float32))
    x = np.ones((2, 5), np.float32)

    def combined(a: Any, b: Any) -> Any:
        return a * b * table[1]

    def whole(x: Any) -> Any:
        return lax.reduce(x, 0.5, combined, (0,))

    def windows(x: Any) -> Any:
        return lax.reduce_window(x, 0.5, combined, (2,), (1,), "VALID")

    for wrap in (lambda f: f, verax.jit):
        assert wrap(whole)(x[0]) == 2**4
        assert wrap(windows)(x[0]).tolist() == [2] * 4
        assert wrap(verax.vmap(whole))(x).tolist() == [2**4] * 2
        assert wrap(verax.vmap(windows))(x).tolist() == [[2] * 4] * 2

    def chosen(x: Any) -> Any:
        return lax.reduce(x, 0, lambda a, b: a + b * table[b].astype(int), (0,))

    with pytest.raises(NotImplementedError, match=r"f32\[2\].* lax\.scan"):
        verax.jit(chosen)(np.ones(3, np.int32))
