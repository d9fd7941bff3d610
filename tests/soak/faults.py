"""Training whose processes are killed at random, against the same undisturbed.

python -m tests.soak.faults --kills 50 --seed 0

Each round trains once over a few kills, half of the rounds always with two processes,
where every loss must be that of the undisturbed run bit for bit, and half with another
number of processes, from 1 to 4, after each kill, where they agree to 1e-5.

python -m tests.soak.faults --cost

times a training step with and without checkpoints that are saved while it goes on.
"""

import argparse
import io
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import frozen

import verax
import verax.numpy as vnp
from tests.distributed.groups import environment
from tests.soak.elastic_training import STEPS
from verax.distributed import run, train

PROCESSES: Final = 2
SIZES: Final = (1, 2, 3, 4)
TOLERANCE: Final = 1e-5
ASKED: Final = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""How a training ends if somebody ends the soak; those that kill send SIGKILL."""
ROUNDS: Final = 6
EACH: Final = 5
"""Kills in a round."""


@frozen
class Round:
    """What one training said, step by step, as often as each step was run."""

    status: int
    losses: tuple[tuple[int, float, int], ...]
    """Step, loss, and how many processes there were."""
    restarts: int
    output: str

    @property
    def curve(self) -> list[float]:
        """The loss of each step, when it was run last."""
        last = {step: loss for step, loss, _ in self.losses}
        return [last[step] for step in sorted(last)]

    @property
    def again(self) -> int:
        """How many steps were run more than once."""
        return len(self.losses) - len(self.curve)


@contextmanager
def variables() -> Iterator[None]:
    """The variables of processes that are tests, while others are started."""
    kept = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def trained(
    kills: int, seed: int, sizes: Callable[[int, int], int] | None = None
) -> Round:
    """Train once, with so many kills."""
    lines, said = io.BytesIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, variables():
        module = ["-m", "tests.soak.elastic_training", folder]
        with redirect_stderr(said):
            status = run(
                [*module, "--kills", str(kills), "--seed", str(seed)],
                PROCESSES,
                restarts=kills,
                sizes=sizes,
                out=lines,
            )
        file = Path(folder) / "losses"
        rows = [line.split() for line in file.read_text().splitlines()]
    losses = [(int(a), float.fromhex(b), int(c)) for a, b, c in rows]
    output = lines.getvalue().decode(errors="replace") + said.getvalue()
    return Round(status, tuple(losses), said.getvalue().count("restart "), output)


def drawn(draw: random.Random, count: int, failed: int) -> int:
    """How many processes a restart has: another number."""
    return draw.choice([size for size in SIZES if size != count])


def wrong(actual: Round, due: Sequence[float], exact: bool) -> list[str]:
    """What is wrong with a training: each loss that it had, however often."""
    if actual.status != 0:
        return [f"status {actual.status}: {actual.output[-2000:]}"]
    out = []
    if len(actual.curve) != STEPS:
        out.append(f"{len(actual.curve)} steps")
    for step, loss, count in actual.losses:
        off = abs(loss - due[step])
        if off > (0 if exact else TOLERANCE * abs(due[step])):
            out.append(f"step {step} with {count} processes: {loss}, not {due[step]}")
    return out


def faults(kills: int, seed: int, tell: Callable[[str], object]) -> int:
    """How many rounds went wrong, until so many processes have been killed."""
    undisturbed = trained(0, seed)
    assert not undisturbed.status, undisturbed.output
    due = undisturbed.curve
    tell(f"undisturbed: the loss falls from {due[0]:.4f} to {due[-1]:.4f}")
    done, failed, number = 0, 0, 0
    while done < kills:
        exact = number % 2 == 0
        began = time.monotonic()
        actual = trained(
            min(EACH, kills - done),
            seed + number,
            None if exact else partial(drawn, random.Random(seed + number)),
        )
        if actual.status in ASKED:
            raise SystemExit(actual.status)
        mistakes = wrong(actual, due, exact)
        failed += bool(mistakes)
        done += actual.restarts
        number += 1
        counts = sorted({count for _, _, count in actual.losses})
        off = max(abs(a - due[i]) / due[i] for i, a, _ in actual.losses)
        tell(
            f"round {number}: {actual.restarts} kills in "
            f"{time.monotonic() - began:.0f} s, {counts} processes, {actual.again} "
            f"steps run again, off by {off:.1e}; {done} kills so far"
        )
        for mistake in mistakes[:5]:
            tell(f"  WRONG: {mistake}")
    return failed


def cost(tell: Callable[[str], object], steps: int, width: int, every: int) -> None:
    """Time steps without checkpoints, and with those that are saved meanwhile."""
    draw = np.random.default_rng(0).normal
    x = vnp.asarray(draw(size=(512, width)).astype(np.float32))

    def loss_of(weights: Any) -> Any:
        h = x
        for w in weights:
            h = vnp.tanh(h @ w)
        return vnp.mean(h**2)

    @verax.jit
    def step(weights: Any, batch: None) -> Any:
        loss, grads = verax.value_and_grad(loss_of)(weights)
        return verax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), loss

    weights = [
        vnp.asarray(draw(size=(width, width)).astype(np.float32) / width**0.5)
        for _ in range(6)
    ]
    float(step(weights, None)[1])

    def taken(every: int) -> tuple[float, float]:
        """Seconds of the clock, and of all cores, from the first step to the last."""
        times: list[tuple[float, float]] = []

        def report(number: int, loss: Any) -> None:
            float(loss)
            times.append((time.monotonic(), time.process_time()))

        with tempfile.TemporaryDirectory() as folder:
            train(
                step,
                weights,
                lambda number: None,
                steps=steps,
                directory=folder,
                every=every,
                report=report,
            )
        (start, used), (end, total) = times[0], times[-1]
        return end - start, total - used

    rounds = np.array([(taken(steps + 1), taken(every)) for _ in range(ROUNDS)])
    # Other programs of the machine only ever add to the time.
    (alone, work), (saving, more) = rounds.min(0) / (steps - 1) * 1e3
    size = sum(w.nbytes for w in weights) / 1e6
    tell(
        f"a step takes {alone:.1f} ms, and {work:.1f} ms of all cores; with a state of "
        f"{size:.0f} MB saved every {every} steps {saving:.1f} ms "
        f"({100 * (saving / alone - 1):+.1f} %) and {more:.1f} ms "
        f"({100 * (more / work - 1):+.1f} %); the least of {ROUNDS} runs of each"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is the number of rounds that went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.faults")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--steps", type=int, default=45, help="of --cost")
    parser.add_argument("--width", type=int, default=768, help="of --cost")
    parser.add_argument("--every", type=int, default=20, help="of --cost")
    options = parser.parse_args(arguments)

    def tell(line: str) -> None:
        print(line, flush=True)

    if options.cost:
        cost(tell, options.steps, options.width, options.every)
        return 0
    return faults(options.kills, options.seed, tell)


if __name__ == "__main__":
    raise SystemExit(main())
