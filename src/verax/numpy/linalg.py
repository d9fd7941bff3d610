"""Floor 6: `verax.numpy.linalg`: linear algebra with NumPy's names.

The one idea: this module holds no code; each name is defined in a file of its subject::

    import verax.numpy as jnp
    jnp.linalg.solve(a, b)
"""

# fmt: off
# Several names to a line: this is a table to look things up in, by file.
from verax.numpy.factors import (
    cholesky as cholesky,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    qr as qr,
    svd as svd,
    svdvals as svdvals,
)
from verax.numpy.matrix_diagonals import diagonal as diagonal, trace as trace
from verax.numpy.matrix_products import (
    cross as cross,
    multi_dot as multi_dot,
    outer as outer,
)
from verax.numpy.norms import (
    cond as cond,
    matrix_norm as matrix_norm,
    norm as norm,
    vector_norm as vector_norm,
)
from verax.numpy.products import (
    matmul as matmul,
    tensordot as tensordot,
    vecdot as vecdot,
)
from verax.numpy.shapes import matrix_transpose as matrix_transpose
from verax.numpy.solving import (
    det as det,
    inv as inv,
    lstsq as lstsq,
    matrix_power as matrix_power,
    matrix_rank as matrix_rank,
    pinv as pinv,
    slogdet as slogdet,
    solve as solve,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
