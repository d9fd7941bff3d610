"""Results of functions of arrays: what type checkers know of each call."""

from collections.abc import Callable
from typing import assert_type

import numpy as np

import verax
from verax import Array, lax, numpy as vnp
from verax.numpy.indexing.slices import Slice
from verax.numpy.linalg.decompositions import QRResult, SVDResult
from verax.scipy import linalg
from verax.scipy.sparse.linalg import bicgstab, cg, gmres

type Several = tuple[Array, ...]
type Pair = tuple[Array, Array]
type Triple = tuple[Array, Array, Array]
type Five = tuple[Array, Array, Array, Array, Array]


# -------------------------------------------------------------------------- verax.numpy


def at_least(x: Array, xs: list[Array]) -> None:
    assert_type(vnp.atleast_1d(), tuple[()])
    assert_type(vnp.atleast_2d(), tuple[()])
    assert_type(vnp.atleast_3d(), tuple[()])
    assert_type(vnp.atleast_1d(x), Array)
    assert_type(vnp.atleast_2d(2.0), Array)
    assert_type(vnp.atleast_3d(np.zeros(3)), Array)
    assert_type(vnp.atleast_1d(x, 1), Several)
    assert_type(vnp.atleast_2d(x, 1, x), Several)
    assert_type(vnp.atleast_3d(x, 1, x, x), Several)
    assert_type(verax.vmap(vnp.atleast_2d)(x), Array)


def averages(x: Array, flag: bool) -> None:
    assert_type(vnp.average(x), Array)
    assert_type(vnp.average(x, 0, returned=False), Array)
    assert_type(vnp.average(x, 0, None, False, True), Array)
    assert_type(vnp.average(x, returned=True), Pair)
    assert_type(vnp.average(x, 0, None, True, keepdims=True), Pair)
    assert_type(vnp.average(x, returned=flag), Array | Pair)


def gradients(x: Array, axes: tuple[int, ...], place: int | None) -> None:
    assert_type(vnp.gradient(x, axis=0), Array)
    assert_type(vnp.gradient(x, 0.5, axis=-1, edge_order=2), Array)
    assert_type(vnp.gradient(x, 0.5, 2.0), list[Array])
    assert_type(vnp.gradient(x, 0.5, 2.0, axis=(1, 0)), list[Array])
    assert_type(vnp.gradient(x), Array | list[Array])
    assert_type(vnp.gradient(x, 0.5), Array | list[Array])
    assert_type(vnp.gradient(x, axis=axes), Array | list[Array])
    assert_type(vnp.gradient(x, axis=place), Array | list[Array])
    assert_type(verax.jit(vnp.gradient)(x), Array | list[Array])


def ranges(flag: bool) -> None:
    assert_type(vnp.indices((2, 3)), Array)
    assert_type(vnp.indices((2, 3), int, False), Array)
    assert_type(vnp.indices((2, 3), sparse=True), Several)
    assert_type(vnp.indices((2, 3), int, True), Several)
    assert_type(vnp.indices((2, 3), sparse=flag), Array | Several)
    assert_type(vnp.linspace(0, 1), Array)
    assert_type(vnp.linspace(0, 1, 5, dtype=float), Array)
    assert_type(vnp.linspace(0, 1, 5, True, False), Array)
    assert_type(vnp.linspace(0, 1, retstep=True), Pair)
    assert_type(vnp.linspace(0, 1, 5, retstep=True, axis=0), Pair)
    assert_type(vnp.linspace(0, 1, 5, True, True, float, 0), Pair)
    assert_type(vnp.linspace(0, 1, 5, retstep=flag), Array | Pair)


def product(i: Array, j: Array) -> Array:
    return i * j


def both(i: Array, j: Array) -> dict[str, Array]:
    return {"sum": i + j, "product": i * j}


def one(i: Array) -> float:
    return 1.0


def from_functions() -> None:
    assert_type(vnp.fromfunction(product, (2, 3)), Array)
    assert_type(vnp.fromfunction(one, 3), Array)
    assert_type(vnp.fromfunction(both, (2, 3), dtype=int), dict[str, Array])


def uniques(x: Array, flag: bool) -> None:
    assert_type(vnp.unique(x), Array)
    assert_type(vnp.unique(x, size=3, fill_value=0), Array)
    assert_type(vnp.unique(x, False, False, False, 0), Array)
    assert_type(vnp.unique(x, return_index=True), Pair)
    assert_type(vnp.unique(x, return_inverse=True, axis=0), Pair)
    assert_type(vnp.unique(x, return_counts=True, size=3), Pair)
    assert_type(vnp.unique(x, return_index=True, return_inverse=True), Triple)
    assert_type(vnp.unique(x, return_index=True, return_counts=True), Triple)
    assert_type(vnp.unique(x, return_inverse=True, return_counts=True), Triple)
    all_three = vnp.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    assert_type(all_three, tuple[Array, Array, Array, Array])
    assert_type(vnp.unique(x, return_counts=flag), Array | Several)


def uniques_by_position(x: Array) -> None:
    assert_type(vnp.unique(x, True), Pair)
    assert_type(vnp.unique(x, False, True), Pair)
    assert_type(vnp.unique(x, False, False, True), Pair)
    assert_type(vnp.unique(x, True, True), Triple)
    assert_type(vnp.unique(x, True, False, True), Triple)
    assert_type(vnp.unique(x, False, True, True, 0), Triple)
    assert_type(vnp.unique(x, True, True, True), tuple[Array, Array, Array, Array])


def intersections(x: Array, flag: bool) -> None:
    assert_type(vnp.intersect1d(x, x), Array)
    assert_type(vnp.intersect1d(x, x, True, False, size=3), Array)
    assert_type(vnp.intersect1d(x, x, return_indices=True), Triple)
    assert_type(vnp.intersect1d(x, x, False, True, size=3), Triple)
    assert_type(vnp.intersect1d(x, x, return_indices=flag), Array | Triple)


def fits(x: Array, flag: bool) -> None:
    assert_type(vnp.polyfit(x, x, 1), Array)
    assert_type(vnp.polyfit(x, x, 1, None, False, None, False), Array)
    assert_type(vnp.polyfit(x, x, 1, full=True), Five)
    assert_type(vnp.polyfit(x, x, 1, full=True, w=x, cov=flag), Five)
    assert_type(vnp.polyfit(x, x, 1, None, True), Five)
    assert_type(vnp.polyfit(x, x, 1, cov=True), Pair)
    assert_type(vnp.polyfit(x, x, 1, w=x, cov="unscaled"), Pair)
    assert_type(vnp.polyfit(x, x, 1, None, False, None, True), Pair)
    assert_type(vnp.polyfit(x, x, 1, full=flag), Array | Pair | Five)
    assert_type(vnp.polyfit(x, x, 1, cov=flag), Array | Pair | Five)


def slices(i: Array, j: np.int32, size: int | None) -> None:
    assert_type(verax.ds(None), slice)
    assert_type(verax.ds(None, stride=2), slice)
    assert_type(verax.ds(2), Slice)
    assert_type(verax.ds(1, 2), Slice)
    assert_type(verax.ds(i, 2), Slice)
    assert_type(verax.ds(j, 2, 3), Slice)
    assert_type(verax.ds(None, 2), Slice)
    assert_type(verax.ds(size), slice | Slice)


# ------------------------------------------------------------------------------- linalg


def numpy_linalg(x: Array, mode: str, flag: bool) -> None:
    assert_type(vnp.linalg.qr(x), QRResult)
    assert_type(vnp.linalg.qr(x, "complete"), QRResult)
    assert_type(vnp.linalg.qr(x, mode="raw"), QRResult)
    assert_type(vnp.linalg.qr(x, "r"), Array)
    assert_type(vnp.linalg.qr(x, mode="r"), Array)
    assert_type(vnp.linalg.qr(x, mode), Array | QRResult)
    assert_type(vnp.linalg.svd(x), SVDResult)
    assert_type(vnp.linalg.svd(x, False, True), SVDResult)
    assert_type(vnp.linalg.svd(x, full_matrices=flag, hermitian=True), SVDResult)
    assert_type(vnp.linalg.svd(x, compute_uv=False), Array)
    assert_type(vnp.linalg.svd(x, True, False, True), Array)
    assert_type(vnp.linalg.svd(x, compute_uv=flag), Array | SVDResult)


def lax_linalg(x: Array, flag: bool) -> None:
    assert_type(lax.linalg.svd(x), Triple)
    assert_type(lax.linalg.svd(x, full_matrices=flag, compute_uv=True), Triple)
    assert_type(lax.linalg.svd(x, compute_uv=False), Array)
    assert_type(lax.linalg.svd(x, compute_uv=flag), Array | Triple)
    assert_type(lax.linalg.qr(x), Pair)
    assert_type(lax.linalg.qr(x, full_matrices=flag, pivoting=False), Pair)
    assert_type(lax.linalg.qr(x, pivoting=True), Triple)
    assert_type(lax.linalg.qr(x, pivoting=flag), Pair | Triple)
    assert_type(lax.linalg.schur(x), Pair)
    assert_type(lax.linalg.schur(x, compute_schur_vectors=True), Pair)
    assert_type(lax.linalg.schur(x, compute_schur_vectors=False), tuple[Array])
    assert_type(lax.linalg.schur(x, compute_schur_vectors=flag), tuple[Array] | Pair)


# ------------------------------------------------------------------------- scipy.linalg


def eigenvalues(x: Array, d: Array, e: Array, flag: bool) -> None:
    assert_type(linalg.eigh(x), Pair)
    assert_type(linalg.eigh(x, x, True, False), Pair)
    assert_type(linalg.eigh(x, eigvals_only=True), Array)
    assert_type(linalg.eigh(x, x, True, True, type=2), Array)
    assert_type(linalg.eigh(x, eigvals_only=flag), Array | Pair)
    assert_type(linalg.eigh_tridiagonal(d, e), Pair)
    assert_type(linalg.eigh_tridiagonal(d, e, eigvals_only=False), Pair)
    assert_type(linalg.eigh_tridiagonal(d, e, eigvals_only=True), Array)
    assert_type(linalg.eigh_tridiagonal(d, e, eigvals_only=flag), Array | Pair)


def functions_of_matrices(
    x: Array, function: Callable[[Array], Array], flag: bool
) -> None:
    assert_type(linalg.expm_frechet(x, x), Pair)
    assert_type(linalg.expm_frechet(x, x, compute_expm=True), Pair)
    assert_type(linalg.expm_frechet(x, x, compute_expm=False), Array)
    assert_type(linalg.expm_frechet(x, x, compute_expm=flag), Array | Pair)
    assert_type(linalg.funm(x, function), Array)
    assert_type(linalg.funm(x, function, True), Array)
    assert_type(linalg.funm(x, function, disp=False), Pair)
    assert_type(linalg.funm(x, function, False), Pair)
    assert_type(linalg.funm(x, function, flag), Array | Pair)


def factors(x: Array, flag: bool) -> None:
    assert_type(linalg.hessenberg(x), Array)
    assert_type(linalg.hessenberg(x, calc_q=False), Array)
    assert_type(linalg.hessenberg(x, calc_q=True), Pair)
    assert_type(linalg.hessenberg(x, calc_q=flag), Array | Pair)
    assert_type(linalg.svd(x), Triple)
    assert_type(linalg.svd(x, False, True, lapack_driver="gesvd"), Triple)
    assert_type(linalg.svd(x, compute_uv=False), Array)
    assert_type(linalg.svd(x, False, False), Array)
    assert_type(linalg.svd(x, compute_uv=flag), Array | Triple)
    assert_type(linalg.lu(x), Triple)
    assert_type(linalg.lu(x, permute_l=False), Triple)
    assert_type(linalg.lu(x, True), Pair)
    assert_type(linalg.lu(x, permute_l=True), Pair)
    assert_type(linalg.lu(x, flag), Triple | Pair)


def orthogonal_factors(x: Array, mode: str, flag: bool) -> None:
    assert_type(linalg.qr(x), Pair)
    assert_type(linalg.qr(x, mode="economic", pivoting=False), Pair)
    assert_type(linalg.qr(x, False, None, "full"), Pair)
    assert_type(linalg.qr(x, pivoting=True), Triple)
    assert_type(linalg.qr(x, mode="economic", pivoting=True), Triple)
    assert_type(linalg.qr(x, False, None, "full", True), Triple)
    assert_type(linalg.qr(x, mode="full", pivoting=flag), Pair | Triple)
    assert_type(linalg.qr(x, mode="r"), tuple[Array])
    assert_type(linalg.qr(x, False, None, "r"), tuple[Array])
    assert_type(linalg.qr(x, mode="r", pivoting=True), Pair)
    assert_type(linalg.qr(x, False, None, "r", True), Pair)
    assert_type(linalg.qr(x, mode="r", pivoting=flag), tuple[Array] | Pair)
    assert_type(linalg.qr(x, False, None, "r", flag), tuple[Array] | Pair)
    assert_type(linalg.qr(x, mode=mode), tuple[Array] | Pair | Triple)


def products_with_q(x: Array, flag: bool) -> None:
    assert_type(linalg.qr_multiply(x, x), Pair)
    assert_type(linalg.qr_multiply(x, x, "left", False), Pair)
    assert_type(linalg.qr_multiply(x, x, pivoting=True), Triple)
    assert_type(linalg.qr_multiply(x, x, "left", True), Triple)
    assert_type(linalg.qr_multiply(x, x, pivoting=flag), Pair | Triple)


# ----------------------------------------------------------------- scipy.sparse.linalg


type Tree = dict[str, Array]


def solvers(a: Array, b: Array, twice: Callable[[Tree], Tree], tree: Tree) -> None:
    assert_type(cg(a, b), tuple[Array, None])
    assert_type(cg(a, np.ones(2), tol=1e-3), tuple[Array, None])
    assert_type(cg(twice, tree), tuple[Tree, None])
    assert_type(bicgstab(a, b, b), tuple[Array, None])
    assert_type(bicgstab(twice, tree), tuple[Tree, None])
    assert_type(gmres(a, b, restart=2), tuple[Array, Array])
    assert_type(gmres(twice, tree), tuple[Tree, Array])
