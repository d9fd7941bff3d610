"""Floor 6: a signal without the jumps of its period.

One idea: each step is reduced to less than half a period, and the corrections add up::

    unwrap(angles), unwrap(degrees, period=360)
"""

import math
from typing import Any

from verax.ir.dtypes import is_complex, is_integer
from verax.numpy.arguments.arguments import ArrayLike, as_array, canonical_axis, promote
from verax.numpy.elementwise.arithmetic import abs, add, negative, subtract, true_divide
from verax.numpy.elementwise.comparison import equal, greater, less, logical_and
from verax.numpy.elementwise.division import floor_divide, remainder
from verax.numpy.reducing.arg_and_cumulative import cumsum
from verax.numpy.searching.where_nonzero import where
from verax.numpy.shaping.joining import concatenate
from verax.numpy.signal.differences import diff
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array


def unwrap(
    p: ArrayLike,
    discont: ArrayLike | None = None,
    axis: int = -1,
    period: ArrayLike = 2 * math.pi,
) -> Array:
    """`p` with multiples of `period` added, so that no step is over half of one.

    Steps under `discont`, if that is more, stay as they are.

    Raises:
        ValueError: `p` is complex or has no dimensions.
    """
    given, span = promote("unwrap", p, period)
    x = as_array("unwrap", given)
    if is_complex(x.dtype):
        raise ValueError(f"unwrap takes real numbers, not {x.aval}")
    if not x.ndim:
        raise ValueError("unwrap takes an array with at least one dimension")
    place = canonical_axis("unwrap", axis, x.ndim)
    if not x.shape[place]:
        return x
    steps = diff(x, axis=place)
    fixed = correction(steps, span, discont, is_integer(x.dtype))
    first = slice_in_dim(x, 0, 1, axis=place)
    rest = slice_in_dim(x, 1, x.shape[place], axis=place)
    return concatenate((first, add(rest, cumsum(fixed, place, x.dtype))), place)


def correction(
    steps: Array, period: Any, discont: ArrayLike | None, whole: bool
) -> Array:
    """What brings each step to between minus and plus half a period."""
    half = floor_divide(period, 2) if whole else true_divide(period, 2)
    reduced = subtract(remainder(add(steps, half), period), half)
    # Half a period down is as much as half a period up; the sign of the step decides.
    edge = logical_and(equal(reduced, negative(half)), greater(steps, 0))
    if whole:
        edge = logical_and(edge, equal(remainder(period, 2), 0))
    reduced = where(edge, half, reduced)
    small = less(abs(steps), half if discont is None else discont)
    found: Array = where(small, 0, subtract(reduced, steps))
    return found
