"""What was found while functions were documented: arguments that were not read,
messages that named another function, and memory that was copied without a word.
"""

import ctypes
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as jnp
from verax import lax, random, scipy
from verax.ir.avals import iinfo
from verax.scipy import cluster, stats

X = jnp.array([1, 2, 3])
NAN, INF = float("nan"), float("inf")


def message(kind: type[Exception], call: Callable[[], Any]) -> str:
    """What a call says that raises an exception of that class."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# ------------------------------------------------------------ places, bins, methods


@pytest.mark.parametrize(
    "mask",
    [
        np.array([True, False, True]),
        jnp.array([True, False, True]),
        [True, False, True],
        np.zeros(3, bool),
        True,
    ],
)
def test_insert_takes_no_mask_for_places(mask: Any) -> None:
    assert "flatnonzero" in message(ValueError, lambda: jnp.insert(X, mask, 9))


def test_insert_takes_no_mask_under_a_trace() -> None:
    insert = verax.jit(lambda places: jnp.insert(X, places, 9))
    assert "not bool" in message(ValueError, lambda: insert(jnp.ones(3, bool)))
    assert insert(jnp.array([0, 3])).tolist() == [9, 1, 2, 3, 9]


@pytest.mark.parametrize("nothing", [[], (), np.array([]), np.array([], int)])
def test_insert_of_nothing_is_the_array(nothing: Any) -> None:
    assert jnp.insert(X, nothing, 9).tolist() == [1, 2, 3]
    matrix = jnp.ones((2, 3))
    assert jnp.insert(matrix, nothing, 9, axis=1).shape == (2, 3)


def test_insert_takes_whole_places_in_one_dimension() -> None:
    for places in (1.5, np.array([1.0]), 1j, jnp.array([])):
        message(ValueError, lambda p=places: jnp.insert(X, p, 9))  # type: ignore[misc]
    assert "2 dimensions" in message(ValueError, lambda: jnp.insert(X, [[0, 1]], 9))


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_isin_takes_the_methods_of_jax(method: str) -> None:
    assert jnp.isin(X, X[1:], method=method).tolist() == [False, True, True]


def test_isin_and_trim_zeros_check_names() -> None:
    assert "'bisect'" in message(ValueError, lambda: jnp.isin(X, X, method="bisect"))
    assert "trim" in message(
        TypeError,
        lambda: jnp.trim_zeros(X, trim=1),  # type: ignore[arg-type]
    )
    assert jnp.trim_zeros(jnp.array([0, 1, 0]), trim="z").tolist() == [0, 1, 0]


@pytest.mark.parametrize("bins", [3.7, 3.0, np.float32(3), jnp.array(3.5)])
def test_numbers_of_bins_are_whole(bins: Any) -> None:
    points = jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    calls: dict[str, Callable[[], Any]] = {
        "histogram": lambda: jnp.histogram(points, bins=bins),
        "histogram_bin_edges": lambda: jnp.histogram_bin_edges(points, bins=bins),
        "histogramdd": lambda: jnp.histogramdd(points, bins=(bins, 2)),
    }
    for name, call in calls.items():
        assert message(TypeError, call).startswith(f"{name}: ")
    message(TypeError, lambda: jnp.histogram2d(points[:, 0], points[:, 1], bins=bins))


def test_bins_may_be_any_integer() -> None:
    for bins in (3, True, np.int8(3), jnp.array(3)):
        assert jnp.histogram(X, bins=bins)[0].shape == (int(bins),)


# ------------------------------------------------------- reductions that skip NaN

MASKED = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]
PLACES = ["nanargmax", "nanargmin", "nancumsum", "nancumprod"]
WITHOUT_MASK = ["nanmedian", "median", "mean", "var", "std"]


@pytest.mark.parametrize("name", [*MASKED, *PLACES, *WITHOUT_MASK])
def test_reductions_name_themselves(name: str) -> None:
    reduce = getattr(jnp, name)
    assert name in message(ValueError, lambda: reduce(jnp.ones(3), axis=4))
    out = jnp.zeros(())
    assert f"{name}: " in message(NotImplementedError, lambda: reduce(X, out=out))
    assert f"{name} takes" in message(TypeError, lambda: reduce("a"))


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_is_boolean_beside_nan(name: str) -> None:
    reduce = getattr(jnp, name)
    more = {"initial": 0.0} if name in ("nanmax", "nanmin") else {}
    x = jnp.array([NAN, 1.0, 3.0])

    def call() -> Any:
        return reduce(x, where=jnp.array([1, 1, 0]), **more)

    assert message(ValueError, call).startswith(f"jnp.{name}: where")
    masked = reduce(x, where=jnp.array([True, True, False]), **more)
    assert float(masked) == float(reduce(x[:2], **more))


def test_extremes_without_elements_name_themselves() -> None:
    empty = jnp.zeros((0,))
    for name in ("nanmax", "nanmin"):
        text = message(ValueError, lambda n=name: getattr(jnp, n)(empty))  # type: ignore[misc]
        assert text.startswith(f"{name}: ")
    for name in ("argmax", "argmin"):
        text = message(ValueError, lambda n=name: getattr(jnp, f"nan{n}")(empty))  # type: ignore[misc]
        assert text.startswith(f"nan{name}: attempt to get {name} of an empty sequence")


def test_quantiles_and_variances_of_complex_numbers_name_themselves() -> None:
    z = jnp.array([1j, 2.0])
    for name in ("median", "nanmedian", "quantile", "nanquantile"):
        more = (0.5,) if "quantile" in name else ()
        text = message(ValueError, lambda n=name, m=more: getattr(jnp, n)(z, *m))  # type: ignore[misc]
        assert text.startswith(f"{name} takes real arguments")
    for name in ("var", "std", "nanvar", "nanstd"):
        text = message(ValueError, lambda n=name: getattr(jnp, n)(z, dtype="float32"))  # type: ignore[misc]
        assert text.startswith(f"{name}: ")


def test_nanstd_of_integers_says_which_dtype_it_takes() -> None:
    for x in (jnp.array([1.0, 2.0]), X):
        text = message(TypeError, lambda v=x: jnp.nanstd(v, dtype=int))  # type: ignore[misc]
        assert text.startswith("nanstd: dtype must be a float or complex dtype")


# ------------------------------------------------------------ names and `out`


def test_messages_name_the_function_that_was_called() -> None:
    hits = jnp.ones(4, bool)
    assert message(ValueError, lambda: jnp.extract(hits, X)).startswith("extract: ")
    traced = verax.jit(lambda m: jnp.extract(m, X))
    assert "of jnp.extract must be" in message(Exception, lambda: traced(hits[:3]))
    lists: Any = [1, 2, 3]
    calls: dict[str, Callable[[], Any]] = {
        "extract": lambda: jnp.extract(hits[:3], lists),
        "outer": lambda: jnp.outer(X, lists),
        "vdot": lambda: jnp.vdot(X, lists),
        "flatnonzero": lambda: jnp.flatnonzero(lists),
    }
    for name, call in calls.items():
        assert message(TypeError, call).startswith(f"{name} takes arrays")
    base: Any = "a"
    text = message(TypeError, lambda: jnp.logspace(0, 1, 3, base=base))
    assert "logspace takes arrays and scalars, but argument 4 is 'a'" in text
    assert jnp.extract(X > 1, X, size=3, fill_value=7).tolist() == [2, 3, 7]
    assert jnp.compress(X > 1, X, size=3, fill_value=7).tolist() == [2, 3, 7]


def test_there_is_no_out_for_products_and_infinities() -> None:
    out: Any = jnp.zeros((3, 3))
    calls: dict[str, Callable[[], Any]] = {
        "outer": lambda: jnp.outer(X, X, out=out),
        "isposinf": lambda: jnp.isposinf(X, out=out),
        "isneginf": lambda: jnp.isneginf(X, out),
    }
    for name, call in calls.items():
        assert message(NotImplementedError, call).startswith(f"{name}: out=")


@pytest.mark.parametrize("product", [jnp.inner, jnp.dot])
def test_products_with_a_scalar_have_the_preferred_dtype(product: Any) -> None:
    x, y = X.astype("int8"), jnp.int8(100)
    for dtype in ("int16", "int32", "float32"):
        for pair in ((x, y), (y, x)):
            out = product(*pair, preferred_element_type=dtype)
            assert (out.dtype.name, out.tolist()) == (dtype, [100, 200, 300])
    assert int(product(y, y, preferred_element_type="int32")) == 10_000
    assert product(x, y).dtype == "int8"
    assert product(2, 3).weak_type


# ------------------------------------------------------------ memory of others


def aligned(dtype: Any, size: int, offset: int = 0) -> np.ndarray:
    """Numbers from 0 that begin so many bytes behind a multiple of 64."""
    memory = np.zeros(size * 16 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    part = memory[start : start + size * np.dtype(dtype).itemsize]
    out: np.ndarray = part.view(dtype)
    out[:] = np.arange(size).astype(dtype)
    return out


@pytest.mark.parametrize(
    "values",
    [
        aligned(np.float32, 6, 4),
        aligned(np.float32, 12)[::2],
        aligned(np.float32, 6)[::-1],
        aligned(np.float32, 6).reshape(2, 3).T,
    ],
    ids=["unaligned", "strided", "reversed", "transposed"],
)
def test_from_dlpack_copies_only_where_it_may(values: np.ndarray) -> None:
    for copy in (None, True):
        assert np.array_equal(jnp.from_dlpack(values, copy=copy), values)
    text = message(ValueError, lambda: jnp.from_dlpack(values, copy=False))
    assert "copy=False" in text


def test_from_dlpack_shares_what_it_can() -> None:
    values = aligned(np.float32, 6)
    for copy in (None, False):
        shared: Any = jnp.from_dlpack(values, copy=copy)
        assert shared.unsafe_buffer_pointer() == values.ctypes.data
    apart: Any = jnp.from_dlpack(values, copy=True)
    assert apart.unsafe_buffer_pointer() != values.ctypes.data
    assert jnp.from_dlpack(X, copy=False).tolist() == [1, 2, 3]
    assert jnp.from_dlpack(values[:0], copy=False).shape == (0,)


LETTING_GO = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
let_go = LETTING_GO(lambda tensor: None)


class Tensor(ctypes.Structure):
    """DLPack's description of an array, with what comes behind it."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int * 2),
        ("rank", ctypes.c_int),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", LETTING_GO),
    )


class Brains:
    """A library with bfloat16, which NumPy does not take."""

    def __init__(self, values: np.ndarray) -> None:
        rank = values.ndim
        sizes = (ctypes.c_int64 * rank)(*values.shape)
        steps = (ctypes.c_int64 * rank)(*[n // 2 for n in values.strides])
        kind = 4 | 16 << 8 | 1 << 16  # bfloat16, 16 bits, one lane
        address, place = values.ctypes.data, (ctypes.c_int * 2)(1, 0)
        self.held = values, sizes, steps
        self.tensor = Tensor(address, place, rank, kind, sizes, steps, 0, None, let_go)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: object) -> Any:
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


HELD = [
    Brains(aligned(ml_dtypes.bfloat16, 6).reshape(2, 3).T),
    Brains(aligned(ml_dtypes.bfloat16, 6, 2).reshape(2, 3)),
]
"""They live longer than any array that is made of them."""


@pytest.mark.parametrize("lent", HELD, ids=["transposed", "unaligned"])
def test_programs_read_transposed_memory_of_others(lent: Brains) -> None:
    expected = lent.held[0].astype(np.float32)
    x = jnp.from_dlpack(lent)
    assert np.array_equal(np.asarray(x, np.float32), expected)
    doubled = verax.jit(lambda v: v * 2)(x)
    assert np.array_equal(np.asarray(doubled, np.float32), 2 * expected)
    assert "copy=False" in message(
        ValueError, lambda: jnp.from_dlpack(lent, copy=False)
    )


# ------------------------------------------------------------ linear algebra, limits


def test_einsum_refuses_a_name_without_letters_too() -> None:
    m = jnp.ones((2, 2))
    for name in ("", "nope"):
        with pytest.raises(KeyError):
            jnp.einsum("ij,jk,kl->il", m, m, m, optimize=name)
        assert jnp.einsum("ij,jk->ik", m, m, optimize=name).shape == (2, 2)


@pytest.mark.parametrize("compute_uv", [True, False])
def test_hermitian_svd_has_all_values_or_none(compute_uv: bool) -> None:
    m = jnp.array([[2.0, 1.0], [1.0, -3.0]])

    def svd(subset: Any) -> Any:
        return jnp.linalg.svd(
            m, hermitian=True, compute_uv=compute_uv, subset_by_index=subset
        )

    for subset in ((0, 1), (1, 2), (0, 3)):
        assert "subset" in message(ValueError, lambda s=subset: svd(s))  # type: ignore[misc]
    values = svd((0, 2))[1] if compute_uv else svd((0, 2))
    assert values.shape == (2,)


def test_iinfo_says_which_error_it_raises() -> None:
    with pytest.raises(ValueError, match="integer dtype"):
        iinfo(np.dtype("float32"))
    assert "ValueError: `dtype` is not an integer" in (iinfo.__doc__ or "")


def test_integers_have_no_known_negative_power() -> None:
    minus = jnp.array(-1)
    calls: list[Callable[[], Any]] = [
        lambda: jnp.power(X, minus),
        lambda: X**minus,
        lambda: 2**minus,
        lambda: jnp.power(X > 1, minus),
        lambda: verax.jit(lambda x: x**minus)(X),
        lambda: verax.vmap(lambda x: x**minus)(X),
    ]
    for call in calls:
        message(TypeError, call)
    assert jnp.power(jnp.array([1.0, 2.0]), minus).tolist() == [1.0, 0.5]
    assert jnp.power(jnp.array([1, -1]), jnp.array([-1, -1])).tolist() == [1, -1]
    assert jnp.power(X, jnp.array(2)).tolist() == [1, 4, 9]


def test_replacements_of_nan_broadcast_with_the_array() -> None:
    x = jnp.array([NAN, 1.0, INF])
    for nan in (np.full((2, 3), 7.0), jnp.full((2, 1), 7)):
        out = jnp.nan_to_num(x, nan=nan, posinf=5)
        assert out.tolist() == [[7, 1, 5], [7, 1, 5]]
    assert jnp.nan_to_num(jnp.float32(NAN), nan=np.arange(2)).tolist() == [0, 1]
    assert jnp.nan_to_num(x[:1], nan=np.arange(2)).tolist() == [0, 1]
    assert jnp.nan_to_num(jnp.array([NAN + 1j]), neginf=np.ones((2, 1))).shape == (2, 1)
    grad = verax.grad(lambda v: jnp.nan_to_num(v, nan=jnp.ones((2, 3))).sum())
    assert grad(x).tolist() == [0, 2, 0]
    with pytest.raises(ValueError, match="nan_to_num got incompatible shapes"):
        jnp.nan_to_num(x, nan=np.ones(2))
    wrong: Any = "a"
    assert "nan_to_num" in message(TypeError, lambda: jnp.nan_to_num(x, nan=wrong))


# ------------------------------------------------------------ other packages


def test_modules_of_scipy_list_their_names() -> None:
    assert cluster.vq.__all__ == ["vq"]
    hidden = {"standard", "samples", "kde"}
    for found in pkgutil.iter_modules(stats.__path__):
        module = import_module(f"{stats.__name__}.{found.name}")
        if found.name not in hidden:
            assert {"pdf", "pmf"} & set(module.__all__), found.name
            assert all([callable(getattr(module, n)) for n in module.__all__])
    assert "stats" in dir(scipy)


def test_a_composite_has_a_name() -> None:
    names: tuple[Any, ...] = (3, None, b"a")
    for name in names:
        text = message(TypeError, lambda n=name: lax.composite(lambda x: x, n))  # type: ignore[misc]
        assert text.startswith("composite: name must be a string")
    message(ValueError, lambda: lax.composite(lambda x: x, ""))


def test_psum_scatter_of_booleans_says_that_it_takes_numbers() -> None:
    x = jnp.array([[True, False], [True, True]])
    scatter = verax.vmap(lambda v: lax.psum_scatter(v, "i"), axis_name="i")
    assert message(TypeError, lambda: scatter(x)).startswith("psum_scatter takes")
    assert scatter(x.astype(int)).tolist() == [2, 1]


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("logits", [X, X > 1, X * 1j])
def test_logits_are_floats(logits: verax.Array, replace: bool) -> None:
    key = random.key(0)
    text = message(ValueError, lambda: random.categorical(key, logits, replace=replace))
    assert text.startswith("categorical: logits must be floats")
