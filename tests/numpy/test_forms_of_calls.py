"""Forms of calls and numbers that users of NumPy and JAX count on, one test each."""

from array import array
from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import error_of

jnp: Any = verax.numpy

STACK = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


# ------------------------------------------------------------------ spaced numbers


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("start", "stop", "num"),
    [(0, 25, 6), (0, 10, 31), (-7, 7, 15), (3, 3 + 7 * 48, 49), (5, 5, 4), (0, 3, 7)],
)
def test_linspace_has_whole_numbers(
    start: int, stop: int, num: int, jitted: bool
) -> None:
    wanted = np.linspace(start, stop, num)
    whole = wanted == np.round(wanted)

    def line() -> Any:
        return jnp.linspace(start, stop, num)

    found = np.asarray(verax.jit(line)() if jitted else line())
    np.testing.assert_array_equal(found[whole], wanted[whole])
    np.testing.assert_allclose(found, wanted, 3e-7, 1e-6)
    floored = jnp.linspace(start, stop, num, dtype=int)
    np.testing.assert_array_equal(floored, np.linspace(start, stop, num, dtype=int))


def test_linspace_at_its_limits() -> None:
    wide = jnp.linspace(-3e38, 3e38, 5)
    np.testing.assert_allclose(wide, np.linspace(-3e38, 3e38, 5), 1e-6, 1e30)
    half = jnp.linspace(0, 60000, 7, dtype="float16")
    assert half.dtype == "float16"
    np.testing.assert_array_equal(half, np.arange(0, 60001, 10000).astype("float16"))
    complexes = jnp.linspace(1j, 4, 5)
    np.testing.assert_array_equal(complexes, np.linspace(1j, 4, 5))
    slope = verax.grad(lambda x: jnp.linspace(x, 8.0, 5)[1])(0.0)
    assert float(slope) == 0.75


def test_histogram_counts_whole_numbers() -> None:
    values = np.arange(25, dtype=np.float32)
    counts, edges = jnp.histogram(values, bins=5, range=(0, 25))
    assert counts.tolist() == [5] * 5
    assert edges.tolist() == [0, 5, 10, 15, 20, 25]


def test_spaces_of_powers() -> None:
    bases = np.array([2.0, 10.0], np.float32)
    wanted = np.logspace(0, 3, 4, base=bases)
    np.testing.assert_allclose(jnp.logspace(0, 3, 4, base=bases), wanted, 1e-6)
    assert jnp.geomspace(1, 1000, 4).tolist() == [1, 10, 100, 1000]
    half = jnp.geomspace(1, 1000, 4, dtype="float16")
    assert half.tolist() == [1, 10, 100, 1000]


# ------------------------------------------------------------ diagonals and corners


def test_diagonals_of_stacks_of_matrices() -> None:
    for offset in (-1, 0, 2):
        np.testing.assert_array_equal(
            jnp.linalg.diagonal(STACK, offset=offset),
            np.linalg.diagonal(STACK, offset=offset),
        )
        np.testing.assert_array_equal(
            jnp.linalg.trace(STACK, offset=offset),
            np.linalg.trace(STACK, offset=offset),
        )
    assert jnp.linalg.trace(STACK, dtype=int).dtype == "int32"


def test_trim_zeros_of_a_matrix() -> None:
    x = np.zeros((4, 5), np.float32)
    x[1, 2] = x[2, 3] = 1
    for options in ({}, {"trim": "f"}, {"trim": "b"}, {"axis": 0}, {"axis": (-1,)}):
        np.testing.assert_array_equal(
            jnp.trim_zeros(x, **options), np.trim_zeros(x, **options)
        )
    assert jnp.trim_zeros(np.zeros((2, 3))).shape == (0, 0)
    traced = verax.jit(jnp.trim_zeros)
    assert "trim_zeros" in error_of(lambda: traced(x), TypeError)


# ----------------------------------------------------------------------------- roots


def test_roots_behind_leading_zeros() -> None:
    def found(p: list[float]) -> list[complex]:
        function = verax.jit(lambda p: jnp.roots(p, strip_zeros=False))
        values = np.array(p, np.float32)
        eager = jnp.roots(values, strip_zeros=False)
        np.testing.assert_allclose(function(values), eager, 1e-5)
        return [complex(x) for x in np.asarray(eager)]

    first, last = found([0, 1, 2])
    assert abs(first + 2) < 1e-6
    assert np.isnan(last)
    several = found([0, 0, 1, -3, 2, 0])
    np.testing.assert_allclose(sorted(np.abs(several[:3])), [0, 1, 2], 1e-5, 1e-6)
    assert np.isnan(several[3:]).all()
    assert np.isnan(found([0, 0, 0])).all()
    assert found([3]) == []
    assert jnp.roots(3.0).shape == (0,)


# --------------------------------------------------------------------------- choices


def test_choose_in_the_form_of_numpy() -> None:
    i = np.array([[0, 1], [2, 1]], np.int32)
    choices: list[Any] = [
        np.array([1, 2], np.int32),
        np.array([[10.0], [20.0]], np.float32),
        100,
    ]
    np.testing.assert_array_equal(jnp.choose(i, choices), np.choose(i, choices))
    np.testing.assert_array_equal(jnp.choose(i, tuple(choices)), np.choose(i, choices))
    rows = np.arange(6, dtype=np.int32).reshape(3, 2)
    np.testing.assert_array_equal(jnp.choose(i, rows), np.choose(i, rows))
    far = i * 3 - 2
    for mode in ("wrap", "clip"):
        found = verax.jit(lambda i, mode=mode: jnp.choose(i, choices, mode=mode))(far)
        np.testing.assert_array_equal(found, np.choose(far, choices, mode=mode))
    assert "out of bounds" in error_of(lambda: jnp.choose(far, choices), ValueError)
    assert "'wrap'" in error_of(
        lambda: verax.jit(lambda i: jnp.choose(i, choices))(i), TypeError
    )
    assert "integers" in error_of(lambda: jnp.choose(1.5, choices), ValueError)
    assert "mode" in error_of(lambda: jnp.choose(i, choices, mode="up"), ValueError)
    assert "no choices" in error_of(lambda: jnp.choose(i, []), ValueError)


# ------------------------------------------------------------- what arrays come from


def test_arrays_of_ranges_and_buffers() -> None:
    assert jnp.array(range(5)).tolist() == [0, 1, 2, 3, 4]
    assert jnp.array(range(5)).dtype == "int32"
    assert jnp.asarray(range(0)).shape == (0,)
    assert jnp.array([range(2), range(2)]).tolist() == [[0, 1], [0, 1]]
    assert jnp.asarray(array("d", [1, 2])).dtype == "float32"
    assert jnp.asarray(array("h", [1, 2])).dtype == "int16"
    assert jnp.asarray(array("i", [1, 2]), dtype=float).tolist() == [1, 2]


def test_einsum_takes_a_path() -> None:
    shapes = ((2, 3), (3, 4), (4, 5))
    operands = [np.ones(shape, np.float32) for shape in shapes]
    wanted = np.einsum("ij,jk,kl->il", *operands)
    paths = [
        jnp.einsum_path("ij,jk,kl->il", *operands)[0],
        np.einsum_path("ij,jk,kl->il", *operands)[0],
        [(0, 1), (0, 1)],
        ["einsum_path", (0, 1, 2)],
        [(1, 2), [0, 1]],
        None,
    ]
    for path in paths:
        found = jnp.einsum("ij,jk,kl->il", *operands, optimize=path)
        np.testing.assert_array_equal(found, wanted)
    order = jnp.einsum_path(
        operands[0], [0, 1], operands[1], [1, 2], operands[2], [2, 3], [0, 3]
    )
    assert order[0] == paths[0]
    assert "no path" in error_of(
        lambda: jnp.einsum("ij,jk", *operands[:2], optimize=["greed"]), ValueError
    )


def test_traced_fill_values_and_places() -> None:
    x = np.array([0, 1, 0, 1], np.int32)
    fill = verax.jit(lambda f: jnp.nonzero(x, size=4, fill_value=f)[0])
    assert fill(7).tolist() == [1, 3, 7, 7]
    both = verax.jit(lambda f: jnp.nonzero(x[None], size=3, fill_value=(f, -f)))
    assert [i.tolist() for i in both(7)] == [[0, 0, 7], [1, 3, -7]]
    assert "scalar" in error_of(
        lambda: jnp.nonzero(x, size=4, fill_value=x), ValueError
    )


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_delete_at_traced_places(axis: int | None) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    places = np.array([1, -1, 2], np.int32)
    drop = verax.jit(lambda i: jnp.delete(x, i, axis, assume_unique_indices=True))
    np.testing.assert_array_equal(drop(places), np.delete(x, places, axis))
    np.testing.assert_array_equal(drop(np.int32(2)), np.delete(x, 2, axis))
    message = error_of(lambda: verax.jit(lambda i: jnp.delete(x, i))(places), TypeError)
    assert "assume_unique_indices" in message


# ---------------------------------------------------- widths, limits, empty operands


def test_indices_have_the_default_width() -> None:
    x = np.array([0, 3, 0], np.int8)
    for wide, name in ((False, "int32"), (True, "int64")):
        with verax.enable_x64(wide):
            a = jnp.asarray(x)
            assert jnp.nonzero(a)[0].dtype == name
            assert jnp.nonzero(a, size=2)[0].dtype == name
            assert jnp.where(a)[0].dtype == name
            assert jnp.flatnonzero(a).dtype == name
            assert jnp.argwhere(a).dtype == name
            assert jnp.linalg.matrix_rank(np.eye(2)).dtype == name
            assert jnp.linalg.lstsq(np.eye(2), np.ones(2))[2].dtype == name


def test_places_from_narrow_indices() -> None:
    i = np.array([90], np.int8)
    assert jnp.ravel_multi_index((i, i), (100, 100)).tolist() == [9090]
    assert [part.tolist() for part in jnp.unravel_index(i, (20, 10))] == [[9], [0]]
    message = error_of(lambda: jnp.unravel_index(1.5, (2, 3)), TypeError)
    assert "integers" in message


def test_standard_scans_widen_small_integers() -> None:
    x = np.array([200, 100], np.uint8)
    found = jnp.cumulative_sum(x, axis=0)
    assert (found.dtype, found.tolist()) == (np.dtype("uint32"), [200, 300])
    assert jnp.cumulative_prod(x).tolist() == [200, 20000]
    assert jnp.cumulative_sum(x, dtype="uint8").tolist() == [200, 44]


def test_bincount_of_unsigned_numbers() -> None:
    assert jnp.bincount(np.array([1, 2, 0], np.uint8), minlength=5).tolist() == [
        *(1, 1, 1, 0, 0)
    ]
    assert jnp.bincount(np.zeros(0, np.uint8)).shape == (0,)


def test_differences_of_sets_have_the_dtype_of_the_first() -> None:
    x = np.array([3, 1, 2], np.int8)
    found = jnp.setdiff1d(x, np.array([1.0, 2.5], np.float32))
    assert (found.dtype, found.tolist()) == (np.dtype("int8"), [2, 3])


def test_functions_at_infinity() -> None:
    x = np.array([np.inf, -np.inf, -1.5], np.float32)
    fraction, whole = jnp.modf(x)
    assert fraction.tolist() == [0, 0, -0.5]
    assert whole.tolist() == [np.inf, -np.inf, -1]
    assert np.isnan(jnp.spacing(x[:2].astype(np.float16))).all()


def test_numbers_near_unsigned_ones() -> None:
    x = np.array([1, 3, 0], np.uint8)
    assert jnp.isclose(x, -1, rtol=1.0).tolist() == [False, False, True]
    assert not bool(jnp.allclose(x, -1, rtol=1.0))
    assert jnp.isclose(x, x + 1, atol=1.0).tolist() == [True] * 3


def test_trapezoid_of_nothing() -> None:
    assert jnp.trapezoid(np.zeros((2, 0))).tolist() == [0, 0]
    assert jnp.trapezoid(np.zeros((0, 2)), axis=0).tolist() == [0, 0]


@pytest.mark.parametrize("places", [0.5, np.array([0.0, 1.0, 3.0, 3.5], np.float32)])
def test_gradient_with_parabolas_at_the_edges(places: Any) -> None:
    x = np.array([[1.0, 4.0, 2.0, 8.0], [0.0, 1.0, 4.0, 9.0]], np.float32)
    for order in (1, 2):
        np.testing.assert_allclose(
            jnp.gradient(x, places, axis=1, edge_order=order),
            np.gradient(x, places, axis=1, edge_order=order),
            1e-6,
        )
    assert "edge_order" in error_of(lambda: jnp.gradient(x, edge_order=3), ValueError)
    assert "3 elements" in error_of(
        lambda: jnp.gradient(x, axis=0, edge_order=2), ValueError
    )


def test_quantiles_of_weighted_elements() -> None:
    x = np.array([[3.0, 1.0, 2.0, 5.0], [4.0, 0.0, 7.0, 7.0]], np.float32)
    weights = np.array([1.0, 3.0, 0.0, 2.0], np.float32)
    q = np.array([0.0, 0.5, 0.51, 0.9, 1.0], np.float32)
    options: dict[str, Any] = {"axis": 1, "method": "inverted_cdf"}
    wanted = np.quantile(x, q, weights=weights, **options)
    found = jnp.quantile(x, q, weights=weights, **options)
    np.testing.assert_array_equal(found, wanted)
    traced = verax.jit(lambda x, w: jnp.quantile(x, q, weights=w, **options))
    np.testing.assert_array_equal(traced(x, weights), wanted)
    percent = jnp.percentile(x, 50, weights=weights, keepdims=True, **options)
    assert percent.tolist() == [[1], [0]]
    everywhere = np.broadcast_to(weights, x.shape)
    np.testing.assert_array_equal(
        jnp.quantile(x, q, weights=everywhere, method="inverted_cdf"),
        np.quantile(x, q, weights=everywhere, method="inverted_cdf"),
    )
    holed = np.where(x == 5, np.nan, x)
    assert np.isnan(jnp.quantile(holed, 0.5, weights=weights, **options)[0])
    assert float(jnp.nanquantile(holed, 0.9, weights=weights, **options)[0]) == 3
    np.testing.assert_array_equal(
        jnp.quantile(x, q, **options), np.quantile(x, q, **options)
    )
    assert "inverted_cdf" in error_of(
        lambda: jnp.quantile(x, 0.5, weights=weights, axis=1), ValueError
    )
    assert "weights have the shape" in error_of(
        lambda: jnp.quantile(x, 0.5, weights=weights, method="inverted_cdf"), ValueError
    )
