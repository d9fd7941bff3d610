"""What LAPACK is told: the calls that decompositions are lowered to.

The routines write into results without a look at their shapes, so one that is too small
shows in no value: memory next to it is lost.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
from verax.lax import linalg


def told(f: Callable[..., object], *xs: object) -> list[str]:
    """Routines, options, which operand becomes which result, and types of results."""
    text = verax.jit(f).lower(*xs).as_text()
    actual = []
    for line in text.split("\n"):
        if "lapack_" in line:
            (name,) = re.findall(r"lapack_(\w+)_ffi", line)
            given = line.split("mhlo.backend_config = ")[1]
            options = re.findall(r"(\w+) = (\d+) : \w+", given)
            words = [f"{key}={value}" for key, value in options if "index" not in key]
            taken = re.findall(r"indices = \[(\d*)\], operand_index = (\d)", line)
            pairs = [f"{operand}>{result}" for result, operand in taken]
            types = re.findall(r"tensor<([^>]*>?)>", line.rpartition("->")[2])
            actual.append(" ".join([name, *words, *pairs, *types]))
    return actual


STACK, ITEM = np.zeros((2, 3, 4, 4), np.float32), np.zeros((4, 4), np.complex64)
BAND = [np.zeros((2, 3, 4), np.float32)] * 3
M, V, I = "2x3x4x4xf32", "2x3x4xf32", "2x3xi32"  # noqa: E741  # one letter a type
C = "4x4xcomplex<f32>"
TOLD: Sequence[tuple[Callable[..., object], Sequence[Any], Sequence[str]]] = [
    (linalg.cholesky, [STACK], [f"spotrf uplo=76 0>0 {M} {I}"]),
    (linalg.cholesky, [ITEM], [f"cpotrf uplo=76 0>0 {C} i32"]),
    (linalg.eigh, [STACK], [f"ssyevd mode=86 uplo=76 0>0 {M} {V} {I}"]),
    (linalg.eigh, [ITEM], [f"cheevd mode=86 uplo=76 0>0 {C} 4xf32 i32"]),
    (
        linalg.eig,
        [STACK],
        [
            f"sgeev compute_left=86 compute_right=86 {V} {V} 2x3x4x4xcomplex<f32> "
            f"2x3x4x4xcomplex<f32> {I}"
        ],
    ),
    (
        partial(linalg.eig, compute_left_eigenvectors=False),
        [ITEM],
        [f"cgeev compute_left=78 compute_right=86 4xcomplex<f32> {C} {C} i32"],
    ),
    (linalg.svd, [STACK], [f"sgesdd mode=65 0>0 {M} {V} {M} {M} {I}"]),
    (
        partial(linalg.svd, full_matrices=False, algorithm="QR"),
        [STACK[..., :3]],
        ["sgesvd mode=83 0>0 2x3x4x3xf32 2x3x3xf32 2x3x4x3xf32 2x3x3x3xf32 2x3xi32"],
    ),
    (
        partial(linalg.svd, compute_uv=False),
        [ITEM],
        [f"cgesdd mode=78 0>0 {C} 4xf32 {C} {C} i32"],
    ),
    (linalg.lu, [STACK], [f"sgetrf 0>0 {M} 2x3x4xi32 {I}"]),
    (linalg.schur, [STACK], [f"sgees mode=86 sort=78 0>0 {M} {M} {V} {V} {I} {I}"]),
    (
        partial(linalg.schur, compute_schur_vectors=False),
        [ITEM],
        [f"cgees mode=78 sort=78 0>0 {C} {C} 4xcomplex<f32> i32 i32"],
    ),
    (linalg.hessenberg, [STACK], [f"sgehrd high=4 low=1 0>0 {M} 2x3x3xf32 {I}"]),
    (
        linalg.tridiagonal,
        [STACK],
        [f"ssytrd uplo=76 0>0 {M} {V} 2x3x3xf32 2x3x3xf32 {I}"],
    ),
    (
        linalg.tridiagonal_solve,
        [*BAND, STACK],
        [f"sgtsv 0>0 1>1 2>2 3>3 {V} {V} {V} {M} {I}"],
    ),
    (
        partial(linalg.qr, pivoting=True),
        [STACK],
        [f"sgeqp3 0>0 1>1 {M} 2x3x4xi32 {V}", f"sorgqr 0> {M}"],
    ),
    (
        linalg.qr,
        [ITEM[:, :2]],
        [
            "cgeqrf 0>0 4x2xcomplex<f32> 2xcomplex<f32>",
            f"cungqr 0> {C}",
        ],
    ),
    (
        linalg.triangular_solve,
        [STACK, STACK],
        [f"strsm diag=78 side=82 trans_x=78 uplo=85 1> {M}"],
    ),
]


@pytest.mark.parametrize("half", [0, 1])
def test_what_lapack_is_told(half: int) -> None:
    for f, operands, due in TOLD[half::2]:
        assert told(f, *operands) == due
