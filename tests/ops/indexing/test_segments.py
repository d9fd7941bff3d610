"""Segments: sums, products and extremes by id, as `jax.ops` has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array
from verax.test_util import check_grads

DATA = np.array([[3, 1], [4, 1], [5, 9], [2, 6], [5, 3], [5, 8]])
IDS = np.array([0, 0, 1, 3, -1, 1])
FOLDS = (
    (verax.ops.segment_sum, np.add, 0),
    (verax.ops.segment_prod, np.multiply, 1),
    (verax.ops.segment_max, np.maximum, np.iinfo(np.int32).min),
    (verax.ops.segment_min, np.minimum, np.iinfo(np.int32).max),
)


@pytest.mark.parametrize(("segment", "fold", "start"), FOLDS)
@pytest.mark.parametrize("bucket_size", [None, 1, 4, 99])
def test_segments_are_folds(
    segment: Callable[..., Array], fold: np.ufunc, start: int, bucket_size: int | None
) -> None:
    expected = np.full((3, 2), start)
    kept = (IDS >= 0) & (IDS < 3)
    fold.at(expected, IDS[kept], DATA[kept])
    given = segment(vnp.array(DATA), IDS, 3, bucket_size=bucket_size)
    assert given.dtype == np.int32
    np.testing.assert_array_equal(np.asarray(given), expected)
    compiled = verax.jit(segment, static_argnames=("num_segments", "bucket_size"))
    again = compiled(DATA, IDS, num_segments=3, bucket_size=bucket_size)
    np.testing.assert_array_equal(np.asarray(again), expected)


def test_the_largest_id_says_how_many_there_are() -> None:
    assert verax.ops.segment_sum(DATA, IDS).shape == (4, 2)
    assert verax.ops.segment_sum(vnp.ones(2), vnp.array([-3, -1])).shape == (0,)
    assert verax.ops.segment_max(vnp.zeros((0, 3)), vnp.zeros(0, int), 2).shape == (
        2,
        3,
    )


def test_floats_and_booleans_begin_at_their_ends() -> None:
    ids = vnp.array([1])
    assert verax.ops.segment_max(vnp.ones(1), ids, 2).tolist() == [-np.inf, 1.0]
    assert verax.ops.segment_min(vnp.ones(1), ids, 2).tolist() == [np.inf, 1.0]
    assert verax.ops.segment_max(vnp.array([False]), ids, 2).tolist() == [False, False]


def test_segments_are_mapped_and_differentiated() -> None:
    data, ids = vnp.arange(6.0), vnp.array([0, 0, 1, 3, -1, 1])

    def largest(x: Array) -> Array:
        actual = verax.ops.segment_max(x, ids, 4)
        return vnp.where(vnp.isfinite(actual), actual, 0.0)

    check_grads(lambda x: verax.ops.segment_sum(x * x, ids, 4), (data,), 2)
    check_grads(largest, (data,), 1)
    batch = vnp.stack([data, data + 1.0])
    mapped = verax.vmap(lambda x: verax.ops.segment_sum(x, ids, 4))(batch)
    assert mapped.tolist() == [[1.0, 7.0, 0.0, 3.0], [3.0, 9.0, 0.0, 4.0]]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((vnp.ones(3), vnp.zeros(2, int)), r"data has shape \(3,\)"),
        ((vnp.ones((2, 2)), vnp.zeros((2, 2), int)), "along the first axis"),
        ((vnp.ones(3), vnp.zeros(3, int), -1), "must not be negative"),
        ((vnp.ones(0), vnp.zeros(0, int)), "needs num_segments"),
        ((vnp.ones(3), vnp.zeros(3, int), 1, False, False, 0), "must be positive"),
    ],
)
def test_wrong_sizes_are_said(args: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verax.ops.segment_sum(*args)  # type: ignore[arg-type]  # that is the point


def test_wrong_kinds_are_said() -> None:
    with pytest.raises(TypeError, match="segment_ids must be integers, not float32"):
        verax.ops.segment_sum(vnp.ones(2), vnp.ones(2))
    with pytest.raises(TypeError, match="data is of type list"):
        verax.ops.segment_sum([1.0], vnp.zeros(1, int))
    with pytest.raises(verax.errors.ConcretizationTypeError, match="num_segments, a"):
        verax.jit(verax.ops.segment_sum)(vnp.ones(2), vnp.zeros(2, int))


WAYS = pytest.mark.parametrize("way", [lambda f: f, verax.jit], ids=["eager", "jit"])
Z = np.array([1 + 2j, 1 - 3j, -2 + 5j, 1 + 2j, 0.5 - 1j], np.complex64)


@WAYS
@pytest.mark.parametrize(
    ("segment", "places", "winners"),
    [
        (verax.ops.segment_max, [0, 3, 4], [1, 0, 0, 1, 1]),
        (verax.ops.segment_min, [1, 2, 4], [0, 1, 1, 0, 1]),
    ],
    ids=["max", "min"],
)
def test_extremes_of_complex_segments(
    way: Callable[..., Any],
    segment: Callable[..., Array],
    places: list[int],
    winners: list[int],
) -> None:
    # Values and derivatives of jax 0.12: by real, then by imaginary part.
    ids = np.array([0, 0, 1, 1, 2])
    ct = np.full(3, 2 - 1j, np.complex64)
    y, pulled = way(
        lambda z: (
            segment(z, ids, 3),
            verax.vjp(lambda z: segment(z, ids, 3), z)[1](ct)[0],
        )
    )(Z)
    assert y.tolist() == Z[places].tolist()
    assert pulled.tolist() == (np.array(winners) * (2 - 1j)).tolist()


@WAYS
@pytest.mark.parametrize(
    ("name", "first", "tangent"),
    [("max", 2 - 3j, 2 - 1j), ("min", 1 + 2j, 1 + 1j)],
)
def test_complex_updates_share_ties(
    way: Callable[..., Any], name: str, first: complex, tangent: complex
) -> None:
    # Those of jax 0.12.
    u = np.array([1 + 3j, 2 - 3j, 1 + 2j], np.complex64)
    ts = np.full(5, 1 + 1j, np.complex64), np.full(3, 2 - 1j, np.complex64)

    def update(z: Array, u: Array) -> Any:
        return getattr(z.at[np.array([0, 0, 3])], name)(u)

    y, t = way(lambda z, u, ts: verax.jvp(update, (z, u), ts))(vnp.array(Z), u, ts)
    assert y.tolist() == [first, *Z[1:].tolist()]
    assert t.tolist() == [tangent, 1 + 1j, 1 + 1j, 1.5, 1 + 1j]
