"""Floor 6: `verax.scipy.linalg`: linear algebra with SciPy's names and arguments.

One idea: what SciPy says with flags (`lower`, `trans`, `overwrite_a`) is said to the
same rows as NumPy's functions; flags that save memory or time change nothing::

    cho_solve(cho_factor(a), b), lu_solve(lu_factor(a), b), expm(a)
"""

import numpy as np

from verax.ir.dtypes import real_dtype
from verax.numpy import factors, solving
from verax.numpy.arguments import ArrayLike, as_array, promote_inexact
from verax.numpy.factors import as_matrices, check_square
from verax.numpy.grids import eye, tril, triu
from verax.numpy.joining import concatenate
from verax.numpy.padding import pad
from verax.numpy.products import matmul
from verax.numpy.shapes import atleast_2d, broadcast_to, expand_dims, ravel, squeeze
from verax.ops import linalg_eigen, linalg_forms, linalg_lu, linalg_qr, linalg_svd
from verax.ops.arith import abs as magnitude, add, div, max as larger, mul, sub
from verax.ops.choose import select
from verax.ops.compare import gt, le
from verax.ops.create import full_like
from verax.ops.explog import exp2, log2
from verax.ops.linalg_triangular import triangular_solve
from verax.ops.matrices import like
from verax.ops.reduce import reduce_max, reduce_sum
from verax.ops.rounding import ceil
from verax.ops.shape import broadcast_in_dim
from verax.rules.array import Array

TURNED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}
# Padé's approximation of order 13 is exact to 2^-53 up to this norm (N. Higham, The
# scaling and squaring method for the matrix exponential revisited, 2005, table 2.3).
RADIUS = 5.371920351148152
PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)


def cholesky(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array:
    """The upper U with Uᴴ U = A, or with `lower` the L with L Lᴴ = A."""
    return factors.cholesky(a, upper=not lower)


def cho_factor(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, bool]:
    """What `cho_solve` takes: a factor, and whether it is the lower one."""
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The X with A X = B, from `cho_factor` of A.

    Raises:
        ValueError: the shapes do not fit.
    """
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(factor, first, trans=2 if lower else 0, lower=lower)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: object = None,
    check_finite: bool = True,
) -> Array:
    """The X with op(A) X = B for triangular A; `trans` is 0, 1 (Aᵀ) or 2 (Aᴴ).

    Raises:
        ValueError: the shapes do not fit, or there is no such `trans`.
    """
    x, y = as_matrices("solve_triangular", a, b)
    if trans not in TURNED:
        raise ValueError(f"solve_triangular: trans is 0, 1 or 2, not {trans!r}")
    turned = TURNED[trans]
    side, vector = right_hand_side("solve_triangular", x, y)
    x, side = solving.in_stacks("solve_triangular", x, side)
    found = triangular_solve(
        x,
        side,
        left_side=True,
        lower=lower,
        transpose_a=turned > 0,
        conjugate_a=turned == 2,
        unit_diagonal=unit_diagonal,
    )
    return squeeze(found, -1) if vector else found


def right_hand_side(name: str, a: Array, b: Array) -> tuple[Array, bool]:
    """Right-hand sides as matrices, and whether they were one vector.

    Raises:
        ValueError: they have other sizes than the matrix.
    """
    size = check_square(name, a)
    vector = b.ndim == 1
    side = expand_dims(b, -1) if vector else b
    if side.ndim < 2 or side.shape[-2] != size:
        raise ValueError(
            f"{name} takes right-hand sides with {size} rows for {a.aval}, not {b.aval}"
        )
    return side, vector


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """What `lu_solve` takes: packed factors of P A = L U, and exchanges of rows."""
    (x,) = as_matrices("lu_factor", a)
    packed, pivots, _ = linalg_lu.lu(x)
    return packed, pivots


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The X with op(A) X = B, from `lu_factor` of A; `trans` is 0, 1 (Aᵀ) or 2 (Aᴴ).

    Raises:
        ValueError: the shapes do not fit, or there is no such `trans`.
    """
    packed, y = as_matrices("lu_solve", lu_and_piv[0], b)
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans is 0, 1 or 2, not {trans!r}")
    side, vector = right_hand_side("lu_solve", packed, y)
    pivots = as_array("lu_solve", lu_and_piv[1])
    order = linalg_lu.lu_pivots_to_permutation(pivots, packed.shape[-1])
    packed, side = solving.in_stacks("lu_solve", packed, side)
    order = broadcast_to(order, packed.shape[:-1])
    found = linalg_lu.lu_solve(packed, order, side, trans)
    return squeeze(found, -1) if vector else found


def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """P, L and U with A = P L U; or P L and U with `permute_l`."""
    (x,) = as_matrices("lu", a)
    m, n = x.shape[-2:]
    k = min(m, n)
    packed, _, order = linalg_lu.lu(x)
    unit = eye(m, k, dtype=x.dtype)
    lower = add(tril(packed[..., :k], -1), broadcast_to(unit, (*x.shape[:-1], k)))
    upper = triu(packed[..., :k, :])
    whole = broadcast_to(eye(m, dtype=real_dtype(x.dtype)), (*x.shape[:-1], m))
    back = linalg_lu.permuted_rows(whole, linalg_lu.inverse_order(order))
    if permute_l:
        return matmul(like(back, lower), lower), upper
    return back, lower, upper


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Q, R and with `pivoting` the order of columns; `mode` is full, economic or r.

    Raises:
        ValueError: there is no such mode.
    """
    (x,) = as_matrices("qr", a)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr has the modes full, economic and r, not {mode!r}")
    found = linalg_qr.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return found[1:] if mode == "r" else found


def eigh(
    a: ArrayLike,
    b: None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Raises:
        ValueError: a generalised problem or a part of the values is asked for.
    """
    if b is not None or eigvals is not None or type != 1:
        raise ValueError("eigh takes one matrix: leave out b, eigvals and type")
    (x,) = as_matrices("eigh", a)
    v, w = linalg_eigen.eigh(x, lower=lower)
    return w if eigvals_only else (w, v)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """U, s and Vᴴ with U diag(s) Vᴴ = A; s alone without `compute_uv`.

    Raises:
        ValueError: the driver is neither gesdd nor gesvd.
    """
    (x,) = as_matrices("svd", a)
    names = {"gesdd": "DEFAULT", "gesvd": "QR"}
    if lapack_driver not in names:
        raise ValueError(f"svd has the drivers gesdd and gesvd, not {lapack_driver!r}")
    return linalg_svd.svd(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        algorithm=names[lapack_driver],
    )


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """T and unitary Z with A = Z T Zᴴ; `output` "complex" makes T triangular.

    Raises:
        ValueError: there is no such output.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur has the outputs real and complex, not {output!r}")
    (x,) = as_matrices("schur", a)
    if output == "complex":
        (x,) = promote_inexact("schur", x * np.complex64(1))
    t, z = linalg_forms.schur(x)
    return t, z


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices."""
    return solving.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices."""
    return solving.inv(a)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The X with A X = B; `assume_a` is gen, sym, her or pos (by Cholesky factors).

    Raises:
        ValueError: the shapes do not fit, or nothing is known about `assume_a`.
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a is gen, sym, her or pos, not {assume_a!r}")
    if assume_a != "pos":
        return solving.solve(a, b)
    return cho_solve(cho_factor(a, lower), b)


def expm(
    A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16
) -> Array:
    """The exponentials of square matrices, by Padé's approximation and squaring.

    NaN where the norm needs more than `max_squarings`.

    Raises:
        ValueError: the matrices are not square.
    """
    (a,) = as_matrices("expm", A)
    check_square("expm", a)
    size = a.ndim - 2
    if not a.size:
        return a
    norm = reduce_max(reduce_sum(magnitude(a), (size,)), (size,))
    # The logarithm of a norm below one is not needed, that of zero does not exist.
    count = ceil(log2(larger(div(norm, RADIUS), full_like(norm, 1))))
    small = div(a, spread(like(exp2(count), a), a))
    found = approximant(small)
    steps = spread(count, a)
    for i in range(max_squarings):
        found = select(gt(steps, float(i)), matmul(found, found), found)
    enough = le(steps, float(max_squarings))
    return select(enough, found, full_like(found, np.nan))


def spread(x: Array, a: Array) -> Array:
    """One number for each matrix, at all of its elements."""
    return broadcast_in_dim(x, a.shape, tuple(range(x.ndim)))


def approximant(a: Array) -> Array:
    """Padé's approximation (V - U)⁻¹ (V + U) of exp(a), of order 13."""
    unit = broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    powers = (unit, a2, a4, a6)
    # The coefficients are far apart: relative to the first they fit float32.
    c = [value / PADE[0] for value in PADE]
    odd = add(matmul(a6, combined(c[9::2], powers[1:])), combined(c[1:9:2], powers))
    even = add(matmul(a6, combined(c[8::2], powers[1:])), combined(c[0:8:2], powers))
    u = matmul(a, odd)
    return linalg_lu.solve(sub(even, u), add(even, u))


def combined(coefficients: list[float], powers: tuple[Array, ...]) -> Array:
    """The sum of powers, each times its coefficient."""
    terms = [mul(p, full_like(p, c)) for c, p in zip(coefficients, powers, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def block_diag(*arrs: ArrayLike) -> Array:
    """Matrices in the corners of each other, zeros elsewhere.

    Raises:
        ValueError: one has more than two dimensions.
    """
    given = as_blocks(arrs or (np.zeros((1, 0), np.float32),))
    width = sum(x.shape[1] for x in given)
    rows, start = [], 0
    for x in given:
        end = width - start - x.shape[1]
        rows.append(pad(x, ((0, 0), (start, end))))
        start += x.shape[1]
    return concatenate(rows, 0)


def as_blocks(arrs: tuple[ArrayLike, ...]) -> list[Array]:
    """Matrices from scalars, vectors and matrices.

    Raises:
        ValueError: one has more dimensions.
    """
    found = []
    for i, x in enumerate(arrs):
        matrix = atleast_2d(as_array("block_diag", x, i))
        assert isinstance(matrix, Array)
        if matrix.ndim > 2:
            raise ValueError(f"block_diag takes matrices, not {matrix.aval}")
        found.append(matrix)
    return found


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant diagonals, first column `c` and first row `r`.

    Without `r` the first row is the conjugate of `c`. The first element of `r` is not
    looked at.
    """
    column = ravel(as_array("toeplitz", c))
    row = column.conj() if r is None else ravel(as_array("toeplitz", r, 1))
    m, n = column.shape[0], row.shape[0]
    if not m or not n:
        return broadcast_to(column[:0, None], (m, n))
    values = concatenate((column[::-1], row[1:]))
    places = np.arange(n)[None, :] - np.arange(m)[:, None] + m - 1
    return values[places]
