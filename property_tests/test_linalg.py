"""Every law on decompositions, at matrices for which they are well conditioned.

Values drawn element by element make matrices that are singular or nearly so, where a
decomposition has no derivative; here matrices are made from their decompositions. What
a decomposition leaves open (the phases of complex vectors) is multiplied away.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings, strategies as st

from property_tests.levels import NIGHTLY, by_turns
from verax.ir.avals import ShapedArray
from verax.ops.linalg import (
    eigen,
    forms,
    lu as linalg_lu,
    qr as linalg_qr,
    svd as linalg_svd,
    triangular,
)
from verax.ops.linalg.triangular import adjoint, conjugate, matmul, times_columns
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting
from verax.verify.cases.case import Case, Skipped
from verax.verify.checking.functions import COMPILED, ENGINE
from verax.verify.laws import EVERY, Law

type Draw = Callable[[np.random.Generator, bool], Sequence[np.ndarray]]
DEPTH = 4


@frozen
class Subject:
    """A program on matrices, how to draw them, and whether it has a derivative."""

    name: str
    function: Callable[..., object]
    draw: Draw
    smooth: bool = True
    only: str = "real and complex"


def numbers(random: np.random.Generator, complex: bool, *shape: int) -> np.ndarray:
    actual = random.uniform(-1, 1, shape)
    return actual + 1j * random.uniform(-1, 1, shape) if complex else actual


def unitary(random: np.random.Generator, complex: bool, n: int) -> np.ndarray:
    return np.linalg.qr(numbers(random, complex, n, n))[0]


def of_values(m: int, n: int) -> Draw:
    """Matrices with the singular values 1, 2, ..., slightly moved."""

    def draw(random: np.random.Generator, complex: bool) -> Sequence[np.ndarray]:
        k = min(m, n)
        values = np.arange(1, k + 1) + 0.2 * random.uniform(-1, 1, k)
        left, right = (unitary(random, complex, size) for size in (m, n))
        return ((left[:, :k] * values) @ right[:k],)

    return draw


def definite(random: np.random.Generator, complex: bool) -> Sequence[np.ndarray]:
    """Hermitian matrices with the eigenvalues 1, 2 and 3, slightly moved."""
    values = np.arange(1, 4) + 0.2 * random.uniform(-1, 1, 3)
    q = unitary(random, complex, 3)
    a = (q * values) @ q.conj().T
    return ((a + a.conj().T) / 2,)


def general(random: np.random.Generator, complex: bool) -> Sequence[np.ndarray]:
    """Matrices with eigenvalues far from each other, and vectors that are not."""
    basis = np.eye(3) + 0.3 * numbers(random, complex, 3, 3)
    values = np.array([1.0, -2.0, 4.0]) + 0.2 * random.uniform(-1, 1, 3)
    return ((basis * values) @ np.linalg.inv(basis),)


def system(random: np.random.Generator, complex: bool) -> Sequence[np.ndarray]:
    """Diagonals of a dominant matrix, and two right-hand sides."""
    parts = [numbers(random, complex, 4) for _ in range(3)]
    parts[1] = parts[1] + 4
    return (*parts, numbers(random, complex, 4, 2))


def stacked(draw: Draw) -> Draw:
    """Two matrices at once."""

    def twice(random: np.random.Generator, complex: bool) -> Sequence[np.ndarray]:
        pairs = zip(draw(random, complex), draw(random, complex), strict=True)
        return [np.stack(pair) for pair in pairs]

    return twice


def with_side(random: np.random.Generator, complex: bool) -> Sequence[np.ndarray]:
    return (*of_values(3, 3)(random, complex), numbers(random, complex, 3, 2))


def spectral(a: Array) -> tuple[Array, Array]:
    """Eigenvalues, and a function of the matrix that phases do not change."""
    v, w = eigen.eigh(a)
    return w, matmul(times_columns(v, w * w), adjoint(v))


def thin_svd(a: Array) -> tuple[Array, Array, Array]:
    u, s, vh = linalg_svd.svd(a, full_matrices=False)
    return s, matmul(times_columns(u, s * s), vh), matmul(u, adjoint(u))


def eigenvalues(a: Array) -> object:
    return eigen.eig(
        a, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )


def lengths(a: Array) -> Array:
    """Products of elements of one eigenvector, which phases do not change."""
    _, v = eigen.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return v * conjugate(v)


def solve(a: Array, b: Array) -> Array:
    return linalg_lu.solve(a, b)


def thin_qr(a: Array) -> object:
    return linalg_qr.qr(a, full_matrices=False)


def pivoted_qr(a: Array) -> object:
    return linalg_qr.qr(a, full_matrices=False, pivoting=True)


def unpacked(a: Array) -> Array:
    return linalg_qr.householder_product(*linalg_qr.geqrf(a))


def order_of_lu(a: Array) -> Array:
    return linalg_lu.lu_pivots_to_permutation(linalg_lu.lu(a)[1], 4)


def perturbed_solve(dl: Array, d: Array, du: Array, b: Array) -> Array:
    """A system that is not singular, so that no pivot is moved."""
    return forms.tridiagonal_solve(dl, d, du, b, perturb_singular=True)


SUBJECTS = (
    Subject("cholesky", triangular.cholesky, definite),
    Subject("cholesky stack", triangular.cholesky, stacked(definite)),
    Subject(
        "cholesky of a triangle",
        lambda a: triangular.cholesky(a, symmetrize_input=False),
        definite,
    ),
    Subject("eigh", eigen.eigh, definite, only="real"),
    Subject("eigh invariants", spectral, stacked(definite)),
    Subject(
        "eigh of a triangle",
        lambda a: eigen.eigh(a, symmetrize_input=False, lower=False)[1],
        definite,
    ),
    Subject("eigvals", eigenvalues, general),
    Subject("eig", eigen.eig, stacked(general), smooth=False),
    Subject("eig lengths", lengths, general),
    Subject("svd", linalg_svd.svd, of_values(3, 3), only="real"),
    Subject(
        "svd values",
        lambda a: linalg_svd.svd(a, compute_uv=False, full_matrices=False),
        of_values(2, 3),
    ),
    Subject("svd tall", thin_svd, of_values(4, 2)),
    Subject("svd wide", thin_svd, stacked(of_values(2, 3))),
    Subject("qr", linalg_qr.qr, of_values(3, 3)),
    Subject("qr tall", thin_qr, of_values(4, 2)),
    Subject("qr wide", thin_qr, stacked(of_values(2, 3))),
    Subject("qr pivoted", pivoted_qr, of_values(4, 3)),
    Subject("qr full", linalg_qr.qr, of_values(4, 2), smooth=False),
    Subject("geqrf", linalg_qr.geqrf, stacked(of_values(4, 2)), smooth=False),
    Subject("householder_product", unpacked, stacked(of_values(4, 2)), smooth=False),
    Subject("lu order", order_of_lu, stacked(of_values(4, 2)), smooth=False),
    Subject("lu", linalg_lu.lu, stacked(of_values(3, 3))),
    Subject("lu tall", linalg_lu.lu, of_values(4, 2)),
    Subject("lu wide", linalg_lu.lu, of_values(2, 4)),
    Subject("solve", solve, with_side),
    Subject("solve stack", solve, stacked(with_side)),
    Subject("schur", forms.schur, stacked(general), smooth=False),
    Subject("hessenberg", forms.hessenberg, stacked(of_values(4, 4)), smooth=False),
    Subject("tridiagonal", forms.tridiagonal, stacked(definite), smooth=False),
    Subject("tridiagonal_solve", forms.tridiagonal_solve, stacked(system)),
    Subject("tridiagonal_solve perturbed", perturbed_solve, stacked(system)),
)
DERIVED = ("jvp", "mask", "linear", "vjp", "adjoint", "cotangents", "promises")
"""Laws that take derivatives, which decompositions that are not smooth refuse."""
PAIRS = [
    pytest.param(subject, complex, law, id=f"{subject.name}-{kind}-{law.name}")
    for subject in SUBJECTS
    for kind, complex in (("real", False), ("complex", True))
    for law in (*EVERY, COMPILED)
    if kind in subject.only
    and (subject.smooth or law.name not in (*DERIVED, "retrace", "text"))
    and law.name != "missing"
]


def case_of(subject: Subject, complex: bool, wide: bool, seed: int) -> Case:
    random = np.random.default_rng(seed)
    calls = [subject.draw(random, complex) for _ in range(DEPTH)]
    kind = (
        (np.complex128 if wide else np.complex64)
        if complex
        else (np.float64 if wide else np.float32)
    )
    stacks = tuple(np.stack(values).astype(kind) for values in zip(*calls, strict=True))
    builder = Builder("a law")
    xs = [builder.input(ShapedArray(s.shape[1:], s.dtype)) for s in stacks]
    with interpreting(builder):
        actual = subject.function(*xs)
    outs = actual if isinstance(actual, tuple | list) else (actual,)
    return Case(builder.finish(outs)[0], stacks, seed)


@pytest.mark.parametrize(("subject", "complex", "law"), by_turns(PAIRS, 3, NIGHTLY))
def test_decomposition_keeps_law(subject: Subject, complex: bool, law: Law) -> None:
    @settings(max_examples=max(2, settings().max_examples // 10), deadline=None)
    @given(st.integers(0, 2**16))
    def search(seed: int) -> None:
        try:
            law(ENGINE, case_of(subject, complex, law.wide, seed))
        except Skipped:
            assert law.name not in ("jvp", "linear", "compiled", "vmap"), "skipped"

    search()
