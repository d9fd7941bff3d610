"""Floor 6: standardizing, and one-hot vectors.

One idea: a one-hot vector is a comparison with a counter, so it is a handful of
equations and needs no table::

    one_hot(labels, 10)            # broadcast, iota, eq, convert
"""

from collections.abc import Sequence
from typing import Any

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DTypeLike, bool_, is_bool
from verax.nn.operand import inexact
from verax.numpy.arguments.arguments import (
    ArrayLike,
    Axis,
    canonical_axis,
    chosen_dtype,
    default_float,
    default_integer,
    reduction_axes,
    spread,
)
from verax.numpy.creation.creation import asarray
from verax.numpy.elementwise.arithmetic import add, maximum, multiply, square, subtract
from verax.numpy.reducing.statistics import mean as mean_over
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import rsqrt
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.reshard import call_sharded
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_size

ALGORITHMS = ("fast", "stable")


@remembered
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / √(variance + epsilon), by default with the moments over `axis`.

    `algorithm` "fast" takes the variance as the mean of squares less the square of the
    mean, in one pass; "stable" as the mean of the squared differences.

    Raises:
        TypeError: `x` is neither an array nor a scalar.
        ValueError: there is no such dimension or algorithm.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"standardize: algorithm must be 'fast' or 'stable', not {algorithm!r}"
        )
    array = inexact("standardize", x)
    axes = reduction_axes("standardize", axis, array.ndim)
    if mean is None:
        mean = averaged(array, axes, where)
    centred = subtract(array, mean)
    if variance is None and algorithm == "stable":
        variance = averaged(square(centred), axes, where)
    elif variance is None:
        spread = subtract(averaged(square(array), axes, where), square(mean))
        variance = maximum(spread, 0.0)
    return multiply(centred, rsqrt(inexact("standardize", add(variance, epsilon))))


def averaged(x: Array, axes: Any, where: ArrayLike | None) -> Array:
    """The mean over `axes`, which stay with size 1."""
    return mean_over(x, axes, keepdims=True, where=where)


@remembered
def one_hot(
    x: ArrayLike | Sequence[Any],
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: object = None,
) -> Array:
    """Vectors along a new dimension `axis` that are 1 at the index x, else 0.

    An index outside 0, ..., `num_classes` - 1 makes a vector of zeros.

    Raises:
        TypeError: `num_classes` is not an integer known while tracing.
        ValueError: there is no such dimension in the result.

    >>> import verax
    >>> verax.nn.one_hot(verax.numpy.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(one_hot, locals())
    places = asarray(x)
    count = as_size(num_classes)
    result = chosen_dtype("one_hot", dtype) or default_float()
    if is_bool(places.dtype):
        places = convert(places, default_integer())
    place = canonical_axis("one_hot", axis, places.ndim + 1)
    shape = (*places.shape[:place], count, *places.shape[place:])
    counter = broadcasted_iota(places.dtype, shape, place)
    hot = eq(spread(places, shape, (place,)), counter)
    return hot if result == bool_ else convert(hot, result)
