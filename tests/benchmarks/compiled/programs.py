"""Whole programs: a training step, a sampler, a simulation, a filter.

PROGRAMS["kalman"].run(words, *operands)
"""

from typing import Any

import numpy as np

from .workloads import (
    Workload,
    bodies,
    convolutional,
    convolutional_operands,
    labels,
    layer_norm,
    lstm,
    lstm_operands,
    sized,
    transformer,
)


def gpt(w: Any, p: Any, tokens: Any, after: Any) -> Any:
    """The loss of four blocks on a batch of sequences."""
    x = w.take(p["tokens"], tokens) + p["places"]
    for block in p["blocks"]:
        x = transformer(w, block, x, 4)
    x = layer_norm(w, x, p["g"], p["b"])
    logits = x @ w.swap(p["tokens"])
    return w.cross_entropy(w.reshape(logits, (-1, logits.shape[-1])), after)


def gpt_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    width, words, length, batch = 128, 512, 64, 8

    def block() -> dict[str, Any]:
        shapes = dict.fromkeys("qkvo", (width, width))
        shapes |= {"w1": (width, 4 * width), "w2": (4 * width, width)}
        made = {n: (r.randn(*s) / s[0] ** 0.5).astype("f4") for n, s in shapes.items()}
        return made | {
            "g1": np.ones(width, "f4"),
            "b1": np.zeros(width, "f4"),
            "g2": np.ones(width, "f4"),
            "b2": np.zeros(width, "f4"),
        }

    params = {
        "tokens": (r.randn(words, width) / width**0.5).astype("f4"),
        "places": (0.1 * r.randn(length, width)).astype("f4"),
        "blocks": [block() for _ in range(4)],
        "g": np.ones(width, "f4"),
        "b": np.zeros(width, "f4"),
    }
    tokens = r.randint(0, words, (batch, length)).astype("i4")
    return params, tokens, np.roll(tokens, -1, 1).reshape(-1)


def residual(w: Any, p: Any, x: Any) -> Any:
    """A residual block: two convolutions with normalised channels."""
    y = x
    for kernel in p:
        y = w.conv(w.relu(normalised(w, y)), kernel)
    return x + y


def normalised(w: Any, x: Any) -> Any:
    mean = w.mean(w.mean(w.mean(x, 0), 2), 3)
    centred = x - mean
    var = w.mean(w.mean(w.mean(centred * centred, 0), 2), 3)
    return centred / w.sqrt(var + 1e-5)


def mobile(w: Any, p: Any, x: Any) -> Any:
    """A block of a mobile network: wider, depthwise, narrower."""
    y = w.relu(normalised(w, w.conv(x, p[0])))
    y = w.relu(normalised(w, w.conv(y, p[1], 1, p[1].shape[0])))
    return x + w.conv(y, p[2])


def kernels(*shapes: tuple[int, ...]) -> Any:
    def drawn(r: np.random.RandomState) -> tuple[Any, ...]:
        made = [(r.randn(*s) / np.prod(s[1:]) ** 0.5).astype("f4") for s in shapes]
        return made, r.randn(8, shapes[0][1], 32, 32).astype("f4")

    return drawn


def logistic(w: Any, x: Any, y: Any) -> Any:
    """The log density of weights given labels, up to a constant."""

    def of(q: Any) -> Any:
        z = x @ q
        return w.total(y * z - w.log(1 + w.exp(z))) - 0.5 * w.total(q * q)

    return of


def hamiltonian(w: Any, q: Any, moments: Any, x: Any, y: Any) -> Any:
    """Hamiltonian dynamics for a logistic regression, five steps for each moment."""
    density = logistic(w, x, y)

    def sample(q: Any, p: Any) -> Any:
        for _ in range(5):
            p = p + 0.005 * w.value_and_grad(density, q)[1]
            q = q + 0.01 * p
            p = p + 0.005 * w.value_and_grad(density, q)[1]
        return q

    return w.scan(sample, q, moments)


def gaussian_process(w: Any, log_scale: Any, x: Any, y: Any, eye: Any) -> Any:
    """Minus the log likelihood of a Gaussian process with a squared exponential."""
    d = x[:, None] - x[None]
    k = w.exp(-0.5 * w.sum(d * d, -1) / w.exp(log_scale)) + 0.1 * eye
    root = w.cholesky(k)
    z = w.solve_lower(root, y[:, None])
    return 0.5 * w.total(z * z) + w.total(w.log(w.diagonal(root)))


MOVES = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
WEIGHTS = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4


def boltzmann(w: Any, f: Any) -> Any:
    """A step of a lattice Boltzmann method on a torus, with nine velocities."""
    moved = [w.roll(w.roll(f[i], a, 0), b, 1) for i, (a, b) in enumerate(MOVES)]
    density = sum(moved)
    u = sum(a * m for (a, _), m in zip(MOVES, moved, strict=True)) / density
    v = sum(b * m for (_, b), m in zip(MOVES, moved, strict=True)) / density
    square = u * u + v * v
    out = []
    for (a, b), weight, m in zip(MOVES, WEIGHTS, moved, strict=True):
        along = a * u + b * v
        rest = weight * density * (1 + 3 * along + 4.5 * along * along - 1.5 * square)
        out.append(m + 0.6 * (rest - m))
    return w.stack(out, 0)


def kalman(w: Any, seen: Any, a: Any, h: Any, noise: Any, mean: Any, cov: Any) -> Any:
    """The last mean of a Kalman filter with four states and two measurements."""

    def step(state: Any, z: Any) -> Any:
        mean, cov = state
        mean, cov = a @ mean, a @ cov @ w.swap(a) + 0.01 * (noise @ w.swap(noise))
        spread = h @ cov @ w.swap(h) + 0.1 * (h @ w.swap(h))
        gain = w.swap(w.solve(spread, h @ cov))
        return mean + gain @ (z - h @ mean), cov - gain @ h @ cov

    return w.scan(step, (mean, cov), seen)[0]


def kalman_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    a = np.eye(4) + 0.1 * np.eye(4, k=2)
    h = np.eye(2, 4)
    return (
        r.randn(500, 2).astype("f4"),
        a.astype("f4"),
        h.astype("f4"),
        np.eye(4, dtype="f4"),
        np.zeros(4, "f4"),
        np.eye(4, dtype="f4"),
    )


def autoencoder(w: Any, p: Any, x: Any, noise: Any) -> Any:
    """Minus the evidence bound of a variational autoencoder."""
    hidden = w.relu(x @ p[0])
    mean, log_var = hidden @ p[1], hidden @ p[2]
    z = mean + w.exp(0.5 * log_var) * noise
    logits = w.relu(z @ p[3]) @ p[4]
    fit = w.total(w.log(1 + w.exp(logits)) - x * logits)
    return fit - 0.5 * w.total(1 + log_var - mean * mean - w.exp(log_var))


def autoencoder_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    shapes = ((784, 400), (400, 20), (400, 20), (20, 400), (400, 784))
    made = [(r.randn(*s) / (4 * s[0] ** 0.5)).astype("f4") for s in shapes]
    return made, r.rand(128, 784).astype("f4"), r.randn(128, 20).astype("f4")


def policy(w: Any, p: Any, seen: Any, taken: Any, gains: Any, before: Any) -> Any:
    """The clipped objective of a policy with two layers, and the loss of its critic."""
    hidden = w.tanh(w.tanh(seen @ p[0]) @ p[1])
    logits, value = hidden @ p[2], (hidden @ p[3])[:, 0]
    probability = w.sum(w.softmax(logits) * taken, 1)
    ratio = probability / before
    inside = w.where(ratio > 1.2, 0 * ratio + 1.2, ratio)
    inside = w.where(inside < 0.8, 0 * ratio + 0.8, inside)
    least = w.where(ratio * gains < inside * gains, ratio * gains, inside * gains)
    return -w.total(least) + 0.5 * w.total((value - gains) ** 2)


def policy_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    shapes = ((64, 64), (64, 64), (64, 6), (64, 1))
    made = [(r.randn(*s) / s[0] ** 0.5).astype("f4") for s in shapes]
    taken = np.eye(6, dtype="f4")[labels(2048, 6)]
    chance = (r.rand(2048) * 0.3 + 0.05).astype("f4")
    return made, *sized((2048, 64))(r), taken, *sized((2048,))(r), chance


def process_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    return np.float32(0.3), *sized((400, 3), (400,))(r), np.eye(400, dtype="f4")


def lattice_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    weights = np.array(WEIGHTS)[:, None, None]
    return ((weights * (1 + 0.1 * r.rand(9, 256, 256))).astype("f4"),)


def sampler_operands(r: np.random.RandomState) -> tuple[Any, ...]:
    x = r.randn(200, 10)
    y = (x @ r.randn(10) + r.randn(200) > 0).astype("f4")
    return (*sized((10,), (50, 10))(r), x.astype("f4"), y)


PROGRAMS: dict[str, Workload] = {
    "gpt_step": Workload(gpt, gpt_operands, 1),
    "lstm_step": Workload(lstm, lstm_operands, 1),
    "cnn_step": Workload(convolutional, convolutional_operands, 1),
    "residual_step": Workload(residual, kernels((64, 64, 3, 3), (64, 64, 3, 3)), 1),
    "mobile_step": Workload(
        mobile, kernels((192, 32, 1, 1), (192, 1, 3, 3), (32, 192, 1, 1)), 1
    ),
    "hamiltonian": Workload(hamiltonian, sampler_operands),
    "gaussian_process": Workload(gaussian_process, process_operands, 1),
    "lattice_boltzmann": Workload(boltzmann, lattice_operands),
    "bodies": Workload(bodies, sized((1500, 3), (1500, 3))),
    "policy_step": Workload(policy, policy_operands, 1),
    "kalman": Workload(kalman, kalman_operands),
    "autoencoder_step": Workload(autoencoder, autoencoder_operands, 1),
}
