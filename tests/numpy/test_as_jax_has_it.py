"""What JAX's own tests ask of `jax.numpy`: containers, arguments, classes of errors."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import verax
from verax import lax
from verax.api.config.config import override

jnp: Any = verax.numpy
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def each_way(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """The result computed at once, and that of a compiled program."""
    return [np.asarray(f(*args)) for f in (function, verax.jit(function))]


# --------------------------------------------------------------------- containers


def test_containers_are_those_of_jax() -> None:
    x = jnp.asarray(X)
    assert type(jnp.broadcast_arrays(1, x)) is tuple
    assert type(jnp.meshgrid(x[0], x[0])) is tuple
    assert type(jnp.atleast_1d(1, 2)) is tuple
    assert type(jnp.top_k(x, 2)) is list
    assert type(jnp.top_k(x, 2, mode="smallest")) is list
    assert type(lax.top_k(x, 2)) is list
    assert type(lax.approx_max_k(x, 2)) is list
    assert isinstance(jnp.gradient(x, axis=(0,)), verax.Array)
    assert type(jnp.gradient(x)) is list
    assert jnp.__array_api_version__ == "2025.12"


# ------------------------------------------------------------------------ methods


def test_methods_of_arrays() -> None:
    x = jnp.asarray(X[1])
    assert [float(y) for y in reversed(x)] == [5.0, 4.0, 3.0]
    assert x.platform() == "cpu"
    assert x.clone() is not x
    assert jnp.asarray(X).tobytes("F") == X.tobytes("F")
    assert 4 in x
    assert 7.5 not in x
    with pytest.raises(ValueError, match="one-dimensional"):
        _ = 1 in jnp.asarray(X)
    with pytest.raises(ValueError, match="scalar"):
        _ = x in x
    with pytest.raises(TypeError, match="scalar"):
        _ = "a" in x
    with pytest.raises(verax.errors.ConcretizationTypeError, match="tobytes"):
        verax.jit(lambda y: y.tobytes())(x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float32", "complex64", "bool"])
def test_byteswap(dtype: str) -> None:
    x = (X * 3 + 1).astype(dtype)
    for actual in each_way(lambda y: y.byteswap(), jnp.asarray(x)):
        assert actual.tobytes() == x.byteswap().tobytes()


def test_views_of_integers_of_four_bits() -> None:
    x = jnp.arange(4, dtype="uint4")
    for actual in each_way(lambda y: y.view("uint8"), x):
        np.testing.assert_array_equal(actual, [0x10, 0x32])
    assert jnp.ones((2, 8), "int4").view("int16").shape == (2, 2)


# ----------------------------------------------------------------------- indexing


@pytest.mark.parametrize("place", [-3, [-3, 1], [[5], [-100]]])
def test_narrow_indices_that_programs_contain(place: Any) -> None:
    x = np.arange(300, dtype=np.float32)
    i = np.asarray(place, np.int8)
    for actual in each_way(lambda x: x[i], jnp.asarray(x)):
        np.testing.assert_array_equal(actual, x[i])
    for actual in each_way(lambda x: x.at[i].add(1), jnp.asarray(x)):
        assert actual.sum() == x.sum() + i.size


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4", "int16"])
def test_narrow_indices_into_long_dimensions(dtype: str) -> None:
    x, i = jnp.arange(300.0), jnp.asarray(-3 if dtype != "uint8" else 253, dtype)
    place = 297 if dtype != "uint8" else 253
    for read in (
        lambda i: x[i],
        lambda i: x[i[None]][0],
        lambda i: jnp.take(x, i),
        lambda i: lax.dynamic_index_in_dim(x, i, keepdims=False),
        lambda i: lax.dynamic_slice(x, (i,), (2,))[0],
    ):
        assert [float(y) for y in each_way(read, i)] == [place, place]
    for write in (
        lambda i: x.at[i].set(-1.0),
        lambda i: lax.dynamic_update_slice(x, jnp.full(1, -1.0), (i,)),
    ):
        for actual in each_way(write, i):
            assert np.flatnonzero(actual == -1).tolist() == [place]


def test_an_index_out_of_bounds_raises_where_jax_checks() -> None:
    x = jnp.zeros((2, 3, 5))
    with override("check_static_indices", True):
        for index in [2, -3, (0, 4), (..., -6), (slice(5), [1, 2], 6)]:
            with pytest.raises(IndexError, match="out of bounds for axis"):
                x[index]
            with pytest.raises(IndexError, match="out of bounds for axis"):
                verax.jit(lambda y, i=index: y[i])(x)
            with pytest.raises(IndexError, match="out of bounds for axis"):
                x.at[index].get()
        assert x[1, -3, 4] == 0
    assert x[2].shape == (3, 5)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_masks_without_elements_pick_nothing(shape: tuple[int, ...]) -> None:
    x = jnp.ones((3, 4))
    assert x[jnp.zeros(shape, bool)].shape == (0, 4)[: 3 - len(shape)]
    assert x.at[jnp.zeros(shape, bool)].set(5.0).sum() == 12


def test_lists_with_traced_integers_are_indices() -> None:
    x = jnp.asarray(X)
    for actual in each_way(lambda i: x[[0, i], [i, 2]], 1):
        np.testing.assert_array_equal(actual, X[[0, 1], [1, 2]])


def test_take_along_axis_with_one_hot_rows() -> None:
    x, i = jnp.asarray(X), jnp.array([[0], [5]])
    for actual in each_way(lambda x: jnp.take_along_axis(x, i, 1, mode="one_hot"), x):
        np.testing.assert_array_equal(actual, [[0], [0]])


@pytest.mark.slow
def test_insert_at_traced_places() -> None:
    for axis in (None, 0, 1):
        for places in (-1, 0, [1], [1, 0], [0, 0]):
            actual = verax.jit(lambda i, axis=axis: jnp.insert(X, i, 9.0, axis))(
                jnp.array(places)
            )
            np.testing.assert_array_equal(actual, np.insert(X, places, 9.0, axis))
    rows = np.array([[1.0, 2, 3], [4, 5, 6]], np.float32)
    actual = verax.jit(lambda i: jnp.insert(X, i, rows, 0))(jnp.array([2, 0]))
    np.testing.assert_array_equal(actual, np.insert(X, [2, 0], rows, 0))


def test_ravel_multi_index_takes_a_dtype_and_ignores_bounds() -> None:
    places = (jnp.array([0, 9]), jnp.array([1, 2]))
    actual = jnp.ravel_multi_index(places, (2, 3), mode="ignore", dtype="int16")
    assert actual.dtype == "int16"
    assert actual.tolist() == [1, 29]
    (rows, _) = jnp.unravel_index(jnp.array([5], "uint32"), (2, 3))
    assert rows.tolist() == [1]


# -------------------------------------------------------------- values and errors


def test_what_is_not_an_array() -> None:
    with pytest.raises(ValueError, match="None"):
        jnp.array([0.0, None])
    with pytest.raises(OverflowError, match="64 bits"):
        jnp.array([0, -(2**63) - 1])
    with pytest.raises(ValueError, match="masked"):
        jnp.asarray(np.ma.array([1, 2], mask=[False, True]))


def test_copy_false_shares_what_the_cpu_can() -> None:
    for x in (np.arange(3.0, dtype=np.float32), [0.0, 1.0, 2.0], np.arange(3.0)):
        assert jnp.asarray(x, copy=False).tolist() == [0.0, 1.0, 2.0]


def test_lists_may_be_compared() -> None:
    assert jnp.array_equal([1, 2], [1, 2])
    assert not jnp.array_equal([1, 2], [1, 2, 3])
    assert jnp.array_equiv([1, 2], [[1, 2], [1, 2]])
    assert not jnp.array_equiv([1, 2], [1, 2, 3])


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
def test_masks_and_starts_of_reductions(name: str) -> None:
    function = getattr(jnp, name)
    more = {} if name == "mean" else {"initial": 0}
    with pytest.raises(ValueError, match="boolean"):
        function(jnp.asarray(X), where=jnp.ones((2, 3), int), **more)
    if name != "mean":
        with pytest.raises(ValueError, match="scalar"):
            function(jnp.asarray(X), initial=jnp.zeros(2))


def test_sums_as_booleans() -> None:
    x = jnp.array([0.0, 0.1, 0.0])
    assert jnp.cumsum(x, dtype=bool).tolist() == [False, True, True]
    assert jnp.cumprod(x + 1, dtype=bool).dtype == bool


def test_statistics() -> None:
    x = jnp.array([np.nan, -3.0, -1.0, 1.0, 3.0])
    assert not np.isnan(verax.grad(jnp.nanstd)(x)).any()
    assert np.isnan(jnp.cov(jnp.ones(0)))
    assert jnp.var(jnp.asarray(X), dtype="complex64").dtype == "complex64"
    for function in (jnp.cov, jnp.corrcoef):
        with pytest.raises(ValueError, match="float or complex"):
            function(jnp.asarray(X), dtype=int)
    weights = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    many = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    actual = jnp.average(many, (2, 0), weights)
    np.testing.assert_allclose(actual, np.average(many, (2, 0), weights), rtol=1e-6)


def test_integers_that_wrap_around() -> None:
    assert jnp.lcm(jnp.int8(-126), jnp.int8(65)) == np.lcm(np.int8(-126), np.int8(65))


def test_diagonals_far_outside() -> None:
    assert not jnp.eye(3, k=2**100).any()
    assert not jnp.eye(3, 5, k=-(2**40)).any()
    assert jnp.tri(3, k=2**40).all()


def test_grids_of_nothing() -> None:
    assert jnp.mgrid[()].shape == (0,)
    assert jnp.ogrid[()] == []


def test_fill_values_of_unique() -> None:
    x = jnp.array([[1, 2], [1, 2]])
    actual = jnp.unique(x, axis=0, size=3, fill_value=jnp.array([7, 8]))
    assert actual.tolist() == [[1, 2], [7, 8], [7, 8]]
    assert jnp.unique(x, size=4, fill_value=jnp.array([9])).tolist() == [1, 2, 9, 9]


def test_einsum_contracts_dimensions_that_broadcast() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 1, 3)).astype(np.float32)
    y = random.normal(size=(2, 4, 5)).astype(np.float32)
    wide = np.broadcast_to(x, (2, 4, 3))
    actual = jnp.einsum("ijk,ijl->ikl", x, y)
    np.testing.assert_allclose(actual, np.einsum("ijk,ijl->ikl", wide, y), rtol=1e-5)


def test_ufuncs_of_one_function_are_equal() -> None:
    def plus(x: Any, y: Any) -> Any:
        return x + y

    assert jnp.frompyfunc(plus, 2, 1) == jnp.frompyfunc(plus, 2, 1)
    assert hash(jnp.frompyfunc(plus, 2, 1)) == hash(jnp.frompyfunc(plus, 2, 1))
    assert jnp.frompyfunc(plus, 2, 1) != jnp.frompyfunc(plus, 2, 1, identity=0)
    assert jnp.add != jnp.multiply


def test_ufuncs_take_neither_out_nor_where() -> None:
    assert jnp.add(1, 2, out=None, where=None) == 3
    for given in ({"out": jnp.zeros(())}, {"where": True}):
        with pytest.raises(NotImplementedError, match=next(iter(given))):
            jnp.add(1, 2, **given)
        with pytest.raises(NotImplementedError, match=next(iter(given))):
            jnp.logical_or(1, 2, **given)
    with pytest.raises(AttributeError):
        jnp.add.nin = 3


def test_vectorize_passes_none_on() -> None:
    f = jnp.vectorize(lambda x, y: x if y is None else x + y)
    assert f(jnp.arange(3), None).tolist() == [0, 1, 2]
    assert f(jnp.arange(3), 1).tolist() == [1, 2, 3]
    g = jnp.vectorize(lambda x, y: x, signature="(k),(k)->(k)")
    with pytest.raises(ValueError, match="None"):
        g(jnp.arange(3), None)
    with pytest.raises(
        TypeError, match="wrong number of positional arguments: expected 2"
    ):
        g(jnp.arange(3))
    with pytest.raises(TypeError, match="can only exclude"):
        jnp.vectorize(lambda x: x, excluded={1.5})
    with pytest.raises(ValueError, match="negative"):
        jnp.vectorize(lambda x: x, excluded={-1})
    h = jnp.vectorize(lambda *args: args, signature="(),()->(),(),()")
    with pytest.raises(TypeError, match="expected 3, got 2"):
        h(1, 2)


def test_not_a_number_in_sets() -> None:
    nan = np.nan
    x, y = jnp.array([1, nan, nan, 2.0]), jnp.array([2, nan, 3.0])
    np.testing.assert_array_equal(jnp.setxor1d(x, y), [1, 3, nan, nan])
    np.testing.assert_array_equal(jnp.setxor1d(x, y[::2]), [1, 3, nan])
    sized = verax.jit(lambda a, b: jnp.setxor1d(a, b, size=5))(x, y)
    np.testing.assert_array_equal(sized, [1, 3, nan, nan, 1])
    z = jnp.array([1 + nan * 1j, nan + 1j, 2])
    actual, first, inverse = jnp.unique(z, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(actual, [2, nan])
    assert (first.tolist(), inverse.tolist()) == ([2, 0], [1, 1, 0])
    with pytest.raises(TypeError, match="integer"):
        jnp.unique(x, size=2.5)


def test_shapes_of_lists_are_deprecated() -> None:
    for function, expected in ((jnp.ndim, 2), (jnp.shape, (1, 3)), (jnp.size, 3)):
        with pytest.warns(DeprecationWarning, match="ndarray or scalar"):
            assert function([[1, 2, 3]]) == expected


class Sparse:
    shape = (2, 4)


def test_the_shape_of_what_is_no_array() -> None:
    assert jnp.shape(np.array(["a", "b"])) == (2,)
    assert jnp.ndim(np.array([None])) == 1
    with pytest.warns(DeprecationWarning, match="ndarray or scalar"):
        assert jnp.shape(Sparse()) == (2, 4)


def test_windows_of_a_whole_float() -> None:
    np.testing.assert_array_equal(jnp.hanning(4.0), jnp.hanning(4))


def test_hermitian_svd_of_a_singular_matrix() -> None:
    u, s, vh = jnp.linalg.svd(jnp.full((2, 2), 2.5), hermitian=True)
    np.testing.assert_allclose(u @ u.T, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(u * s @ vh, np.full((2, 2), 2.5), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_ldexp_with_any_exponent(dtype: str) -> None:
    wide = dtype == "float64"
    with verax.enable_x64(wide):
        x = jnp.asarray(-1.5, dtype)
        n = np.array([*range(-1200, 1200, 7), 2**31 - 1, -(2**31), 378, -378], np.int32)
        with np.errstate(over="ignore", under="ignore"):
            expected = np.ldexp(np.float64(-1.5), n).astype(x.dtype).astype(np.float64)
        tiny = float(jnp.finfo(dtype).tiny)
        for actual in each_way(jnp.ldexp, jnp.broadcast_to(x, n.shape), jnp.asarray(n)):
            # Compiled programs may take numbers below `tiny` for zero.
            np.testing.assert_allclose(actual.astype(np.float64), expected, 0, tiny)


def test_covariance_has_the_dtype_of_weights_too() -> None:
    x = jnp.asarray(X, "float16")
    assert jnp.cov(x, aweights=jnp.ones(3)).dtype == np.float32
    assert jnp.cov(x, fweights=jnp.ones(3, int)).dtype == np.float16


def test_complex_objects_in_lists() -> None:
    assert jnp.iscomplexobj([1, 2j])
    assert not jnp.iscomplexobj([])
    assert verax.jit(lambda x: jnp.asarray(jnp.iscomplexobj([x, 1])))(1j)


def test_fits_and_roots_under_strict_options() -> None:
    x = jnp.arange(6.0)
    with verax.numpy_rank_promotion("raise"), verax.numpy_dtype_promotion("strict"):
        _, covariance = jnp.polyfit(x, x * x, 1, cov=True)
        assert covariance.shape == (2, 2)
        with verax.enable_x64():
            actual = jnp.roots(jnp.array([0.0, 1.0, -2.0]), strip_zeros=False)
    np.testing.assert_allclose(actual, [2, complex(np.nan, np.nan)], rtol=1e-6)


@pytest.mark.slow
def test_unravel_index_takes_sizes_that_are_traced() -> None:
    unravel = verax.jit(jnp.unravel_index)
    narrow = np.array([3, -5, 100], np.int8)
    for places in (narrow, narrow.view(np.uint8), np.array([[7, 2]]), 3):
        for shape in ((2, 4), [3, 1, 2], 7):
            want = jnp.unravel_index(places, shape)
            for actual, due in zip(unravel(places, shape), want, strict=True):
                np.testing.assert_array_equal(actual, due)
                assert actual.aval == due.aval
    sizes = jnp.array([20, 30])
    for actual, due in zip(
        unravel(500, sizes), np.unravel_index(500, (20, 30)), strict=True
    ):
        assert int(actual) == due


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lax.argmax(X, -1, np.int32), "write 1"),
        (lambda: lax.argmin(X, 2, np.int32), "out of bounds"),
        (lambda: lax.pad(X, 0.0, [(0, 1, 0)]), "for each dimension"),
        (
            lambda: lax.conv_general_dilated(X[None], X[None], (1,), cast(Any, 3)),
            r"padding argument should be .*, got 3",
        ),
        (
            lambda: verax.eval_shape(
                lambda x: lax.top_k(x, 2), verax.ShapeDtypeStruct((2**31,), "int8")
            ),
            "will overflow",
        ),
    ],
)
def test_wrong_arguments_of_lax_raise_what_jax_raises(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call()
