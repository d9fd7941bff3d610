"""Locks: one thread at a time, and none is left held by an interrupt."""

import threading
from typing import Any

import pytest

from tests.robustness.interrupts import interrupted, places
from verax.ir.locks import Lock, WholeLock, new_lock
from verax.ir.memos import Recent

# Without entries, `find` is a look-up behind its lock, and no more.
EMPTY = Recent[str, int](1)


def is_free(lock: Lock) -> bool:
    """Whether another thread can take it at once."""
    taken = threading.Event()

    def take() -> None:
        with lock:
            taken.set()

    threading.Thread(target=take, daemon=True).start()
    return taken.wait(10)


@pytest.mark.parametrize("make", [new_lock, WholeLock])
def test_an_interrupt_leaves_no_lock_held(make: Any, monkeypatch: Any) -> None:
    lock = make()
    monkeypatch.setattr(Recent, "lock", lock)
    count = places(lambda: EMPTY.find("a"))
    assert count
    for place in range(count):
        came, where = interrupted(lambda: EMPTY.find("a"), place)
        assert came, where
        assert is_free(lock), where


@pytest.mark.parametrize("make", [new_lock, WholeLock])
def test_one_thread_at_a_time(make: Any) -> None:
    lock, seen = make(), [0]

    def count() -> None:
        for _ in range(2000):
            with lock, lock:
                seen[0] = seen[0] + 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [8000]
    with pytest.raises(ZeroDivisionError), lock:
        1 / 0  # noqa: B018
    assert is_free(lock)
