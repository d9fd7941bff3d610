"""Pages of programs over several devices, which need not be there."""

from typing import Any

import pytest

import verax
import verax.numpy as vnp
from verax.explorer.exploration import Exploration, explore
from verax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

AUTO = (AxisType.Auto,) * 2
MESH = AbstractMesh((8, 8), ("data", "model"), axis_types=AUTO)
MEMORY = {"arguments", "outputs", "aliased", "temporaries", "total"}


def struct(shape: tuple[int, ...], *spec: Any) -> Any:
    place = NamedSharding(MESH, P(*spec))
    return verax.ShapeDtypeStruct(shape, vnp.float32, sharding=place)


def loss(w: Any, x: Any) -> Any:
    hidden = vnp.tanh(x @ w)
    return vnp.mean(hidden**2)


def talks_of(shown: Exploration) -> Any:
    document: Any = shown.document
    return document["collectives"]


def test_the_page_says_what_the_report_says() -> None:
    args = struct((32, 16)), struct((64, 32), "data")
    shown = explore(verax.grad(loss))(*args)
    found = talks_of(shown)
    report = verax.debug.collectives(verax.grad(loss))(*args)
    assert (found["devices"], found["axes"]) == (64, {"data": 8, "model": 8})
    assert found["sent"] == report.sent
    assert found["memory"].keys() == MEMORY
    assert found["memory"]["arguments"] == report.memory.arguments
    names = ("line", "bytes", "times", "sent", "back")
    actual = [tuple(talk[name] for name in names) for talk in found["talks"]]
    assert actual == [
        (one.line, one.bytes, one.times, one.sent, one.backward)
        for one in report.entries
    ]
    rows = shown.content.stages[found["stage"]].rows
    for talk in found["talks"]:
        assert {rows[row].op for row in talk["rows"]} == {talk["kind"]}
        assert all(rows[row].source.line == talk["line"] for row in talk["rows"])


def test_joined_collectives_belong_to_all_of_their_lines() -> None:
    def network(ws: Any, x: Any) -> Any:
        hidden = vnp.tanh(x @ ws[0])
        return vnp.mean((hidden @ ws[1]) ** 2)

    ws = [struct((32, 64), None, "model"), struct((64, 32), "model", None)]
    shown = explore(verax.grad(network))(ws, struct((64, 32), "data", None))
    found = talks_of(shown)
    lines = {talk["line"] for talk in found["talks"] if talk["axes"] == "data"}
    joined = {row for talk in found["talks"] for row in talk["rows"]}
    stages = shown.content.stages
    module = stages[-2].rows
    origins = {i for row in joined for i in stages[-1].rows[row].origins}
    assert lines <= {module[i].source.line for i in origins}
    assert len(lines) == 2


def test_loops_and_shard_map() -> None:
    def steps(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return c + 0.1 * verax.lax.psum(vnp.sin(c), "data"), None

        return verax.lax.scan(body, x, None, length=100)[0]

    mapped = verax.shard_map(steps, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    (talk,) = talks_of(explore(mapped)(vnp.ones((64, 8))))["talks"]
    names = ("kind", "axes", "bytes", "times", "known")
    expected = ("all-reduce", "data", 256, 100.0, True)
    assert tuple(talk[name] for name in names) == expected


def test_in_shardings_and_no_collectives() -> None:
    rows = NamedSharding(MESH, P("data"))
    shown = explore(verax.jit(vnp.sin, in_shardings=(rows,)))(vnp.ones((64, 2)))
    assert talks_of(shown)["talks"] == []
    assert len(shown.html) < 300_000


def test_uneven_results_compile() -> None:
    shown = explore(lambda x: x[:5])(struct((64, 2), "data"))
    assert shown.content.stages[-1].name == "hlo"


def test_without_compile_and_on_one_device_there_are_none() -> None:
    args = struct((32, 16)), struct((64, 32), "data")
    assert "collectives" not in explore(loss, compile=False)(*args).document
    assert "collectives" not in explore(vnp.sin)(vnp.ones(3)).document


@pytest.mark.parametrize("option", ["profile", "watch"])
def test_devices_that_are_not_there_run_nothing(option: str) -> None:
    rows = NamedSharding(MESH, P("data"))
    options: Any = {option: True}
    with pytest.raises(ValueError, match=f"{option}=True runs the program, which is"):
        explore(verax.jit(vnp.sin, in_shardings=(rows,)), **options)(vnp.ones((64, 2)))
