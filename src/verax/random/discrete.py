"""Floor 6: discrete distributions: coins, categories, waiting times.

One idea: the largest of log-probabilities plus Gumbel noise is a sample of them, so a
category is one argmax, and the k largest are k samples without replacement::

    categorical(key, logits)       # argmax(logits + gumbel)
"""

import math
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from verax.ir.avals import Shape, finfo, iinfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    float32,
    float64,
    inexact_dtype,
    int32,
    is_bool,
    is_float,
    is_inexact,
)
from verax.lax.looping import while_loop
from verax.lax.scanning import scan
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_shape,
    broadcast_shapes_of,
    canonical_axis,
    check_arraylike,
    chosen_dtype,
    default_integer,
    inexact_arrays,
    promote_inexact,
    stretched,
)
from verax.numpy.elementwise.arithmetic import add as plus, clip, multiply
from verax.numpy.searching.where_nonzero import where
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, div, mul, neg, sub
from verax.ops.elementwise.compare import eq, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, log, log1p, sqrt, square
from verax.ops.elementwise.rounding import ceil, floor
from verax.ops.elementwise.select import clamp, select
from verax.ops.random.keys import random_split
from verax.ops.reductions.cumulative import cumsum
from verax.ops.reductions.reduce import argmax, reduce_or
from verax.ops.sorting.sort import top_k
from verax.ops.special.erf_gamma import erfc, lgamma
from verax.ops.structure.create import full
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import move_axis, reshape, transpose
from verax.random.continuous import draw_gumbel, draw_maxwell, draw_normal
from verax.random.gammas import check_method
from verax.random.keys import clone, one_key, pieces, several
from verax.random.samplers import (
    Sizes,
    asked,
    compiled,
    from_key,
    integer_dtype,
    parameter,
    result_shape,
    unit,
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

    Args:
        key: one key, as `random.key` makes it.
        p: the probability, a floating array or scalar; by default 1/2.
        shape: the shape of the result, to which `p` broadcasts; None for that of `p`.
        mode: "low", the default, or "high", which uses twice as many bits, for small p.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        Booleans of `shape`.

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
    out = chosen_dtype(name, dtype) or integer_dtype(name, None)
    if is_bool(out):
        raise TypeError(f"{name}: dtype must be numeric, not bool")
    return out


def rademacher(
    key: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Signs: -1 and 1 with probability 1/2 each.

    Args:
        key: one key, as `random.key` makes it.
        shape: the shape of the result, a size or several; by default one number.
        dtype: the dtype of the result, of numbers; by default int32, or int64 with x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `key` is not a key, or `dtype` holds no numbers.

    >>> from verax import random
    >>> random.rademacher(random.key(0), (4,))
    Array([-1, -1,  1,  1], dtype=int32)
    >>> random.rademacher(random.key(0), (4,), float)
    Array([-1., -1.,  1.,  1.], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(rademacher, locals())
    typed, target, sizes = asked("rademacher", key, shape, dtype, kind=signed_dtype)
    heads = bernoulli(typed, 0.5, sizes)
    two, one = (2.0, 1.0) if is_inexact(target) else (2, 1)
    return sub(mul(convert(heads, target), two), one)


def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Sizes = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """loc + scale · (Maxwell's distribution with a random sign).

    Args:
        key: one key, as `random.key` makes it.
        loc: the center, an array or scalar.
        scale: the scale, an array or scalar.
        shape: as in JAX not the shape of the result, but the first part of it: behind
            it stands the shape to which the parameters broadcast. By default the
            latter.
        dtype: the dtype of the draws, real and floating; by default float32, or float64
            with x64.

    Returns:
        An array of shape (*shape, *parameters), of the common dtype of draws and
        parameters.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is not floating.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> random.double_sided_maxwell(random.key(0), 0.0, vnp.ones(2), (3,)).shape
    (3, 2)
    >>> x = random.double_sided_maxwell(random.key(0), 5.0, 1.0, (10_000,))
    >>> round(float(x.mean()), 1), round(float(x.var()))
    (5.0, 3)
    """
    typed, target, front = asked("double_sided_maxwell", key, shape, dtype)
    own = broadcast_shapes_of(
        "double_sided_maxwell", [aval_of(loc).shape, aval_of(scale).shape]
    )
    sizes = (front or own) + own
    first, second = several(typed, 2)
    signs = rademacher(second, sizes, target)
    return compiled(
        shifted_and_scaled, signs, draw_maxwell(first, sizes, target), scale, loc
    )


def shifted_and_scaled(
    signs: Array, lengths: Array, scale: ArrayLike, loc: ArrayLike
) -> Array:
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

    Args:
        key: one key, as `random.key` makes it.
        p: the probability, an array or scalar, 0 < p ≤ 1.
        shape: the shape of the result, to which `p` broadcasts; None for that of `p`.
        dtype: the dtype of the result, of integers; by default int32, or int64 with
            x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`, of numbers ≥ 1.

    Raises:
        TypeError: `key` is not a key, or `dtype` is not an integer dtype.
        ValueError: `p` does not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> x = random.geometric(random.key(0), vnp.array([0.25, 1.0]), (10_000, 2))
    >>> x.min(0), x.mean(0).round(1)
    (Array([1, 1], dtype=int32), Array([4., 1.], dtype=float32))
    """
    if out_sharding is not None:
        return call_sharded(geometric, locals())
    typed, target, sizes = asked("geometric", key, shape, dtype, p, kind=integer_dtype)
    float_type = inexact_dtype(aval_of(p).dtype)
    u = unit(typed, sizes, float_type)
    return convert(compiled(trials, u, parameter(p, float_type, sizes)), target)


def trials(u: Array, p: object) -> Array:
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

    Args:
        key: one key, as `random.key` makes it.
        logits: the logarithms of probabilities, up to a constant: a floating array with
            one dimension at least; -inf excludes a category.
        axis: the dimension of the categories, by default the last.
        shape: the shape of the result, to which the other dimensions of `logits`
            broadcast; None for these.
        replace: whether a category may be drawn again, the default; if not, those along
            the dimensions of `shape` in front of the ones of `logits` are distinct.
        mode: that of `gumbel`: "low", "high" or "highest"; None for "low".
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        Integers of `shape`, indices along `axis`, int32 without x64.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `logits` are not floats or do not fit `shape`, or there are not
            enough categories.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> logits = vnp.log(vnp.array([0.0, 0.2, 0.8]))
    >>> x = random.categorical(random.key(0), logits, shape=(10_000,))
    >>> (vnp.bincount(x, length=3) / x.size).round(1)
    Array([0. , 0.2, 0.8], dtype=float32)
    >>> x = random.categorical(random.key(0), vnp.zeros(4), shape=(4,), replace=False)
    >>> vnp.sort(x).tolist()
    [0, 1, 2, 3]
    """
    if out_sharding is not None:
        return call_sharded(categorical, locals())
    typed = one_key("categorical", key)
    x = as_array("categorical", logits, 1)
    if not is_float(x.dtype):
        raise ValueError(f"categorical: logits must be floats, not {x.aval}")
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
            f"categorical: Number of samples without replacement ({count}) cannot "
            f"exceed number of categories ({x.shape[axis]})"
        )
    scores = add(x, draw_gumbel(key, x.shape, x.dtype, mode))
    _, places = top_k(move_axis(scores, axis, x.ndim - 1), count)
    order = (places.ndim - 1, *range(places.ndim - 1))
    return reshape(transpose(places, order), (*front, *batch))


# -----------------------------------------------------------------------------
# Counts: Poisson, binomial and multinomial samples.
#
# Small means are counted one event after the other, large ones drawn by
# Hörmann's transformed rejection ("The transformed rejection method for generating
# Poisson random variables", 1993), in loops over all samples together::
#
#     poisson(key, 3.0, (4,))
#     binomial(key, 10, 0.3, (4,))


# -----------------------------------------------------------------------------
# Quantiles of the Poisson distribution, from normal samples, without a loop.
#
# Below a mean of 7 the distribution function is summed and compared, above it
# is Peizer and Pratt's normal approximation ("A normal approximation for binomial, F,
# beta and other common, related tail probabilities", 1968), inverted on integers::
#
#     quantile(z, rate)              # the count at which Φ(z) is reached


SPLIT = 7.0
TERMS = 20
CORRECTION = 0.02


def quantile(z: Array, rate: Array) -> Array:
    """The counts, as floats, at the normal quantiles `z` for means `rate`."""
    # Φ(z), without loading verax.scipy.special.
    small = summed(erfc(z * -math.sqrt(0.5)) * 0.5, rate)
    out: Array = where(rate < SPLIT, small, inverted(z, rate))
    return out


def summed(u: Array, rate: Array) -> Array:
    """The number of partial sums of the probabilities that lie below u."""
    term = exp(-rate)
    total = term
    count = convert(total < u, u.dtype)
    for k in range(1, TERMS - 1):
        term = term * (rate / k)
        total = total + term
        count = count + convert(total < u, u.dtype)
    return count


def inverted(z: Array, rate: Array) -> Array:
    """The smallest count with z(count) ≥ z, among three around a guess of the root."""
    root = sqrt(rate)
    guess = rate + root * z - 2 / 3 + square(z) / 6 + z * (1 - square(z)) / (72 * root)
    middle = ceil(guess + 0.6)

    def reached(count: Array) -> Array:
        value = where(count < 0, -np.inf, transformed(arith.max(count, 0.0), rate))
        return convert(value >= z, z.dtype)

    array = middle + 1 - reached(middle) - reached(middle - 1)
    return arith.max(array, 0.0)


def transformed(x: Array, rate: Array) -> Array:
    """Peizer and Pratt's normal variable of a count."""
    y = (x + 0.5) / rate
    shift = x - rate + 2 / 3 + CORRECTION / (x + 1)
    return shift * sqrt((1 + skewness(y)) / rate)


def skewness(y: Array) -> Array:
    """(1 - y² + 2 y log y) / (1 - y)², by its series around 1."""
    d = y - 1
    near = abs(d) < 0.25
    series = d * 0.0
    for k in reversed(range(1, 10)):
        series = d * (2 * (-1) ** k / ((k + 1) * (k + 2)) + series)
    far_y, far_d = where(near, 2.0, y), where(near, 1.0, d)
    direct = (1 - square(far_y) + 2 * far_y * log(far_y)) / square(far_d)
    out: Array = where(near, series, direct)
    return out


type Trial = Callable[[Array, Array], tuple[Array, Array]]
# log k! - Stirling's formula at k = 0 ... 9.
TAIL = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.010411265261972,
    0.00925546218271273,
    0.00833056343336287,
)


def some(x: Array) -> Array:
    """Whether any element is true."""
    return reduce_or(x, tuple(range(x.ndim)))


def events(key: Array, going: Callable[[Any], Any], step: Any, start: Any) -> Array:
    """The number of steps after which each sum stays, less one.

    `going(sums)` says which have not ended, `step(sums, u)` goes on with uniform
    samples; `start` is the zero counts and the first sums.
    """
    counts, sums = start
    most = most_of(counts.dtype)

    def again(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        i, k, chain, total = carry
        chain, k, total = step(chain, select(going(total), k + 1, k), total)
        return i + 1, k, chain, total

    def unfinished(carry: tuple[Any, ...]) -> Array:
        within: Array = carry[0] < most
        return some(going(carry[3])) & within

    out: Array = while_loop(unfinished, again, (0, counts, key, sums))[1] - 1
    return out


def most_of(dtype: DType) -> int:
    """A bound on steps: the largest count that the dtype holds, as a counter."""
    info = finfo(dtype) if is_float(dtype) else iinfo(dtype)
    return int(min(float(info.max), float(iinfo(int32).max)))


def accepted(key: Array, shape: Shape, dtype: DType, trial: Trial) -> Array:
    """The first accepted `trial(u, v)` of each sample, u in [-1/2, 1/2), v in [0, 1).

    A trial gives counts and which of them are accepted.
    """

    def again(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        out, done, chain = carry
        chain, first, second = several(chain, 3)
        u = unit(first, shape, dtype) - 0.5
        k, accept = trial(u, unit(second, shape, dtype))
        return select(accept, k, out), done | accept, chain

    start = full(shape, -1, dtype), full(shape, False), key
    result: Array = while_loop(lambda carry: some(~carry[1]), again, start)[0]
    return result


def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: object = None,
) -> Array:
    """Samples of the Poisson distribution of mean `lam`, lam^k exp(-lam) / k!.

    Args:
        key: one key, as `random.key` makes it.
        lam: the mean, an array or scalar of numbers ≥ 0.
        shape: the shape of the result, to which `lam` broadcasts; None for that of
            `lam`.
        dtype: the dtype of the result, of integers; by default int32, or int64 with
            x64.
        method: "exact", the default, or "approximate", which has no loop and an error
            below 1e-4 in distribution.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`; by the exact method -1 where `lam` is negative
        or NaN.

    Raises:
        TypeError: `key` is not a key, or `dtype` is not an integer dtype.
        ValueError: `lam` does not fit `shape`, or there is no such method.

    >>> import verax
    >>> verax.random.poisson(verax.random.key(0), 3.0, (3,)).dtype
    dtype('int32')
    >>> lam = verax.numpy.array([0.0, 3.0, 100.0])
    >>> verax.random.poisson(verax.random.key(0), lam, (10_000, 3)).mean(0).round(0)
    Array([  0.,   3., 100.], dtype=float32)
    """
    check_method("poisson", method)
    check_arraylike("poisson", lam)
    draw = poisson_of if method == "exact" else approximate_poisson
    return from_key(
        draw, "poisson", key, shape, dtype, out_sharding, lam, kind=integer_dtype
    )


def poisson_of(key: Array, lam: object, shape: Shape, dtype: DType) -> Array:
    """By counting below a mean of 10, by rejection above; in float32."""
    rate = stretched(convert(lam, float32), shape)
    counted = (rate != rate) | (rate < 10.0)
    small = select(counted, rate, np.float32(0))
    large = select(counted, np.float32(1e5), rate)

    def step(chain: Array, k: Array, total: Array) -> tuple[Array, Array, Array]:
        chain, drawn = several(chain, 2)
        return chain, k, total + log(unit(drawn, shape, float32))

    zeros = full(shape, 0, dtype), full(shape, 0, float32)
    array = events(key, lambda total: total > -small, step, zeros)
    drawn = convert(accepted(clone(key), shape, float32, poisson_trial(large)), dtype)
    array = select(counted, array, drawn)
    return select(rate == 0.0, full(shape, 0, dtype), array)


def poisson_trial(rate: Array) -> Trial:
    """Hörmann's algorithm PTRS for Poisson samples of mean 10 and more."""
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2)
    logs = log(rate)

    def trial(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - abs(u)
        k = floor((2 * a / us + b) * u + rate + 0.43)
        s = log(v * scale / (a / (us * us) + b))
        inside = s <= -rate + k * logs - lgamma(k + 1)
        outside = (k < 0) | ((us < 0.013) & (v > us))
        return k, ((us >= 0.07) & (v <= sure)) | (~outside & inside)

    return trial


def approximate_poisson(key: Array, lam: object, shape: Shape, dtype: DType) -> Array:
    """The quantile of a normal sample; in float64 if either has 64 bits."""
    wide = aval_of(lam).dtype == float64 or dtype.itemsize > 4
    kind = float64 if wide else float32
    rate = stretched(convert(lam, kind), shape)
    return convert(quantile(draw_normal(key, shape, kind), rate), dtype)


def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the binomial distribution: successes in n trials of probability p.

    They are floats, unlike NumPy's: NaN where n or p is not a valid parameter, infinite
    where n is.

    Args:
        key: one key, as `random.key` makes it.
        n: the number of trials, an array or scalar of numbers ≥ 0.
        p: the probability, an array or scalar between 0 and 1.
        shape: the shape of the result, to which the parameters broadcast; None for
            theirs together.
        dtype: the dtype of the result, real and floating; by default float32, or
            float64 with x64.

    Returns:
        An array of `shape` and `dtype`, of whole numbers.

    Raises:
        TypeError: `key` is not a key, or a parameter is not an array.
        ValueError: `dtype` is not floating, or the parameters do not fit `shape`.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> random.binomial(random.key(0), 10, vnp.array([0.0, 1.0, 2.0]))
    Array([ 0., 10., nan], dtype=float32)
    >>> x = random.binomial(random.key(0), 10, 0.3, (10_000,))
    >>> round(float(x.mean()), 1), round(float(x.var()), 1)
    (3.0, 2.1)
    """
    check_arraylike("binomial", n, p)
    (prob,) = promote_inexact("binomial", p)
    return from_key(binomial_of, "binomial", key, shape, dtype, None, n, prob)


def binomial_of(key: Array, n: object, p: object, shape: Shape, dtype: DType) -> Array:
    """By waiting times where n p is at most 10, by rejection elsewhere; p below 1/2."""
    kind = aval_of(p).dtype
    prob = stretched(convert(p, kind), shape)
    given = stretched(convert(n, kind), shape)
    rare = prob < 0.5
    q = select(rare, prob, 1.0 - prob)
    no_count = (given != given) | (given < 0.0)
    no_chance = (q != q) | (q < 0.0)
    endless = abs(given) == np.inf
    q_is_nan = q != q
    q = select(no_chance, full(shape, 0.01, kind), q)
    waiting = no_count | (given * q <= 10.0)
    count = floor(given)
    few = waited(key, select(waiting, count, full(shape, 0.0, kind)), q, dtype)
    trial = binomial_trial(
        select(waiting, full(shape, 10000.0, kind), count),
        select(waiting, full(shape, 0.5, kind), q),
    )
    many = convert(accepted(clone(key), shape, kind, trial), dtype)
    array = select(waiting, few, many)
    invalid = no_chance | no_count
    array = select(invalid, full(shape, np.nan, dtype), array)
    array = select(endless & ~invalid, full(shape, np.inf, dtype), array)
    kept = rare | no_count | q_is_nan | endless
    return select(kept, array, convert(count, dtype) - array)


def waited(key: Array, count: Array, prob: Array, dtype: DType) -> Array:
    """Successes as the waiting times between them that fit into `count` trials."""
    shape, kind = prob.shape, prob.dtype
    rate = log1p(-prob)

    def step(chain: Array, k: Array, total: Array) -> tuple[Array, Array, Array]:
        drawn, chain = several(chain, 2)
        u = unit(drawn, shape, kind)
        return chain, k, total + ceil(log(u) / rate)

    zeros = full(shape, 0.0, kind), full(shape, 0.0, kind)
    return convert(events(key, lambda total: total <= count, step, zeros), dtype)


def binomial_trial(n: Array, p: Array) -> Trial:
    """Hörmann's algorithm BTRS ("The generation of binomial random variates", 1993)."""
    spread = sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    sure = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    m = floor((n + 1) * p)

    def trial(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - abs(u)
        k = floor((2 * a / us + b) * u + c)
        outside = (k < 0) | (k > n)
        s = log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * log(r * (n - k + 1) / (k + 1))
            + tail(m)
            + tail(n - m)
            - tail(k)
            - tail(n - k)
        )
        return k, ((us >= 0.07) & (v <= sure)) | (~outside & (s <= bound))

    return trial


def tail(k: Array) -> Array:
    """log k! less Stirling's formula, from a table up to 9.

    Above it is the series at 9, as in JAX: the bound of a trial is off by 0.008 at
    most, and the samples of a key are those of JAX.
    """
    low = clamp(0.0, k, 9.0)
    square = (low + 1) * (low + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (low + 1)
    table = convert(np.asarray(TAIL), k.dtype)
    return select(k <= 9, table[convert(floor(low), int32)], series)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Counts of n trials with outcomes of probabilities p, in its last dimension.

    Args:
        key: one key, as `random.key` makes it.
        n: the number of trials, an array or scalar that broadcasts to `shape`.
        p: the probabilities of k outcomes, an array of shape (..., k), up to a factor.
        shape: the shape of the counts without their own dimension, to which that of `p`
            without its last broadcasts; None for the latter.
        dtype: the dtype of the result; by default the common inexact dtype of n and p.
        unroll: that of the `scan` over outcomes, by default 1.

    Returns:
        An array of shape (*shape, k) and of `dtype`, whose sums over the last dimension
        are n.

    Raises:
        TypeError: `key` is not a key, or a parameter is not an array.
        ValueError: the parameters do not fit `shape`, or `p` has no dimension.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> p = vnp.array([0.1, 0.2, 0.7])
    >>> x = random.multinomial(random.key(0), 10, p, shape=(1000,), dtype=int)
    >>> x.shape, x.sum(-1).min().item(), x.mean(0).round(0).tolist()
    ((1000, 3), 10, [1.0, 2.0, 7.0])
    """
    typed = one_key("multinomial", key)
    check_arraylike("multinomial", n, p)
    count, prob = inexact_arrays("multinomial", n, p)
    if not prob.ndim:
        raise ValueError(
            "multinomial: p must have at least one dimension, the last being that of "
            "the probabilities"
        )
    batch = prob.shape[:-1]
    sizes = result_shape(
        "multinomial",
        batch if shape is None else shape,
        count,
        np.empty(batch, np.bool_),
    )
    out = chosen_dtype("multinomial", dtype) or count.dtype
    return compiled(
        multinomial_of, typed, count, prob, shape=sizes, dtype=out, unroll=unroll
    )


def multinomial_of(
    key: Array, n: Array, p: Array, shape: Shape, dtype: DType, unroll: int | bool
) -> Array:
    """One binomial draw after the other, of what is left of trials and probability."""
    kind = n.dtype
    rows = move_axis(stretched(p, (*shape, p.shape[-1])), len(shape), 0)
    left = cumsum(rows, 0, reverse=True)
    ratios = rows / where(left == 0, 1, left)
    keys = random_split(key, (rows.shape[0],))

    def step(remainder: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        ratio, own = row
        drawn = binomial_of(own, remainder, clip(ratio, 0, 1), shape, kind)
        return remainder - drawn, drawn

    _, counts = scan(step, stretched(n, shape), (ratios, keys), unroll=unroll)
    return convert(move_axis(counts, 0, len(shape)), dtype)
