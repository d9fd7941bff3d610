"""Of the public names of jax, and of their parameters, verax has so many."""

import importlib.util
import re
import subprocess
import sys

import pytest


@pytest.mark.jax
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="jax is not installed, so that there is nothing to compare with",
)
def test_names_and_parameters_of_jax() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.names"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    shares = [float(share) for share in re.findall(r"\(([\d.]+)%\)", done.stdout)]
    assert [share >= least for share, least in zip(shares, FLOORS, strict=True)] == [
        True
    ] * len(FLOORS), done.stdout


FLOORS = (99, 99, 68, 90)
"""Percent: names and parameters of the core, names and parameters of the rest."""
