"""Operations, bytes and memory of known programs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.explorer.exploration import explore
from verax.explorer.recording import Stage, totals
from verax.explorer.rows.row import EQUATION, Row

F32 = np.float32


def traced(fun: Callable[..., Any], *args: Any) -> Stage:
    """The first stage of a function."""
    return explore(fun, compile=False)(*args).content.stages[0]


def only(stage: Stage, op: str) -> Row:
    """The only row of an operation."""
    (row,) = [row for row in stage.rows if row.op == op]
    return row


def test_a_product_of_matrices() -> None:
    def called(x: Any, y: Any) -> Any:
        return verax.jit(lax.dot)(x, y)

    stage = traced(called, np.ones((8, 16), F32), np.ones((16, 4), F32))
    dot = only(stage, "dot_general")
    assert dot.flops == 2 * 8 * 16 * 4 == only(stage, "jit").flops
    assert dot.bytes == 4 * (8 * 16 + 16 * 4 + 8 * 4)


def test_a_convolution() -> None:
    image, kernel = np.ones((2, 3, 10, 10), F32), np.ones((5, 3, 3, 3), F32)

    def run(x: Any, k: Any) -> Any:
        return lax.conv(x, k, (1, 1), "VALID")

    row = only(traced(run, image, kernel), "conv_general_dilated")
    assert row.flops == 2 * (2 * 5 * 8 * 8) * (3 * 3 * 3)


@pytest.mark.parametrize(
    ("fun", "op", "flops", "bytes"),
    [
        (lax.sin, "sin", 24, 2 * 96),
        (lambda x: lax.reshape(x, (24,)), "reshape", 0, 0),
        (lambda x: lax.transpose(x, (1, 0)), "transpose", 0, 2 * 96),
        (lambda x: lax.slice(x, (0, 0), (2, 2)), "slice", 0, 32),
        (lambda x: lax.cumsum(x, 0), "cumsum", 24, 2 * 96),
        (lambda x: lax.mul(x, x), "mul", 24, 2 * 96),
    ],
)
def test_small_operations(fun: Any, op: str, flops: int, bytes: int) -> None:
    row = only(traced(fun, np.ones((4, 6), F32)), op)
    assert (row.flops, row.bytes) == (flops, bytes)


def test_a_loop_costs_its_trips() -> None:
    def run(x: Any) -> Any:
        return lax.scan(lambda c, _: (vnp.sin(c), None), x, None, length=7)[0]

    stage = traced(run, np.ones(5, F32))
    assert only(stage, "sin").flops == 7 * 5
    assert only(stage, "scan").flops == 7 * 5
    assert totals(stage.rows)["flops"] == 7 * 5


def test_a_loop_without_trips_costs_nothing() -> None:
    def run(x: Any) -> Any:
        return lax.scan(lambda c, _: (vnp.sin(c), None), x, None, length=0)[0]

    stage = traced(run, np.ones(5, F32))
    assert only(stage, "sin").flops == only(stage, "scan").flops == 0


def test_an_update_in_place_moves_what_changes() -> None:
    def run(x: Any, part: Any) -> Any:
        return lax.dynamic_update_slice(x, part, (0, 0))

    row = only(
        traced(run, np.ones((64, 64), F32), np.ones((1, 64), F32)),
        "dynamic_update_slice",
    )
    assert 2 * 4 * 64 <= (row.bytes or 0) <= 2 * 4 * 64 + 16


def test_loops_within_loops() -> None:
    def inner(c: Any, _: Any) -> Any:
        return lax.scan(lambda d, _: (vnp.sin(d), None), c, None, length=3)

    stage = traced(lambda x: lax.scan(inner, x, None, length=7)[0], np.ones(5, F32))
    assert only(stage, "sin").flops == 3 * 7 * 5
    assert {row.flops for row in stage.rows if row.op == "scan"} == {3 * 7 * 5}


def test_a_loop_of_unknown_length_counts_one_trip_and_says_so() -> None:
    def run(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c * 2.0, x)

    row = only(traced(run, np.ones(5, F32)), "while")
    assert row.flops == 5 + 5 + 1
    assert "one trip" in row.note


def test_a_choice_costs_its_dearest_branch() -> None:
    def run(x: Any) -> Any:
        return lax.cond(x[0] > 0, vnp.sin, lambda x: vnp.sin(vnp.cos(x)), x)

    assert only(traced(run, np.ones(5, F32)), "cond").flops == 10


def test_memory_grows_and_shrinks() -> None:
    def run(x: Any) -> Any:
        y = vnp.sin(x)  # x and y: 8 kB
        z = vnp.cos(y)  # x, y and z: 12 kB, then y goes
        return z.sum()

    stage = traced(run, np.ones(1000, F32))
    live = [row.live for row in stage.rows if row.kind == EQUATION]
    assert live == [8000, 12000, 8004]
    assert stage.peak is not None
    assert stage.peak.bytes == 12000
    assert stage.rows[stage.peak.row].op == "cos"
    assert sorted([bytes for _, bytes in stage.peak.holders]) == [4000] * 3


def test_a_donated_argument_is_free_after_its_last_use() -> None:
    def run(x: Any) -> Any:
        return vnp.cos(vnp.sin(x))

    fun = verax.jit(run, donate_argnums=0)
    stage = traced(fun, np.ones(1000, F32))
    assert [r.live for r in stage.rows if r.kind == EQUATION] == [8000, 8000]
    assert "donated" in [row.note for row in stage.rows]


def test_the_memory_of_a_loop_body_adds_to_what_is_around_it() -> None:
    def step(c: Any, _: Any) -> tuple[Any, None]:
        return vnp.outer(c, c).sum(0), None

    def run(x: Any) -> Any:
        return lax.scan(step, x, None, length=2)[0]

    stage = traced(run, np.ones(100, F32))
    scan = only(stage, "scan")
    assert stage.peak is not None
    assert scan.live == stage.peak.bytes >= 40000 + 400
    assert stage.rows[stage.peak.row].depth > 0
    assert stage.peak.holders[0][1] == 40000


def test_the_compiled_program_has_a_peak() -> None:
    def run(x: Any) -> Any:
        return vnp.sin(x @ x)

    stage = explore(run)(np.ones((64, 64), F32)).content.stages[-1]
    assert stage.peak is not None
    assert 2 * 64 * 64 * 4 <= stage.peak.bytes <= 3 * 64 * 64 * 4


def test_a_compiled_loop_runs_in_the_memory_of_its_operands() -> None:
    def step(c: Any, x: Any) -> tuple[Any, Any]:
        return vnp.sin(c) + x, vnp.cos(c)

    def run(xs: Any) -> Any:
        return lax.scan(step, xs[0], xs)

    xs = np.ones((50, 10), F32)
    stage = explore(run)(xs).content.stages[-1]
    assert stage.peak is not None
    assert 2 * xs.nbytes <= stage.peak.bytes < 2.5 * xs.nbytes


def test_nothing_is_known_of_what_a_callback_does() -> None:
    def run(x: Any) -> Any:
        return verax.pure_callback(np.sin, verax.ShapeDtypeStruct(x.shape, F32), x)

    stages = explore(run)(np.ones(5, F32)).content.stages
    ops = ("pure_callback", "stablehlo.custom_call", "custom-call")
    for stage, op in zip(stages, ops, strict=True):
        assert (only(stage, op).flops, only(stage, op).bytes) == (None, 40)


def test_symbolic_sizes_have_no_costs() -> None:
    (size,) = verax.export.symbolic_shape("n")
    struct = verax.ShapeDtypeStruct((size,), F32)
    stage = traced(lambda x: vnp.sin(x).sum(), struct)
    assert only(stage, "sin").flops is None
