"""The run for GPUs, tried on a CPU: so that it is known to work where it is needed."""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import verax.numpy as vnp
from tests.gpu import __main__ as command, laws, parts, worker
from tests.gpu.models import MODELS, load
from tests.gpu.plugin_targets import golden_targets, main as print_targets
from tests.gpu.result import FAIL, PASS, Row, failed
from verax.ops.table import PRIMITIVES
from verax.verify.cases.case import traced
from verax.verify.checking.standard import ENGINE, runner


def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "GPU_FILES", "/nowhere/nvidia*")
    assert command.main([]) == 0
    assert capsys.readouterr().out.startswith("this machine has no NVIDIA GPU")


def test_a_run_writes_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    options = ["--platform", "cpu", "--seconds", "1", "--report", str(report)]
    assert command.main([*options, "--only", "environment", "transfers"]) == 0
    text = report.read_text()
    assert "## environment" in text
    assert "| donation |  | pass |" in text
    assert "0 failed" in text


def test_what_fails_is_in_report_and_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(*args: object) -> Iterator[Row]:
        yield failed("a product", ValueError("wrong | sign\nand more"))

    monkeypatch.setattr(command, "rows_of", rows)
    report = tmp_path / "report.md"
    options = ["--platform", "cpu", "--report", str(report), "--only", "factors"]
    assert command.main(options) == 1
    line = "| a product | ValueError: wrong / sign | FAIL |"
    assert line in report.read_text().splitlines()


def test_a_part_that_dies_or_hangs() -> None:
    lines, problem = command.output_of("tests.gpu.nothing", [], "cpu", 60)
    assert not lines
    assert problem.startswith("exit status 1: ")
    arguments = ["-c", "import time; print('[1]', flush=True); time.sleep(60)"]
    lines, problem = command.output_of("timeit", ["-n1", "-r1", arguments[1]], "cpu", 6)
    assert problem == "no end in 6 s"
    assert "[1]" in lines


def test_models_have_gradients_and_steps() -> None:
    ns = load("verax")
    for name, model in MODELS.items():
        row = parts.steps(name, *model(ns, True))
        assert row.verdict == PASS, row


def test_the_worker_measures() -> None:
    found = worker.timed(load("verax"), "matmul", True, 0.01)
    assert found.keys() == {
        *("forward", "forward, first call", "gradient", "gradient, first call"),
    }
    assert min(found.values()) > 0
    assert worker.dispatch(load("verax"), 0.01) > 0


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_factors_multiply_to_the_matrix(dtype: str) -> None:
    values = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(dtype)
    for name in parts.FACTORISATIONS:
        found, expected = parts.factored(name, vnp.asarray(values))
        assert parts.relative(found, expected) < parts.FACTORS[dtype], name


@pytest.mark.parametrize("name", ["sin", "dot_general", "sort", "reduce_sum"])
def test_laws_notice_what_is_wrong(name: str) -> None:
    row: Any = PRIMITIVES[name]
    run = runner(ENGINE)
    assert not any(laws.outcome(name, row, seed, run) for seed in range(3))

    def wrong(jaxpr: Any, args: Any) -> Any:
        return [np.asarray(x + x.dtype.type(1)) for x in run(jaxpr, args)]

    found = [laws.outcome(name, row, seed, wrong) for seed in range(9)]
    assert any("instead of" in words for words in found)
    sample = row.draw(Random(0))
    jaxpr = traced(row, sample)
    shapes = [x.shape for x in laws.operands(jaxpr, sample, row, Random(0))]
    assert shapes == [aval.shape for aval in jaxpr.in_avals]


def test_laws_end_and_count() -> None:
    rows = list(laws.laws(0.0, names=("sin", "cos", "eigh")))
    assert [row.verdict for row in rows].count(FAIL) == 0
    assert rows[0].found == "2 of 2 rows"


def test_the_golden_comes_of_a_plugin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"cusolver_potrf_ffi", "cusparse_gtsv2_ffi"} <= golden_targets()
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert print_targets([str(tmp_path)]) == 1
    package = tmp_path / "jax_cuda12_plugin"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "version.py").write_text("__version__ = '1.2'")
    for module in ("_solver", "_hybrid", "_linalg", "_prng", "_sparse"):
        text = f"def registrations(): return {{'{module}_ffi': None}}"
        (package / f"{module}.py").write_text(text)
    handlers = "def ffi_handlers(): return {'callback': None}"
    (package / "cuda_plugin_extension.py").write_text(handlers)
    assert print_targets([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# jax_cuda12_plugin 1.2"
    assert "_hybrid _hybrid_ffi" in lines
    assert lines[-1] == "cuda_plugin_extension callback"
    for name in [name for name in sys.modules if name.startswith(package.name)]:
        monkeypatch.delitem(sys.modules, name)
