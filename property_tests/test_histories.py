"""Programs and their lowerings are the same in every process, whatever went before."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
SCRIPT = [sys.executable, "-m", "property_tests.histories"]


def start(count: int, order: str, hash_seed: str) -> "subprocess.Popen[str]":
    """A process with its own hash seed and order."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    env = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = [*SCRIPT, "0", str(count), order]
    return subprocess.Popen(
        command, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def digests(process: "subprocess.Popen[str]") -> Mapping[str, str]:
    """What the process prints, by seed."""
    text, _ = process.communicate()
    assert process.returncode == 0
    pairs = [line.split() for line in text.splitlines()]
    return {seed: digest for seed, digest in pairs}


@pytest.mark.slow
def test_hash_seed_and_history_leave_no_trace() -> None:
    count = 3 * settings().max_examples
    runs = [start(count, "forwards", "1"), start(count, "backwards", "2")]
    first, second = [digests(run) for run in runs]
    assert len(first) == count
    differ = [seed for seed, digest in first.items() if second[seed] != digest]
    assert not differ, f"these seeds give other programs: {differ}"
