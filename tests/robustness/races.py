"""Threads that trace, rewrite, compile, call and forget at the same time.

One idea: each kind of work knows its result, so threads that do any of them in any
order need no lock to be checked; what they share (types, memos, traces, compiled
programs, counters) is looked up, made and forgotten by all of them::

    races(seconds=10, threads=8).errors      # none if all is well

    python -m tests.robustness.races --seconds 60 --threads 8
"""

import argparse
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from math import inf
from random import Random
from typing import Any, Final

import numpy as np
from attrs import frozen

import verax
import verax.numpy as vnp
from verax import lax

X: Final = np.arange(1, 4, dtype=np.float32)
SHARED: Final = tuple([verax.jit(lambda x, k=k: vnp.sin(x) * k) for k in range(8)])
STATIC: Final = verax.jit(lambda x, n: x**n, static_argnums=1)
FEW: Final = 9
"""So many errors say enough."""
ALIKE: Final[dict[str, Any]] = {"rtol": 1e-4, "atol": 1e-5}


def alike(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, **ALIKE)


def cached(random: Random) -> None:
    """A function that all threads call."""
    k = random.randrange(len(SHARED))
    alike(SHARED[k](X), np.sin(X) * k)


def static(random: Random) -> None:
    """A function with an argument that is part of its key."""
    n = random.randrange(1, 6)
    alike(STATIC(X, n), X**n)


def new(random: Random) -> None:
    """A function that is traced, differentiated and batched for the first time."""
    k = random.randrange(50)
    fun = verax.vmap(verax.grad(lambda x: vnp.cos(x) * k))
    alike(fun(X), -np.sin(X) * k)


def compiled(random: Random) -> None:
    """A new function, compiled for a shape that others may compile for, too."""
    size = random.randrange(1, 6)
    x = np.ones((size, 2), np.float32)
    alike(verax.jit(lambda x: (x @ x.T).sum(0))(x), np.full(size, 2.0 * size))


def eager(random: Random) -> None:
    """Operations without `jit`."""
    n = random.randrange(1, 9)
    alike((vnp.arange(n) + vnp.ones(n)).sum(), n * (n - 1) / 2 + n)
    alike(vnp.zeros(n + 2).at[1:].set(3).sum(), 3 * (n + 1))


def looped(random: Random) -> None:
    """Control flow, and its derivative."""
    n = random.randrange(1, 5)

    def loss(x: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c * x, x)

    alike(verax.jacfwd(loss)(2.0), (n + 1) * 2.0**n)


def called_back(random: Random) -> None:
    """A function of the host inside a compiled one."""
    k = random.randrange(9)
    shape = verax.ShapeDtypeStruct((3,), np.float32)
    fun = verax.jit(
        lambda x: verax.pure_callback(lambda y: np.asarray(y) * k, shape, x)
    )
    alike(fun(X), X * k)


def configured(random: Random) -> None:
    """Options of this thread alone."""
    on = random.random() < 0.5
    with verax.enable_x64(on):
        assert vnp.ones(1).dtype == ("float64" if on else "float32")
        assert verax.jit(lambda: vnp.ones(1))().dtype == vnp.ones(1).dtype


def rewritten(random: Random) -> None:
    """Programs as values: what is equal prints alike."""
    n = random.randrange(1, 7)
    text = str(verax.make_jaxpr(verax.grad(lambda x: vnp.sum(vnp.exp(x))))(vnp.ones(n)))
    assert f"f32[{n}]" in text
    alike(verax.jvp(vnp.tanh, (X,), (X,))[1], X / np.cosh(X) ** 2)


def forgotten(random: Random) -> None:
    """All that is remembered is forgotten, under the eyes of the others."""
    if random.random() < 0.05:
        verax.clear_caches()


WORKS: Final[tuple[Callable[[Random], None], ...]] = (
    cached,
    static,
    new,
    compiled,
    eager,
    looped,
    called_back,
    configured,
    rewritten,
    forgotten,
)


@frozen
class Races:
    """What went wrong, as texts, and how much was done."""

    errors: Sequence[str]
    count: int


def races(
    seconds: float = inf, threads: int = 8, seed: int = 0, most: float = inf
) -> Races:
    """Work in threads until the time is over, or each has done so many pieces."""
    errors: list[str] = []
    gate = threading.Barrier(threads)
    counts = [0] * threads

    def run(number: int) -> None:
        random = Random(seed * 1000 + number)
        gate.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end and counts[number] < most and len(errors) < FEW:
            work = random.choice(WORKS)
            try:
                work(random)
            except Exception as error:
                errors.append(f"{work.__name__}: {type(error).__name__}: {error}")
            counts[number] += 1

    group = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()
    return Races(errors, sum(counts))


def main() -> int:
    """0 if nothing went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.races")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # functions are jitted again and again
    result = races(chosen.seconds, chosen.threads, chosen.seed)
    print("\n".join(result.errors) or "nothing went wrong", f"({result.count} calls)")
    return 1 if result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
