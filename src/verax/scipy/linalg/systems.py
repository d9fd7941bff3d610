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
    """The X with op(A) X = B for triangular A; `trans` is 0, 1 (Aᵀ) or 2 (Aᴴ).

    Raises:
        ValueError: the shapes do not fit, or there is no such `trans`.
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
    """Returns a factor for `cho_solve`, and whether it is the lower one."""
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
    """Returns packed factors of P A = L U for `lu_solve`, and the exchanges of rows."""
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
    """The X with A X = B; `assume_a` is gen, sym, her or pos (by Cholesky factors).

    Raises:
        ValueError: the shapes do not fit, or nothing is known about `assume_a`.
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', not {assume_a!r}"
        )
    if assume_a != "pos":
        return solving.solve(a, b)
    return cho_solve(cho_factor(a, lower), b)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices."""
    return determinants.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices."""
    return solving.inv(a)
