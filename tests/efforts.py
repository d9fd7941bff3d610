"""What makes tests cheaper and changes nothing in what they ask.

Programs whose machine code is not what a test is about are compiled in less time: their
values are those of optimised ones but for last digits. And the collector of garbage
looks at what a test has made, not at all that the process holds.
"""

import gc
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


@pytest.fixture
def few_objects() -> Iterator[None]:
    """The collector looks at what a test makes, and at nothing that was there before.

    While all tests run, that is a million objects, and a second for each collection.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
