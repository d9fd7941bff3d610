"""Data-parallel training in several processes: each has a part of every batch.

    python -m verax.distributed run -n 2 --devices 2 docs/examples/data_parallel.py

The program is that of one process: the gradient of a mean over a batch that is divided
over all devices contains the sum over them, and XLA puts it there.
"""

from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from verax.sharding import NamedSharding, PartitionSpec as P

STEPS, BATCH, FEATURES, HIDDEN = 20, 32, 8, 16


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    """The whole batch of a step."""
    x = np.random.default_rng(step).normal(size=(BATCH, FEATURES)).astype(np.float32)
    return x, np.sin(x.sum(1))


def loss_of(weights: dict[str, Any], x: Any, y: Any) -> Any:
    hidden = vnp.tanh(x @ weights["in"])
    return vnp.mean((hidden @ weights["out"] - y) ** 2)


@verax.jit
def train_step(weights: dict[str, Any], x: Any, y: Any) -> Any:
    loss, grads = verax.value_and_grad(loss_of)(weights, x, y)
    return verax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), loss


def train() -> list[float]:
    """The losses, the same in every process and in one process alone."""
    mesh = verax.make_mesh((verax.device_count(),), ("batch",))
    split, whole = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
    keys = verax.random.split(verax.random.key(0))
    weights = verax.device_put(
        {
            "in": 0.3 * np.asarray(verax.random.normal(keys[0], (FEATURES, HIDDEN))),
            "out": 0.3 * np.asarray(verax.random.normal(keys[1], (HIDDEN,))),
        },
        whole,
    )
    index, count = verax.process_index(), verax.process_count()
    own = slice(index * BATCH // count, (index + 1) * BATCH // count)
    losses = []
    for step in range(STEPS):
        x, y = batch_of(step)  # a real program reads its own part only
        data = verax.make_array_from_process_local_data(split, (x[own], y[own]))
        weights, loss = train_step(weights, *data)
        losses.append(float(loss))
    return losses


if __name__ == "__main__":
    verax.distributed.initialize()
    print(f"loss {train()[-1]:.3f} on {verax.device_count()} devices")
