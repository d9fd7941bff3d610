"""Floor 0: memoising that keeps the signature of what it memoises.

One idea: `functools.lru_cache` forgets the types of parameters, so that a caller could
pass anything; here the cache is the same C object, typed as the function it wraps::

    @memoised
    def square(x: int) -> int: ...
"""

import functools
from collections.abc import Callable
from typing import cast

CACHE_SIZE = 8192


def memoised[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """`function` behind a bounded least-recently-used cache; arguments must hash.

    >>> @memoised
    ... def square(x: int) -> int:
    ...     return x * x
    >>> square(3)
    9
    """
    return cast(Callable[P, R], functools.lru_cache(CACHE_SIZE)(function))
