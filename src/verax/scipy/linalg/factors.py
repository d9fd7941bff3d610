"""Floor 6: factors of matrices under SciPy's names and arguments.

p, l, u = lu(a)
q, r = qr(a, mode="economic")
"""

from typing import Literal, overload

from verax import numpy as vnp
from verax.ir.avals import finfo
from verax.ir.dtypes import int32, real_dtype
from verax.lax.looping import fori_loop
from verax.numpy.arguments.arguments import ArrayLike
from verax.numpy.linalg import decompositions
from verax.numpy.linalg.decompositions import as_matrices, check_square
from verax.numpy.linalg.products import matmul
from verax.numpy.matrices import eye, tril, triu
from verax.numpy.shaping.shapes import broadcast_to
from verax.ops.elementwise.arith import add
from verax.ops.indexing.dynamic_slice import (
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
from verax.ops.linalg import forms, lu as linalg_lu, qr as linalg_qr, svd as linalg_svd
from verax.ops.linalg.triangular import adjoint, like
from verax.ops.structure.create import broadcasted_iota
from verax.rules.values.array import Array
from verax.scipy.tables import to_complex


def cholesky(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array:
    """The upper U with Uᴴ U = A, or with `lower` the L with L Lᴴ = A.

    Of A that triangle alone is read, as in SciPy; NumPy's function takes the mean of A
    and Aᴴ. Where A is not positive definite there is NaN, and no error.

    Args:
        a: Hermitian positive definite matrices of shape (..., n, n); integers become
            floats.
        lower: whether the lower triangle is read and L returned; by default the upper
            one, and U.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        The factor, of the shape of `a` in its inexact dtype, zero in the other
        triangle.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> linalg.cholesky(vnp.array([[4.0, 2.0], [99.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    >>> vnp.isnan(linalg.cholesky(-vnp.eye(2))).any()
    Array(True, dtype=bool)
    """
    (x,) = as_matrices("cholesky", a)
    check_square("cholesky", x)
    part = tril(x) if lower else adjoint(triu(x))
    whole = add(part, adjoint(tril(part, -1)))
    return decompositions.cholesky(whole, upper=not lower, symmetrize_input=False)


@overload
def lu(
    a: ArrayLike,
    permute_l: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def lu(
    a: ArrayLike,
    permute_l: Literal[True],
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array] | tuple[Array, Array]: ...
def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """P, L and U with A = P L U; or P L and U with `permute_l`.

    Args:
        a: matrices of shape (..., m, n); integers become floats.
        permute_l: whether P L is returned in place of P and L.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        With k = min(m, n): the permutation P of shape (..., m, m), of real numbers; L
        of shape (..., m, k), with ones on its diagonal; U of shape (..., k, n). P L has
        the shape of L.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> p, l, u = linalg.lu(vnp.array([[1.0, 2.0], [2.0, 3.0]]))
    >>> p.tolist(), l.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]])
    >>> u
    Array([[2. , 3. ],
           [0. , 0.5]], dtype=float32)
    """
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


@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: Literal["full", "economic"] = "full",
    pivoting: Literal[False] = False,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: Literal["full", "economic"] = "full",
    *,
    pivoting: Literal[True],
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool,
    lwork: object,
    mode: Literal["full", "economic"],
    pivoting: Literal[True],
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: Literal["full", "economic"] = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    *,
    mode: Literal["r"],
    pivoting: Literal[False] = False,
    check_finite: bool = True,
) -> tuple[Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool,
    lwork: object,
    mode: Literal["r"],
    pivoting: Literal[False] = False,
    check_finite: bool = True,
) -> tuple[Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    *,
    mode: Literal["r"],
    pivoting: Literal[True],
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool,
    lwork: object,
    mode: Literal["r"],
    pivoting: Literal[True],
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    *,
    mode: Literal["r"],
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool,
    lwork: object,
    mode: Literal["r"],
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array] | tuple[Array, Array, Array]: ...
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Q with orthonormal columns and upper triangular R with A = Q R.

    Args:
        a: matrices of shape (..., m, n); integers become floats.
        overwrite_a: changes nothing, since arrays are immutable.
        lwork: changes nothing.
        mode: "full", "economic", or "r" for the full R without Q.
        pivoting: whether columns are put in order, the most independent first; the
            order is then returned as well, and `a[..., order]` is Q R.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        With k = m, or min(m, n) if "economic": Q of shape (..., m, k), R of shape (...,
        k, n), and with `pivoting` int32 numbers of shape (..., n). With "r" too it is a
        tuple.

    Raises:
        ValueError: there is no such mode.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> a = vnp.array([[3.0], [4.0]])
    >>> [x.shape for x in linalg.qr(a)]
    [(2, 2), (2, 1)]
    >>> q, r = linalg.qr(a, mode="economic")
    >>> abs(r), (q @ r).round(3)
    (Array([[5.]], dtype=float32), Array([[3.],
           [4.]], dtype=float32))
    """
    (x,) = as_matrices("qr", a)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr: mode must be 'full', 'economic' or 'r', not {mode!r}")
    out = linalg_qr.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """U, s and Vᴴ with U diag(s) Vᴴ = A; s alone without `compute_uv`.

    Args:
        a: matrices of shape (..., m, n); integers become floats.
        full_matrices: whether U and Vᴴ are square; else they have min(m, n) columns and
            rows.
        compute_uv: whether U and Vᴴ are returned.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.
        lapack_driver: "gesdd", or "gesvd" for the method by QR steps.

    Returns:
        With k = min(m, n): U of shape (..., m, m) or (..., m, k), real s of shape (...,
        k) in descending order, Vᴴ of shape (..., n, n) or (..., k, n).

    Raises:
        ValueError: the driver is neither gesdd nor gesvd.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> a = vnp.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    >>> linalg.svd(a, compute_uv=False)
    Array([2., 1.], dtype=float32)
    >>> [x.shape for x in linalg.svd(a, full_matrices=False)]
    [(3, 2), (2,), (2, 2)]
    """
    (x,) = as_matrices("svd", a)
    names = {"gesdd": "DEFAULT", "gesvd": "QR"}
    if lapack_driver not in names:
        raise ValueError(
            f"svd: lapack_driver must be 'gesdd' or 'gesvd', not {lapack_driver!r}"
        )
    return linalg_svd.svd(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        algorithm=names[lapack_driver],
    )


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """T and unitary Z with A = Z T Zᴴ.

    Args:
        a: square matrices of shape (..., n, n); integers become floats.
        output: "real" keeps the dtype, so that for a real matrix blocks of two on the
            diagonal of T stand for pairs of complex eigenvalues; "complex" makes both
            complex and T triangular.

    Returns:
        T and Z, of the shape of `a`, in its inexact dtype or the complex one that goes
        with it.

    Raises:
        ValueError: there is no such output, or the matrices are not square.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> a = vnp.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> t, z = linalg.schur(a, output="complex")
    >>> abs(vnp.tril(t, -1)).max(), sorted(vnp.diag(t).imag.round(3).tolist())
    (Array(0., dtype=float32), [-1.0, 1.0])
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', not {output!r}")
    (x,) = as_matrices("schur", a)
    if output == "complex":
        x = to_complex(x)
    t, z = forms.schur(x)
    return t, z


def rsf2csf(
    T: ArrayLike, Z: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """A complex Schur form from a real one: triangular T and unitary Z, Z T Zᴴ alike.

    The blocks of two on the diagonal of T are turned from the last to the first;
    nothing else under the diagonal is looked at.

    Args:
        T: the real Schur form, of shape (..., n, n).
        Z: the unitary matrices, of shape (..., n, n); leading dimensions broadcast with
            those of `T`.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        T and Z, of the shape to which both broadcast, in the complex dtype that goes
        with theirs.

    Raises:
        ValueError: the matrices are not square, or of different sizes.

    >>> import numpy as np
    >>> t, z = rsf2csf(np.float32([[0, 1], [-1, 0]]), np.eye(2, dtype=np.float32))
    >>> sorted(np.round(np.diag(t).imag).tolist())
    [-1.0, 1.0]
    """
    t, z = as_matrices("rsf2csf", T, Z)
    if check_square("rsf2csf", t) != check_square("rsf2csf", z):
        raise ValueError(
            f"rsf2csf takes matrices of the same size, not {t.aval} and {z.aval}"
        )
    n = t.shape[-1]
    shape = vnp.broadcast_shapes(t.shape, z.shape)
    t, z = [vnp.broadcast_to(to_complex(x), shape) for x in (t, z)]
    if n < 2 or not t.size:
        return t, z
    out: tuple[Array, Array] = fori_loop(
        0, n - 1, lambda i, pair: without_block(n - 1 - i, *pair), (t, z)
    )
    return out


def without_block(m: Array, t: Array, z: Array) -> tuple[Array, Array]:
    """Rotate rows and columns m - 1 and m, so that t[m, m - 1] is zero.

    G. Golub, C. Van Loan, Matrix Computations, 7.4.1; the first eigenvalue of the
    block comes first, as in SciPy.
    """
    block = dynamic_slice_in_dim(dynamic_slice_in_dim(t, m - 1, 2, -2), m - 1, 2, -1)
    below, last = block[..., 1, 0], block[..., 1, 1]
    sizes = vnp.abs(block[..., 0, 0]) + vnp.abs(last)
    large = vnp.abs(below) > finfo(sizes.dtype).eps * sizes
    gap = vnp.where(large, decompositions.eigvals(block)[..., 0] - last, 1)
    side = vnp.where(large, below, 0)
    length = to_complex(vnp.hypot(vnp.abs(gap), vnp.abs(side)))
    c, s = gap / length, side / length
    turn = vnp.stack([vnp.stack([c.conj(), s], -1), vnp.stack([-s, c], -1)], -2)
    back = adjoint(turn)
    rows = dynamic_slice_in_dim(t, m - 1, 2, -2)
    rows = vnp.where(places(rows, -1) >= m - 1, matmul(turn, rows), rows)
    t = dynamic_update_slice_in_dim(t, rows, m - 1, -2)
    columns = dynamic_slice_in_dim(t, m - 1, 2, -1)
    columns = vnp.where(places(columns, -2) <= m, matmul(columns, back), columns)
    t = dynamic_update_slice_in_dim(t, columns, m - 1, -1)
    corner = (places(t, -2) == m) & (places(t, -1) == m - 1)
    t = vnp.where(corner, 0, t)
    columns = matmul(dynamic_slice_in_dim(z, m - 1, 2, -1), back)
    return t, dynamic_update_slice_in_dim(z, columns, m - 1, -1)


def places(x: Array, axis: int) -> Array:
    """For each element of `x`, its place along `axis`, which is negative."""
    return broadcasted_iota(int32, x.shape, x.ndim + axis)


@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: Literal[True],
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]: ...
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """H, zero below the first subdiagonal; with `calc_q` also Q, A = Q H Qᴴ.

    Args:
        a: square matrices of shape (..., n, n); integers become floats.
        calc_q: whether the unitary Q is returned as well.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        H of the shape of `a`, in its inexact dtype; with `calc_q` the pair of H and Q.

    Raises:
        ValueError: the matrices are not square.

    >>> import numpy as np
    >>> hessenberg(np.eye(3, dtype=np.float32)).shape
    (3, 3)
    >>> h, q = hessenberg(np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), calc_q=True)
    >>> np.round(np.asarray(q @ h @ q.T), 3).tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    """
    (x,) = as_matrices("hessenberg", a)
    n = check_square("hessenberg", x)
    if n < 2:
        h, q = x, vnp.ones_like(x)
        return (h, q) if calc_q else h
    packed, taus = forms.hessenberg(x)
    h = triu(packed, -1)
    if not calc_q:
        return h
    inner = linalg_qr.householder_product(packed[..., 1:, :-1], taus)
    q = broadcast_to(eye(n, dtype=x.dtype), x.shape)
    return h, q.at[..., 1:, 1:].set(inner)


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """U with orthonormal columns or rows, and Hermitian P ≥ 0, with A = U P or P U.

    Both methods are computed from singular values, which have no iterations.

    Args:
        a: matrices of shape (..., m, n); integers become floats.
        side: where P stands: "right" for A = U P, "left" for A = P U.
        method: "qdwh" or "svd"; the result is the same.
        eps: changes nothing.
        max_iterations: changes nothing.

    Returns:
        U of the shape of `a`, and P of shape (..., n, n) on the right or (..., m, m) on
        the left, in the inexact dtype of `a`.

    Raises:
        ValueError: there is no such side or method.

    >>> import numpy as np
    >>> u, p = polar(np.float32([[0, -2], [2, 0]]))
    >>> np.round(np.asarray(p)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', not {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', not {method!r}")
    (x,) = as_matrices("polar", a)
    u, s, vh = vnp.linalg.svd(x, full_matrices=False)
    values = s.astype(u.dtype)
    if side == "right":
        v = vnp.conj(vnp.matrix_transpose(vh))
        return matmul(u, vh), matmul(v * values[..., None, :], vh)
    uh = vnp.conj(vnp.matrix_transpose(u))
    return matmul(u, vh), matmul(u * values[..., None, :], uh)


@overload
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: Literal[False] = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array]: ...
@overload
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str,
    pivoting: Literal[True],
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array, Array]: ...
@overload
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    *,
    pivoting: Literal[True],
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array, Array]: ...
@overload
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """c Q or, on the left, Q c, with R and with `pivoting` the order of columns.

    Q and R are the economic factors of `a`.

    Args:
        a: matrices of shape (..., m, n), whose Q has k = min(m, n) columns; integers
            become floats.
        c: what Q is multiplied with: shape (..., p, m) or a row (m,) on the right,
            shape (..., k, p) or a column (k,) on the left.
        mode: where Q stands: "right" for c Q, "left" for Q c.
        pivoting: whether columns of `a` are put in order, as in `qr`.
        conjugate: whether conj(Q) stands for Q.
        overwrite_a: changes nothing, since arrays are immutable.
        overwrite_c: changes nothing, since arrays are immutable.

    Returns:
        The product, of shape (..., p, k) or (k,) on the right and (..., m, p) or (m,)
        on the left; R of shape (..., k, n); with `pivoting` int32 numbers of shape
        (..., n).

    Raises:
        ValueError: there is no such mode, or the shapes do not fit.

    >>> import numpy as np
    >>> cq, r = qr_multiply(np.eye(2, dtype=np.float32), np.float32([1, 2]))
    >>> np.abs(cq).tolist()
    [1.0, 2.0]
    """
    if mode not in ("right", "left"):
        raise ValueError(f"qr_multiply: mode must be 'right' or 'left', not {mode!r}")
    x, y = as_matrices("qr_multiply", a, c)
    q, *rest = linalg_qr.qr(x, pivoting=pivoting, full_matrices=False)
    q = vnp.conj(q) if conjugate else q
    inner = q.shape[-1 if mode == "left" else -2]
    given = y.shape[-2 if mode == "left" and y.ndim > 1 else -1] if y.ndim else None
    if given != inner:
        raise ValueError(
            f"qr_multiply: Q of shape {q.shape[-2:]} does not match {y.aval} on its "
            f"{mode}"
        )
    return (matmul(q, y) if mode == "left" else matmul(y, q)), *rest
