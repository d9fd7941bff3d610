"""The benchmarks of compiled programs: every case traces, and times are kept."""

import io
import itertools
import json
from typing import Any

import pytest

import verax
from tests.benchmarks.compiled import worker
from tests.benchmarks.compiled.__main__ import (
    keep_least,
    main,
    ratio,
    same_code,
    slow,
)
from tests.benchmarks.compiled.cases import Case, checksum, leaves, measured
from tests.benchmarks.compiled.code import code_of
from tests.benchmarks.compiled.libraries import Traced
from tests.benchmarks.compiled.suites import SUITES


def traced(library: Traced, case: Case, worded: bool) -> Any:
    """The types of what the case computes."""
    given = library.words if worded else library.modules
    return verax.eval_shape(lambda *xs: case.run(given, *xs), *case.operands())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["workloads", "programs", "sweep"])
def test_every_case_traces(name: str) -> None:
    library = Traced("verax", wide=False)
    for case in SUITES[name].cases.values():
        if name != "sweep" and leaves(case.operands())[0].size > 2_000_000:
            continue
        assert leaves(traced(library, case, SUITES[name].worded)), case.name


@pytest.mark.slow
def test_functions_of_elements_have_words() -> None:
    library = Traced("verax", wide=False)
    for case in SUITES["elementwise"].cases.values():
        if case.name.endswith("/f4"):
            (out,) = leaves(traced(library, case, True))
            assert out.shape == (1_000_000,), case.name


def test_a_worker_measures_values_and_gradients() -> None:
    lines = list(worker.lines("verax", "sweep", ["outer", "random_bits"]))
    assert [line["case"] for line in lines] == ["outer", "outer'", "random_bits"]
    assert all(line["first"] > 0 and line["later"] > 0 for line in lines)


def test_a_worker_takes_a_sample_for_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "sample sample next next".replace(" ", "\n") + "\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(words))
    lines = list(worker.turns("verax", "sweep", ["outer"]))
    assert [next(iter(line)) for line in lines] == ["case", "later", "later", "case"]
    assert lines[0]["case"] == "outer"
    assert lines[1]["later"] > 0
    assert lines[3]["case"] == "outer'"


def test_codes_know_the_same_program_by_other_names() -> None:
    lines = {
        line["case"]: line["code"]
        for line in worker.lines("verax", "sweep", ["outer", "numpy.exp/x"], codes=True)
    }
    assert len(set(lines.values())) == len(lines) == 4
    library = Traced("verax", wide=False)

    def square(y: Any) -> Any:
        return library.modules.numpy.square(y)

    def product(other: Any) -> Any:
        return other * other

    def twice(x: Any) -> Any:
        return x + x

    texts = [
        verax.jit(f).lower(verax.numpy.ones(9)).compile().as_text()
        for f in (square, product, twice)
    ]
    assert code_of(texts[0]) == code_of(texts[1]) != code_of(texts[2])
    times = {"verax": {"f": {"code": "1"}, "g": {}}, "jax": {"f": {"code": "1"}}}
    assert same_code(times, "f")
    assert not same_code(times, "g")


def test_a_case_that_fails_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(j: Any, x: Any) -> Any:
        raise ValueError("no such thing")

    broken = Case("broken", fails, lambda: (1.0,))
    monkeypatch.setitem(SUITES["sweep"].cases, "broken", broken)
    (line,) = worker.lines("verax", "sweep", ["broken"])
    assert line == {"case": "broken", "error": "ValueError: no such thing"}


def test_the_least_time_of_all_rounds_counts() -> None:
    times: dict[str, Any] = {"verax": {}, "jax": {}}
    for library, first, later in (("verax", 3, 2), ("verax", 4, 1), ("jax", 1, 4)):
        line = {"case": "f'", "first": first, "later": later, "check": 0}
        keep_least(times[library], json.dumps(line))
    assert times["verax"]["f'"] | {"check": 0} == {
        "case": "f'", "first": 3, "later": 1, "check": 0
    }  # fmt: skip
    assert ratio(times, "f'", "jax", "later") == 0.25
    assert ratio(times, "g", "jax", "later") is None
    assert slow(times) == []
    times["jax"]["f'"]["later"] = 0.5
    assert slow(times) == ["f"]


def test_what_is_measured_is_called_again() -> None:
    count = itertools.count()
    assert measured(lambda: next(count)).first >= 0
    assert next(count) > 5
    assert checksum((1.0, [2.0, float("nan")])) == 1.5


def test_no_such_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--only", "no such"]) == 2
    assert "no case" in capsys.readouterr().out
    assert main(["sweep", "--only", "^outer$", "--list"]) == 0
    assert capsys.readouterr().out == "outer\n"
