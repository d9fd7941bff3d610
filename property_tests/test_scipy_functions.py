"""Every function of `verax.scipy` beside SciPy's, eager and compiled."""

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

import verax
from property_tests import (
    functions_linalg,
    functions_signal,
    functions_special,
    functions_stats,
)
from property_tests.comparing import (
    BFLOAT16,
    Pointwise,
    Whole,
    held,
    missing,
    shapes_held,
    whole_held,
)
from property_tests.levels import NIGHTLY, by_turns

SEEDS = st.integers(0, 2**16)
FLOATS = (np.float32, np.float64, np.float16, BFLOAT16)
POINTWISE: tuple[Pointwise, ...] = (
    *functions_special.POINTWISE,
    *functions_stats.POINTWISE,
)
PAIRS = [
    pytest.param(line, dtype, id=f"{line.name}-{np.dtype(dtype).name}")
    for line in POINTWISE
    for dtype in (FLOATS if line in functions_special.POINTWISE else FLOATS[:2])
]
WHOLE: tuple[Whole, ...] = (*functions_linalg.LINALG, *functions_signal.OTHERS)
KNOWN = {x.name for x in POINTWISE} | {x.name for x in WHOLE}
# Each with what holds it.
ELSEWHERE = {
    "linalg.funm": "a function of the user's; tests/scipy/test_matrices.py",
    "linalg.qr_multiply": "products with Q; tests/scipy/test_matrices.py",
    "linalg.rsf2csf": "of a Schur form; tests/scipy/test_matrices.py",
    "optimize.minimize": "finds minima; tests/scipy/test_solvers.py",
    "optimize.OptimizeResults": "a tuple",
    "optimize.line_search": "a module here, a function in SciPy",
    "sparse.linalg.cg": "solves systems; tests/scipy/test_solvers.py",
    "sparse.linalg.bicgstab": "solves systems; tests/scipy/test_solvers.py",
    "sparse.linalg.gmres": "solves systems; tests/scipy/test_solvers.py",
    "sparse.linalg.norm": "a helper that shares SciPy's name",
    "stats.gaussian_kde": "its methods are in the table",
}


def tried() -> settings:
    """One seed for each forty of the profile: a seed is a thousand points."""
    return settings(max_examples=max(1, settings().max_examples // 40))


def nightly() -> bool:
    return settings().max_examples >= 1000


@pytest.mark.parametrize(("line", "dtype"), by_turns(PAIRS, 2, NIGHTLY))
def test_function_of_numbers(line: Pointwise, dtype: Any) -> None:
    @tried()
    @given(SEEDS)
    def search(seed: int) -> None:
        # Distributions are made of functions that are compiled here in any case.
        held(line, seed, dtype, line in functions_special.POINTWISE or nightly())

    search()


@pytest.mark.parametrize("line", POINTWISE, ids=lambda line: line.name)
def test_shapes_and_dtypes(line: Pointwise) -> None:
    shapes_held(line)


@pytest.mark.parametrize("line", WHOLE, ids=lambda line: line.name)
def test_function_of_arrays(line: Whole) -> None:
    @tried()
    @given(SEEDS)
    def search(seed: int) -> None:
        whole_held(line, seed)

    search()


@pytest.mark.parametrize(
    "module",
    [
        "special",
        "stats",
        "linalg",
        "signal",
        "fft",
        "ndimage",
        "interpolate",
        "integrate",
        "optimize",
        "cluster.vq",
        "sparse.linalg",
    ],
)
def test_tables_are_complete(module: str) -> None:
    """Each function that SciPy has as well is in a table, or listed with a reason."""
    ours = importlib.import_module(f"verax.scipy.{module}")
    theirs = importlib.import_module(f"scipy.{module}")
    named = {x.partition(".")[2] for x in (*KNOWN, *ELSEWHERE)}
    short = {x.removeprefix(f"{module}.") for x in (*KNOWN, *ELSEWHERE)} | named
    assert missing(ours, theirs, short) == []


@pytest.mark.parametrize("name", functions_stats.SHAPES)
def test_distributions_are_complete(name: str) -> None:
    ours, theirs = getattr(verax.scipy.stats, name), getattr(scipy.stats, name)
    functions = [n for n in functions_stats.NAMES if hasattr(ours, n)]
    assert functions
    assert all(hasattr(theirs, n) and f"stats.{name}.{n}" in KNOWN for n in functions)
