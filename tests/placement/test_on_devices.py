"""Runs what needs eight devices: a client has one number of them for all its life.

Cases run by pytest in processes of their own, so that no other test sees eight devices
and none depends on the worker it runs in. Files that take seconds share a process.
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
    Path("docs/pipelines.md"),
]
LAWS = [
    Path("property_tests/test_checkpoints.py"),
    Path("property_tests/test_pipelines.py"),
]
LONG = {
    "cases_explicit",
    "cases_explicit_rows",
    "cases_held",
    "cases_parts",
    "cases_pipelines",
    "cases_proposals",
    "cases_varying",
}
"""Of the files, those that take longest: each is a test of its own, and slow."""
SHORT = [path for path in CASES if path.stem not in LONG]
TOGETHER = 5
GROUPS = [
    *[[path] for path in CASES if path.stem in LONG],
    *[SHORT[i : i + TOGETHER] for i in range(0, len(SHORT), TOGETHER)],
    [*PAGES, *LAWS],
]


def names(paths: list[Path]) -> str:
    return "+".join([path.stem for path in paths])


def marks(number: int) -> list[pytest.MarkDecorator]:
    """None for every other group of short files, which `make test` runs."""
    paths = GROUPS[number]
    slow = any([path.stem in LONG or path in PAGES for path in paths]) or number % 2
    return [pytest.mark.slow] if slow else []


def test_every_file_is_in_one_group() -> None:
    assert sorted(path for group in GROUPS for path in group) == sorted(
        [*CASES, *PAGES, *LAWS]
    )


@pytest.mark.parametrize(
    "paths",
    [pytest.param(paths, marks=marks(number)) for number, paths in enumerate(GROUPS)],
    ids=names,
)
def test_on_eight_devices(paths: list[Path], request: pytest.FixtureRequest) -> None:
    environment = {
        **os.environ,
        "VERAX_NUM_CPU_DEVICES": "8",
        # Most of the time goes into compiling programs that run once.
        "VERAX_COMPILE_EFFORT": "fast",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--doctest-glob=*.md"]
    if paths[0] in CASES and request.config.getoption(OPTION):
        options.append(OPTION)
    if chosen := request.config.getoption("-m"):
        options += ["-m", chosen]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, paths)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
