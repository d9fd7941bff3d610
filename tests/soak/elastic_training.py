"""A training run that may be killed at any time: what `tests.soak.faults` starts.

python -m verax.distributed run -n 2 --restarts 9 -m tests.soak.elastic_training \\
    FOLDER --kills 5 --seed 0

While fewer than so many processes have been killed, one of each world kills itself with
SIGKILL at a random time: while it starts, joins, compiles, computes or saves.
"""

import argparse
import os
import random
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P

STEPS, EVERY = 120, 4
ROWS, WIDTH = 12, 24
"""Multiples of 1, 2, 3 and 4: so many processes may share them."""
LIFE = 8.0
"""Seconds within which a process is killed: it joins and compiles in about two."""
PAUSE = 0.05
"""Seconds between steps, which would be over before anybody is killed."""


def kill_at_random(seed: int, restart: int, index: int, count: int) -> None:
    """Let one of the processes of a world kill itself, at some time."""
    draw = random.Random(f"{seed} {restart}")
    victim, seconds = draw.randrange(count), draw.random() * LIFE
    if victim == index:

        def die() -> None:
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=die, daemon=True).start()


def batch_of(step: int, place: NamedSharding) -> Any:
    """The batch of a step, of which each process makes its part."""
    source = np.random.default_rng(step)
    x = source.normal(size=(ROWS, WIDTH)).astype(np.float32)
    y = np.tanh(x[:, :4].sum(1, keepdims=True))
    return tuple(
        [verax.make_array_from_callback(a.shape, place, a.__getitem__) for a in (x, y)]
    )


@verax.jit
def train_step(state: dict[str, Any], batch: Any) -> tuple[dict[str, Any], Any]:
    """Gradient descent with momentum, and with noise from a key in the state."""
    key, now = verax.random.split(state["key"])
    x, y = batch
    x = x + 0.01 * verax.random.normal(now, x.shape)

    def loss_of(weights: Any) -> Any:
        return vnp.mean((vnp.tanh(x @ weights["in"]) @ weights["out"] - y) ** 2)

    loss, grads = verax.value_and_grad(loss_of)(state["weights"])
    speed = verax.tree.map(lambda v, g: 0.9 * v + g, state["speed"], grads)
    weights = verax.tree.map(lambda w, v: w - 0.002 * v, state["weights"], speed)
    return {"weights": weights, "speed": speed, "key": key}, loss


def initial_state(split: NamedSharding, whole: NamedSharding) -> dict[str, Any]:
    """Weights of which each device has a part; a restart has other parts."""
    draw = np.random.default_rng(0).normal
    weights = {
        "in": 0.3 * draw(size=(WIDTH, 4 * WIDTH)).astype(np.float32),
        "out": 0.3 * draw(size=(4 * WIDTH, 1)).astype(np.float32),
    }
    state = {"weights": weights, "speed": verax.tree.map(np.zeros_like, weights)}
    return {
        **verax.device_put(state, split),
        "key": verax.device_put(verax.random.key(0), whole),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and write the loss of each step to the file `losses`, as often as run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    restart = int(os.environ["VERAX_RESTART"])
    if restart < options.kills:
        index, count = (
            int(os.environ[f"VERAX_{n}"]) for n in ("PROCESS_ID", "NUM_PROCESSES")
        )
        kill_at_random(options.seed, restart, index, count)
    verax.distributed.initialize()
    mesh = verax.make_mesh((verax.device_count(),), ("data",), (AxisType.Auto,))
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    def report(step: int, loss: Any) -> None:
        value = float(loss)
        if verax.process_index() == 0:
            with (options.folder / "losses").open("a") as out:
                out.write(f"{step} {value.hex()} {verax.process_count()}\n")
        if options.kills:
            time.sleep(PAUSE)

    verax.distributed.train(
        train_step,
        initial_state(split, whole),
        lambda step: batch_of(step, split),
        steps=STEPS,
        directory=options.folder / "checkpoints",
        every=EVERY,
        report=report,
    )


if __name__ == "__main__":
    main()
