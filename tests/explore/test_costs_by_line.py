"""`verax.debug.costs`: operations, bytes and time by line, from types alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.typing.programs import gpt
from verax import lax, nn
from verax.debug import Costs, Device, costs

CHIP = Device("chip", flops=1e12, bandwidth=1e11, memory=1e9, half=4e12)
X, W = vnp.ones((64, 32)), vnp.ones((32, 16))


def line_in(f: Callable[..., Any], offset: int) -> int:
    """The number of a line of a function, counted from its `def`."""
    return f.__code__.co_firstlineno + offset


def flops_at(report: Costs, f: Callable[..., Any], offset: int) -> float:
    """The operations of a line."""
    total: float = sum(entry.flops for entry in report.by_line(line_in(f, offset)))
    return total


def layer(w: Any, x: Any) -> Any:
    h = x @ w
    y = vnp.tanh(h) + 1
    return vnp.sum(y)


def test_each_line_by_hand() -> None:
    report = costs(layer, device=CHIP)(W, X)
    assert flops_at(report, layer, 1) == 2 * 64 * 32 * 16
    assert flops_at(report, layer, 2) == 2 * 64 * 16
    assert flops_at(report, layer, 3) == 64 * 16
    product, rest = (
        report.by_line(line_in(layer, 1))[0],
        report.by_line(line_in(layer, 2)),
    )
    assert product.bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16)
    # tanh and + are computed where the sum reads them.
    assert rest[0].bytes == 4 * 64 * 16
    assert product.time == max(product.flops / 1e12, product.bytes / 1e11)
    assert product.bound == "memory"
    assert report.flops == sum(entry.flops for entry in report.lines)
    assert [e.time for e in report.lines] == sorted([e.time for e in report.lines])[
        ::-1
    ]


def test_a_gradient_costs_twice_more() -> None:
    report = costs(verax.grad(layer, argnums=(0, 1)), device=CHIP)(W, X)
    there, back = report.by_line(line_in(layer, 1))
    by_kind = {entry.kind: entry.flops for entry in (there, back)}
    assert by_kind["cotangent"] == 2 * by_kind["value"]


@pytest.mark.parametrize("count", [1, 7])
def test_loops_and_batches_multiply(count: int) -> None:
    def looped(w: Any, x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            d = c @ w
            return d, None

        return lax.scan(step, x, None, count)[0]

    square = vnp.ones((32, 32))
    once = 2 * 64 * 32 * 32
    report = costs(looped, device=CHIP)(square, X)
    assert flops_at(report, looped, 2) == count * once
    batched = costs(verax.vmap(looped, (None, 0)), device=CHIP)
    assert flops_at(batched(square, vnp.stack([X] * 5)), looped, 2) == 5 * count * once


def test_an_open_loop_counts_once_and_says_so() -> None:
    def until(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x)

    report = costs(until, device=CHIP)(X)
    assert not any(entry.estimated for entry in report.lines)
    assert "+" in str(report)


def test_a_choice_costs_its_dearest_branch() -> None:
    def chosen(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda x: x @ x.T, lambda x: vnp.ones((64, 64)), x)

    report = costs(chosen, device=CHIP)(True, X)
    assert report.flops == pytest.approx(2 * 64 * 32 * 64, abs=2)


def test_types_are_enough_and_halves_are_faster() -> None:
    struct = verax.ShapeDtypeStruct((512, 512), vnp.float32)
    half = verax.ShapeDtypeStruct((512, 512), vnp.bfloat16)
    whole, quick = (costs(vnp.matmul, device=CHIP)(x, x) for x in (struct, half))
    assert whole.flops == quick.flops == 2 * 512**3
    assert (whole.time, quick.time) == (2 * 512**3 / 1e12, 2 * 512**3 / 4e12)
    assert whole.lines[0].bound == "compute"
    assert quick.bytes == whole.bytes / 2


def test_the_compiler_counts_alike() -> None:
    def mlp(params: Any, x: Any) -> Any:
        for w in params[:-1]:
            x = nn.relu(x @ w)
        return vnp.mean((x @ params[-1]) ** 2)

    params = [vnp.ones((64, 128)), vnp.ones((128, 128)), vnp.ones((128, 8))]
    for f in (mlp, verax.grad(mlp)):
        ours = costs(f, device=CHIP)(params, vnp.ones((256, 64)))
        xla = verax.jit(f).lower(params, vnp.ones((256, 64))).compile().cost_analysis()
        assert ours.flops == pytest.approx(xla["flops"], rel=0.05)
        assert 0.5 < ours.bytes / xla["bytes accessed"] < 2


def test_a_language_model() -> None:
    config = gpt.Config()
    params = verax.eval_shape(lambda: gpt.init(config, verax.random.key(0)))
    step: Any = verax.ShapeDtypeStruct((), vnp.int32)
    batch: Any = verax.ShapeDtypeStruct((16, 17), vnp.int32)
    report = costs(gpt.train_step, device="h100")(
        params, gpt.Adam(params, params, step), config, batch
    )
    layers, tokens, d = config.layers, 16 * config.context, config.width
    dense = 2 * layers * tokens * 12 * d * d
    # Forwards, again within the checkpoint, and twice backwards.
    assert report.flops == pytest.approx(4 * dense, rel=0.35)
    assert report.lines[0].code.startswith("return x + nn.gelu")
    assert "← " in str(report)
    assert "<table" in report._repr_html_()
    assert repr(report).startswith("<CostReport") or "CostReport" in repr(report)


def test_this_machine_is_measured() -> None:
    report = costs(layer)(W, X)
    assert report.device.name == "this CPU"
    assert 1e8 < report.device.flops < 1e14
    assert 1e8 < report.device.bandwidth < 1e13


def test_wrong_calls() -> None:
    with pytest.raises(
        ValueError, match=r"no device is called 'h1000'; there are 'cpu'"
    ):
        costs(layer, device="h1000")
    with pytest.raises(TypeError, match="costs"):
        costs(3)  # type: ignore[arg-type]  # on purpose


def test_nothing_costs_nothing() -> None:
    report = costs(lambda x: x, device=CHIP)(np.ones(3))
    assert (report.flops, report.bytes, report.lines) == (0, 0, ())
    assert str(report).startswith("<lambda>: 0 flops")
