"""New arrays: from values, of a shape, in ranges and grids."""

import warnings
from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy


def check(found: Any, wanted: Any) -> None:
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(found), wanted, 1e-5, 1e-5)


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
    found = jnp.asarray(value)
    assert (found.dtype, found.weak_type) == (np.dtype(dtype), weak)
    check(found, value)


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
    with pytest.raises(TypeError, match="no number"):
        jnp.array([None])
    with pytest.raises(ValueError, match="ragged"):
        jnp.array([[1], [2, 3]])
    with pytest.raises(OverflowError, match="enable_x64"):
        jnp.array([2**40])
    with pytest.raises(ValueError, match="copy"):
        jnp.asarray([1], copy=False)
    with pytest.raises(ValueError, match="order"):
        jnp.array([1], order="F")


def test_wide_dtypes_warn() -> None:
    with pytest.warns(UserWarning, match=r"(?s)float64 .* float32.*enable_x64"):
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
    wanted = np.linspace(start, stop, num, endpoint)
    check(jnp.linspace(start, stop, num, endpoint), wanted)
    found = jnp.logspace(start, stop, num, endpoint)
    np.testing.assert_allclose(found, np.logspace(start, stop, num, endpoint), 1e-4)


def test_linspace_of_arrays() -> None:
    x, y = np.zeros(3), np.arange(3.0)
    check(jnp.linspace(x, y, 4, axis=1), np.linspace(x, y, 4, axis=1))
    line, step = jnp.linspace(0, 1, 5, retstep=True)
    assert (float(line[-1]), float(step)) == (1.0, 0.25)
    check(jnp.geomspace(1, 1000, 4), [1, 10, 100, 1000])
    check(jnp.linspace(0, 10, 4, dtype=int), np.linspace(0, 10, 4, dtype=int))


@pytest.mark.parametrize("k", [-9, -2, -1, 0, 1, 3])
def test_diagonals(k: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    check(jnp.diag(x, k), np.diag(x, k))
    check(jnp.diag(np.arange(3.0), k), np.diag(np.arange(3.0), k))
    check(jnp.eye(3, 4, k), np.eye(3, 4, k))
    check(jnp.tri(3, 4, k), np.tri(3, 4, k))
    check(jnp.tril(x, k), np.tril(x, k))
    check(jnp.triu(x, k), np.triu(x, k))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [True, False])
def test_meshgrid(indexing: Any, sparse: Any) -> None:
    vectors = np.arange(3.0), np.arange(4.0), np.arange(2.0)
    found = jnp.meshgrid(*vectors, indexing=indexing, sparse=sparse)
    wanted = np.meshgrid(*vectors, indexing=indexing, sparse=sparse)
    for x, y in zip(found, wanted, strict=True):
        check(x, y)


def test_grids() -> None:
    check(jnp.mgrid[0:3, 1:2:5j], np.mgrid[0:3, 1:2:5j])
    for x, y in zip(jnp.ogrid[0:3, 0:2], np.ogrid[0:3, 0:2], strict=True):
        check(x, y)
    check(jnp.indices((2, 3)), np.indices((2, 3)))
    check(jnp.vander(np.arange(4.0), 3), np.vander(np.arange(4.0), 3))
    found = jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3))
    check(found, np.fromfunction(lambda i, j: 10 * i + j, (2, 3)))
    for x, y in zip(jnp.tril_indices(3, 1), np.tril_indices(3, 1), strict=True):
        check(x, y)


def test_gradient_of_diag() -> None:
    x = np.ones((2, 2), np.float32)
    check(verax.grad(lambda x: jnp.sum(jnp.diag(x, 1)))(x), [[0, 1], [0, 0]])


@pytest.mark.parametrize("stop", [0, 1, 8, -3])
def test_counting_is_what_a_program_makes_of_it(stop: int) -> None:
    due = verax.jit(lambda: jnp.arange(stop))()
    got = jnp.arange(stop)
    assert got.aval is due.aval
    assert got.tolist() == due.tolist() == list(range(stop))
    with verax.enable_x64():
        assert jnp.arange(stop).dtype == np.int64
    with pytest.raises(ValueError, match="takes no out_sharding"):
        jnp.arange(stop, out_sharding=object())
