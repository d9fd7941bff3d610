"""A small language model: attention, stacked layers under scan, Adam, sampling."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import verax
import verax.numpy as vnp
from verax import Array, lax, nn, random


@dataclass(frozen=True)
class Config:
    vocabulary: int = 16
    width: int = 32
    heads: int = 4
    layers: int = 2
    context: int = 16


class Block(NamedTuple):
    qkv: Array
    out: Array
    up: Array
    down: Array


class Params(NamedTuple):
    tokens: Array
    places: Array
    blocks: Block


class Adam(NamedTuple):
    mean: Params
    square: Params
    step: Array


def init(config: Config, key: Array) -> Params:
    c, d, n = config, config.width, config.layers
    keys = random.split(key, 6)
    normal = nn.initializers.normal(0.08)
    blocks = Block(
        normal(keys[0], (n, d, 3 * d)),
        vnp.zeros((n, d, d)),
        normal(keys[1], (n, d, 4 * d)),
        vnp.zeros((n, 4 * d, d)),
    )
    tokens, places = normal(keys[2], (c.vocabulary, d)), normal(keys[3], (c.context, d))
    return Params(tokens, places, blocks)


def layer(config: Config, x: Array, block: Block) -> Array:
    length, width = x.shape
    split = (length, 3, config.heads, width // config.heads)
    q, k, v = vnp.moveaxis((nn.standardize(x) @ block.qkv).reshape(split), 1, 0)
    scores = vnp.einsum("qhd,khd->hqk", q, k) / vnp.sqrt(q.shape[-1])
    mask = vnp.tril(vnp.ones((length, length), bool))
    weights = nn.softmax(vnp.where(mask, scores, -vnp.inf), axis=-1)
    x = x + vnp.einsum("hqk,khd->qhd", weights, v).reshape(length, width) @ block.out
    return x + nn.gelu(nn.standardize(x) @ block.up) @ block.down


def logits(config: Config, params: Params, tokens: Array) -> Array:
    def step(x: Array, block: Block) -> tuple[Array, None]:
        return verax.checkpoint(partial(layer, config))(x, block), None

    start = params.tokens[tokens] + params.places[: tokens.shape[0]]
    x, _ = lax.scan(step, start, params.blocks)
    return nn.standardize(x) @ params.tokens.T


def loss(params: Params, config: Config, batch: Array) -> tuple[Array, Array]:
    out = verax.vmap(partial(logits, config, params))(batch[:, :-1])
    right = vnp.take_along_axis(nn.log_softmax(out), batch[:, 1:, None], axis=-1)
    hits = out.argmax(-1) == batch[:, 1:]
    return -right.mean(), hits.mean()


@verax.jit(static_argnames=("config", "rate"))
def train_step(
    params: Params, adam: Adam, config: Config, batch: Array, rate: float = 1e-2
) -> tuple[Params, Adam, Array]:
    (_, hits), grads = verax.value_and_grad(loss, has_aux=True)(params, config, batch)
    mean = verax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam.mean, grads)
    square = verax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, adam.square, grads)
    step = adam.step + 1
    scale = rate * vnp.sqrt(1 - 0.99**step) / (1 - 0.9**step)

    def moved(p: Array, m: Array, s: Array) -> Array:
        return p - scale * m / (vnp.sqrt(s) + 1e-8)

    updated = verax.tree.map(moved, params, mean, square)
    return updated, Adam(mean, square, step), hits


def main() -> float:
    """The share of next tokens that are right after some steps."""
    config = Config()
    params = init(config, random.key(0))
    zeros = verax.tree.map(vnp.zeros_like, params)
    adam = Adam(zeros, zeros, vnp.array(0))
    starts = random.randint(random.key(1), (16, 1), 0, config.vocabulary)
    batch = (starts + 3 * vnp.arange(config.context + 1)) % config.vocabulary
    hits = vnp.zeros(())
    for _ in range(40):
        params, adam, hits = train_step(params, adam, config, batch)
    return float(hits)
