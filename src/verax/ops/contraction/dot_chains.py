"""Floor 2: products with vectors whose contracted dimension is long, in NumPy.

One idea: BLAS adds such products one after another, so they are made in blocks, whose
sums are added in short chains::

    product(np.ones((1, 2**25), np.float32), np.ones((2**25, 1), np.float32))
"""

import numpy as np

from verax.rules.families.chained_sums import total
from verax.rules.rows.row import NDArray

# Within a block BLAS adds one after another, or in a few lanes.
BLOCK = 1024
LONG_CHAIN = (2 * BLOCK,)


def product(x: NDArray, y: NDArray) -> NDArray:
    """`np.matmul` of stacked matrices, in blocks if one is a row or a column."""
    n = x.shape[-1]
    vectors = min(x.shape[-2], y.shape[-1]) == 1
    if (n,) < LONG_CHAIN or not vectors or x.dtype.kind not in "fc":
        return np.asarray(np.matmul(x, y))
    lead, count = x.ndim - 2, n // BLOCK
    end = count * BLOCK
    rows = x[..., :end].reshape((*x.shape[:-1], count, BLOCK))
    columns = y[..., :end, :].reshape((*y.shape[:-2], count, BLOCK, y.shape[-1]))
    parts = np.matmul(np.moveaxis(rows, -2, lead), columns)
    found = total(parts, (lead,))
    if end < n:
        found = found + np.matmul(x[..., end:], y[..., end:, :])
    return found
