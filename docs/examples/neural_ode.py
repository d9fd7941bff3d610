"""A neural network learns the law of a pendulum from noisy looks at how it swings.

The network is the right-hand side of a differential equation. Training differentiates
through its solution, hundreds of steps of Runge and Kutta, so reverse mode would store
every one of them; `checkpoints="sqrt"` stores a few and computes the others again::

    python -m docs.examples.neural_ode --steps 1000 --out build/neural_ode.svg

XLA says how much memory each gradient needs, before any of them runs.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

import verax
import verax.numpy as vnp
from docs.examples.drawing import Panel, label, legend, stroke, write_svg
from verax import Array, lax, random, tree

type Numbers = Array | NDArray[Any]
type Params = list[dict[str, Array]]
type Field = Callable[[Array], Array]
type Plan = Literal["sqrt"] | None

SEED = 3
SIZES = (2, 48, 2)
STEP, EVERY, LOOKS = 0.05, 4, 50  # of time; steps between two looks; looks at a swing
SWINGS, NOISE = 24, 0.05
RATE = 2e-2
PLANS: tuple[Plan, ...] = (None, "sqrt")
LENGTHS = (100, 400, 1600)  # steps, to compare the memory of the plans


def pendulum(state: Array) -> Array:
    """The truth: the speed of (angle, speed), with gravity and friction."""
    angle, speed = state
    return vnp.stack([speed, -vnp.sin(angle) - 0.12 * speed])


def init_params(key: Array) -> Params:
    """A small network, almost zero at first."""
    keys = random.split(key, len(SIZES))
    return [
        {"w": random.normal(k, (m, n)) * 0.5 / m**0.5, "b": vnp.zeros(n)}
        for k, (m, n) in zip(keys, pairwise(SIZES), strict=False)
    ]


def network(params: Params, state: Array) -> Array:
    """What the network takes for the speed of a state."""
    for layer in params[:-1]:
        state = vnp.tanh(state @ layer["w"] + layer["b"])
    return state @ params[-1]["w"] + params[-1]["b"]


def runge_kutta(field: Field, state: Array) -> Array:
    """One step of the classical method of order four."""
    k1 = field(state)
    k2 = field(state + STEP / 2 * k1)
    k3 = field(state + STEP / 2 * k2)
    k4 = field(state + STEP * k3)
    return state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve(field: Field, start: Array, looks: int, plan: Plan = None) -> Array:
    """The states (looks, 2) that are seen, EVERY steps apart."""

    def step(state: Array, _: None) -> tuple[Array, Array]:
        state = runge_kutta(field, state)
        return state, state

    _, states = lax.scan(step, start, None, looks * EVERY, checkpoints=plan)
    seen: Array = states[EVERY - 1 :: EVERY]
    return seen


def loss(params: Params, starts: Numbers, seen: Numbers, plan: Plan) -> Array:
    """The mean square distance to what was seen (swings, looks, 2)."""
    field = partial(network, params)
    looks = seen.shape[1]
    actual = verax.vmap(lambda start: solve(field, start, looks, plan))(starts)
    return vnp.square(actual - seen).mean()


type State = tuple[Params, Params, Params, Array]


def train_step(
    state: State, starts: Numbers, seen: Numbers, rate: Numbers
) -> tuple[State, Array]:
    """One step of Adam (Kingma and Ba 2015)."""
    params, mean, square, step = state
    value, gradient = verax.value_and_grad(loss)(params, starts, seen, "sqrt")
    step = step + 1
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
    rate = rate * vnp.sqrt(1 - 0.99**step) / (1 - 0.9**step)
    moves = tree.map(lambda m, s: rate * m / (vnp.sqrt(s) + 1e-8), mean, square)
    return (tree.map(vnp.subtract, params, moves), mean, square, step), value


def memory(steps: int, plan: Plan) -> float:
    """Megabytes that the gradient of the loss needs beside arguments and results."""
    params = verax.eval_shape(init_params, random.key(SEED))
    starts = verax.ShapeDtypeStruct((SWINGS, 2), np.float32)
    seen = verax.ShapeDtypeStruct((SWINGS, steps // EVERY, 2), np.float32)
    gradient = verax.jit(verax.grad(loss), static_argnums=3)
    compiled = gradient.lower(params, starts, seen, plan).compile()
    return compiled.memory_analysis().temporaries / 1e6


@frozen
class Swings:
    """Where the pendulum starts (swings, 2), and the noisy looks (swings, looks, 2)."""

    starts: NDArray[np.float32]
    seen: NDArray[np.float32]


@frozen
class Run:
    """Losses, the learned weights, and the memory of each plan at each of LENGTHS."""

    losses: NDArray[Any]
    params: Params
    data: Swings
    memory: dict[Plan, list[float]]


def observe() -> Swings:
    """Let the pendulum go from random angles and speeds."""
    generator = np.random.default_rng(SEED)
    starts = generator.uniform((-2.8, -1.2), (2.8, 1.2), (SWINGS, 2)).astype(np.float32)
    swing = verax.jit(verax.vmap(lambda start: solve(pendulum, start, LOOKS)))
    exact = np.asarray(swing(starts))
    noise = generator.normal(0, NOISE, exact.shape).astype(np.float32)
    return Swings(starts, exact + noise)


def train(screen: Console, data: Swings, steps: int) -> tuple[Params, NDArray[Any]]:
    """The weights, and the loss of every step: first on early looks, then on all."""
    params = init_params(random.key(SEED))
    zeros = tree.map(vnp.zeros_like, params)
    state, losses = (params, zeros, zeros, vnp.float32(0)), []
    step = verax.jit(train_step)
    with Progress(console=screen) as bar:
        task = bar.add_task("compiling", total=steps)
        for i in range(steps):
            looks = LOOKS * min(8, 2 ** (5 * i // steps)) // 8
            rate = vnp.float32(RATE * (0.5 + 0.5 * np.cos(np.pi * i / steps)))
            state, value = step(state, data.starts, data.seen[:, :looks], rate)
            losses.append(value)
            if i % 20 == 0:
                bar.update(task, description=f"loss {float(value):.4f}")
            bar.advance(task)
    return state[0], np.asarray(vnp.stack(losses))


def draw(path: Path, run: Run) -> None:
    """The plane of angle and speed, one swing in time, and the memory."""
    plane = Panel((60, 64, 410, 400), (-3.2, 3.2), (-2.4, 2.4))
    clock = Panel((540, 64, 380, 150), (0, 20), (-3, 3))
    need = Panel((540, 300, 380, 164), (100, 1600), (0.03, 100), log=True, log_x=True)
    grid = np.meshgrid(np.linspace(-2.9, 2.9, 15), np.linspace(-2.2, 2.2, 13))
    points = np.stack(grid, -1).reshape(-1, 2).astype(np.float32)
    first = run.data.starts[:1]
    starts = np.array([[-2.9, 0.4], [1.9, 0.9], [0.6, -1.9], *first], np.float32)
    times = STEP * EVERY * np.arange(2 * LOOKS + 1)
    marks = [plane.dots(points[:, 0], points[:, 1], "faint", 1.3, 0.6)]
    laws = (pendulum, "s0", 5, 0.35), (partial(network, run.params), "s1", 1.8, 1.0)
    for field, kind, width, opacity in laws:
        ends = points + 0.14 * np.asarray(verax.vmap(field)(points))
        pairs = zip(points, ends, strict=True)
        lines = [plane.points(*zip(*ab, strict=True)) for ab in pairs]
        marks.append(stroke("".join(f"M{line}" for line in lines), kind, 1.3, 0.5))
        way = verax.jit(verax.vmap(lambda s, f=field: solve(f, s, 2 * LOOKS)))(starts)
        paths = np.concatenate([starts[:, None], way], 1)
        marks += [
            plane.line(x, v, kind, width, opacity) for x, v in paths[:3].swapaxes(1, 2)
        ]
        marks.append(clock.line(times, paths[3, :, 0], kind, width, opacity))
    for i, (plan, megabytes) in enumerate(run.memory.items()):
        marks.append(need.line(LENGTHS, megabytes, f"s{2 + i}", 2.2))
        marks.append(need.dots(LENGTHS, megabytes, f"f{2 + i}", 3.5))
        marks.append(label(760, (346, 448)[i], plan_name(plan), "mono"))
    write_svg(
        path,
        (960, 515),
        "A neural network learns the law of a pendulum",
        plane.axes("angle", "speed", "Three swings that it never saw"),
        clock.axes("time", "angle", "One that it saw, half of the way"),
        need.axes("steps", "MB", "Memory of the gradient", LENGTHS, (0.1, 1, 10, 100)),
        *marks,
        plane.dots(starts[:3, 0], starts[:3, 1], "f1", 4.5),
        clock.dots(times[1 : LOOKS + 1], run.data.seen[0, :, 0], "f2", 2.2),
        legend(380, 34, "the law", "the network"),
    )


def plan_name(plan: Plan) -> str:
    """How `scan` is told."""
    return f"checkpoints={plan!r}"


def main(argv: Sequence[str] | None = None) -> Run:
    """Compare memory, train, draw."""
    parser = argparse.ArgumentParser(description="Learn the law of a pendulum.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("build/neural_ode.svg"))
    options = parser.parse_args(argv)
    screen, started = Console(highlight=False), time.perf_counter()
    plans = {
        plan: [memory(steps, plan) for steps in LENGTHS]
        for plan in track(PLANS, "comparing memory", console=screen)
    }
    table = Table("MB for steps", *map(str, LENGTHS), box=None)
    for plan, megabytes in plans.items():
        table.add_row(plan_name(plan), *(f"{mb:.2f}" for mb in megabytes))
    screen.print(table)
    data = observe()
    params, losses = train(screen, data, options.steps)
    run = Run(losses, params, data, plans)
    draw(options.out, run)
    screen.print(f"{time.perf_counter() - started:.0f} s; picture: {options.out}")
    return run


if __name__ == "__main__":
    main()
