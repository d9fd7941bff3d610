"""What is measured: a program written once, and its operands.

Case("exp", lambda w, x: w.exp(x), lambda: (drawn("x"),), value=True, grads=1)
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDS = 5
SECONDS = 0.02
"""Of CPU time that a batch of calls takes."""
LONG = 0.3
"""Seconds of a call that is not repeated often."""


@dataclass(frozen=True)
class Case:
    """A program, which takes a library or its words, and the operands.

    With `value` the program is measured, with `grads` the gradient of its sum of
    squares, or of itself if it is a number, for so many operands, the first ones. A
    library without tracing runs it where `eager`.
    """

    name: str
    run: Callable[..., Any]
    operands: Callable[[], tuple[Any, ...]]
    value: bool = True
    grads: int = 0
    eager: bool = True


@dataclass(frozen=True)
class Time:
    """CPU seconds of the first call and of a later one, and a mean of the result."""

    first: float
    later: float
    check: float


def leaves(tree: Any) -> list[Any]:
    """The arrays in nested tuples, lists and dicts."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def measured(call: Callable[[], Any]) -> Time:
    """The times of a call that waits for its result."""
    begin = time.process_time()
    out = call()
    first = time.process_time() - begin
    begin = time.process_time()
    call()
    best = max(time.process_time() - begin, 1e-6)
    number = max(1, min(1000, int(SECONDS / best)))
    for _ in range(ROUNDS if best < LONG else 1):
        begin = time.process_time()
        for _ in range(number):
            call()
        best = min(best, (time.process_time() - begin) / number)
    return Time(first, best, checksum(out))


def sampled(call: Callable[[], Any], seconds: float) -> Callable[[], float]:
    """What takes a sample of about so long: CPU seconds of a call, first made twice."""
    call()
    begin = time.process_time()
    call()
    one = max(time.process_time() - begin, 1e-6)
    number = max(1, min(1000, int(seconds / one)))

    def sample() -> float:
        begin = time.process_time()
        for _ in range(number):
            call()
        return (time.process_time() - begin) / number

    return sample


def checksum(out: Any) -> float:
    """The mean magnitude of the numbers in a result, those that are finite."""
    arrays = [as_numpy(x) for x in leaves(out)]
    values = [abs(x.astype("c16")).ravel() for x in arrays if x.dtype.kind in "fciub"]
    flat = np.concatenate([*values, np.zeros(0)])
    flat = flat[np.isfinite(flat)]
    return float(flat.mean()) if flat.size else 0.0


def as_numpy(x: Any) -> Any:
    if hasattr(x, "detach"):  # of torch, whose bfloat16 NumPy does not know
        x = x.detach()
        x = x if x.is_complex() else x.double()
    return np.asarray(x)
