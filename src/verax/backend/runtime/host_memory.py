"""The memory of arrays on the CPU, which the process keeps for the next ones (floor 4).

One idea: an array that is freed leaves pages that the next one can take. The C library
gives those of large arrays back to the system at once, and asks for them again, page by
page, when the next array is written, which takes longer than most programs do::

    keep_memory()       # before a client starts: what is freed stays with the process
    return_memory()     # gives back what nothing uses

Only glibc is known to do so, and only there is anything done.
"""

from typing import Final

from verax.ir.system import glibc

# Parameters of `mallopt`, as <malloc.h> numbers them.
TRIM_THRESHOLD: Final = -1
MMAP_MAX: Final = -4
ARENA_MAX: Final = -8
KEPT_AT_MOST: Final = 2_000_000_000
"""Free bytes at the end of the heap from which on they are given back."""


def keep_memory() -> bool:
    """Keep freed memory for the next arrays; whether the C library does that now.

    All threads share one heap then, which no array is too large for.
    """
    library = glibc()
    if library is None:
        return False
    settings = ((MMAP_MAX, 0), (TRIM_THRESHOLD, KEPT_AT_MOST), (ARENA_MAX, 1))
    return all([library.mallopt(*setting) == 1 for setting in settings])


def return_memory() -> bool:
    """Give memory back that nothing uses; whether there was any."""
    library = glibc()
    return library is not None and library.malloc_trim(0) == 1
