"""Runs the work of a soak and watches memory.

One idea: what a piece of work closed over dies with it, so memory is read before any
cache is cleared; and after clearing nothing at all may be left, so it is read again::

    report = soak(seconds=300, seed=0)
    report.flat, report.growth_per_round
"""

import gc
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from attrs import frozen

import verax
from tests.soak.work import WORK
from verax.backend.runtime.buffers import block_until_ready
from verax.backend.runtime.client import live_buffers

# Pieces of work between two readings of memory.
ROUND = 200
# XLA and the allocator keep some: what counts is that it does not go on growing.
ALLOWED_MEGABYTES = 64.0


@frozen
class Reading:
    """Memory before and after caches were cleared.

    `held_megabytes` and `held_arrays` are those before.
    """

    seconds: float
    pieces: int
    megabytes: float
    arrays: int
    buffers: int
    held_megabytes: float
    held_arrays: int


@frozen
class Report:
    """The first reading after the warm-up, the last one, and all between."""

    readings: tuple[Reading, ...]

    @property
    def settled(self) -> Reading:
        """Where growth is counted from: the reading a third of the way on."""
        return self.readings[len(self.readings) // 3]

    @property
    def growth(self) -> float:
        """Megabytes by which the process grew since it had settled."""
        return self.readings[-1].megabytes - self.settled.megabytes

    @property
    def growth_of_caches(self) -> float:
        """Megabytes by which the peak before clearing grew, from third to third.

        How full caches are when they are read differs by chance, the peak hardly.
        """
        third = max(len(self.readings) // 3, 1)
        peaks = [
            max([one.held_megabytes for one in part])
            for part in (self.readings[third : 2 * third], self.readings[2 * third :])
        ]
        return peaks[1] - peaks[0]

    @property
    def flat(self) -> bool:
        """Whether neither memory nor the number of arrays went on growing."""
        last = self.readings[-1]
        arrays = last.arrays - self.settled.arrays
        buffers = last.buffers - self.settled.buffers
        held = last.held_arrays - self.settled.held_arrays
        grown = max(self.growth, self.growth_of_caches)
        gone = arrays <= 0 and buffers <= 0 and held <= 0
        return grown < ALLOWED_MEGABYTES and gone

    def __str__(self) -> str:
        last = self.readings[-1]
        return (
            f"{'flat' if self.flat else 'GROWING'}: {last.pieces} pieces of work in "
            f"{last.seconds:.0f} s, all right; {self.growth:+.1f} MB since settled, "
            f"{last.megabytes:.0f} MB, {last.arrays} arrays, {last.buffers} buffers; "
            f"before clearing {last.held_megabytes:.0f} MB, {last.held_arrays} arrays"
        )


def resident_megabytes() -> float:
    """The memory of this process that is in use; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * 4096 / 2**20


def reading(started: float, pieces: int) -> Reading:
    """Memory now, with what caches hold and without."""
    verax.effects_barrier()
    block_until_ready(live_buffers())  # a run holds its arguments until it has ended
    gc.collect()
    held = resident_megabytes(), len(verax.live_arrays())
    verax.clear_caches()
    gc.collect()
    return Reading(
        time.monotonic() - started,
        pieces,
        resident_megabytes(),
        len(verax.live_arrays()),
        len(live_buffers()),
        *held,
    )


def soak(
    seconds: float,
    seed: int,
    *,
    pieces_per_round: int = ROUND,
    tell: Callable[[str], object] | None = None,
) -> Report:
    """Work until the time is over, three rounds at least.

    Raises:
        AssertionError: a result was wrong; the message names seed and piece.
    """
    rng, started, pieces = np.random.default_rng(seed), time.monotonic(), 0
    readings: list[Reading] = []
    while len(readings) < 3 or time.monotonic() - started < seconds:
        for _ in range(pieces_per_round):
            work = WORK[rng.integers(len(WORK))]
            try:
                work(rng)
            except Exception as error:
                raise AssertionError(
                    f"seed {seed}, piece {pieces}, {work.__name__}: {error}"
                ) from error
            pieces += 1
        readings.append(reading(started, pieces))
        if tell is not None:
            tell(str(readings[-1]))
    return Report(tuple(readings))
