"""Runs what needs eight devices: a client has one number of them for all its life.

Each file of cases is a run of pytest in a process of its own, so that no other test
sees eight devices and none depends on the worker it runs in.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from property_tests.accelerated import OPTION

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CASES = sorted(path.relative_to(ROOT) for path in HERE.glob("cases_*.py"))
PAGES = [
    Path("docs/placement.md"),
    Path("docs/custom-partitioning.md"),
    Path("docs/explicit-sharding.md"),
]
LAWS = [Path("property_tests/test_checkpoints.py")]
FILES = [*CASES, *PAGES, *LAWS]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_on_eight_devices(path: Path, request: pytest.FixtureRequest) -> None:
    environment = {
        **os.environ,
        "VERAX_NUM_CPU_DEVICES": "8",
        # Most of the time goes into compiling programs that run once.
        "VERAX_COMPILE_EFFORT": "fast",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--doctest-glob=*.md"]
    if path in CASES and request.config.getoption(OPTION):
        options.append(OPTION)
    if chosen := request.config.getoption("-m"):
        options += ["-m", chosen]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
