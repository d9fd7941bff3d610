"""The models of the run, for verax and jax alike: a loss and its arguments.

The idea: a model is written against the modules of one library, so that both run the
same program on the same numbers::

    loss, params, batch = MODELS["mlp"](load("verax"), small=True)
"""

import importlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

type Loss = Callable[[Any, Any], Any]
type Model = tuple[Loss, Any, Any]


def load(library: str) -> Any:
    """The modules of verax or jax."""
    names = ("numpy", "lax", "nn")
    modules = {name: importlib.import_module(f"{library}.{name}") for name in names}
    return SimpleNamespace(api=importlib.import_module(library), **modules)


class Weights:
    """Draws float32 arrays, the same for every library."""

    def __init__(self, ns: Any) -> None:
        self.ns, self.random = ns, np.random.default_rng(0)

    def __call__(self, *shape: int) -> Any:
        scale = 1 / np.sqrt(shape[-2] if len(shape) > 1 else 1)
        values = self.random.normal(size=shape) * scale
        return self.ns.numpy.asarray(values.astype(np.float32))


def mlp(ns: Any, small: bool) -> Model:
    """Three layers."""
    draw, width, rows = Weights(ns), 16 if small else 2048, 8 if small else 1024
    params = [draw(width, width) for _ in range(3)]

    def loss(params: Any, x: Any) -> Any:
        for w in params:
            x = ns.numpy.tanh(x @ w)
        return (x**2).mean()

    return loss, params, draw(rows, width)


def cnn(ns: Any, small: bool) -> Model:
    """Two convolutions over images in channels-last order, and their mean."""
    draw, side, channels = Weights(ns), 8 if small else 64, 4 if small else 64
    params = [draw(3, 3, 3, channels) / 3, draw(3, 3, channels, channels) / 3]
    layout = ("NHWC", "HWIO", "NHWC")

    def loss(params: Any, x: Any) -> Any:
        for w in params:
            x = ns.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=layout
            )
            x = ns.nn.relu(x)
        return (x.mean((1, 2)) ** 2).mean()

    return loss, params, draw(2 if small else 64, side, side, 3)


def transformer(ns: Any, small: bool) -> Model:
    """Blocks of attention and a layer of features, scanned over their weights."""
    draw = Weights(ns)
    depth, width, heads, length = (2, 16, 2, 8) if small else (8, 512, 8, 256)
    params = {
        "qkv": draw(depth, width, 3 * width),
        "out": draw(depth, width, width),
        "up": draw(depth, width, 4 * width),
        "down": draw(depth, 4 * width, width),
    }

    def normed(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / ns.numpy.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    def block(x: Any, w: Any) -> Any:
        shape = (*x.shape[:2], heads, width // heads)
        parts = ns.numpy.split(normed(x) @ w["qkv"], 3, axis=-1)
        q, k, v = (part.reshape(shape) for part in parts)
        x = x + ns.nn.dot_product_attention(q, k, v).reshape(x.shape) @ w["out"]
        return x + ns.nn.gelu(normed(x) @ w["up"]) @ w["down"], None

    def loss(params: Any, x: Any) -> Any:
        return (ns.lax.scan(block, x, params)[0] ** 2).mean()

    return loss, params, draw(2 if small else 8, length, width)


def recurrence(ns: Any, small: bool) -> Model:
    """A recurrent cell over a sequence."""
    draw, width, steps = Weights(ns), 8 if small else 256, 5 if small else 256

    def loss(w: Any, xs: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            state = ns.numpy.tanh(state @ w + x)
            return state, state.sum()

        return ns.lax.scan(cell, ns.numpy.zeros_like(xs[0]), xs)[1].mean()

    return loss, draw(width, width), draw(steps, 16, width)


def matmul(ns: Any, small: bool) -> Model:
    """One product of square matrices."""
    draw, width = Weights(ns), 16 if small else 4096
    return lambda w, x: (x @ w).sum(), draw(width, width), draw(width, width)


def reductions(ns: Any, small: bool) -> Model:
    """Sums, a maximum and a softmax over the rows and columns of a matrix."""
    draw, width = Weights(ns), 16 if small else 4096

    def loss(scale: Any, x: Any) -> Any:
        x = x * scale
        soft = ns.nn.softmax(x, axis=0).max(1).sum()
        return x.sum(0).max() + x.std(1).sum() + soft

    return loss, ns.numpy.asarray(np.float32(1.5)), draw(width, width)


MODELS: Mapping[str, Callable[[Any, bool], Model]] = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
    "scan": recurrence,
    "matmul": matmul,
    "reductions": reductions,
}
