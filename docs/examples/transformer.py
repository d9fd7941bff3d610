"""A transformer that learns to write like the Python reference, letter by letter.

The text is the language reference that every Python brings along for `help()` (module
pydoc_data.topics, PSF licence). The blocks are equal, so their weights are stacked and
`scan` runs through them: the program is as large for one block as for a hundred::

    python -m docs.examples.transformer --steps 1000 --out build/transformer.svg

Adam is written out, the step is compiled once, and the old state is donated to the new.
"""

import argparse
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

import verax
import verax.numpy as vnp
from docs.examples.drawing import Panel, label, legend, write_svg
from verax import Array, lax, nn, random, tree

type Numbers = Array | NDArray[Any]
type Params = dict[str, Any]

SEED = 7
BLOCKS, WIDTH, HEADS, CONTEXT, BATCH = 3, 96, 4, 64, 8
RATE = 6e-3
TEMPERATURE = 0.5
LENGTH, COLUMNS, SHOWN = 480, 96, 24
RULED = re.compile(r"[*=|+~-]{2}|^[|]$")


@frozen
class Run:
    """The losses, and what the network wrote after what it had seen."""

    losses: NDArray[Any]
    unseen: NDArray[Any]
    seen: NDArray[np.int32]
    letters: NDArray[np.int32]
    chances: NDArray[np.float32]
    attention: NDArray[np.float32]


@frozen
class Text:
    """Characters as numbers, the last tenth kept from training."""

    alphabet: str
    training: NDArray[np.int32]
    unseen: NDArray[np.int32]

    def decode(self, numbers: NDArray[Any]) -> str:
        """The characters of numbers."""
        return "".join(self.alphabet[i] for i in numbers)


def load() -> Text:
    """The topics in the order of their names, without tables, with single spaces."""
    words = " ".join(text for _, text in sorted(topics.items())).split()
    whole = " ".join(w for w in words if w.isascii() and not RULED.search(w))
    alphabet = "".join(sorted(set(whole)))
    numbers = np.array([alphabet.index(c) for c in whole], np.int32)
    cut = len(numbers) * 9 // 10
    return Text(alphabet, numbers[:cut], numbers[cut:])


def init_params(key: Array, letters: int) -> Params:
    """Small random weights; those of the blocks have the block as first axis."""
    keys = iter(random.split(key, 7))

    def normal(*shape: int) -> Array:
        return random.normal(next(keys), shape) / float(shape[-2] ** 0.5)

    # Multiples of WIDTH: of what comes in, and of what goes out.
    shapes = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (4, 1)}
    blocks = {k: normal(BLOCKS, m * WIDTH, n * WIDTH) for k, (m, n) in shapes.items()}
    return {
        "letters": random.normal(next(keys), (letters, WIDTH)) * 0.5,
        "places": random.normal(next(keys), (CONTEXT, WIDTH)) * 0.5,
        "blocks": blocks,
        "scores": normal(WIDTH, letters),
    }


def normalise(x: Array) -> Array:
    """Each vector with a root mean square of one."""
    return x * lax.rsqrt(vnp.square(x).mean(-1, keepdims=True) + 1e-6)


def block(x: Array, w: dict[str, Array]) -> tuple[Array, Array]:
    """Attention to what came before, then a small network; also the attention."""
    length = len(x)
    q, k, v = (
        part.reshape(length, HEADS, -1).swapaxes(0, 1)
        for part in vnp.split(normalise(x) @ w["qkv"], 3, axis=1)
    )
    fit = q @ k.swapaxes(1, 2) / k.shape[-1] ** 0.5
    attention = nn.softmax(vnp.where(vnp.tri(length, dtype=bool), fit, -vnp.inf))
    x = x + (attention @ v).swapaxes(0, 1).reshape(length, WIDTH) @ w["out"]
    return x + nn.gelu(normalise(x) @ w["up"]) @ w["down"], attention


def predict(params: Params, letters: Numbers) -> tuple[Array, Array]:
    """Scores of what follows each letter (length, alphabet), and all attention."""
    x = params["letters"][letters] + params["places"][: len(letters)]
    x, attention = lax.scan(block, x, params["blocks"])
    return normalise(x) @ params["scores"], attention


def loss(params: Params, batch: Numbers) -> Array:
    """The mean surprise about the next letter, in nats, in rows of CONTEXT + 1."""

    def surprise(row: Array) -> Array:
        logs = nn.log_softmax(predict(params, row[:-1])[0])
        return -vnp.take_along_axis(logs, row[1:, None], 1).mean()

    return verax.vmap(surprise)(vnp.asarray(batch)).mean()


type State = tuple[Params, Params, Params, Array]


def train_step(state: State, batch: Numbers, steps: Numbers) -> tuple[State, Array]:
    """One step of Adam (Kingma and Ba 2015); its rate rises, then falls to zero."""
    params, mean, square, step = state
    value, gradient = verax.value_and_grad(loss)(params, batch)
    step = step + 1
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
    rate = RATE * vnp.minimum(step / 50, 0.5 + 0.5 * vnp.cos(vnp.pi * step / steps))
    rate = rate * vnp.sqrt(1 - 0.99**step) / (1 - 0.9**step)
    moves = tree.map(lambda m, s: rate * m / (vnp.sqrt(s) + 1e-8), mean, square)
    params = tree.map(vnp.subtract, params, moves)
    return (params, mean, square, step), value


def batches(text: NDArray[np.int32], count: int) -> Iterator[NDArray[np.int32]]:
    """Random windows of the text, always the same ones."""
    generator = np.random.default_rng(SEED)
    for _ in range(count):
        first = generator.integers(0, len(text) - CONTEXT, (BATCH, 1))
        yield text[first + np.arange(CONTEXT + 1)]


def train(
    screen: Console, text: Text, steps: int
) -> tuple[Params, NDArray[Any], NDArray[Any]]:
    """The weights, the loss of every step, and the loss on unseen text now and then."""
    params = init_params(random.key(SEED), len(text.alphabet))
    zeros = tree.map(vnp.zeros_like, params)
    state = (params, zeros, tree.map(vnp.copy, zeros), vnp.zeros(()))
    step, measure = verax.jit(train_step, donate_argnums=0), verax.jit(loss)
    checks = np.concatenate(list(batches(text.unseen, 8)))
    losses, unseen, total = [], [], vnp.float32(steps)
    with Progress(console=screen) as bar:
        task = bar.add_task("compiling", total=steps)
        for batch in batches(text.training, steps):
            state, value = step(state, batch, total)
            losses.append(value)
            if (len(losses) - 1) % 50 == 0 or len(losses) == steps:
                unseen.append((len(losses), float(measure(state[0], checks))))
                bar.update(task, description=f"loss on unseen text {unseen[-1][1]:.2f}")
            bar.advance(task)
    return state[0], np.asarray(vnp.stack(losses)), np.array(unseen)


def write(params: Params, start: NDArray[np.int32], length: int) -> tuple[Array, Array]:
    """Draw letters one after the other; each with the probability that it had."""

    def draw(seen: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
        scores = predict(params, seen)[0][-1] / TEMPERATURE
        letter = random.categorical(key, scores)
        return vnp.append(seen[1:], letter), (letter, nn.softmax(scores)[letter])

    keys = random.split(random.key(SEED + 1), length)
    _, (letters, chances) = lax.scan(draw, vnp.asarray(start), keys)
    return letters, chances


def draw(path: Path, text: Text, run: Run) -> None:
    """The loss, the attention of one head, and what the network wrote."""
    steps = np.arange(1, len(run.losses) + 1)
    ends = (float(min(run.losses)) // 0.5 * 0.5, float(max(run.losses)))
    left = Panel((60, 64, 420, 288), (0, float(len(steps))), ends)
    side = 288 / SHOWN
    right = Panel((592, 64, 288, 288), (0, SHOWN), (0, SHOWN))
    letters = [
        label(588, 64 + side * (i + 0.8), c, "mono", "end")
        + label(592 + side * (i + 0.5), 58, c, "mono", "middle")
        for i, c in enumerate(text.decode(run.seen[:SHOWN]))
    ]
    written = text.decode(run.letters)
    rows = [written[i : i + COLUMNS] for i in range(0, len(written), COLUMNS)]
    doubt = np.zeros(len(rows) * COLUMNS)
    doubt[: len(written)] = 0.5 - 0.5 * run.chances
    paper = Panel((60, 430, 840, 20.0 * len(rows)), (0, 1), (0, 1))
    write_svg(
        path,
        (960, 455 + 20 * len(rows)),
        "A transformer learns the Python reference",
        left.axes("step", "nats for each letter", "Loss"),
        left.line(steps, run.losses, "s0", 1, 0.35),
        left.line(run.unseen[:, 0], run.unseen[:, 1], "s1", 2.2),
        legend(330, 90, "a training batch", "unseen text"),
        label(592, 34, "Where one head looks: row by row", "head"),
        right.cells(0.15 * np.tri(SHOWN), "ground"),
        right.cells(run.attention[:SHOWN, :SHOWN], "f3"),
        *letters,
        label(60, 414, "What it writes, shaded where it was unsure", "head"),
        paper.cells(doubt.reshape(-1, COLUMNS), "f1"),
        *(
            label(60, 444 + 20 * i, row, "mono", width=840 * len(row) / COLUMNS)
            for i, row in enumerate(rows)
        ),
    )


def main(argv: Sequence[str] | None = None) -> Run:
    """Train, write, draw."""
    parser = argparse.ArgumentParser(description="Train a transformer on letters.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("build/transformer.svg"))
    options = parser.parse_args(argv)
    screen, text = Console(highlight=False), load()
    started = time.perf_counter()
    params, losses, unseen = train(screen, text, options.steps)
    seen = text.unseen[:CONTEXT]
    letters, chances = verax.jit(write, static_argnums=2)(params, seen, LENGTH)
    _, attention = verax.jit(predict)(params, seen)
    run = Run(
        losses, unseen, seen, *map(np.asarray, (letters, chances, attention[1, 0]))
    )
    screen.print(text.decode(seen), style="dim", markup=False, end="")
    screen.print(text.decode(run.letters), markup=False)
    draw(options.out, text, run)
    screen.print(f"{time.perf_counter() - started:.0f} s; picture: {options.out}")
    return run


if __name__ == "__main__":
    main()
