"""Programs over meshes with the axes `data` and `model`, whose plans are held to XLA.

The idea: each is a function with the types of its arguments, split over axes by name,
so that any mesh with these axes will do::

    fun, arguments = PROGRAMS["fsdp"]()
    verax.debug.plan(fun, mesh=mesh)(*arguments)
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import verax
import verax.numpy as vnp
from verax import lax, nn
from verax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

type Step = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function, and the types of its arguments."""

AXES: Final = ("data", "model")
AUTO: Final = (AxisType.Auto,) * 2


def mesh_of(data: int, model: int) -> AbstractMesh:
    """A mesh of so many devices that are not there."""
    return AbstractMesh((data, model), AXES, axis_types=AUTO)


ANY: Final = mesh_of(2, 2)


def typed(shape: tuple[int, ...], *spec: Any, dtype: Any = vnp.float32) -> Any:
    """The type of an array, split so; plans move it to their mesh."""
    place = NamedSharding(ANY, P(*spec))
    return verax.ShapeDtypeStruct(shape, dtype, sharding=place)


def trained(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A step of plain gradient descent."""

    def step(weights: Any, *batch: Any) -> Any:
        slope = verax.grad(loss)(weights, *batch)
        return verax.tree.map(
            lambda w, d: w - (0.1 * d).astype(w.dtype), weights, slope
        )

    return verax.jit(step, donate_argnums=0)


# -----------------------------------------------------------------------------
# Networks of products.


def squares(layers: Any, x: Any) -> Any:
    for first, second in layers:
        x = x + nn.gelu(x @ first) @ second
    return vnp.mean(x**2)


def data_parallel(width: int = 256, batch: int = 1024) -> Step:
    layers = [(typed((width, 4 * width)), typed((4 * width, width)))] * 2
    return trained(squares), (layers, typed((batch, width), "data"))


def tensor_parallel(width: int = 256, batch: int = 1024) -> Step:
    first, second = (None, "model"), ("model", None)
    pair = typed((width, 4 * width), *first), typed((4 * width, width), *second)
    return trained(squares), ([pair] * 2, typed((batch, width), "data"))


def stacked(layers: Any, x: Any) -> Any:
    def layer(x: Any, pair: Any) -> Any:
        first, second = pair
        return x + nn.gelu(x @ first) @ second, None

    x, _ = lax.scan(layer, x, layers)
    return vnp.mean(x.astype(vnp.float32) ** 2)


def fsdp(width: int = 256, batch: int = 1024, dtype: Any = vnp.float32) -> Step:
    first = typed((8, width, 4 * width), None, AXES, None, dtype=dtype)
    second = typed((8, 4 * width, width), None, None, AXES, dtype=dtype)
    x = typed((batch, width), AXES, dtype=dtype)
    return trained(stacked), ((first, second), x)


def fsdp_half(width: int = 256, batch: int = 1024) -> Step:
    first = typed((8, width, 4 * width), None, "data", "model", dtype=vnp.bfloat16)
    second = typed((8, 4 * width, width), None, "model", "data", dtype=vnp.bfloat16)
    x = typed((batch, width), "data", dtype=vnp.bfloat16)
    return trained(stacked), ((first, second), x)


# -----------------------------------------------------------------------------
# Transformers.


def normed(x: Any) -> Any:
    wide = x.astype(vnp.float32)
    scale = lax.rsqrt(vnp.mean(wide**2, -1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def attention(w: Any, x: Any) -> Any:
    q, k, v = [vnp.einsum("bld,dhk->blhk", x, w[name]) for name in "qkv"]
    scores = vnp.einsum("blhk,bmhk->bhlm", q, k) / np.sqrt(q.shape[-1])
    seen = vnp.tri(x.shape[1], dtype=bool)
    weights = nn.softmax(vnp.where(seen, scores, -1e9).astype(vnp.float32))
    mixed = vnp.einsum("bhlm,bmhk->blhk", weights.astype(x.dtype), v)
    return vnp.einsum("blhk,hkd->bld", mixed, w["o"])


def kept(x: Any) -> Any:
    """Activations, which stay split along the batch alone."""
    return lax.with_sharding_constraint(x, P("data"))


def block(x: Any, w: Any) -> Any:
    x = kept(x) + attention(w, normed(x))
    return x + nn.gelu(normed(x) @ w["up"]) @ w["down"], None


def gpt_weights(
    depth: int, width: int, heads: int, words: int, over: Any, dtype: Any
) -> Any:
    """The types of parameters: heads over `model`, and the width along `over`."""
    size = width // heads

    def one(shape: tuple[int, ...], *spec: Any) -> Any:
        return typed((depth, *shape), None, *spec, dtype=dtype)

    layers = {
        **{name: one((width, heads, size), over, "model") for name in "qkv"},
        "o": one((heads, size, width), "model", None, over),
        "up": one((width, 4 * width), over, "model"),
        "down": one((4 * width, width), "model", over),
    }
    return {
        "layers": layers,
        "words": typed((words, width), "model", dtype=dtype),
    }


def gpt_loss(w: Any, tokens: Any) -> Any:
    x = kept(w["words"][tokens])
    x, _ = lax.scan(verax.checkpoint(block), x, w["layers"])
    scores = (normed(kept(x)) @ w["words"].T).astype(vnp.float32)
    known = vnp.sum(nn.one_hot(tokens, scores.shape[-1]) * scores, -1)
    return vnp.mean(nn.logsumexp(scores, axis=-1) - known)


def adam(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A step of Adam; the moments are float32."""

    def adam_step(params: Any, moments: Any, data: Any) -> Any:
        slopes = verax.grad(loss)(params, data)

        def one(w: Any, m: Any, v: Any, d: Any) -> Any:
            d = d.astype(vnp.float32)
            m, v = 0.9 * m + 0.1 * d, 0.99 * v + 0.01 * d * d
            return (w - 1e-3 * m * lax.rsqrt(v + 1e-8)).astype(w.dtype), m, v

        first, second = moments
        out = verax.tree.map(one, params, first, second, slopes)
        params, *moments = verax.tree.transpose(
            verax.tree.structure(params), verax.tree.structure((0, 0, 0)), out
        )
        return params, tuple(moments)

    return adam_step


def gpt_training(
    depth: int = 4,
    width: int = 256,
    heads: int = 16,
    words: int = 1024,
    batch: int = 64,
    length: int = 64,
    over: Any = None,
    dtype: Any = vnp.float32,
) -> Step:
    params = gpt_weights(depth, width, heads, words, over, dtype)
    wide = gpt_weights(depth, width, heads, words, over, vnp.float32)
    tokens = typed((batch, length), "data", dtype=vnp.int32)
    step = verax.jit(adam(gpt_loss), donate_argnums=(0, 1))
    return step, (params, (wide, wide), tokens)


def gpt_sharded(**sizes: Any) -> Step:
    return gpt_training(**{"over": "data", "dtype": vnp.bfloat16, **sizes})


def sequence_parallel(batch: int = 32, length: int = 256, width: int = 256) -> Step:
    def forward(w: Any, x: Any) -> Any:
        return x + attention(w, normed(x))

    shapes = {name: (width, 16, width // 16) for name in "qkv"}
    shapes["o"] = (16, width // 16, width)
    w = {name: typed(shape) for name, shape in shapes.items()}
    return verax.jit(forward), (w, typed((batch, length, width), "data", "model"))


def mixture(tokens: int = 2048, width: int = 128, experts: int = 16) -> Step:
    """Experts over `model`, to which tokens go by a table of choices."""

    def forward(w: Any, x: Any, chosen: Any) -> Any:
        room = 2 * tokens // experts
        sent = nn.one_hot(chosen, experts)
        place = vnp.cumsum(sent, 0) * sent
        table = nn.one_hot(place - 1, room) * sent[..., None]
        given = vnp.einsum("td,tec->ecd", x, table)
        given = lax.with_sharding_constraint(given, P("model"))
        out = vnp.einsum(
            "ecf,efd->ecd", nn.relu(vnp.einsum("ecd,edf->ecf", given, w[0])), w[1]
        )
        return vnp.einsum("ecd,tec->td", out, table)

    first = typed((experts, width, 4 * width), "model")
    second = typed((experts, 4 * width, width), "model")
    chosen = typed((tokens,), "data", dtype=vnp.int32)
    return verax.jit(forward), ((first, second), typed((tokens, width), "data"), chosen)


# -----------------------------------------------------------------------------
# Others.


def convolutions(batch: int = 128, width: int = 16, size: int = 24) -> Step:
    names = ("NHWC", "HWIO", "NHWC")

    def loss(kernels: Any, x: Any) -> Any:
        for kernel in kernels:
            x = x + nn.relu(
                lax.conv_general_dilated(
                    x, kernel, (1, 1), "SAME", dimension_numbers=names
                )
            )
        return vnp.mean(x**2)

    kernel = typed((3, 3, width, width))
    return trained(loss), ([kernel] * 4, typed((batch, size, size, width), AXES))


def recurrent(steps: int = 50, batch: int = 128, width: int = 128) -> Step:
    def loss(w: Any, xs: Any) -> Any:
        zero = vnp.zeros((batch, width))

        def step(h: Any, x: Any) -> Any:
            return vnp.tanh(x @ w["in"] + h @ w["state"]), None

        return vnp.mean(lax.scan(step, zero, xs)[0] ** 2)

    w = {name: typed((width, width), None, "model") for name in ("in", "state")}
    return trained(loss), (w, typed((steps, batch, width), None, "data"))


def turned(size: int = 1024) -> Step:
    """Fourier transforms along both dimensions: all of an array goes elsewhere."""

    def both(x: Any) -> Any:
        x = vnp.fft.fft(x, axis=2)
        x = lax.with_sharding_constraint(x, P("data", None, "model"))
        return vnp.fft.fft(x, axis=1).real

    return verax.jit(both), (typed((32, size, 64), "data", "model"),)


def by_hand(width: int = 256, batch: int = 1024) -> Step:
    """Weights of all gathered for the product, slopes scattered, in `shard_map`."""

    def step(w: Any, x: Any) -> Any:
        whole = lax.all_gather(w, "data", axis=0, tiled=True)
        y = vnp.tanh(x @ whole)
        slope = x.T @ (y * (1 - y * y))
        slope = lax.psum_scatter(slope, "data", scatter_dimension=0, tiled=True)
        return w - 0.1 * lax.psum(slope, "model")

    def run(w: Any, x: Any) -> Any:
        specs = P("data"), P(AXES)
        return verax.shard_map(step, in_specs=specs, out_specs=P("data"))(w, x)

    return run, (typed((width, width), "data"), typed((batch, width), AXES))


PROGRAMS: Final[Mapping[str, Callable[..., Step]]] = MappingProxyType(
    {
        "data parallel": data_parallel,
        "tensor parallel": tensor_parallel,
        "fsdp in a loop": fsdp,
        "fsdp and tensor, bfloat16": fsdp_half,
        "gpt, Adam": gpt_training,
        "gpt, Adam, fsdp, bfloat16": gpt_sharded,
        "sequence parallel": sequence_parallel,
        "mixture of experts": mixture,
        "convolutions": convolutions,
        "recurrent": recurrent,
        "Fourier transforms": turned,
        "shard_map": by_hand,
    }
)
