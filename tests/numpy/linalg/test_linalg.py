"""`verax.numpy.linalg` against NumPy's."""

from typing import Any

import numpy as np
import pytest

import verax
from verax.numpy import linalg
from verax.test_util import check_grads

jnp: Any = verax.numpy
STACK = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

SHAPES = ((4, 4), (2, 3, 3), (2, 2), (1, 1))
DTYPES = (np.float32, np.complex64)


def close(result: object, want: object) -> None:
    x, y = np.asarray(result), np.asarray(want)
    assert x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4 * np.abs(y).max(initial=1))


@pytest.fixture(params=[(s, d) for s in SHAPES for d in DTYPES], ids=str)
def a(request: pytest.FixtureRequest) -> np.ndarray:
    shape, dtype = request.param
    random = np.random.default_rng(1)
    actual = random.normal(size=shape) + 3 * np.eye(shape[-1])
    if dtype is np.complex64:
        actual = actual + 1j * random.normal(size=shape)
    return np.asarray(actual, dtype)


def hermitian(a: np.ndarray) -> np.ndarray:
    product: np.ndarray = a @ a.conj().swapaxes(-1, -2)
    product += np.eye(a.shape[-1], dtype=a.dtype)
    return product


def test_systems(a: np.ndarray) -> None:
    vector, sides = a[..., 0].reshape(-1)[: a.shape[-1]], a[..., :1]
    close(linalg.det(a), np.linalg.det(a))
    close(linalg.inv(a), np.linalg.inv(a))
    close(linalg.solve(a, vector), np.linalg.solve(a, vector))
    close(linalg.solve(a, sides), np.linalg.solve(a, sides))
    for x, y in zip(linalg.slogdet(a), np.linalg.slogdet(a), strict=True):
        close(x, y)
    for n in (0, 1, 3, -2):
        close(linalg.matrix_power(a, n), np.linalg.matrix_power(a, n))


def test_factors(a: np.ndarray) -> None:
    h = hermitian(a)
    close(linalg.cholesky(h), np.linalg.cholesky(h))
    upper = linalg.cholesky(h, upper=True)
    close(upper, np.linalg.cholesky(h).conj().swapaxes(-1, -2))
    close(linalg.eigvalsh(h), np.linalg.eigvalsh(h))
    close(linalg.svdvals(a), np.linalg.svd(a, compute_uv=False))
    u, s, vh = (np.asarray(x) for x in linalg.svd(h, hermitian=True))
    close((u * s[..., None, :]) @ vh, h)
    w, v = (np.asarray(x) for x in linalg.eig(a))
    close(a @ v, v * w[..., None, :])
    close(linalg.qr(a, "r"), np.asarray(linalg.qr(a)[1]))
    assert [x.shape for x in linalg.qr(np.ones((4, 3)), "full")] == [(4, 3), (3, 3)]


def test_ranks_and_pseudo_inverses(a: np.ndarray) -> None:
    tall = a[..., :1]
    close(linalg.pinv(tall), np.linalg.pinv(tall))
    close(linalg.pinv(hermitian(a), hermitian=True), np.linalg.inv(hermitian(a)))
    product = tall @ tall.swapaxes(-1, -2)
    close(linalg.matrix_rank(product), np.linalg.matrix_rank(product))
    assert linalg.matrix_rank(np.zeros(3)) == 0


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms(a: np.ndarray, order: int | str | None) -> None:
    for keepdims in (False, True):
        want = np.linalg.norm(a, order, (-2, -1), keepdims)  # type: ignore[arg-type]  # stubs
        close(linalg.norm(a, order, (-2, -1), keepdims), want)
    close(linalg.cond(a, order), np.linalg.cond(a, order))  # type: ignore[arg-type]  # stubs


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, np.inf, -np.inf, -1])
def test_vector_norms(a: np.ndarray, order: float | None) -> None:
    close(linalg.norm(a, order, -1), np.linalg.norm(a, order, -1))


def test_least_squares() -> None:
    random = np.random.default_rng(0)
    a = random.normal(size=(5, 3)).astype(np.float32)
    for b in (a[:, 0], random.normal(size=(5, 2)).astype(np.float32)):
        actual = linalg.lstsq(a, b, numpy_resid=True)
        for x, y in zip(actual, np.linalg.lstsq(a, b, rcond=None), strict=True):
            close(np.asarray(x).reshape(-1), np.asarray(y).reshape(-1))


def test_tensors() -> None:
    a = np.random.default_rng(0).normal(size=(2, 3, 6)).astype(np.float32)
    close(linalg.tensorinv(a), np.linalg.tensorinv(a))
    b = np.ones((2, 3), np.float32)
    close(linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b))


def test_gradients(a: np.ndarray) -> None:
    if a.dtype == np.complex64 or a.ndim > 2:
        return
    transposed = np.linalg.inv(a).T
    close(verax.grad(linalg.det)(a), np.linalg.det(a) * transposed)
    logarithm = verax.jit(verax.grad(lambda x: linalg.slogdet(x)[1]))
    close(logarithm(a), transposed)


def test_determinants_from_reflections() -> None:
    x = np.random.default_rng(1).normal(size=(3, 4, 4)).astype(np.float32)
    for case in (x, x[0, :1, :1], np.diag([1, -2, 3]).astype(np.float32), x[:, :0, :0]):
        actual, want = linalg.slogdet(case, method="qr"), np.linalg.slogdet(case)
        close(actual.sign, want.sign)
        close(actual.logabsdet, want.logabsdet)
    slope = verax.grad(lambda x: linalg.slogdet(x, method="qr")[1])(x[0])
    close(slope, np.linalg.inv(x[0]).T)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, 2, np.inf])
def test_norms_of_nothing_are_zero(order: Any) -> None:
    for shape in ((0, 0), (0, 3), (3, 0)):
        assert float(linalg.matrix_norm(np.zeros(shape), ord=order)) == 0
    if not isinstance(order, str):
        assert float(linalg.vector_norm(np.zeros(0), ord=order)) == 0


def test_errors() -> None:
    with pytest.raises(ValueError, match="only one of"):
        linalg.matrix_rank(np.ones((2, 2)), rtol=0.1, tol=0.1)
    with pytest.raises(ValueError, match="only one of"):
        linalg.pinv(np.ones((2, 2)), rtol=0.1, rcond=0.1)
    with pytest.raises(ValueError, match="methods"):
        linalg.slogdet(np.ones((2, 2), np.complex64), method="qr")
    with pytest.raises(ValueError, match="square"):
        linalg.inv(np.ones((2, 3)))
    with pytest.raises(ValueError, match="2 rows"):
        linalg.solve(np.ones((2, 2)), np.ones(3))
    with pytest.raises(ValueError, match="order of a matrix norm"):
        linalg.norm(np.ones((2, 2)), "other")
    with pytest.raises(ValueError, match="mode must be"):
        linalg.qr(np.ones((2, 2)), "other")


def test_diagonals_of_stacks_of_matrices() -> None:
    for offset in (-1, 0, 2):
        np.testing.assert_array_equal(
            jnp.linalg.diagonal(STACK, offset=offset),
            np.linalg.diagonal(STACK, offset=offset),
        )
        np.testing.assert_array_equal(
            jnp.linalg.trace(STACK, offset=offset),
            np.linalg.trace(STACK, offset=offset),
        )
    assert jnp.linalg.trace(STACK, dtype=int).dtype == "int32"


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 5)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives_by_factors(shape: tuple[int, ...], dtype: str) -> None:
    """Twice, since the second uses the rule of the first."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape) + 3 * np.eye(shape[-1])
    if dtype == "c16":
        a = a + 1j * rng.standard_normal(shape)
    b = rng.standard_normal((*shape[:-1], 2)).astype(dtype)
    with verax.enable_x64():
        check_grads(linalg.det, (a,), 2, rtol=1e-4)
        check_grads(linalg.slogdet, (a,), 2, rtol=1e-4)
        check_grads(linalg.inv, (a,), 2, rtol=1e-4)
        check_grads(linalg.solve, (a, b), 2, rtol=1e-4)


def test_the_gradient_of_a_determinant_of_lower_rank() -> None:
    """It is the matrix of cofactors, though there is no inverse."""
    a = np.random.default_rng(0).standard_normal((5, 5))
    a[4] = a[0] + a[1]
    minors = [
        [np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(5)]
        for i in range(5)
    ]
    signs = (-1.0) ** np.add.outer(np.arange(5), np.arange(5))
    with verax.enable_x64():
        actual = verax.grad(linalg.det)(a)
    np.testing.assert_allclose(actual, signs * minors, rtol=1e-9, atol=1e-12)


def test_a_solve_factorises_once() -> None:
    def loss(a: Any, b: Any) -> Any:
        return (linalg.solve(a, b) ** 2).sum()

    a, b = np.eye(3, dtype="f4"), np.ones(3, "f4")
    text = verax.jit(verax.grad(loss, (0, 1))).lower(a, b).as_text()
    assert text.count("getrf") == 1
