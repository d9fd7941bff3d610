"""`verax.scipy.linalg`: functions of matrices and matrices of structure."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import verax
import verax.numpy as vnp
from verax.scipy import linalg

RANDOM = np.random.default_rng(3)
A = RANDOM.normal(size=(4, 4)) + 3 * np.eye(4)
B = RANDOM.normal(size=(3, 3)) + 2 * np.eye(3)
C = RANDOM.normal(size=(4, 3))


def close(result: Any, want: Any) -> None:
    assert np.shape(result) == np.shape(want)
    np.testing.assert_allclose(np.asarray(result), want, 1e-8, 1e-8)


@pytest.fixture(autouse=True)
def double() -> Any:
    with verax.enable_x64(True):
        yield


@pytest.fixture(params=[False, True])
def a(request: pytest.FixtureRequest) -> np.ndarray:
    return A + 1j * RANDOM.normal(size=(4, 4)) if request.param else A


@pytest.mark.slow
def test_square_root(a: np.ndarray) -> None:
    x = np.asarray(linalg.sqrtm(a))
    close(x @ x, a + 0j)
    close(x, scipy.linalg.sqrtm(a) + 0j)
    close(verax.jit(linalg.sqrtm)(np.stack([a, 4 * a]))[1], 2 * x)
    assert not np.asarray(linalg.sqrtm(np.zeros((3, 3)))).any()
    assert np.isnan(np.asarray(linalg.sqrtm(np.array([[0.0, 1.0], [0.0, 0.0]])))).any()
    assert linalg.sqrtm(np.eye(2, dtype=np.float32)).dtype == np.complex64
    assert linalg.sqrtm(np.zeros((0, 0))).shape == (0, 0)
    assert np.shape(linalg.funm(np.zeros((0, 0)), vnp.exp)) == (0, 0)
    assert linalg.solve_sylvester(A, np.zeros((0, 0)), A[:, :0]).shape == (4, 0)


@pytest.mark.slow
def test_sylvester(a: np.ndarray) -> None:
    x = linalg.solve_sylvester(a, B, C)
    for method in ("schur", "eigen"):
        x = linalg.solve_sylvester(a, B, C, method=method)
        close(x, scipy.linalg.solve_sylvester(a, B + 0 * a[:3, :3], C))
    many = linalg.solve_sylvester(np.stack([a, 2 * a]), B, C)
    close(many[0], x)
    assert np.isnan(np.asarray(linalg.solve_sylvester(a, -a, a))).all()
    with pytest.raises(ValueError, match="shape"):
        linalg.solve_sylvester(a, B, C.T)
    with pytest.raises(ValueError, match="method must be"):
        linalg.solve_sylvester(a, B, C, method="other")


@pytest.mark.slow
def test_functions_of_matrices(a: np.ndarray) -> None:
    close(linalg.funm(a, vnp.exp), scipy.linalg.expm(a) + 0j)
    actual, error = linalg.funm(a, lambda x: x * x, disp=False)
    close(actual, a @ a + 0j)
    assert 0 < float(error) < 1e-10
    direction = a @ a
    for one, other in zip(
        linalg.expm_frechet(a / 4, direction),
        scipy.linalg.expm_frechet(a / 4, direction),
        strict=True,
    ):
        np.testing.assert_allclose(np.asarray(one), other, 1e-7)


def test_factors(a: np.ndarray) -> None:
    for x in (a, a[:3], a[:, :3]):
        for side in ("left", "right"):
            for one, other in zip(
                linalg.polar(x, side), scipy.linalg.polar(x, side), strict=True
            ):
                close(one, other)
    h, q = (np.asarray(x) for x in linalg.hessenberg(a, calc_q=True))
    close(q @ h @ q.conj().T, a)
    assert not np.tril(h, -2).any()
    close(linalg.hessenberg(a), h)
    close(linalg.hessenberg(np.ones((1, 1)), calc_q=True)[1], np.ones((1, 1)))
    t, z = scipy.linalg.schur(a)
    t, z = (np.asarray(x) for x in linalg.rsf2csf(t, z))
    close(z @ t @ z.conj().T, a + 0j)
    assert not np.tril(t, -1).any()


@pytest.mark.slow
def test_complex_schur_form_is_that_of_scipy(a: np.ndarray) -> None:
    for n in (1, 2, 4):  # no Schur forms: the same rotations show what is turned
        t, z = a[:n, :n], A[:n, :n].T
        for run in (linalg.rsf2csf, verax.jit(linalg.rsf2csf)):
            for actual, want in zip(run(t, z), scipy.linalg.rsf2csf(t, z), strict=True):
                close(actual, want)
    stacked = linalg.rsf2csf(np.stack([a, a.T]), np.stack([A, A]))
    close(stacked[0][1], scipy.linalg.rsf2csf(a.T, A)[0])
    assert [x.shape for x in linalg.rsf2csf(a[:0, :0], a[:0, :0])] == [(0, 0)] * 2


@pytest.mark.parametrize("conjugate", [False, True])
def test_products_with_q(a: np.ndarray, conjugate: bool) -> None:
    m, v = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=4)
    for c, mode in ((m, "right"), (v, "right"), (m.T, "left"), (v, "left")):
        for pivoting in (False, True):
            args = (a, c + 0 * a[0, 0], mode, pivoting, conjugate)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = scipy.linalg.qr_multiply(*args)
            for one, other in zip(linalg.qr_multiply(*args), want, strict=True):
                close(one, other)
    assert linalg.qr_multiply(a[:2], m[:, :2])[0].shape == (3, 2)
    with pytest.raises(ValueError, match="does not match"):
        linalg.qr_multiply(a, m.T)


def test_tridiagonal() -> None:
    d, e = RANDOM.normal(size=5), RANDOM.normal(size=4)
    w, v = linalg.eigh_tridiagonal(d, e)
    close(w, scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True))
    full = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    close(np.asarray(v) * np.asarray(w) @ np.asarray(v).T, full)
    part = linalg.eigh_tridiagonal(
        d, e, eigvals_only=True, select="i", select_range=(1, 2)
    )
    close(part, np.asarray(w)[1:3])
    turned = linalg.eigh_tridiagonal(d + 0j, e * 1j, eigvals_only=True)
    close(turned, w)
    with pytest.raises(ValueError, match="interval"):
        linalg.eigh_tridiagonal(d, e, select="v", select_range=(0, 1))
    with pytest.raises(ValueError, match="n - 1"):
        linalg.eigh_tridiagonal(d, d)


@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_constants(n: int) -> None:
    for name in ("hilbert", "invhilbert"):
        close(getattr(linalg, name)(n), getattr(scipy.linalg, name)(n))
    for kind in ("symmetric", "lower", "upper"):
        close(linalg.pascal(n, kind), scipy.linalg.pascal(n, kind))
        close(linalg.invpascal(n, kind), scipy.linalg.invpascal(n, kind))
    for full in (False, True):
        close(linalg.helmert(n, full), scipy.linalg.helmert(n, full))
    for scale in (None, "sqrtn", "n"):
        close(linalg.dft(n, scale), scipy.linalg.dft(n, scale))
    close(linalg.hadamard(2**n), scipy.linalg.hadamard(2**n))


@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_matrices_of_vectors(n: int) -> None:
    x, y = RANDOM.normal(size=n), RANDOM.normal(size=4)
    for name in ("toeplitz", "hankel", "circulant", "companion", "fiedler"):
        ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
        close(ours(x), theirs(x))
        close(ours(np.stack([x, 2 * x]))[1], theirs(2 * x))
    for name in ("toeplitz", "hankel"):
        close(getattr(linalg, name)(x, y), getattr(scipy.linalg, name)(x, y))
    close(linalg.leslie(x, x[1:]), scipy.linalg.leslie(x, x[1:]))
    actual = np.asarray(linalg.fiedler_companion(x))
    close(actual, scipy.linalg.fiedler_companion(x))
    for mode in ("full", "same", "valid"):
        for m in (1, 3, 9):
            want = scipy.linalg.convolution_matrix(x, m, mode)
            close(linalg.convolution_matrix(x, m, mode), want)
    verax.test_util.check_grads(linalg.companion, (x,), 1)


def test_wrong_calls() -> None:
    wrong: list[tuple[str, Any]] = [
        ("at least", lambda: linalg.companion(np.ones(1))),
        ("shorter", lambda: linalg.leslie(np.ones(3), np.ones(3))),
        ("length of f along", lambda: linalg.leslie(np.ones(1), np.ones(0))),
        ("mode must be", lambda: linalg.convolution_matrix(np.ones(3), 2, "other")),
        ("positive", lambda: linalg.convolution_matrix(np.ones(3), 0)),
        ("power of 2", lambda: linalg.hadamard(3)),
        ("complex", lambda: linalg.dft(3, dtype=np.float32)),
        ("kind", lambda: linalg.pascal(3, "other")),
        ("side", lambda: linalg.polar(A, "other")),
        ("square", lambda: linalg.sqrtm(C)),
        ("square", lambda: linalg.funm(C, vnp.exp)),
        ("the same shape", lambda: linalg.expm_frechet(A, B)),
        ("blocks", lambda: linalg.sqrtm(A, 2)),
    ]
    for match, call in wrong:
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError):
        linalg.hilbert(2.5)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.slow
def test_powers_of_negative_eigenvalues_are_on_one_side_of_the_cut() -> None:
    for n, seed in ((5, 3), (20, 0), (20, 1)):
        a = np.random.default_rng(seed).normal(size=(n, n)).astype(np.float32)
        assert np.any(np.linalg.eigvals(a).real < 0)
        truth = scipy.linalg.funm(a.astype(np.float64), lambda x: x**1.3)
        actual = linalg.funm(a, lambda x: x**1.3)
        np.testing.assert_allclose(actual, truth, rtol=0.02, atol=0.02)
        np.testing.assert_allclose(linalg.sqrtm(a), scipy.linalg.sqrtm(a), atol=1e-3)
