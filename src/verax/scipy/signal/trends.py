"""Floor 6: signals without their mean or their straight lines.

detrend(x), detrend(x, type="constant"), detrend(x, bp=[100, 200])
"""

from collections.abc import Sequence

import numpy as np

from verax import numpy as vnp
from verax.numpy.arguments.arguments import (
    ArrayLike,
    canonical_axis,
    inexact_array,
)
from verax.rules.values.array import Array
from verax.scipy.tables import row


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """A signal less its mean, or less the straight lines nearest to its pieces.

    Args:
        data: an array; integers are taken as floats.
        axis: along which dimension.
        type: "linear" or "constant".
        bp: where new lines begin.
        overwrite_data: left out, since arrays are immutable.

    Raises:
        ValueError: there is no such type or axis, a break lies outside, or
            `overwrite_data` is given.

    >>> bool(vnp.allclose(detrend(vnp.array([1.0, 2.0, 3.0])), 0.0, atol=1e-6))
    True
    """
    if overwrite_data is not None:
        raise ValueError("detrend: arrays are immutable; leave overwrite_data out")
    if type not in ("linear", "constant"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', not {type!r}")
    x = inexact_array("detrend", data)
    place = canonical_axis("detrend", axis, x.ndim)
    if type == "constant":
        return x - x.mean(place, keepdims=True)
    n = x.shape[place]
    breaks = np.unique([0, *np.ravel(bp).tolist(), n])
    if breaks[0] < 0 or breaks[-1] > n:
        raise ValueError(
            f"detrend: break points must lie between 0 and {n}, unlike {bp}"
        )
    moved = vnp.moveaxis(x, place, -1)
    pieces = [
        without_line(moved[..., start:end])
        for start, end in zip(breaks[:-1].tolist(), breaks[1:].tolist(), strict=True)
    ]
    return vnp.moveaxis(vnp.concatenate(pieces, axis=-1), -1, place) if pieces else x


def without_line(x: Array) -> Array:
    """Less the line of least squares along the last axis."""
    n = x.shape[-1]
    time = np.arange(n) - (n - 1) / 2
    length = float((time * time).sum()) or 1.0  # of one point there is no slope
    unit = row(time / np.sqrt(length), x.real)
    level = x - x.mean(-1, keepdims=True)
    return level - (level * unit).sum(-1, keepdims=True) * unit
