"""Evenly spaced numbers against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("start", "stop", "num"),
    [(0, 25, 6), (0, 10, 31), (-7, 7, 15), (3, 3 + 7 * 48, 49), (5, 5, 4), (0, 3, 7)],
)
def test_linspace_has_whole_numbers(
    start: int, stop: int, num: int, jitted: bool
) -> None:
    expected = np.linspace(start, stop, num)
    whole = expected == np.round(expected)

    def line() -> Any:
        return jnp.linspace(start, stop, num)

    actual = np.asarray(verax.jit(line)() if jitted else line())
    np.testing.assert_array_equal(actual[whole], expected[whole])
    np.testing.assert_allclose(actual, expected, 3e-7, 1e-6)
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


def test_spaces_of_powers() -> None:
    bases = np.array([2.0, 10.0], np.float32)
    expected = np.logspace(0, 3, 4, base=bases)
    np.testing.assert_allclose(jnp.logspace(0, 3, 4, base=bases), expected, 1e-6)
    assert jnp.geomspace(1, 1000, 4).tolist() == [1, 10, 100, 1000]
    half = jnp.geomspace(1, 1000, 4, dtype="float16")
    assert half.tolist() == [1, 10, 100, 1000]


def check(result: Any, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, 1e-5, 1e-5)


@pytest.mark.parametrize(
    "arguments", [(5,), (1, 9, 3), (1.0, 2, 0.1), (9, 1, -2), (3, 3), (0.5,)]
)
def test_arange(arguments: Any) -> None:
    check(jnp.arange(*arguments), np.arange(*arguments))


def test_arange_needs_values() -> None:
    with pytest.raises(TypeError, match="arange"):
        verax.jit(jnp.arange)(3)


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("ends", [(0, 1, 5), (2, -3, 7), (0, 1, 1), (0, 1, 0)])
def test_spaced(ends: Any, endpoint: Any) -> None:
    start, stop, num = ends
    expected = np.linspace(start, stop, num, endpoint)
    check(jnp.linspace(start, stop, num, endpoint), expected)
    actual = jnp.logspace(start, stop, num, endpoint)
    np.testing.assert_allclose(actual, np.logspace(start, stop, num, endpoint), 1e-4)


def test_linspace_of_arrays() -> None:
    x, y = np.zeros(3), np.arange(3.0)
    check(jnp.linspace(x, y, 4, axis=1), np.linspace(x, y, 4, axis=1))
    line, step = jnp.linspace(0, 1, 5, retstep=True)
    assert (float(line[-1]), float(step)) == (1.0, 0.25)
    check(jnp.geomspace(1, 1000, 4), [1, 10, 100, 1000])
    check(jnp.linspace(0, 10, 4, dtype=int), np.linspace(0, 10, 4, dtype=int))


@pytest.mark.parametrize("stop", [0, 1, 8, -3])
def test_counting_is_what_a_program_makes_of_it(stop: int) -> None:
    due = verax.jit(lambda: jnp.arange(stop))()
    got = jnp.arange(stop)
    assert got.aval is due.aval
    assert got.tolist() == due.tolist() == list(range(stop))
    with verax.enable_x64():
        assert jnp.arange(stop).dtype == np.int64
    with pytest.raises(TypeError, match="arange takes a device, a Sharding"):
        jnp.arange(stop, out_sharding=object())
