"""Times the models of one library on the default device, in a process of its own.

Every line is JSON: a model, a figure's name and seconds. What is timed is a first call,
a steady one until its results are there, and how soon a call returns::

    python -m tests.gpu.worker --library verax --seconds 60 --small
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from tests.gpu.models import MODELS, load


def seconds_of(act: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def repeated(act: Callable[[], object], seconds: float, least: int = 5) -> float:
    """The median of runs for so many seconds."""
    end, times = time.perf_counter() + seconds, list[float]()
    while len(times) < least or time.perf_counter() < end:
        times.append(seconds_of(act))
    return median(times)


def finished(ns: Any, f: Callable[..., Any], *args: Any) -> Any:
    """A call, until its results are there."""
    return ns.api.block_until_ready(f(*args))


def timed(ns: Any, name: str, small: bool, seconds: float) -> dict[str, float]:
    """The figures of one model: forward and gradient."""
    loss, params, batch = MODELS[name](ns, small)
    actual = {}
    for what, f in (("forward", loss), ("gradient", ns.api.grad(loss))):
        run = partial(finished, ns, ns.api.jit(f), params, batch)
        actual[f"{what}, first call"] = seconds_of(run)
        actual[what] = repeated(run, seconds / 2)
    return actual


def dispatch(ns: Any, seconds: float) -> float:
    """How soon a compiled call of ten small arrays returns."""
    xs = [ns.numpy.ones(8) for _ in range(10)]
    call = ns.api.jit(lambda xs: [x + 1 for x in xs])

    def burst() -> None:
        for _ in range(99):
            call(xs)
        ns.api.block_until_ready(call(xs))

    burst()
    return repeated(burst, seconds) / 100


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.worker")
    parser.add_argument("--library", choices=("verax", "jax"), required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--small", action="store_true")
    chosen = parser.parse_args()
    ns = load(chosen.library)
    share = chosen.seconds / (len(MODELS) + 1) / 2
    for name in MODELS:
        for what, seconds in timed(ns, name, chosen.small, share).items():
            print(json.dumps([f"{name}: {what}", seconds]), flush=True)
    print(json.dumps(["dispatch: ten arrays", dispatch(ns, share)]), flush=True)


if __name__ == "__main__":
    main()
