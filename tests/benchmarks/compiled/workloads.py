"""Workloads: single operations, layers and gradients of them, at sizes of practice.

    CASES["softmax"].run(words, drawn("x"))

The operands of a case are made when it is measured; the word `grad` in a name says
that the gradient for the first operands is measured, instead of the value.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

type Run = Callable[..., Any]


class Workload(NamedTuple):
    """A program of words and operands; `grads` of the operands are differentiated."""

    run: Run
    operands: Callable[[np.random.RandomState], tuple[Any, ...]]
    grads: int = 0
    eager: bool = True
    """Whether a library without tracing runs it in a bearable time."""


def sized(*shapes: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
    """Normal float32 arrays of these shapes."""
    return lambda r: tuple(r.randn(*shape).astype("f4") for shape in shapes)


def positive(*shapes: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
    return lambda r: tuple(np.abs(x) + 0.1 for x in sized(*shapes)(r))


def definite(n: int, *more: tuple[int, ...], stack: int = 0) -> Any:
    """A symmetric positive definite matrix, or a stack, and normal arrays."""

    def drawn(r: np.random.RandomState) -> tuple[Any, ...]:
        a = r.randn(*((stack,) if stack else ()), n, n)
        a = a @ np.swapaxes(a, -1, -2) + n * np.eye(n)
        return a.astype("f4"), *sized(*more)(r)

    return drawn


def labels(n: int, classes: int = 10) -> Any:
    return (np.arange(n) % classes).astype("i4")


def layer_norm(w: Any, x: Any, scale: Any, shift: Any) -> Any:
    return (x - w.mean(x, -1)) / w.sqrt(w.var(x, -1) + 1e-5) * scale + shift


def perceptron(w: Any, layers: Any, x: Any, y: Any) -> Any:
    for weight, shift in layers[:-1]:
        x = w.relu(x @ weight + shift)
    return w.cross_entropy(x @ layers[-1][0] + layers[-1][1], y)


def perceptron_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    sizes = (784, 512, 512, 10)
    layers = [
        ((r.randn(m, n) / m**0.5).astype("f4"), r.randn(n).astype("f4"))
        for m, n in pairwise(sizes)
    ]
    return layers, r.randn(128, 784).astype("f4"), labels(128)


def transformer(w: Any, p: Any, x: Any, heads: int = 8) -> Any:
    """A block of a transformer, with the normalisation first."""
    batch, length, width = x.shape
    split = (batch, length, heads, width // heads)
    normal = layer_norm(w, x, p["g1"], p["b1"])
    q, k, v = [
        w.permute(w.reshape(normal @ p[name], split), (0, 2, 1, 3)) for name in "qkv"
    ]
    mixed = w.softmax(q @ w.swap(k) / (width // heads) ** 0.5) @ v
    x = x + w.reshape(w.permute(mixed, (0, 2, 1, 3)), x.shape) @ p["o"]
    inner = w.gelu(layer_norm(w, x, p["g2"], p["b2"]) @ p["w1"])
    return x + inner @ p["w2"]


def transformer_operands(batch: int, length: int, width: int) -> Any:
    def drawn(r: np.random.RandomState) -> tuple[Any, ...]:
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys("qkvo", (width, width))
        shapes |= {"w1": (width, 4 * width), "w2": (4 * width, width)}
        shapes |= {name: (width,) for name in ("g1", "b1", "g2", "b2")}
        params = {
            name: (r.randn(*s) / s[0] ** 0.5).astype("f4") for name, s in shapes.items()
        }
        return params, r.randn(batch, length, width).astype("f4")

    return drawn


def attention(w: Any, q: Any, k: Any, v: Any) -> Any:
    return w.softmax(q @ w.swap(k) / 8) @ v


def convolutional(w: Any, kernels: Any, x: Any, y: Any) -> Any:
    for kernel in kernels[:-1]:
        x = w.max_pool(w.relu(w.conv(x, kernel)))
    return w.cross_entropy(w.reshape(x, (x.shape[0], -1)) @ kernels[-1], y)


def convolutional_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    shapes = ((32, 3, 3, 3), (64, 32, 3, 3), (64, 64, 3, 3), (1024, 10))
    kernels = [
        (r.randn(*s) / (np.prod(s[1:]) if len(s) > 2 else s[0]) ** 0.5).astype("f4")
        for s in shapes
    ]
    return kernels, r.randn(32, 3, 32, 32).astype("f4"), labels(32)


def black_scholes(w: Any, s: Any, k: Any, t: Any) -> Any:
    width = 0.3 * w.sqrt(t)
    d = (w.log(s / k) + 0.02 * t) / width
    worth = k * w.exp(-0.02 * t)
    return s * w.sigmoid(1.7 * d) - worth * w.sigmoid(1.7 * (d - width))


def lstm(w: Any, p: Any, xs: Any, h: Any, c: Any) -> Any:
    n = h.shape[-1]

    def step(state: Any, x: Any) -> Any:
        h, c = state
        z = x @ p[0] + h @ p[1] + p[2]
        i, f, o, u = (z[:, k * n : (k + 1) * n] for k in range(4))
        c = w.sigmoid(f) * c + w.sigmoid(i) * w.tanh(u)
        return w.sigmoid(o) * w.tanh(c), c

    return w.scan(step, (h, c), xs)[0]


def lstm_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    a, b, c = sized((128, 512), (128, 512), (512,))(r)
    return (a / 11, b / 11, c), *sized((100, 16, 128), (16, 128), (16, 128))(r)


def bodies(w: Any, p: Any, v: Any) -> Any:
    """A step of bodies that attract each other."""
    d = p[None] - p[:, None]
    r2 = w.sum(d * d, -1) + 0.01
    a = w.sum(d / (r2 * w.sqrt(r2))[..., None], 1)
    return p + 0.01 * v, v + 0.01 * a


def adam(w: Any, ps: Any, gs: Any, ms: Any, vs: Any) -> Any:
    def step(p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.001 * m / (w.sqrt(v) + 1e-8), m, v

    return tuple(
        out for four in zip(ps, gs, ms, vs, strict=True) for out in step(*four)
    )


def rows(r: np.random.RandomState, *more: tuple[int, ...]) -> tuple[Any, ...]:
    table, indices = r.randn(50000, 64), r.randint(0, 50000, 100000)
    return table.astype("f4"), indices.astype("i4"), *sized(*more)(r)


def segments(r: np.random.RandomState) -> tuple[Any, ...]:
    ids = np.sort(r.randint(0, 1000, 1_000_000)).astype("i4")
    return r.randn(1_000_000).astype("f4"), ids


def scalars(r: np.random.RandomState) -> tuple[Any, ...]:
    places = r.randint(0, 1_000_000, 1_000_000).astype("i4")
    return r.randn(1_000_000).astype("f4"), places


def stencil(w: Any, x: Any) -> Any:
    rolled = [w.roll(x, n, axis) for n in (1, -1) for axis in (0, 1)]
    return rolled[0] + rolled[1] + rolled[2] + rolled[3] - 4 * x


LINE = (1_000_000,)
ROWS = (4096, 1024)
IMAGES = (8, 64, 32, 32)
HEADS = (1, 8, 1024, 64)
SMALL = (512, 16, 16)

WORKLOADS: dict[str, Workload] = {
    "matmul_256": Workload(lambda w, a, b: a @ b, sized((256, 256), (256, 256))),
    "matmul_1024": Workload(lambda w, a, b: a @ b, sized((1024, 1024), (1024, 1024))),
    "matmul_333": Workload(lambda w, a, b: a @ b, sized((333, 517), (517, 95))),
    "matmul_bf16": Workload(
        lambda w, a, b: w.bfloat16(a) @ w.bfloat16(b), sized((512, 512), (512, 512))
    ),
    "matmul_small": Workload(lambda w, a, b: a @ b, sized(SMALL, SMALL)),
    "matvec": Workload(lambda w, a, b: a @ b, sized((2048, 2048), (2048,))),
    "perceptron_grad": Workload(perceptron, perceptron_operands, 1),
    "transformer": Workload(transformer, transformer_operands(4, 128, 256)),
    "transformer_grad": Workload(transformer, transformer_operands(4, 128, 256), 1),
    "transformer_small_grad": Workload(transformer, transformer_operands(2, 32, 64), 1),
    "attention": Workload(attention, sized(HEADS, HEADS, HEADS)),
    "attention_grad": Workload(attention, sized(HEADS, HEADS, HEADS), 3),
    "conv_3x3": Workload(lambda w, x, k: w.conv(x, k), sized(IMAGES, (64, 64, 3, 3))),
    "conv_3x3_grad": Workload(
        lambda w, x, k: w.relu(w.conv(x, k)), sized(IMAGES, (64, 64, 3, 3)), 2
    ),
    "conv_stride_grad": Workload(
        lambda w, x, k: w.relu(w.conv(x, k, 2)), sized(IMAGES, (64, 64, 3, 3)), 2
    ),
    "conv_depthwise": Workload(
        lambda w, x, k: w.conv(x, k, 1, 128), sized((8, 128, 32, 32), (128, 1, 3, 3))
    ),
    "conv_depthwise_grad": Workload(
        lambda w, x, k: w.conv(x, k, 1, 128),
        sized((8, 128, 32, 32), (128, 1, 3, 3)),
        2,
    ),
    "conv_groups_grad": Workload(
        lambda w, x, k: w.conv(x, k, 1, 16), sized(IMAGES, (64, 4, 3, 3)), 2
    ),
    "conv_1x1": Workload(
        lambda w, x, k: w.conv(x, k), sized((8, 256, 16, 16), (256, 256, 1, 1))
    ),
    "conv_7x7": Workload(
        lambda w, x, k: w.conv(x, k), sized((4, 3, 128, 128), (32, 3, 7, 7))
    ),
    "max_pool": Workload(lambda w, x: w.max_pool(x), sized((8, 64, 64, 64))),
    "max_pool_grad": Workload(lambda w, x: w.max_pool(x), sized((8, 64, 64, 64)), 1),
    "convolutional_grad": Workload(convolutional, convolutional_operands, 1),
    "layer_norm": Workload(layer_norm, sized((4096, 512), (512,), (512,))),
    "layer_norm_grad": Workload(layer_norm, sized((4096, 512), (512,), (512,)), 3),
    "softmax": Workload(lambda w, x: w.softmax(x), sized(ROWS)),
    "softmax_grad": Workload(lambda w, x, c: w.softmax(x) * c, sized(ROWS, ROWS), 1),
    "logsumexp": Workload(lambda w, x: w.logsumexp(x), sized(ROWS)),
    "logsumexp_grad": Workload(lambda w, x: w.logsumexp(x), sized(ROWS), 1),
    "gelu": Workload(lambda w, x: w.gelu(x), sized(LINE)),
    "gelu_grad": Workload(lambda w, x: w.gelu(x), sized(LINE), 1),
    "exp_of_sine_grad": Workload(lambda w, x: w.exp(w.sin(x)), sized(LINE), 1),
    "add": Workload(lambda w, x, y: x + y, sized(LINE, LINE)),
    "polynomial": Workload(
        lambda w, x: ((x * 0.1 + 0.2) * x + 0.3) * x - 1, sized(LINE)
    ),
    "black_scholes": Workload(black_scholes, positive(LINE, LINE, LINE)),
    "black_scholes_grad": Workload(black_scholes, positive(LINE, LINE, LINE), 3),
    "sum": Workload(lambda w, x: w.total(x), sized((10_000_000,))),
    "sum_rows": Workload(lambda w, x: w.sum(x, 1), sized(ROWS)),
    "sum_columns": Workload(lambda w, x: w.sum(x, 0), sized(ROWS)),
    "sum_middle": Workload(lambda w, x: w.sum(x, 1), sized((100, 200, 150))),
    "max_columns": Workload(lambda w, x: w.max(x, 0), sized(ROWS)),
    "var_columns": Workload(lambda w, x: w.var(x, 0), sized(ROWS)),
    "var_rows": Workload(lambda w, x: w.var(x, 1), sized(ROWS)),
    "sort": Workload(lambda w, x: w.sort(x), sized(LINE)),
    "sort_rows": Workload(lambda w, x: w.sort(x), sized((1000, 1000))),
    "argsort": Workload(lambda w, x: w.argsort(x), sized(LINE)),
    "argmax": Workload(lambda w, x: w.argmax(x), sized((1000, 1000))),
    "top_k": Workload(lambda w, x: w.top_k(x), sized((1000, 1000))),
    "cumsum": Workload(lambda w, x: w.cumsum(x), sized(LINE)),
    "cumsum_rows": Workload(lambda w, x: w.cumsum(x), sized((1000, 1000))),
    "cumsum_rows_grad": Workload(
        lambda w, x, c: w.cumsum(x) * c, sized((1000, 1000), (1000, 1000)), 1
    ),
    "embedding": Workload(lambda w, t, i: w.take(t, i), rows),
    "embedding_grad": Workload(
        lambda w, t, i, v: w.take(t, i) * v, lambda r: rows(r, (100000, 64)), 1
    ),
    "scatter_add": Workload(
        lambda w, t, i, v: w.add_at(t, i, v), lambda r: rows(r, (100000, 64))
    ),
    "segment_sum": Workload(lambda w, v, i: w.segment_sum(v, i, 1000), segments),
    "gather_scalars": Workload(lambda w, t, i: w.take(t, i), scalars),
    "transpose": Workload(lambda w, x: w.swap(x) + 1.0, sized((2048, 2048))),
    "transpose_odd": Workload(lambda w, x: w.swap(x) * 2.0, sized((1023, 777))),
    "permute": Workload(
        lambda w, x: w.permute(x, (0, 3, 1, 2)) * 2.0, sized((8, 64, 64, 48))
    ),
    "concatenate": Workload(
        lambda w, a, b: w.concat([a, b], 1), sized((1000, 500), (1000, 500))
    ),
    "stencil": Workload(stencil, sized((1024, 1024))),
    "stencil_grad": Workload(lambda w, x: stencil(w, x) ** 2, sized((1024, 1024)), 1),
    "fft": Workload(lambda w, x: w.abs_fft(x), sized((1 << 18,))),
    "fft_rows": Workload(lambda w, x: w.abs_fft(x), sized((1000, 256))),
    "cholesky": Workload(lambda w, x: w.cholesky(x), definite(512)),
    "cholesky_grad": Workload(lambda w, x: w.cholesky(x), definite(256), 1),
    "solve": Workload(lambda w, a, b: w.solve(a, b), definite(512, (512, 8))),
    "solve_grad": Workload(lambda w, a, b: w.solve(a, b), definite(256, (256, 8)), 2),
    "inv": Workload(lambda w, x: w.inv(x), definite(512)),
    "singular_values": Workload(lambda w, x: w.singular(x), sized((256, 256))),
    "eigenvalues": Workload(lambda w, x: w.eigenvalues(x), definite(256)),
    "cholesky_stack": Workload(lambda w, x: w.cholesky(x), definite(8, stack=1000)),
    "inv_stack": Workload(lambda w, x: w.inv(x), definite(8, stack=1000)),
    "lstm": Workload(lstm, lstm_operands),
    "lstm_grad": Workload(lstm, lstm_operands, 1),
    "scan_scalar": Workload(
        lambda w, xs, c: w.scan(lambda c, x: c * 0.9 + x, c, xs),
        lambda r: (*sized((10_000,))(r), np.float32(0)),
        eager=False,
    ),
    "scan_logistic": Workload(
        lambda w, xs, c: w.scan(
            lambda c, x: 3.7 * c * (1 - c) + 1e-3 * w.sin(x), c, xs
        ),
        lambda r: (*sized((10_000,))(r), np.float32(0.5)),
        eager=False,
    ),
    "scan_vector": Workload(
        lambda w, xs, c: w.scan(lambda c, x: w.tanh(c) * 0.9 + x, c, xs),
        sized((2000, 64), (64,)),
        eager=False,
    ),
    "bodies": Workload(bodies, sized((1000, 3), (1000, 3))),
    "distances": Workload(
        lambda w, a, b: w.sqrt(w.sum((a[:, None] - b[None]) ** 2, -1)),
        sized((1000, 64), (1000, 64)),
    ),
    "adam": Workload(
        adam, lambda r: tuple([*positive(*[(50000,)] * 20)(r)] for _ in range(4))
    ),
}
