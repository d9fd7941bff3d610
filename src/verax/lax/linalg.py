"""Floor 6: `verax.lax.linalg`: decompositions of stacks of matrices.

The one idea: the functions are those of the rows, as they are::

    from verax.lax import linalg
    l = linalg.cholesky(a)
"""

# fmt: off
# Several names to a line: this is a table to look things up in, by file.
from verax.lax.shaping import (
    EighImplementation as EighImplementation,
    EigImplementation as EigImplementation,
    SvdAlgorithm as SvdAlgorithm,
    cholesky_update as cholesky_update,
    ormqr as ormqr,
    symmetric_product as symmetric_product,
)
from verax.lax.solving import qdwh as qdwh
from verax.ops.linalg.eigen import (
    eig as eig,
    eig_p as eig_p,
    eigh as eigh,
    eigh_p as eigh_p,
)
from verax.ops.linalg.forms import (
    hessenberg as hessenberg,
    hessenberg_p as hessenberg_p,
    schur as schur,
    schur_p as schur_p,
    tridiagonal as tridiagonal,
    tridiagonal_p as tridiagonal_p,
    tridiagonal_solve as tridiagonal_solve,
    tridiagonal_solve_p as tridiagonal_solve_p,
)
from verax.ops.linalg.lu import (
    lu as lu,
    lu_p as lu_p,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from verax.ops.linalg.qr import (
    geqrf as geqrf,
    geqrf_p as geqrf_p,
    householder_product as householder_product,
    householder_product_p as householder_product_p,
    qr as qr,
    qr_p as qr_p,
)
from verax.ops.linalg.svd import svd as svd, svd_p as svd_p
from verax.ops.linalg.triangular import (
    cholesky as cholesky,
    cholesky_p as cholesky_p,
    triangular_solve as triangular_solve,
    triangular_solve_p as triangular_solve_p,
)
