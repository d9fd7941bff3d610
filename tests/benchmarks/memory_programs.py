"""Programs whose memory is predicted: losses of networks, of loops and of samplers.

The idea: each is a loss with the types of its arguments, so that nothing is held but
types until the program of its gradient is compiled::

    loss, arguments = PROGRAMS["lstm"]()
    jit(grad(loss)).lower(*arguments)
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import verax
import verax.numpy as vnp
from verax import lax, nn

type Program = tuple[Callable[..., Any], tuple[Any, ...]]
"""A loss, and the types of its arguments."""


type Each = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is done to each block of a program, or each step of a loop: a checkpoint."""


def as_it_is(part: Callable[..., Any]) -> Callable[..., Any]:
    return part


def floats(*shape: int) -> verax.ShapeDtypeStruct:
    """The type of an array of float32."""
    return verax.ShapeDtypeStruct(shape, vnp.float32)


def normed(x: Any) -> Any:
    centred = x - vnp.mean(x, -1, keepdims=True)
    return centred * lax.rsqrt(vnp.mean(centred**2, -1, keepdims=True) + 1e-5)


# -----------------------------------------------------------------------------
# Transformers, with their blocks one after the other and in a loop.

HEADS: Final = 4


def attention(p: Any, x: Any) -> Any:
    batch, length, width = x.shape
    size = width // HEADS

    def head(a: Any) -> Any:
        return a.reshape(batch, length, HEADS, size).transpose(0, 2, 1, 3)

    q, k, v = map(head, vnp.split(x @ p["qkv"], 3, -1))
    seen = vnp.tril(vnp.ones((length, length), bool))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(size)
    weights = nn.softmax(vnp.where(seen, scores, -1e9))
    mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
    return mixed @ p["out"]


def block(p: Any, x: Any) -> Any:
    x = x + attention(p, normed(x) * p["first"])
    return x + nn.gelu((normed(x) * p["second"]) @ p["up"]) @ p["down"]


def block_types(width: int, *count: int) -> dict[str, Any]:
    """The parameters of a block, or of `count` of them in one array each."""
    shapes = {
        "first": (width,),
        "second": (width,),
        "qkv": (width, 3 * width),
        "out": (width, width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }
    return {name: floats(*count, *shape) for name, shape in shapes.items()}


def gpt(
    count: int = 6,
    batch: int = 4,
    length: int = 64,
    width: int = 64,
    each: Each = as_it_is,
) -> Program:
    part = each(block)

    def loss(blocks: Any, x: Any) -> Any:
        for p in blocks:
            x = part(p, x)
        return vnp.mean(normed(x) ** 2 * x)

    return loss, ([block_types(width)] * count, floats(batch, length, width))


def gpt_loop(
    count: int = 12,
    batch: int = 4,
    length: int = 64,
    width: int = 64,
    each: Each = as_it_is,
) -> Program:
    part = each(block)

    def loss(blocks: Any, x: Any) -> Any:
        x, _ = lax.scan(lambda x, p: (part(p, x), None), x, blocks)
        return vnp.mean(normed(x) ** 2 * x)

    return loss, (block_types(width, count), floats(batch, length, width))


# -----------------------------------------------------------------------------
# Convolutions.


def convolved(x: Any, kernel: Any) -> Any:
    names = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=names)


def resnet(
    count: int = 6,
    batch: int = 8,
    width: int = 16,
    size: int = 24,
    each: Each = as_it_is,
) -> Program:
    def two(kernels: Any, x: Any) -> Any:
        first, second = kernels
        inner = nn.relu(normed(convolved(x, first)))
        return nn.relu(x + normed(convolved(inner, second)))

    part = each(two)

    def loss(kernels: Any, x: Any) -> Any:
        for pair in kernels:
            x = part(pair, x)
        return vnp.mean(x**2)

    kernel = floats(3, 3, width, width)
    return loss, ([(kernel, kernel)] * count, floats(batch, size, size, width))


def halved(x: Any) -> Any:
    window = (1, 2, 2, 1)
    return lax.reduce_window(x, 0.0, lax.add, window, window, "VALID") / 4


def doubled(x: Any) -> Any:
    return vnp.repeat(vnp.repeat(x, 2, 1), 2, 2)


def unet(
    batch: int = 4,
    width: int = 8,
    size: int = 48,
    depth: int = 3,
    each: Each = as_it_is,
) -> Program:
    @each
    def two(p: Any, x: Any) -> Any:
        for kernel in p:
            x = nn.silu(normed(convolved(x, kernel)))
        return x

    def loss(kernels: Any, x: Any) -> Any:
        down, middle, up = kernels
        kept = []
        for p in down:
            x = two(p, x)
            kept.append(x)
            x = halved(x)
        x = two(middle, x)
        for p, other in zip(up, kept[::-1], strict=True):
            x = two(p, vnp.concatenate([doubled(x), other], -1))
        return vnp.mean(x**2)

    def pair(before: int, after: int) -> tuple[Any, Any]:
        return floats(3, 3, before, after), floats(3, 3, after, after)

    widths = [width * 2**i for i in range(depth)]
    down = [pair(a, b) for a, b in zip([3, *widths], widths, strict=False)]
    middle = pair(widths[-1], 2 * widths[-1])
    up = [pair(3 * w, w) for w in widths[::-1]]
    return loss, ((down, middle, up), floats(batch, size, size, 3))


# -----------------------------------------------------------------------------
# Loops of many steps.


def lstm(
    steps: int = 200, batch: int = 16, width: int = 64, each: Each = as_it_is
) -> Program:
    @each
    def step(p: Any, state: Any, x: Any) -> Any:
        h, memory = state
        gates = x @ p["in"] + h @ p["state"] + p["bias"]
        i, f, g, o = vnp.split(gates, 4, -1)
        memory = nn.sigmoid(f) * memory + nn.sigmoid(i) * vnp.tanh(g)
        return nn.sigmoid(o) * vnp.tanh(memory), memory

    def loss(p: Any, xs: Any) -> Any:
        zero = vnp.zeros((batch, width))
        (h, _), _ = lax.scan(lambda s, x: (step(p, s, x), None), (zero, zero), xs)
        return vnp.mean(h**2)

    p = {
        "in": floats(width, 4 * width),
        "state": floats(width, 4 * width),
        "bias": floats(4 * width),
    }
    return loss, (p, floats(steps, batch, width))


def ode(
    steps: int = 200, batch: int = 64, width: int = 32, each: Each = as_it_is
) -> Program:
    """Steps of Runge and Kutta's of order four."""

    def field(p: Any, y: Any) -> Any:
        return vnp.tanh(vnp.tanh(y @ p[0] + p[1]) @ p[2])

    @each
    def step(p: Any, y: Any) -> Any:
        h = 0.01
        a = field(p, y)
        b = field(p, y + h / 2 * a)
        c = field(p, y + h / 2 * b)
        d = field(p, y + h * c)
        return y + h / 6 * (a + 2 * b + 2 * c + d)

    def loss(p: Any, y: Any) -> Any:
        y, _ = lax.scan(lambda y, _: (step(p, y), None), y, None, length=steps)
        return vnp.mean(y**2)

    p = floats(width, width), floats(width), floats(width, width)
    return loss, (p, floats(batch, width))


def hmc(
    steps: int = 100, chains: int = 64, width: int = 32, each: Each = as_it_is
) -> Program:
    """A path of leapfrog steps, differentiated by the size of a step."""

    def potential(x: Any, w: Any) -> Any:
        return vnp.sum(vnp.log(1 + vnp.exp(-(x @ w)))) + 0.5 * vnp.sum(x**2)

    slope = verax.grad(potential)

    def loss(size: Any, x: Any, v: Any, w: Any) -> Any:
        @each
        def step(size: Any, w: Any, state: Any) -> Any:
            x, v = state
            v = v - size / 2 * slope(x, w)
            x = x + size * v
            return x, v - size / 2 * slope(x, w)

        (x, v), _ = lax.scan(
            lambda s, _: (step(size, w, s), None), (x, v), None, length=steps
        )
        return potential(x, w) + 0.5 * vnp.sum(v**2)

    state = floats(chains, width)
    return loss, (floats(), state, state, floats(width, 128))


PROGRAMS: Final[Mapping[str, Callable[..., Program]]] = MappingProxyType(
    {
        "gpt": gpt,
        "gpt in a loop": gpt_loop,
        "resnet": resnet,
        "unet": unet,
        "lstm": lstm,
        "ode": ode,
        "hmc": hmc,
    }
)
"""Programs by name, each made when it is asked for."""

LARGE: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "gpt": {"count": 12, "batch": 8, "length": 64, "width": 64},
        "gpt in a loop": {"count": 48},
        "resnet": {"count": 8, "size": 32},
        "unet": {"width": 16, "size": 64},
        "lstm": {"steps": 1000},
        "ode": {"steps": 1000},
        "hmc": {"steps": 200},
    }
)
"""The sizes for which budgets are measured."""
