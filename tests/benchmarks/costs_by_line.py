"""Whether the costs of lines are in the order of their measured times.

The idea: `debug.costs` says what a line should take, `explore(profile=True)` what it
does take; of programs whose lines are far apart, the two orders should agree.

    python -m tests.benchmarks.costs_by_line  # prints the table of docs/costs.md
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

import verax
import verax.numpy as vnp
from verax import lax, nn
from verax.debug import Device, costs

type Key = tuple[int, bool]
"""A line, and whether it is on the way back."""

SMALL = 0.01
"""The share of the time below which the order of lines is not asked for."""
HEADS = ("program", "lines", "rank correlation", "dearest line", "its share")


@frozen
class Agreement:
    """How the costs of a program agree with its times, by line."""

    name: str
    lines: int
    correlation: float
    same: bool
    expected: float
    measured: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return (
            self.name,
            f"{self.lines}",
            f"{self.correlation:.2f}",
            "the same" if self.same else "another",
            f"{100 * self.expected:.0f} % / {100 * self.measured:.0f} %",
        )


def products(x: Any, a: Any, b: Any, c: Any) -> Any:
    h = x @ a
    i = h @ b
    j = i @ c
    return vnp.tanh(j)


def perceptron(params: Any, x: Any) -> Any:
    h = nn.relu(x @ params[0])
    i = nn.relu(h @ params[1])
    out = i @ params[2]
    return vnp.mean(out**2)


def images(x: Any, a: Any, b: Any, c: Any) -> Any:
    h = lax.conv_general_dilated(x, a, (1, 1), "SAME")
    i = lax.conv_general_dilated(h, b, (1, 1), "SAME")
    j = lax.conv_general_dilated(i, c, (2, 2), "SAME")
    return nn.relu(j)


def arrays(large: Any, middle: Any, small: Any) -> Any:
    a = large * 2 + 1
    b = vnp.sqrt(middle + 1)
    c = small - 1
    d = vnp.sum(large * large)
    return a, b, c, d


def recurrence(x: Any, w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> tuple[Any, None]:
        h = vnp.tanh(h @ w + x)
        return h, None

    start = x @ w
    end, _ = lax.scan(step, start, xs)
    return end @ w[:, :8]


def by_weights(w: Any, x: Any, xs: Any) -> Any:
    return recurrence(x, w, xs).sum()


def attention(x: Any, w: Any, up: Any, down: Any) -> Any:
    q = x @ w
    scores = vnp.einsum("btd,bsd->bts", q, x)
    mixed = vnp.einsum("bts,bsd->btd", nn.softmax(scores), x)
    h = mixed @ up
    return nn.relu(h) @ down


def normal(*shape: int) -> Any:
    """An array of small random numbers."""
    return np.random.default_rng(len(shape)).normal(0, 0.05, shape).astype(np.float32)


def programs() -> Mapping[str, tuple[Callable[..., Any], Sequence[Any]]]:
    """The programs, with their arguments."""
    layers = [normal(256, 1024), normal(1024, 512), normal(512, 16)]
    kernels = [normal(16, 3, 3, 3), normal(64, 16, 3, 3), normal(16, 64, 3, 3)]
    width = normal(512, 512)
    return {
        "products of matrices": (
            products,
            (normal(512, 512), normal(512, 2048), normal(2048, 128), normal(128, 64)),
        ),
        "a perceptron": (perceptron, (layers, normal(1024, 256))),
        "its gradient": (verax.grad(perceptron), (layers, normal(1024, 256))),
        "convolutions": (images, (normal(8, 3, 48, 48), *kernels)),
        "large arrays": (
            arrays,
            (normal(1 << 24), normal(1 << 21), normal(1 << 18)),
        ),
        "a scan": (recurrence, (normal(64, 512), width, normal(40, 64, 512))),
        "its gradient by the weights": (
            verax.grad(by_weights),
            (width, normal(64, 512), normal(40, 64, 512)),
        ),
        "attention": (
            attention,
            (normal(4, 128, 512), width, normal(512, 2048), normal(2048, 64)),
        ),
    }


def measured(f: Callable[..., Any], args: Sequence[Any]) -> dict[Key, float]:
    """Seconds by line, of rows of the whole program without programs inside."""
    stages = verax.explore(f, profile=True)(*args).content.stages
    joined = [stage for stage in stages if stage.name == "join"]
    return by_line((joined or stages)[0].rows)


def by_line(rows: Sequence[Any]) -> dict[Key, float]:
    """The times of rows, those with rows inside left out, by line."""
    held = {row.inside for row in rows}
    out: dict[Key, float] = defaultdict(float)
    for i, row in enumerate(rows):
        if row.op and i not in held and row.source.file == __file__:
            out[row.source.line, row.source.backward] += row.time or 0.0
    return out


def expected(
    f: Callable[..., Any], args: Sequence[Any], device: str | Device
) -> dict[Key, float]:
    """Seconds by line, as costs say."""
    return {
        (e.line, e.kind == "cotangent"): e.time
        for e in costs(f, device=device)(*args).lines
        if e.file == __file__
    }


def ranks(xs: Sequence[float]) -> np.ndarray:
    """The place of each number in their order; equal ones share theirs."""
    x = np.asarray(xs)
    return np.array([(x < v).sum() + ((x == v).sum() - 1) / 2 for v in x])


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Spearman's rank correlation.

    >>> round(correlation([1, 5, 9], [2, 3, 4]), 3), round(correlation([1, 2], [2, 1]))
    (1.0, -1)
    """
    return float(np.corrcoef(ranks(xs), ranks(ys))[0, 1])


def compared(
    name: str, costs: Mapping[Key, float], times: Mapping[Key, float]
) -> Agreement:
    """How two maps agree, on the lines that take more than a little in either."""
    whole = sum(costs.values()), sum(times.values())
    keys = [
        k
        for k in {**costs, **times}
        if max(costs.get(k, 0) / whole[0], times.get(k, 0) / whole[1]) > SMALL
    ]
    xs, ys = [costs.get(k, 0.0) for k in keys], [times.get(k, 0.0) for k in keys]
    top = int(np.argmax(ys))
    return Agreement(
        name,
        len(keys),
        correlation(xs, ys),
        int(np.argmax(xs)) == top,
        xs[top] / whole[0],
        ys[top] / whole[1],
    )


def table(rows: Sequence[Agreement]) -> str:
    """The table in Markdown."""
    lines = [HEADS, ("---",) * len(HEADS), *[row.cells for row in rows]]
    return "\n".join([f"| {' | '.join(cells)} |" for cells in lines])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 1 if orders or dearest lines disagree."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.costs_by_line")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many")
    parser.add_argument("--least", type=float, default=0.4, help="correlation to hold")
    options = parser.parse_args(arguments)
    rows = []
    for name, (f, args) in programs().items():
        rounds = [measured(f, args) for _ in range(options.rounds)]
        keys = set().union(*rounds)
        times = {k: float(np.median([r.get(k, 0.0) for r in rounds])) for k in keys}
        rows.append(compared(name, expected(f, args, "cpu"), times))
    print(table(rows))
    wrong = [row for row in rows if row.correlation < options.least or not row.same]
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
