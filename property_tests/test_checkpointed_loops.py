"""Loops with a memory plan mean the same as without, however transformed.

One idea: the plan is seen by the cost only, so values and derivatives of every order
are those of the Python loop.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from property_tests.test_control_flow import (
    ALL,
    CHAINS,
    POINT,
    Function,
    agree,
    rows,
    spread,
    stacked,
    total,
    unrolled,
)
from verax import lax
from verax.lax.scanning import blocks_of
from verax.verify.cases.case import double_precision


def planned(reverse: bool, checkpoints: int | str) -> Function:
    return lambda f, carry, xs: lax.scan(
        f, carry, xs, reverse=reverse, checkpoints=checkpoints
    )


def iterated(x: Any, y: Any, n: Any) -> Any:
    """At most six steps, in blocks of three and two."""

    def step(c: Any) -> Any:
        return c[0] + 1, vnp.sin(c[1]) * x + c[1] * y

    return lax.while_loop(lambda c: c[0] < n, step, (0, x), max_steps=6, checkpoints=5)[
        1
    ]


def iterated_in_python(x: Any, y: Any, n: Any) -> Any:
    c = x
    for _ in range(min(int(n), 6)):
        c = vnp.sin(c) * x + c * y
    return c


PLANS = [(False, 5, 6), (True, "log", 7)]


@pytest.mark.slow
@pytest.mark.parametrize(("reverse", "checkpoints", "length"), PLANS)
@pytest.mark.parametrize("chain", CHAINS)
def test_scan_with_a_plan(
    chain: str, reverse: bool, checkpoints: int | str, length: int
) -> None:
    assert len(blocks_of("scan", length, checkpoints)) == 2
    with double_precision():
        change, args = CHAINS[chain], (*POINT, rows(length))
        due = change(total(unrolled(reverse)))(*args)
        agree(change(total(planned(reverse, checkpoints)))(*args), due)


@pytest.mark.parametrize("chain", ["grad", "forward over reverse"])
@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, 0)])
def test_vmap_of_scan_with_a_plan(axes: Sequence[int | None], chain: str) -> None:
    with double_precision():
        change, args = CHAINS[chain], spread((*POINT, rows(7)), axes, 2)
        f, g = total(planned(False, "log")), total(unrolled(False))
        due = stacked(change(g), axes, 2)(*args)
        agree(verax.vmap(change(f), axes)(*args), due)
        outside = verax.grad(lambda *xs: verax.vmap(f, axes)(*xs).sum(), ALL)
        slow = verax.grad(lambda *xs: stacked(g, axes, 2)(*xs).sum(), ALL)
        agree(outside(*args), slow(*args))


def on_floats(change: Function, f: Function) -> Function:
    """A chain for functions of (x, y, z) on a function whose last argument is whole."""
    return lambda x, y, n: change(lambda x, y, z: f(x, y, n) * z)(x, y, 1.5)


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_bounded_loop(chain: str) -> None:
    with double_precision():
        fast = on_floats(CHAINS[chain], iterated)
        slow = on_floats(CHAINS[chain], iterated_in_python)
        for n in (0, 1, 4, 9):
            agree(fast(0.4, 0.9, n), slow(0.4, 0.9, n))


@pytest.mark.parametrize("chain", ["grad", "reverse over reverse"])
def test_bounded_loop_over_differing_trip_counts(chain: str) -> None:
    with double_precision():
        args = vnp.array([0.1, 0.2, 0.3, 0.4]), 0.8, vnp.array([0, 3, 1, 9])
        axes, change = (0, None, 0), CHAINS[chain]
        due = stacked(on_floats(change, iterated_in_python), axes, 4)(*args)
        agree(verax.jit(verax.vmap(on_floats(change, iterated), axes))(*args), due)

        def summed(f: Function) -> Function:
            return lambda x, y, z: f(x, y, args[2]).sum() * z

        fast = change(summed(verax.vmap(iterated, axes)))
        slow = change(summed(stacked(iterated_in_python, axes, 4)))
        agree(fast(*args[:2], 1.5), slow(*args[:2], 1.5))


@settings(max_examples=1 + settings().max_examples // 4)
@given(
    steps=st.integers(0, 10**6),
    checkpoints=st.sampled_from(["sqrt", "log"]) | st.integers(30, 10**6),
)
def test_plans_keep_to_their_budget(steps: int, checkpoints: int | str) -> None:
    blocks = blocks_of("scan", steps, checkpoints)
    assert np.prod(blocks, dtype=object) >= steps
    if isinstance(checkpoints, int):
        assert sum(blocks) <= checkpoints
    elif checkpoints == "sqrt":
        assert sum(blocks) <= 2 * steps**0.5 + 2
    else:
        assert sum(blocks) <= 2 * np.log2(max(steps, 1)) + 4
