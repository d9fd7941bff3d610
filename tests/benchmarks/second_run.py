"""Cases of the second run of a script: from its start to its first training step.

The idea: each library runs as its user has it after the first run. verax finds the
programs of that run on disk; jax keeps none unless it is told a folder, and compiles.

    python -m tests.benchmarks.second_run verax mlp 12 0  # cpu, wall, both after import
"""

import functools
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy

from . import programs
from .case import Case, Goal
from .measure import Figure, Work
from .namespace import Namespace, Scale, load

SIZES = (64, 96, 48, 10)
BATCH = 64
RATE = 2e-3
ROOT = Path(__file__).parents[2]
# What is added to the name of a case, for each number that a script prints.
FIGURES = ("", "_wall", "_after_import", "_after_import_wall")
TIMEOUT = 600.0


def mlp(ns: Namespace, layers: int) -> float:
    """The first step of Adam on digits, as in `docs/examples/digits.py`."""
    api, np, nn, random = ns.api, ns.numpy, ns.nn, ns.random
    normal, shapes = nn.initializers.he_normal(), [*itertools.pairwise(SIZES)]
    keys = random.split(random.key(2), len(shapes))
    params = [
        {"w": normal(key, shape), "b": np.zeros(shape[1])}
        for key, shape in zip(keys, shapes, strict=True)
    ]

    def example_loss(params: Any, image: Any, label: Any) -> Any:
        for layer in params[:-1]:
            image = nn.silu(image @ layer["w"] + layer["b"])
        scores = image @ params[-1]["w"] + params[-1]["b"]
        return -(nn.log_softmax(scores) * nn.one_hot(label, 10)).sum()

    def loss(params: Any, images: Any, labels: Any) -> Any:
        return api.vmap(example_loss, (None, 0, 0))(params, images, labels).mean()

    def update(state: Any, images: Any, labels: Any) -> Any:
        step, params, mean, square = state
        value, slope = api.value_and_grad(loss)(params, images, labels)
        step, over = step + 1, api.tree.map
        mean = over(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = over(lambda v, g: 0.999 * v + 0.001 * g * g, square, slope)
        rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        params = over(
            lambda p, m, v: p - rate * m / (np.sqrt(v) + 1e-8), params, mean, square
        )
        return (step, params, mean, square), value

    draw = numpy.random.default_rng(0)
    images = draw.random((BATCH, SIZES[0]), numpy.float32)
    labels = draw.integers(0, 10, BATCH).astype(numpy.int32)
    zeros = api.tree.map(np.zeros_like, params)
    state = np.zeros((), np.float32), params, zeros, zeros
    return float(api.jit(update)(state, images, labels)[1])


def transformer(ns: Namespace, layers: int) -> float:
    """The first step of gradient descent on a decoder of so many blocks."""
    program = programs.transformer(ns, layers)
    loss = program.fresh(1.0)

    def update(params: Any, x: Any, y: Any) -> Any:
        value, slope = ns.api.value_and_grad(loss)(params, x, y)
        return ns.api.tree.map(lambda p, g: p - 1e-3 * g, params, slope), value

    return float(ns.api.jit(update)(*program.arguments)[1])


SCRIPTS: dict[str, Callable[[Namespace, int], float]] = {
    "mlp": mlp,
    "transformer": transformer,
}


def script(library: str, name: str, layers: int, begun: float) -> list[float]:
    """Run a script in this process; CPU and wall seconds, then those after import."""
    ns = load(library)
    imported, wall = time.process_time(), time.time()
    SCRIPTS[name](ns, layers)
    cpu, end = time.process_time(), time.time()
    return [cpu, end - begun, cpu - imported, end - wall]


@functools.cache
def kept() -> tempfile.TemporaryDirectory[str]:
    """A folder of caches, removed with the process."""
    return tempfile.TemporaryDirectory(prefix="verax-bench-")


def child(library: str, name: str, layers: int) -> tuple[float, ...]:
    """The figures of the script in a new process with the library's own defaults."""
    own = {k: v for k, v in os.environ.items() if "COMPILATION_CACHE" not in k}
    begun = [repr(time.time())]
    done = subprocess.run(
        [sys.executable, "-m", __name__, library, name, str(layers), *begun],
        cwd=ROOT,
        env=own | {"XDG_CACHE_HOME": kept().name},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr.strip()[-300:]}")
    return tuple(float(word) for word in done.stdout.split())


@functools.cache
def second(library: str, name: str, layers: int) -> tuple[float, ...]:
    """The figures of the second run."""
    child(library, name, layers)
    return child(library, name, layers)


def _figure(name: str, which: str, ns: Namespace, scale: Scale) -> Work:
    column = FIGURES.index(which)
    return Figure(lambda: second(ns.library, name, scale.layers)[column])


def cases() -> list[Case]:
    """Every case of this file."""
    return [
        Case(
            f"second_run/{name}{which}", partial(_figure, name, which), Goal(None, 0.35)
        )
        for name in SCRIPTS
        for which in FIGURES
    ]


if __name__ == "__main__":
    library, name, layers, begun = sys.argv[1:]
    print(*script(library, name, int(layers), float(begun)))
