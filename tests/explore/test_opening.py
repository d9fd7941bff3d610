"""What the page opens on: costs of the whole program, names of arguments, values."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import nightly
from tests.browser.programs import transformer
from tests.typing.programs import hmc, ppo
from verax import lax, random
from verax.explorer.exploration import Exploration, explore
from verax.explorer.naming import short
from verax.explorer.recording import Stage
from verax.explorer.rows.row import INPUT

SIZE = 16


def language_model(blocks: int = 4, size: int = SIZE) -> tuple[Any, Any]:
    """The parameters and tokens of the transformer in the browser tests."""
    keys = iter(random.split(random.key(0), 6 * blocks + 1))

    def normal(*shape: int) -> Any:
        return random.normal(next(keys), shape) / shape[0] ** 0.5

    names = {name: (size, size) for name in "qkvo"}
    names |= {"up": (size, 4 * size), "down": (4 * size, size)}
    made = [{n: normal(*shape) for n, shape in names.items()} for _ in range(blocks)]
    tokens = random.randint(random.key(1), (2, 9), 0, 32)
    return {"embed": normal(32, size), "blocks": made}, tokens


def network(w: Any, x: Any) -> Any:
    h = vnp.tanh(w @ x)
    return vnp.sum(h * h)


def grown(w: Any, x: Any) -> Any:
    def step(c: Any, rate: Any) -> tuple[Any, Any]:
        d = vnp.tanh(c @ w) * rate
        return d, None

    return lax.scan(step, x, vnp.arange(7.0))[0].sum()


W, X = vnp.ones((SIZE, SIZE)), vnp.ones((5, SIZE))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "gradient": (verax.value_and_grad(transformer), language_model()),
    "vmap": (verax.vmap(verax.grad(network), (None, 0)), (W, X)),
    "scan": (grown, (W, X)),
    "gradient of scan": (verax.grad(grown), (W, X)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_costs_of_lines_are_those_of_the_cost_report(name: str) -> None:
    fun, args = PROGRAMS[name]
    report = verax.debug.costs(fun, device="h100")(*args)
    document: Any = explore(fun, compile=False)(*args).document
    costs = document["costs"]
    assert costs["flops"] == pytest.approx(report.flops)
    assert costs["bytes"] == pytest.approx(report.bytes)
    paths = [file["path"] for file in document["files"]]
    columns = [costs["lines"][n] for n in ("file", "line", "backward", "flops")]
    actual = {
        (paths[file], line, bool(back)): flops
        for file, line, back, flops in zip(*columns, strict=True)
    }
    expected = {
        (line.file, line.line, line.kind == "cotangent"): line.flops
        for line in report.lines
        if line.line
    }
    assert actual == pytest.approx(expected)
    assert all(costs["lines"]["known"])


def test_loops_and_batches_multiply_what_rows_of_the_trace_count_once() -> None:
    fun, args = PROGRAMS["vmap"]
    document: Any = explore(fun, compile=False)(*args).document
    trace = document["stages"][0]["totals"]["flops"]
    assert document["costs"]["flops"] > 5 * 2 * trace


def test_the_last_stages_of_jaxprs_have_the_same_sum() -> None:
    fun, args = PROGRAMS["gradient"]
    shown = explore(fun, compile=False)(*args)
    document: Any = shown.document
    whole = [stage for stage in document["stages"] if stage["name"] == "join"][-1]
    assert whole["totals"]["flops"] == pytest.approx(document["costs"]["flops"])


def given(stage: Stage) -> list[str]:
    """The names of the arguments of a whole program."""
    rows = stage.rows
    heads = {i for i, row in enumerate(rows) if row.right == "@main"}
    return [r.right for r in rows if r.kind == INPUT and r.inside in {-1, *heads}]


def named(shown: Exploration, name: str) -> Stage:
    """The last stage of a name."""
    return [stage for stage in shown.content.stages if stage.name == name][-1]


@pytest.mark.slow
def test_arguments_have_the_names_of_the_user_in_each_stage() -> None:
    fun, args = PROGRAMS["gradient"]
    shown = explore(fun)(*args)
    expected = {
        *(
            f"params['blocks'][{i}]['{n}']"
            for i in range(4)
            for n in args[0]["blocks"][0]
        ),
        *("params['embed']", "tokens"),
    }
    for name in ("trace", "join", "stablehlo", "hlo"):
        names = given(named(shown, name))
        assert set(names) == expected
        assert len(names) == len(expected)


def test_what_a_function_closes_over_has_its_name_outside() -> None:
    def outer(w: Any, x: Any, *rest: Any) -> Any:
        return verax.grad(lambda x: vnp.sum(w * x * rest[0]))(x * 2) + w

    shown = explore(outer, compile=False)(X, X, X)
    assert given(named(shown, "trace")) == ["w", "rest[0]", "x"]
    assert given(named(shown, "join")) == ["w", "x", "rest[0]"]


def test_names_of_vmapped_and_keyword_arguments() -> None:
    shown = explore(lambda w, *, x: verax.vmap(network, (None, 0))(w, x))(W, x=X)
    for stage in shown.content.stages:
        if stage.name in ("vmap", "join", "hlo"):
            assert given(stage) == ["w", "x"]
    assert short("argument 2 of <lambda>") == "argument 2"
    assert short("keyword argument y of f") == "y"


def test_arguments_say_how_large_they_are() -> None:
    document: Any = explore(network)(W, X[0]).document
    for stage in document["stages"]:
        sizes = sorted(stage["rows"]["sizes"].values())
        assert sizes[-2:] == [4 * SIZE, 4 * SIZE * SIZE]


def test_watched_rows_have_the_values_of_their_lines() -> None:
    def f(x: Any) -> Any:
        y = vnp.exp(x)
        return vnp.log(y - 1)

    x = vnp.array([0.0, 1.0])
    document: Any = explore(f, compile=False, watch=True)(x).document
    watch = document["watch"]
    stage = document["stages"][watch["stage"]]
    ops = [stage["strings"][i] for i in stage["rows"]["op"]]
    found = {ops[int(row)]: numbers for row, numbers in watch["rows"].items()}
    (exp,), (log,) = found["exp"], found["log"]
    assert watch["values"][exp]["least"] == 1.0
    assert watch["values"][exp]["greatest"] == pytest.approx(np.e, rel=1e-3)
    assert watch["values"][log]["infinite"] == 1
    assert sum(watch["values"][log]["bins"]) == 1000
    assert explore(f, compile=False)(x).document["watch"] is None


def test_watched_calls_of_one_function_are_told_apart() -> None:
    @verax.jit
    def doubled(x: Any) -> Any:
        return vnp.tanh(x) * 2

    def f(x: Any) -> Any:
        return doubled(doubled(x) + 10)

    document: Any = explore(f, compile=False, watch=True)(vnp.zeros(3)).document
    watch = document["watch"]
    stage = document["stages"][watch["stage"]]
    ops = [stage["strings"][i] for i in stage["rows"]["op"]]
    rows = [i for i, op in enumerate(ops) if op == "tanh"]
    numbers = [watch["rows"][str(row)] for row in rows]
    assert [watch["values"][n]["greatest"] for (n,) in numbers] == [0.0, 1.0]


@pytest.mark.slow
def test_watched_loops_have_courses_and_cotangents() -> None:
    fun, args = PROGRAMS["gradient of scan"]
    document: Any = explore(fun, compile=False, watch=True)(*args).document
    values = document["watch"]["values"]
    courses = [course for value in values for course in value["courses"]]
    assert {len(course["at"]) for course in courses} == {7}
    assert all(Path(__file__).name in course["loop"] for course in courses)
    assert {value["back"] for value in values} == {False, True}
    assert Counter(len(v["bins"]) > 0 for v in values)[True] == len(values)


@pytest.mark.parametrize("option", ["watch", "precision", "profile"])
def test_runs_need_values(option: str) -> None:
    struct = verax.ShapeDtypeStruct((3,), np.float32)
    options: Any = {option: True}
    with pytest.raises(TypeError, match=f"{option}=True runs"):
        explore(vnp.sin, **options)(struct)


def test_rows_and_lines_say_which_digits_they_lose() -> None:
    def f(x: Any) -> Any:
        mean = vnp.mean(x)
        return vnp.mean(x**2) - mean**2  # cancels

    def loss(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, y: vnp.sin(y), f(x))

    x = vnp.array([1001.0, 1000.0, 1002.3])
    slope = verax.value_and_grad(loss)
    document: Any = explore(slope, compile=False, precision=True)(x).document
    digits = document["digits"]
    line = next(each for each in digits["lines"] if not each["back"])
    text = document["files"][line["file"]]
    assert text["lines"][line["line"] - text["first"]].endswith("# cancels")
    assert line["alarm"]
    assert line["lost"] > 3
    assert "var(x)" in line["remedy"]
    stage = document["stages"][digits["stage"]]
    ops = [stage["strings"][i] for i in stage["rows"]["op"]]
    lost: dict[str, float] = {}
    for row, numbers in digits["rows"].items():
        values = [digits["values"][n]["lost"] for n in numbers]
        lost[ops[int(row)]] = max(lost.get(ops[int(row)], 0.0), *values)
    assert lost["sub"] > 3
    assert {value["back"] for value in digits["values"]} == {False, True}
    assert "digits" not in explore(f, compile=False)(x).document


def hmc_call() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    draws = partial(hmc.sample_banana, warmup=20, draws=40)
    return draws, (random.split(random.key(3), 16),)


def ppo_call() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    key = random.key(0)
    carts = verax.vmap(ppo.fresh)(random.split(key, 32))
    return ppo.iteration, (ppo.init(key), carts, key)


@pytest.mark.slow
@pytest.mark.parametrize("call", [hmc_call, ppo_call])
def test_pages_of_programs_are_small(call: Any) -> None:
    fun, args = call()
    shown = explore(fun)(*args)
    document: Any = shown.document
    assert len(shown.html) < 1_000_000
    assert document["costs"]["flops"] > document["stages"][0]["totals"]["flops"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", [nightly(hmc_call), nightly(ppo_call), lambda: PROGRAMS["gradient"]]
)
def test_watched_pages_are_small(call: Any) -> None:
    fun, args = call()
    shown = explore(fun, watch=True)(*args)
    document: Any = shown.document
    assert len(shown.html) < 1_000_000
    assert document["watch"]["values"]


def test_the_command_writes_a_watched_page(tmp_path: Path) -> None:
    from verax.__main__ import main

    script = tmp_path / "twice.py"
    script.write_text("def twice(x):\n    y = x * 2\n    return y + 1\n")
    call = ["explore", f"{script}:twice", "--args", "np.ones(3)", "--watch"]
    place = tmp_path / "page.json"
    assert main([*call, "--no-compile", "-o", str(place)]) == 0
    assert '"greatest": 3.0' in place.read_text()
