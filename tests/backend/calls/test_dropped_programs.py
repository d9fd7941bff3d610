"""Programs that no function holds are let go by their bytes; others are shared."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import verax
from verax.backend.programs import program
from verax.backend.programs.program import MADE
from verax.ir.memos import Weighed

X = np.ones(3, np.float32)


def compiled_by(call: Any) -> float:
    before = verax.metrics()["compiles"]
    call()
    return verax.metrics()["compiles"] - before


def made(number: float) -> Any:
    return verax.jit(lambda x: x * number + 0.375)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Room for three programs."""
    room: Weighed[Any, Any] = Weighed(
        4 * program.BYTES, program.weight_of, program.loosened
    )
    monkeypatch.setattr(program, "MADE", room)
    yield
    room.cache_clear()


@pytest.mark.slow(jaxlib=True)
@pytest.mark.usefixtures("few")
@pytest.mark.usefixtures("few_objects")
def test_dropped_programs_are_let_go_and_others_shared() -> None:
    held = made(1.0)
    held(X)
    for number in range(2, 8):
        made(float(number))(X)
    gc.collect()
    assert len(program.MADE.entries) == 3
    assert len(program.MADE.loose) == 1, "only what a function holds"
    assert compiled_by(lambda: made(1.0)(X)) == 0, "it is held"
    assert compiled_by(lambda: made(7.0)(X)) == 0, "it was used last"
    assert compiled_by(lambda: made(2.0)(X)) == 1, "nobody held it"
    assert compiled_by(lambda: made(1.0)(X)) == 0, "it is held, and was found again"
    held.clear_cache()
    for number in range(2, 8):
        made(float(number))(X)
    gc.collect()
    assert compiled_by(lambda: made(1.0)(X)) == 1


@pytest.mark.usefixtures("few")
def test_one_program_is_kept_however_heavy() -> None:
    def long(x: Any) -> Any:
        for i in range(300):
            x = verax.numpy.sin(x) * (i + 0.5)
        return x

    verax.jit(lambda x: long(x))(X)
    assert compiled_by(lambda: verax.jit(lambda x: long(x))(X)) == 0


@pytest.mark.slow(jaxlib=True)
def test_clear_caches_lets_all_programs_go() -> None:
    held = made(0.1875)
    held(X)
    for number in range(5):
        made(number + 0.0625)(X)
    verax.clear_caches()
    assert not MADE.entries
    assert not MADE.loose
    assert MADE.weight == 0
    assert compiled_by(lambda: held(X)) == 1
