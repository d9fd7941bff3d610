"""New arrays: from values, and of a shape."""

import warnings
from array import array
from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy


def check(result: Any, expected: Any) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("value", "dtype", "weak"),
    [
        (1, "int32", True),
        (1.5, "float32", True),
        (2j, "complex64", True),
        (True, "bool", False),
        ([1, 2], "int32", False),
        ([1, 2.5], "float32", False),
        ([[True], [False]], "bool", False),
        ([], "float32", False),
        (np.zeros(2), "float32", False),
        (np.int8(3), "int8", False),
        ([np.int8(3), 2], "int8", False),
    ],
)
def test_array_types(value: Any, dtype: Any, weak: Any) -> None:
    actual = jnp.asarray(value)
    assert (actual.dtype, actual.weak_type) == (np.dtype(dtype), weak)
    check(actual, value)


def test_array_of_arrays() -> None:
    x = jnp.asarray([1.0, 2.0])
    check(jnp.array([x, [3, 4]]), [[1, 2], [3, 4]])
    jaxpr = verax.make_jaxpr(lambda x: jnp.array([[x, 1], [2, x]]))(2.0)
    assert jaxpr.out_avals[0].shape == (2, 2)
    check(verax.jit(lambda x: jnp.array([[x, 1], [2, x]]))(3.0), [[3, 1], [2, 3]])


def test_numpy_memory_is_copied() -> None:
    memory = np.ones(3, np.float32)
    x = jnp.asarray(memory)
    memory[:] = 0
    assert x.tolist() == [1, 1, 1]


def test_asarray_keeps_arrays() -> None:
    x = jnp.ones(3)
    assert jnp.asarray(x) is x
    assert jnp.array(x) is not x
    check(jnp.array(x, ndmin=3), np.ones((1, 1, 3)))


def test_refused_values() -> None:
    with pytest.raises(TypeError, match="not 'text' of type str"):
        jnp.array("text")
    with pytest.raises(ValueError, match="None"):
        jnp.array([None])
    with pytest.raises(ValueError, match="ragged"):
        jnp.array([[1], [2, 3]])
    with pytest.raises(OverflowError, match="enable_x64"):
        jnp.array([2**40])
    with pytest.raises(NotImplementedError, match="order"):
        jnp.array([1], order="F")


def test_wide_dtypes_warn() -> None:
    with pytest.warns(UserWarning, match=r"(?s)float64, .* float32.*enable_x64"):
        assert jnp.zeros(2, "float64").dtype == np.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.zeros(2, float).dtype == np.float32
        with verax.enable_x64(True):
            assert jnp.zeros(2, "float64").dtype == np.float64


def test_constant_arrays() -> None:
    check(jnp.zeros((2, 3)), np.zeros((2, 3)))
    check(jnp.ones(4, jnp.int8), np.ones(4))
    check(jnp.full((2, 2), [[1.0], [2.0]][1][0]), np.full((2, 2), 2.0))
    check(jnp.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    assert jnp.full(2, 1.5).weak_type
    assert jnp.zeros_like(jnp.asarray(1.0)).weak_type
    assert jnp.ones_like(np.zeros((2, 0)), shape=3).shape == (3,)
    check(jnp.full_like(np.zeros(3, np.int32), 7), [7, 7, 7])
    with pytest.raises(ValueError, match="negative"):
        jnp.zeros((2, -1))
    with pytest.raises(TypeError, match="integers"):
        jnp.zeros((2, 1.5))


def test_constant_arrays_are_staged() -> None:
    def function(x: Any) -> Any:
        return jnp.zeros(3) + jnp.full(3, x)

    names = [e.primitive.name for e in verax.make_jaxpr(function)(1.0).jaxpr.eqns]
    assert names.count("broadcast_in_dim") == 2


def test_arrays_of_ranges_and_buffers() -> None:
    assert jnp.array(range(5)).tolist() == [0, 1, 2, 3, 4]
    assert jnp.array(range(5)).dtype == "int32"
    assert jnp.asarray(range(0)).shape == (0,)
    assert jnp.array([range(2), range(2)]).tolist() == [[0, 1], [0, 1]]
    assert jnp.asarray(array("d", [1, 2])).dtype == "float32"
    assert jnp.asarray(array("h", [1, 2])).dtype == "int16"
    assert jnp.asarray(array("i", [1, 2]), dtype=float).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_sizes_that_are_not_in_a_tuple(name: str) -> None:
    make: Any = getattr(verax.numpy, name)
    with pytest.raises(TypeError, match=rf"meant `verax.numpy.{name}\(\(2, 3\)\)`"):
        make(2, 3)
    with pytest.raises(TypeError, match="is not a dtype"):
        make((2,), "nonsense")


def test_complex_numbers_do_not_become_real_ones() -> None:
    for dtype in ("int8", "float32", "bfloat16"):
        with pytest.raises(TypeError, match="do not fit"):
            jnp.array([1j, 2], dtype)
    assert jnp.array([1j, 0], bool).tolist() == [True, False]
    assert jnp.array([1j, 2], "complex64").tolist() == [1j, 2]
