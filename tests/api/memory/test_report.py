"""`debug.memory`: what a function takes, which lines hold it, and plans by line."""

import functools
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY
from tests.benchmarks.memory_programs import PROGRAMS
from verax import lax
from verax.debug import MemoryFormulas, MemoryReport, memory
from verax.explorer.memory.report import bars
from verax.transforms.memory.alive import flat_program


def floats(*shape: Any) -> verax.ShapeDtypeStruct:
    return verax.ShapeDtypeStruct(shape, vnp.float32)


def layers(weights: list[Any], x: Any) -> Any:
    for w in weights:
        x = vnp.tanh(x @ w)  # a layer
    return vnp.mean(x**2)  # the loss


def loop(w: Any, x: Any) -> Any:
    def step(h: Any, _: None) -> tuple[Any, None]:
        return vnp.tanh(h @ w), None  # a step

    return vnp.sum(lax.scan(step, x, None, length=50)[0] ** 2)


LAYERS = [floats(32, 32)] * 8, floats(512, 32)
LOOP = floats(16, 16), floats(64, 16)


def held(fun: Any, *args: Any) -> tuple[int, int]:
    """The bytes of the values at the fullest step, and what is in use there."""
    program = flat_program(verax.jit(fun).trace(*args).traced.jaxpr)
    number = program.line.fullest
    return sum([one.bytes for one in program.held(number)]), program.line.used[number]


@pytest.mark.parametrize(("fun", "args"), [(layers, LAYERS), (loop, LOOP)])
def test_lines_add_up_to_what_is_predicted(fun: Any, args: Any) -> None:
    report = memory(verax.grad(fun), measure=False)(*args)
    assert sum([line.bytes for line in report.lines]) == report.model.temporaries
    assert (
        report.fullest.bytes
        == report.temporaries
        == max([point.bytes for point in report.curve])
    )
    assert report.measured is None
    sizes = [line.bytes for line in report.lines]
    assert sizes == sorted(sizes, reverse=True)


def test_every_step_adds_up() -> None:
    for fun, args in ((layers, LAYERS), (loop, LOOP)):
        jaxpr = verax.jit(verax.value_and_grad(fun)).trace(*args).traced.jaxpr
        program = flat_program(jaxpr)
        for number, used in enumerate(program.line.used):
            assert sum([one.bytes for one in program.held(number)]) == used


def test_what_the_compiler_says() -> None:
    report = memory(verax.grad(layers))(*LAYERS)
    found = verax.jit(verax.grad(layers)).lower(*LAYERS).compile().memory_analysis()
    assert report.arguments == found.arguments == 8 * 4096 + 65536
    assert report.outputs == found.outputs >= report.model.outputs == 8 * 4096
    assert report.temporaries == found.temporaries
    assert report.measured == report.total
    assert report.predicted == pytest.approx(report.total, rel=0.15)


def test_lines_of_values_and_cotangents() -> None:
    report = memory(verax.grad(layers))(*LAYERS)
    first = report.lines[0]
    assert first.code == "x = vnp.tanh(x @ w)  # a layer"
    assert first.kind == "value"
    assert first.types == ("f32[512,32]",)
    assert first.bytes == first.count * 512 * 32 * 4
    assert first.count >= 7
    assert first.length is None
    assert first in report.by_line(first.line)


def test_stacks_of_a_loop() -> None:
    report = memory(verax.grad(loop))(*LOOP)
    first = report.lines[0]
    assert first.code.endswith("# a step")
    assert (first.length, first.each) == (50, first.bytes // 50)
    forward, backward = report.loops
    assert (forward.length, forward.depth) == (50, 0)
    assert forward.carried == 64 * 16 * 4
    assert forward.stacked == sum([row.bytes for row in forward.rows])
    assert forward.total == 50 * forward.stacked
    assert backward.read == forward.stacked
    assert backward.place.kind == "cotangent"
    assert backward.peak > 0
    assert report.predicted == pytest.approx(report.total, rel=0.05)


def test_loops_in_loops_and_of_unknown_length() -> None:
    def inner(h: Any, _: None) -> tuple[Any, Any]:
        return vnp.sin(h), h

    def outer(h: Any, _: None) -> tuple[Any, Any]:
        return lax.scan(inner, h, None, length=3)

    def fun(x: Any) -> Any:
        x = lax.while_loop(lambda x: vnp.sum(x) > 0, lambda x: x - vnp.sort(x), x)
        return lax.scan(outer, x, None, length=5)[1]

    loops = memory(fun, measure=False)(floats(100)).loops
    assert [(one.length, one.depth) for one in loops] == [(None, 0), (5, 0), (3, 1)]
    assert [one.stacked for one in loops] == [0, 1200, 400]
    assert [one.total for one in loops] == [0, 6000, 1200]


def test_the_curve_is_thinned() -> None:
    def long(x: Any) -> Any:
        for _ in range(500):
            x = vnp.tanh(x @ x)
        return vnp.sum(x)

    curve = memory(verax.grad(long), measure=False)(floats(8, 8)).curve
    assert 100 < len(curve) <= 400
    assert [point.step for point in curve] == sorted([point.step for point in curve])
    assert curve[0].place.code == "x = vnp.tanh(x @ x)"
    assert bars(list(range(200))) == bars(list(range(200)))
    assert len(bars(list(range(200)))) == 64


def test_a_budget_has_a_plan() -> None:
    whole = memory(verax.grad(layers))(*LAYERS)
    report = memory(verax.grad(layers), budget=0.7)(*LAYERS)
    plan = report.plan
    assert plan is not None
    assert plan.fits
    assert plan.before.total == whole.total
    assert plan.total == report.total <= 0.7 * whole.total
    assert 0 < plan.extra < 1
    assert plan.least <= plan.total
    assert plan.again[0].place.code.endswith("# a layer")
    assert plan.again[0].flops > 0
    assert plan.again[0].bytes > 0
    assert sum([line.bytes for line in plan.kept]) < whole.temporaries
    assert "more operations; smallest budget" in str(report)
    assert "runs again" in str(report)


@pytest.mark.slow
def test_networks_with_skip_connections_have_plans() -> None:
    """Their cotangents are not computed again from every layer on the way."""

    def loss(weights: list[Any], x: Any) -> Any:
        for w in weights:
            x = vnp.tanh(vnp.sin(x @ w) + x)
        return vnp.mean(x**2)

    plan = memory(verax.grad(loss), budget=0.5)([floats(32, 32)] * 12, LAYERS[1]).plan
    assert plan is not None
    assert plan.fits
    assert plan.again[0].bytes > 0


@NIGHTLY
def test_sums_that_store_no_constants_may_be_enough() -> None:
    """A library for sums on a CPU takes constants as arrays: they may go first."""
    loss, types = PROGRAMS["unet"](width=4, size=32)
    function: Any = verax.value_and_grad(loss, memory=0.8)
    plan = memory(function)(*types).plan
    assert plan is not None
    assert plan.fits
    assert plan.lean
    assert not plan.again
    assert "with sums in XLA's own loops; smallest" in plan.title
    options = dict(function.lower(*types).stage.options.overrides)
    assert options["xla_cpu_experimental_ynn_fusion_type"].count("DOT") == 2
    mine: dict[str, Any] = {
        "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_REDUCE"
    }
    plain = verax.jit(verax.value_and_grad(loss), memory=0.8, compiler_options=mine)
    assert dict(plain.lower(*types).stage.options.overrides) == mine


def test_the_smallest_budget_is_enough() -> None:
    plan = memory(verax.grad(layers), budget=0.7)(*LAYERS).plan
    assert plan is not None
    limited: Any = verax.grad(layers, memory=plan.least)
    found = limited.lower(*LAYERS).compile().memory_analysis()
    assert found.arguments + found.outputs + found.temporaries <= plan.least


def test_a_budget_that_is_too_small_is_no_error() -> None:
    report = memory(verax.grad(layers), budget="1kB")(*LAYERS)
    assert report.plan is not None
    assert not report.plan.fits
    assert "no plan is within it" in str(report)


def test_a_budget_that_is_large_enough_changes_nothing() -> None:
    report = memory(verax.grad(loop), budget="1GB")(*LOOP)
    assert report.plan is not None
    assert report.plan.again == ()
    assert report.plan.extra == 0
    assert "fits as it is" in str(report)


@pytest.mark.slow
def test_functions_that_have_a_budget() -> None:
    report = memory(verax.grad(loop, memory=0.8))(*LOOP)
    assert report.plan is not None
    assert report.total <= 0.8 * report.plan.before.total


def test_jitted_functions_and_options() -> None:
    @functools.partial(verax.jit, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x**n @ x

    x = floats(20, 20)
    jitted = memory(power)(x, 3)
    assert jitted.name == "power"
    plain = memory(lambda x, n: x**n @ x, static_argnums=1)(x, 3)
    assert plain.total == jitted.total
    with pytest.raises(TypeError, match="options of jit"):
        memory(power, static_argnums=1)
    given = memory(lambda x: x + 1, donate_argnums=0)(x)
    assert given.use.shared == given.model.shared == 1600
    assert given.total == given.predicted == 1600


def test_devices_that_are_not_there() -> None:
    mesh = verax.sharding.AbstractMesh((4,), ("data",))
    rows = verax.sharding.NamedSharding(mesh, verax.sharding.PartitionSpec("data"))
    fun = memory(lambda x: vnp.sum(vnp.tanh(x) ** 2, 1), in_shardings=rows)
    report = fun(floats(64, 16))
    assert report.devices == 4
    assert report.arguments == 64 * 16
    assert report.model.arguments == 4 * 64 * 16
    assert "on each of 4 devices" in str(report)


def test_arrays_as_arguments_and_unused_ones() -> None:
    report = memory(lambda x, y: vnp.sin(x))(np.ones(100, np.float32), np.ones(50))
    assert report.arguments == report.model.arguments == 400
    assert report.lines == ()
    assert str(report).startswith("<lambda>: 800B")


def test_what_is_no_function_or_no_budget() -> None:
    with pytest.raises(TypeError, match="memory"):
        memory(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no number of bytes"):
        memory(layers, budget="two")


def test_text_fits_a_terminal() -> None:
    for fun, args in ((layers, LAYERS), (loop, LOOP)):
        text = str(memory(verax.grad(fun), budget=0.8)(*args))
        assert max(map(len, text.splitlines())) <= 80


def test_html() -> None:
    report = memory(verax.grad(loop), budget=0.8)(*LOOP)
    html = report._repr_html_()
    assert html.count("<table") == 3
    assert "runs again" in html


def test_formulas() -> None:
    b, d = verax.export.symbolic_shape("b, d")
    args = [floats(d, d)] * 8, floats(b, d)
    report: Any = memory(verax.grad(layers), measure=False)(*args)
    assert isinstance(report, MemoryFormulas)
    assert report.arguments.at(b=512, d=32) == 8 * 4096 + 65536
    assert str(report.outputs) == "32*d^2"
    assert report.lines[0].count >= 7
    assert report.lines[0].code.endswith("# a layer")
    known = report.at(b=512, d=32)
    assert isinstance(known, MemoryReport)
    assert known == memory(verax.grad(layers), measure=False)(*LAYERS)
    assert report.kept.at(b=512, d=32) <= known.temporaries
    with pytest.raises(TypeError, match="a size for each variable"):
        report.at(b=512)
    assert "kept for the way back" in str(report)
    assert "<table" in report._repr_html_()


def test_formulas_of_a_loop() -> None:
    (b,) = verax.export.symbolic_shape("b")
    report: Any = memory(verax.grad(loop), measure=False)(floats(16, 16), floats(b, 16))
    assert isinstance(report, MemoryFormulas)
    first = report.lines[0]
    assert first.length == 50
    exact = memory(verax.grad(loop), measure=False)(*LOOP)
    assert first.at(b=64) == exact.lines[0].bytes
