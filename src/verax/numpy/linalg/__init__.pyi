# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.numpy.linalg.decompositions import (
    cholesky as cholesky, eig as eig, eigh as eigh, eigvals as eigvals,
    eigvalsh as eigvalsh, qr as qr, svd as svd, svdvals as svdvals,
)
from verax.numpy.linalg.diagonals import diagonal as diagonal, trace as trace
from verax.numpy.linalg.products import (
    multi_dot as multi_dot, matmul as matmul, tensordot as tensordot, vecdot as vecdot,
)
from verax.numpy.linalg.norms import (
    cond as cond, matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm,
)
from verax.numpy.linalg.determinants import det as det, slogdet as slogdet
from verax.numpy.linalg.solving import (
    inv as inv, lstsq as lstsq, matrix_power as matrix_power,
    matrix_rank as matrix_rank, pinv as pinv, solve as solve, tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
from verax.numpy.linalg.vectors import cross as cross, outer as outer
from verax.numpy.shaping.shapes import matrix_transpose as matrix_transpose
__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
    "vector_norm",
]
