"""Running folds on a CPU go side by side, or in parts, and are those of NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns, crossed, nightly
from verax import lax
from verax.rules.families.cumulative import LEAST, LONGEST

FOLDS: dict[str, tuple[Any, Any]] = {
    "cumsum": (lax.cumsum, np.cumsum),
    "cumprod": (lax.cumprod, np.cumprod),
    "cummax": (lax.cummax, np.maximum.accumulate),
    "cummin": (lax.cummin, np.minimum.accumulate),
    "cumlogsumexp": (lax.cumlogsumexp, np.logaddexp.accumulate),
}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "uint32", "int64"]
CASES = {
    "in parts": ((LONGEST + 904,), 0),
    "in parts with some left": ((LONGEST + 77,), 0),
    "few rows in parts": ((3, LONGEST + 3), 1),
    "few columns in parts": ((LONGEST + 3, 2), 0),
    "few rows": ((3, 700), 1),
    "rows": ((64, 33), 1),
    "rows, the last go again": ((21, 130), 1),
    "columns": ((130, 21), 0),
    "in the middle": ((11, 40, 3), 1),
    "in the middle of many": ((3, 50, 20), 1),
    "one at a time": ((2, 3, 512), 0),
}


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    """Numbers near 1, and signs, whose products and sums stay small."""
    rng = np.random.default_rng(len(shape))
    if "int" in dtype:
        return rng.integers(0, 3, shape).astype(dtype)
    signs = rng.choice([-1.0, 1.0], shape)
    return signs * rng.uniform(0.995, 1.005, shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"),
    by_turns(
        [
            (name, dtype)
            for name in FOLDS
            for dtype in DTYPES
            if name != "cumlogsumexp" or "int" not in dtype
        ],
        2,
        NIGHTLY,
    ),
)
@pytest.mark.parametrize("cases", [0, *map(nightly, range(1, 5))])
def test_folds_are_those_of_numpy(name: str, dtype: str, cases: int) -> None:
    fold, accumulate = FOLDS[name]
    first = (cases + list(FOLDS).index(name)) % 5
    for shape, axis in list(CASES.values())[first::5]:
        agree(fold, accumulate, shape, axis, dtype)


def agree(
    fold: Any, accumulate: Any, shape: tuple[int, ...], axis: int, dtype: str
) -> None:
    """Raise unless the fold is that of NumPy, forwards and backwards."""
    with verax.enable_x64(dtype in ("float64", "int64")):
        x = vnp.asarray(drawn(shape, dtype), dtype)
        assert x.size >= LEAST
        ways = (False, True)
        folds = verax.jit(lambda x: [fold(x, axis, reverse=r) for r in ways])(x)
        for reverse, y in zip(ways, folds, strict=True):
            wide = np.asarray(x, "i8" if "int" in dtype else "f8")
            # NumPy's folds in double precision are rounded more often than ours.
            wide = wide if "int" in dtype else wide.astype(np.longdouble)
            wide = np.flip(wide, axis) if reverse else wide
            due: Any = accumulate(wide, axis)
            due = np.flip(due, axis) if reverse else due
            assert y.dtype == x.dtype
            if "int" in dtype:
                np.testing.assert_array_equal(y, due.astype(dtype))
            else:
                ulp = float(vnp.finfo(dtype).eps)
                # Double precision is folded in no wider one: up to SEVERAL are rounded.
                most = 64 * float(abs(due).max()) if dtype == "float64" else 20
                np.testing.assert_allclose(np.asarray(y, "f8"), due, ulp, most * ulp)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "name"), crossed(CASES, FOLDS, 5))
def test_derivatives_are_those_of_numpy_and_xla(name: str, case: str) -> None:
    shape, axis = CASES[case]
    fold = FOLDS[name][0]
    x, t = drawn(shape, "float32").astype("f4"), drawn(shape, "float32").astype("f4")

    def slopes(x: Any) -> Any:
        f = lambda x: fold(x, axis, reverse=True)  # noqa: E731
        return verax.jvp(f, (x,), (t,))[1], verax.vjp(f, x)[1](t)[0]

    # Elsewhere than on a CPU they are trees of steps, which XLA takes seconds for.
    ways: tuple[Any, ...] = ("auto", "xla") if shape[axis] < 50 else ("auto",)
    compiled = [verax.jit(slopes, cpu_lowerings=how)(x) for how in ways]
    for values in compiled:
        for one, other in zip(values, slopes(x), strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(LONGEST + 77,), (21, 130)])
def test_nan_and_infinities_are_where_they_are_in_numpy(shape: tuple[int, ...]) -> None:
    x = drawn(shape, "float32").astype("f4")
    x.reshape(-1)[[500, 700, 900]] = np.inf, -np.inf, np.nan
    for fold, accumulate in FOLDS.values():
        with np.errstate(all="ignore"):
            due: Any = accumulate(x.astype("f8"), len(shape) - 1)
        y = verax.jit(lambda x, f=fold: f(x, len(shape) - 1))(x)
        np.testing.assert_allclose(y, due, 1e-4, 1e-3)


def test_no_array_is_transposed() -> None:
    x = np.ones((64, 64), "f4")
    ways: dict[Any, int] = {"auto": 0, "xla": 2}
    for how, count in ways.items():
        text = verax.jit(lambda x: lax.cumsum(x, 1), cpu_lowerings=how).lower(x)
        assert text.as_text().count("stablehlo.transpose") == count


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_size_may_be_symbolic(dtype: str) -> None:
    with verax.enable_x64(dtype == "float64"):
        shape = verax.export.symbolic_shape("a, b")
        struct = verax.ShapeDtypeStruct(shape, np.dtype(dtype))
        for axis in (0, 1):
            f = verax.jit(lambda x, axis=axis: lax.cumsum(x, axis))
            exported = verax.export.export(f)(struct)
            x = drawn((5, 7), dtype).astype(dtype)
            np.testing.assert_allclose(exported.call(x), np.cumsum(x, axis), 1e-5, 1e-5)
