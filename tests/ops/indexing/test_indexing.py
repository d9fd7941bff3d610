"""Gather, scatter and dynamic slices at the points where they are easily wrong.

One idea: one element of a vector per index, so that a test reads as NumPy does.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.ops.laws import ENGINE
from verax.backend.lowering.lower import lower
from verax.backend.programs.program import compiled
from verax.backend.xla.executable import CompileOptions
from verax.ir.avals import ShapedArray, iinfo
from verax.ir.dtypes import bool_, float32, int4, int8, int32, uint4, uint8
from verax.ir.jaxpr import Jaxpr
from verax.ops.indexing import dynamic_slice, gather, scatter
from verax.ops.indexing.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    all_inside,
)
from verax.ops.structure import create, joining, shape, slicing
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting

READ = GatherDimensionNumbers((), (0,), (0,))
WRITE = ScatterDimensionNumbers((), (0,), (0,))
ROWS = GatherDimensionNumbers((1,), (0,), (0,))
WRITE_ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
BAD: Any = (1.5,)
type Maths = Callable[..., Array]


def trace(function: Maths, *avals: ShapedArray) -> Jaxpr:
    builder = Builder("a test")
    inputs = [builder.input(aval) for aval in avals]
    with interpreting(builder):
        result = function(*inputs)
    return builder.finish((result,))[0]


def types(args: Sequence[object]) -> list[ShapedArray]:
    arrays = [np.asarray(x) for x in args]
    return [ShapedArray(x.shape, x.dtype) for x in arrays]


def run(function: Maths, *args: object) -> np.ndarray:
    jaxpr = trace(function, *types(args))
    return ENGINE.evaluate(jaxpr, [np.asarray(x) for x in args])[0]


def pull(function: Maths, ct: object, *args: object) -> list[np.ndarray]:
    """The cotangents of all arguments, which are floats."""
    jaxpr = trace(function, *types(args))
    nonzero = (True,) * len(args)
    forward, tangent, _ = ENGINE.linearize(jaxpr, nonzero)
    saved = ENGINE.evaluate(forward, [np.asarray(x) for x in args])[1:]
    linear = (False,) * len(saved) + nonzero
    back, flags = ENGINE.transpose(tangent, linear, (True,))
    assert all(flags)
    return ENGINE.evaluate(back, [*saved, np.asarray(ct)])


def operations(jaxpr: Jaxpr) -> int:
    text = lower(ENGINE, jaxpr, "f", platforms=("cpu",)).text.replace(
        '"stablehlo.return"', ""
    )
    return text.count('"stablehlo.')


def f32s(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def column(*values: int) -> np.ndarray:
    return np.array(values, np.int32).reshape(-1, 1)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("fill", [3, np.nan, np.nan, 3]),
        ("clip", [3, 3, 1, 3]),
        (None, [3, 3, 1, 3]),
    ],
)
def test_gather_out_of_bounds(mode: str | None, expected: list[float]) -> None:
    index = column(2, 3, -1, 2)
    actual = run(
        lambda x: gather.gather(x, index, READ, (1,), mode=mode), f32s(1, 5, 3)
    )
    np.testing.assert_array_equal(actual, f32s(*expected))


@pytest.mark.parametrize(
    ("mode", "expected"), [("fill", [0, 0, 1001]), ("clip", [100, 0, 1011])]
)
def test_gather_cotangents_agree_with_the_mode(
    mode: str, expected: list[float]
) -> None:
    index = column(2, 3, -1, 2)
    (ct,) = pull(
        lambda x: gather.gather(x, index, READ, (1,), mode=mode),
        f32s(1, 10, 100, 1000),
        f32s(1, 5, 3),
    )
    np.testing.assert_array_equal(ct, f32s(*expected))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.int8, -128), (np.uint8, 255), (np.bool_, True), (np.int32, -(2**31))],
)
def test_default_fill_values(dtype: type, expected: int) -> None:
    actual = run(
        lambda x: gather.gather(x, column(7), READ, (1,), mode="fill"),
        np.zeros(3, dtype),
    )
    assert actual[0] == np.asarray(expected, dtype)


def test_fill_value_nan_is_the_default_one() -> None:
    x = ShapedArray((3,), float32)
    first, second = (
        trace(
            lambda x, f=fill: gather.gather(
                x, column(7), READ, (1,), mode="fill", fill_value=f
            ),
            x,
        )
        for fill in (None, float("nan"))
    )
    assert first.eqns[0].params == second.eqns[0].params


@pytest.mark.parametrize("dtype", [np.uint64, np.uint8, np.int8, np.int64])
def test_small_and_large_index_types(dtype: type) -> None:
    jaxpr = trace(
        lambda x, i: gather.gather(x, i, READ, (1,), mode="fill"),
        ShapedArray((1000,), int32),
        ShapedArray((2, 1), np.dtype(dtype)),
    )
    index: np.ndarray = np.array([[100], [np.iinfo(dtype).max]], dtype)
    (actual,) = ENGINE.evaluate(jaxpr, [np.arange(1000, dtype=np.int32), index])
    last = np.iinfo(dtype).max
    assert actual.tolist() == [100, last if last < 1000 else -(2**31)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_all_inside_with_every_sign_and_size(dtype: type) -> None:
    limits = np.iinfo(dtype)
    for size in (1, 100, 200, 1000, 2**40):
        for element in {0, 99, 100, int(limits.max), int(limits.min), -1}:
            if limits.min <= element <= limits.max:
                elements: np.ndarray = np.array([[0, element]], dtype)
                assert all_inside(elements, size) == (0 <= element < size)


def test_windows_partly_outside_are_dropped_whole() -> None:
    dims = ScatterDimensionNumbers((1,), (), (0,))
    actual = run(
        lambda x, u: scatter.scatter_sub(x, column(3, -1, 1), u, dims),
        f32s(0, 0, 0, 0),
        -np.ones((3, 2), np.float32),
    )
    assert actual.tolist() == [0, 1, 1, 0]


def test_scatter_keeps_the_last_of_duplicates_and_its_cotangent() -> None:
    index = column(0, 0, 1, 7)
    x, u = f32s(1, 5, 3), f32s(2, -0.0, 5, 9)
    actual = run(lambda x, u: scatter.scatter(x, index, u, WRITE), x, u)
    assert actual.tolist() == [0, 5, 3]
    cts = pull(lambda x, u: scatter.scatter(x, index, u, WRITE), f32s(1, 10, 100), x, u)
    assert [ct.tolist() for ct in cts] == [[0, 0, 100], [0, 1, 10, 0]]


def test_scatter_keeps_negative_zero_under_differentiation() -> None:
    jaxpr = trace(
        lambda u: scatter.scatter(f32s(0, -0.0), column(0, 0), u, WRITE),
        ShapedArray((2,), float32),
    )
    forward, _, _ = ENGINE.linearize(jaxpr, (True,))
    value = ENGINE.evaluate(forward, [f32s(1, -0.0)])[0]
    assert np.signbit(value).tolist() == [True, True]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (scatter.scatter_max, [[0, 5, 100], [0.5, 0.5, 5, 0]]),
        (scatter.scatter_min, [[1, 5, 100], [0, 0, 5, 0]]),
    ],
)
def test_ties_share_cotangents(
    function: Callable[..., Array], expected: list[list[float]]
) -> None:
    index = column(0, 0, 1, 7)
    cts = pull(
        lambda x, u: function(x, index, u, WRITE),
        f32s(1, 10, 100),
        f32s(1, 5, 3),
        f32s(2, 2, 5, 9),
    )
    assert [ct.tolist() for ct in cts] == expected


def test_product_with_several_updates_has_no_derivative() -> None:
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        pull(
            lambda u: scatter.scatter_mul(f32s(1, 2), column(0, 0), u, WRITE),
            f32s(1, 1),
            f32s(3, 4),
        )


def test_scatter_of_a_window_that_is_as_long_as_rows_are_wide() -> None:
    window = ScatterDimensionNumbers((0, 1), (), (0, 1))
    start = np.array([1, 1], np.int32)
    actual = run(
        lambda x, u: scatter.scatter(x, start, u, window),
        np.zeros((4, 3), np.float32),
        np.ones((3, 2), np.float32),
    )
    np.testing.assert_array_equal(actual, np.pad(np.ones((3, 2)), ((1, 0), (1, 0))))


def test_scatter_into_nothing() -> None:
    actual = run(lambda x, u: scatter.scatter(x, column(0), u, WRITE), f32s(), f32s(1))
    assert actual.shape == (0,)
    cts = pull(
        lambda x, u: scatter.scatter(x, column(0), u, WRITE), f32s(), f32s(), f32s(1)
    )
    assert cts[1].tolist() == [0]


@pytest.mark.parametrize(
    ("start", "expected"), [(-1, [3, 4]), (-3, [2, 3]), (1, [2, 3]), (9, [3, 4])]
)
def test_dynamic_slice_moves_inside(start: int, expected: list[int]) -> None:
    x = np.arange(1, 5, dtype=np.int32)
    for given in (start, np.int32(start), np.array([start], np.int32)):
        starts = given if np.ndim(given) else (given,)
        actual = run(lambda x, s=starts: dynamic_slice.dynamic_slice(x, s, (2,)), x)
        assert actual.tolist() == expected
    traced = run(
        lambda x, i: dynamic_slice.dynamic_slice(x, (i,), (2,)), x, np.int32(start)
    )
    assert traced.tolist() == expected


def test_unsigned_starts_are_not_negative() -> None:
    x = np.arange(300, dtype=np.int32)
    actual = run(
        lambda x, i: dynamic_slice.dynamic_slice(x, (i,), (1,)), x, np.uint8(200)
    )
    assert actual.tolist() == [200]


def test_batched_starts_make_one_gather() -> None:
    jaxpr = trace(
        lambda x, i: dynamic_slice.dynamic_slice_p.call(
            dynamic_slice.DynamicSliceParams((2, 5)), x, i, np.int32(0)
        ),
        ShapedArray((4, 5), float32),
        ShapedArray((), int32),
    )
    batched, axes = ENGINE.batch(jaxpr, 3, (0, 0))
    names = [eqn.primitive.name for eqn in batched.eqns]
    assert names == ["broadcast_in_dim", "gather"]
    assert axes == (0,)


@pytest.mark.parametrize(("mode", "most"), [("fill", 8), ("clip", 1)])
def test_gather_lowers_to_few_operations(mode: str, most: int) -> None:
    jaxpr = trace(
        lambda x, i: gather.gather(x, i, ROWS, (1, 5), mode=mode),
        ShapedArray((4, 5), float32),
        ShapedArray((3, 1), int32),
    )
    assert operations(jaxpr) <= most


@pytest.mark.parametrize(("mode", "most"), [("drop", 2), ("clip", 5)])
def test_scatter_lowers_to_few_operations(mode: str, most: int) -> None:
    jaxpr = trace(
        lambda x, i, u: scatter.scatter_add(x, i, u, WRITE_ROWS, mode=mode),
        ShapedArray((4, 5), float32),
        ShapedArray((3, 1), int32),
        ShapedArray((3, 5), float32),
    )
    assert operations(jaxpr) <= most


@pytest.mark.parametrize(
    "function",
    [
        lambda x: shape.reshape(x, (2, 3)),
        lambda x: shape.transpose(x, (0, 1)),
        lambda x: shape.squeeze(x, ()),
        lambda x: shape.expand_dims(x, ()),
        lambda x: shape.broadcast(x, ()),
        lambda x: shape.broadcast_to_rank(x, 2),
        lambda x: slicing.slice(x, (0, 0), (2, 3), (1, 1)),
        lambda x: slicing.pad(x, 0.0, [(0, 0, 0)] * 2),
    ],
)
def test_what_changes_nothing_writes_nothing(function: Maths) -> None:
    assert not trace(function, ShapedArray((2, 3), float32)).eqns


@pytest.mark.parametrize(
    ("start", "limit", "stride", "axis"),
    [
        *[(None, None, 1, 0), (None, 2, 1, 0), (1, None, 1, -1), (-2, -1, 1, 1)],
        *[(0, 4, 3, 1), (-4, 4, 2, 1), (-1, None, 1, 0), (0, 0, 1, 0)],
    ],
)
def test_parts_along_one_dimension(
    start: int | None, limit: int | None, stride: int, axis: int
) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    actual = run(lambda x: slicing.slice_in_dim(x, start, limit, stride, axis), x)
    part = slice(start, limit, stride)
    np.testing.assert_array_equal(actual, x[part] if axis == 0 else x[:, part])


def test_elements_along_one_dimension() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for i in (0, 2, -1, -3):
        actual = run(lambda x, i=i: slicing.index_in_dim(x, i), x)
        assert actual.tolist() == [x[i].tolist()]
    actual = run(lambda x: slicing.index_in_dim(x, 1, -1, keepdims=False), x)
    np.testing.assert_array_equal(actual, x[:, 1])
    np.testing.assert_array_equal(
        run(lambda x: slicing.slice_in_dim(x, 1, 3), x), x[1:]
    )


def test_padding() -> None:
    actual = run(lambda x: slicing.pad(x, -1.0, [(-1, 2, 1)]), f32s(1, 2, 3))
    assert actual.tolist() == [-1, 2, -1, 3, -1, -1]
    actual = run(lambda x: slicing.pad(x, 0.0, [(2, -3, 2)]), f32s(1, 2, 3))
    assert actual.tolist() == [0, 0, 1, 0, 0, 2]


def test_cotangent_of_the_padding_value_ignores_infinite_elements() -> None:
    cts = pull(
        lambda x, v: slicing.pad(x, v, [(1, 1, 0)]),
        f32s(1, np.inf, 2),
        f32s(5),
        np.float32(0),
    )
    assert cts[1].tolist() == 3


@pytest.mark.parametrize("weak", [True, False])
def test_zeros_and_ones_of_a_type_are_as_weak_as_it_is(weak: bool) -> None:
    aval = ShapedArray((2,), float32, weak)
    for fill in (create.zeros, create.ones):
        assert trace(lambda fill=fill: fill(aval)).out_avals == (aval,)


def test_fillings() -> None:
    assert trace(lambda: create.full((2,), 1.5)).out_avals[0].weak_type
    assert trace(lambda: create.full((2,), 1, uint8)).out_avals == (
        ShapedArray((2,), uint8),
    )
    assert run(lambda: create.full((2,), 2, bool_)).tolist() == [True, True]
    assert run(lambda x: create.full_like(x, 2), f32s(1)).dtype == float32
    actual = run(lambda x: create.full((2,), x, int32), np.float32(2.5))
    assert actual.tolist() == [2, 2]
    assert actual.dtype == int32
    assert (
        run(lambda: create.broadcasted_iota(int32, (2, 3), 1)).tolist()
        == [[0, 1, 2]] * 2
    )
    assert run(lambda: create.iota(uint8, 258))[-1] == 1


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: slicing.slice(x, (0,), (9,)), TypeError, "limit <= size"),
        (
            lambda x: shape.squeeze(x, (0,)),
            ValueError,
            "which has size not equal to one",
        ),
        (lambda x: shape.reshape(x, (5,)), TypeError, "must stay 3"),
        (lambda x: shape.reshape(x, (-1,)), ValueError, "negative size"),
        (lambda x: shape.reshape(x, BAD), TypeError, "must contain integers"),
        (
            lambda x: shape.broadcast_in_dim(x, (2,), (0,)),
            TypeError,
            "must either be 1, or be equal",
        ),
        (lambda x: slicing.index_in_dim(x, 3), IndexError, "out of bounds"),
        (
            lambda x: slicing.pad(x, 0.0, [(-4, 0, 0)]),
            ValueError,
            "Dimension size after padding is not at least 0",
        ),
        (lambda x: dynamic_slice.dynamic_slice(x, (0, 0), (1,)), ValueError, "2 start"),
        (lambda x: dynamic_slice.dynamic_slice(x, (0.5,), (1,)), TypeError, "integers"),
        (
            lambda x: dynamic_slice.dynamic_slice(x, (0,), (4,)),
            TypeError,
            "do not fit in",
        ),
        (lambda x: create.iota(bool_, 3), TypeError, "must be numeric"),
        (lambda x: create.full((2,), np.zeros(2)), TypeError, "must be a scalar"),
        (
            lambda x: gather.gather(x, column(0), ROWS, (1,)),
            TypeError,
            "explicitly collapsed/batching, but f32.3. has",
        ),
        (
            lambda x: scatter.scatter(x, column(0), f32s(1, 2), WRITE),
            TypeError,
            "scatter dimensions of updates must be those of the indices",
        ),
    ],
)
def test_errors_say_what_was_wrong(
    function: Maths, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        trace(function, ShapedArray((3,), float32))


def test_modes_by_name() -> None:
    names = ["fill", "drop", None, GatherScatterMode.FILL_OR_DROP]
    assert {GatherScatterMode.from_any(name) for name in names} == {
        GatherScatterMode.FILL_OR_DROP
    }
    with pytest.raises(ValueError, match="'wrap'"):
        GatherScatterMode.from_any("wrap")


@pytest.mark.parametrize("dtype", [int4, uint4])
@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_lanes_have_indices_of_four_bits(dtype: np.dtype[Any], mode: str) -> None:
    index: np.ndarray = np.arange(20).reshape(20, 1) % 7
    x = np.arange(60, dtype=np.float32).reshape(20, 3)

    def one(x: Array, i: Array) -> Array:
        y = gather.gather(x, i, READ, (1,), mode=mode, fill_value=-1)
        return scatter.scatter_add(x, i, y, WRITE, mode=mode)

    jaxpr = trace(one, ShapedArray((3,), float32), ShapedArray((1,), dtype))
    lanes, _ = ENGINE.batch(jaxpr, 20, (0, 0))
    args = [x, index.astype(dtype)]
    (want,) = ENGINE.evaluate(lanes, args)
    (got,) = compiled(ENGINE, lanes, "f", CompileOptions()).run(args)
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("mode", ["fill", "clip"])
@pytest.mark.parametrize("dtype", [int4, uint4, int8, uint8, int32])
def test_indices_reach_as_far_as_their_dtype_does(
    dtype: np.dtype[Any], mode: str
) -> None:
    """Bounds that the dtype cannot hold are cut to its end, and to nothing less."""
    low, high, count = int(iinfo(dtype).min), int(iinfo(dtype).max), 1200
    points = (low, -1, 0, 6, 7, 14, 48, 63, 100, 126, 200, 254, 961, 1199, 1200, high)
    index = [i for i in points if low <= i <= high]
    x = np.arange(1, count + 1, dtype=np.float32)

    def both(x: Array, i: Array) -> Array:
        y = gather.gather(x, i, READ, (1,), mode=mode, fill_value=-1)
        z = scatter.scatter_add(x, i, y, WRITE, mode=mode)
        return joining.concatenate((y, z), 0)

    read, written = [], x.copy()
    for i in index:
        place = min(max(i, 0), count - 1)
        inside = mode == "clip" or i == place
        read.append(x[place] if inside else -1)
        written[place] += x[place] if inside else 0
    args = [x, np.array(index).reshape(-1, 1).astype(dtype)]
    jaxpr = trace(both, *types(args))
    (evaluated,) = ENGINE.evaluate(jaxpr, args)
    np.testing.assert_array_equal(evaluated, [*read, *written])
    (actual,) = compiled(ENGINE, jaxpr, "f", CompileOptions()).run(args)
    np.testing.assert_array_equal(np.asarray(actual), [*read, *written])


def test_narrow_indices_are_widened_only_where_bounds_ask_for_it() -> None:
    """Up to jaxlib 0.11, XLA compared starts with bounds that they cannot hold."""
    sizes = {
        count: operations(
            trace(
                lambda x, i, u: scatter.scatter_add(x, i, u, WRITE),
                ShapedArray((count,), float32),
                ShapedArray((3, 1), int8),
                ShapedArray((3,), float32),
            )
        )
        for count in (5, 128, 129)
    }
    assert sizes[128] == sizes[5]
    assert sizes[129] == sizes[5] + 1


@pytest.mark.parametrize("promise", ["indices_are_sorted", "unique_indices"])
def test_promises_are_kept_under_their_names(promise: str) -> None:
    given: dict[str, Any] = {promise: True}
    index, ones = column(1), np.ones(1, np.float32)
    x = ShapedArray((3,), float32)
    for jaxpr in (
        trace(lambda x: gather.gather(x, index, READ, (1,), **given), x),
        trace(lambda x: scatter.scatter_add(x, index, ones, WRITE, **given), x),
        trace(lambda x: scatter.scatter(x, index, ones, WRITE, **given), x),
    ):
        p: Any = jaxpr.eqns[-1].params
        assert p.indices_are_sorted == (promise == "indices_are_sorted")
        assert p.unique_indices == (promise == "unique_indices")


def test_windows_may_come_before_the_indices() -> None:
    """As `take` has it but for the order of dimensions, which its short way is not."""
    x, index = np.arange(15, dtype=np.float32).reshape(5, 3), column(4, 0)
    read, write = (
        GatherDimensionNumbers((0,), (0,), (0,)),
        ScatterDimensionNumbers((0,), (0,), (0,)),
    )
    actual = run(lambda x: gather.gather(x, index, read, (1, 3)), x)
    np.testing.assert_array_equal(actual, x[[4, 0]].T)
    updates = np.arange(6, dtype=np.float32).reshape(3, 2)
    actual = run(lambda x, u: scatter.scatter_add(x, index, u, write), x, updates)
    want = x.copy()
    want[[4, 0]] += updates.T
    np.testing.assert_array_equal(actual, want)


@pytest.mark.parametrize(("place", "kept"), [(0, True), (1, False)])
def test_indices_stay_sorted_only_where_lanes_come_first(
    place: int, kept: bool
) -> None:
    """Lanes that are not the first dimension go through the indices again and again."""
    jaxpr = trace(
        lambda x, i: gather.gather(x, i, READ, (1,), indices_are_sorted=True),
        ShapedArray((4,), float32),
        ShapedArray((2, 1), int32),
    )
    once, _ = ENGINE.batch(jaxpr, 3, (0, 0))
    twice, _ = ENGINE.batch(once, 2, (place, place))
    promises = [
        eqn.params.indices_are_sorted  # type: ignore[attr-defined]  # gather's
        for eqn in twice.eqns
        if eqn.primitive is gather.gather_p
    ]
    assert promises == [kept]


@pytest.mark.parametrize("start", [0, -2, np.int32(0), np.int8(-3), 1])
@pytest.mark.parametrize("traced", [True, False])
def test_starts_count_from_the_end_if_they_are_negative(
    start: Any, traced: bool
) -> None:
    x = np.arange(5, dtype=np.float32)
    if traced:
        actual = run(
            lambda x, i: dynamic_slice.dynamic_slice(x, (i,), (2,)),
            x,
            np.asarray(start),
        )
    else:
        actual = run(lambda x: dynamic_slice.dynamic_slice(x, (start,), (2,)), x)
    first = int(start) % 5
    np.testing.assert_array_equal(actual, x[first : first + 2])
