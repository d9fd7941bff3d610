"""Plans for meshes that are not there, held to what XLA says of them."""

import re
from math import prod
from typing import Any

import pytest

import verax
import verax.numpy as vnp
from tests.benchmarks.mesh_plans import cells, held, totals
from tests.benchmarks.mesh_programs import PROGRAMS, mesh_of, typed
from verax.debug import Device, Link, MeshPlan, collectives, plan
from verax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

SMALL: dict[str, dict[str, Any]] = {
    "tensor parallel": {"width": 64, "batch": 256},
    "fsdp in a loop": {"width": 64, "batch": 256},
    "shard_map": {},
}
MESHES = ((8, 2), (2, 8), (4, 4))
CHIP = Device("chip", 1e12, 1e11, 1e9)
CABLE = Link("cable", 1e9, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", MESHES, ids=str)
@pytest.mark.parametrize("name", SMALL)
def test_smaller_meshes_say_what_xla_says(name: str, sizes: tuple[int, int]) -> None:
    found = held(name, PROGRAMS[name](**SMALL[name]), sizes, few=8)
    assert found.expected == found.actual
    assert found.actual
    assert abs(found.error) < 0.1, found
    assert cells(name, [found])[-1].endswith("the same on 1 of 1 meshes")


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_memory_and_collectives_are_those_of_the_compiler(name: str) -> None:
    fun, arguments = PROGRAMS[name](**SMALL[name])
    report = plan(fun, mesh=mesh_of(4, 2))(*arguments)
    other = collectives(fun, mesh=mesh_of(4, 2))(*moved(arguments, mesh_of(4, 2)))
    assert totals(report.collectives) == totals(other.entries)
    assert report.memory.peak == other.peak
    assert report.memory.arguments == other.memory.arguments
    assert sum(report.memory.groups.values()) == other.memory.arguments
    assert report.flops <= other.flops
    assert not report.samples


def moved(arguments: Any, mesh: AbstractMesh) -> Any:
    def one(x: Any) -> Any:
        return x.update(sharding=x.sharding.update(mesh=mesh))

    return verax.tree.map(one, arguments)


def loss(w: Any, x: Any) -> Any:
    return vnp.mean(vnp.tanh(x @ w) ** 2)


def rows_plan(mesh: AbstractMesh, **options: Any) -> MeshPlan:
    x = verax.ShapeDtypeStruct((512, 64), vnp.float32)
    w = verax.ShapeDtypeStruct((64, 64), vnp.float32)
    places = P(), P("data")
    return plan(verax.grad(loss), mesh=mesh, in_shardings=places, **options)(w, x)


def test_the_bytes_of_groups_that_talk_stand_in_the_text_of_the_program() -> None:
    mesh = mesh_of(4, 2)
    places = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    w, x = vnp.ones((64, 64)), vnp.ones((512, 64))
    text = collectives(verax.grad(loss), in_shardings=places)(w, x).program
    (shape,) = re.findall(r"= f32\[([\d,]+)\]\S* all-reduce\(", text)
    report = rows_plan(mesh)
    (entry,) = report.collectives
    assert entry.bytes == 4 * prod(map(int, shape.split(","))) == 4 * 64 * 64
    assert (entry.kind, entry.axes, entry.devices) == ("all-reduce", ("data",), 4)


def test_a_step_is_the_longer_of_work_and_talk_or_both() -> None:
    mesh = mesh_of(4, 1)
    together = rows_plan(mesh, device=CHIP, links=CABLE)
    apart = rows_plan(mesh, device=CHIP, links=CABLE, overlap=False)
    (entry,) = together.collectives
    assert entry.time == pytest.approx(1.5 * 4 * 64 * 64 / 1e9 + 4e-6)
    work = sum(line.time for line in together.lines)
    assert together.time == pytest.approx(max(work, entry.time))
    assert apart.time == pytest.approx(work + entry.time)
    assert dict(apart.busy) == dict(apart.exposed) == dict(together.busy)
    assert together.bound == "along data"
    slow = rows_plan(mesh, device=Device("slow", 1e6, 1e11, 1e9), links=CABLE)
    assert slow.bound == "compute"
    assert slow.mfu == pytest.approx(1, rel=1e-4)


def test_loops_multiply_and_are_regions_of_their_own() -> None:
    def steps(w: Any, x: Any) -> Any:
        def one(x: Any, _: Any) -> Any:
            return vnp.tanh(x @ w), None

        return vnp.sum(verax.lax.scan(one, x, None, length=10)[0])

    arguments = typed((256, 256), "model"), typed((64, 256), "data")
    report = plan(steps, mesh=mesh_of(2, 4), device=CHIP, links=CABLE)(*arguments)
    products = [line for line in report.lines if "x @ w" in line.code]
    assert sum(line.flops for line in products) > 10 * 2 * 32 * 256 * 64
    assert any(one.times == 10 and "model" in one.axes for one in report.collectives)


@pytest.mark.slow
def test_a_transformer_in_bfloat16() -> None:
    sizes = {"depth": 2, "width": 64, "words": 128, "batch": 16, "length": 16}
    fun, arguments = PROGRAMS["gpt, Adam, fsdp, bfloat16"](**sizes)
    report = plan(fun, mesh=mesh_of(4, 4), most=16)(*arguments)
    assert set(report.memory.groups) == {"params", "moments", "data"}
    assert report.memory.groups["moments"] == 4 * report.memory.groups["params"]
    # The results are a table of 21 pointers, too.
    assert report.memory.aliased == report.memory.outputs - 21 * 8
    assert report.peak_flops == 989e12
    gathered = [one for one in report.collectives if one.kind == "all-gather"]
    # The feed-forward weights of one block: 16-bit numbers, whatever a CPU gathers.
    assert max(one.bytes for one in gathered) == 2 * 64 * 4 * 64 // 16
    summed = [one for one in report.along("data") if one.sliced]
    assert any("up" in one.code for one in summed)


@pytest.mark.slow
def test_links_of_a_device() -> None:
    fun, arguments = PROGRAMS["tensor parallel"](**SMALL["tensor parallel"])
    report = plan(fun, mesh=mesh_of(16, 8))(*arguments)
    assert {n: link.name for n, link in report.links.items()} == {
        "data": "InfiniBand",
        "model": "NVLink",
    }
    other = plan(fun, mesh=mesh_of(16, 8), links={"data": CABLE})(*arguments)
    assert other.links == {"data": CABLE, "model": report.links["model"]}
    torus = plan(fun, mesh=mesh_of(16, 8), device="tpu-v5e")(*arguments)
    assert {link.name for link in torus.links.values()} == {"ICI"}


def test_the_text_says_what_bounds_it_and_what_does_not_fit() -> None:
    small = Device("small", 1e12, 1e11, memory=1e4)
    report = rows_plan(mesh_of(64, 16), device=small, links=CABLE)
    text = str(report)
    assert text.startswith("loss on 1,024 x small (data 64, model 16): ")
    assert "bound by" in text.splitlines()[0]
    assert "of 10kB, which is too much: w 16.4kB, x 2.05kB" in text
    assert "worked out from meshes of" in text
    assert not report.fits
    page = report._repr_html_()
    assert "all-reduce" in page
    assert "too much" in page
    start = loss.__code__.co_firstlineno
    assert {type(one).__name__ for one in report.by_line(start + 1)} == {
        "PlannedLine",
        "PlannedCollective",
    }


def test_one_device_needs_no_mesh() -> None:
    report = plan(verax.grad(loss), device="h100")(
        vnp.ones((64, 64)), vnp.ones((8, 64))
    )
    assert report.devices == 1
    assert not report.collectives
    assert report.bound == "memory"
    assert "loss on 1 x h100: " in report.title


def test_arguments_keep_their_mesh_where_none_is_given() -> None:
    mesh = AbstractMesh((32,), ("data",), axis_types=(AxisType.Auto,))
    x = verax.ShapeDtypeStruct(
        (512, 64), vnp.float32, sharding=NamedSharding(mesh, P("data"))
    )
    whole = plan(loss)(vnp.ones((64, 64)), x)
    fewer = plan(loss, most=8)(vnp.ones((64, 64)), x)
    assert whole.devices == fewer.devices == 32
    assert [dict(one) for one in fewer.samples] == [{"data": 4}, {"data": 8}]
    assert totals(whole.collectives) == totals(fewer.collectives)


MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"mesh": (4, 2)}, TypeError, "plan takes a verax AbstractMesh as mesh, not"),
    ({"device": "p100"}, ValueError, "plan: no device is called 'p100'; there are"),
    ({"device": CHIP}, ValueError, "devices of chip are joined along 'model' is not"),
    ({"links": {"rows": CABLE}}, ValueError, "axes of the mesh are 'data', 'model'"),
    ({"links": {"data": 1e9}}, TypeError, "link of axis 'data' is"),
    ({"links": 1e9}, TypeError, "links takes a verax.debug.Link, or a mapping"),
]


@pytest.mark.parametrize(("options", "kind", "message"), MISTAKES)
def test_mistakes(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    fun, arguments = PROGRAMS["tensor parallel"](**SMALL["tensor parallel"])
    with pytest.raises(kind, match=re.escape(message)):
        plan(fun, **{"mesh": mesh_of(4, 2), **options})(*arguments)


def test_options_of_a_jitted_function_are_its_own() -> None:
    with pytest.raises(TypeError, match="in_shardings are options of jit"):
        plan(verax.jit(loss), in_shardings=P())


def test_something_has_to_lie_on_the_mesh() -> None:
    types = [verax.ShapeDtypeStruct((8, 8), vnp.float32)] * 2
    with pytest.raises(ValueError, match="loss is for 1 device, and the mesh has 8"):
        plan(loss, mesh=mesh_of(4, 2))(*types)


def test_a_mesh_whose_axes_cannot_be_shorter() -> None:
    mesh = AbstractMesh((521,), ("data",), axis_types=(AxisType.Auto,))
    place = NamedSharding(mesh, P("data"))
    x = verax.ShapeDtypeStruct((521, 4), vnp.float32, sharding=place)
    with pytest.raises(ValueError, match="a mesh of 521 devices that are not there"):
        plan(vnp.sum)(x)


def test_functions_with_a_mesh_of_their_own_are_refused_for_larger_ones() -> None:
    mesh = mesh_of(64, 16)

    def fixed(x: Any) -> Any:
        return verax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("model")))

    x = verax.ShapeDtypeStruct(
        (1024, 16), vnp.float32, sharding=NamedSharding(mesh, P("data"))
    )
    with pytest.raises(ValueError, match=r"It must take any mesh with these axes"):
        plan(fixed)(x)
