"""Decompositions with each option: eager and compiled calls agree, and equations hold.

Empty matrices, stacks, tall and wide ones are among them: what LAPACK does not take is
made by hand, once for both ways.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.ops.linalg.test_linalg import adjoint, eye_like, matrices
from verax.lax import linalg

type Shapes = Sequence[tuple[int, ...]]
type Call = Sequence[Any]
"""A function, and its operands."""

KINDS = pytest.mark.parametrize("dtype", [np.float32, np.complex64])
SQUARE: Shapes = ((4, 4), (2, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 2, 2))
OTHER: Shapes = ((4, 2), (2, 4), (2, 3, 2), (2, 2, 3), (0, 2), (2, 0), (0, 2, 3))
FLAGS = (False, True)


def agree(*calls: Call) -> list[list[np.ndarray]]:
    """What some (function, *operands) give, eagerly and compiled into one program."""
    functions = [call[0] for call in calls]

    def every(operands: Iterable[Sequence[Any]]) -> list[list[object]]:
        actual = [f(*xs) for f, xs in zip(functions, operands, strict=True)]
        return [list(x) if isinstance(x, tuple | list) else [x] for x in actual]

    operands = [tuple(call[1:]) for call in calls]
    both = every(operands), verax.jit(every)(operands)
    for one, other in zip(*both, strict=True):
        assert len(one) == len(other)
        for x, y in zip(map(np.asarray, one), map(np.asarray, other), strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            np.testing.assert_allclose(x, y, atol=1e-5)
    return [[np.asarray(x) for x in outs] for outs in both[0]]


def real(dtype: type) -> np.dtype[np.generic]:
    return np.empty((), dtype).real.dtype


def size(shape: tuple[int, ...]) -> int:
    """How many singular values, reflections or exchanges of rows there are."""
    return min(shape[-2:])


@KINDS
def test_derivatives_of_eigenvectors(dtype: type) -> None:
    x = matrices((4, 4), dtype)
    with verax.enable_x64(True):
        for left, right in ((False, True), (True, False), (True, True), (False, False)):
            vectors = partial(
                linalg.eig,
                compute_left_eigenvectors=left,
                compute_right_eigenvectors=right,
                enable_eigvec_derivs=True,
            )
            # The square is the same for both signs, between which LAPACK may jump.
            verax.test_util.check_grads(
                lambda a, f=vectors: [v * v for v in f(a)],
                (x.astype(np.result_type(x.dtype, np.float64)),),
                2,
                atol=1e-3,
                rtol=1e-3,
            )


@KINDS
def test_eigh_reads_one_triangle(dtype: type) -> None:
    choices = list(product(SQUARE, FLAGS))
    calls = [
        (
            partial(linalg.eigh, lower=lower, symmetrize_input=False),
            matrices(shape, dtype),
        )
        for shape, lower in choices
    ]
    for (shape, lower), (v, w) in zip(choices, agree(*calls), strict=True):
        assert v.dtype == dtype
        assert w.dtype == real(dtype)
        due = np.linalg.eigvalsh(matrices(shape, dtype), "L" if lower else "U")
        np.testing.assert_allclose(w, due, atol=1e-5)
        np.testing.assert_allclose(adjoint(v) @ v, eye_like(v), atol=1e-5)


@KINDS
def test_eig_gives_the_vectors_that_are_asked_for(dtype: type) -> None:
    choices = list(product(SQUARE, FLAGS, FLAGS))
    calls = [
        (
            partial(
                linalg.eig,
                compute_left_eigenvectors=left,
                compute_right_eigenvectors=right,
            ),
            matrices(shape, dtype),
        )
        for shape, left, right in choices
    ]
    for choice, (w, *vectors) in zip(choices, agree(*calls), strict=True):
        shape, left, right = choice
        a = matrices(shape, dtype)
        assert {x.dtype for x in (w, *vectors)} == {np.dtype(np.complex64)}
        assert w.shape == shape[:-1]
        assert [v.shape for v in vectors] == [shape] * (left + right)
        if right:
            v = vectors[-1]
            np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=1e-5)
        if left:
            u = adjoint(vectors[0])
            np.testing.assert_allclose(u @ a, w[..., None] * u, atol=1e-5)


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_eig_of_numbers_that_are_not_finite(number: float) -> None:
    """LAPACK writes beyond its memory here, and ends the process some calls later."""
    choices = list(product((np.float32, np.complex64), (1, 3, 8)))
    calls: list[Call] = [
        (linalg.eig, np.full((n, n), number, dtype)) for dtype, n in choices
    ]
    stack = np.stack([np.full((2, 2), number), np.eye(2)]).astype(np.float32)
    *alone, (w, _, _) = agree(*calls, (linalg.eig, stack))
    for (_, n), outs in zip(choices, alone, strict=True):
        assert all(np.isnan(x).all() for x in outs)
        assert [x.shape for x in outs] == [(n,), (n, n), (n, n)]
    assert np.isnan(w[0]).all()
    assert w[1].tolist() == [1, 1]


@pytest.mark.slow
@KINDS
def test_schur_with_and_without_vectors(dtype: type) -> None:
    values = [matrices(shape, dtype) for shape in SQUARE]
    values.append(np.full((3, 3), np.inf, dtype))
    alone = agree(
        *[(partial(linalg.schur, compute_schur_vectors=False), a) for a in values]
    )
    both = agree(*[(linalg.schur, a) for a in values])
    for a, (t, z), (form,) in zip(values, both, alone, strict=True):
        np.testing.assert_allclose(form, t, atol=1e-5)
        if np.isfinite(a).all():
            np.testing.assert_allclose(z @ t @ adjoint(z), a, atol=1e-5)
        else:
            assert np.isnan(t).all()
            assert np.isnan(z).all()


def hermitian(a: np.ndarray, lower: bool) -> np.ndarray:
    """The matrices of which one triangle is given."""
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    centre: np.ndarray = a.real * np.eye(a.shape[-1])
    actual: np.ndarray = strict + adjoint(strict) + centre
    return actual


@pytest.mark.slow
@KINDS
def test_hessenberg_and_tridiagonal(dtype: type) -> None:
    shapes: Shapes = ((4, 4), (2, 3, 3), (1, 1), (0, 2, 2))
    calls = [(linalg.hessenberg, matrices(shape, dtype)) for shape in shapes]
    for shape, (packed, taus) in zip(shapes, agree(*calls), strict=True):
        assert packed.shape == shape
        assert taus.shape == (*shape[:-2], shape[-1] - 1)
    choices = list(product(shapes, FLAGS))
    again: list[Call] = [
        (partial(linalg.tridiagonal, lower=lower), matrices(shape, dtype))
        for shape, lower in choices
    ]
    for (shape, lower), outs in zip(choices, agree(*again), strict=True):
        count = shape[-1] - 1
        assert [x.dtype for x in outs] == [dtype, *[real(dtype)] * 2, dtype]
        assert [x.shape[-1] for x in outs] == [count + 1, count + 1, count, count]
        _, d, e, _ = outs
        whole = hermitian(matrices(shape, dtype), lower)
        due = (np.abs(whole) ** 2).sum((-2, -1))
        np.testing.assert_allclose((d**2).sum(-1) + 2 * (e**2).sum(-1), due, rtol=1e-4)


@pytest.mark.slow
@KINDS
def test_qr_with_each_option(dtype: type) -> None:
    choices = list(product((*OTHER, (3, 3), (0, 0)), FLAGS, FLAGS))
    calls = [
        (
            partial(linalg.qr, full_matrices=full, pivoting=pivoting),
            matrices(shape, dtype),
        )
        for shape, full, pivoting in choices
    ]
    for choice, (q, r, *order) in zip(choices, agree(*calls), strict=True):
        shape, full, pivoting = choice
        a, k = matrices(shape, dtype), shape[-2] if full else size(shape)
        assert (q.shape[-1], r.shape[-2]) == (k, k)
        np.testing.assert_allclose(adjoint(q) @ q, eye_like(q), atol=1e-5)
        assert (np.tril(r, -1) == 0).all()
        if pivoting:
            assert order[0].dtype == np.int32
            a = np.take_along_axis(a, order[0][..., None, :], -1)
            lengths = np.abs(r.diagonal(0, -2, -1))
            assert (np.diff(lengths) <= 1e-6).all()
        np.testing.assert_allclose(q @ r, a, atol=1e-5)


@pytest.mark.slow
@KINDS
def test_products_of_reflections(dtype: type) -> None:
    shapes: Shapes = ((4, 2), (3, 3), (2, 3, 2), (2, 0), (0, 3, 2), (0, 0))
    calls = [(linalg.geqrf, matrices(shape, dtype)) for shape in shapes]
    factors = agree(*calls)
    products = [
        agree(
            *[(linalg.householder_product, a, t[..., :count]) for a, t in factors],
        )
        for count in (3, 1, 0)
    ]
    for i, shape in enumerate(shapes):
        packed, taus = factors[i]
        (q,), (first,), (none,) = [found[i] for found in products]
        assert taus.shape == (*shape[:-2], size(shape))
        assert q.shape == shape
        r = np.triu(packed[..., : shape[-1], :])
        np.testing.assert_allclose(q @ r, matrices(shape, dtype), atol=1e-5)
        np.testing.assert_allclose(first[..., :1], q[..., :1], atol=1e-5)
        one: np.ndarray = np.eye(*shape[-2:], dtype=dtype)
        due = np.broadcast_to(one, shape)
        np.testing.assert_array_equal(none, due)


@pytest.mark.slow
@KINDS
def test_svd_with_each_option(dtype: type) -> None:
    choices = list(product((*OTHER, (3, 3), (0, 0)), FLAGS, ("DEFAULT", "QR")))
    calls = [
        (
            partial(linalg.svd, full_matrices=full, algorithm=algorithm),
            matrices(shape, dtype),
        )
        for shape, full, algorithm in choices
    ]
    alone = agree(*[(partial(f, compute_uv=False), a) for f, a in calls])
    every = zip(choices, agree(*calls), alone, strict=True)
    for (shape, full, _), (u, s, vh), (values,) in every:
        k = size(shape)
        assert u.shape[-1] == (shape[-2] if full else k)
        assert vh.shape[-2] == (shape[-1] if full else k)
        assert s.dtype == real(dtype)
        whole = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
        np.testing.assert_allclose(whole, matrices(shape, dtype), atol=1e-5)
        for basis in (adjoint(u) @ u, vh @ adjoint(vh)):
            np.testing.assert_allclose(basis, eye_like(basis), atol=1e-5)
        np.testing.assert_allclose(values, s, atol=1e-5)


@pytest.mark.slow
@KINDS
def test_factors_of_lu(dtype: type) -> None:
    shapes: Shapes = (*OTHER, (3, 3), (0, 0))
    actual = agree(*[(linalg.lu, matrices(shape, dtype)) for shape in shapes])
    again = agree(
        *[
            (partial(linalg.lu_pivots_to_permutation, permutation_size=m), pivots)
            for (*_, m, _), (_, pivots, _) in zip(shapes, actual, strict=True)
        ]
    )
    for shape, outs, (permuted,) in zip(shapes, actual, again, strict=True):
        (packed, pivots, order), k = outs, size(shape)
        assert pivots.dtype == order.dtype == np.int32
        assert pivots.shape == (*shape[:-2], k)
        lower = np.tril(packed[..., :k], -1) + np.eye(shape[-2], k)
        rows = np.take_along_axis(matrices(shape, dtype), order[..., None], -2)
        upper = np.triu(packed[..., :k, :])
        np.testing.assert_allclose(lower @ upper, rows, atol=1e-5)
        np.testing.assert_array_equal(permuted, order)


def test_orders_of_stacks_of_exchanges() -> None:
    pivots = np.array([[[2, 2, 2], [0, 1, 2]], [[1, 2, 3], [3, 3, 3]]], np.int32)
    ((order,),) = agree((lambda x: linalg.lu_pivots_to_permutation(x, 4), pivots))
    assert order[0].tolist() == [[2, 0, 1, 3], [0, 1, 2, 3]]
    assert order[1].tolist() == [[1, 2, 3, 0], [3, 0, 1, 2]]


@KINDS
def test_cholesky_of_stacks_and_nothing(dtype: type) -> None:
    values = []
    for shape in SQUARE:
        a = matrices(shape, dtype)
        values.append(a @ adjoint(a) + np.eye(shape[-1], dtype=dtype))
    actual = agree(*[(linalg.cholesky, a) for a in values])
    for a, (factor,) in zip(values, actual, strict=True):
        np.testing.assert_allclose(factor @ adjoint(factor), a, rtol=1e-4, atol=1e-5)
        assert (np.triu(factor, 1) == 0).all()


@KINDS
def test_tridiagonal_systems_of_all_sizes(dtype: type) -> None:
    calls = []
    for n, count, stack in product((0, 1, 2, 4), (0, 2), ((), (2,), (0,))):
        dl, d, du = matrices((3, *stack, n), dtype)
        b = matrices((*stack, n, count), dtype)
        calls.append((linalg.tridiagonal_solve, dl, d + np.asarray(4, dtype), du, b))
    for (_, dl, d, du, b), (x,) in zip(calls, agree(*calls), strict=True):
        assert x.shape == b.shape
        actual = d[..., None] * x
        actual[..., 1:, :] += dl[..., 1:, None] * x[..., :-1, :]
        actual[..., :-1, :] += du[..., :-1, None] * x[..., 1:, :]
        np.testing.assert_allclose(actual, b, atol=1e-5)


@KINDS
def test_triangular_systems_with_vectors(dtype: type) -> None:
    choices = list(product(((), (2,)), product(FLAGS, repeat=5)))
    names = "left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"
    calls = []
    for stack, flags in choices:
        a = matrices((*stack, 3, 3), dtype) + 2 * np.eye(3, dtype=dtype)
        options = dict(zip(names, flags, strict=True))
        b = matrices((*stack, 3), dtype)
        calls.append((partial(linalg.triangular_solve, **options), a, b))
    actual = agree(*calls)
    for (_, flags), (_, a, b), (x,) in zip(choices, calls, actual, strict=True):
        left, lower, turned, conjugated, unit = flags
        whole = np.tril(a) if lower else np.triu(a)
        if unit:
            whole = whole * (1 - np.eye(3)) + np.eye(3)
        whole = whole.conj() if conjugated else whole
        if turned == left:  # X op(A) = B is op(A)' X' = B'
            whole = whole.swapaxes(-1, -2)
        np.testing.assert_allclose((whole @ x[..., None])[..., 0], b, atol=1e-4)


def test_host_arrays_and_arrays_are_operands_alike() -> None:
    a = np.array([[2, 1], [0, 4]], np.float32)
    for operand in (a, vnp.asarray(a)):
        np.testing.assert_array_equal(np.asarray(linalg.lu(operand)[0]), a)
