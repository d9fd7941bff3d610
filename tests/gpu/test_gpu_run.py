"""The run for GPUs, tried on a CPU: so that it is known to work where it is needed."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import verax.numpy as vnp
from tests.gpu import __main__ as command, laws, parts, worker
from tests.gpu.models import MODELS, load
from tests.gpu.page import END, ROOT, START, main as print_page, placed
from tests.gpu.plugin_targets import golden_targets, main as print_targets
from tests.gpu.result import FAIL, FIGURE, NOT_RUN, PASS, Row, checked, failed, figure
from verax.ops.table import PRIMITIVES
from verax.verify.cases.case import traced
from verax.verify.checking.functions import ENGINE, runner


def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "GPU_FILES", ("/nowhere/nvidia*",))
    assert command.main([]) == 0
    assert capsys.readouterr().out.startswith("this machine has no NVIDIA GPU")


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_part_that_dies_or_hangs() -> None:
    lines, problem = command.output_of("tests.gpu.nothing", [], "cpu", 60)
    assert not lines
    assert problem.startswith("exit status 1: ")
    arguments = ["-c", "import time; print('[1]', flush=True); time.sleep(60)"]
    lines, problem = command.output_of("timeit", ["-n1", "-r1", arguments[1]], "cpu", 4)
    assert problem == "no end in 4 s"
    assert "[1]" in lines


@pytest.mark.slow
def test_what_a_part_has_started_ends_with_it(tmp_path: Path) -> None:
    """Else it would hold the GPU, and the pipe that the run waits for."""
    late = tmp_path / "late"
    inner = f"import time; time.sleep(5); open({str(late)!r}, 'w')"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    begin = time.monotonic()
    options = ["-n1", "-r1", outer]
    assert command.output_of("timeit", options, "cpu", 2)[1] == "no end in 2 s"
    assert not late.exists()  # it has not waited for it
    time.sleep(max(0.0, begin + 7 - time.monotonic()))
    assert not late.exists()


@pytest.mark.slow
def test_devices_that_do_not_start_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where the plugin is missing, or of another version than jaxlib."""
    report = tmp_path / "report.md"
    monkeypatch.setattr(command, "GPU_FILES", (str(tmp_path),))
    assert command.main(["--report", str(report)]) == 1
    text = report.read_text()
    assert "The platform 'cuda' failed to initialize" in text
    assert "## transfers" not in text
    assert "the other parts were not run" in capsys.readouterr().out


def test_a_run_out_of_time_says_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "START", 0.0)
    report = tmp_path / "report.md"
    options = ["--platform", "cpu", "--report", str(report), "--seconds", "0"]
    assert command.main([*options, "--only", "laws", "soak"]) == 0
    assert report.read_text().count(command.NO_TIME) == 2


@pytest.mark.parametrize("installed", [False, True])
def test_a_benchmark_without_jax_or_with_one_that_does_not_run(
    installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def output(module: str, arguments: Any, *rest: Any) -> tuple[list[str], str]:
        if "jax" in arguments:
            return [], "exit status 1: jax 0.12 needs jaxlib 0.12"
        return ['["mlp: forward", 0.5]'], ""

    monkeypatch.setattr(command, "output_of", output)
    monkeypatch.setattr(command, "find_spec", lambda name: installed or None)
    chosen = command.parse(["--platform", "cpu"])
    rows = list(command.benchmark(chosen, 1.0))
    assert [row.verdict for row in rows] == [PASS, FIGURE, NOT_RUN]
    assert ("needs jaxlib" in rows[-1].found) == installed
    monkeypatch.setattr(command, "output_of", lambda *args: ([], "no end in 3 s"))
    row, *_ = command.benchmark(chosen, 1.0)
    assert (row.verdict, row.found) == (FAIL, "no end in 3 s")


@pytest.mark.slow
def test_a_run_with_two_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERAX_NUM_CPU_DEVICES", "2")
    report = tmp_path / "report.md"
    options = ["--platform", "cpu", "--report", str(report), "--only", "several"]
    assert command.main(options) == 0
    assert "| collectives |  | pass |" in report.read_text()


def test_the_page_gets_the_tables_of_a_report(tmp_path: Path) -> None:
    chosen = command.parse(["--platform", "cuda"])
    actual = {
        "environment": [figure("jaxlib", "0.12.0"), figure("cuda:0", "H100")],
        "factors": [checked("qr", True, "1e-7"), failed("svd", ValueError("no"))],
        "benchmark": [figure("mlp: forward", "verax 1.000 ms, ratio 1.01")],
    }
    report, page = tmp_path / "report.md", tmp_path / "page.md"
    report.write_text(command.written(actual, chosen))
    page.write_text(f"a\n{START}\nold\n{END}\nb\n")
    for _ in range(2):
        print_page([str(report), "--page", str(page)])
        text = page.read_text()
        assert "| factors | 1 pass, 1 FAIL |" in text
        assert "| cuda:0 | H100 |" in text
        assert "| mlp: forward | verax 1.000 ms, ratio 1.01 |" in text
        assert "old" not in text
        assert (text[0], text[-2]) == ("a", "b")
    with pytest.raises(ValueError, match="has no <!-- the last run"):
        placed("no marks", report.read_text())
    assert placed((ROOT / "docs" / "gpu.md").read_text(), report.read_text())


@pytest.mark.slow
def test_models_have_gradients_and_steps() -> None:
    ns = load("verax")
    for name, model in MODELS.items():
        row = parts.steps(name, *model(ns, True))
        assert row.verdict == PASS, row


def test_the_worker_measures() -> None:
    actual = worker.timed(load("verax"), "matmul", True, 0.01)
    assert actual.keys() == {
        *("forward", "forward, first call", "gradient", "gradient, first call"),
    }
    assert min(actual.values()) > 0
    assert worker.dispatch(load("verax"), 0.01) > 0


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_factors_multiply_to_the_matrix(dtype: str) -> None:
    values = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(dtype)
    for name in parts.FACTORISATIONS:
        actual, expected = parts.factored(name, vnp.asarray(values))
        assert parts.relative(actual, expected) < parts.FACTORS[dtype], name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sin", "dot_general", "sort", "reduce_sum"])
def test_laws_notice_what_is_wrong(name: str) -> None:
    row: Any = PRIMITIVES[name]
    run = runner(ENGINE)
    assert not any(laws.outcome(name, row, seed, run) for seed in range(3))

    def wrong(jaxpr: Any, args: Any) -> Any:
        return [np.asarray(x + x.dtype.type(1)) for x in run(jaxpr, args)]

    actual = [laws.outcome(name, row, seed, wrong) for seed in range(9)]
    assert any("instead of" in words for words in actual)
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
