"""The table's own machinery: what counts as the same, and what a row says."""

import re

import pytest

from .clients import CLIENTS, HERE, find
from .compare import difference
from .report import table
from .runs import CLOCKS, Outcome, reason
from .worker import Stages


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("loss 0.50001", "loss 0.5"),
        ("[[1.  2.]\n\n [3. 4.]]", "[[1. 2.]\n[3.   4.]]"),
        ("-0.0 1e-07", "0.0 -1.2e-08"),
    ],
)
def test_rounding_and_layout_may_differ(result: str, expected: str) -> None:
    assert difference(result, expected, 1e-4) is None


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("loss 0.501", "loss 0.5"),
        ("loss nan", "loss 0.5"),
        ("3", "4"),
        ("(2, 3)", "(3, 2)"),
        ("1.0", "1.0\n2.0"),
        ("", "1.0"),
    ],
)
def test_other_results_are_seen(result: str, expected: str) -> None:
    assert difference(result, expected, 1e-4) is not None


def test_reason_names_the_exception() -> None:
    said = "Traceback (most recent call last):\n  File x\nKeyError: 'a'\nsome advice\n"
    assert reason(said) == "KeyError: 'a'"


def test_rows_say_ratios_and_reasons() -> None:
    times = {clock: [0.5] for clock in CLOCKS}
    doubled = {clock: [2 * value[0]] for clock, value in times.items()}
    results = {
        ("optax", "verax"): Outcome("1.0", None, times),
        ("optax", "jax"): Outcome("1.0", None, doubled),
        ("quax", "verax"): Outcome(error="ImportError: no a|b"),
        ("quax", "jax"): Outcome("1.0", None, times),
    }
    lines = table(find(["optax", "quax"]), results, {"optax": "9.9"}).splitlines()
    assert lines[2].startswith("| optax | 9.9 | yes | 0.50 (0.50 s / 1.00 s) |")
    assert "| no: ImportError: no a\\|b |" in lines[3]


def test_every_client_has_an_example_and_a_pinned_version() -> None:
    pinned = dict(
        line.split("==")
        for line in (HERE / "requirements.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    assert "jax" not in pinned
    assert all(re.fullmatch(r"[\w.]+", version) for version in pinned.values())
    assert {client.distribution for client in CLIENTS} <= set(pinned)
    examples = set((HERE / "examples").glob("*.py"))
    assert {client.example for client in CLIENTS} == examples


def test_stages_inside_each_other_count_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stages, ends = Stages(), iter([2.0, 3.0, 5.0, 9.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(ends))
    for seconds in (1.0, 3.0, 1.0, 8.0):
        stages.hear("/jax/core/compile/jaxpr_trace_duration", seconds)
    stages.hear("/jax/core/compile/backend_compile_duration", 100.0)
    assert stages.seconds() == 9.0


def test_unknown_clients_are_named() -> None:
    with pytest.raises(ValueError, match="nonesuch"):
        find(["nonesuch"])
