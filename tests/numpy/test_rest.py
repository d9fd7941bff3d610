"""Polynomials, windows, covariances and other small things: NumPy, and facts of JAX."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, equations, error_of

jnp: Any = verax.numpy

N = np.array([1, 2, 3], np.int32)
X = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2
P = np.array([2.0, -5.0, 3.0, -1.0], np.float32)


def typed(x: Any) -> tuple[str, Any]:
    return str(x.dtype), x.tolist()


# --------------------------------------------------------------------- by conditions


def test_select() -> None:
    conditions = [N > 1, N > 2]
    assert typed(jnp.select(conditions, [N, N * 2.0], 0)) == (
        "float32",
        [0, 2, 3],
    )
    assert jnp.select([jnp.asarray(N) > 1], [1], 2).tolist() == [2, 1, 1]
    assert typed(jnp.select([N], [N], 0)) == ("int32", [1, 2, 3])
    agree(
        lambda x: jnp.select([x < 1, x < 9], [x, -x], 7),
        lambda x: np.select([x < 1, x < 9], [x, -x], 7),
        X,
    )
    assert "no conditions" in error_of(lambda: jnp.select([], []), ValueError)
    assert "choices" in error_of(lambda: jnp.select([N > 1], [N, N]), ValueError)
    names = equations(lambda x: jnp.select([x < 1, x < 2], [x, -x]), X)
    assert names.count("select_n") == 2


def test_piecewise() -> None:
    x = jnp.asarray(N)
    found = jnp.piecewise(x, [x < 2, x >= 2], [lambda x: -x * 1.0, 7.5])
    assert typed(found) == ("int32", [-1, 7, 7])
    later = jnp.piecewise(x * 1.0, [x > 0, x > 1], [1.0, 2.0])
    assert later.tolist() == [1, 2, 2]

    def shifted(value: Any, k: int, m: int = 0) -> Any:
        return -value + k + m

    assert jnp.piecewise(x * 1.0, [x < 2], [shifted], 3, m=4).tolist() == [6, 0, 0]
    assert jnp.piecewise(x, [[True, False, True]], [8, 9]).tolist() == [8, 9, 8]
    assert float(jnp.piecewise(3.0, [True], [1])) == 1
    assert "functions" in error_of(
        lambda: jnp.piecewise(x, [x < 2], [1, 2, 3]), ValueError
    )
    agree(
        lambda x: jnp.piecewise(x, [x < 3, x > 9], [abs, lambda v: v * v, 5]),
        lambda x: np.piecewise(x, [x < 3, x > 9], [abs, lambda v: v * v, 5]),
        X,
    )


# ------------------------------------------------------------------------ statistics


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rowvar": False},
        {"bias": True},
        {"ddof": 0},
        {"fweights": N},
        {"aweights": np.array([0.1, 0.2, 0.3], np.float32)},
        {"fweights": N, "aweights": np.array([0.1, 0.2, 0.3], np.float32)},
        {
            "fweights": N,
            "aweights": np.array([0.1, 0.2, 0.3], np.float32),
            "ddof": 0,
        },
    ],
)
def test_cov(options: dict[str, Any]) -> None:
    agree(lambda x: jnp.cov(x, **options), lambda x: np.cov(x, **options), X)


def test_cov_of_other_operands() -> None:
    agree(jnp.cov, np.cov, X[1])
    agree(jnp.cov, np.cov, X, X + N)
    agree(jnp.cov, np.cov, X + 1j * X**2)
    assert typed(jnp.cov(N)) == ("float32", 1.0)
    assert jnp.cov(N, dtype="float16").dtype == "float16"
    assert jnp.cov(np.zeros((0, 3), np.float32)).shape == (0, 0)
    assert "matrices" in error_of(lambda: jnp.cov(np.zeros((2, 2, 2))), ValueError)
    assert "integers" in error_of(lambda: jnp.cov(X, fweights=X[0]), TypeError)
    assert "observations" in error_of(lambda: jnp.cov(X, fweights=N[:2]), ValueError)


def test_corrcoef() -> None:
    agree(jnp.corrcoef, np.corrcoef, X)
    agree(jnp.corrcoef, np.corrcoef, X[0], X[1])
    agree(jnp.corrcoef, np.corrcoef, X + 1j * X[::-1])
    assert float(jnp.corrcoef(N)) == 1


def test_histograms_of_several_dimensions() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    x, y = points[:, 0], points[:, 1]
    weights = np.arange(40, dtype=np.float32)
    cases: list[dict[str, Any]] = [
        {"bins": 4},
        {"bins": [2, np.array([-1.0, 0.0, 2.0], np.float32)]},
        {"bins": np.array([-1.0, 0.0, 0.5, 2.0], np.float32)},
        {"bins": 3, "range": [(-1, 1), (0, 2)]},
        {"bins": 3, "weights": weights, "density": True},
    ]
    for options in cases:
        found = jnp.histogram2d(x, y, **options)
        for mine, wanted in zip(found, np.histogram2d(x, y, **options), strict=True):
            np.testing.assert_allclose(mine, wanted, 1e-5, 1e-6)
    counts, edges = jnp.histogramdd(points, bins=(2, 3, 4))
    wanted, lines = np.histogramdd(points, bins=(2, 3, 4))
    np.testing.assert_array_equal(counts, wanted)
    for mine, line in zip(edges, lines, strict=True):
        np.testing.assert_allclose(mine, line, 1e-5, 1e-6)
    assert jnp.histogram2d(x, y, 2)[0].dtype == "int32"
    assert "bins" in error_of(lambda: jnp.histogramdd(points, [2, 2]), ValueError)
    assert "matrix" in error_of(lambda: jnp.histogramdd(x), ValueError)


# --------------------------------------------------------------------------- windows


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_windows(name: str, size: int) -> None:
    found = getattr(jnp, name)(size)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, getattr(np, name)(size), 1e-6, 1e-7)
    assert "negative" in error_of(lambda: getattr(jnp, name)(-1), ValueError)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_kaiser(size: int) -> None:
    agree(lambda b: jnp.kaiser(size, b), lambda b: np.kaiser(size, b), np.float32(2))
    assert jnp.kaiser(size, 2).dtype == "float32"


# ----------------------------------------------------------------------- polynomials


def test_sums_and_products_of_polynomials() -> None:
    agree(jnp.polyadd, np.polyadd, P, N)
    agree(jnp.polysub, np.polysub, N, P)
    agree(jnp.polymul, np.polymul, P, X[1])
    assert typed(jnp.polyadd(N, N[:2])) == ("int32", [1, 3, 5])
    assert typed(jnp.polymul(np.array([0, 1]), N)) == ("float32", [0, 1, 2, 3])
    trimmed = jnp.polymul(np.array([0, 1]), N, trim_leading_zeros=True)
    assert trimmed.tolist() == [1, 2, 3]
    assert jnp.polymul(np.zeros(0, np.float32), N).tolist() == [0, 0, 0]
    assert "vectors" in error_of(lambda: jnp.polymul(2, N), ValueError)


def test_polydiv() -> None:
    quotient, remainder = jnp.polydiv(N, np.array([4, 1]))
    assert quotient.tolist() == [0.25, 0.4375]
    assert remainder.tolist() == [0, 0, 2.5625]
    agree(
        lambda u, v: jnp.polydiv(u, v)[0], lambda u, v: np.polydiv(u, v)[0], P, X[1, 1:]
    )
    assert [x.tolist() for x in jnp.polydiv(N[:1], N)] == [[0], [1]]
    assert [x.tolist() for x in jnp.polydiv(N, N[1:2])] == [
        [0.5, 1, 1.5],
        [0, 0, 0],
    ]
    rest = jnp.polydiv(N, np.array([4, 1]), trim_leading_zeros=True)[1]
    assert rest.tolist() == [2.5625]
    square = np.array([1, 2, 1])
    even = jnp.polydiv(square, np.array([1, 1]), trim_leading_zeros=True)
    assert [x.tolist() for x in even] == [[1, 1], [0]]


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polyder_and_polyint(order: int) -> None:
    agree(lambda p: jnp.polyder(p, order), lambda p: np.polyder(p, order), P)
    agree(lambda p: jnp.polyint(p, order), lambda p: np.polyint(p, order), P)
    constants = np.arange(4.0, 4 + order, dtype=np.float32)
    if order:
        agree(
            lambda p, k: jnp.polyint(p, order, k),
            lambda p, k: np.polyint(p, order, k),
            P,
            constants,
        )


def test_polyder_and_polyint_at_the_edges() -> None:
    assert jnp.polyder(N, 9).shape == jnp.polyder(N[:1]).shape == (0,)
    assert jnp.polyint(N, 2, 3).tolist()[3:] == [3, 3]
    assert "negative" in error_of(lambda: jnp.polyder(N, -1), ValueError)
    assert "negative" in error_of(lambda: jnp.polyint(N, -1), ValueError)
    assert "shape" in error_of(lambda: jnp.polyint(N, 2, X[0]), ValueError)


def test_polyval() -> None:
    agree(jnp.polyval, np.polyval, P, X)
    assert typed(jnp.polyval(N, 3)) == ("int32", 18)
    assert typed(jnp.polyval(N.astype("int8"), 3.0)) == ("float32", 18)
    assert jnp.polyval(X, N).tolist() == [9, 18, 37]
    assert jnp.polyval(np.zeros(0, np.float32), X).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert equations(lambda x: jnp.polyval(N, x), X) == ["mul", "add"] * 2
    assert float(verax.grad(lambda x: jnp.polyval(P, x))(2.0)) == 7
    assert "vectors" in error_of(lambda: jnp.polyval(2.0, 3), ValueError)


def test_poly_and_roots() -> None:
    assert typed(jnp.poly(N)) == ("float32", [1, -6, 11, -6])
    assert jnp.poly(1).tolist() == [1, -1]
    assert jnp.poly(np.zeros(0, np.float32)).shape == ()
    np.testing.assert_allclose(jnp.poly(np.array([1j, -1j])), [1, 0, 1], atol=1e-6)
    found = np.sort_complex(np.asarray(jnp.roots(np.array([0, 1, -6, 11, -6, 0.0]))))
    np.testing.assert_allclose(found, [0, 1, 2, 3], atol=1e-3)
    assert jnp.roots(np.zeros(3, np.float32)).shape == (0,)
    traced = verax.jit(lambda p: jnp.roots(p, strip_zeros=False))(jnp.array([1.0, -4]))
    assert typed(traced) == ("complex64", [4])
    np.testing.assert_allclose(
        jnp.poly(np.array([[2, 1], [1, 2]])), [1, -4, 3], atol=1e-4
    )


def test_polyfit() -> None:
    x = np.linspace(-1, 1, 8).astype(np.float32)
    y = np.polyval([2.0, -1.0, 0.5], x).astype(np.float32) + np.sin(9 * x) * 0.1
    np.testing.assert_allclose(jnp.polyfit(x, y, 2), np.polyfit(x, y, 2), 1e-3, 1e-4)
    w = np.linspace(1, 2, 8).astype(np.float32)
    for mine, wanted in zip(
        jnp.polyfit(x, y, 2, w=w, cov=True),
        np.polyfit(x, y, 2, w=w, cov=True),
        strict=True,
    ):
        np.testing.assert_allclose(mine, wanted, 1e-3, 1e-4)
    pair = np.stack([y, 2 * y], 1)
    found = jnp.polyfit(x, pair, 2, full=True)
    np.testing.assert_allclose(found[0], np.polyfit(x, pair, 2), 1e-3, 1e-4)
    assert len(found) == 5
    assert "negative" in error_of(lambda: jnp.polyfit(x, y, -1), ValueError)


# -------------------------------------------------------------------------- integers


def test_gcd_and_lcm() -> None:
    pair = np.array([-12, 0, 7, 2**30]), np.array([18, 18, 0, 2**20 * 3])
    small = [x.astype(np.int32) for x in pair]
    agree(jnp.gcd, np.gcd, *small)
    agree(jnp.lcm, np.lcm, small[0] % 100, small[1] % 100)
    agree(jnp.gcd, np.gcd, small[0][:, None], small[1])
    assert typed(jnp.gcd(np.uint8(4), np.int8(6))) == ("int16", 2)
    assert typed(jnp.gcd(12, -18)) == ("int32", 6)
    assert int(jnp.gcd(np.int32(-(2**31)), np.int32(0))) == -(2**31)
    assert int(jnp.gcd(np.int8(-128), np.int8(96))) == 32
    assert "integers" in error_of(lambda: jnp.gcd(1.0, 2), TypeError)
    mapped = verax.vmap(lambda x: jnp.gcd(x, 6))(jnp.asarray(N))
    assert mapped.tolist() == [1, 2, 3]


def test_bits() -> None:
    bits = np.array([[1, 0, 1], [0, 0, 2]])
    for axis in (None, 0, 1, -1):
        for order in ("big", "little"):
            agree(
                lambda x, a=axis, o=order: jnp.packbits(x, a, o),
                lambda x, a=axis, o=order: np.packbits(x, a, o),
                bits,
            )
    assert jnp.packbits(1).tolist() == [128]
    assert jnp.packbits(np.zeros((2, 0), bool), axis=1).shape == (2, 0)
    words = np.array([[3, 200]], np.uint8)
    for count in (None, 10, 20, -10, 0):
        agree(
            lambda x, n=count: jnp.unpackbits(x, 1, n),
            lambda x, n=count: np.unpackbits(x, 1, n),
            words,
        )
    agree(
        lambda x: jnp.unpackbits(x, 0, None, "little"),
        lambda x: np.unpackbits(x, 0, None, "little"),
        words,
    )
    assert jnp.unpackbits(jnp.uint8(5)).tolist() == [0, 0, 0, 0, 0, 1, 0, 1]
    assert "uint8" in error_of(lambda: jnp.unpackbits(bits), TypeError)
    assert "integers" in error_of(lambda: jnp.packbits(bits * 1.0), TypeError)
    assert "big" in error_of(lambda: jnp.packbits(bits, bitorder="x"), ValueError)


def test_unwrap() -> None:
    signal = np.array([0, 2, 7, 1, -9], np.float32)
    agree(jnp.unwrap, np.unwrap, signal)
    agree(
        lambda x: jnp.unwrap(x, discont=4.0, axis=0),
        lambda x: np.unwrap(x, discont=4.0, axis=0),
        np.stack([signal, signal * 3], 1),
    )
    for period in (4, 5):
        whole = np.array([0, 2, 7, 1, 5, 2], np.int32)
        agree(
            lambda x, n=period: jnp.unwrap(x, period=n),
            lambda x, n=period: np.unwrap(x, period=n),
            whole,
        )
    assert jnp.unwrap(np.zeros(0, np.float32)).shape == (0,)
    assert "real" in error_of(lambda: jnp.unwrap(signal * 1j), ValueError)


# ---------------------------------------------------------------------- order, indices


def test_top_k_and_minmax() -> None:
    x = np.array([[1, 0, 1], [0, 0, 2]], np.int32)
    assert [v.tolist() for v in jnp.top_k(x, 2)] == [
        [[1, 1], [2, 0]],
        [[0, 2], [2, 0]],
    ]
    assert [v.tolist() for v in jnp.top_k(x, 2, axis=0, mode="smallest")] == [
        [[0, 0, 1], [1, 0, 2]],
        [[1, 0, 0], [0, 1, 1]],
    ]
    low = jnp.top_k(np.array([1, np.nan, 3, -np.inf], np.float32), 4, mode="smallest")
    assert low[1].tolist() == [3, 0, 2, 1]
    assert jnp.top_k(np.array([-128, 5], np.int8), 1, mode="smallest")[0] == -128
    assert "mode" in error_of(lambda: jnp.top_k(x, 1, mode="x"), ValueError)
    assert "elements" in error_of(lambda: jnp.top_k(x, 9), ValueError)
    assert [int(v) for v in jnp.minmax(x)] == [0, 2]
    pair = jnp.minmax(x, axis=1, keepdims=True, initial=(5, -1))
    assert [v.tolist() for v in pair] == [[[0], [0]], [[1], [2]]]
    assert [int(v) for v in jnp.minmax(x, where=x > 0, initial=3)] == [1, 3]


def test_joining_between_brackets() -> None:
    a, b = np.array([1, 2]), np.array([3, 4])
    x, y = jnp.asarray(a), jnp.asarray(b)
    assert jnp.c_[x, y].tolist() == np.c_[a, b].tolist()
    assert jnp.c_[1:3, y].tolist() == np.c_[1:3, b].tolist()
    assert jnp.c_[1, 2].tolist() == [[1, 2]]
    assert typed(jnp.r_[1, 2:5, jnp.array([6.0])]) == ("float32", [1, 2, 3, 4, 6])
    for key in ("0,2", "0,2,0", "1,3,0", "-1", "1,2,-1"):
        assert jnp.r_[key, x, y].tolist() == np.r_[key, a, b].tolist(), key
    assert jnp.r_["r", x].tolist() == [[1, 2]]
    assert jnp.r_["c", x].tolist() == [[1], [2]]
    assert jnp.r_[[1, 2], 3].tolist() == [1, 2, 3]
    assert jnp.r_[0:1:3j].tolist() == [0, 0.5, 1]
    assert jnp.r_[-2:].shape == (0,)
    assert "first" in error_of(lambda: jnp.r_[1, "0", 2], ValueError)
    assert "directive" in error_of(lambda: jnp.r_["x", 2], ValueError)


def test_mask_indices_and_iterable() -> None:
    found = jnp.mask_indices(3, jnp.tril, 1)
    wanted = np.mask_indices(3, np.tril, 1)
    assert [x.tolist() for x in found] == [x.tolist() for x in wanted]
    assert jnp.mask_indices(3, jnp.tril, size=2)[0].tolist() == [0, 1]
    assert jnp.iterable(jnp.ones(3))
    assert not jnp.iterable(3)
    assert not jnp.iterable(jnp.ones(()))


# ---------------------------------------------------------------------- text and files


def test_text() -> None:
    x = jnp.array([1.0, 2.123456])
    assert jnp.array_repr(x, precision=2) == "Array([1.  , 2.12], dtype=float32)"
    assert jnp.array_str(x, precision=1) == "[1.  2.1]"
    with jnp.printoptions(precision=3):
        assert jnp.get_printoptions()["precision"] == 3
        assert str(x) == "[1.    2.123]"


def test_files(tmp_path: Path) -> None:
    for dtype in ("float32", "int8", "bfloat16", "complex64"):
        x = jnp.arange(4).astype(dtype)
        jnp.save(tmp_path / "x.npy", x)
        found = jnp.load(tmp_path / "x.npy")
        assert found.dtype == x.dtype
        assert found.tolist() == x.tolist()
    jnp.savez(tmp_path / "all.npz", jnp.ones(2), named=jnp.zeros(3))
    with jnp.load(tmp_path / "all.npz") as archive:
        assert sorted(archive) == ["arr_0", "named"]
    np.arange(3, dtype=np.int32).tofile(tmp_path / "raw")
    assert jnp.fromfile(tmp_path / "raw", np.int32).tolist() == [0, 1, 2]


def test_bytes_text_and_other_libraries() -> None:
    data = np.array([1, 2], np.int32).tobytes()
    found = jnp.frombuffer(data, dtype="int32", count=1, offset=4)
    assert typed(found) == ("int32", [2])
    assert jnp.frombuffer(data).dtype == "float32"
    assert typed(jnp.fromstring("1 2 3", sep=" ", dtype=int)) == ("int32", [1, 2, 3])
    assert typed(jnp.fromiter(range(3), dtype=int)) == ("int32", [0, 1, 2])
    assert typed(jnp.from_dlpack(np.ones(2, np.float32))) == ("float32", [1, 1])
    assert typed(jnp.from_dlpack(np.ones(2))) == ("float32", [1, 1])
    assert typed(jnp.from_dlpack(jnp.arange(3), copy=True)) == ("int32", [0, 1, 2])
    assert "__dlpack__" in error_of(lambda: jnp.from_dlpack([1]), TypeError)
    assert issubclass(jnp.ComplexWarning, Warning)
