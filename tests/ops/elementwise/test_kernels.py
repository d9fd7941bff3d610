"""Kernels: accuracy over the whole range, special points, and where they are used.

Errors are in units in the last place of what a wider format gives; a bound is that of
XLA's own function, as measured, and 1 more.
"""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy.special import polygamma, psi

import verax
import verax.numpy as vnp
from property_tests.levels import nightly
from tests.efforts import by_xla
from tests.ops.elementwise.kernel_coefficients import FITS, PIECES, computed, pieces
from verax import lax
from verax.api.config.config import override
from verax.ir.dtypes import float32, float64
from verax.ops.table import ROWS
from verax.rules.rows.row import Row
from verax.scipy import special

COUNT = 40_000
SPECIAL = (0.0, 1.0, 2.0, 0.5, 3.0, 1e30, 1e-30, 2.0**24, 2.0**24 - 1, math.inf)
type Arrays = tuple[np.ndarray, ...]


def uniform(low: float, high: float) -> Callable[[Any, type], np.ndarray]:
    return lambda rng, dtype: rng.uniform(low, high, COUNT).astype(dtype)


def scaled(low: float, high: float) -> Callable[[Any, type], np.ndarray]:
    """Numbers of both signs whose logarithms are uniform."""

    def draw(rng: Any, dtype: Any) -> np.ndarray:
        sign = rng.choice([-1.0, 1.0], COUNT)
        return np.asarray(sign * np.exp(rng.uniform(low, high, COUNT)), dtype)

    return draw


def any_bits(rng: Any, dtype: Any) -> np.ndarray:
    width = np.dtype(dtype).itemsize
    drawn = rng.integers(0, 256, (COUNT, width), np.uint8).view(dtype)[:, 0]
    normal = np.isfinite(drawn) & (np.abs(drawn) > np.finfo(dtype).tiny)
    return np.asarray(np.where(normal, drawn, 1), dtype)


def cube_root(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sign(x) * np.abs(x) ** (x.dtype.type(1) / 3))


MODERATE = scaled(-30, 13.8)  # up to 2^20
# The function, NumPy's, the error in both dtypes (None: no kernel), and what to draw.
CASES: dict[str, tuple[Any, Any, float | None, float | None, Any]] = {
    "sin": (vnp.sin, np.sin, 1.56, 1.52, (uniform(-50, 50), MODERATE)),
    "cos": (vnp.cos, np.cos, 1.56, 1.52, (uniform(-50, 50), MODERATE)),
    "tan": (vnp.tan, np.tan, 2.0, 1.56, (uniform(-50, 50), MODERATE)),
    "asin": (vnp.arcsin, np.arcsin, 3.3, 2.6, (uniform(-1, 1), scaled(-30, 0))),
    "acos": (vnp.arccos, np.arccos, 3.0, 2.3, (uniform(-1, 1), scaled(-30, 0))),
    "atanh": (vnp.arctanh, np.arctanh, 3.9, 3.4, (uniform(-1, 1), scaled(-30, -1))),
    "asinh": (vnp.arcsinh, np.arcsinh, None, 3.5, (uniform(-3, 3), any_bits)),
    "acosh": (vnp.arccosh, np.arccosh, None, 3.4, (uniform(1, 3), uniform(1, 1e9))),
    "sinh": (vnp.sinh, np.sinh, 2.4, 3.5, (uniform(-5, 5), uniform(-705, 705))),
    "cosh": (vnp.cosh, np.cosh, 2.4, 2.4, (uniform(-5, 5), uniform(-705, 705))),
    "log": (vnp.log, np.log, None, 1.5, (uniform(0.5, 2), scaled(-700, 700))),
    "log2": (vnp.log2, np.log2, None, 2.3, (uniform(0.5, 2), scaled(-700, 700))),
    "log1p": (vnp.log1p, np.log1p, 2.4, 3.1, (uniform(-0.5, 2), scaled(-40, 0))),
    "exp2": (vnp.exp2, np.exp2, 1.0, 1.0, (uniform(-3, 3), uniform(-125, 127))),
    "cbrt": (vnp.cbrt, cube_root, 1.9, 4.2, (uniform(-9, 9), any_bits)),
}
PAIRS: dict[str, tuple[Any, Any, float | None, float | None, Any]] = {
    "atan2": (vnp.arctan2, np.arctan2, 2.4, 1.6, (uniform(-3, 3), any_bits)),
    "pow": (vnp.power, np.power, 1.5, 1.5, (uniform(0, 5), any_bits)),
    "rem": (lax.rem, np.fmod, 0.0, 0.0, (uniform(-9, 9), scaled(-8, 8))),
}
WIDER: dict[Any, Any] = {np.float32: np.float64, np.float64: np.longdouble}
TABLE = [
    (name, dtype, bound)
    for name, (_, _, *bounds, _) in (CASES | PAIRS).items()
    for dtype, bound in zip((np.float32, np.float64), bounds, strict=True)
    if bound is not None
]


def errors(actual: np.ndarray, due: np.ndarray, dtype: Any) -> np.ndarray:
    """Units in the last place; where results are normal, for others are flushed."""
    info = np.finfo(dtype)
    sizes = np.abs(due)
    normal = np.isfinite(due) & (sizes < info.max) & (sizes > info.tiny)
    unit = np.spacing(np.where(normal, sizes, 1).astype(dtype)).astype(due.dtype)
    return np.where(normal, np.abs(actual.astype(due.dtype) - due) / unit, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype", "bound"), TABLE)
def test_errors_are_small_everywhere_and_special_points_right(
    name: str, dtype: Any, bound: float
) -> None:
    f, reference, _, _, draws = (CASES | PAIRS)[name]
    rng = np.random.default_rng(7)
    with verax.enable_x64(), np.errstate(all="ignore"):
        for draw in draws:
            xs = tuple([draw(rng, dtype) for _ in range(2 if name in PAIRS else 1)])
            due = reference(*[x.astype(WIDER[dtype]) for x in xs])
            actual = np.asarray(verax.jit(f)(*xs))
            assert actual.dtype == dtype
            assert errors(actual, due, dtype).max() <= bound
    check_special_points(name, dtype)


def check_special_points(name: str, dtype: Any) -> None:
    """They are those of the C library, by the program that has just been compiled."""
    f, reference, *_ = (CASES | PAIRS)[name]
    points: np.ndarray = np.array([*SPECIAL, *(-x for x in SPECIAL), math.nan], dtype)
    grid = np.meshgrid(*[points] * (2 if name in PAIRS else 1))
    xs = tuple([np.resize(x, COUNT) for x in grid])
    with verax.enable_x64(), np.errstate(all="ignore"):
        due = reference(*[x.astype(WIDER[dtype]) for x in xs]).astype(dtype)
        actual = np.asarray(verax.jit(f)(*xs))
    tiny = np.abs(due) < np.finfo(dtype).tiny  # those are flushed
    np.testing.assert_allclose(actual[~tiny], due[~tiny], 1e-5)
    assert np.all(np.abs(actual[tiny]) < 2 * np.finfo(dtype).tiny)
    signed = ~np.isnan(due)
    if name != "cbrt":  # whose reference has no negative zero
        np.testing.assert_array_equal(
            np.signbit(actual)[signed], np.signbit(due)[signed]
        )


OF_TWO = ("logaddexp", "xlogy", "xlog1py")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erf", "erf_inv", "lgamma", *OF_TWO])
def test_special_functions_are_those_of_xla(name: str) -> None:
    f = getattr(special if name[0] == "x" else lax, name, None) or getattr(vnp, name)
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        x = rng.uniform(-0.999, 0.999, 4096) * (1 if name == "erf_inv" else 6)
        x[:5] = (0.0, -0.0, 1.0, -1.0, math.nan)
        xs = (x.astype(dtype), rng.uniform(-6, 6, 4096).astype(dtype))
        given = xs[: 2 if name in OF_TWO else 1]
        with verax.enable_x64():
            actual = np.asarray(verax.jit(f)(*given))
            due = np.asarray(by_xla(f, *given))
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(actual, due, rtol=64 * eps, atol=16 * eps)
        known = ~np.isnan(due)
        np.testing.assert_array_equal(np.signbit(actual)[known], np.signbit(due)[known])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digamma_is_that_of_scipy(dtype: Any) -> None:
    info = np.finfo(dtype)
    ends = [0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, -7.0, 1e30, -1e30, 2.0]
    x = np.random.default_rng(1).uniform(-20, 20, 4096)
    x[: len(ends)] = ends
    x = x.astype(dtype)
    due = np.where(x == 0, -np.inf, psi(x.astype(np.float64)))
    with verax.enable_x64():
        actual = np.asarray(verax.jit(lax.digamma)(x))
        slope = np.asarray(verax.jit(verax.vmap(verax.grad(lax.digamma)))(x))
    # SciPy rounds pi x, whose cotangent is large near whole numbers.
    eps = float(info.eps)
    inside = np.where(np.isfinite(x), x, 0.0)
    near = np.abs(inside - np.rint(inside)) > 1e-3
    np.testing.assert_allclose(actual[near], due[near], 1000 * eps, 1000 * eps)
    np.testing.assert_array_equal(actual[:9], due[:9].astype(dtype))
    positive = (x > 0.1) & (x < 1e3)
    np.testing.assert_allclose(
        slope[positive], polygamma(1, x[positive].astype(float)), 1e-4
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_at_the_ends_of_the_range(dtype: Any) -> None:
    low, high = (-126, 128) if dtype == np.float32 else (-1022, 1024)
    y = np.array([low - 0.5, low, low + 0.3, high - 0.3, high, high + 9, 1e30], dtype)
    y = np.resize(y, 64)
    with verax.enable_x64(), np.errstate(all="ignore"):
        due = np.exp2(y.astype(np.longdouble)).astype(dtype)
        due[y < low] = 0  # flushed
        for f in (lax.exp2, lambda y: lax.pow(lax.full_like(y, 2), y)):
            np.testing.assert_allclose(verax.jit(f)(y), due, 2 * np.finfo(dtype).eps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name", "bits"),
    [nightly(*key) if "INVERSE" in key[1] else key for key in FITS],
)
def test_coefficients_are_those_computed(file: str, name: str, bits: int) -> None:
    written = getattr(module(file), name)
    if isinstance(written, dict):
        written = written[float32 if bits == 32 else float64]
    np.testing.assert_allclose(written, computed(FITS[file, name, bits]), 1e-13)


@pytest.mark.parametrize(("file", "name"), PIECES)
def test_constants_in_pieces_are_those_computed(file: str, name: str) -> None:
    assert getattr(module(file), name) == tuple(pieces(*PIECES[file, name]))


def module(file: str) -> Any:
    where = "special.kernels" if file == "special" else f"elementwise.kernels.{file}"
    return import_module(f"verax.ops.{where}")


def operations(f: Callable[..., Any], *xs: Any, **options: Any) -> str:
    return verax.jit(f, **options).lower(*xs).as_text()


def test_kernels_are_for_large_arrays_on_a_cpu() -> None:
    large, small = np.ones(64, np.float32), np.ones(63, np.float32)
    assert "stablehlo.sine" not in operations(vnp.sin, large)
    assert "stablehlo.sine" in operations(vnp.sin, small)
    assert "stablehlo.sine" not in operations(vnp.sin, large.astype(np.float16))
    assert "stablehlo.sine" in operations(vnp.sin, large, cpu_lowerings="xla")
    with override("cpu_lowerings", "xla"):
        assert "stablehlo.sine" in operations(vnp.sin, large)
    (module,) = [
        verax.jit(vnp.sin).trace(large).lower(lowering_platforms=("cuda",)).as_text()
    ]
    assert "stablehlo.sine" in module
    with pytest.raises(ValueError, match="cpu_lowerings"):
        verax.jit(vnp.sin, cpu_lowerings="all")  # type: ignore[call-overload]


def test_powers_that_xla_knows_are_left_to_it() -> None:
    x = np.ones(1000, "f4")
    for power, written in ((0.5, True), (2.0, True), (0.7, False)):
        text = verax.jit(lambda x, y=power: lax.pow(x, y)).lower(x).as_text()
        assert ("stablehlo.power" in text) == written, power


def test_a_function_that_is_only_summed_is_left_to_the_library_for_sums() -> None:
    x = np.ones(4096, np.float32)
    assert "stablehlo.sine" in operations(lambda x: (vnp.sin(x) ** 2).sum(), x)
    assert "stablehlo.cosine" in operations(lambda x: vnp.cos(x * 2).sum(), x[:, None])
    for other in (
        lambda x: vnp.sin(x * 2).max(),
        lambda x: (lambda y: (y.sum(), y))(vnp.sin(x)),
        lambda x: vnp.where(x > 0, vnp.sin(x), x).sum(),
        lambda x: vnp.sin(x[1:]).sum(),
    ):
        assert "stablehlo.sine" not in operations(other, x)


def test_where_an_angle_is_too_large_xla_takes_over() -> None:
    with verax.enable_x64():
        x = np.linspace(-100, 100, 4096)
        f = verax.jit(vnp.sin)
        text = f.lower(x).as_text()
        assert text.count("stablehlo.case") == 1
        assert "stablehlo.sine" in text
        x[7] = 1e22
        np.testing.assert_allclose(np.asarray(f(x)), np.sin(x), 1e-12, 1e-15)


def test_kernels_reach_programs_inside_and_derivatives() -> None:
    x = np.linspace(-3, 3, 256, dtype=np.float32)

    def walk(x: Any) -> Any:
        return lax.scan(lambda c, _: (vnp.sin(c) * 1.1 + vnp.cos(c), None), x, None, 5)[
            0
        ]

    assert "stablehlo.sine" not in operations(walk, x)
    due = verax.jit(walk, cpu_lowerings="xla")(x)
    np.testing.assert_allclose(verax.jit(walk)(x), due, 1e-5)
    for f in (vnp.sin, vnp.tan, vnp.arcsin, vnp.cbrt, lambda x: vnp.power(x * x, 0.3)):
        slope = verax.vmap(verax.grad(lambda x, f=f: f(x * 0.3)))
        due = verax.jit(slope, cpu_lowerings="xla")(x)
        np.testing.assert_allclose(verax.jit(slope)(x), due, 1e-5)


def test_operands_are_broadcast_and_may_be_weak() -> None:
    x = np.linspace(0.5, 2, 128, dtype=np.float32)
    f = verax.jit(lambda x, y: vnp.power(x, y))
    np.testing.assert_allclose(f(x, 1.7), x**1.7, 1e-6)
    np.testing.assert_allclose(f(x[:, None], x), x[:, None] ** x, 1e-6)
    weak = verax.jit(lambda s: vnp.sin(lax.broadcast(s, (100,))))
    assert weak(1.0).weak_type
    np.testing.assert_allclose(weak(1.0), np.sin(1.0), 1e-6)


IN_PIECES: dict[str, Callable[..., Any]] = {
    "igamma": lax.igamma,
    "igammac": lax.igammac,
    "igamma_grad_a": lax.igamma_grad_a,
    "random_gamma_grad": lax.random_gamma_grad,
    "regularized_incomplete_beta": lambda a, x: lax.betainc(a, a, x * 0.125),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_PIECES)
def test_loops_until_all_have_converged_are_run_on_pieces(name: str) -> None:
    f = IN_PIECES[name]
    rng = np.random.default_rng(5)
    kinds: list[tuple[tuple[int, ...], Any]] = [
        ((3, 1001), np.float32),
        ((2048,), np.float16),
    ]
    given = [rng.uniform(0.3, 8, (2, *shape)).astype(dtype) for shape, dtype in kinds]
    flat = np.concatenate([xs.reshape(2, -1).astype(np.float32) for xs in given], 1)
    whole = np.asarray(verax.jit(f, cpu_lowerings="xla")(*flat))
    due = np.split(whole, [given[0][0].size])
    for (shape, dtype), xs, one in zip(kinds, given, due, strict=True):
        actual = np.asarray(verax.jit(f)(*xs))
        assert (actual.shape, actual.dtype) == (shape, dtype)
        expected = one.reshape(shape).astype(dtype)
        np.testing.assert_allclose(actual, expected, 4 * np.finfo(dtype).eps)
    for size in (1024, 1023):
        half = np.full(size, 0.5, np.float32)
        assert ("<512xf32>" in operations(f, half, half)) == (size == 1024)


def test_every_row_with_a_kernel_is_tested_here() -> None:
    rows = [row for row in ROWS if isinstance(row, Row) and row.kernel is not None]
    others = {"erf", "erf_inv", "lgamma", "digamma", "abs", *OF_TWO}
    products = {"conv_general_dilated", "dot_general", "reduce_prod"}
    windows = {f"reduce_window_{kind}" for kind in ("sum", "max", "min")}
    moved = {"pad", *windows}  # tests/ops/{structure,windows}
    folds = {f"cum{kind}" for kind in ("sum", "prod", "max", "min", "logsumexp")}
    folds.add("linear_recurrence")  # tests/ops/reductions
    named = {*CASES, *PAIRS, *others, *products, *moved, *folds, *IN_PIECES}
    assert {row.name for row in rows} == named


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["sin", "arctan2", "cbrt", "exp2", "fmod", "power"])
def test_small_floats_are_computed_in_single_precision(name: str, dtype: Any) -> None:
    f = getattr(vnp, name)
    count = 2 if name in ("arctan2", "fmod", "power") else 1
    rng = np.random.default_rng(0)
    xs = [rng.uniform(0.1, 4, 4096).astype(dtype) for _ in range(count)]
    actual = verax.jit(f)(*xs)
    due = np.asarray(verax.jit(f)(*[x.astype(np.float32) for x in xs])).astype(dtype)
    assert actual.dtype == due.dtype
    np.testing.assert_array_equal(actual, due)
