"""verax and jax share a process, imported in either order, and neither notices."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.jax,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None,
        reason="jax is not installed, so that there is nothing to coexist with",
    ),
]


def printed(*order: str) -> list[str]:
    """The results of a process that imports the libraries in this order."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.backend.coexistence", *order],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_computes_as_if_alone() -> None:
    (jax_alone,) = printed("jax")
    (verax_alone,) = printed("verax")
    expected = [jax_alone, verax_alone]
    assert [printed("jax", "verax"), printed("verax", "jax")] == [expected, expected]
