"""Reductions keep their digits: eager = compiled = exact, on every axis and layout."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import assume, given, strategies as st

import verax
import verax.numpy as vnp
from verax import lax
from verax.ir.avals import finfo
from verax.ir.dtypes import is_complex, real_dtype
from verax.ops.indexing.scatter import segment_sum
from verax.scipy.special import logsumexp

type Axis = int | tuple[int, ...]

FLOATS = (
    *("float64", "float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn"),
    *("complex64", "complex128"),
)
VARIANCES = ("var", "std", "nanvar", "nanstd")
SMALLEST = ("float8_e5m2", "float8_e4m3fn")


@frozen
class Fold:
    """A reduction, what it is on numbers with more digits, and how far it may be off.

    `most` is in units in the last place of the result. Values lie between 1/16 and
    3/16, or near 1 for products. `one_axis` and `real` say what it takes.
    """

    found: Callable[[Any, Any], Any]
    exact: Callable[[np.ndarray, Any], Any]
    most: float = 6
    one_axis: bool = False
    real: bool = False
    product: bool = False


def plain(name: str, most: float = 6, **kwargs: Any) -> Fold:
    """A function that NumPy has under the same name."""
    ours, theirs = getattr(vnp, name), getattr(np, name)
    return Fold(
        lambda x, axis: ours(x, axis), lambda x, axis: theirs(x, axis), most, **kwargs
    )


def segments(x: Any, axis: int) -> Any:
    rows = vnp.moveaxis(x, axis, 0)
    return segment_sum(rows, np.zeros(rows.shape[0], np.int32), 1)[0]


# Compiled running sums of float64 are loops of up to 4,096 steps.
LOOP = 24
FOLDS = {
    **{
        name: plain(name) for name in ("sum", "mean", "var", "std", "nansum", "nanmean")
    },
    **{name: plain(name) for name in ("nanvar", "nanstd")},
    **{name: plain(name, LOOP, one_axis=True) for name in ("cumsum", "nancumsum")},
    **{name: plain(name, product=True) for name in ("prod", "nanprod")},
    "cumprod": plain("cumprod", LOOP, one_axis=True, product=True),
    "trapezoid": Fold(
        lambda x, axis: vnp.trapezoid(x, axis=axis),
        lambda x, axis: np.trapezoid(x, axis=axis),
        one_axis=True,
    ),
    "average": Fold(
        lambda x, axis: vnp.average(x, axis, x),
        lambda x, axis: np.average(x, axis, x),
        one_axis=True,
        real=True,
    ),
    "norm": Fold(
        lambda x, axis: vnp.linalg.norm(x, axis=axis),
        lambda x, axis: np.sqrt((abs(x) ** 2).sum(axis)),
        one_axis=True,
    ),
    "logsumexp": Fold(
        logsumexp, lambda x, axis: np.log(np.exp(x).sum(axis)), real=True
    ),
    "softmax": Fold(
        verax.nn.softmax,
        lambda x, axis: np.exp(x) / np.exp(x).sum(axis, keepdims=True),
        real=True,
    ),
    "cumlogsumexp": Fold(
        lax.cumlogsumexp,
        lambda x, axis: np.log(np.exp(x).cumsum(axis)),
        LOOP,
        one_axis=True,
        real=True,
    ),
    "reduce_sum": Fold(
        lambda x, axis: lax.reduce_sum(x, as_axes(axis)),
        lambda x, axis: x.sum(axis),
    ),
    "segment_sum": Fold(segments, lambda x, axis: x.sum(axis), 100, one_axis=True),
}


def as_axes(axis: Axis) -> Sequence[int]:
    return (axis,) if isinstance(axis, int) else axis


def values(fold: Fold, shape: Sequence[int], dtype: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    x: np.ndarray = random.random(shape)
    x = 1 + (x - 0.5) / 1000 if fold.product else (0.5 + x) / 8
    if is_complex(vnp.dtype(dtype)):
        x = x * np.exp(1j * random.random(shape) / 1000)
    return x.astype(vnp.dtype(dtype))


def ulps(result: Any, exact: np.ndarray) -> float:
    """The largest error, in units in the last place of the dtype that was found."""
    value = np.asarray(result)
    assert value.shape == exact.shape
    limits = finfo(real_dtype(value.dtype))
    size = np.maximum(np.abs(exact), float(limits.smallest_normal))
    error = np.abs(value.astype(exact.dtype) - exact) / size
    return float(np.max(error, initial=0)) / float(limits.eps)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, tuple[int, ...], Axis, tuple[int, ...]]:
    """A fold, a dtype, a shape of 100,000 elements or few, axes, an order in memory."""
    name = draw(st.sampled_from(sorted(FOLDS)))
    fold = FOLDS[name]
    dtype = draw(st.sampled_from(FLOATS))
    if fold.real and dtype.startswith("complex"):
        dtype = dtype.replace("complex64", "float32").replace("complex128", "float64")
    rank = draw(st.integers(1, 3))
    left, shape = (1000 if dtype in SMALLEST else 100_000), []
    for _ in range(rank - 1):
        shape.append(draw(st.sampled_from((1, 2, 3, 10, 33, 100, 1000))))
        shape[-1] = min(shape[-1], left)
        left //= shape[-1]
    shape = list(draw(st.permutations([*shape, left])))
    axes = draw(st.sets(st.integers(0, rank - 1), min_size=1))
    axis: Axis = min(axes) if fold.one_axis else tuple(sorted(axes))
    order = draw(st.permutations(range(rank)))
    return name, dtype, tuple(shape), axis, tuple(order)


@given(calls(), st.integers(0, 1000))
def test_reductions_keep_digits(call: Any, seed: int) -> None:
    name, dtype, shape, axis, order = call
    fold = FOLDS[name]
    terms = math.prod([shape[i] for i in as_axes(axis)])
    # Two numbers may be close to each other: their variance has lost its digits then.
    assume(terms >= (100 if name in VARIANCES else 2))
    x = values(fold, shape, dtype, seed)
    exact = np.asarray(fold.exact(widest(x), axis))
    most = fold.most
    if fold.product and dtype in ("float64", "complex128"):
        most += math.sqrt(terms) * 4  # Nothing is wider: each step rounds.
    with verax.enable_x64(True):
        stored = vnp.asarray(np.ascontiguousarray(x.transpose(order)))
        moved = vnp.transpose(stored, np.argsort(order).tolist())
        for run in (fold.found, verax.jit(fold.found, static_argnums=1)):
            assert ulps(run(moved, axis), exact) < most


def widest(x: np.ndarray) -> np.ndarray:
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    return x.astype(wide)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "cumsum", "norm"])
def test_ten_million_keep_digits(name: str, axis: int) -> None:
    fold = FOLDS[name]
    x = values(fold, (10**6, 10), "float32", 0)
    # In double precision, and in the order of memory, this takes a tenth of the time.
    wide = x.astype(np.float64)
    exact = fold.exact(np.asfortranarray(wide) if axis == 0 else wide, axis)
    for run in (fold.found, verax.jit(fold.found, static_argnums=1)):
        assert ulps(run(x, axis), exact) < 6
