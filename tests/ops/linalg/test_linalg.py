"""Decompositions: their defining equations, failures, empty matrices, and errors."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import verax
from verax.lax import linalg
from verax.ops.linalg.lu import lu_solve

DTYPES = (np.float32, np.complex64)


def matrices(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    random = np.random.default_rng(0)
    actual = random.normal(size=shape)
    if dtype is np.complex64:
        return (actual + 1j * random.normal(size=shape)).astype(dtype)
    return actual.astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


def hosts(result: object) -> list[np.ndarray]:
    return [np.asarray(x) for x in result]  # type: ignore[attr-defined]  # a tuple


def eager(f: Callable[..., object], *xs: object) -> object:
    return f(*xs)


def compiled(f: Callable[..., object], *xs: object) -> object:
    return verax.jit(f)(*xs)


WAYS = pytest.mark.parametrize("run", [eager, compiled], ids=["eager", "jit"])


def eye_like(q: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2))


@WAYS
@pytest.mark.parametrize("dtype", DTYPES)
def test_spectra(run: Callable[..., object], dtype: type) -> None:
    a = matrices((2, 4, 4), dtype)
    v, w = hosts(run(linalg.eigh, a))
    np.testing.assert_allclose((a + adjoint(a)) / 2 @ v, v * w[:, None], atol=1e-5)
    values, left, right = hosts(run(linalg.eig, a))
    np.testing.assert_allclose(a @ right, right * values[:, None], atol=1e-5)
    np.testing.assert_allclose(
        adjoint(left) @ a, values[..., None] * adjoint(left), atol=1e-5
    )
    t, z = hosts(run(linalg.schur, a))
    np.testing.assert_allclose(z @ t @ adjoint(z), a, atol=1e-5)


@WAYS
@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_system(run: Callable[..., object], dtype: type) -> None:
    dl, d, du = matrices((3, 2, 4), dtype)
    d = d + np.float32(4)
    b = matrices((2, 4, 3), dtype)
    x = np.asarray(run(linalg.tridiagonal_solve, dl, d, du, b))
    whole = np.stack(
        [
            np.diag(d[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1)
            for i in range(2)
        ]
    )
    np.testing.assert_allclose(whole @ x, b, atol=1e-5)


@WAYS
def test_failures_are_nan_and_leave_the_others(run: Callable[..., object]) -> None:
    a = np.array([[[1, 0], [0, 1]], [[1, 2], [2, 1]]], np.float32)
    factor = np.asarray(run(linalg.cholesky, a))
    np.testing.assert_array_equal(factor[0], a[0])
    assert np.isnan(factor[1][np.tril_indices(2)]).all()
    assert factor[1][0, 1] == 0
    zeros = np.zeros((1,), np.float32)
    x = run(linalg.tridiagonal_solve, zeros, zeros, zeros, np.ones((1, 1), np.float32))
    assert np.isnan(np.asarray(x)).all()


@WAYS
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_tridiagonal_systems_are_perturbed_on_request(
    run: Callable[..., object], dtype: type
) -> None:
    def solve(dl: object, d: object, du: object, b: object) -> np.ndarray:
        solver = partial(linalg.tridiagonal_solve, perturb_singular=True)
        given: list[np.ndarray] = [np.asarray(v, dtype) for v in (dl, d, du, b)]
        return np.asarray(run(solver, *given))

    zeros = [0, 0, 0]
    x = solve(zeros, zeros, zeros, np.ones((3, 1)))
    assert np.isfinite(x).all()
    assert (abs(x) > 1e6).all()
    # The pivot of the second row is zero, and is moved by 3 eps.
    x = solve([0, 1], [1, 3], [3, 0], [[1], [4]])
    np.testing.assert_allclose(x, [[-(2.0**23) * 3], [2.0**23]], rtol=1e-6)
    # Pivots that are small, but do not overflow, stay.
    x = solve([0, 0], [1, -1e-9], [3, 0], [[1], [4]])
    np.testing.assert_allclose(x, [[1.2e10], [-4.0e9]], rtol=1e-6)
    # Rows are exchanged.
    x = solve([0, 2, -2, 3], [1, 4, 1, -1], [2, -1, 1, 0], [[1], [2], [3], [4]])
    np.testing.assert_allclose(x, [[8.0], [-3.5], [0.0], [-4.0]], atol=1e-5)
    assert solve([], [], [], np.ones((0, 2))).shape == (0, 2)
    np.testing.assert_array_equal(solve([0], [2], [0], [[4]]), [[2]])


@WAYS
def test_singular_matrix_has_factors(run: Callable[..., object]) -> None:
    packed, pivots, order = hosts(run(linalg.lu, np.zeros((2, 2), np.float32)))
    assert packed.tolist() == [[0, 0], [0, 0]]
    assert pivots.tolist() == order.tolist() == [0, 1]


@pytest.mark.parametrize("turned", [0, 1, 2])
def test_solving_with_factors(turned: int) -> None:
    a, b = matrices((3, 3), np.complex64), matrices((3, 2), np.complex64)
    packed, _, order = linalg.lu(a)
    x = lu_solve(packed, order, verax.numpy.asarray(b), turned)
    operators = (a, a.T, a.conj().T)
    np.testing.assert_allclose(operators[turned] @ np.asarray(x), b, atol=1e-5)


@WAYS
def test_permutation_of_exchanges(run: Callable[..., object]) -> None:
    pivots = np.array([[2, 2, 2], [0, 1, 2]], np.int32)
    actual = run(lambda p: linalg.lu_pivots_to_permutation(p, 4), pivots)
    assert np.asarray(actual).tolist() == [[2, 0, 1, 3], [0, 1, 2, 3]]


@WAYS
def test_reads_one_triangle(run: Callable[..., object]) -> None:
    a = np.array([[4, 99], [2, 5]], np.float32)
    factor = run(lambda x: linalg.cholesky(x, symmetrize_input=False), a)
    np.testing.assert_allclose(np.asarray(factor), [[2, 0], [1, 2]])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: linalg.cholesky(np.ones((2, 3))), ValueError, "square"),
        (lambda: linalg.cholesky(np.ones(3)), ValueError, "at least 2 dimensions"),
        (lambda: linalg.qr(np.ones((2, 2), np.float16)), TypeError, "float16"),
        (lambda: linalg.eigh(np.ones((2, 2), np.int32)), TypeError, "int32"),
        (lambda: linalg.triangular_solve(np.ones((2, 2)), np.ones((3, 3))),
         ValueError, "left_side=False"),
        (lambda: linalg.svd(np.ones((2, 2)), algorithm="ABC"), ValueError, "POLAR"),
        (lambda: linalg.hessenberg(np.ones((0, 0))), ValueError, "at least one row"),
        (lambda: verax.grad(lambda x: linalg.qr(x)[0].sum())(np.ones((3, 2))),
         ValueError, "full_matrices=False"),
        (lambda: verax.grad(lambda x: linalg.eig(x)[1].real.sum())(np.eye(2)),
         ValueError, "enable_eigvec_derivs"),
    ],
)  # fmt: skip
def test_bad_input(
    call: Callable[[], object], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_pivots_of_empty_matrices_are_in_order() -> None:
    def pivoted(x: np.ndarray) -> tuple[verax.Array, verax.Array, verax.Array]:
        return linalg.qr(x, pivoting=True)

    for shape in ((0, 3), (2, 0)):
        for run in (pivoted, verax.jit(pivoted)):
            q, r, order = run(np.zeros(shape, np.float32))
            assert q.shape == (shape[0], shape[0])
            assert r.shape == shape
            assert order.tolist() == list(range(shape[1]))
