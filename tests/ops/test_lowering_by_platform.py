"""Every row lowers for every platform but for what is listed here."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import lower
from verax.backend.lowering.stablehlo_io import parsed
from verax.extend import MissingRule
from verax.ir.jaxpr import Jaxpr
from verax.ops.table import PRIMITIVES, ROWS
from verax.rules.rows.row import Row
from verax.verify.cases.case import traced
from verax.verify.cases.growing import pool_of
from verax.verify.random_programs import composable
from verax.verify.seeded_programs import seed_case

# What calls routines of LAPACK.
LAPACK = (
    *("cholesky", "eig", "eigh", "geqrf", "hessenberg", "householder_product", "lu"),
    *("qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve"),
)
CALLBACKS = ("debug_callback", "io_callback", "pure_callback")
LACKING = {
    "cpu": (),
    "cuda": LAPACK,
    "rocm": LAPACK,
    "tpu": (*LAPACK, *CALLBACKS),
}
POOL = pool_of(composable(ROWS, "jvp", "batch", "lower"))
DRAWN = tuple(name for name, row in PRIMITIVES.items() if row.draw is not None)


def refusal(act: Callable[[], object]) -> str:
    """What is said of a lowering that is missing, or nothing."""
    try:
        act()
    except MissingRule as error:
        return str(error)
    return ""


@pytest.mark.parametrize("platform", LACKING)
def test_rows_without_a_lowering(platform: str) -> None:
    rows = {name: ENGINE.rules[row] for name, row in PRIMITIVES.items()}
    refused = {
        name: refusal(partial(row.lowering, platform)) for name, row in rows.items()
    }
    found = [name for name, message in refused.items() if message]
    assert sorted(found) == sorted(LACKING[platform])
    for name in found:
        assert f"{name} has no lowering for {platform}" in refused[name]


def check_module(jaxpr: Jaxpr, *platforms: str) -> None:
    """The module of a program is StableHLO for these platforms."""
    parsed(lower(ENGINE, jaxpr, "f", platforms=platforms).text)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", DRAWN)
def test_modules_of_single_rows(name: str, platform: str) -> None:
    row: Row[Any] = PRIMITIVES[name]
    assert row.draw is not None
    for seed in range(3):
        jaxpr = traced(row, row.draw(Random(seed)))
        if name in LACKING[platform]:
            with pytest.raises(MissingRule, match=f"has no lowering for {platform}"):
                check_module(jaxpr, platform)
        else:
            check_module(jaxpr, platform)


@pytest.mark.parametrize("seed", range(12))
def test_modules_of_random_programs(seed: int) -> None:
    jaxpr = seed_case(POOL, seed).jaxpr
    for platforms in (("cuda",), ("cpu", "cuda", "tpu")):
        message = refusal(partial(check_module, jaxpr, *platforms))
        lacking = [f"primitive {name} has no" in message for name in LACKING["tpu"]]
        assert not message or any(lacking), message
