"""Floor 6: scaled dot-product attention, in its reference form.

One idea: heads that share keys and values are a dimension of their own, so grouped
queries need no repetition: queries are (batch, T, K, G, H), keys (batch, S, K, H), and
scores stay (batch, K, T, G, S) from the first contraction to the second.

Vaswani et al., "Attention is all you need"; Ainslie et al., "GQA".
"""

import math
import warnings
from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
from attrs import frozen

from verax.api.config.tracebacks import in_words
from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape, finfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    float32,
    float64,
    int32,
    is_bool,
    is_integer,
)
from verax.ir.records import ReprMixin
from verax.nn.activations import inexact
from verax.nn.reductions import logsumexp, softmax
from verax.numpy.arguments.arguments import (
    ArrayLike,
    NamedAxis,
    as_array,
    canonical_axis,
    chosen_dtype,
    default_float,
    default_integer,
    named_apart,
    reduction_axes,
    spread,
    stretched,
)
from verax.numpy.creation.creation import asarray
from verax.numpy.elementwise.arithmetic import add, maximum, multiply, square, subtract
from verax.numpy.elementwise.comparison import logical_and
from verax.numpy.reducing.statistics import mean as mean_over
from verax.ops.contraction.dot import dot_general
from verax.ops.elementwise.arith import mul, sub
from verax.ops.elementwise.compare import eq, ge, le, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import rsqrt
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import broadcast_in_dim, expand_dims, reshape, transpose
from verax.rules.values.array import Array
from verax.rules.values.sizes import named_size

Window = int | tuple[int, int] | None


@frozen(repr=False)
class Sizes(ReprMixin):
    """The sizes of one call: batch, queries, keys, key heads, group, head dimension."""

    batch: int
    queries: int
    keys: int
    heads: int
    group: int
    depth: int

    @property
    def scores(self) -> Shape:
        return (self.batch, self.heads, self.queries, self.group, self.keys)

    def counter(self, dimension: int) -> Array:
        """The number of each query (dimension 2) or key (4)."""
        sizes = self.scores
        shape = [1, 1, 1, 1, 1]
        shape[dimension] = sizes[dimension]
        return broadcasted_iota(int32, shape, dimension)


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: Window = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: Window = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: Window = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """softmax(query keyᵀ scale + bias, where mask) value, for every head.

    The sizes are batch, T queries, S keys, N heads of queries, K heads of keys and
    values, and H numbers in a head; N is a multiple of K, and N / K heads in a row
    share keys and values. Arrays with fewer than 4 dimensions have dimensions of size 1
    in front. A query all of whose keys are hidden takes the mean of their values.

    Args:
        query: an array of shape (batch, T, N, H).
        key: an array of shape (batch, S, K, H), of the dtype of `query`.
        value: an array of the shape and dtype of `key`.
        bias: what is added to the scores, of shape (batch, N, T, S), or 1 where it
            repeats.
        mask: booleans, false where a key is hidden from a query; of shape
            (batch, N, T, S), or 1 where it repeats.
        scale: the factor of the scores; by default 1/√H.
        is_causal: whether keys behind the place of a query are hidden from it.
        query_seq_lengths: the number of queries of each sequence, int32 of shape
            (batch,); the results of those behind it are 0.
        key_value_seq_lengths: the number of keys of each sequence, int32 of shape
            (batch,); those behind it are hidden.
        local_window_size: how many keys on the left and right of its place a query
            sees, as a pair or as one number for both; None for all.
        implementation: None or "xla", which are the same.
        return_residual: whether to return the logsumexp of the scores too.

    Returns:
        An array of the shape and dtype of `query`. With `return_residual` also one of
        shape (batch, T, N) in that dtype, through which no derivative goes.

    Raises:
        ValueError: shapes or dtypes do not match, or there is no such
            implementation.

    Equal scores make a mean of the values that a query sees:

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> q, k, v = vnp.zeros((2, 1, 4)), vnp.zeros((2, 1, 4)), vnp.ones((2, 1, 4))
    >>> v = v.at[1].set(3.0)
    >>> nn.dot_product_attention(q, k, v, is_causal=True)[:, 0].tolist()
    [[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]
    """
    if implementation not in (None, "xla"):
        raise ValueError(
            f"dot_product_attention: implementation {implementation!r} is not "
            "available; leave it out, or pass 'xla'"
        )
    shape = as_array("dot_product_attention", query).shape
    q, k, v = (four(x, name) for x, name in named(query, key, value))
    sizes = sizes_of(q, k, v)
    lengths = length_masks(sizes, query_seq_lengths, key_value_seq_lengths)
    masks = [
        *lengths,
        *position_masks(sizes, is_causal, local_window_size),
        *([] if mask is None else [grouped(mask_of(mask), sizes, "mask")]),
    ]
    scores = scores_of(q, k, sizes, scale, bias)
    if masks:
        scores = hidden(scores, masks)
    scores = convert(scores, float32)
    weights = convert(softmax(scores), k.dtype)
    out = dot_general(weights, v, (((4,), (1,)), ((0, 1), (0, 2))))
    out = reshape(transpose(out, (0, 2, 1, 3, 4)), q.shape)
    if query_seq_lengths is not None:
        real = convert(reshape(lengths[0], q.shape[:2]), out.dtype)
        out = mul(out, broadcast_in_dim(real, out.shape, (0, 1)))
    if not return_residual:
        return reshape(out, shape)
    residual = transpose(convert(logsumexp(scores, -1), k.dtype), (0, 2, 1, 3))
    return reshape(out, shape), stop_gradient(reshape(residual, shape[:-1]))


def named(*operands: ArrayLike) -> list[tuple[ArrayLike, str]]:
    """Operands with their names for messages."""
    return list(zip(operands, ("query", "key", "value"), strict=True))


def four(x: ArrayLike, name: str) -> Array:
    """An operand with dimensions of size 1 in front, four in all."""
    array = as_array(f"dot_product_attention: {name}", x)
    if array.ndim > 4:
        raise ValueError(
            f"dot_product_attention: {name} must have at most 4 dimensions, not "
            f"{array.aval}"
        )
    missing = 4 - array.ndim
    return expand_dims(array, tuple(range(missing))) if missing else array


def sizes_of(q: Array, k: Array, v: Array) -> Sizes:
    """The sizes of a call.

    Raises:
        ValueError: the operands do not match.
    """
    if v.shape != k.shape or not v.dtype == k.dtype == q.dtype:
        raise ValueError(
            "dot_product_attention takes key and value of the same shape, and query "
            f"of the same dtype, not {q.aval}, {k.aval} and {v.aval}"
        )
    batch, keys, heads, depth = k.shape
    if (q.shape[0], q.shape[3]) != (batch, depth):
        raise ValueError(
            f"dot_product_attention: the query {q.aval} must have the batch size and "
            f"last dimension of the key {k.aval}"
        )
    if q.shape[2] % max(heads, 1):
        raise ValueError(
            f"dot_product_attention: the number of heads of the query, {q.shape[2]}, "
            f"must be a multiple of that of key and value, {heads}"
        )
    return Sizes(batch, q.shape[1], keys, heads, q.shape[2] // max(heads, 1), depth)


def scores_of(
    q: Array, k: Array, sizes: Sizes, scale: float | None, bias: ArrayLike | None
) -> Array:
    """query keyᵀ scale + bias, of shape (batch, K, T, G, S)."""
    shape = (sizes.batch, sizes.queries, sizes.heads, sizes.group, sizes.depth)
    wide = float64 if q.dtype == float64 else float32
    preferred = None if q.dtype == wide else wide
    numbers = (((4,), (3,)), ((0, 2), (0, 2)))
    scores = dot_general(reshape(q, shape), k, numbers, None, preferred)
    scores = mul(scores, 1 / math.sqrt(sizes.depth) if scale is None else float(scale))
    if bias is None:
        return scores
    return convert(add(scores, grouped(bias, sizes, "bias")), scores.dtype)


def mask_of(mask: ArrayLike) -> Array:
    """A boolean mask, or an error."""
    array = as_array("dot_product_attention: mask", mask)
    if array.dtype != bool_:
        raise ValueError(
            f"dot_product_attention: mask must be boolean, not {array.aval}"
        )
    return array


def grouped(x: ArrayLike, sizes: Sizes, name: str) -> Array:
    """A bias or mask (batch, N, T, S) in the layout of the scores."""
    array = four(x, name)
    batch, heads, queries, keys = array.shape
    full = (sizes.batch, sizes.heads * sizes.group, sizes.queries, sizes.keys)
    if any(n not in (1, m) for n, m in zip(array.shape, full, strict=True)):
        raise ValueError(
            f"dot_product_attention: {name} of shape {array.shape} does not broadcast "
            f"to (batch, heads, queries, keys) = {full}"
        )
    if heads == 1:
        return reshape(array, (batch, 1, queries, 1, keys))
    split = (batch, sizes.heads, sizes.group, queries, keys)
    return transpose(reshape(array, split), (0, 1, 3, 2, 4))


def length_masks(
    sizes: Sizes, queries: ArrayLike | None, keys: ArrayLike | None
) -> list[Array]:
    """The places before the ends of queries and of keys."""
    masks = []
    for lengths, dimension in ((queries, 2), (keys, 4)):
        if lengths is None:
            continue
        ends = as_array("dot_product_attention: lengths", lengths)
        if ends.shape != (sizes.batch,) or ends.dtype != int32:
            raise ValueError(
                "dot_product_attention: sequence lengths must be int32 of shape "
                f"({sizes.batch},), not {ends.aval}"
            )
        shape = [sizes.batch, 1, 1, 1, 1]
        shape[dimension] = sizes.scores[dimension]
        counter = stretched(sizes.counter(dimension), tuple(shape))
        masks.append(lt(counter, broadcast_in_dim(ends, shape, (0,))))
    return masks


def position_masks(sizes: Sizes, is_causal: bool, window: Window) -> list[Array]:
    """The keys that a query sees, by their distance."""
    if not is_causal and window is None:
        return []
    shape = (1, 1, sizes.queries, 1, sizes.keys)
    place, key = (stretched(sizes.counter(d), shape) for d in (2, 4))
    masks = [ge(place, key)] if is_causal else []
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        distance = sub(place, key)
        masks += [le(distance, left), ge(distance, -right)]
    return masks


def hidden(scores: Array, masks: list[Array]) -> Array:
    """Scores that are very low wherever one of the masks is false."""
    seen = masks[0]
    for mask in masks[1:]:
        seen = logical_and(seen, mask)
    return select(stretched(seen, scores.shape), scores, lowest(scores.dtype))


def lowest(dtype: DType) -> float:
    """A score that leaves no weight and is still finite."""
    most = min(float(finfo(dtype).max), float(np.finfo(np.float32).max))
    return -0.7 * most


# -----------------------------------------------------------------------------
# Standardizing, and one-hot vectors.
#
# A one-hot vector is a comparison with a counter, so it is a handful of
# equations and needs no table::
#
#     one_hot(labels, 10)            # broadcast, iota, eq, convert


ALGORITHMS = ("fast", "stable")


@remembered
def standardize(
    x: ArrayLike,
    axis: NamedAxis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / √(variance + epsilon), by default with the moments over `axis`.

    Args:
        x: an array or scalar; integers become floats.
        axis: the dimension or dimensions to reduce for the moments, or names of axes of
            an enclosing `vmap` or `shard_map`; None for all dimensions. By default the
            last one.
        mean: what is subtracted instead of the mean of `x`; it broadcasts with `x`.
        variance: what stands under the root instead of the variance of `x`; it
            broadcasts with `x`.
        epsilon: what is added to the variance, so that a constant `x` becomes 0; by
            default 1e-5.
        where: a mask that broadcasts with the array; elements where it is false are
            left out of the moments, but standardized as well.
        algorithm: "fast" takes the variance as the mean of squares less the square of
            the mean, in one pass; "stable" as the mean of the squared differences,
            which keeps its digits where the mean is large.

    Returns:
        The shape and dtype of `x`, broadcast and promoted with given moments; floats
        for integers.

    Raises:
        TypeError: `x` is neither an array nor a scalar.
        ValueError: there is no such dimension or algorithm.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x = vnp.array([10000.0, 10001.0, 10002.0])
    >>> nn.standardize(x).round(3)
    Array([-316.228,    0.   ,  316.228], dtype=float32)
    >>> nn.standardize(x, algorithm="stable").round(3)
    Array([-1.225,  0.   ,  1.225], dtype=float32)
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"standardize: algorithm must be 'fast' or 'stable', not {algorithm!r}"
        )
    array = inexact("standardize", x)
    axis, names = named_apart(axis)
    axes: tuple[int | str, ...] = reduction_axes("standardize", axis, array.ndim)
    axes = (*axes, *names)
    if mean is None:
        mean = averaged(array, axes, where)
    centred = subtract(array, mean)
    if variance is None and algorithm == "stable":
        variance = averaged(square(centred), axes, where)
    elif variance is None:
        spread = subtract(averaged(square(array), axes, where), square(mean))
        variance = maximum(spread, 0.0)
    return multiply(centred, rsqrt(inexact("standardize", add(variance, epsilon))))


def averaged(
    x: Array, axes: int | Sequence[int | str], where: ArrayLike | None
) -> Array:
    """The mean over `axes`, which stay with size 1."""
    return mean_over(x, axes, keepdims=True, where=where)


@remembered
def one_hot(
    x: ArrayLike | Sequence[object],
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: object = None,
) -> Array:
    """Vectors along a new dimension `axis` that are 1 at the index x, else 0.

    An index outside 0, ..., `num_classes` - 1 makes a vector of zeros.

    Args:
        x: an array or nested sequence of indices; a float that is no whole number makes
            a vector of zeros too.
        num_classes: the size of the new dimension, known while tracing.
        dtype: the dtype of the result; by default that of Python floats: float32, or
            float64 with x64.
        axis: the place of the new dimension in the result; by default the last.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array with one dimension more than `x`, in `dtype`.

    Raises:
        TypeError: `num_classes` is not an integer known while tracing.
        ValueError: there is no such dimension in the result.

    >>> import verax
    >>> verax.nn.one_hot(verax.numpy.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    >>> verax.nn.one_hot(verax.numpy.array([1, -1]), 3, dtype=int, axis=0)
    Array([[0, 0],
           [1, 0],
           [0, 0]], dtype=int32)
    """
    if out_sharding is not None:
        return call_sharded(one_hot, locals())
    places = asarray(x)
    what = "a size, in verax.nn.one_hot argument `num_classes`,"
    count = named_size(num_classes, what)
    result = chosen_dtype("one_hot", dtype) or default_float()
    if is_bool(places.dtype):
        places = convert(places, default_integer())
    elif not is_integer(places.dtype):
        warnings.warn(
            in_words(
                "verax.nn.one_hot input should be integer-typed, but it is "
                f"{places.dtype}: convert it, as in x.astype(int)"
            ),
            DeprecationWarning,
            stacklevel=2,
        )
    place = canonical_axis("one_hot", axis, places.ndim + 1)
    shape = (*places.shape[:place], count, *places.shape[place:])
    counter = broadcasted_iota(places.dtype, shape, place)
    hot = eq(spread(places, shape, (place,)), counter)
    return hot if result == bool_ else convert(hot, result)
