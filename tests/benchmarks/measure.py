"""Timing one piece of work: adaptive repetitions, two clocks, the median.

The idea: work is either a call that may be looped, or a preparation (not timed)
that yields a call which is timed once, or a figure that is not a time at all.

    sample(Looped(lambda: f(x)), seconds=0.2).cpu  # seconds per call

Process CPU time is the main clock: it counts every thread of the process and, unlike
wall time, not the time that other processes take from it.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

BATCH_SECONDS = 0.01
LEAST_BATCHES = 5
SLOW_SECONDS = 0.1


@dataclass(frozen=True)
class Looped:
    """A call that costs the same every time."""

    call: Callable[[], object]


@dataclass(frozen=True)
class Fresh:
    """A preparation that is not timed and returns the call that is timed once."""

    prepare: Callable[[], Callable[[], object]]


@dataclass(frozen=True)
class Figure:
    """What measures itself: a count, bytes, an exponent, a child's time, a sample."""

    value: "Callable[[], float | Sample]"


type Work = Looped | Fresh | Figure


@dataclass(frozen=True)
class Sample:
    """Seconds per call on both clocks (or one figure in both), and how many calls."""

    cpu: float
    wall: float
    calls: int


def timed(call: Callable[[], object], number: int) -> tuple[float, float]:
    """Return (cpu, wall) seconds per call of `number` calls in a row."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(number):
        call()
    cpu_end, wall_end = time.process_time(), time.perf_counter()
    return (cpu_end - cpu) / number, (wall_end - wall) / number


def sample(work: Work, seconds: float) -> Sample:
    """Measure `work` for about `seconds`, after a warm-up that is not counted."""
    if isinstance(work, Figure):
        figure = work.value()
        if isinstance(figure, Sample):
            return figure
        return Sample(figure, figure, 1)
    prepare, number = _warm(work)
    gc.collect()
    begin, spent, pairs = time.perf_counter(), 0.0, list[tuple[float, float]]()
    while _unfinished(len(pairs), spent, time.perf_counter() - begin, seconds):
        pairs.append(timed(prepare(), number))
        spent += pairs[-1][1] * number
    return Sample(
        cpu=median(cpu for cpu, _ in pairs),
        wall=median(wall for _, wall in pairs),
        calls=len(pairs) * number,
    )


def _warm(work: Looped | Fresh) -> tuple[Callable[[], Callable[[], object]], int]:
    if isinstance(work, Fresh):
        work.prepare()()
        return work.prepare, 1
    call = work.call
    once = timed(call, 1)[1]
    for number in (1, 3):
        if once < SLOW_SECONDS:  # the first call alone would be a poor guide
            once = timed(call, number)[1]
    return (lambda: call), max(1, int(BATCH_SECONDS / max(once, 1e-9)))


def _unfinished(batches: int, spent: float, elapsed: float, seconds: float) -> bool:
    if batches and elapsed > 3 * seconds:
        return False
    return spent < seconds or batches < LEAST_BATCHES
