"""Operations and bytes of StableHLO and of what XLA compiles."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.api.config.config import override
from verax.explorer.exploration import explore
from verax.explorer.recording import Stage, totals
from verax.explorer.rows.costs import (
    Array,
    Operation,
    arrays,
    bytes_of_operation,
    flops_of_operation,
)
from verax.explorer.rows.row import HEAD, Row

F32 = np.float32
KERNELS = vnp.ones((5, 3, 3, 3))


def module(fun: Callable[..., Any], *args: Any) -> Stage:
    """The StableHLO of a function."""
    return explore(fun, compile=False)(*args).content.stages[-1]


def compiled(fun: Callable[..., Any], *args: Any) -> Stage:
    """What XLA makes of a function."""
    return explore(fun)(*args).content.stages[-1]


def only(stage: Stage, op: str) -> Row:
    """The only row of an operation."""
    (row,) = [row for row in stage.rows if row.op.rpartition(".")[2] == op]
    return row


def flops(stage: Stage) -> object:
    return totals(stage.rows)["flops"]


@pytest.mark.parametrize(
    ("text", "shape", "width"),
    [
        ("tensor<4x8xf32>", (4, 8), 4),
        ("tensor<i1>", (), 1),
        ("tensor<3xcomplex<f64>>", (3,), 16),
        ("tensor<?x3xbf16>", None, 2),
        ("f32[4,8]{1,0}", (4, 8), 4),
        ("pred[]", (), 1),
        ("bf16[2]{0}", (2,), 2),
        ("f8e4m3fn[7]", (7,), 1),
        ("c64[5]", (5,), 8),
        ("s32[<=9]", None, 4),
        ("f32[0,8]", (0, 8), 4),
    ],
)
def test_types_of_both_forms(text: str, shape: object, width: int) -> None:
    assert arrays(text) == (Array(shape, width),)  # type: ignore[arg-type]  # a case


def test_types_in_a_tuple() -> None:
    actual = arrays("(s32[], /*index=1*/f32[4]{0}, (u8[2]))")
    assert [one.shape for one in actual] == [(), (4,), (2,)]


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("dot_general", "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_c"),
        ("dot", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ],
)
def test_a_product_of_matrices(op: str, attributes: str) -> None:
    ins = (Array((8, 16), 4), Array((16, 4), 4))
    dot = Operation(op, ("%a", "%b"), ins, (Array((8, 4), 4),), attributes)
    assert flops_of_operation(dot) == 2 * 8 * 16 * 4
    assert bytes_of_operation(dot) == 4 * (8 * 16 + 16 * 4 + 8 * 4)


@pytest.mark.parametrize("form", [module, compiled])
def test_a_convolution(form: Callable[..., Stage]) -> None:
    def run(x: Any) -> Any:
        return lax.conv(x, KERNELS, (1, 1), "VALID")

    with override("cpu_lowerings", "xla"):  # few features would be sums of products
        row = only(form(run, np.ones((2, 3, 10, 10), F32)), "convolution")
    assert row.flops == 2 * (2 * 5 * 8 * 8) * (3 * 3 * 3)


@pytest.mark.parametrize(
    ("fun", "op", "flops", "bytes"),
    [
        (lambda x: lax.sin(x), "sine", 24, 2 * 96),
        (lambda x: lax.reshape(x, (24,)), "reshape", 0, 0),
        (lambda x: lax.transpose(x, (1, 0)), "transpose", 0, 2 * 96),
        (lambda x: lax.slice(x, (0, 0), (2, 2)), "slice", 0, 32),
        (lambda x: lax.mul(x, x), "multiply", 24, 2 * 96),
        (lambda x: x.sum(), "reduce", 24, 96 + 4 + 4),
        (lambda x: lax.sort(x, dimension=0), "sort", 24 * 2, None),
        (lambda x: x.at[vnp.array([0, 2])].set(1.0), "scatter", 0, None),
        (lambda x: x.at[vnp.array([0, 2])].add(1.0), "scatter", 12, None),
        (lambda x: vnp.fft.fft(x), "fft", 5 * 24 * np.log2(6), None),
    ],
)
def test_small_operations(fun: Any, op: str, flops: int, bytes: int | None) -> None:
    row = only(module(fun, np.ones((4, 6), F32)), op)
    assert row.flops == pytest.approx(flops)
    assert bytes is None or row.bytes == bytes


def rnn(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> tuple[Any, Any]:
        h = vnp.tanh(w @ h + x)
        return h, h

    return lax.scan(step, xs[0], xs)[1]


@pytest.mark.parametrize("form", [module, compiled])
def test_a_loop_costs_its_trips(form: Callable[..., Stage]) -> None:
    stage = form(rnn, np.ones((16, 16), F32), np.ones((50, 16), F32))
    assert only(stage, "tanh").flops == 50 * 16
    loop = only(stage, "while")
    once = 2 * 16 * 16 + 2 * 16
    assert 50 * once <= (loop.flops or 0) <= 50 * (once + 10)
    assert not loop.note


def test_a_loop_moves_the_parts_that_it_reads_and_writes() -> None:
    """Bytes grow with the trips, not with trips times the size of what is stacked."""
    moved = []
    for trips in (50, 100):
        stage = compiled(rnn, np.ones((16, 16), F32), np.ones((trips, 16), F32))
        moved.append(only(stage, "while").bytes or 0.0)
    assert moved[1] == pytest.approx(2 * moved[0], rel=0.01)


@pytest.mark.parametrize("form", [module, compiled])
def test_a_loop_of_unknown_length_counts_one_trip_and_says_so(form: Any) -> None:
    def run(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c * 2.0, x)

    row = only(form(run, np.ones(5, F32)), "while")
    assert row.flops == 5 + 5 + 1
    assert "one trip" in row.note


def test_a_counted_loop_of_the_users_counts_its_trips() -> None:
    def run(x: Any, n: int = 12) -> Any:
        def more(state: Any) -> Any:
            return state[0] < n

        def step(state: Any) -> Any:
            return state[0] + 3, vnp.sin(state[1])

        return lax.while_loop(more, step, (0, x))[1]

    assert only(module(run, np.ones(5, F32)), "sine").flops == 4 * 5
    assert only(module(lambda x: run(x, 13), np.ones(5, F32)), "sine").flops == 5 * 5
    assert only(module(lambda x: run(x, 0), np.ones(5, F32)), "sine").flops == 0


def test_a_function_costs_all_its_calls() -> None:
    @verax.jit
    def twice(x: Any) -> Any:
        return lax.sin(lax.sin(x))

    def run(x: Any) -> Any:
        return twice(twice(x))

    stage = module(run, np.ones(5, F32))
    assert flops(stage) == 4 * 5
    heads = {row.right: row.flops for row in stage.rows if row.kind == HEAD}
    functions = [amount for name, amount in heads.items() if name != "@main"]
    if functions:  # the rows of a function stand for all calls
        assert functions == [4 * 5]
        assert [r.flops for r in stage.rows if r.op == "func.call"] == [None, None]


def test_a_choice_costs_its_dearest_branch() -> None:
    def run(x: Any) -> Any:
        return lax.cond(x[0] > 0, vnp.sin, lambda x: vnp.sin(vnp.cos(x)), x)

    stage = module(run, np.ones(5, F32))
    assert only(stage, "case").flops == 10
    heads = [row.right for row in stage.rows if row.kind == HEAD]
    assert heads == ["@main", "branches[0]", "branches[1]"]
    assert only(compiled(run, np.ones(5, F32)), "conditional").flops == 10


def test_a_function_of_a_library_costs_what_its_equation_does() -> None:
    stages = explore(vnp.linalg.cholesky)(np.eye(6, dtype=F32)).content.stages
    assert only(stages[-2], "custom_call").flops == 6**3 / 3
    assert only(stages[-1], "custom-call").flops == 6**3 / 3


def test_a_fusion_sums_operations_and_moves_what_leaves_it() -> None:
    def run(x: Any) -> Any:
        return vnp.exp(vnp.tanh(x) + 1.0)

    stage = compiled(run, np.ones((32, 32), F32))
    fusion = only(stage, "fusion")
    assert fusion.flops == 3 * 32 * 32
    assert fusion.bytes == 2 * 4 * 32 * 32
    assert {only(stage, "exponential").bytes, only(stage, "tanh").bytes} == {0.0}


def test_sizes_that_are_not_known_have_no_costs() -> None:
    unknown, known = Array(None, 4), Array((3,), 4)
    add = Operation("add", ("%a", "%b"), (unknown, known), (unknown,))
    assert flops_of_operation(add) is None
    assert bytes_of_operation(add) is None
    assert (
        flops_of_operation(Operation("of_tomorrow", ("%a",), (known,), (known,)))
        is None
    )
