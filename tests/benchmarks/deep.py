"""Cases of deep networks, written as Python loops over blocks: first call and step.

The idea: compilers write out each block, and the time of a first call shows how its
price grows with their number. A first call is timed once in a process, since it takes
up to minutes; the same compiled function is then timed as a step.

    network(load("verax"), "transformer", 12).first()    # CPU and wall seconds
"""

import functools
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .case import Case, Goal
from .figures import growth_exponent
from .measure import Figure, Looped, Sample, Work
from .namespace import Namespace, Scale, block

type Arrays = Any
type Loss = Callable[..., Any]

WIDTH, HEADS, BATCH, LENGTH = 128, 4, 4, 32
CHANNELS, IMAGE = 16, 16
DEPTHS = (6, 12, 24, 48)
HEAVY = 24


def weights(seed: int, *shape: int) -> Any:
    """Normal values, smaller the more of them are summed."""
    rng = np.random.default_rng(seed)
    scale = math.sqrt(math.prod(shape[:-1]))
    return (rng.standard_normal(shape) / scale).astype(np.float32)


def transformer(ns: Namespace) -> Loss:
    """Squared error of pre-norm blocks: causal attention, and a gelu layer."""
    jnp, nn = ns.numpy, ns.nn

    def norm(x: Any, gain: Any, bias: Any) -> Any:
        mean = jnp.mean(x, -1, keepdims=True)
        variance = jnp.var(x, -1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * gain + bias

    def heads(x: Any) -> Any:
        split = x.reshape(*x.shape[:2], HEADS, x.shape[2] // HEADS)
        return split.transpose(0, 2, 1, 3)

    def attention(p: Any, x: Any) -> Any:
        q, k, v = map(heads, jnp.split(x @ p["qkv"], 3, -1))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        mixed = nn.softmax(jnp.where(mask, scores, -1e9), -1) @ v
        return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"]

    def loss(params: Any, x: Any, y: Any) -> Any:
        for p in params:
            x = x + attention(p, norm(x, p["gain1"], p["bias1"]))
            h = norm(x, p["gain2"], p["bias2"])
            x = x + nn.gelu(h @ p["up"] + p["c"]) @ p["down"] + p["d"]
        return jnp.mean((x - y) ** 2)

    return loss


def transformer_arrays(depth: int, small: bool) -> Arrays:
    width = 16 if small else WIDTH
    one, zero = np.ones(width, np.float32), np.zeros(width, np.float32)
    params = [
        {
            "gain1": one,
            "bias1": zero,
            "gain2": one,
            "bias2": zero,
            "qkv": weights(i, width, 3 * width),
            "out": weights(i, width, width),
            "up": weights(i, width, 4 * width),
            "c": np.zeros(4 * width, np.float32),
            "down": weights(i, 4 * width, width),
            "d": zero,
        }
        for i in range(depth)
    ]
    return params, weights(1, BATCH, LENGTH, width), weights(2, BATCH, LENGTH, width)


def cnn(ns: Namespace) -> Loss:
    """Squared error of residual convolutions with batch normalisation."""
    jnp, nn = ns.numpy, ns.nn

    def loss(params: Any, x: Any, y: Any) -> Any:
        for p in params:
            h = ns.lax.conv_general_dilated(
                x, p["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            centred = h - h.mean((0, 1, 2))
            normed = centred / jnp.sqrt(h.var((0, 1, 2)) + 1e-5)
            x = x + nn.relu(normed * p["gain"] + p["bias"])
        return jnp.mean((x - y) ** 2)

    return loss


def cnn_arrays(depth: int, small: bool) -> Arrays:
    side = 4 if small else IMAGE
    params = [
        {
            "w": weights(i, 3, 3, CHANNELS, CHANNELS),
            "gain": np.ones(CHANNELS, np.float32),
            "bias": np.zeros(CHANNELS, np.float32),
        }
        for i in range(depth)
    ]
    shape = (BATCH, side, side, CHANNELS)
    return params, weights(1, *shape), weights(2, *shape)


def mlp(ns: Namespace) -> Loss:
    """Squared error of layers with relu."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params:
            x = ns.nn.relu(x @ w + b)
        return ns.numpy.mean((x - y) ** 2)

    return loss


def mlp_arrays(depth: int, small: bool) -> Arrays:
    width = 16 if small else WIDTH
    zero = np.zeros(width, np.float32)
    params = [(weights(i, width, width), zero) for i in range(depth)]
    rows = BATCH * LENGTH
    return params, weights(1, rows, width), weights(2, rows, width)


NETWORKS: dict[str, tuple[Callable[[Namespace], Loss], Callable[[int, bool], Arrays]]]
NETWORKS = {
    "transformer": (transformer, transformer_arrays),
    "cnn": (cnn, cnn_arrays),
    "mlp": (mlp, mlp_arrays),
}


class Network:
    """Value and gradient of a network, jitted, and the arrays it is called with."""

    def __init__(self, ns: Namespace, name: str, depth: int, small: bool) -> None:
        build, arrays = NETWORKS[name]
        ns.api.jit(lambda x: x + 1)(0.0)
        self.f = ns.api.jit(ns.api.value_and_grad(build(ns)))
        self.arguments = ns.api.device_put(arrays(depth, small))
        self.seconds: Sample | None = None

    def call(self) -> object:
        """One step, to its end."""
        return block(self.f(*self.arguments))

    def first(self) -> Sample:
        """How long the first call took: it is made now, if it was not yet."""
        if self.seconds is None:
            wall, cpu = time.perf_counter(), time.process_time()
            self.call()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            self.seconds = Sample(cpu, wall, 1)
        return self.seconds


@functools.cache
def network(ns: Namespace, name: str, depth: int, small: bool = False) -> Network:
    """The network of a name, one in a process."""
    return Network(ns, name, depth, small)


def depth_of(depth: int, scale: Scale) -> int:
    """How many blocks there are, few in tests."""
    return min(depth, 2) if scale.small else depth


def _first(name: str, depth: int, ns: Namespace, scale: Scale) -> Work:
    made = network(ns, name, depth_of(depth, scale), scale.small)
    return Figure(made.first)


def _step(name: str, depth: int, ns: Namespace, scale: Scale) -> Work:
    made = network(ns, name, depth_of(depth, scale), scale.small)
    made.first()
    return Looped(made.call)


def _exponent(ns: Namespace, scale: Scale) -> Work:
    depths = (1, 2) if scale.small else DEPTHS

    def value() -> float:
        made = [network(ns, "transformer", n, scale.small) for n in depths]
        return growth_exponent(depths, [x.first().cpu for x in made])

    return Figure(value)


def cases() -> list[Case]:
    """Every case of this file."""
    peaks = {6: None, 12: 0.2, 24: 0.07, 48: 0.03}
    rows = [("transformer", n, Goal(None, peaks[n])) for n in DEPTHS]
    rows += [("cnn", 24, Goal(None, 0.6)), ("mlp", 24, Goal(None, 0.6))]
    firsts = [
        Case(
            f"deep/{name}_{depth}",
            partial(_first, name, depth),
            goal,
            heavy=name == "transformer" and depth >= HEAVY,
        )
        for name, depth, goal in rows
    ]
    steps = [
        Case(f"deep/{name}_{depth}_step", partial(_step, name, depth), Goal(None, 1.03))
        for name, depth in (("transformer", 12), ("cnn", 24), ("mlp", 24))
    ]
    exponent = Case(
        "deep/exponent", _exponent, Goal(None, 0.6), "", absolute=True, heavy=True
    )
    return [*firsts, exponent, *steps]
