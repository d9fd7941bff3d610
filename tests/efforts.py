"""Programs whose machine code is not what a test is about are compiled in less time.

Their values are those of an optimised program but for last digits, and no test looks at
how long they run.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import verax
from verax.api.config.config import override


def by_xla(f: Callable[..., Any], *args: Any) -> Any:
    """What a function gives by XLA's own lowerings, for comparison."""
    with override("compile_effort", "fast"):
        return verax.jit(f, cpu_lowerings="xla")(*args)


@pytest.fixture
def little_effort() -> Iterator[None]:
    """All programs of a test are compiled with little effort."""
    with override("compile_effort", "fast"):
        yield
