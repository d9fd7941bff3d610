"""Collectives of programs over eight devices, by line, axis and bytes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import verify
from verax.debug import Collective, Collectives, collectives
from verax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec as P,
)

MESH = Mesh(np.array(verax.devices()).reshape(4, 2), ("data", "model"))
AUTO = (AxisType.Auto,) * 2


def place(*spec: Any, mesh: Any = MESH) -> NamedSharding:
    return NamedSharding(mesh, P(*spec))


def struct(shape: tuple[int, ...], *spec: Any, mesh: Any = MESH) -> Any:
    return verax.ShapeDtypeStruct(shape, vnp.float32, sharding=place(*spec, mesh=mesh))


def kinds(report: Collectives) -> list[tuple[str, tuple[str, ...]]]:
    return [(entry.kind, entry.axes) for entry in report.entries]


def written(report: Collectives) -> int:
    """The instructions in the text of the program, counted without reading it."""
    words = "all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute"
    return len(re.findall(rf"= \S.*? (?:{words})(?:-start)?\(", report.program))


def loss(params: Any, x: Any) -> Any:
    first, second = params
    hidden = vnp.tanh(x @ first)
    return vnp.mean((hidden @ second) ** 2)


def test_a_data_parallel_gradient_sums_as_many_bytes_as_parameters() -> None:
    params = [struct((16, 32)), struct((32, 8))]
    report = collectives(verax.grad(loss))(params, struct((64, 16), "data"))
    assert {(e.kind, e.axes, e.backward) for e in report.entries} == {
        ("all-reduce", ("data",), True)
    }
    assert sum(e.total for e in report.entries) == 4 * (16 * 32 + 32 * 8)
    assert report.sent == 2 * 3 / 4 * 4 * (16 * 32 + 32 * 8)
    start = loss.__code__.co_firstlineno
    assert sorted({e.line for e in report.entries}) == [start + 2, start + 3]
    assert [e.bytes for e in report.by_line(start + 2)] == [4 * 16 * 32]
    assert report.entries[0].devices == 4
    assert report.instructions == written(report)


def test_fully_sharded_parameters_are_gathered_and_their_gradients_scattered() -> None:
    params = [struct((16, 32), "data"), struct((32, 8), "data")]
    places = [place("data"), place("data")]
    report = collectives(verax.grad(loss), out_shardings=places)(
        params, struct((64, 16), "data")
    )
    gathers = [e for e in report.entries if e.kind == "all-gather"]
    sums = [e for e in report.entries if e.kind != "all-gather"]
    assert sorted({e.bytes for e in gathers}) == [32 * 8, 16 * 32]  # a quarter each
    assert all(e.sliced or e.kind == "reduce-scatter" for e in sums)
    assert sorted(e.bytes for e in sums) == [4 * 32 * 8, 4 * 16 * 32]
    assert all(e.backward for e in sums)
    assert {e.axes for e in report.entries} == {("data",)}
    assert report.instructions == written(report)


def test_a_tensor_parallel_network_sums_over_the_axis_of_the_model() -> None:
    params = [struct((16, 32), None, "model"), struct((32, 8), "model")]
    x = struct((64, 16), "data")

    def network(params: Any, x: Any) -> Any:
        first, second = params
        return vnp.tanh(x @ first) @ second

    report = collectives(network)(params, x)
    (entry,) = report.entries
    assert (entry.kind, entry.axes) == ("all-reduce", ("model",))
    assert entry.bytes == 4 * (64 // 4) * 8
    assert entry.operation == "dot_general"
    assert not entry.backward
    assert report.along("model") == (entry,)
    assert report.along("data") == ()
    assert report.memory.arguments == 4 * (16 * 16 + 16 * 8 + 16 * 16)


def scanned(x: Any) -> Any:
    def body(c: Any, _: Any) -> Any:
        return c + 0.1 * verax.lax.psum(vnp.sin(c), "data"), None

    return verax.lax.scan(body, x, None, length=7)[0]


def test_a_psum_in_a_loop_of_shard_map_counts_as_often_as_it_runs() -> None:
    f = verax.shard_map(scanned, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    report = collectives(f)(struct((16, 8), "data"))
    (entry,) = report.entries
    assert (entry.kind, entry.axes, entry.times) == ("all-reduce", ("data",), 7)
    assert entry.estimated
    assert entry.bytes == 4 * 4 * 8
    assert entry.line == scanned.__code__.co_firstlineno + 2
    assert "psum" in entry.code
    assert report.instructions == written(report) == 1


def test_a_loop_of_unknown_length_counts_once_and_says_so() -> None:
    def body(x: Any) -> Any:
        return verax.lax.while_loop(
            lambda c: verax.lax.pmax(c.max(), "data") < 100.0,
            lambda c: c + 1.0,
            x,
        )

    f = verax.shard_map(body, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    report = collectives(f)(struct((16, 8), "data"))
    assert report.entries
    assert not any(e.estimated for e in report.entries)
    assert "1+" in str(report)


def test_a_ring_of_ppermute_permutes() -> None:
    ring = [(i, (i + 1) % 4) for i in range(4)]

    def turned(x: Any) -> Any:
        return verax.lax.ppermute(x, "data", ring)

    f = verax.shard_map(turned, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    report = collectives(f)(struct((8, 4), "data"))
    assert "collective-permute" in {e.kind for e in report.entries}
    line = turned.__code__.co_firstlineno + 1
    assert {e.line for e in report.entries} == {line}
    assert report.instructions == written(report)


def test_a_sum_over_both_axes() -> None:
    report = collectives(lambda x: x.sum(0))(struct((16, 8), ("data", "model")))
    assert kinds(report) == [("all-reduce", ("data", "model"))]
    assert report.entries[0].devices == 8


def test_devices_in_another_order_lie_along_the_same_axes() -> None:
    devices = np.array(verax.devices()).reshape(2, 4).T
    mesh = Mesh(devices, ("data", "model"))
    for spec in ("data", "model"):
        report = collectives(lambda x: x.sum(0))(struct((16, 8), spec, mesh=mesh))
        assert kinds(report) == [("all-reduce", (spec,))]


def test_part_of_an_axis_says_so() -> None:
    mesh = Mesh(np.array(verax.devices()), ("data",))
    x = struct((8, 16), "data", mesh=mesh)
    report = collectives(lambda x: x.reshape(4, 2, 16).sum(1))(x)
    assert [e.whole for e in report.entries if e.kind == "all-reduce"] == [False]
    assert "data (part)" in str(report)


def test_half_precision_is_counted_in_its_own_type() -> None:
    def struct16(shape: tuple[int, ...], *spec: Any) -> Any:
        return verax.ShapeDtypeStruct(shape, vnp.bfloat16, sharding=place(*spec))

    report = collectives(verax.grad(loss))(
        [struct16((16, 32)), struct16((32, 8))], struct16((64, 16), "data")
    )
    assert sum(e.total for e in report.entries) == 2 * (16 * 32 + 32 * 8)


def test_an_abstract_mesh_of_eight_says_what_one_of_devices_does() -> None:
    mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=AUTO)
    out = []
    for each in (MESH, mesh):
        params = [struct((16, 32), mesh=each), struct((32, 8), "model", mesh=each)]
        x = struct((64, 16), "data", mesh=each)
        out.append(collectives(verax.grad(loss))(params, x))
    assert out[0].entries == out[1].entries
    assert out[0].memory == out[1].memory


@pytest.mark.parametrize("spec", [P("data"), P(("data", "model"))])
def test_an_abstract_mesh_of_sixty_four(spec: P) -> None:
    mesh = AbstractMesh((8, 8), ("data", "model"), axis_types=AUTO)
    places = ([NamedSharding(mesh, P())] * 2, NamedSharding(mesh, spec))
    params = [np.ones((16, 32), np.float32), np.ones((32, 8), np.float32)]
    before = verax.devices()
    report = collectives(verax.grad(loss), in_shardings=places)(
        params, np.ones((64, 16), np.float32)
    )
    axes = ("data",) if spec == P("data") else ("data", "model")
    assert {(e.kind, e.axes) for e in report.entries} == {("all-reduce", axes)}
    assert report.devices == 64
    assert verax.devices() == before
    assert float(vnp.ones(3).sum()) == 3.0


def test_shard_map_over_an_abstract_mesh() -> None:
    mesh = AbstractMesh((16, 4), ("data", "model"), axis_types=AUTO)
    f = verax.shard_map(scanned, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    report = collectives(f)(verax.ShapeDtypeStruct((32, 8), vnp.float32))
    (entry,) = report.entries
    assert (entry.axes, entry.times, entry.devices) == (("data",), 7, 16)


def test_explicit_axes_of_a_mesh_in_force() -> None:
    mesh = AbstractMesh((16, 2), ("data", "model"))

    def product(x: Any, w: Any) -> Any:
        return vnp.matmul(x, w, out_sharding=P("data", None))

    x = struct((32, 8), "data", "model", mesh=mesh)
    w = struct((8, 4), "model", None, mesh=mesh)
    report = collectives(product, mesh=mesh)(x, w)
    (entry,) = report.entries
    assert (entry.kind, entry.axes, entry.bytes) == ("all-reduce", ("model",), 32)


def test_too_many_devices_are_refused() -> None:
    mesh = AbstractMesh((1024, 8), ("data", "model"), axis_types=AUTO)
    with pytest.raises(ValueError, match=r"8192 devices .* more than the 512"):
        collectives(lambda x: x.sum())(struct((8192,), "data", mesh=mesh))


def test_uneven_results_that_the_compiler_chose() -> None:
    mesh = AbstractMesh((16,), ("data",), axis_types=(AxisType.Auto,))
    report = collectives(lambda x: x[:20] * 2)(struct((32,), "data", mesh=mesh))
    assert report.devices == 16


def test_donated_arguments_share_memory_with_results() -> None:
    x = struct((64, 64), "data")
    report = collectives(lambda x: x + 1, donate_argnums=0, out_shardings=x.sharding)(x)
    assert report.memory.aliased == 4 * 16 * 64
    assert report.peak == 4 * 16 * 64 + report.memory.temporaries


def test_reports_print_and_show_themselves() -> None:
    report = collectives(lambda x: x.sum(0))(struct((16, 8), "data"))
    text = str(report)
    assert text.startswith("<lambda> on 8 devices (data 4, model 2): 1 collective,")
    assert "all-reduce" in text
    assert "temporaries" in text
    assert "all-reduce" in report._repr_html_()
    assert isinstance(report.entries[0], Collective)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="collectives"):
        collectives(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Mesh"):
        collectives(vnp.sin, mesh=4)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="jitted"):
        collectives(verax.jit(vnp.sin), donate_argnums=0)


def test_pinned_programs_fail_with_the_line_of_a_new_collective(tmp_path: Path) -> None:
    path = tmp_path / "loss.jaxpr"
    params, x = [struct((16, 32)), struct((32, 8))], struct((64, 16), "data")

    def centred(params: Any, x: Any) -> Any:
        x = x - x.mean(0)
        return loss(params, x)

    def pin(fun: Any, **options: Any) -> None:
        verify.assert_same_program(
            path, verax.grad(fun), params, x, collectives=True, **options
        )

    pin(loss, update=True)
    pin(loss)
    pin(loss, exact=False)
    assert "all-reduce over data calls: 2" in path.read_text()
    line = centred.__code__.co_firstlineno + 1
    for exact in (True, False):
        with pytest.raises(AssertionError) as caught:
            pin(centred, exact=exact)
        message = str(caught.value)
        assert "all-reduce over data calls 2 -> 3" in message
        assert re.search(rf"cases_collectives.py:{line} .*x - x.mean", message)
    pin(centred, update=True)
    pin(loss, exact=False)


def test_only_collectives_that_changed_fail_an_exact_pin(tmp_path: Path) -> None:
    path = tmp_path / "sum.jaxpr"

    def total(x: Any) -> Any:
        return x.sum(0)

    def pin(x: Any, **options: Any) -> None:
        verify.assert_same_program(path, total, x, collectives=True, **options)

    pin(struct((16, 8), "data"), update=True)
    with pytest.raises(AssertionError, match="over data and model calls 0 -> 1"):
        pin(struct((16, 8), ("data", "model")))


def test_costs_over_a_mesh_are_of_all_devices_which_share_the_time() -> None:
    f = verax.shard_map(scanned, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    x = np.ones((16, 8), np.float32)
    report = verax.debug.costs(f, device="h100")(x)
    assert report.devices == 8
    assert "ms on 8 x h100" in report.title
    (entry,) = report.by_line(scanned.__code__.co_firstlineno + 2)
    assert entry.flops >= 7 * 3 * 16 * 8
    alone = verax.debug.costs(lambda x: vnp.sin(x) @ x.T, device="h100")(x)
    spread = verax.debug.costs(lambda x: vnp.sin(x) @ x.T, device="h100")(
        struct((16, 8), "data")
    )
    assert (alone.devices, spread.devices) == (1, 8)
    assert (alone.flops, alone.bytes) == (spread.flops, spread.bytes)
    assert spread.time == pytest.approx(alone.time / 8)


def test_watch_sees_the_values_of_all_devices_inside_shard_map() -> None:
    f = verax.shard_map(scanned, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    x = verax.device_put(
        np.arange(128, dtype=np.float32).reshape(16, 8) / 64, place("data")
    )
    out, seen = verax.debug.watch(verax.jit(f))(x)
    expected = verax.jit(f)(x)
    assert np.array_equal(np.asarray(out), np.asarray(expected))
    assert out.sharding == expected.sharding
    line = scanned.__code__.co_firstlineno + 2
    (value,) = [v for v in seen.values if v.line == line]
    parts, greatest = np.asarray(x).reshape(4, 4, 8), -np.inf
    for _ in range(7):
        parts = parts + np.float32(0.1) * np.sin(parts).sum(0)
        greatest = max(greatest, parts.max())
    assert value.runs == 7
    assert value.greatest == pytest.approx(greatest, rel=1e-5)


def test_operations_of_one_device_hold_what_all_repeat() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ w

    split = collectives(product)(struct((64, 16), "data"), struct((16, 8)))
    assert split.flops == 2 * 64 * 16 * 8 / 4  # along `model` devices do the same
    both = collectives(product)(
        struct((64, 16), "data"), struct((16, 8), None, "model")
    )
    assert both.flops == 2 * 64 * 16 * 8 / 8


def test_pages_of_programs_on_these_devices() -> None:
    def f(x: Any) -> Any:
        return vnp.sum(vnp.sin(x) @ x.T)

    x = verax.device_put(np.ones((8, 4), np.float32), place("data", "model"))
    document: Any = verax.explore(f, profile=True, watch=True)(x).document
    talk, report = document["collectives"], collectives(f)(x)
    assert (talk["devices"], talk["axes"]) == (8, {"data": 4, "model": 2})
    assert [one["bytes"] for one in talk["talks"]] == [e.bytes for e in report.entries]
    assert all(one["rows"] for one in talk["talks"])
    assert document["profile"] is not None
    assert document["watch"]["values"]
