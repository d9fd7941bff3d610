"""Small steps of trainings without a word on shardings, for the search.

The idea: a slow device with quick links makes it worth while to split them all::

    step, types = CASES["decoder"]()
    verax.debug.propose(step, devices=8, device=CHIP, links=CORD)(*types)
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import verax
import verax.numpy as vnp
from tests.benchmarks.mesh_programs import attention, normed
from verax import lax, nn
from verax.debug import Device, Link

CHIP: Final = Device("chip", flops=1e9, bandwidth=1e9, memory=1e9)
CORD: Final = Link("cord", bandwidth=1e10, latency=1e-8)

type Case = tuple[Callable[..., Any], tuple[Any, ...]]


def typed(*shape: int, dtype: Any = vnp.float32) -> Any:
    return verax.ShapeDtypeStruct(shape, dtype)


def descent(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A step with momentum."""

    def step(weights: Any, moments: Any, data: Any) -> Any:
        value, slopes = verax.value_and_grad(loss)(weights, data)
        moments = verax.tree.map(lambda m, d: 0.9 * m + d, moments, slopes)
        weights = verax.tree.map(lambda w, m: w - 0.01 * m, weights, moments)
        return value, weights, moments

    return step


def perceptron() -> Case:
    """Layers in a list, written one after the other."""

    def loss(layers: Any, x: Any) -> Any:
        for first, second, bias in layers:
            x = x + nn.gelu(x @ first + bias) @ second
        return vnp.mean(x**2)

    layers = [(typed(16, 32), typed(32, 16), typed(32))] * 3
    return descent(loss), (layers, layers, typed(64, 16))


def decoder() -> Case:
    """Layers in a loop that is differentiated, with words at both ends."""

    def block(x: Any, w: Any) -> Any:
        x = x + attention(w, normed(x))
        return x + nn.gelu(normed(x) @ w["up"]) @ w["down"], None

    def loss(w: Any, tokens: Any) -> Any:
        x, _ = lax.scan(verax.checkpoint(block), w["words"][tokens], w["layers"])
        scores = normed(x) @ w["words"].T
        known = vnp.sum(nn.one_hot(tokens, 16) * scores, -1)
        return vnp.mean(nn.logsumexp(scores, axis=-1) - known)

    layers = {
        **{name: typed(2, 16, 4, 4) for name in "qkv"},
        "o": typed(2, 4, 4, 16),
        "up": typed(2, 16, 32),
        "down": typed(2, 32, 16),
    }
    weights = {"layers": layers, "words": typed(16, 16)}
    return descent(loss), (weights, weights, typed(16, 8, dtype=vnp.int32))


def mixture() -> Case:
    """Experts with tables of who goes where."""

    def loss(w: Any, x: Any) -> Any:
        chances = nn.softmax(x @ w["gate"])
        given = vnp.einsum("gtd,gte->egtd", x, chances)
        inner = nn.relu(vnp.einsum("egtd,edf->egtf", given, w["up"]))
        out = vnp.einsum("egtf,efd->egtd", inner, w["down"])
        return vnp.mean((x - out.sum(0)) ** 2)

    weights = {
        "gate": typed(8, 8),
        "up": typed(8, 8, 16),
        "down": typed(8, 16, 8),
    }
    return descent(loss), (weights, weights, typed(8, 8, 8))


def convolutions() -> Case:
    """Down and up again, joined over the width."""
    names = ("NHWC", "HWIO", "NHWC")

    def conv(x: Any, w: Any, stride: int = 1) -> Any:
        return nn.silu(
            lax.conv_general_dilated(
                x, w, (stride, stride), "SAME", dimension_numbers=names
            )
        )

    def loss(w: Any, x: Any) -> Any:
        y = conv(x, w["in"])
        z = conv(y, w["down"], 2)
        z = vnp.repeat(vnp.repeat(z, 2, 1), 2, 2)
        return vnp.mean(conv(vnp.concatenate([y, z], -1), w["join"]) ** 2)

    weights = {
        "in": typed(3, 3, 8, 8),
        "down": typed(3, 3, 8, 8),
        "join": typed(3, 3, 16, 8),
    }
    return descent(loss), (weights, weights, typed(16, 8, 8, 8))


CASES: Final[Mapping[str, Callable[[], Case]]] = MappingProxyType(
    {
        "perceptron": perceptron,
        "decoder": decoder,
        "mixture": mixture,
        "convolutions": convolutions,
    }
)
