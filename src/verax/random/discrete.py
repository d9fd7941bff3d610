"""Floor 6: discrete distributions: coins, categories, waiting times.

One idea: the largest of log-probabilities plus Gumbel noise is a sample of them, so a
category is one argmax, and the k largest are k samples without replacement::

    categorical(key, logits)       # argmax(logits + gumbel)
"""

from math import prod
from typing import Any

from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    inexact_dtype,
    is_bool,
    is_float,
    is_inexact,
)
from verax.ir.limits import finfo
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_shape,
    broadcast_shapes_of,
    canonical_axis,
    chosen_dtype,
    default_integer,
    stretched,
)
from verax.numpy.elementwise.arithmetic import add as plus, multiply
from verax.ops.elementwise.arith import add, div, mul, neg, sub
from verax.ops.elementwise.compare import eq, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import log, log1p
from verax.ops.elementwise.rounding import floor
from verax.ops.elementwise.select import select
from verax.ops.reductions.argminmax import argmax
from verax.ops.sorting.sort import top_k
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import move_axis, reshape, transpose
from verax.random.continuous import draw_gumbel, draw_maxwell
from verax.random.keys import one_key, pieces, several
from verax.random.raw_bits import unit
from verax.random.samplers import (
    Sizes,
    asked,
    compiled,
    integer_dtype,
    parameter,
    result_shape,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Sizes | None = None,
    mode: str = "low",
    *,
    out_sharding: object = None,
) -> Array:
    """Booleans that are true with probability p.

    `mode` "high" uses twice as many bits, for small p.

    Raises:
        TypeError: `key` is not a key, or `p` is not floating.
        ValueError: `p` does not fit `shape`, or there is no such mode.

    >>> import verax
    >>> verax.random.bernoulli(verax.random.key(0), 0.5, (3,))
    Array([False, False,  True], dtype=bool)
    """
    if out_sharding is not None:
        return call_sharded(bernoulli, locals())
    if mode not in ("low", "high"):
        raise ValueError(f"bernoulli: mode must be 'low' or 'high', not {mode!r}")
    typed = one_key("bernoulli", key)
    dtype = aval_of(p).dtype
    if not is_float(dtype):
        raise TypeError(
            f"bernoulli: the probability p must be a float, not {aval_of(p)}"
        )
    sizes = result_shape("bernoulli", shape, p)
    bound = parameter(p, dtype, sizes)
    if mode == "low":
        return lt(unit(typed, sizes, dtype), bound)
    coarse, fine = pieces(unit(typed, (2, *sizes), dtype))
    return lt(mul(fine, 2.0 ** -int(finfo(dtype).nmant)), sub(bound, coarse))


def signed_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The dtype of numbers that a caller asks for, or the default integer.

    Raises:
        TypeError: it holds booleans.
    """
    found = chosen_dtype(name, dtype) or integer_dtype(name, None)
    if is_bool(found):
        raise TypeError(f"{name}: dtype must be numeric, not bool")
    return found


def rademacher(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Signs: -1 and 1 with probability 1/2 each.

    Raises:
        TypeError: `key` is not a key, or `dtype` holds no numbers.
    """
    if out_sharding is not None:
        return call_sharded(rademacher, locals())
    typed, found, sizes = asked("rademacher", key, shape, dtype, kind=signed_dtype)
    heads = bernoulli(typed, 0.5, sizes)
    two, one = (2.0, 1.0) if is_inexact(found) else (2, 1)
    return sub(mul(convert(heads, found), two), one)


def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """loc + scale · (Maxwell's distribution with a random sign).

    As in JAX the shape of the result is `shape`, or that of the parameters, followed by
    that of the parameters.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.
    """
    typed, found, front = asked("double_sided_maxwell", key, shape, dtype)
    own = broadcast_shapes_of(
        "double_sided_maxwell", [aval_of(loc).shape, aval_of(scale).shape]
    )
    sizes = (front or own) + own
    first, second = several(typed, 2)
    signs = rademacher(second, sizes, found)
    return compiled(
        shifted_and_scaled, signs, draw_maxwell(first, sizes, found), scale, loc
    )


def shifted_and_scaled(signs: Array, lengths: Array, scale: Any, loc: Any) -> Array:
    """loc + scale · signs · lengths."""
    return plus(multiply(mul(signs, lengths), scale), loc)


def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """The number of trials up to the first success, each of probability p.

    Raises:
        TypeError: `key` is not a key, or `dtype` is not an integer dtype.
        ValueError: `p` does not fit `shape`.
    """
    if out_sharding is not None:
        return call_sharded(geometric, locals())
    typed, found, sizes = asked("geometric", key, shape, dtype, p, kind=integer_dtype)
    float_type = inexact_dtype(aval_of(p).dtype)
    u = unit(typed, sizes, float_type)
    return convert(compiled(trials, u, parameter(p, float_type, sizes)), found)


def trials(u: Array, p: Any) -> Array:
    """The number of trials up to the first success, from uniform samples."""
    waited = log(select(eq(u, 0.0), 1.0, u))
    return add(floor(div(waited, log1p(neg(p)))), 1.0)


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Sizes | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Categories along `axis`, with probabilities softmax(logits).

    The other dimensions of `logits` broadcast to `shape`; with `replace` False its
    further dimensions in front hold distinct categories. `mode` is that of `gumbel`.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `logits` do not fit `shape`, or there are not enough categories.
    """
    if out_sharding is not None:
        return call_sharded(categorical, locals())
    typed = one_key("categorical", key)
    x = as_array("categorical", logits, 1)
    place = canonical_axis("categorical", axis, x.ndim)
    batch = (*x.shape[:place], *x.shape[place + 1 :])
    sizes = batch if shape is None else as_shape("categorical", shape)
    if broadcast_shapes_of("categorical", [sizes, batch]) != sizes:
        raise ValueError(
            f"categorical: logits {x.aval} have shape {batch} without axis {axis}, "
            f"which does not broadcast to the requested shape {sizes}"
        )
    front = sizes[: len(sizes) - len(batch)]
    if not replace:
        return distinct(typed, x, place, front, batch, mode)
    noise_shape = list(sizes)
    noise_shape.insert(len(front) + place, x.shape[place])
    noise = draw_gumbel(typed, tuple(noise_shape), x.dtype, mode)
    scores = add(noise, stretched(x, tuple(noise_shape)))
    return argmax(scores, len(front) + place, default_integer())


def distinct(
    key: Array, x: Array, axis: int, front: Shape, batch: Shape, mode: str | None
) -> Array:
    """The categories of the largest scores, as many as `front` has places."""
    count = prod(front)
    if count > x.shape[axis]:
        raise ValueError(
            f"categorical: cannot draw {count} samples without replacement from "
            f"{x.shape[axis]} categories"
        )
    scores = add(x, draw_gumbel(key, x.shape, x.dtype, mode))
    _, places = top_k(move_axis(scores, axis, x.ndim - 1), count)
    order = (places.ndim - 1, *range(places.ndim - 1))
    return reshape(transpose(places, order), (*front, *batch))
