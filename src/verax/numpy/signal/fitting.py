"""Floor 6: polynomials fitted to points.

One idea: a fit is least squares on a Vandermonde matrix with columns of length one::

    polyfit(x, y, 2), polyfit(x, y, 1, w=weights, cov=True)
"""

from typing import Any

from verax.ir.dtypes import real_dtype
from verax.ir.limits import finfo
from verax.numpy.arguments.arguments import ArrayLike, as_array, promote_inexact
from verax.numpy.elementwise.arithmetic import multiply, sqrt, square, true_divide
from verax.numpy.linalg.matrix_products import outer
from verax.numpy.linalg.products import matmul
from verax.numpy.linalg.solving import inv, lstsq
from verax.numpy.ranges.grids import vander
from verax.numpy.reducing.reductions import sum
from verax.numpy.shaping.shapes import expand_dims, transpose
from verax.rules.values.array import Array


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool = False,
) -> Any:
    """The polynomial of degree `deg` closest to the points, the highest power first.

    `y` may have a column per data set. `w` weighs the residuals. With `full`, also
    residuals, rank, singular values and `rcond`; with `cov`, the covariances of the
    coefficients ("unscaled": without the variance of the residuals).

    Raises:
        ValueError: the degree is negative, or shapes do not fit.
    """
    if deg < 0:
        raise ValueError(f"polyfit: the degree {deg} is negative")
    given = promote_inexact("polyfit", x, y, *([] if w is None else [w]))
    places, values, *weights = [as_array("polyfit", part) for part in given]
    check_points(places, values, weights)
    if rcond is None:
        rcond = places.shape[0] * float(finfo(real_dtype(places.dtype)).eps)
    left = vander(places, deg + 1)
    right = values
    if weights:
        column = expand_dims(weights[0], 1)
        left = multiply(left, column)
        right = multiply(right, column if right.ndim == 2 else weights[0])
    lengths = sqrt(sum(square(left), axis=0))
    left = true_divide(left, lengths)
    found, residuals, rank, singular = lstsq(left, right, rcond)
    scale = expand_dims(lengths, 1) if values.ndim == 2 else lengths
    found = true_divide(found, scale)
    if full:
        return found, residuals, rank, singular, as_array("polyfit", rcond)
    if not cov:
        return found
    base = true_divide(inv(matmul(transpose(left), left)), outer(lengths, lengths))
    return found, spread(base, residuals, cov, places.shape[0], deg, values.ndim)


def check_points(places: Array, values: Array, weights: list[Array]) -> None:
    """Raise a ValueError unless there are as many places, values and weights."""
    if places.ndim != 1 or not places.size:
        raise ValueError(f"polyfit: x is a vector with elements, not {places.aval}")
    if values.ndim not in (1, 2) or values.shape[0] != places.shape[0]:
        raise ValueError(
            f"polyfit: y has the shape {values.shape} for {places.shape[0]} places"
        )
    if weights and weights[0].shape != places.shape:
        raise ValueError(
            f"polyfit: w has the shape {weights[0].shape} for {places.shape[0]} places"
        )


def spread(
    base: Array, residuals: Array, cov: Any, count: int, deg: int, rank: int
) -> Array:
    """The covariances, scaled by the variance of the residuals unless "unscaled"."""
    if cov == "unscaled":
        return base if rank == 1 else expand_dims(base, 2)
    free = count - deg - 1
    if free <= 0:
        raise ValueError(
            f"polyfit: {count} points leave no freedom to a degree of {deg} for cov; "
            'give more points, or cov="unscaled"'
        )
    variance = true_divide(residuals, free)
    if rank == 1:
        return multiply(base, variance)
    return multiply(expand_dims(base, 2), variance)
