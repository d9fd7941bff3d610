"""Gather and scatter to the letter, against loops over every index and element.

One idea: a plan lists which element of the operand each element of the windows is, or
that it is none; values and derivatives of all seven operations follow from the plan.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen
from hypothesis import given, settings, strategies as st

import verax
from property_tests.levels import by_turns
from verax import lax
from verax.ir.avals import ShapedArray, iinfo
from verax.ops.indexing.gather_impl import draw_gather
from verax.ops.indexing.geometry import GatherDimensionNumbers, window_shape
from verax.ops.indexing.scatter_impl import slice_sizes, writing
from verax.rules.values.constants import FLOAT

type Place = tuple[int, ...]
type Plan = list[tuple[Place | None, Place]]
MODES = ("clip", "fill", "drop", "promise_in_bounds", None)
SCATTERS: dict[str, Callable[..., Any]] = {
    "scatter": lax.scatter,
    "scatter_add": lax.scatter_add,
    "scatter_sub": lax.scatter_sub,
    "scatter_mul": lax.scatter_mul,
    "scatter_min": lax.scatter_min,
    "scatter_max": lax.scatter_max,
}
SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=max(10, settings().max_examples // 3))


@frozen
class Call:
    """Dimension numbers, window sizes, mode, promises and operands of one call."""

    dims: GatherDimensionNumbers
    sizes: Place
    mode: str | None
    promises: dict[str, bool]
    operand: np.ndarray
    indices: np.ndarray
    updates: np.ndarray
    fill: float | None

    def plan(self) -> Plan:
        """Which element of the operand each element of the windows is."""
        return list(planned(self))


def planned(call: Call) -> Iterator[tuple[Place | None, Place]]:
    dims, shape, sizes = call.dims, call.operand.shape, call.sizes
    windowed = dims.windowed(len(shape))
    for batch in product(*map(range, call.indices.shape[:-1])):
        start = [0] * len(shape)
        for element, d in zip(call.indices[batch], dims.start_index_map, strict=True):
            start[d] = int(element)
        for d, i in zip(
            dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True
        ):
            start[d] = batch[i]
        room = [size - window for size, window in zip(shape, sizes, strict=True)]
        if call.mode == "clip":
            start = [min(max(s, 0), r) for s, r in zip(start, room, strict=True)]
        inside = all(0 <= s <= r for s, r in zip(start, room, strict=True))
        for offset in product(*(range(sizes[d]) for d in windowed)):
            place = list(start)
            for d, step in zip(windowed, offset, strict=True):
                place[d] += step
            inner, outer = iter(offset), iter(batch)
            rank = len(batch) + len(windowed)
            where = tuple(
                next(inner) if d in dims.offset_dims else next(outer)
                for d in range(rank)
            )
            yield tuple(place) if inside else None, where


def draw(seed: int, mode: str | None) -> Call:
    """A call with indices in and out of bounds, negative and duplicate."""
    random = Random(seed)
    sample = draw_gather(random, FLOAT)
    p, (operand, indices) = sample.params, sample.avals
    generator = np.random.default_rng(seed)
    room = [
        operand.shape[d] - p.slice_sizes[d] for d in p.dimension_numbers.start_index_map
    ]
    if mode == "promise_in_bounds":
        values = [generator.integers(0, r + 1, indices.shape[:-1]) for r in room]
    else:
        values = [generator.integers(-3, r + 4, indices.shape[:-1]) for r in room]
    stacked = np.stack([*values, np.zeros(indices.shape[:-1], int)], -1)[..., :-1]
    limits = iinfo(indices.dtype)
    stacked = np.clip(stacked, int(limits.min), int(limits.max))
    shape = window_shape(p.dimension_numbers, indices.shape, p.slice_sizes)
    call = Call(
        p.dimension_numbers,
        p.slice_sizes,
        mode,
        {},
        generator.integers(-2, 3, operand.shape).astype(np.float32),
        stacked.astype(indices.dtype),
        generator.integers(-2, 3, shape).astype(np.float32),
        random.choice((None, 0.0, 7.0)),
    )
    return evolve(call, promises=promised(call, random))


def promised(call: Call, random: Random) -> dict[str, bool]:
    """Hints that are true of this call."""
    batches = product(*map(range, call.indices.shape[:-1]))
    vectors = [tuple(call.indices[batch]) for batch in batches]
    places = [place for place, _ in call.plan()]
    plain = not call.dims.operand_batching_dims
    unique = len(set(places)) == len(places) and None not in places
    ordered = plain and vectors == sorted(vectors) and None not in places
    if call.mode == "clip":
        ordered = False
    return {
        "unique_indices": unique and random.random() < 0.8,
        "indices_are_sorted": ordered and random.random() < 0.8,
    }


def gathered(call: Call) -> Callable[[Any], Any]:
    """The library's gather, as a function of the operand."""
    return lambda x: lax.gather(
        x,
        call.indices,
        call.dims,
        call.sizes,
        mode=call.mode,
        fill_value=call.fill,
        **call.promises,
    )


def scattered(name: str, call: Call) -> Callable[[Any, Any], Any]:
    """The library's scatter, as a function of operand and updates."""
    dims = lax.ScatterDimensionNumbers(
        call.dims.offset_dims,
        call.dims.collapsed_slice_dims,
        call.dims.start_index_map,
        call.dims.operand_batching_dims,
        call.dims.start_indices_batching_dims,
    )
    return lambda x, u: SCATTERS[name](
        x, call.indices, u, dims, mode=call.mode, **call.promises
    )


@pytest.mark.parametrize("mode", MODES)
@FEW
@given(seed=SEEDS)
def test_gather_is_the_loop_over_its_plan(mode: str | None, seed: int) -> None:
    call = draw(seed, mode)
    if mode is None:
        # The default is a promise.
        call = draw(seed, "promise_in_bounds")
    filling = call.mode in ("fill", "drop")
    out = np.zeros(call.updates.shape, np.float32)
    ct = np.arange(1, out.size + 1, dtype=np.float32).reshape(out.shape)
    pulled = np.zeros_like(call.operand)
    pushed = np.zeros_like(out)
    for place, where in call.plan():
        if place is None:
            assert filling
            out[where] = np.nan if call.fill is None else call.fill
            continue
        out[where] = call.operand[place]
        pulled[place] += ct[where]
        pushed[where] = call.operand[place]
    f = gathered(call)
    np.testing.assert_array_equal(f(call.operand), out)
    np.testing.assert_array_equal(verax.jit(f)(call.operand), out)
    _, pull = verax.vjp(f, call.operand)
    np.testing.assert_array_equal(pull(verax.numpy.asarray(ct))[0], pulled)
    _, tangent = verax.jvp(f, (call.operand,), (call.operand,))
    np.testing.assert_array_equal(tangent, pushed)


def model(name: str, call: Call, ct: np.ndarray) -> tuple[np.ndarray, ...]:
    """The value of a scatter, and the cotangents of its operand and its updates."""
    x, u, plan = call.operand, call.updates, call.plan()
    writers: dict[Place, list[Place]] = {}
    for place, where in plan:
        if place is not None:
            writers.setdefault(place, []).append(where)
    value, to_x, to_u = x.copy(), ct.copy(), np.zeros_like(u)
    for place, wheres in writers.items():
        values = [x[place], *(u[where] for where in wheres)]
        shares, value[place] = combined(name, values)
        to_x[place] = ct[place] * shares[0]
        for where, share in zip(wheres, shares[1:], strict=True):
            to_u[where] = ct[place] * share
    return value, to_x, to_u


def combined(name: str, values: list[Any]) -> tuple[list[float], float]:
    """What becomes of an element and its updates, and the derivative by each."""
    count = len(values)
    match name:
        case "scatter":
            return [0.0] * (count - 1) + [1.0], values[-1]
        case "scatter_add":
            return [1.0] * count, sum(values)
        case "scatter_sub":
            return [1.0] + [-1.0] * (count - 1), values[0] - sum(values[1:])
        case "scatter_mul":
            others = [np.prod(values[:i] + values[i + 1 :]) for i in range(count)]
            return others, np.prod(values)
    extreme = min(values) if name == "scatter_min" else max(values)
    ties = Counter(values)[extreme]
    return [float(v == extreme) / ties for v in values], extreme


@pytest.mark.parametrize("mode", by_turns(MODES))
@pytest.mark.parametrize("name", SCATTERS)
@FEW
@given(seed=SEEDS)
def test_scatter_is_the_loop_over_its_plan(
    name: str, mode: str | None, seed: int
) -> None:
    call = draw(seed, mode)
    shape = call.operand.shape
    ct = np.arange(1, call.operand.size + 1, dtype=np.float32).reshape(shape)
    value, to_x, to_u = model(name, call, ct)
    f = scattered(name, call)
    np.testing.assert_array_equal(f(call.operand, call.updates), value)
    np.testing.assert_array_equal(verax.jit(f)(call.operand, call.updates), value)
    if name == "scatter_mul" and not call.promises["unique_indices"]:
        # A product of several factors has no derivative by them here, and says so.
        with pytest.raises(NotImplementedError, match="unique_indices=True"):
            verax.vjp(f, call.operand, call.updates)
        _, pull = verax.vjp(lambda x: f(x, call.updates), call.operand)
        np.testing.assert_array_equal(pull(verax.numpy.asarray(ct))[0], to_x)
        return
    out, pull = verax.vjp(f, call.operand, call.updates)
    np.testing.assert_array_equal(out, value)
    actual = pull(verax.numpy.asarray(ct))
    np.testing.assert_allclose(actual[0], to_x, 1e-6)
    np.testing.assert_allclose(actual[1], to_u, 1e-6)
    v, w = np.cos(to_x), np.sin(to_u)
    _, t = verax.jvp(f, (call.operand, call.updates), (v, w))
    forward = np.sum(np.asarray(t) * ct)
    np.testing.assert_allclose(forward, np.sum(v * to_x) + np.sum(w * to_u), 1e-4, 1e-3)


def test_plans_and_params_agree_on_the_windows() -> None:
    """The sizes that a scatter works out are those of the gather it reverses."""
    for seed in range(200):
        sample = draw_gather(Random(seed), FLOAT)
        operand, indices = sample.avals
        assert isinstance(operand, ShapedArray)
        p = sample.params
        shape = window_shape(p.dimension_numbers, indices.shape, p.slice_sizes)
        assert slice_sizes(writing(p), operand.shape, shape) == p.slice_sizes
