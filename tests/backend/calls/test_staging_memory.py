"""Memory for values of the host: used again by later calls, whatever became of outputs.

Outputs stand in for those of programs: they finish, or are donated, when a test says
so, in any order.
"""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from jaxlib import _jax

import verax
import verax.numpy as vnp
from verax.backend.arrays.places import stored_aval
from verax.backend.calls import MOST, HostSlots, Pool, Transfer
from verax.backend.runtime.client import local_devices
from verax.ir.avals import ShapedArray

SCALAR = ShapedArray((), np.dtype("float32"))
TRANSFER = Transfer(0, float, SCALAR, stored_aval(SCALAR))


class Output:
    """An output of a program that may still be running."""

    def __init__(self, ready: bool) -> None:
        self.ready = ready
        self.deleted = False

    def is_ready(self) -> bool:
        if self.deleted:
            raise _jax.JaxRuntimeError("INVALID_ARGUMENT: Array has been deleted.")
        return self.ready


def new_pool() -> Pool:
    return Pool(local_devices()[0], (TRANSFER,), (), [SCALAR])


def called(pool: Pool, ready: bool = False) -> tuple[HostSlots, Any]:
    """One call: the memory that it uses, and its output."""
    slots = pool.take()
    output: Any = Output(ready)
    pool.put_back((), slots, [output])
    return slots, output


@pytest.mark.parametrize("count", [1, MOST, 2 * MOST])
def test_outputs_donated_in_flight_take_no_places_for_good(count: int) -> None:
    pool = new_pool()
    donated = [called(pool) for _ in range(count)]
    for _, output in donated:
        output.deleted = True
    slots, _ = called(pool, ready=True)
    assert slots not in [old for old, _ in donated], "a program may be reading it"
    assert [called(pool, ready=True)[0] for _ in range(MOST)] == [slots] * MOST
    assert len(pool.spare) == 1


def test_memory_waits_for_the_program_that_reads_it() -> None:
    pool = new_pool()
    first, output = called(pool)
    second, _ = called(pool)
    assert second is not first
    output.ready = True
    assert first in [called(pool)[0] for _ in range(2)]


@given(st.lists(st.tuples(st.sampled_from("crd"), st.integers(0, 9)), max_size=40))
def test_no_history_jams_the_pool(steps: list[tuple[str, int]]) -> None:
    """Calls, ends and donations in any order: memory is shared by no two programs."""
    pool = new_pool()
    running: list[tuple[HostSlots, Any]] = []
    lost: list[HostSlots] = []
    for kind, which in steps:
        if kind == "c":
            slots, output = called(pool, ready=which == 0)
            assert slots not in lost
            assert slots not in [other for other, _ in running]
            if not output.ready:
                running.append((slots, output))
        elif running:
            slots, output = running.pop(which % len(running))
            if kind == "r":
                output.ready = True
            else:
                output.deleted = True
                lost.append(slots)
        assert len(pool.spare) <= MOST
    for _, output in running:
        output.ready = True
    used = [called(pool, ready=True)[0] for _ in range(MOST + 1)]
    assert used[-1] in used[:-1], "each call makes memory of its own"


def test_a_function_whose_outputs_were_donated_makes_no_new_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    begin = HostSlots.__init__

    def noted(self: HostSlots, *args: Any) -> None:
        begin(self, *args)
        made.append(self)

    monkeypatch.setattr(HostSlots, "__init__", noted)
    square = vnp.ones((300, 300))
    fun = verax.jit(lambda x: ((square @ square) * x)[0, :2])
    take = verax.jit(lambda x: x * 2, donate_argnums=0)
    taken = [take(fun(np.float32(i))) for i in range(3 * MOST)]
    assert [float(x[0]) for x in taken] == [600.0 * i for i in range(3 * MOST)]
    verax.block_until_ready(fun(np.float32(1)))
    verax.block_until_ready(fun(np.float32(1)))
    assert made
    made.clear()
    for _ in range(2 * MOST):
        verax.block_until_ready(fun(np.float32(1)))
    assert not made


SMALL = [name for name in dir(ml_dtypes) if re.match("b?float(4|8|16)|u?int[24]", name)]


@pytest.mark.parametrize("name", SMALL)
def test_arguments_of_every_small_dtype(name: str) -> None:
    """Some call themselves floats of NumPy's, but have no memory to share."""
    x = np.ones(3, getattr(ml_dtypes, name))
    for f in (verax.jit(lambda x: x[::-1]), verax.device_put):
        for _ in range(2):
            y = f(x)
            assert y.dtype == x.dtype
            assert (np.asarray(y) == x).all()
