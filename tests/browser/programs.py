"""The programs in the pictures of the explorer.

Plain functions, as a user writes them::

    verax.explore(verax.grad(mlp))(layers, x, y)
"""

from typing import Any

import verax.numpy as vnp
from verax import lax, nn


def mlp(params: Any, x: Any, y: Any) -> Any:
    for w, b in params:
        x = vnp.tanh(x @ w + b)
    return vnp.mean((x - y) ** 2)


def norm(x: Any) -> Any:
    centred = x - vnp.mean(x, axis=-1, keepdims=True)
    return centred / vnp.sqrt(vnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def attention(p: Any, x: Any) -> Any:
    q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
    scores = vnp.einsum("bqd,bkd->bqk", q, k) / x.shape[-1] ** 0.5
    mask = vnp.tril(vnp.ones(scores.shape[-2:], bool))
    return nn.softmax(vnp.where(mask, scores, -1e9)) @ v @ p["o"]


def feed_forward(p: Any, x: Any) -> Any:
    return nn.gelu(x @ p["up"]) @ p["down"]


def transformer(params: Any, tokens: Any) -> Any:
    x = params["embed"][tokens[:, :-1]]
    for p in params["blocks"]:
        x = x + attention(p, norm(x))
        x = x + feed_forward(p, norm(x))
    logits = nn.log_softmax(norm(x) @ params["embed"].T)
    return -vnp.mean(vnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def rnn(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = vnp.tanh(h @ w["h"] + x @ w["x"])
        return h, h

    _, hs = lax.scan(step, vnp.zeros(w["h"].shape[0]), xs)
    return vnp.sum(hs**2)


def root_loss(params: Any, x: Any) -> Any:
    h = vnp.maximum(x @ params["w"] - params["b"], 0.0)
    roots = vnp.where(h > 0, vnp.sqrt(h), 0.0)
    return vnp.sum(roots * params["scale"])
