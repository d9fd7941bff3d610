"""Neural networks from pairs of functions, as `jax.example_libraries.stax` (floor 6).

A layer is a pair: `init` makes parameters for a shape, and `apply` uses them. Layers
are joined by `serial` and `parallel`, whose results are layers again::

    init, apply = serial(Dense(128), Relu, Dense(10), LogSoftmax)
    shape, params = init(verax.random.key(0), (-1, 784))
    logits = apply(params, images)

>>> import verax
>>> init, apply = serial(Flatten, Dense(3), Relu)
>>> shape, params = init(verax.random.key(0), (2, 4, 4))
>>> shape, apply(params, verax.numpy.ones((2, 4, 4))).shape
((2, 3), (2, 3))
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import frozen

from verax import lax, numpy as vnp, random
from verax.ir.records import ReprMixin
from verax.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from verax.nn.initializers import glorot_normal, normal, ones, zeros
from verax.rules.values.array import Array

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax

# The shape of what a layer takes is a tuple; with several inputs, a list of shapes.
type Shapes = Any
type Params = Any
type Init = Callable[[Any, Shapes], tuple[Shapes, Params]]
type Apply = Callable[..., Any]
type Layer = tuple[Init, Apply]
type Initializer = Callable[..., Array]
type Padding = str | Sequence[tuple[int, int]]
type Specs = tuple[str, str, str]


GLOROT: Final[Initializer] = glorot_normal()
NORMAL: Final[Initializer] = normal()
SMALL: Final[Initializer] = normal(1e-6)


def without_params(shape: Callable[[Shapes], Shapes], apply: Apply) -> Layer:
    """A layer that learns nothing: the shape of its result, and what it computes."""
    return lambda rng, input_shape: (shape(input_shape), ()), apply


def same_shape(shape: Shapes) -> Shapes:
    return shape


def Dense(
    out_dim: int,
    W_init: Initializer = GLOROT,
    b_init: Initializer = NORMAL,
) -> Layer:
    """inputs · W + b, over the last dimension of the inputs."""

    def init(rng: Any, input_shape: Shapes) -> tuple[Shapes, Params]:
        weights, bias = random.split(rng)
        params = W_init(weights, (input_shape[-1], out_dim)), b_init(bias, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply(params: Params, inputs: Any, **kwargs: object) -> Array:
        W, b = params
        products: Array = vnp.dot(inputs, W) + b
        return products

    return init, apply


def convolution(
    specs: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    window: tuple[Sequence[int] | None, Padding],
    initializers: tuple[Initializer | None, Initializer],
    shape_of: Callable[..., Shapes],
    convolve: Callable[..., Array],
) -> Layer:
    """A layer of a kernel and a bias for each channel.

    Args:
        window: the strides, None for those of one, and the padding.
        shape_of: the shape of the result from those of the input and the kernel, then
            strides, padding and dimension numbers, as `lax.conv_general_shape_tuple`.
        convolve: the result of inputs and a kernel, as `lax.conv_general_dilated`.
    """
    strides, padding = window
    steps = tuple(strides or (1,) * len(filter_shape))
    inputs_spec, kernel_spec, out_spec = specs
    W_init, b_init = initializers
    if W_init is None:
        W_init = glorot_normal(kernel_spec.index("I"), kernel_spec.index("O"))
    draw = W_init
    bias_shape = tuple([out_chan if c == "C" else 1 for c in out_spec])

    def init(rng: Any, input_shape: Shapes) -> tuple[Shapes, Params]:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[inputs_spec.index("C")]}
        kernel = [channels[c] if c in channels else next(sizes) for c in kernel_spec]
        weights, bias = random.split(rng)
        params = draw(weights, kernel), b_init(bias, bias_shape)
        return shape_of(input_shape, kernel, steps, padding, specs), params

    def apply(params: Params, inputs: object, **kwargs: object) -> Array:
        W, b = params
        sums: Array = convolve(inputs, W, steps, padding, dimension_numbers=specs) + b
        return sums

    return init, apply


def GeneralConv(
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = SMALL,
) -> Layer:
    """A convolution; three strings name the dimensions of input, kernel and result."""
    return convolution(
        dimension_numbers,
        out_chan,
        filter_shape,
        (strides, padding),
        (W_init, b_init),
        lax.conv_general_shape_tuple,
        lax.conv_general_dilated,
    )


def GeneralConvTranspose(
    dimension_numbers: Specs,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = SMALL,
) -> Layer:
    """A transposed convolution, which enlarges by its strides; see `GeneralConv`."""
    return convolution(
        dimension_numbers,
        out_chan,
        filter_shape,
        (strides, padding),
        (W_init, b_init),
        lax.conv_transpose_shape_tuple,
        lax.conv_transpose,
    )


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Mean 0 and variance 1 over `axis`, then a learned scale and a learned center.

    The moments are those of the inputs: nothing is remembered for evaluation.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Shapes) -> tuple[Shapes, Params]:
        skipped = [i % len(input_shape) for i in axes]
        shape = tuple([n for i, n in enumerate(input_shape) if i not in skipped])
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply(params: Params, x: Any, **kwargs: object) -> Array:
        beta, gamma = params
        z = standardize(x, axes, epsilon=epsilon)
        if scale:
            z = vnp.expand_dims(gamma, axes) * z
        return z + vnp.expand_dims(beta, axes) if center else z

    return init, apply


def elementwise(fun: Callable[..., Array], **fun_kwargs: object) -> Layer:
    """A function of each element as a layer; keyword arguments are the function's."""
    return without_params(
        same_shape, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)
    )


Tanh = elementwise(vnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(vnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


@frozen(repr=False)
class Windows(ReprMixin):
    """The windows of a pooling layer, with batch and channels among the dimensions."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Padding

    def result_shape(self, input_shape: Shapes) -> Shapes:
        pads = self.padding
        if isinstance(pads, str):
            pads = lax.padtype_to_pads(input_shape, self.shape, self.strides, pads)
        return lax.reduce_window_shape_tuple(
            input_shape, self.shape, self.strides, pads
        )

    def reduced(self, x: Array, start: float, reducer: Callable[..., Array]) -> Array:
        result: Array = lax.reduce_window(
            x, start, reducer, self.shape, self.strides, self.padding
        )
        return result

    def mean(self, x: Array) -> Array:
        """Sums over the number of elements, without the padding."""
        sums = self.reduced(x, 0.0, lax.add)
        return sums / self.reduced(vnp.ones_like(x), 0.0, lax.add)


def windows_over(
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    spec: str | None,
) -> Windows:
    """Windows of size 1 over batch and channels, which `spec` names; see `MaxPool`."""
    rank = len(window_shape)
    outer = (0, rank + 1) if spec is None else (spec.index("N"), spec.index("C"))
    space = [i for i in range(rank + 2) if i not in outer]
    sizes = dict(zip(space, window_shape, strict=True))
    steps = dict(zip(space, strides or (1,) * rank, strict=True))
    every = range(rank + 2)
    return Windows(
        tuple([sizes.get(i, 1) for i in every]),
        tuple([steps.get(i, 1) for i in every]),
        padding,
    )


def pooling(windows: Windows, reduce: Callable[[Array], Array]) -> Layer:
    """A pooling layer from its windows and what it makes of its inputs."""
    return without_params(
        windows.result_shape, lambda params, inputs, **kwargs: reduce(inputs)
    )


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """The maximum of each window, over the dimensions between batch and channels.

    Args:
        spec: the names of the dimensions if they are not batch, space and channels;
            "NCHW" for channels that come second.
    """
    windows = windows_over(window_shape, strides, padding, spec)
    return pooling(windows, lambda x: windows.reduced(x, -math.inf, lax.max))


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """The sum of each window; see `MaxPool`."""
    windows = windows_over(window_shape, strides, padding, spec)
    return pooling(windows, lambda x: windows.reduced(x, 0.0, lax.add))


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """The mean of each window, in which padding does not count; see `MaxPool`."""
    windows = windows_over(window_shape, strides, padding, spec)
    return pooling(windows, windows.mean)


Flatten = without_params(
    lambda shape: (shape[0], math.prod(shape[1:])),
    lambda params, inputs, **kwargs: vnp.reshape(
        inputs, (inputs.shape[0], math.prod(inputs.shape[1:]))
    ),
)
Identity = without_params(same_shape, lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """`num` references to the inputs, for the layers of `parallel`."""
    return without_params(
        lambda shape: [shape] * num, lambda params, inputs, **kwargs: [inputs] * num
    )


FanInSum = without_params(
    lambda shapes: shapes[0], lambda params, inputs, **kwargs: sum(inputs)
)


def FanInConcat(axis: int = -1) -> Layer:
    """Several inputs, concatenated along an axis."""

    def shape(shapes: Shapes) -> Shapes:
        first = shapes[0]
        at = axis % len(first)
        total = sum([one[at] for one in shapes])
        return (*first[:at], total, *first[at + 1 :])

    return without_params(
        shape, lambda params, inputs, **kwargs: vnp.concatenate(inputs, axis)
    )


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps elements with the probability `rate` and sets the others to zero.

    What is kept is divided by `rate`. In any mode other than "train" nothing changes.

    Raises:
        ValueError: when it is applied without a key.
    """

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Array:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout needs a key: pass one to the network, as in "
                "apply(params, inputs, rng=verax.random.key(0))"
            )
        if mode != "train":
            return vnp.asarray(inputs)
        keep = random.bernoulli(rng, rate, inputs.shape)
        return vnp.where(keep, inputs / rate, 0)

    return without_params(same_shape, apply)


def keys_for(layers: Sequence[Layer], kwargs: dict[str, Any]) -> list[object]:
    """A key for each layer from the keyword argument `rng`, which it removes."""
    rng = kwargs.pop("rng", None)
    return [None] * len(layers) if rng is None else list(random.split(rng, len(layers)))


def serial(*layers: Layer) -> Layer:
    """Layers one after another: each takes the result of the one before it."""

    def init(rng: Any, input_shape: Shapes) -> tuple[Shapes, Params]:
        params = []
        for layer_init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = layer_init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Params, inputs: object, **kwargs: object) -> object:
        keys = keys_for(layers, kwargs)
        for (_, layer_apply), param, rng in zip(layers, params, keys, strict=True):
            inputs = layer_apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other: one input and one output for each.

    `FanOut` makes several inputs of one; `FanInSum` and `FanInConcat` join the outputs.
    """

    def init(rng: Any, input_shape: Shapes) -> tuple[Shapes, Params]:
        keys = random.split(rng, len(layers))
        made = [
            layer_init(key, shape)
            for (layer_init, _), key, shape in zip(
                layers, keys, input_shape, strict=True
            )
        ]
        return tuple([shape for shape, _ in made]), tuple([param for _, param in made])

    def apply(params: Params, inputs: Any, **kwargs: Any) -> list[object]:
        keys = keys_for(layers, kwargs)
        return [
            layer_apply(param, x, rng=rng, **kwargs)
            for (_, layer_apply), param, x, rng in zip(
                layers, params, inputs, keys, strict=True
            )
        ]

    return init, apply


def shape_dependent(make_layer: Callable[[Shapes], Layer]) -> Layer:
    """A layer that is made once the shape of its inputs is known."""

    def init(rng: object, input_shape: Shapes) -> tuple[Shapes, Params]:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params: Params, inputs: Any, **kwargs: Any) -> object:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init, apply
