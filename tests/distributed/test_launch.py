"""`python -m verax.distributed run`, and the example of docs/distributed.md."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from docs.examples import data_parallel
from tests.distributed.groups import ROOT, environment
from tests.processes import started
from verax.distributed.__main__ import main

EXAMPLE = ROOT / "docs" / "examples" / "data_parallel.py"
SECONDS = 120


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "verax.distributed", "run", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )


@pytest.mark.slow
def test_the_example_is_training_in_one_process() -> None:
    done = run("-n", "2", "--devices", "2", str(EXAMPLE))
    assert done.returncode == 0, done.stdout + done.stderr
    losses = re.findall(r"^\[(\d)\] loss (\S+) on 4 devices$", done.stdout, re.M)
    assert sorted(index for index, _ in losses) == ["0", "1"]
    alone = data_parallel.train()[-1]
    assert all(abs(float(loss) - alone) < 1e-3 for _, loss in losses)
    assert losses[0][1] in (ROOT / "docs" / "distributed.md").read_text()
    assert "Gloo" not in done.stdout


@pytest.mark.slow
def test_a_process_that_fails_ends_all(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            import verax
            verax.distributed.initialize(shutdown_timeout_seconds=1)
            if verax.process_index() == 1:
                print("no newline at the end", end="", flush=True)
                sys.exit(int(sys.argv[1]))
            time.sleep(1000)
            """
        )
    )
    done = run("-n", "2", str(script), "7")
    assert done.returncode == 7
    assert "[1] no newline at the end" in done.stdout
    assert done.stderr == "failed: process 0 (has not ended), process 1 (status 7)\n"


WAITING = """
    import os, time
    print(os.getpid(), flush=True)
    time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all(number: signal.Signals, tmp_path: Path) -> None:
    """The signal goes to the launcher alone; Ctrl-C would reach all."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(WAITING))
    with started(
        [sys.executable, "-m", "verax.distributed", "run", "-n", "2", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as launcher:
        assert launcher.stdout is not None
        members = [int(launcher.stdout.readline().split()[1]) for _ in range(2)]
        launcher.send_signal(number)
        _, errors = launcher.communicate(timeout=SECONDS)
    assert launcher.returncode == 128 + number
    assert "Traceback" not in errors
    for process in members:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


@pytest.mark.slow
def test_nobody_reads_any_more(tmp_path: Path) -> None:
    """As with `| head -1`: the processes fail to write, and all ends."""
    script = tmp_path / "script.py"
    script.write_text("while True:\n    print('line')\n")
    with started(
        [sys.executable, "-m", "verax.distributed", "run", "-n", "2", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline().endswith("line\n")
        launcher.stdout.close()
        assert launcher.wait(SECONDS) != 0


def test_wrong_arguments() -> None:
    assert main(["run", "-n", "0", "script.py"]) == 2
    assert main(["run"]) == 2
