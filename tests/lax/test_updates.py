"""Products with reflections, updates of factors, symmetric products."""

from typing import Any

import numpy as np
import pytest

import verax
from verax import lax

RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(5, 3)).astype(np.float32)
C = RANDOM.normal(size=(5, 5)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_ormqr_is_a_product_with_q(dtype: Any) -> None:
    a = (A + (1j * A[::-1] if dtype is np.complex64 else 0)).astype(dtype)
    h, taus = lax.linalg.geqrf(a)
    wide: Any = np.zeros((5, 5), dtype)
    wide[:, :3] = h
    scales: Any = np.zeros(5, dtype)
    scales[:3] = taus
    q = np.asarray(lax.linalg.householder_product(wide, scales))
    c: Any = C.astype(dtype)
    for left in (True, False):
        for transpose in (True, False):
            factor = q.conj().T if transpose else q
            expected = factor @ c if left else c @ factor
            actual = lax.linalg.ormqr(h, taus, c, left=left, transpose=transpose)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    stacked = verax.vmap(lambda c: lax.linalg.ormqr(h, taus, c))(np.stack([c, c]))
    np.testing.assert_allclose(stacked[1], q @ c, rtol=1e-4, atol=1e-5)


def test_cholesky_update() -> None:
    s = A.T @ A
    r = np.linalg.cholesky(s).T.astype(np.float32)
    w = np.arange(3, dtype=np.float32)
    actual = verax.jit(lax.linalg.cholesky_update)(r, w)
    expected = np.linalg.cholesky(s + np.outer(w, w)).T
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    # log det (RᵀR + wwᵀ) has the slope 2 (RᵀR + wwᵀ)⁻¹ w.
    slope = verax.grad(
        lambda w: (
            2
            * verax.numpy.log(
                verax.numpy.diagonal(lax.linalg.cholesky_update(r, w))
            ).sum()
        )
    )(w)
    expected = 2 * np.linalg.solve(s + np.outer(w, w), w)
    np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-5)


def test_symmetric_product() -> None:
    c = C + C.T
    actual = lax.linalg.symmetric_product(
        A, c, alpha=2.0, beta=3.0, symmetrize_output=True
    )
    np.testing.assert_allclose(actual, 2 * A @ A.T + 3 * c, rtol=1e-4, atol=1e-5)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="do not match"):
        lax.linalg.ormqr(A, np.ones(3, np.float32), np.ones((4, 4), np.float32))
    with pytest.raises(ValueError, match="takes"):
        lax.linalg.cholesky_update(C, np.ones(4, np.float32))
    with pytest.raises(ValueError, match="takes"):
        lax.linalg.symmetric_product(A, A)
