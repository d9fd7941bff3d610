"""When did coal mines become safer? Hundreds of random walks under `vmap` find out.

Accidents come at one rate before an unknown date and at another after it: for three
numbers, `log_posterior` is a few lines. A sampler walks through their space, `vmap`
makes 512 walks of one, `scan` repeats its steps, and R-hat says whether they agree::

    python -m docs.examples.random_walks --steps 2000 --out build/random_walks.svg

Random-walk Metropolis needs the density alone. Hamiltonian Monte Carlo also needs its
gradient, which `grad` derives from the same lines, and its steps go much further.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import verax
import verax.numpy as vnp
from docs.examples.drawing import Panel, legend, write_svg
from verax import Array, lax, nn, random

type Step = Callable[[Array, Array, Array], Array]

SEED = 1
WALKS, BLOCK = 512, 50
SAMPLERS = ("random walk", "Hamiltonian")
NAMES = ("rate before", "rate after", "change")
# Explosions that killed ten or more, in the years from 1851 to 1961 (Jarrett 1979).
FIRST, COUNTS = (
    1851,
    (
        "4540143406334026335453144155342522342132211113001011003103220"
        "11101010002100011023311211112420014000100000100101"
    ),
)
ACCIDENTS = np.array([int(digit) for digit in COUNTS], np.float32)
YEARS = len(ACCIDENTS)


def meaning(place: Array) -> Array:
    """The rates before and after, and the year of the change, at a place in space."""
    year = FIRST + YEARS * nn.sigmoid(place[2])
    return vnp.append(vnp.exp(place[:2]), year)


def expected(before: Array, after: Array, change: Array) -> Array:
    """The accidents that each year should have; the change may be within a year."""
    share = vnp.clip(change - FIRST - vnp.arange(YEARS), 0, 1)
    return share * before + (1 - share) * after


def log_posterior(place: Array, weight: Array) -> Array:
    """Poisson counts, exponential priors on the rates, a uniform one on the change.

    The data count by their weight. The priors are those of a place: they contain the
    derivative of `meaning`.
    """
    rates = expected(*meaning(place))
    fit = (ACCIDENTS * vnp.log(rates) - rates).sum()
    prior = (place[:2] - vnp.exp(place[:2])).sum()
    prior += nn.log_sigmoid(place[2]) + nn.log_sigmoid(-place[2])
    return weight * fit + prior


def metropolis(place: Array, weight: Array, key: Array) -> Array:
    """Go somewhere near, unless it is so much worse that a coin says no."""
    direction, coin = random.split(key)
    size = 0.14 / vnp.sqrt(weight)
    there = place + size * random.normal(direction, place.shape)
    odds = log_posterior(there, weight) - log_posterior(place, weight)
    return vnp.where(vnp.log(random.uniform(coin)) < odds, there, place)


def hamiltonian(place: Array, weight: Array, key: Array) -> Array:
    """Give a push and roll through the landscape: ten leaps of the leapfrog."""
    push, coin = random.split(key)
    size, slope = 0.03 / vnp.sqrt(weight), verax.grad(log_posterior)
    speed = random.normal(push, place.shape)

    def leap(_: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, v = state
        v = v + size / 2 * slope(x, weight)
        x = x + size * v
        return x, v + size / 2 * slope(x, weight)

    there, faster = lax.fori_loop(0, 10, leap, (place, speed))
    odds = log_posterior(there, weight) - log_posterior(place, weight)
    odds += (vnp.square(speed) - vnp.square(faster)).sum() / 2
    return vnp.where(vnp.log(random.uniform(coin)) < odds, there, place)


def walk(step: Step, place: Array, weight: Array, key: Array) -> tuple[Array, Array]:
    """A block of steps: where they end, and where each of them was."""

    def once(place: Array, key: Array) -> tuple[Array, Array]:
        there = step(place, weight, key)
        return there, there

    end, places = lax.scan(once, place, random.split(key, BLOCK))
    return end, verax.vmap(meaning)(places)


@verax.jit
def select(places: Array, gain: Array, key: Array) -> Array:
    """Copies of walks in proportion to how well they explain the data."""
    density = verax.vmap(log_posterior, (0, None))
    explained = density(places, gain) - density(places, vnp.zeros(()))
    return places[random.categorical(key, explained, shape=(WALKS,))]


def sample(screen: Console, name: str, step: Step, blocks: int) -> NDArray[np.float32]:
    """All that all walks have seen (walks, steps, 3).

    They start scattered. The data gain their weight little by little, and walks that
    are lost give way to others (sequential Monte Carlo, Del Moral et al. 2006).
    """
    walks = verax.jit(verax.vmap(partial(walk, step), (0, None, 0)))
    start, *keys = random.split(random.key(SEED), blocks + 1)
    places, seen = random.normal(start, (WALKS, 3)), []
    weights = np.minimum(1, (2.5 * np.arange(blocks + 1) / blocks) ** 2)
    with Progress(console=screen) as bar:
        task = bar.add_task(name, total=blocks * BLOCK)
        for old, new, key in zip(weights[:-1], weights[1:], keys, strict=True):
            if new > old:
                places = select(places, new - old, key)
            places, block = walks(places, new, random.split(key, WALKS))
            seen.append(np.asarray(block))
            bar.advance(task, BLOCK)
    return np.concatenate(seen, 1)


def r_hat(draws: Array) -> Array:
    """Whether halves of walks (walks, steps) differ: 1 if they do not (Gelman 2013)."""
    half = draws.shape[1] // 2
    parts = draws[:, : 2 * half].reshape(-1, half)
    within = parts.var(1, ddof=1).mean()
    return vnp.sqrt((half - 1) / half + parts.mean(1).var(ddof=1) / within)


def effective_size(draws: Array) -> Array:
    """How many independent draws would be worth as much (Geyer 1992).

    Correlations come from a Fourier transform; pairs are summed while positive.
    """
    count, steps = draws.shape
    centred = draws - draws.mean(1, keepdims=True)
    power = vnp.square(vnp.abs(vnp.fft.rfft(centred, 2 * steps)))
    covariance = vnp.fft.irfft(power)[:, :steps].mean(0) / steps
    total = covariance[0] + draws.mean(1).var(ddof=1)
    correlation = 1 - (covariance[0] - covariance) / total
    pairs = correlation[: steps // 2 * 2].reshape(-1, 2).sum(1)
    kept = vnp.cumprod(pairs > 0)
    return count * steps / (2 * (pairs * kept).sum() - 1)


@frozen
class Walks:
    """What one sampler saw (walks, steps, 3), and the verdict on its second half."""

    seen: NDArray[np.float32]
    settled: NDArray[np.float32]
    r_hat: NDArray[np.float32]
    size: NDArray[np.float32]


def judge(seen: NDArray[np.float32]) -> Walks:
    """Judge the second half, number by number."""
    settled = vnp.asarray(seen[:, seen.shape[1] // 2 :])
    agree = verax.jit(verax.vmap(r_hat, 2))(settled)
    worth = verax.jit(verax.vmap(effective_size, 2))(settled)
    return Walks(seen, *map(np.asarray, (settled.reshape(-1, 3), agree, worth)))


def draw(path: Path, runs: dict[str, Walks]) -> None:
    """The counts with what explains them, traces, and posteriors."""
    years = FIRST + np.arange(YEARS + 1)
    slow = next(iter(runs.values()))
    chosen = slow.settled[:: max(1, len(slow.settled) // 2000)]
    rates = np.asarray(verax.vmap(lambda row: expected(*row))(chosen))
    low, high = np.quantile(rates, (0.05, 0.95), axis=0)
    top = Panel((60, 64, 860, 180), (FIRST, FIRST + YEARS), (0, 6.5))
    change, _ = np.histogram(slow.settled[:, 2], years)
    marks = [
        top.axes("year", "accidents a year", "Explosions in British coal mines"),
        top.bars(years, ACCIDENTS, "faint", 0.45),
        top.bars(years, 6 * change / change.max(), "f1", 0.55),
        top.band(years[:-1] + 0.5, low, high, "f0", 0.3),
        top.line(years[:-1] + 0.5, rates.mean(0), "s0", 2.2),
        legend(650, 34, "rate, with 90 % of the posterior"),
        legend(650, 52, "posterior of the change", first=1),
    ]
    for i, (name, run) in enumerate(runs.items()):
        steps = run.seen.shape[1]
        shown = np.arange(0, steps, max(1, steps // 200))
        panel = Panel((60 + 300 * i, 330, 250, 170), (0, steps), (1851, 1962))
        marks.append(panel.axes("step", "year of the change", f"{name}: 12 of {WALKS}"))
        for j, trace in enumerate(run.seen[:12, shown, 2]):
            marks.append(panel.line(shown, trace, f"s{j % 5}", 1, 0.7))
    panel = Panel((670, 330, 250, 170), (0, 4.5), (0, 1.05))
    marks.append(panel.axes("accidents a year", "", "Before and after", yticks=()))
    edges = np.linspace(0, 4.5, 91)
    for i in (1, 0):
        heights, _ = np.histogram(slow.settled[:, i], edges)
        marks.append(panel.bars(edges, heights / heights.max(), f"f{2 + i}", 0.75))
    write_svg(path, (960, 550), "When coal mines became safer", *marks)


def main(argv: Sequence[str] | None = None) -> dict[str, Walks]:
    """Sample with both samplers, judge, draw."""
    parser = argparse.ArgumentParser(description="Find when coal mines became safer.")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("build/random_walks.svg"))
    options = parser.parse_args(argv)
    started, screen, runs = time.perf_counter(), Console(highlight=False), {}
    table = Table("", "", "mean", "90 %", "R-hat", "worth", box=None)
    # A roll of ten leaps costs about as much as ten steps of a random walk.
    blocks = -(-options.steps // BLOCK)
    plan = ((metropolis, blocks), (hamiltonian, max(2, blocks // 4)))
    for name, (step, count) in zip(SAMPLERS, plan, strict=True):
        run = runs[name] = judge(sample(screen, name, step, count))
        for i, what in enumerate(NAMES):
            values = run.settled[:, i]
            low, high = np.quantile(values, (0.05, 0.95))
            table.add_row(
                name,
                what,
                f"{values.mean():.2f}",
                f"{low:.2f} to {high:.2f}",
                f"{run.r_hat[i]:.3f}",
                f"{run.size[i]:,.0f}",
            )
    screen.print(table)
    draw(options.out, runs)
    screen.print(f"{time.perf_counter() - started:.0f} s; picture: {options.out}")
    return runs


if __name__ == "__main__":
    main()
