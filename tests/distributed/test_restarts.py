"""Runs that are cut short go on from their last save; worlds start again."""

import io
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from tests.distributed.groups import environment
from tests.processes import started
from tests.soak.elastic_training import STEPS
from tests.soak.faults import TOLERANCE, Round, trained, wrong
from verax.distributed import run, train
from verax.distributed.__main__ import main
from verax.experimental.checkpoint import CheckpointError, Checkpoints


@verax.jit
def step(state: dict[str, Any], x: Any) -> tuple[dict[str, Any], Any]:
    key, now = verax.random.split(state["key"])
    w = 0.9 * state["w"] + x + verax.random.normal(now, (3,))
    return {"w": w, "key": key}, w.sum()


def start() -> dict[str, Any]:
    return {"w": vnp.zeros(3), "key": verax.random.key(1)}


def trained_here(folder: Path, steps: int, every: int = 3, **more: Any) -> list[Any]:
    """Numbers of steps and losses, and the state at the end."""
    told: list[Any] = []
    state = train(
        step,
        start(),
        lambda n: float(n),
        steps=steps,
        directory=folder,
        every=every,
        report=lambda n, loss: told.append((n, float(loss))),
        **more,
    )
    return [told, state]


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    due, state = trained_here(tmp_path / "whole", 10)
    assert [n for n, _ in due] == list(range(10))
    first, _ = trained_here(tmp_path / "parts", 4)
    second, last = trained_here(tmp_path / "parts", 10)
    assert first + second == due
    np.testing.assert_array_equal(last["w"], state["w"])
    assert verax.random.key_data(last["key"]).tolist() == (
        verax.random.key_data(state["key"]).tolist()
    )
    assert trained_here(tmp_path / "parts", 10)[0] == []


def test_a_step_that_fails_costs_what_came_after_the_last_save(tmp_path: Path) -> None:
    due, _ = trained_here(tmp_path / "whole", 10)
    told = []

    def report(number: int, loss: Any) -> None:
        told.append((number, float(loss)))
        if number == 7:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"steps": 10, "directory": tmp_path / "cut", "every": 3}
    with pytest.raises(KeyboardInterrupt):
        train(step, start(), float, report=report, **options)
    assert Checkpoints(tmp_path / "cut").latest() == 6
    rest, _ = trained_here(tmp_path / "cut", 10)
    assert told == due[:8]
    assert rest == due[6:]


def test_what_is_kept(tmp_path: Path) -> None:
    trained_here(tmp_path / "two", 10)
    assert Checkpoints(tmp_path / "two").steps() == [9, 10]
    trained_here(tmp_path / "all", 10, keep=None)
    assert Checkpoints(tmp_path / "all").steps() == [3, 6, 9, 10]
    trained_here(tmp_path / "none", 0)
    assert Checkpoints(tmp_path / "none").latest() is None


def test_a_step_may_donate_its_state(tmp_path: Path) -> None:
    donating = verax.jit(lambda w, x: (w + x, w.sum()), donate_argnums=0)
    for steps in (5, 9):
        w = train(
            donating, vnp.zeros(4), float, steps=steps, directory=tmp_path, every=1
        )
        np.testing.assert_array_equal(w, np.full(4, sum(range(steps))))


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every must be at least 1, got 0"):
        trained_here(tmp_path, 1, every=0)
    with pytest.raises(ValueError, match="steps must not be negative, got -1"):
        trained_here(tmp_path, -1)
    with pytest.raises(TypeError, match=r"train \(step\)"):
        train(3, 0, float, steps=1, directory=tmp_path)  # type: ignore[arg-type]
    trained_here(tmp_path, 2)
    with pytest.raises(CheckpointError, match=r"\['w'\] was saved as float32\[3\]"):
        train(step, {**start(), "w": vnp.ones(4)}, float, steps=3, directory=tmp_path)
    with pytest.raises(ValueError, match="restarts must not be negative"):
        run(["-c", ""], 1, restarts=-1)
    with pytest.raises(ValueError, match="not 1 with 0"):
        run(["-c", ""], 1, devices=0)


FAILING = """
    import os, sys
    names = "RESTART", "PROCESS_ID", "NUM_PROCESSES"
    restart, index, count = (int(os.environ["VERAX_" + name]) for name in names)
    print("restart", restart, "of", count, flush=True)
    if restart < int(sys.argv[1]) and index == 0:
        sys.exit(5)
"""


def lines_of(failing: int, **options: Any) -> tuple[int, list[str]]:
    """The status, and what the first process of each world wrote."""
    out = io.BytesIO()
    program = ["-c", textwrap.dedent(FAILING), str(failing)]
    status = run(program, 3, out=out, **options)
    lines = out.getvalue().decode().splitlines()
    return status, [line[4:] for line in lines if line.startswith("[0]")]


def test_worlds_start_again() -> None:
    alike = [f"restart {n} of 3" for n in range(3)]
    assert lines_of(0, restarts=2) == (0, alike[:1])
    assert lines_of(2, restarts=2) == (0, alike)
    assert lines_of(2, restarts=1) == (5, alike[:2])
    assert lines_of(2) == (5, alike[:1])


def test_worlds_of_other_sizes(capfd: pytest.CaptureFixture[str]) -> None:
    counts: list[tuple[int, int]] = []

    def sizes(count: int, failed: int) -> int:
        counts.append((count, failed))
        return 2 if len(counts) == 1 else 4

    status, lines = lines_of(2, restarts=2, sizes=sizes)
    assert status == 0
    assert lines == ["restart 0 of 3", "restart 1 of 2", "restart 2 of 4"]
    assert counts == [(3, 1), (2, 1)]
    assert "restart 2 of 2: 4 processes, 2 before" in capfd.readouterr().err
    with pytest.raises(ValueError, match="at least one process"):
        lines_of(2, restarts=2, sizes=lambda count, failed: 0)


@pytest.mark.parametrize(("least", "counts"), [("1", "321"), ("2", "322")])
def test_the_command_leaves_out_what_failed(
    least: str, counts: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(FAILING))
    options = ["-n", "3", "--restarts", "2", "--least", least]
    assert main(["run", *options, str(script), "2"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("[0]")] == [
        f"[0] restart {n} of {count}" for n, count in enumerate(counts)
    ]


@pytest.mark.slow
def test_who_ends_a_run_is_not_answered_with_a_restart(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\nprint('here', flush=True)\ntime.sleep(1000)\n")
    options = ["-n", "1", "--restarts", "5", str(script)]
    with started(
        [sys.executable, "-m", "verax.distributed", "run", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "[0] here\n"
        os.kill(launcher.pid, signal.SIGTERM)
        _, errors = launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + signal.SIGTERM
    assert "restart" not in errors


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("sizes", rarely([None, lambda count, failed: 5 - count], None))
def test_processes_that_are_killed_change_no_loss(sizes: Any) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        undisturbed = pool.submit(trained, 0, 0)
        again = trained(2, 6, sizes)
        due = undisturbed.result().curve
    assert len(due) == STEPS
    assert due[-1] < due[0] / 5
    assert wrong(again, due, exact=sizes is None) == []
    assert again.restarts > 0


def test_wrong_losses_are_noticed() -> None:
    due = [1.0] * STEPS
    rows = [(i, 1.0, 2) for i in range(STEPS)]
    assert wrong(Round(0, tuple(rows), 1, ""), due, exact=True) == []
    assert wrong(Round(0, tuple(rows[1:]), 1, ""), due, exact=True) == ["119 steps"]
    near = 1 + TOLERANCE / 2
    again = Round(0, ((4, near, 3), *rows), 1, "")
    assert wrong(again, due, exact=False) == []
    assert len(wrong(again, due, exact=True)) == 1
    assert len(wrong(Round(0, ((4, 1.1, 3), *rows), 1, ""), due, exact=False)) == 1
    assert wrong(Round(9, tuple(rows), 1, "why"), due, exact=True) == ["status 9: why"]
