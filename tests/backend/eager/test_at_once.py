"""What NumPy computes at once has the bits of the steps, or is left to them."""

import itertools
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.backend.eager.composites import recipe
from verax.ir.avals import ShapedArray
from verax.numpy.arguments.elementwise_call import Exactly, WhereFinite
from verax.numpy.elementwise.float_parts import copysign
from verax.numpy.indexing.take import take_along_axis
from verax.numpy.linalg.determinants import det, slogdet
from verax.numpy.linalg.host_solving import det_at_once, inv_at_once, solve_at_once
from verax.numpy.linalg.solving import inv, solve
from verax.numpy.ranges import spaced
from verax.numpy.reducing.closeness import allclose, isclose
from verax.numpy.reducing.quantiles import (
    found_in,
    median,
    median_at_once,
    nanmedian,
    quantile_at_once,
)
from verax.numpy.searching.sorting import bisect, bisect_at_once, searchsorted
from verax.numpy.signal.polynomials import polyval, polyval_at_once
from verax.rules.values.state import State

DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "int32")


def outcome(function: Any, *args: Any, **options: Any) -> object:
    """The result as type and bytes, or the error."""
    try:
        actual = verax.tree.leaves(function(*args, **options))
    except Exception as error:
        return type(error), str(error)
    return [(x.aval, np.asarray(x).tobytes()) for x in actual]


def same_twice(function: Any, *args: Any, **options: Any) -> None:
    """The remembered function gives what the operations give one by one."""
    due = outcome(function.__wrapped__, *args, **options)
    for _ in range(2):
        assert outcome(function, *args, **options) == due


def drawn(dtype: str, *shape: int) -> verax.Array:
    values = 3 * np.random.default_rng(len(shape)).standard_normal((2, *shape))
    whole = values[0] + 1j * values[1] if dtype.startswith("complex") else values[0]
    return vnp.asarray(whole.astype(dtype))


def matrices(dtype: str) -> list[verax.Array]:
    """Matrices in several layouts, singular ones, permutations, and what is not one."""
    x = drawn(dtype, 5, 5)
    exchanged = vnp.eye(5, dtype=dtype)[np.array([1, 0, 2, 4, 3])]
    some = [drawn(dtype, n, n) for n in (0, 1, 2, 3, 4, 8)]
    other = [drawn(dtype, 2, 3, 3), drawn(dtype, 2, 3), drawn(dtype, 4)]
    flat = vnp.broadcast_to(drawn(dtype, 5), (5, 5))
    return [x, x.T, -exchanged, flat, x * 0, x.at[0, 0].set(0), *some, *other]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants_and_inverses_have_the_bits_of_the_steps(dtype: str) -> None:
    with verax.enable_x64(True):
        for x in matrices(dtype):
            same_twice(det, x)
            same_twice(inv, x)


@pytest.mark.parametrize("special", [np.nan, np.inf, -0.0])
def test_matrices_with_special_values(special: float) -> None:
    for i, j in itertools.product(range(4), repeat=2):
        x = drawn("float32", 4, 4).at[i, j].set(special)
        same_twice(det, x)
        same_twice(inv, x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_have_the_bits_of_the_steps(dtype: str) -> None:
    with verax.enable_x64(True):
        for a in matrices(dtype):
            size = a.shape[-1]
            for shape in ((size,), (size, 1), (size, 3), (size, 0), (2, size, 1)):
                same_twice(solve, a, drawn(dtype, *shape))
            same_twice(solve, a, drawn("float32", size))
            same_twice(solve, a, drawn(dtype, 2, size).T)


LINES: tuple[Any, ...] = (
    drawn("float32", 3, 4),
    drawn("float32", 2, 3, 5),
    drawn("float32", 3, 4).at[1, 2].set(np.nan),
    drawn("float32", 3, 4).at[1, 2].set(-np.inf),
    vnp.array([[0.0, -0.0, 0.0], [-0.0, 0.0, 1.0]]),
    vnp.array([[-np.inf, np.inf, -0.0], [np.inf, np.inf, 0.0]]),
    vnp.full((2, 2), 1e-30),
    vnp.float32(2.5) + vnp.zeros((1,)),
    vnp.arange(12).reshape(3, 4),
    drawn("float16", 3, 4),
    drawn("complex64", 3, 4),
    vnp.zeros((0, 3)),
)
SHARES: tuple[Any, ...] = (
    0.0,
    -0.0,
    0.3,
    0.5,
    0.75,
    1.0,
    1.5,
    -0.25,
    np.nan,
    [0.2, 0.4],
    [],
)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(LINES)))
@pytest.mark.parametrize("axis", [None, 0, -1, 2])
def test_quantiles_have_the_bits_of_the_steps(number: int, axis: Any) -> None:
    x = LINES[number]
    for keepdims in (False, True):
        same_twice(median, x, axis, None, False, keepdims)
        methods = ("linear", "lower", "higher", "midpoint", "nearest")
        for method, share, skip in itertools.product(methods, SHARES, (False, True)):
            q = vnp.asarray(share, np.float32)
            same_twice(found_in, x, q, None, "quantile", axis, method, keepdims, skip)


def test_quantiles_in_double_precision() -> None:
    with verax.enable_x64(True):
        for share, dtype in itertools.product(SHARES, ("float32", "float64")):
            q = vnp.asarray(share, dtype)
            x = drawn("float64", 3, 4)
            same_twice(found_in, x, q, None, "quantile", 1, "linear", False, False)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "uint8", "bfloat16"])
@pytest.mark.parametrize("right", [False, True])
def test_places_in_order_have_the_bits_of_the_steps(dtype: str, right: bool) -> None:
    special = vnp.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    for x64 in (True,) if dtype in ("float64", "complex128") else (False, True):
        with verax.enable_x64(x64):
            line = vnp.sort(drawn("float32", 20)).astype(dtype)
            whole = [drawn("float32", *shape) for shape in ((), (3, 4), (0,), (300,))]
            for query in (*whole, special, vnp.sort(special)):
                for row in (
                    line,
                    line[:0],
                    vnp.sort(special).astype(dtype),
                    line[::-1],
                ):
                    same_twice(bisect, row, query.astype(dtype), right)
                    side = "right" if right else "left"
                    same_twice(searchsorted, row, query.astype(dtype), side)
                    same_twice(searchsorted, row, query, side)


@pytest.mark.parametrize("dtype", DTYPES)
def test_polynomials_have_the_bits_of_the_steps(dtype: str) -> None:
    with verax.enable_x64(True):
        for size, shape in itertools.product((0, 1, 2, 7), ((), (4,), (3, 2), (0,))):
            same_twice(polyval, drawn(dtype, size), drawn(dtype, *shape))
            same_twice(polyval, drawn(dtype, size), drawn("float32", *shape))
            same_twice(polyval, drawn(dtype, size), drawn(dtype, *shape).T)
            same_twice(polyval, drawn(dtype, size), 2)
            same_twice(polyval, drawn(dtype, size, 3), drawn(dtype, 3))
        special = vnp.array([np.nan, np.inf, -0.0], dtype) if dtype != "int32" else 1
        same_twice(polyval, drawn(dtype, 3), special)


def test_common_types_are_computed_at_once() -> None:
    line, matrix, share = (ShapedArray(s, np.dtype("f4")) for s in ((8,), (8, 8), ()))
    actual = (
        det_at_once(matrix),
        inv_at_once(matrix),
        solve_at_once(matrix, line),
        solve_at_once(matrix, matrix),
        median_at_once(matrix, 1),
        polyval_at_once(line, matrix),
        bisect_at_once(line, matrix, False),
        quantile_at_once(line, share, None, "", None, "linear", False, False),
    )
    assert None not in actual


def test_arguments_are_left_as_they_are() -> None:
    x, b, line = drawn("float32", 4, 4), drawn("float32", 4), drawn("float32", 8)
    before = [np.array(y) for y in (x, b, line)]
    solve(x, b), solve(x.T, b), inv(x), det(x), median(x, 0), median(line)
    polyval(b, line), bisect(line, b, False)
    for due, got in zip(before, (x, b, line), strict=True):
        np.testing.assert_array_equal(due, np.asarray(got))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_determinants_have_the_bits_of_the_steps(dtype: str) -> None:
    with verax.enable_x64(True):
        for x in (*matrices(dtype), drawn(dtype, 40, 40)):
            for options in ({}, {"method": "lu"}):
                same_twice(slogdet, x, **options)
    for special in (np.nan, np.inf, 0.0, -0.0, 1e-40):
        for i, j in itertools.product(range(3), repeat=2):
            same_twice(slogdet, drawn("float32", 3, 3).at[i, j].set(special))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(LINES)))
def test_medians_of_numbers_have_the_bits_of_the_steps(number: int) -> None:
    x = LINES[number]
    spoilt = (vnp.where(x == x[:1], vnp.nan, x), x * vnp.nan) if x.ndim == 2 else ()
    for line in (x, *spoilt):
        for axis, keepdims in itertools.product((None, 0, -1), (False, True)):
            same_twice(nanmedian, line, axis, None, False, keepdims)
            for share in SHARES:
                q = vnp.asarray(share, np.float32)
                rest = (axis, "linear", keepdims, True)
                same_twice(found_in, line, q, None, "nanquantile", *rest)


NEAR = [1.0, 1.0 + 1e-6, -0.0, 0.0, 1e-9, 3e38, -3e38, np.nan, np.inf, -np.inf, 1e-41]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_closeness_has_the_bits_of_the_steps(dtype: str) -> None:
    with verax.enable_x64(True):
        with np.errstate(all="ignore"):
            x = vnp.asarray(np.repeat(NEAR, len(NEAR)).astype(dtype))
            y = vnp.asarray(np.tile(NEAR, len(NEAR)).astype(dtype))
        usual = vnp.asarray(np.array([1.0, 2.0, 3.0]).astype(dtype))
        finite = (usual, usual * 0, usual + usual)
        pairs = [(x, y), (y, x), (x[:0], y[:0]), (usual, vnp.float32(1)), (usual, x[0])]
        singles = [(x[i : i + 1], y[i : i + 1]) for i in range(x.size)]
        for a, b in (*pairs, *singles, *itertools.product(finite, repeat=2)):
            for function in (isclose, allclose):
                same_twice(function, a, b)
                same_twice(function, a, b, equal_nan=True)
                same_twice(function, a, b, 0, 1)
                same_twice(function, a, b, 1e-3, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "bfloat16", "int4"])
@pytest.mark.parametrize("kind", ["int32", "uint8", "int8", "int4"])
def test_elements_along_an_axis_are_those_of_the_steps(dtype: str, kind: str) -> None:
    with verax.enable_x64(True):
        x = vnp.asarray(np.arange(24).reshape(2, 3, 4) % 7).astype(dtype)
        for axis, mode in itertools.product((0, 1, -1, None), (None, "fill", "clip")):
            line = x.ravel() if axis is None else x
            size = line.shape[0 if axis is None else axis]
            for values in (
                [0, 1, 0],
                [0, 1, size - 1],
                [-1, 0],
                [size, 0],
                [-size - 1],
                [],
            ):
                shape = list(line.shape)
                shape[axis or 0] = len(values)
                turned = [1] * line.ndim
                turned[axis or 0] = len(values)
                whole = np.broadcast_to(np.reshape(values, turned), shape)
                for places in (whole, whole[:1], np.reshape(values, turned)):
                    with np.errstate(all="ignore"):
                        given = vnp.asarray(places.astype(np.int32)).astype(kind)
                    same_twice(take_along_axis, x, given, axis, mode)
        same_twice(take_along_axis, x, vnp.zeros((2, 3), kind), 1)
        same_twice(take_along_axis, x, vnp.zeros((2, 3, 1), kind), 3)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_spaced_numbers_have_the_bits_of_the_steps(dtype: str) -> None:
    ends = [0.0, -0.0, 1.0, 0.1, -7.3, 1e-3, 1e30, 3e38, -3e38, 1e-44, np.inf, np.nan]
    with verax.enable_x64(True), np.errstate(all="ignore"):
        for start, stop in itertools.product(ends, repeat=2):
            x, y = (vnp.asarray(end, dtype) for end in (start, stop))
            for num, endpoint in itertools.product((0, 1, 2, 3, 10, 61), (True, False)):
                same_twice(spaced, x, y, num, endpoint)
        same_twice(spaced, vnp.ones((), dtype), vnp.ones((2,), dtype), 4, True)


SPECIAL = [
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, -7.25, 1e-45, -1e-45, 1e-40),
    *(1.2e-38, 3.4e38, -3.4e38, 1e300, np.inf, -np.inf, np.nan, -np.nan, 1e10, 0.1),
]
ONE_FLOAT = ("signbit", "frexp", "trunc")
TWO_FLOATS = (*("copysign", "heaviside", "remainder", "fmod"),)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("name", [*ONE_FLOAT, *TWO_FLOATS])
def test_ufuncs_of_numpy_have_the_bits_of_the_steps(name: str, dtype: str) -> None:
    function = getattr(vnp, name)
    function = getattr(function, "func", function)
    draw = np.random.default_rng(0)
    with verax.enable_x64(True), np.errstate(all="ignore"):
        special = np.array(SPECIAL).astype(dtype)
        usual = (9 * draw.normal(size=300)).astype(dtype)
        lines = [special, usual, usual[:0], usual[0], *special]
        for line in lines:
            x = vnp.asarray(line)
            if name in ONE_FLOAT:
                same_twice(function, x)
                continue
            for y in (*special, *usual[:2], usual[:1], usual[:, None][:3]):
                same_twice(function, x, vnp.asarray(y))
                same_twice(function, vnp.asarray(y), x)
        if name in TWO_FLOATS:
            other = vnp.asarray((2 * draw.normal(size=300)).astype(dtype))
            same_twice(function, vnp.asarray(usual), other)
            same_twice(function, vnp.asarray(usual), 3)


@pytest.mark.parametrize("at_once", [Exactly(np.copysign), WhereFinite(np.copysign)])
def test_ufuncs_are_remembered(at_once: Any) -> None:
    plain: Any = copysign.__wrapped__  # type: ignore[attr-defined]  # it is wrapped
    aval = ShapedArray((3,), np.dtype(np.float32))
    assert at_once(aval, aval) is not None
    assert at_once(aval, ShapedArray((3,), np.dtype(np.int32))) is None
    assert at_once(aval, 2.0) is None
    first, again = [recipe(State.shared, plain, at_once, aval, aval) for _ in range(2)]
    assert first is again is not None
