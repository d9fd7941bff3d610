"""Floor 6: `verax.nn.initializers`: random weights of a useful size.

One idea: an initializer is a function of (key, shape, dtype); the scaled ones choose
the variance by the number of inputs and outputs of a unit, so that signals neither
vanish nor explode::

    he_normal()(key, (784, 512))

Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998.
"""

import math
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    complex_dtype,
    is_complex,
    is_inexact,
    real_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    as_shape,
    chosen_dtype,
    constant_of,
    default_float,
    number_of,
)
from verax.numpy.creation.filling import full
from verax.numpy.elementwise.arithmetic import multiply
from verax.numpy.shaping.shapes import moveaxis
from verax.ops.elementwise.arith import complex as complex_of, mul, neg, sub
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import log, sqrt
from verax.ops.elementwise.trig import cos, sin
from verax.ops.structure.reshard import call_sharded
from verax.random.continuous import (
    normal as normal_samples,
    truncated_normal as truncated_samples,
)
from verax.random.keys import split
from verax.random.samplers import uniform as uniform_samples
from verax.rules.values.array import Array

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


type Axes = int | Sequence[int]
type Mode = Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"]
type Distribution = Literal["truncated_normal", "normal", "uniform"]

# The standard deviation of the normal distribution cut off at -2 and 2, and of the
# complex one cut off at a radius of 2.
TRUNCATED_DEVIATION = 0.87962566103423978
COMPLEX_TRUNCATED_DEVIATION = 0.95311164380491208


class Initializer(Protocol):
    """A function that makes an array of random or constant weights."""

    def __call__(
        self,
        key: ArrayLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: object = None,
    ) -> Array: ...


def weight_dtype(dtype: DTypeLike | None) -> DType:
    """The dtype of weights, by default float32.

    Raises:
        ValueError: it is neither floating nor complex.
    """
    out = chosen_dtype("initializer", dtype) or default_float()
    if not is_inexact(out):
        raise ValueError(f"weights must be floats or complex numbers, not {out}")
    return out


def zeros(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Zeros; the key is not used.

    Args:
        key: anything, None included.
        shape: the shape of the result.
        dtype: the dtype of the result, of any kind; by default float32, or float64 with
            x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    It is itself an initializer, so it is passed without a call:

    >>> from verax import nn
    >>> bias: nn.initializers.Initializer = nn.initializers.zeros
    >>> bias(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(zeros, locals())
    return full(shape, 0, chosen_dtype("zeros", dtype) or weight_dtype(None))


def ones(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Ones; the key is not used.

    Args:
        key: anything, None included.
        shape: the shape of the result.
        dtype: the dtype of the result, of any kind; by default float32, or float64 with
            x64.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    >>> from verax import nn
    >>> nn.initializers.ones(None, (2,), dtype=int)
    Array([1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return call_sharded(ones, locals())
    return full(shape, 1, chosen_dtype("ones", dtype) or weight_dtype(None))


class Draw(Protocol):
    """Weights from a key, a shape and a dtype that has been resolved."""

    def __call__(self, key: ArrayLike, shape: Shape, dtype: DType, /) -> Array: ...


def initializer(draw: Draw, default: DTypeLike | None) -> Initializer:
    """An initializer that draws weights, of dtype `default` unless a caller says."""

    def init(
        key: ArrayLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = default,
        out_sharding: object = None,
    ) -> Array:
        if out_sharding is not None:
            return call_sharded(init, locals(), "initializer")
        return draw(key, as_shape("initializer", shape), weight_dtype(dtype))

    return init


def times(samples: Array, factor: ArrayLike) -> Array:
    """Samples times a number, which may be traced, in their dtype."""
    dtype = samples.dtype
    if isinstance(factor, Array):
        return multiply(samples, convert(factor, dtype))
    return mul(samples, constant_of(factor, dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of arrays full of `value`.

    Args:
        value: a number, or an array that broadcasts to the shape of the weights.
        dtype: the dtype of the weights, of any kind, unless a call says; by default
            float32, or float64 with x64.

    Returns:
        An initializer: a function of a key, which it does not use, a shape, and where
        wanted a dtype and `out_sharding`.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> nn.initializers.constant(vnp.array([1.0, 2.0]))(None, (2, 2))
    Array([[1., 2.],
           [1., 2.]], dtype=float32)
    """

    def init(
        key: ArrayLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = dtype,
        out_sharding: object = None,
    ) -> Array:
        if out_sharding is not None:
            return call_sharded(init, locals(), "initializer")
        out = chosen_dtype("constant", dtype) or default_float()
        return full(as_shape("initializer", shape), value, out)

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of uniform samples in [0, scale).

    Args:
        scale: the end of the interval, a number, which may be traced; by default 0.01.
        dtype: the dtype of the weights, real, unless a call says; by default float32,
            or float64 with x64.

    Returns:
        An initializer: a function of a key, a shape, and where wanted a dtype and
        `out_sharding`.

    >>> from verax import nn, random
    >>> w = nn.initializers.uniform(5.0)(random.key(0), (1000,))
    >>> w.min().round(1).item(), w.max().round(1).item()
    (0.0, 5.0)
    """
    return initializer(
        lambda key, shape, dtype: times(uniform_samples(key, shape, dtype), scale),
        dtype,
    )


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of normal samples with mean 0 and that standard deviation.

    Args:
        stddev: the standard deviation, a number, which may be traced; by default 0.01.
        dtype: the dtype of the weights, real or complex, unless a call says; by default
            float32, or float64 with x64.

    Returns:
        An initializer: a function of a key, a shape, and where wanted a dtype and
        `out_sharding`.

    >>> from verax import nn, random
    >>> w = nn.initializers.normal(2.0)(random.key(0), (1000,), dtype="bfloat16")
    >>> w.dtype, w.astype(float).std().round().item()
    (dtype(bfloat16), 2.0)
    """
    return initializer(
        lambda key, shape, dtype: times(normal_samples(key, shape, dtype), stddev),
        dtype,
    )


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: float = -2.0,
    upper: float = 2.0,
) -> Initializer:
    """An initializer of stddev · (normal samples between the bounds).

    Args:
        stddev: the factor of the samples, a number, which may be traced; by default
            0.01. With the default bounds their standard deviation is 0.88 of it.
        dtype: the dtype of the weights, real, unless a call says; by default float32,
            or float64 with x64.
        lower: the lower bound before the multiplication; by default -2.
        upper: the upper bound before the multiplication; by default 2.

    Returns:
        An initializer: a function of a key, a shape, and where wanted a dtype and
        `out_sharding`.

    >>> from verax import nn, random
    >>> w = nn.initializers.truncated_normal(3.0)(random.key(0), (1000,))
    >>> bool((abs(w) <= 6.0).all())
    True
    """
    return initializer(
        lambda key, shape, dtype: times(
            truncated_samples(key, lower, upper, shape, dtype), stddev
        ),
        dtype,
    )


def orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer of matrices whose rows, or columns if fewer, are orthonormal.

    Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning
    in deep linear neural networks", 2014.

    Args:
        scale: a factor of the matrix; by default 1.
        column_axis: the dimension that has the columns, by default the last; all others
            together are the rows.
        dtype: the dtype of the weights, real or complex, unless a call says; by default
            float32, or float64 with x64.

    Returns:
        An initializer: a function of a key, a shape of at least two dimensions, and
        where wanted a dtype and `out_sharding`.

    Raises:
        ValueError: when called: the shape has fewer than two dimensions.

    >>> import verax
    >>> q = verax.nn.initializers.orthogonal()(verax.random.key(0), (3, 2))
    >>> (q.T @ q).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def draw(key: ArrayLike, shape: Shape, dtype: DType, /) -> Array:
        if len(shape) < 2:
            raise ValueError(
                "orthogonal: weights must have at least two dimensions, not shape "
                f"{shape}"
            )
        if not math.prod(shape):
            return full(shape, 0, dtype)
        columns = shape[column_axis]
        rest = list(shape)
        del rest[column_axis]
        from verax.random import shuffling

        result = shuffling.orthogonal(key, math.prod(rest), (), dtype, columns)
        moved = moveaxis(result.reshape(*rest, columns), -1, column_axis)
        return times(moved, scale)

    return initializer(draw, dtype)


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer of convolutions: orthogonal at the middle of the window, else 0.

    Xiao et al., "Dynamical isometry and a mean field theory of CNNs", 2018.

    Args:
        scale: a factor of the matrix in the middle; by default 1.
        column_axis: the dimension of that matrix, of shape (in, out), that has the
            columns; by default the last.
        dtype: the dtype of the weights, real or complex, unless a call says; by default
            float32, or float64 with x64.

    Returns:
        An initializer: a function of a key, a shape (*window, in, out) with one to
        three dimensions of window, and where wanted a dtype and `out_sharding`.

    Raises:
        ValueError: when called: the shape is another, or there are more inputs than
            outputs.

    >>> import verax.numpy as vnp
    >>> from verax import nn, random
    >>> w = nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 4))
    >>> w[0].any().item(), vnp.allclose(w[1] @ w[1].T, vnp.eye(2), atol=1e-5).item()
    (False, True)
    """

    def draw(key: ArrayLike, shape: Shape, dtype: DType, /) -> Array:
        if not 3 <= len(shape) <= 5 or shape[-1] < shape[-2]:
            raise ValueError(
                "delta_orthogonal: the shape must be one to three window sizes, a "
                f"number of inputs, and at least as many outputs, not {shape}"
            )
        middle = tuple((size - 1) // 2 for size in shape[:-2])
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        out: Array = full(shape, 0, dtype).at[middle].set(matrix)
        return out

    return initializer(draw, dtype)


def sizes_along(shape: Shape, axes: Axes) -> int:
    """The product of the sizes of some dimensions."""
    if isinstance(axes, int):
        return shape[axes]
    return math.prod([shape[i] for i in axes])


def fans(
    shape: Shape, in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """The number of inputs and outputs a unit has; further dimensions are its field.

    Raises:
        ValueError: there are no two dimensions for inputs and outputs.
    """
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError(
            "variance_scaling: Can't compute input and output sizes of a "
            f"{len(shape)}-dimensional weights tensor with default in_axis. Must be at "
            f"least 2D or specify in_axis explicitly. The shape is {shape}"
        )
    inputs, outputs, batch = (
        sizes_along(shape, axes) for axes in (in_axis, out_axis, batch_axis)
    )
    counted = inputs * outputs * batch
    field = math.prod(shape) / counted if counted else 0
    return inputs * field, outputs * field


def divisor(mode: Mode, fan_in: float, fan_out: float) -> float:
    """The fan by which the variance is divided.

    Raises:
        ValueError: there is no such mode.
    """
    match mode:
        case "fan_in":
            return fan_in
        case "fan_out":
            return fan_out
        case "fan_avg":
            return (fan_in + fan_out) / 2
        case "fan_geo_avg":
            return math.sqrt(fan_in * fan_out)
    raise ValueError(
        "variance_scaling: mode must be 'fan_in', 'fan_out', 'fan_avg' or "
        f"'fan_geo_avg', not {mode!r}"
    )


def in_disc(key: ArrayLike, shape: Shape, dtype: DType, radius: float | None) -> Array:
    """Complex samples: uniform in the unit disc of variance 1, or normal in a disc."""
    first, second = split(key)
    part = real_dtype(dtype)
    u = uniform_samples(first, shape, part)
    if radius is None:
        length = sqrt(mul(u, 2.0))
    else:
        kept = -math.expm1(-(radius**2))
        length = sqrt(neg(log(sub(1.0, mul(u, kept)))))
    angle = mul(uniform_samples(second, shape, part), 2 * math.pi)
    return convert(
        complex_of(mul(length, cos(angle)), mul(length, sin(angle))),
        complex_dtype(part),
    )


def samples(
    key: ArrayLike, shape: Shape, dtype: DType, kind: Distribution, variance: float
) -> Array:
    """Samples of a distribution, by their variance.

    Raises:
        ValueError: there is no such distribution.
    """
    deviation = np.sqrt(variance)
    match kind:
        case "normal":
            return mul(normal_samples(key, shape, dtype), constant_of(deviation, dtype))
        case "truncated_normal" if is_complex(dtype):
            cut = number_of(COMPLEX_TRUNCATED_DEVIATION, dtype)
            drawn = in_disc(key, shape, dtype, 2.0)
            return mul(drawn, constant_of(deviation / cut, dtype))
        case "truncated_normal":
            cut = number_of(TRUNCATED_DEVIATION, dtype)
            drawn = truncated_samples(key, -2, 2, shape, dtype)
            return mul(drawn, constant_of(deviation / cut, dtype))
        case "uniform" if is_complex(dtype):
            drawn = in_disc(key, shape, dtype, None)
            return mul(drawn, constant_of(deviation, dtype))
        case "uniform":
            wide = np.sqrt(number_of(3, dtype) * variance)
            drawn = uniform_samples(key, shape, dtype, -1)
            return mul(drawn, constant_of(wide, dtype))
    raise ValueError(
        "variance_scaling: distribution must be 'truncated_normal', 'normal' or "
        f"'uniform', not {kind!r}"
    )


def variance_scaling(
    scale: float,
    mode: Mode,
    distribution: Distribution,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer of samples of variance scale / fan.

    A unit has as many inputs as the sizes along `in_axis`, multiplied by those of its
    field, that is, of the dimensions that none of the three axes names; outputs alike.

    Args:
        scale: a positive number.
        mode: the fan: the number of inputs ("fan_in") or outputs ("fan_out") of a unit,
            or their arithmetic or geometric mean ("fan_avg", "fan_geo_avg").
        distribution: "normal", "truncated_normal" (cut off at twice its deviation, then
            scaled to the variance) or "uniform" (around 0); complex samples of the last
            two are in a disc.
        in_axis: the dimension or dimensions of inputs; by default the last but one.
        out_axis: the dimension or dimensions of outputs; by default the last.
        batch_axis: the dimension or dimensions of copies of a layer, which do not
            count; by default none.
        dtype: the dtype of the weights, real or complex, unless a call says; by default
            float32, or float64 with x64.

    Returns:
        An initializer: a function of a key, a shape, and where wanted a dtype and
        `out_sharding`.

    Raises:
        ValueError: when called: there is no such mode or distribution, or the shape
            has no inputs and outputs.

    >>> from verax import nn, random
    >>> init = nn.initializers.variance_scaling(1.0, "fan_in", "uniform")
    >>> init(random.key(0), (100, 400)).std().round(2).item()  # 1 / √100
    0.1...
    """

    def draw(key: ArrayLike, shape: Shape, dtype: DType, /) -> Array:
        fan = divisor(mode, *fans(shape, in_axis, out_axis, batch_axis))
        variance = number_of(scale / fan if fan else 0, dtype)
        return samples(key, shape, dtype, distribution, variance)

    return initializer(draw, dtype)


class Scaled(Protocol):
    """Makes an initializer of `variance_scaling` with a scale of its own."""

    def __call__(
        self,
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer: ...


SCALED = """An initializer of {distribution} samples, scaled by fan {fan}.

It is `variance_scaling({arguments})`.

Args:
    in_axis: the dimension or dimensions of inputs; by default the last but one.
    out_axis: the dimension or dimensions of outputs; by default the last.
    batch_axis: the dimension or dimensions of copies of a layer, which do not count;
        by default none.
    dtype: the dtype of the weights, real or complex, unless a call says; by default
        float32, or float64 with x64.

Returns:
    An initializer: a function of a key, a shape of at least two dimensions, and where
    wanted a dtype and `out_sharding`.

>>> import verax
>>> verax.nn.initializers.he_normal()(verax.random.key(0), (784, 512)).shape
(784, 512)
"""


def scaled(scale: float, mode: Mode, distribution: Distribution) -> Scaled:
    """`variance_scaling` with its first arguments chosen."""

    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(
            scale, mode, distribution, in_axis, out_axis, batch_axis, dtype
        )

    make.__doc__ = SCALED.format(
        fan=mode.removeprefix("fan_"),
        distribution=distribution.replace("_", " "),
        arguments=f'{scale}, "{mode}", "{distribution}"',
    )
    return make


glorot_uniform = xavier_uniform = scaled(1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = scaled(1.0, "fan_avg", "truncated_normal")
lecun_uniform = scaled(1.0, "fan_in", "uniform")
lecun_normal = scaled(1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = scaled(2.0, "fan_in", "uniform")
he_normal = kaiming_normal = scaled(2.0, "fan_in", "truncated_normal")
