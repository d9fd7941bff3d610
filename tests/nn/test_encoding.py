"""one_hot, standardize and attention."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import verax
from verax import nn

RANDOM = np.random.default_rng(4)
ANY: Any = nn


def close(x: Any, y: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), tolerance, tolerance)


def test_one_hot() -> None:
    x = np.array([[0, 2, 7, -1]], np.int32)
    for axis in (-1, 0, 1):
        actual = np.asarray(nn.one_hot(x, 3, axis=axis))
        expected = np.moveaxis(x[..., None] == np.arange(3), -1, axis)
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == np.float32
    assert nn.one_hot(1, 3, dtype=np.int8).dtype == np.int8
    assert nn.one_hot(1, 3, dtype=bool).dtype == np.bool_
    assert nn.one_hot(x, 0).shape == (1, 4, 0)
    assert nn.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert len(verax.make_jaxpr(lambda x: nn.one_hot(x, 3))(x).jaxpr.eqns) == 4
    with pytest.raises(TypeError):
        ANY.one_hot(x, 2.5)
    with pytest.raises(ValueError, match=r"dimension|axis"):
        nn.one_hot(x, 3, axis=3)


def test_standardize() -> None:
    x = RANDOM.normal(size=(4, 6)).astype(np.float32)
    for algorithm in ("fast", "stable"):
        actual = nn.standardize(x, 0, algorithm=algorithm)
        close(actual, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), 1e-4)
    actual = nn.standardize(x, -1, mean=1.0, variance=4.0, epsilon=0.0)
    close(actual, (x - 1) / 2)
    mask = np.array([1, 1, 1, 0, 0, 1], bool)
    kept = x[:, mask]
    masked = np.asarray(nn.standardize(x, where=mask))[:, mask]
    mean, var = kept.mean(1, keepdims=True), kept.var(1, keepdims=True)
    close(masked, (kept - mean) / np.sqrt(var + 1e-5), 1e-4)
    with pytest.raises(ValueError, match="algorithm"):
        nn.standardize(x, algorithm="other")


def reference(q: Any, k: Any, v: Any, mask: Any, bias: Any = 0.0) -> Any:
    """Attention of equal numbers of heads, in NumPy."""
    scores = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1]) + bias
    weights = scipy.special.softmax(np.where(mask, scores, -1e30), -1)
    return np.einsum("bnts,bsnh->btnh", weights, v)


Q, K, V = (RANDOM.normal(size=(2, n, 4, 8)).astype(np.float32) for n in (5, 6, 6))
ROW, COLUMN = np.arange(5)[:, None], np.arange(6)[None, :]
ALL = np.ones((5, 6), bool)


def test_attention() -> None:
    attend = nn.dot_product_attention
    close(attend(Q, K, V), reference(Q, K, V, ALL))
    close(attend(Q, K, V, is_causal=True), reference(Q, K, V, ROW >= COLUMN))
    near = (ROW - COLUMN <= 1) & (COLUMN - ROW <= 2)
    close(attend(Q, K, V, local_window_size=(1, 2)), reference(Q, K, V, near))
    bias = RANDOM.normal(size=(1, 4, 5, 6)).astype(np.float32)
    mask = RANDOM.random((2, 1, 5, 6)) > 0.3
    close(attend(Q, K, V, bias, mask), reference(Q, K, V, mask, bias))
    close(attend(Q[0], K[0], V[0]), reference(Q, K, V, ALL)[0])
    close(verax.jit(attend)(Q, K, V), attend(Q, K, V))


def test_grouped_heads() -> None:
    k, v = K[:, :, :2], V[:, :, :2]
    wide = np.repeat(k, 2, axis=2), np.repeat(v, 2, axis=2)
    mask = RANDOM.random((2, 4, 5, 6)) > 0.3
    actual = nn.dot_product_attention(Q, k, v, mask=mask)
    close(actual, reference(Q, *wide, mask))


def test_lengths_and_residual() -> None:
    ends = np.array([2, 6], np.int32)
    starts = np.array([3, 5], np.int32)
    actual, residual = nn.dot_product_attention(
        Q,
        K,
        V,
        query_seq_lengths=starts,
        key_value_seq_lengths=ends,
        return_residual=True,
    )
    keys = COLUMN[None, None] < ends[:, None, None, None]
    expected = reference(Q, K, V, keys)
    real = np.arange(5)[None, :] < starts[:, None]
    close(actual, expected * real[:, :, None, None])
    scores = np.einsum("btnh,bsnh->btns", Q, K) / np.sqrt(8)
    scores = np.where(keys[:, :, :, :], scores, -np.inf)
    total = scipy.special.logsumexp(scores, -1)
    close(np.asarray(residual)[real], total[real])


def test_attention_errors() -> None:
    attend = ANY.dot_product_attention
    with pytest.raises(ValueError, match="the same shape"):
        attend(Q, K, V[:, :5])
    with pytest.raises(ValueError, match="heads of the query, 3, must be a multiple"):
        attend(Q[:, :, :3], K[:, :, :2], V[:, :, :2])
    with pytest.raises(ValueError, match="boolean"):
        attend(Q, K, V, mask=np.ones((5, 6)))
    with pytest.raises(ValueError, match="broadcast"):
        attend(Q, K, V, bias=np.ones((5, 7)))
    with pytest.raises(ValueError, match="not available"):
        attend(Q, K, V, implementation="cudnn")
    with pytest.raises(ValueError, match="lengths"):
        attend(Q, K, V, query_seq_lengths=np.ones(3, np.int32))


def test_gradient_of_attention_is_finite_behind_masks() -> None:
    mask = np.zeros((1, 1, 5, 6), bool)
    mask[..., 0] = True
    slopes = verax.grad(lambda q: nn.dot_product_attention(q, K, V, mask=mask).sum())(Q)
    assert np.isfinite(np.asarray(slopes)).all()


def test_one_hot_of_floats_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="should be integer-typed"):
        out = nn.one_hot(np.array([1.0, 0.5]), 3)
    assert out.tolist() == [[0, 1, 0], [0, 0, 0]]
