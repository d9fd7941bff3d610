"""`python -m verax.distributed run`, and the example of docs/distributed.md."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from docs.examples import data_parallel
from tests.distributed.groups import ROOT, environment
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


def test_the_example_is_training_in_one_process() -> None:
    done = run("-n", "2", "--devices", "2", str(EXAMPLE))
    assert done.returncode == 0, done.stdout + done.stderr
    losses = re.findall(r"^\[(\d)\] loss (\S+) on 4 devices$", done.stdout, re.M)
    assert sorted(index for index, _ in losses) == ["0", "1"]
    alone = data_parallel.train()[-1]
    assert all(abs(float(loss) - alone) < 1e-3 for _, loss in losses)
    assert losses[0][1] in (ROOT / "docs" / "distributed.md").read_text()
    assert "Gloo" not in done.stdout


def test_a_process_that_fails_ends_all(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            import verax
            verax.distributed.initialize()
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


def test_wrong_arguments() -> None:
    assert main(["run", "-n", "0", "script.py"]) == 2
    assert main(["run"]) == 2
