"""The benchmarks themselves: statistics, and every case runs once at a small scale.

The idea: the library under test is verax; ``VERAX_BENCH_TEST_LIBRARY=jax`` runs the
same tests on jax, which shows whether a failure is the program's or the library's.

    pytest tests/benchmarks
"""

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from . import __main__, driver, second_run
from .case import Case
from .catalog import CASES, groups, select
from .figures import Ratio, compare, growth_exponent, show, spread, verdict
from .measure import Figure, Fresh, Looped, Sample, sample
from .module_text import inlined, written
from .namespace import SMALL, Namespace, block, load
from .report import aligned, errors, row

LIBRARY = os.environ.get("VERAX_BENCH_TEST_LIBRARY", "verax")


@pytest.fixture(scope="module")
def ns() -> Namespace:
    """The library's namespace."""
    return load(LIBRARY)


def test_ratios_are_taken_round_by_round() -> None:
    assert compare([1.0, 10.0, 2.0], [0.5, 2.0, 2.0]) == Ratio(0.5, 0.2, 1.0)
    assert compare([0.0], [1.0]) is None
    assert spread([2.0, 1.0]) == Ratio(1.5, 1.0, 2.0)


def test_growth_exponent_finds_the_power() -> None:
    sizes = [500, 2000, 8000]
    assert growth_exponent(sizes, [s**1.5 for s in sizes]) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="two or more pairs"):
        growth_exponent([1.0], [1.0])


def test_figures_are_written_for_people() -> None:
    assert show(1.5e-7, "s") == "150 ns"
    assert show(1.0512, "") == "1.05"
    assert show(3740.0, "ops") == "3740 ops"


@pytest.mark.parametrize(
    ("figure", "mark"), [(0.2, "peak"), (0.21, "step"), (0.31, "over"), (None, "")]
)
def test_marks(figure: float | None, mark: str) -> None:
    assert verdict(figure, 0.3, 0.2) == mark


def test_preparation_is_not_timed() -> None:
    order: list[str] = []

    def prepare() -> Callable[[], object]:
        order.append("prepare")
        return lambda: order.append("call")

    result = sample(Fresh(prepare), 1e-4)
    assert order == ["prepare", "call"] * (len(order) // 2)
    assert result.calls == len(order) // 2 - 1


def test_loops_and_figures_are_measured() -> None:
    assert 0 < sample(Looped(lambda: sum(range(100))), 1e-3).wall < 0.1
    assert sample(Figure(lambda: 7.0), 1.0).cpu == 7.0


def test_operations_are_counted_before_and_after_inlining() -> None:
    text = """module { func.func public @main(%0: i32) {
      %1 = stablehlo.add %0, %0 : i32
      %2 = call @f(%1) : i32
      %3 = func.call @f(%2) : i32
    } func.func private @f(%0: i32) {
      %1 = "stablehlo.gather"(%0) <{a = #stablehlo.gather<b>}>
      %2 = stablehlo.multiply %1, %1 : i32
    } }"""
    assert (written(text), inlined(text)) == (3, 5)


def test_names_are_unique_and_chosen_by_regular_expression() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert [c.name for c in select("^first/t")] == ["first/tiny"]
    assert list(groups(select("^(trace|eager)/"))) == ["trace", "eager"]


def test_an_error_is_a_row_and_not_a_crash() -> None:
    case = Case("group/name", lambda ns, scale: Figure(lambda: 1.0))
    good = driver.Outcome({0: {"cpu": 2.0, "wall": 2.0}})
    bad = driver.Outcome(error="TypeError: no")
    shown = row(case, good, bad)
    assert shown.mark == "error"
    assert "error" in aligned([shown], ("jax", "verax"))
    assert errors([shown], ("jax", "verax")) == ["group/name, verax: TypeError: no"]


def test_a_dying_worker_costs_one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(
        side: driver.Side, names: list[str], plan: driver.Plan
    ) -> tuple[list[str], str]:
        lines: list[str] = []
        for name in names:
            lines.append(json.dumps({"begin": name}))
            if name == "b":
                return lines, "exit status -6"
            lines.append(json.dumps({"case": name, "cpu": 1.0, "wall": 1.0}))
        return lines, ""

    monkeypatch.setattr(driver, "work", work)
    side = driver.Side("verax", sys.executable)
    actual = driver.run_group(side, ["a", "b", "c"], driver.Plan())
    assert actual["b"] == {"error": "exit status -6"}
    assert actual["a"] == actual["c"] == {"cpu": 1.0, "wall": 1.0}


SLOW = ("deep", "memory")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, marks=[pytest.mark.slow] if c.group in SLOW else [], id=c.name)
        for c in CASES
    ],
)
def test_every_case_runs(case: Case, ns: Namespace) -> None:
    if case.group in ("startup", "second_run"):
        pytest.skip("new processes: test_the_command_compares_two_sides runs two")
    work = case.build(ns, SMALL)
    if isinstance(work, Figure):
        value = work.value()
        assert math.isfinite(value.cpu if isinstance(value, Sample) else value)
        return
    block(work.call() if isinstance(work, Looped) else work.prepare()())


@pytest.mark.slow
@pytest.mark.parametrize("name", second_run.SCRIPTS)
def test_scripts_take_their_first_step(name: str, ns: Namespace) -> None:
    assert math.isfinite(second_run.SCRIPTS[name](ns, 1))


@pytest.mark.slow
def test_the_command_compares_two_sides(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    chosen = ["--only", "^(eager/add|startup/import)$", "--rounds", "1"]
    sides = ["--baseline", LIBRARY, "--candidate", LIBRARY]
    python = ["--jax-python", sys.executable, "--seconds", "0.01"]
    page = tmp_path / "figures.md"
    files = ["--json", str(file), "--markdown", str(page)]
    assert __main__.main([*chosen, *sides, *python, *files]) == 0
    rows = json.loads(file.read_text())["rows"]
    names = ["eager/add", "startup/import"]
    assert [r["case"] for r in rows] == names
    assert all(r["ratio"] > 0 for r in rows), rows
    head, rule, *lines = page.read_text().splitlines()
    assert head.startswith(f"| case | {LIBRARY} | {LIBRARY} | ratio |")
    assert {len(line.split("|")) for line in (head, rule, *lines)} == {10}
    assert [line.split("`")[1] for line in lines] == names


def test_what_takes_minutes_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [c for c in select("^deep/") if c.name.endswith(("_6", "_48"))]
    asked: list[list[str]] = []

    def run_group(
        side: driver.Side, names: list[str], plan: driver.Plan
    ) -> dict[str, dict[str, float | str]]:
        asked.append(names)
        return {name: {"cpu": 1.0, "wall": 1.0} for name in names}

    monkeypatch.setattr(driver, "run_group", run_group)
    sides = (driver.Side("jax", ""), driver.Side("verax", ""))
    driver.run(cases, sides, driver.Plan(rounds=2), lambda text: None)
    both, light = [c.name for c in cases], [c.name for c in cases if not c.heavy]
    assert len(light) == 1
    assert asked == [both, both, light, light]


def test_no_case_chosen_is_said() -> None:
    assert __main__.main(["--only", "no such case"]) == 2
