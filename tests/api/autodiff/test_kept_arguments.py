"""Residuals of a pullback that are arguments: shown, dropped, put back."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import tree_util
from verax.api.autodiff.pullback import NotNeeded, NotSaveable

X = vnp.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
W = vnp.asarray(np.arange(16, dtype=np.float32).reshape(4, 4) / 7)
CT = vnp.ones((3, 4))


def layer(x: Any, w: Any) -> Any:
    return 2.0 * (1.0 * x @ w)


def right(result: Any) -> None:
    np.testing.assert_allclose(result[0], 2 * CT @ W.T, 1e-6)
    np.testing.assert_allclose(result[1], 2 * X.T @ CT, 1e-6)


def test_arguments_stand_apart() -> None:
    _, pull = verax.vjp(layer, X, W)
    assert isinstance(pull.args_res[0], NotNeeded)
    assert pull.args_res[1] is W
    assert [x.shape for x in pull.opaque_residuals if x.ndim] == [(3, 4)]
    right(pull(CT))
    pull.args_res[1] = None
    with pytest.raises(ValueError, match=r"args_res\[1\] has 0 leaves"):
        pull(CT)
    pull.args_res[1] = W
    right(pull(CT))
    pull.args_res = [X, np.ones(3, np.float32)]
    with pytest.raises(
        ValueError, match=r"float32\[3\] .*float32\[4, 4\] as args\[1\]"
    ):
        pull(CT)
    pull.args_res = [X]
    with pytest.raises(ValueError, match="each of the 2 arguments, not 1"):
        pull(CT)


def test_what_is_not_needed() -> None:
    _, pull = verax.vjp(vnp.sin, 3.0, saveable_args=False)
    assert isinstance(pull.args_res[0], NotNeeded)
    assert len(pull.opaque_residuals) == 1
    np.testing.assert_allclose(pull(1.0)[0], np.cos(3.0), 1e-6)


def test_scalars_can_be_put_back() -> None:
    y, pull = verax.vjp(lambda x, y: x * y, 2.0, 3.0)
    pull.args_res = [None, None]
    pull.args_res = [2.0, 3.0]
    assert (y, *pull(1.0)) == (6.0, 3.0, 2.0)

    @verax.jit
    def forward() -> Any:
        y, pull = verax.vjp(lambda x, y: x * y, 2.0, 3.0)
        pull.args_res = [None, None]
        return y, pull

    @verax.jit
    def backward(pull: Any) -> Any:
        pull.args_res = [2.0, 3.0]
        return pull(1.0)

    y, pull = forward()
    assert (y, *backward(pull)) == (6.0, 3.0, 2.0)


def test_arguments_that_must_not_be_kept() -> None:
    _, pull = verax.vjp(layer, X, W, saveable_args=(True, False))
    assert isinstance(pull.args_res[1], NotSaveable)
    with pytest.raises(ValueError, match=r"not-saveable arguments: args\[1\]"):
        pull(CT)
    assert all(x is not W for x in tree_util.tree_leaves(pull))
    pull.args_res[1] = W
    right(pull(CT))
    _, pull = verax.vjp(lambda x, w: x @ w, X, W, saveable_args=False)
    assert tree_util.tree_leaves(pull) == []


def test_a_pullback_without_an_argument_crosses_jit() -> None:
    @verax.jit
    def forward(x: Any, w: Any) -> Any:
        return verax.vjp(layer, x, w, saveable_args=(True, False))

    @verax.jit
    def backward(pull: Any, w: Any, ct: Any) -> Any:
        pull.args_res[1] = w
        return pull(ct)

    _, pull = forward(X, W)
    assert isinstance(pull.args_res[1], NotSaveable)
    right(backward(pull, W, CT))
    with pytest.raises(ValueError, match="not-saveable"):
        verax.jit(lambda pull, ct: pull(ct))(pull, CT)


def test_a_tuple_stands_for_a_dict() -> None:
    d = {"hi": vnp.ones((4, 5)), "bye": vnp.ones((3, 4))}
    _, pull = verax.vjp(lambda d: d["bye"] @ d["hi"], d, saveable_args=((True, False),))
    bye, hi = pull.args_res[0]
    assert bye is d["bye"]
    assert isinstance(hi, NotSaveable)
    with pytest.raises(ValueError, match=r"args\[0\]\['hi'\]"):
        pull(vnp.ones((3, 5)))
    pull.args_res = [d]
    (actual,) = pull(vnp.ones((3, 5)))
    np.testing.assert_array_equal(actual["hi"], np.full((4, 5), 3.0))
    np.testing.assert_array_equal(actual["bye"], np.full((3, 4), 5.0))


@pytest.mark.parametrize(
    ("saveable", "message"),
    [
        ((True,), "number of children"),
        ((True, (True, True)), r"args\[1\] is a leaf"),
        ((1, True), "tuple-tree of bools"),
        ([True, True], "tuple-tree of bools"),
    ],
)
def test_bad_saveable_args(saveable: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verax.vjp(layer, X, W, saveable_args=saveable)


def test_the_program_of_a_derivative() -> None:
    push: Any = verax.linearize(vnp.sin, X)[1]
    (jaxpr,) = push.func.args
    assert len(jaxpr.outvars) == 1
    assert len(push.args) == 1


def test_primals_without_tangents() -> None:
    def f(x: Any, w: Any) -> Any:
        return {"a": x @ w, "b": vnp.sin(w)}

    _, pull = verax.vjp(f, X, W, in_nzs=(True, False))
    assert pull.out_nzs == {"a": True, "b": False}
    assert isinstance(pull.args_res[0], NotNeeded)
    actual = pull({"a": CT, "b": vnp.ones((4, 4))})
    np.testing.assert_allclose(actual[0], CT @ W.T, 1e-6)
    assert not np.any(actual[1])
    _, push = verax.linearize(f, X, W, in_nzs=(False, True))
    tangent = push(X, W)
    np.testing.assert_allclose(tangent["a"], X @ W, 1e-6)
    np.testing.assert_allclose(tangent["b"], vnp.cos(W) * W, 1e-6)
    with pytest.raises(ValueError, match="in_nzs has 1 entries"):
        verax.vjp(f, X, W, in_nzs=(True,))
    jitted = verax.jit(lambda x: verax.vjp(f, x, W, in_nzs=(True, False))[1])(X)
    np.testing.assert_allclose(jitted({"a": CT, "b": W})[0], CT @ W.T, 1e-6)


def test_axes_are_not_reduced() -> None:
    for call in (
        lambda: verax.grad(vnp.sin, reduce_axes=("i",)),
        lambda: verax.value_and_grad(vnp.sin, reduce_axes=("i",)),
        lambda: verax.vjp(vnp.sin, 1.0, reduce_axes=("i",)),
        lambda: verax.linear_transpose(vnp.negative, 1.0, reduce_axes=("i",)),
    ):
        with pytest.raises(NotImplementedError, match="reduce_axes"):
            call()
    assert float(verax.grad(vnp.sin, reduce_axes=())(0.0)) == 1
