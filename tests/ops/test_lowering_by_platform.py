"""Every row lowers for every platform but for what is listed here."""

import re
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attrs import evolve
from jaxlib._jax.mlir import mlir_module_to_xla_computation as to_hlo

import verax
from property_tests.levels import NIGHTLY, by_turns
from tests.gpu.plugin_targets import golden_targets
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import lower
from verax.backend.lowering.stablehlo_io import custom_targets, parsed
from verax.extend import MissingRule
from verax.ir.jaxpr import Jaxpr
from verax.lax import linalg
from verax.ops.linalg.forms import (
    TridiagonalSolveParams,
    lower_system,
    lower_system_on_gpu,
    tridiagonal_solve_p,
)
from verax.ops.table import PRIMITIVES, ROWS
from verax.rules.rows.emitter import Emitter
from verax.rules.rows.row import Row
from verax.verify.cases.case import traced
from verax.verify.cases.growing import pool_of
from verax.verify.random_programs import composable, seed_case

# What only LAPACK computes, and what the solvers of GPUs compute, too.
LAPACK = ("hessenberg", "schur")
SOLVED = (
    *("cholesky", "eig", "eigh", "geqrf", "householder_product", "lu", "qr", "svd"),
    *("tridiagonal", "tridiagonal_solve"),
)
CALLBACKS = ("debug_callback", "io_callback", "pure_callback")
LACKING = {
    "cpu": (),
    "cuda": LAPACK,
    "rocm": LAPACK,
    "tpu": (*LAPACK, *SOLVED, *CALLBACKS),
}
UNUSUAL = tuple(
    [
        np.dtype(dtype)
        for dtype in (
            *(ml_dtypes.int4, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
            *(np.bool_, np.uint64, np.float16, np.float64, np.complex128),
        )
    ]
)
SEEDS = range(12)
POOL = pool_of(composable(ROWS, "jvp", "batch", "lower"))
# Custom calls that XLA itself takes on every platform.
BUILT_IN = frozenset(("LayoutConstraint", "annotate_device_placement"))
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
    actual = [name for name, message in refused.items() if message]
    assert sorted(actual) == sorted(LACKING[platform])
    for name in actual:
        assert f"{name} has no lowering for {platform}" in refused[name]


def check_text(text: str, platforms: tuple[str, ...] = ("cuda",)) -> None:
    """It is StableHLO; for CUDA, XLA takes it and the plugin has what it calls."""
    assert parsed(text).operation.verify()
    if platforms == ("cuda",):
        to_hlo(text, use_tuple_args=False, return_tuple=False)
        assert set(custom_targets(text)) <= golden_targets() | BUILT_IN


def check_module(jaxpr: Jaxpr, *platforms: str) -> None:
    """The module is StableHLO for these platforms, and calls what the plugin has."""
    check_text(lower(ENGINE, jaxpr, "f", platforms=platforms).text, platforms)


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("name", DRAWN)
def test_modules_of_single_rows(name: str) -> None:
    row: Row[Any] = PRIMITIVES[name]
    assert row.draw is not None
    for seed in range(3):
        jaxpr = traced(row, row.draw(Random(seed)))
        texts: set[str] = set()
        for platform in ("cuda", "tpu"):
            if name in LACKING[platform]:
                missing = f"has no lowering for {platform}"
                with pytest.raises(MissingRule, match=missing):
                    check_module(jaxpr, platform)
                continue
            text = lower(ENGINE, jaxpr, "f", platforms=(platform,)).text
            if text not in texts:  # nearly all are the same for both
                check_text(text, (platform,))
            texts.add(text)


def retyped(aval: Any, dtype: Any) -> Any:
    """The type in another dtype; keys stay what they are."""
    return aval.with_dtype(dtype) if isinstance(aval.dtype, np.dtype) else aval


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize(
    "name", by_turns([x for x in DRAWN if x not in LACKING["cuda"]], 2, NIGHTLY)
)
def test_modules_of_unusual_dtypes(name: str) -> None:
    """What a row takes lowers in dtypes that its draws choose seldom, or never."""
    row: Row[Any] = PRIMITIVES[name]
    assert row.draw is not None
    for dtype in UNUSUAL:
        sample = row.draw(Random(0))
        avals = tuple([retyped(aval, dtype) for aval in sample.avals])
        try:
            jaxpr = traced(row, evolve(sample, avals=avals))
        except (
            TypeError,
            ValueError,
        ):  # the row, or these params, do not take the dtype
            continue
        check_module(jaxpr, "cuda")


@pytest.mark.parametrize("seed", SEEDS)
def test_modules_of_random_programs(seed: int) -> None:
    jaxpr = seed_case(POOL, seed).jaxpr
    for platforms in (("cuda",), ("cpu", "cuda", "tpu")):
        message = refusal(partial(check_module, jaxpr, *platforms))
        lacking = [f"primitive {name} has no" in message for name in LACKING["tpu"]]
        assert not message or any(lacking), message


def routines(f: Any, shape: tuple[int, ...], platform: str) -> list[str]:
    """The custom calls of a function of one matrix, in a module that MLIR accepts."""
    traced = verax.jit(f).trace(verax.ShapeDtypeStruct(shape, np.complex64))
    module = traced.lower(lowering_platforms=(platform,)).compiler_ir()
    return re.findall(r"custom_call @(\w+)", str(module))


@pytest.mark.parametrize(
    ("platform", "solver"), [("cuda", "cusolver"), ("rocm", "hipsolver")]
)
@pytest.mark.parametrize(
    ("f", "shape", "names"),
    [
        (linalg.cholesky, (2, 3, 3), ["potrf"]),
        (linalg.lu, (3, 5), ["getrf"]),
        (linalg.eigh, (4, 4), ["syevd"]),
        (lambda x: linalg.eigh(x, lower=False), (4, 4), ["syevd"]),
        (linalg.tridiagonal, (4, 4), ["sytrd"]),
        (lambda x: linalg.qr(x, full_matrices=True), (2, 5, 3), ["geqrf", "orgqr"]),
        (lambda x: linalg.qr(x, full_matrices=False), (3, 5), ["geqrf", "orgqr"]),
        (linalg.svd, (2, 3, 5), ["gesvdj"]),
        (lambda x: linalg.svd(x, full_matrices=False), (40, 50), ["gesvdj"]),
        (lambda x: linalg.svd(x, compute_uv=False), (3, 3), ["gesvdj"]),
        (lambda x: linalg.svd(x, full_matrices=False), (2, 1025), ["gesvd"]),
        (lambda x: linalg.svd(x, compute_uv=False), (1025, 2), ["gesvd"]),
        (lambda x: linalg.svd(x, algorithm="QR"), (3, 3), ["gesvd"]),
        (lambda x: linalg.svd(x, algorithm="JACOBI"), (2, 1025), ["gesvdj"]),
        (
            lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.POLAR),
            (3, 5),
            ["gesvdp"],
        ),
        (lambda x: linalg.triangular_solve(x, x, transpose_a=True), (3, 3), []),
    ],
)
def test_routines_of_gpus(
    f: Any, shape: tuple[int, ...], names: list[str], platform: str, solver: str
) -> None:
    assert routines(f, shape, platform) == [f"{solver}_{name}_ffi" for name in names]


def attributes(f: Any, platform: str) -> str:
    """The settings of the call of a function of one Hermitian matrix."""
    traced = verax.jit(f).trace(verax.ShapeDtypeStruct((3, 3), np.float32))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    (actual,) = re.findall(r"mhlo.backend_config = \{([^}]*)\}", text)
    return str(actual)


def test_implementations_of_eigenvalues_on_gpus() -> None:
    kinds = linalg.EighImplementation
    for kind, number in [(None, 0), (kinds.QR, 1), (kinds.JACOBI, 2), ("jacobi", 2)]:
        actual = attributes(partial(linalg.eigh, implementation=kind), "cuda")
        assert f"algorithm = {number} : ui8" in actual
    libraries = linalg.EigImplementation
    choices: list[tuple[dict[str, Any], str]] = [
        ({}, "auto"),
        ({"implementation": libraries.MAGMA}, "on"),
        ({"implementation": libraries.LAPACK}, "off"),
        ({"use_magma": True}, "on"),
        ({"use_magma": False}, "off"),
    ]
    for asked, setting in choices:
        actual = attributes(partial(linalg.eig, **asked), "cuda")
        assert f'magma = "{setting}"' in actual


@pytest.mark.parametrize("compiled", [False, True])
def test_implementations_that_a_cpu_lacks(*, compiled: bool) -> None:
    wrap = verax.jit if compiled else lambda f: f
    x = np.eye(3, dtype=np.float32)
    with pytest.raises(NotImplementedError, match="JACOBI is one of GPUs"):
        wrap(partial(linalg.eigh, implementation="JACOBI"))(x)
    with pytest.raises(NotImplementedError, match="QDWH is for TPUs"):
        wrap(partial(linalg.eigh, implementation=linalg.EighImplementation.QDWH))(x)
    with pytest.raises(NotImplementedError, match="JACOBI and POLAR are those of GPUs"):
        wrap(partial(linalg.svd, algorithm=linalg.SvdAlgorithm.POLAR))(x)
    with pytest.raises(ValueError, match="only the implementation LAPACK"):
        wrap(partial(linalg.eig, use_magma=True))(x)
    with pytest.raises(NotImplementedError, match="CUSOLVER has not been tried"):
        wrap(partial(linalg.eig, implementation=linalg.EigImplementation.CUSOLVER))(x)
    vectors, values = wrap(
        partial(linalg.eigh, implementation=linalg.EighImplementation.QR)
    )(x)
    assert vectors.shape == (3, 3)
    assert values.shape == (3,)


@pytest.mark.parametrize(("platform", "vendor"), [("cuda", "cu"), ("rocm", "hip")])
def test_routines_that_plugins_compute_on_the_host(platform: str, vendor: str) -> None:
    """By LAPACK or MAGMA: general eigenvalues, and QR with pivoting."""
    actual = routines(lambda x: linalg.eig(x.real), (2, 3, 3), platform)
    assert actual == [f"{vendor}hybrid_eig_real"]
    assert routines(linalg.eig, (3, 3), platform) == [f"{vendor}hybrid_eig_comp"]
    actual = routines(lambda x: linalg.qr(x, pivoting=True), (3, 5), platform)
    assert actual == [f"{vendor}hybrid_geqp3", f"{vendor}solver_orgqr_ffi"]


@pytest.mark.parametrize(("platform", "vendor"), [("cuda", "cu"), ("rocm", "hip")])
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_tridiagonal_systems_on_gpus(rows: int, platform: str, vendor: str) -> None:
    def solved(b: Any, perturb: bool = False) -> Any:
        d = b[..., 0]
        return linalg.tridiagonal_solve(d, d, d, b, perturb_singular=perturb)

    assert routines(solved, (2, rows, 2), platform) == [f"{vendor}sparse_gtsv2_ffi"]
    actual = routines(partial(solved, perturb=True), (rows, 2), platform)
    assert actual == [f"{vendor}_tridiagonal_solve_perturbed"]


class WithLapack:
    """An emitter for cuda that asks LAPACK to solve what cuSPARSE would."""

    platform = "cuda"

    def __init__(self, e: Emitter) -> None:
        self.inner = e

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def op(self, name: str, xs: Any, outs: Any, *rest: Any, **options: Any) -> Any:
        if name != "stablehlo.custom_call":
            return self.inner.op(name, xs, outs, *rest, **options)
        assert all(x.aval.shape[-1] >= 3 for x in xs[:3])
        return lower_system(self.inner, TridiagonalSolveParams(), xs, outs)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_the_system_of_cusparse_has_the_same_solution(rows: int) -> None:
    row: Row[Any] = evolve(
        tridiagonal_solve_p,
        lower_on={
            "cpu": lambda e, p, xs, outs: lower_system_on_gpu(
                WithLapack(e),  # type: ignore[arg-type]  # an Emitter by delegation
                p,
                xs,
                outs,
            )
        },
    )
    dl, d, du = np.random.default_rng(rows).normal(size=(3, rows)).astype(np.float32)
    b = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    expected = linalg.tridiagonal_solve(dl, d + 5, du, b)
    solve = verax.jit(lambda *xs: row.call(TridiagonalSolveParams(), *xs))
    np.testing.assert_allclose(solve(dl, d + 5, du, b), expected, rtol=1e-5)
