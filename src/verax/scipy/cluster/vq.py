"""Floor 6: vector quantisation.

code, distance = vq(observations, code_book)
"""

from verax import numpy as vnp
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays
from verax.rules.values.array import Array

__all__ = ["vq"]


def vq(
    obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """The nearest code of each observation, and its distance.

    Args:
        obs: observations of shape (m, n), or (m,) for numbers.
        code_book: codes of shape (k, n), or (k,).
        check_finite: of no effect.

    Returns:
        The int32 places of the nearest codes, the first one of equals, and the
        Euclidean distances, both of shape (m,).

    Raises:
        ValueError: the shapes do not fit, or there is no code.

    >>> code, distance = vq(vnp.array([0.0, 4.0]), vnp.array([1.0, 5.0]))
    >>> code.tolist(), distance.tolist()
    ([0, 1], [1.0, 1.0])
    """
    points, codes = inexact_arrays("vq", obs, code_book)
    fits = points.ndim == codes.ndim and points.ndim in (1, 2)
    if not fits or points.shape[1:] != codes.shape[1:] or not codes.shape[0]:
        raise ValueError(
            "vq takes m observations and k > 0 codes, both vectors, or both matrices "
            f"with the same number of columns, not {points.aval} and {codes.aval}"
        )
    if points.ndim == 1:
        points, codes = points[:, None], codes[:, None]
    distances = vnp.linalg.norm(points[:, None, :] - codes[None, :, :], axis=-1)
    return vnp.argmin(distances, axis=-1), distances.min(-1)
