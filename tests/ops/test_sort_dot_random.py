"""Sorting, contraction and random bits: goldens and laws."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.laws import ENGINE, check_row
from verax.backend.programs.program import compiled
from verax.backend.xla.executable import CompileOptions
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ops.contraction import dot
from verax.ops.contraction.precision import DotAlgorithmPreset, Precision, precision_of
from verax.ops.elementwise import arith
from verax.ops.random import keys as prng, threefry
from verax.ops.reductions import reduce
from verax.ops.sorting import sort
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting

NAN, INF = np.nan, np.inf
MATRICES = (((1,), (0,)), ((), ()))


def trace(f: Callable[..., object], *xs: np.ndarray) -> Jaxpr:
    builder = Builder("a test")
    inputs = [builder.input(ShapedArray(x.shape, x.dtype)) for x in xs]
    with interpreting(builder):
        outs = f(*inputs)
    return builder.finish(outs if isinstance(outs, tuple) else (outs,))[0]


def both(f: Callable[..., object], *xs: np.ndarray) -> list[np.ndarray]:
    """The results by evaluation, after a comparison with those of the program."""
    jaxpr = trace(f, *xs)
    expected = ENGINE.evaluate(jaxpr, xs)
    found = compiled(ENGINE, jaxpr, "f", CompileOptions()).run(xs)
    for x, y in zip(found, expected, strict=True):
        assert np.asarray(x).dtype == y.dtype
        np.testing.assert_array_equal(plain(np.asarray(x)), plain(y))
    return expected


def plain(x: np.ndarray) -> np.ndarray:
    """Floats that NumPy knows, for it takes NaNs of others for different."""
    return x.astype(np.float32) if x.dtype.kind in "Vf" else x


@pytest.mark.parametrize("row", [*sort.ROWS, *dot.ROWS, *threefry.ROWS], ids=str)
def test_laws(row: object) -> None:
    check_row(row, 0, 10)  # type: ignore[arg-type]  # a row of any params


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
def test_sort_puts_nan_last(dtype: type[np.generic]) -> None:
    x = np.array([0.0, NAN, -1, INF, -NAN, -INF, 1], dtype)
    (y,) = both(sort.sort, x)
    expected = [-INF, -1, 0, 1, INF, NAN, NAN]
    np.testing.assert_array_equal(y.astype(np.float64), expected)


def test_sort_of_floats_with_values_is_stable_and_keeps_signs_of_zero() -> None:
    x = np.array([0.0, -0.0, NAN, -NAN, -0.0, 0.0, -1], np.float32)
    y, order = both(sort.sort_key_val, x, np.arange(7, dtype=np.int32))
    assert order.tolist() == [6, 0, 1, 4, 5, 2, 3]
    assert np.signbit(y[:5]).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint16, np.int32])
def test_sort_of_extreme_integers_with_two_values(dtype: type[np.generic]) -> None:
    limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer dtype
    x = np.array([4, limits.max, limits.min, limits.max // 2 + 1], dtype)
    places, halves = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.float32) / 2
    y, order, _ = both(lambda *xs: sort.sort(xs), x, places, halves)
    assert y.tolist() == sorted(x.tolist())
    assert order.tolist() == np.argsort(x, kind="stable").tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_wide_keys_with_two_values_keep_all_their_bits(dtype: type[np.generic]) -> None:
    x = np.array([3 << 40, 1 << 40, 5, 2 << 40, 1 << 33, 5], dtype)
    places = np.arange(6, dtype=np.int32)
    y, order, _ = both(lambda *xs: sort.sort(xs), x, places, places[::-1].copy())
    assert y.tolist() == sorted(x.tolist())
    assert order.tolist() == np.argsort(x, kind="stable").tolist()


@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
)
def test_floats_of_eight_bits_are_sorted_with_values(name: str) -> None:
    x = np.array([1, -2, NAN, 0, 0.5, -0.25, 2, -1]).astype(name)
    y, order, _ = both(
        lambda *xs: sort.sort(xs), x, *[np.arange(8, dtype=np.int32)] * 2
    )
    numbers = x.astype(np.float32)
    assert order.tolist() == np.argsort(numbers, kind="stable").tolist()
    assert np.array_equal(y.astype(np.float32), np.sort(numbers), equal_nan=True)
    both(sort.sort, x)


def test_sort_by_two_keys_and_along_a_middle_dimension() -> None:
    random = np.random.default_rng(0)
    a = random.integers(0, 3, (3, 20, 2)).astype(np.float32)
    b = random.integers(0, 9, (3, 20, 2)).astype(np.int32)
    c = random.normal(size=(3, 20, 2)).astype(np.float32)

    def three(*xs: Array) -> object:
        return sort.sort(xs, dimension=1, num_keys=2)

    first, second, _ = both(three, a, b, c)
    pairs = list(zip(first[0, :, 0], second[0, :, 0], strict=True))
    assert pairs == sorted(pairs)
    both(lambda *xs: sort.sort(xs, dimension=1, num_keys=1), a, b, c)
    both(lambda *xs: sort.sort(xs, dimension=0, num_keys=1), b, a, c)


def test_complex_numbers_go_by_real_part_then_imaginary() -> None:
    z = np.array([2, 1 + 5j, 1 - 5j, complex(NAN, 0)], np.complex64)
    (y,) = both(sort.sort, z)
    assert y[:3].tolist() == [1 - 5j, 1 + 5j, 2]


def test_top_k_takes_every_nan_first() -> None:
    x = np.array([1, -NAN, 3, NAN, 3], np.float32)
    values, places = both(lambda x: sort.top_k(x, 4), x)
    np.testing.assert_array_equal(values, [NAN, NAN, 3, 3])
    assert places.tolist() == [1, 3, 2, 4]


def test_dot_general_dtypes() -> None:
    x = np.full((2, 300), 100, np.int8)
    (y,) = both(
        lambda x: dot.dot_general(
            x, x, (((1,), (1,)), ((), ())), preferred_element_type=np.int32
        ),
        x,
    )
    assert y.dtype == np.int32
    assert y[0, 0] == 3_000_000
    flags = np.array([[True, False], [True, True]])
    (z,) = both(lambda x: dot.dot(x, x), flags)
    assert z.tolist() == [[True, False], [True, True]]
    half = np.ones((2, 2), ml_dtypes.bfloat16)
    (w,) = both(lambda x: dot.dot(x, x, preferred_element_type=np.float32), half)
    assert w.dtype == np.float32
    (v,) = both(lambda x, y: dot.dot(x, y), half, np.ones((2, 2), np.float32))
    assert v.dtype == np.float32


def test_the_gradient_of_a_wide_product_has_the_narrow_dtype() -> None:
    x = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)

    def f(x: Array) -> Array:
        numbers = (((1,), (1,)), ((), ()))
        # Its cotangents meet factors of the dtype of x.
        y = arith.mul(x, ml_dtypes.bfloat16(1))
        return dot.dot_general(y, y, numbers, preferred_element_type=np.float32)

    forward, tangent, _ = ENGINE.linearize(trace(f, x), (True,))
    _, *saved = ENGINE.evaluate(forward, [x])
    linear = (False,) * len(saved) + (True,)
    back, _ = ENGINE.transpose(tangent, linear, (True,))
    (ct,) = ENGINE.evaluate(back, [*saved, np.ones((2, 2), np.float32)])
    assert ct.dtype == x.dtype
    assert ct.astype(float).tolist() == [[6, 10, 14], [6, 10, 14]]


@pytest.mark.parametrize(
    "algorithm", ["F32_F32_F32", "BF16_BF16_F32", "BF16_BF16_F32_X3", "F16_F16_F16"]
)
def test_algorithms(algorithm: str) -> None:
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    (y,) = both(lambda x: dot.dot_general(x, x, MATRICES, precision=algorithm), x)
    assert y.tolist() == [[2, 3], [6, 11]]


def test_precisions_have_many_names() -> None:
    assert precision_of(None) is None
    assert precision_of("high") == (Precision.HIGH, Precision.HIGH)
    assert precision_of(("highest", None)) == (Precision.HIGHEST, Precision.DEFAULT)
    assert precision_of("F32_F32_F32") is DotAlgorithmPreset.F32_F32_F32
    with pytest.raises(ValueError, match="none of"):
        precision_of("exact")


def test_dot_errors() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match="equal sizes"):
        trace(lambda x: dot.dot(x, x), x)
    with pytest.raises(ValueError, match="named twice"):
        trace(lambda x: dot.dot_general(x, x, (((1,), (1,)), ((1,), (1,)))), x)


KEY = np.zeros(2, np.uint32)


def test_threefry_gives_the_documented_stream() -> None:
    """Values of jax.random under key(0), with partitionable threefry."""
    (keys,) = both(lambda k: threefry.split(k, (2,)), KEY)
    assert keys.tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    (folded,) = both(lambda k: threefry.fold_in(k, np.uint32(7)), KEY)
    assert folded.tolist() == [2716826189, 292468403]
    bits = {
        32: [4070199207, 4202968722, 1427181096],
        16: [20391, 13970, 3624],
        8: [167, 146, 40],
    }
    for width, expected in bits.items():
        (found,) = both(
            lambda k, w=width: threefry.random_bits(k, w, (3,)),
            KEY,
        )
        assert found.tolist() == expected
    (wide,) = both(lambda k: threefry.random_bits(k, 64, (1,)), KEY)
    assert wide.tolist() == [7719171245655871230]


@pytest.mark.parametrize("count", [1, 1 << 32, (1 << 32) + 1])
def test_places_are_counted_in_as_many_words_as_they_need(count: int) -> None:
    """Nobody has room for so many here: how they are counted is all that is seen."""
    program = trace(lambda: threefry.counter((count, 1))[1])
    assert program.out_avals == (ShapedArray((count, 1), np.dtype(np.uint32)),)
    counted = program.eqns[0].outvars[0].aval.dtype
    assert counted == (np.uint64 if count > 1 << 32 else np.uint32)


@pytest.mark.parametrize("value", [0, -1, 2**33 + 5])
def test_seeds(value: int) -> None:
    (key,) = ENGINE.evaluate(trace(lambda: threefry.seed(value)), [])
    assert key.tolist() == [0, value & 0xFFFFFFFF]


def on_keys(words: Array) -> Sequence[Array]:
    keys = prng.random_wrap(words)
    more = prng.random_split(keys, (2, 2))
    return (
        prng.random_unwrap(more),
        prng.random_unwrap(prng.random_fold_in(keys, -1)),
        prng.random_bits(keys, 32, (2, 3)),
        prng.random_bits(more, 16, ()),
        prng.random_unwrap(prng.random_seed(prng.random_bits(keys, 32, ()))),
    )


def test_typed_keys_are_the_raw_functions() -> None:
    split, folded, bits, small, _ = both(on_keys, KEY)
    assert split.shape == (2, 2, 2)
    assert split[0].tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    (raw,) = ENGINE.evaluate(
        trace(lambda k: threefry.fold_in(k, np.uint32(2**32 - 1)), KEY), [KEY]
    )
    assert folded.tolist() == raw.tolist()
    assert bits[0].tolist() == [4070199207, 4202968722, 1427181096]
    assert small.shape == (2, 2)
    assert small.dtype == np.uint16


def test_typed_keys_batch_as_a_loop_does() -> None:
    jaxpr = trace(on_keys, KEY)
    words = np.arange(6, dtype=np.uint32).reshape(2, 3)
    batched, axes = ENGINE.batch(jaxpr, 3, (1,))
    found = ENGINE.evaluate(batched, [words])
    for i in range(3):
        alone = ENGINE.evaluate(jaxpr, [words[:, i].copy()])
        for x, y, axis in zip(found, alone, axes, strict=True):
            np.testing.assert_array_equal(x if axis is None else x.take(i, axis), y)


def test_key_errors() -> None:
    with pytest.raises(TypeError, match="typed keys"):
        trace(lambda k: prng.random_bits(k, 32, (2,)), KEY)
    with pytest.raises(ValueError, match="no generator"):
        trace(lambda k: prng.random_wrap(k, "xyz"), KEY)
    with pytest.raises(ValueError, match="width"):
        trace(lambda k: threefry.random_bits(k, 7, (2,)), KEY)


def test_a_product_of_floats_made_integer_has_no_tangent() -> None:
    x = np.array([[1.5, 2.5], [0.5, 1.0]], np.float32)
    product = dot.dot_general
    jaxpr = trace(lambda x: product(x, x, MATRICES, None, np.int32), x)
    program, mask = ENGINE.jvp(jaxpr, (True,))
    assert mask == (False,)
    assert ENGINE.evaluate(program, [x, x])[0].tolist() == [[3, 6], [1, 2]]


@pytest.mark.parametrize("preferred", [None, np.float32])
def test_a_preferred_type_makes_weak_products_strong(preferred: Any) -> None:
    weak = ShapedArray((2, 2), np.dtype(np.float32), True)
    builder = Builder("a test")
    x = builder.input(weak)
    with interpreting(builder):
        y = dot.dot_general(x, x, MATRICES, preferred_element_type=preferred)
    assert y.aval.weak_type == (preferred is None)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_stand_in_order_and_sums_of_them_are_positive(zero: float) -> None:
    x = np.array([0.0, -0.0, zero], np.float32)
    (y,) = both(sort.sort, x)
    count = int(np.signbit(x).sum())
    assert np.signbit(y).tolist() == [True] * count + [False] * (3 - count)
    (total,) = both(lambda x: reduce.reduce_sum(x, (0,)), np.full(2, -0.0, np.float32))
    assert not np.signbit(total)


@pytest.mark.parametrize(("dtype", "low"), [(ml_dtypes.int4, -4), (ml_dtypes.uint4, 0)])
def test_top_k_of_four_bits(dtype: type[np.generic], low: int) -> None:
    x = (np.array([[3, 1, 7], [0, 5, 5]]) + low).astype(dtype)
    y, places = both(lambda x: sort.top_k(x, 2), x)
    assert (y.astype(int) - low).tolist() == [[7, 3], [5, 5]]
    assert places.tolist() == [[2, 0], [1, 2]]
