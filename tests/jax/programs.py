"""Runs programs under `python -m verax.jax`, each in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def run_python(
    *args: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run Python with some arguments; its output as strings."""
    return subprocess.run(
        [sys.executable, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        input=stdin,
        env={**os.environ, **(env or {})},
    )


def run_as_jax(
    *args: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `python -m verax.jax` with some arguments."""
    return run_python("-m", "verax.jax", *args, cwd=cwd, env=env, stdin=stdin)


def output(*args: str | Path, cwd: Path | None = None, stdin: str = "") -> str:
    """What a program under `python -m verax.jax` prints, when it ends well."""
    done = run_as_jax(*args, cwd=cwd, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout
