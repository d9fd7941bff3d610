"""The programs under measurement, each written once as a function of a namespace.

The idea: a `Program` makes a *fresh* function for every repetition, with a new
literal in it, so that neither library answers from a cache of whole functions.

    program = mlp(load("verax"), FULL)
    ns.api.make_jaxpr(program.fresh(ns.salt()))(*program.arguments)
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from numpy import float32

from .namespace import Namespace, Scale

type Function = Callable[..., Any]

BATCH = 8
WIDTH, HEADS, LENGTH, CLASSES = 16, 2, 8, 10


@dataclass(frozen=True)
class Program:
    """Fresh scalar-valued functions of `arguments`.

    `batched` are arguments for `vmap` with `axes`; `moving` is the position of the
    argument along which higher derivatives are taken.
    """

    fresh: Callable[[float], Function]
    arguments: tuple[Any, ...]
    batched: tuple[Any, ...]
    axes: tuple[int | None, ...]
    moving: int = 0


type Build = Callable[[Namespace, Scale], Program]


def _scalar_program(ns: Namespace, fresh: Callable[[float], Function]) -> Program:
    one, batch = ns.numpy.asarray(0.75), ns.array(BATCH)
    return Program(fresh, (one, one), (batch, one), (0, None))


def scalars_lax(ns: Namespace, size: int) -> Program:
    """`size` scalar operations, all by lax calls on arrays."""
    lax = ns.lax

    def fresh(salt: float) -> Function:
        def f(x: Any, y: Any) -> Any:
            x = lax.mul(x, float32(salt))
            for _ in range(max(1, size // 8)):
                a = lax.sin(x)
                b = lax.mul(a, y)
                c = lax.add(b, x)
                d = lax.tanh(c)
                e = lax.sub(d, y)
                g = lax.cos(e)
                h = lax.mul(g, d)
                x = lax.max(h, e)
            return x

        return f

    return _scalar_program(ns, fresh)


def scalars_operators(ns: Namespace, size: int) -> Program:
    """`size` scalar operations, by operators, Python literals and numpy names."""
    np = ns.numpy

    def fresh(salt: float) -> Function:
        def f(x: Any, y: Any) -> Any:
            x = x * salt
            for _ in range(max(1, size // 8)):
                a = np.sin(x)
                b = a * y
                c = b + 0.5
                d = np.tanh(c)
                e = d - x
                g = -e
                h = g / y
                x = np.maximum(h, d)
            return x

        return f

    return _scalar_program(ns, fresh)


def mlp(ns: Namespace, scale: Scale) -> Program:
    """Cross entropy of a multilayer perceptron with four layers."""
    np, nn = ns.numpy, ns.nn
    sizes = (WIDTH, 32, 32, 32, CLASSES)
    params = {
        f"layer{i}": {"w": ns.array(m, n, seed=i), "b": ns.array(n, seed=i)}
        for i, (m, n) in enumerate(pairwise(sizes))
    }

    def fresh(salt: float) -> Function:
        def loss(params: Any, x: Any, y: Any) -> Any:
            *hidden, last = params.values()
            h = x * salt
            for layer in hidden:
                h = np.tanh(h @ layer["w"] + layer["b"])
            logits = h @ last["w"] + last["b"]
            return -np.mean(np.sum(y * nn.log_softmax(logits), axis=-1))

        return loss

    x, y = ns.array(4, WIDTH), ns.array(4, CLASSES)
    batched = (params, ns.array(BATCH, 4, WIDTH), ns.array(BATCH, 4, CLASSES))
    return Program(fresh, (params, x, y), batched, (None, 0, 0), moving=1)


def _block_params(ns: Namespace, seed: int) -> dict[str, Any]:
    shapes = {
        "query": (WIDTH, WIDTH),
        "key": (WIDTH, WIDTH),
        "value": (WIDTH, WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
        "gain1": (WIDTH,),
        "bias1": (WIDTH,),
        "gain2": (WIDTH,),
        "bias2": (WIDTH,),
    }
    return {k: ns.array(*s, seed=seed) for k, s in shapes.items()}


def _normalize(ns: Namespace, x: Any, gain: Any, bias: Any) -> Any:
    np = ns.numpy
    centered = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centered * centered, axis=-1, keepdims=True)
    return centered / np.sqrt(variance + 1e-5) * gain + bias


def _attention(ns: Namespace, p: Any, x: Any, mask: Any) -> Any:
    np = ns.numpy
    q, k, v = (
        (x @ p[name]).reshape(LENGTH, HEADS, WIDTH // HEADS)
        for name in ("query", "key", "value")
    )
    scores = np.einsum("qhd,khd->hqk", q, k) / (WIDTH // HEADS) ** 0.5
    weights = ns.nn.softmax(np.where(mask, scores, -1e9), axis=-1)
    mixed = np.einsum("hqk,khd->qhd", weights, v)
    return mixed.reshape(LENGTH, WIDTH) @ p["out"]


def transformer(ns: Namespace, layers: int) -> Program:
    """Loss of a decoder with `layers` blocks: norms, causal attention, gelu."""
    np, nn = ns.numpy, ns.nn
    params = {
        "blocks": [_block_params(ns, seed) for seed in range(layers)],
        "head": ns.array(WIDTH, CLASSES),
    }

    def fresh(salt: float) -> Function:
        def loss(params: Any, x: Any, y: Any) -> Any:
            x = x * salt
            steps = np.arange(LENGTH)
            mask = steps[:, None] >= steps[None, :]
            for p in params["blocks"]:
                normed = _normalize(ns, x, p["gain1"], p["bias1"])
                x = x + _attention(ns, p, normed, mask)
                normed = _normalize(ns, x, p["gain2"], p["bias2"])
                x = x + nn.gelu(normed @ p["up"]) @ p["down"]
            log_probabilities = nn.log_softmax(x @ params["head"], axis=-1)
            return -np.mean(np.sum(log_probabilities * y, axis=-1))

        return loss

    x, y = ns.array(LENGTH, WIDTH), ns.array(LENGTH, CLASSES)
    batched = (params, ns.array(BATCH, LENGTH, WIDTH), y)
    return Program(fresh, (params, x, y), batched, (None, 0, None), moving=1)


def numpy_mix(ns: Namespace, scale: Scale) -> Program:
    """A mix of numpy names: reductions, shapes, comparisons, contractions."""
    np = ns.numpy

    def fresh(salt: float) -> Function:
        def f(x: Any) -> Any:
            x = x * salt
            for _ in range(scale.repeats):
                a = np.concatenate([x, x * 2.0], axis=0)
                b = np.clip(np.stack([a[:4], a[4:8]]), 0.1, 0.9)
                c = np.where(x > np.mean(x), np.exp(x), np.log1p(np.abs(x)))
                d = np.einsum("ij,jk->ik", c, np.transpose(x))
                e = np.cumsum(d, axis=1) + np.max(d, axis=0, keepdims=True)
                g = np.squeeze(np.expand_dims(e, 0), 0).reshape(4, 2, 2)
                h = np.sum(g * np.arange(2.0), axis=(1, 2)) + np.var(b)
                k = np.broadcast_to(h[:, None], (4, 8)) + np.linspace(0.0, 1.0, 8)
                m = np.minimum(np.sqrt(np.abs(k)), np.tanh(k) + np.zeros((4, 8)))
                x = m - np.dot(h, h) * np.square(x) + np.argmax(x, axis=1)[:, None]
            return np.sum(x)

        return f

    return Program(fresh, (ns.array(4, 8),), (ns.array(BATCH, 4, 8),), (0,))


def indexing(ns: Namespace, scale: Scale) -> Program:
    """Slices, integers, index arrays, new axes and functional updates."""
    np = ns.numpy
    index = np.asarray([0, 2, 5])

    def fresh(salt: float) -> Function:
        def f(x: Any) -> Any:
            x = x * salt
            for i in range(scale.repeats):
                a = x[1:5, ::2]
                b = x[3] + x[-1]
                c = x[index] * x[:, None, 0][index]
                d = x[..., 2:6][i % 8]
                x = x.at[3].set(b)
                x = x.at[1:5, ::2].add(a)
                x = x.at[index].set(c)
                x = x + x[::-1] + d[0] + x[index, index][1]
            return np.sum(x)

        return f

    return Program(fresh, (ns.array(8, 8),), (ns.array(BATCH, 8, 8),), (0,))
