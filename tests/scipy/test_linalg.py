"""`verax.scipy.linalg` against SciPy's."""

import numpy as np
import pytest
import scipy.linalg

import verax
from verax.scipy import linalg


def close(result: object, want: object) -> None:
    x, y = np.asarray(result), np.asarray(want)
    assert x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=1e-3, atol=2e-4 * np.abs(y).max(initial=1))


@pytest.fixture(params=[np.float32, np.complex64])
def a(request: pytest.FixtureRequest) -> np.ndarray:
    random = np.random.default_rng(0)
    actual = random.normal(size=(4, 4)) + 2 * np.eye(4)
    if request.param is np.complex64:
        actual = actual + 1j * random.normal(size=(4, 4))
    return actual.astype(request.param)


def test_factors_and_what_they_solve(a: np.ndarray) -> None:
    p, b = a @ a.conj().T + np.eye(4, dtype=a.dtype), a[:, :2]
    for lower in (False, True):
        close(linalg.cholesky(p, lower), scipy.linalg.cholesky(p, lower=lower))
        close(linalg.cho_solve(linalg.cho_factor(p, lower), b), np.linalg.solve(p, b))
        for trans in (0, 1, 2):
            want = scipy.linalg.solve_triangular(a, b[:, 0], trans, lower)
            close(linalg.solve_triangular(a, b[:, 0], trans, lower), want)
    for trans in (0, 1, 2):
        want = scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, trans)
        close(linalg.lu_solve(linalg.lu_factor(a), b, trans), want)
    close(linalg.solve(p, b, assume_a="pos"), np.linalg.solve(p, b))


@pytest.mark.parametrize("type", [1, 2, 3])
def test_generalised_eigenvalues(a: np.ndarray, type: int) -> None:
    x, b = a + a.conj().T, a @ a.conj().T + np.eye(4, dtype=a.dtype)
    w, v = (np.asarray(part) for part in linalg.eigh(x, b, type=type))
    close(w, scipy.linalg.eigh(x, b, type=type, eigvals_only=True))
    close(w, linalg.eigh(x, b, type=type, eigvals_only=True))
    left = {1: x @ v, 2: x @ b @ v, 3: b @ x @ v}[type]
    close(left, (b @ v if type == 1 else v) * w)
    metric = np.linalg.inv(b) if type == 3 else b
    close(v.conj().T @ metric @ v, np.eye(4))
    stack = linalg.eigh(np.stack([x, 2 * x]), b, type=type, eigvals_only=True)
    close(stack, np.stack([w, 2 * w]))


def test_one_vector_for_many_factors() -> None:
    many = np.stack([np.eye(3), 2 * np.eye(3)]).astype(np.float32)
    close(linalg.cho_solve((many, True), np.ones(3)), [[1, 1, 1], [0.25, 0.25, 0.25]])


def test_lu(a: np.ndarray) -> None:
    for x in (a, a[:, :2], a[:2]):
        for permute in (False, True):
            want = scipy.linalg.lu(x, permute)
            for one, other in zip(linalg.lu(x, permute), want, strict=True):
                close(one, other)


@pytest.mark.parametrize("size", [0.01, 0.25, 1, 8])
def test_exponential(a: np.ndarray, size: float) -> None:
    x = a * a.dtype.type(size)
    close(linalg.expm(x), scipy.linalg.expm(x.astype(np.complex128)))
    close(linalg.expm(np.stack([x, 0 * x]))[1], np.eye(4))


def test_exponential_of_what_is_too_large() -> None:
    assert np.isnan(np.asarray(linalg.expm(np.full((2, 2), 1e9, np.float32)))).all()


@pytest.mark.slow
def test_exponentials_of_a_stack_do_not_depend_on_its_others() -> None:
    rng = np.random.default_rng(0)
    one = rng.standard_normal((5, 5))
    scales = [0, 1e-6, 0.3, 2, 9, 40]
    stack = np.stack([*(one * scale for scale in scales), np.full((5, 5), np.nan)])
    for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-12)):
        with verax.enable_x64(True):
            actual = np.asarray(linalg.expm(stack.astype(dtype)))
            mapped = np.asarray(verax.jit(verax.vmap(linalg.expm))(stack.astype(dtype)))
        for i, scale in enumerate(scales):
            due = scipy.linalg.expm(stack[i].astype(dtype).astype(float))
            bound = tolerance * max(float(scale), 1) * np.abs(due).max()
            np.testing.assert_allclose(actual[i], due, 0, bound)
            np.testing.assert_allclose(mapped[i], due, 0, bound)
        assert np.isnan(actual[-1]).all()


def test_gradient_of_exponential() -> None:
    """The derivative of tr exp(A) is exp(A) transposed."""
    a = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    gradient = verax.jit(verax.grad(lambda x: verax.numpy.trace(linalg.expm(x))))
    close(gradient(a), scipy.linalg.expm(a).T)


def test_schur_of_complex_output(a: np.ndarray) -> None:
    t, z = (np.asarray(x) for x in linalg.schur(a, "complex"))
    close(z @ t @ z.conj().T, a)
    assert not np.tril(t, -1).any()


def test_matrices_of_parts() -> None:
    actual = linalg.block_diag(1, np.ones((2, 3), np.int32), np.ones(2))
    close(actual, scipy.linalg.block_diag(1, np.ones((2, 3)), np.ones(2)))
    c, r = np.array([1, 2, 3]), np.array([9, 4])
    close(linalg.toeplitz(c), scipy.linalg.toeplitz(c))
    close(linalg.toeplitz(c, r), scipy.linalg.toeplitz(c, r))


def test_errors() -> None:
    with pytest.raises(ValueError, match="trans"):
        linalg.solve_triangular(np.eye(2), np.ones(2), 3)
    with pytest.raises(ValueError, match="assume_a"):
        linalg.solve(np.eye(2), np.ones(2), assume_a="diagonal")
    with pytest.raises(ValueError, match="mode must be"):
        linalg.qr(np.eye(2), mode="other")
    with pytest.raises(ValueError, match="type must be"):
        linalg.eigh(np.eye(2), type=4)
    with pytest.raises(ValueError, match="same size"):
        linalg.eigh(np.eye(2), np.eye(3))
