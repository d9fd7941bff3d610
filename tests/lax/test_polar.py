"""`lax.linalg.qdwh`: the polar decomposition by iteration."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import verax
from property_tests.levels import NIGHTLY, by_turns
from verax.lax.linalg import qdwh

RANDOM = np.random.default_rng(0)


def conditioned(shape: tuple[int, int], condition: float, dtype: Any) -> np.ndarray:
    """A matrix with singular values from 1 to `condition`."""
    x = RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)
    x = x if np.issubdtype(dtype, np.complexfloating) else x.real
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return ((u * np.geomspace(condition, 1, shape[1])) @ vh).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("condition", by_turns([1.0, 1e3, 1e7], 2, NIGHTLY))
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (20, 18), (60, 60)])
@pytest.mark.usefixtures("little_effort")
def test_polar_decompositions(
    shape: tuple[int, int], condition: float, dtype: Any
) -> None:
    x = conditioned(shape, condition, dtype)
    eps = np.finfo(dtype).eps
    for run in (qdwh, verax.jit(qdwh)):
        u, h, steps, converged = run(x)
        assert u.dtype == h.dtype == dtype
        assert steps.dtype == np.int32
        assert converged
        assert 1 <= steps <= 7
        unit = np.conj(np.asarray(u).T) @ np.asarray(u)
        assert np.linalg.norm(unit - np.eye(shape[1])) <= 20 * eps * shape[1] ** 0.5
        assert np.linalg.norm(u @ h - x) <= 20 * eps * np.linalg.norm(x)
        np.testing.assert_array_equal(h, np.conj(np.asarray(h).T))
        if condition <= 1e3:
            due = scipy.linalg.polar(x)
            np.testing.assert_allclose(u, due[0], atol=2e-4)
            np.testing.assert_allclose(h, due[1], atol=2e-6 * condition)


@pytest.mark.slow
def test_a_matrix_in_a_corner() -> None:
    x = conditioned((6, 4), 10.0, np.float32)
    padded = np.pad(x, ((0, 3), (0, 2)), constant_values=np.nan)
    with verax.numpy_rank_promotion("raise"):
        u, h, _, converged = qdwh(padded, dynamic_shape=(6, 4))
    due = qdwh(x)
    assert converged
    np.testing.assert_allclose(u, np.pad(due[0], ((0, 3), (0, 2))), atol=1e-5)
    np.testing.assert_allclose(h, np.pad(due[1], (0, 2)), atol=1e-4)


def test_steps_and_edges() -> None:
    x = conditioned((4, 4), 100.0, np.float32)
    _, _, steps, converged = qdwh(x, max_iterations=1)
    assert (int(steps), bool(converged)) == (1, False)
    u, h, steps, converged = qdwh(np.zeros((3, 0), np.float32))
    assert (u.shape, h.shape, int(steps), bool(converged)) == ((3, 0), (0, 0), 0, True)
    assert qdwh(np.array([[3, 0], [0, -2]]))[1].round(3).tolist() == [[3, 0], [0, 2]]
    for shape in ((2, 3), (3,), (2, 3, 3)):
        with pytest.raises(ValueError, match="must have M >= N"):
            qdwh(np.ones(shape, np.float32))
