"""Floor 6: `verax.scipy.linalg`: linear algebra with SciPy's names and arguments.

A facade; the files are named after the task: systems to solve, factors,
eigenvalues, functions of matrices, and matrices of structure.

>>> import numpy as np
>>> from verax.scipy import linalg
>>> linalg.solve(2 * np.eye(2, dtype=np.float32), np.float32([2, 4])).tolist()
[1.0, 2.0]
"""

from verax.scipy.linalg.building import (
    block_diag as block_diag,
    circulant as circulant,
    companion as companion,
    convolution_matrix as convolution_matrix,
    dft as dft,
    fiedler as fiedler,
    fiedler_companion as fiedler_companion,
    hadamard as hadamard,
    hankel as hankel,
    helmert as helmert,
    hilbert as hilbert,
    invhilbert as invhilbert,
    invpascal as invpascal,
    leslie as leslie,
    pascal as pascal,
    toeplitz as toeplitz,
)
from verax.scipy.linalg.eigenvalues import (
    eigh as eigh,
    eigh_tridiagonal as eigh_tridiagonal,
)
from verax.scipy.linalg.factors import (
    cholesky as cholesky,
    hessenberg as hessenberg,
    lu as lu,
    polar as polar,
    qr as qr,
    qr_multiply as qr_multiply,
    rsf2csf as rsf2csf,
    schur as schur,
    svd as svd,
)
from verax.scipy.linalg.functions import (
    expm as expm,
    expm_frechet as expm_frechet,
    funm as funm,
    solve_sylvester as solve_sylvester,
    sqrtm as sqrtm,
)
from verax.scipy.linalg.systems import (
    cho_factor as cho_factor,
    cho_solve as cho_solve,
    det as det,
    inv as inv,
    lu_factor as lu_factor,
    lu_solve as lu_solve,
    solve as solve,
    solve_triangular as solve_triangular,
)
