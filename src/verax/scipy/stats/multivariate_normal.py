"""Floor 6: the normal distribution of vectors.

With the factor L of the covariance, the quadratic form is |L⁻¹(x - mean)|² and the
determinant is that of L, squared.

>>> import numpy as np
>>> from verax.scipy.stats import multivariate_normal
>>> origin, unit = np.zeros(2, np.float32), np.eye(2, dtype=np.float32)
>>> round(float(multivariate_normal.pdf(origin, origin, unit)), 4)
0.1592
"""

from verax import numpy as vnp
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays
from verax.ops.linalg.triangular import triangular_solve
from verax.rules.values.array import Array
from verax.scipy.linalg import solve_triangular
from verax.scipy.special.normal import LOG_SQRT_2_PI
from verax.scipy.stats.standard import exponential

__all__ = ["logpdf", "pdf"]


def logpdf(
    x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None
) -> Array:
    """The logarithm of the density.

    Args:
        x: points of shape (..., n), or of any shape if `mean` is a scalar.
        mean: shape (..., n) or a scalar.
        cov: shape (..., n, n), or a scalar variance of all components.
        allow_singular: left out; singular matrices give NaN or infinity.

    Raises:
        ValueError: the shapes do not fit, or `allow_singular` is given.

    >>> round(float(logpdf(1.0, 1.0, 4.0)), 4)
    -1.6121
    """
    name = "multivariate_normal.logpdf"
    if allow_singular is not None:
        raise ValueError(f"{name}: allow_singular is not available; leave it out")
    point, centre, spread = inexact_arrays(name, x, mean, cov)
    y = point - centre
    if not centre.ndim:
        return -0.5 * (y * y / spread + vnp.log(spread)) - LOG_SQRT_2_PI
    n = centre.shape[-1]
    if not spread.ndim:
        squares = (y * y).sum(-1) / spread
        return -0.5 * (squares + n * vnp.log(spread)) - n * LOG_SQRT_2_PI
    if spread.shape[-2:] != (n, n):
        raise ValueError(
            f"{name} takes a covariance of shape (..., {n}, {n}) for a mean of shape "
            f"{centre.shape}, not {spread.shape}"
        )
    factor = vnp.linalg.cholesky(spread)
    white = whitened(factor, y)
    half_log_det = vnp.log(vnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    return -0.5 * (white * white).sum(-1) - half_log_det - n * LOG_SQRT_2_PI


def whitened(factor: Array, y: Array) -> Array:
    """L⁻¹ y for vectors y: all at once where there is one matrix."""
    if factor.ndim == 2:
        rows = vnp.reshape(y, (-1, y.shape[-1]))
        # From the right: the vectors stay rows.
        white = triangular_solve(factor, rows, lower=True, transpose_a=True)
        return vnp.reshape(white, y.shape)
    batch = vnp.broadcast_shapes(factor.shape[:-2], y.shape[:-1])
    column = vnp.broadcast_to(y, (*batch, y.shape[-1]))[..., None]
    return solve_triangular(factor, column, lower=True)[..., 0]


pdf = exponential("pdf", logpdf)
