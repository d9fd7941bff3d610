"""The plugin that runs JAX's tests, on a clone with two files."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.jax_suite.expected import LEFT_OUT, failures, read, reason_of, write

TESTS = """
import unittest
import jax.numpy as jnp
from jax._src import test_util as jtu
from jax._src.interpreters import pxla
from jax._src.no_such_place import nowhere

TABLE = [nowhere.first, *nowhere.others]

class SmallTest(jtu.Case):
    def test_values(self):
        self.assertEqual(jnp.arange(3).sum(), 3)

    def test_internals(self):
        nowhere.first(1)

    def test_counts(self):
        self.assertEqual(1, 2)
"""
HELPERS = "import unittest\nCase = type('Case', (unittest.TestCase,), {})\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    inner = tmp_path / "jax" / "_src"
    inner.mkdir(parents=True)
    (inner / "test_util.py").write_text(HELPERS)
    (inner / "no_such_place.py").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "small_test.py").write_text(TESTS)
    (tmp_path / "tests" / "config_test.py").write_text("raise ValueError\n")
    return tmp_path


@pytest.mark.slow
def test_only_tests_that_use_an_absent_name_fail(clone: Path) -> None:
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.jax_suite.plugin", "-p",
         "no:cacheprovider", "--junitxml=run.xml", f"--rootdir={clone}",
         "tests/config_test.py", "tests/small_test.py"],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(root), "JAX_TESTS": str(clone)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert "2 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    said = dict(failures(str(clone / "run.xml")))
    assert "has no place in verax" in said["small_test.py::SmallTest::test_internals"]

    listed = clone / "expected.txt"
    counts = write([str(clone / "run.xml")], listed)
    assert set(counts.values()) == {1}
    assert read(listed) == {
        "small_test.py::SmallTest::test_internals": "A name inside JAX is needed.",
        "small_test.py::SmallTest::test_counts": reason_of(
            "", "AssertionError: 1 != 2"
        ),
    }


def test_list_of_expected_failures() -> None:
    reasons = read()
    assert reasons
    assert all(why.endswith(".") for why in reasons.values())
    assert not {test.partition("::")[0] for test in reasons} & LEFT_OUT
    assert Counter(reasons.values())["Not yet judged."] < 0.1 * len(reasons)
