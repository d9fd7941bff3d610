"""Losses that are scaled on their way back."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.rewrites import dynamic_scale, loss_scale, narrow

W = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def loss(w: Any, x: Any) -> Any:
    return vnp.mean((x @ w) ** 2)


def test_results_are_those_without_a_scale() -> None:
    value, grads = loss_scale(verax.value_and_grad, 2.0**10)(loss)(W, W)
    exact, due = verax.value_and_grad(loss)(W, W)
    assert float(value) == float(exact)
    np.testing.assert_array_equal(grads, due)


def test_other_outputs_and_arguments_of_value_and_grad_go_through() -> None:
    def with_size(w: Any, x: Any) -> Any:
        return loss(w, x), x.size

    scaled = loss_scale(verax.value_and_grad, 8.0)
    (value, size), grads = scaled(with_size, argnums=1, has_aux=True)(W, W)
    assert (float(value), size) == (float(loss(W, W)), 64)
    np.testing.assert_allclose(grads, verax.grad(loss, 1)(W, W), rtol=1e-6)


def test_gradients_that_float16_has_not_are_saved_by_a_scale() -> None:
    """A cotangent of 2e-9 is zero in float16."""
    short = narrow(lambda w, x: 1e-8 * vnp.mean(x @ w), to=vnp.float16)
    plain = verax.value_and_grad(short)(W, W)[1]
    assert not np.any(plain)
    _, grads = loss_scale(verax.value_and_grad, 2.0**15)(short)(W, W)
    exact = verax.grad(lambda w, x: 1e-8 * vnp.mean(x @ w))(W, W)
    np.testing.assert_allclose(grads, exact, rtol=2e-2, atol=1e-12)


def test_a_dynamic_scale_skips_what_overflows_and_grows_after_good_steps() -> None:
    short = narrow(loss, to=vnp.float16)

    @verax.jit
    def step(w: Any, scale: Any) -> Any:
        scaled: Any = loss_scale(verax.value_and_grad, scale)
        (_, grads), scale = scaled(short)(w, W)
        return scale.select(w - 1e-3 * grads, w), scale

    w, scale = vnp.asarray(W), dynamic_scale(2.0**24, interval=3)
    new, after = step(w, scale)
    assert not bool(after.finite)
    assert float(after.scale) == 2.0**23
    np.testing.assert_array_equal(new, w)
    seen = []
    for _ in range(30):
        w, scale = step(w, scale)
        seen.append(float(scale.scale))
    skipped = int(scale.skipped)
    assert skipped > 1
    assert np.isfinite(w).all()
    assert max(np.diff(np.log2(seen))) == 1  # it grew again
    assert float(loss(w, W)) < float(loss(W, W))


def test_a_scale_neither_vanishes_nor_overflows() -> None:
    low, high = dynamic_scale(1.0), dynamic_scale(3e38, interval=1)
    assert float(low.after(False).scale) == 1.0
    assert np.isfinite(high.after(True).scale)


def test_state_is_a_tree_that_keeps_its_types() -> None:
    scale = dynamic_scale()
    after = verax.jit(lambda s: s.after(True))(scale)
    kinds = [(x.dtype, x.weak_type) for x in scale]
    assert [(x.dtype, x.weak_type) for x in after] == kinds


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="positive initial scale"):
        dynamic_scale(-1.0)
    for number in (0, -2.0, float("nan")):
        with pytest.raises(ValueError, match="positive scale"):
            loss_scale(verax.value_and_grad, number)
    with pytest.raises(TypeError, match="takes value_and_grad itself"):
        loss_scale(loss, 2.0)(W, W)
    wrong: Any = 3
    with pytest.raises(TypeError, match="loss_scale"):
        loss_scale(wrong, 2.0)
