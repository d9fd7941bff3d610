"""Floor 6: systems of linear equations, and factors that solve many of them.

One idea: what SciPy says with flags (`lower`, `trans`, `overwrite_a`) is said to the
same rows as NumPy's functions; flags that save memory or time change nothing::

    cho_solve(cho_factor(a), b), lu_solve(lu_factor(a), b)
"""

from verax.numpy.arguments.arguments import ArrayLike, as_array
from verax.numpy.linalg import determinants, solving
from verax.numpy.linalg.decompositions import as_matrices
from verax.numpy.shaping.shapes import broadcast_to, squeeze
from verax.ops.linalg import lu as linalg_lu
from verax.ops.linalg.triangular import triangular_solve
from verax.rules.values.array import Array
from verax.scipy.linalg.factors import cholesky

TURNED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


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
    """The X with op(A) X = B for triangular A.

    Where the diagonal has a zero, the result is infinite or NaN; SciPy raises an error.

    Args:
        a: matrices of shape (..., n, n), of which one triangle is read; integers become
            floats.
        b: right-hand sides of shape (..., n, k), or one vector (n,); leading dimensions
            broadcast with those of `a`.
        trans: what op is: 0 or "N" for A itself, 1 or "T" for Aᵀ, 2 or "C" for Aᴴ.
        lower: whether the lower triangle is read; by default the upper one.
        unit_diagonal: whether ones stand for the diagonal, which is then not read.
        overwrite_b: changes nothing, since arrays are immutable.
        debug: changes nothing.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        The solutions, of the shape of `b` with the leading dimensions of both, in the
        common inexact dtype.

    Raises:
        ValueError: the shapes do not fit, or there is no such `trans`.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> a = vnp.array([[2.0, 99.0], [1.0, 4.0]])
    >>> linalg.solve_triangular(a, vnp.array([2.0, 9.0]), lower=True)
    Array([1., 2.], dtype=float32)
    >>> linalg.solve_triangular(a, vnp.array([4.0, 8.0]), "T", lower=True)
    Array([1., 2.], dtype=float32)
    """
    x, y = as_matrices("solve_triangular", a, b)
    if trans not in TURNED:
        raise ValueError(f"solve_triangular: trans must be 0, 1 or 2, not {trans!r}")
    turned = TURNED[trans]
    x, side, vector = solving.as_system("solve_triangular", x, y)
    out = triangular_solve(
        x,
        side,
        left_side=True,
        lower=lower,
        transpose_a=turned > 0,
        conjugate_a=turned == 2,
        unit_diagonal=unit_diagonal,
    )
    return squeeze(out, -1) if vector else out


def cho_factor(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, bool]:
    """A factor for `cho_solve`, and whether it is the lower one.

    The other triangle of the factor is zero.

    Args:
        a: Hermitian positive definite matrices of shape (..., n, n), of which one
            triangle is read; integers become floats.
        lower: whether the lower triangle is read and a lower factor made; by default
            the upper one.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        The factor, of the shape of `a` in its inexact dtype, as of `cholesky`, and
        `lower`. It is NaN where a matrix is not positive definite.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> linalg.cho_factor(vnp.array([[4.0, 2.0], [2.0, 5.0]]))
    (Array([[2., 1.],
           [0., 2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The X with A X = B, from `cho_factor` of A.

    Args:
        c_and_lower: the factor, of shape (..., n, n), and whether it is the lower one.
        b: right-hand sides of shape (..., n, k), or one vector (n,); leading dimensions
            broadcast with those of the factor.
        overwrite_b: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        The solutions, of the shape of `b` with the leading dimensions of both, in the
        common inexact dtype.

    Raises:
        ValueError: the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> factor = linalg.cho_factor(vnp.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> linalg.cho_solve(factor, vnp.array([8.0, 12.0]))
    Array([1., 2.], dtype=float32)
    """
    factor, lower = c_and_lower
    x, side, vector = solving.as_system(
        "cho_solve", *as_matrices("cho_solve", factor, b)
    )
    for turned in (not lower, lower):
        side = triangular_solve(
            x,
            side,
            left_side=True,
            lower=lower,
            transpose_a=turned,
            conjugate_a=turned,
        )
    return squeeze(side, -1) if vector else side


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Packed factors of P A = L U for `lu_solve`, and the exchanges of rows.

    Args:
        a: matrices of shape (..., m, n); integers become floats.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        The factors, of the shape of `a` in its inexact dtype: U with its diagonal, and
        below it L, whose diagonal is 1. And int32 numbers of shape (..., min(m, n)):
        row i was exchanged with row `pivots[i]`, one after the other.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> packed, pivots = linalg.lu_factor(vnp.array([[1.0, 2.0], [2.0, 3.0]]))
    >>> packed
    Array([[2. , 3. ],
           [0.5, 0.5]], dtype=float32)
    >>> pivots
    Array([1, 1], dtype=int32)
    """
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
    """The X with op(A) X = B, from `lu_factor` of A.

    Args:
        lu_and_piv: the packed factors, of shape (..., n, n), and the exchanges of rows,
            of shape (..., n).
        b: right-hand sides of shape (..., n, k), or one vector (n,); leading dimensions
            broadcast with those of the factors.
        trans: what op is: 0 for A itself, 1 for Aᵀ, 2 for Aᴴ.
        overwrite_b: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        The solutions, of the shape of `b` with the leading dimensions of both, in the
        common inexact dtype.

    Raises:
        ValueError: the shapes do not fit, or there is no such `trans`.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> factors = linalg.lu_factor(vnp.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> linalg.lu_solve(factors, vnp.array([5.0, 11.0])).round(3)
    Array([1., 2.], dtype=float32)
    >>> linalg.lu_solve(factors, vnp.array([7.0, 10.0]), trans=1).round(3)
    Array([1., 2.], dtype=float32)
    """
    packed, y = as_matrices("lu_solve", lu_and_piv[0], b)
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, not {trans!r}")
    packed, side, vector = solving.as_system("lu_solve", packed, y)
    pivots = as_array("lu_solve", lu_and_piv[1])
    order = linalg_lu.lu_pivots_to_permutation(pivots, packed.shape[-1])
    order = broadcast_to(order, packed.shape[:-1])
    out = linalg_lu.lu_solve(packed, order, side, trans)
    return squeeze(out, -1) if vector else out


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
    """The X with A X = B.

    Where A is singular the result is infinite or NaN; SciPy raises an error.

    Args:
        a: square matrices of shape (..., n, n); integers become floats.
        b: right-hand sides of shape (..., n, k), or one vector (n,); leading dimensions
            broadcast with those of `a`.
        lower: with `assume_a="pos"`, whether the lower triangle of A is read; by
            default the upper one. It changes nothing else.
        overwrite_a: changes nothing, since arrays are immutable.
        overwrite_b: changes nothing, since arrays are immutable.
        debug: changes nothing.
        check_finite: changes nothing; NaN and infinities are not looked for.
        assume_a: what A is known to be: "pos" (positive definite) solves by Cholesky
            factors; "gen", "sym" and "her" all solve by an LU factorisation of the
            whole matrix.

    Returns:
        The solutions, of the shape of `b` with the leading dimensions of both, in the
        common inexact dtype.

    Raises:
        ValueError: the shapes do not fit, or nothing is known about `assume_a`.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> a, b = vnp.array([[4.0, 2.0], [99.0, 5.0]]), vnp.array([8.0, 12.0])
    >>> linalg.solve(a, b, assume_a="pos")  # reads 4, 2 and 5
    Array([1., 2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', not {assume_a!r}"
        )
    if assume_a != "pos":
        return solving.solve(a, b)
    return cho_solve(cho_factor(a, lower), b)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices.

    Args:
        a: square matrices of shape (..., n, n); integers become floats.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        Of shape (...), in the inexact dtype of `a`.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> linalg.det(vnp.array([[1, 2], [3, 4]]))
    Array(-2., dtype=float32)
    >>> linalg.det(vnp.ones((5, 2, 2))).shape
    (5,)
    """
    return determinants.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices; infinite or NaN where there are none.

    Args:
        a: square matrices of shape (..., n, n); integers become floats.
        overwrite_a: changes nothing, since arrays are immutable.
        check_finite: changes nothing; NaN and infinities are not looked for.

    Returns:
        Of the shape of `a`, in its inexact dtype.

    Raises:
        ValueError: the matrices are not square.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import linalg
    >>> linalg.inv(vnp.array([[0, 4], [2, 0]]))
    Array([[0.  , 0.5 ],
           [0.25, 0.  ]], dtype=float32)
    >>> vnp.isfinite(linalg.inv(vnp.array([[1.0, 2.0], [2.0, 4.0]]))).any()
    Array(False, dtype=bool)
    """
    return solving.inv(a)
