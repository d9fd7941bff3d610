"""Floor 6: `verax.numpy.linalg`: linear algebra with NumPy's names.

The one idea: this module holds no code; each name is defined in a file of its subject::

    import verax.numpy as jnp
    jnp.linalg.solve(a, b)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".decompositions": "cholesky eig eigh eigvals eigvalsh qr svd svdvals",
        ".diagonals": "diagonal trace",
        ".products": "multi_dot matmul tensordot vecdot",
        ".norms": "cond matrix_norm norm vector_norm",
        ".determinants": "det slogdet",
        ".solving": (
            "inv lstsq matrix_power matrix_rank pinv solve tensorinv tensorsolve"
        ),
        ".vectors": "cross outer",
        "verax.numpy.shaping.shapes": "matrix_transpose",
    },
)
