"""Windows of few elements as shifted arrays: the same values, and the same places."""

from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from property_tests.levels import crossed
from tests.efforts import by_xla
from tests.ops.agreement import trace
from tests.ops.laws import ENGINE
from verax import lax
from verax.ops.windows import kernels
from verax.ops.windows.reduce_window import (
    draw_window_params,
    read_flat,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    winners,
)

ROWS = {
    "sum": (reduce_window_sum_p, lax.add, 0.0),
    "max": (reduce_window_max_p, lax.max, -np.inf),
    "min": (reduce_window_min_p, lax.min, np.inf),
}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1.0, 2.0], "f4")


def drawn(seed: int, count: int) -> list[tuple[Any, tuple[int, ...]]]:
    random = Random(seed)
    return [draw_window_params(random) for _ in range(count)]


@pytest.mark.parametrize("name", ROWS)
def test_values_are_those_of_the_interpreter(name: str) -> None:
    row, combine, init = ROWS[name]
    rng = np.random.default_rng(1)
    tried = 0
    for params, shape in drawn(1, 400):
        x = rng.integers(-4, 5, shape).astype("f4")
        if not kernels.suits(params, [verax.typeof(x)]):
            continue
        tried += 1
        (due,) = ENGINE.evaluate(trace(partial(row.bind, params), x), [x])
        jaxpr = trace(partial(kernels.along_each, combine, init, params), x)
        np.testing.assert_array_equal(ENGINE.evaluate(jaxpr, [x])[0], due)
    assert tried > 100


@pytest.mark.slow
@pytest.mark.parametrize("largest", [True, False])
def test_first_extremes_are_where_a_window_reduction_finds_them(largest: bool) -> None:
    row = reduce_window_max_p if largest else reduce_window_min_p
    rng = np.random.default_rng(2)
    padded = tiled = 0
    for params, shape in drawn(2, 400):
        plain = evolve(
            params, base_dilation=(1,) * len(shape), window_dilation=(1,) * len(shape)
        )
        x = rng.choice(SPECIAL, shape)
        try:
            y = np.asarray(row.call(plain, vnp.array(x)))
        except ValueError:
            continue
        if not y.size or not kernels.is_plain(plain, verax.typeof(x)):
            continue
        t = rng.integers(1, 9, shape).astype("f4")
        due = read_flat(vnp.array(t), winners(plain, vnp.array(x), largest))
        args = plain, vnp.array(x), vnp.array(y)
        places = kernels.flat_places(*args)
        np.testing.assert_array_equal(read_flat(vnp.array(t), places), due)
        padded += max(map(max, plain.padding)) > 0
        if kernels.is_tiling(plain):
            tiled += 1
            tangents = kernels.tangents_of_tiles(*args, vnp.array(t))
            np.testing.assert_array_equal(tangents, due)
    assert padded > 50
    assert tiled > 3


POOLS: dict[str, tuple[Any, Any, Any, Any]] = {
    "tiles": ((2, 9, 8), (1, 2, 2), (1, 2, 2), "VALID"),
    "channels last": ((2, 6, 6, 3), (1, 3, 2, 1), (1, 3, 2, 1), "VALID"),
    "overlapping": ((2, 9, 9), (1, 3, 3), (1, 2, 2), "SAME"),
    "each step": ((7, 8), (3, 2), (1, 1), "VALID"),
    "cropped": ((7, 8), (2, 2), (2, 2), ((-1, 1), (1, -2))),
}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "name"), crossed(POOLS, ROWS))
def test_pooling_and_its_derivatives(case: str, name: str) -> None:
    shape, window, strides, padding = POOLS[case]
    _, combine, init = ROWS[name]
    x = np.random.default_rng(3).standard_normal(shape).astype("f4")

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, init, combine, window, strides, padding)

    def slopes(x: Any) -> Any:
        return verax.grad(lambda x: (vnp.sin(pool(x)) * 3).sum())(x)

    def twice(x: Any) -> Any:
        return verax.jvp(slopes, (x,), (vnp.cos(x),))[1]

    def all_three(x: Any) -> Any:
        return pool(x), slopes(x), twice(x)

    assert "reduce_window" not in verax.jit(all_three).lower(x).as_text()
    expected = by_xla(all_three, x)
    compiled = verax.jit(all_three)(x)
    batched = verax.jit(verax.vmap(all_three))(np.stack([x, 2 * x]))
    for f, due, one, many in zip(
        (pool, slopes, twice), expected, compiled, batched, strict=True
    ):
        np.testing.assert_allclose(one, due, 1e-5, 1e-5)
        np.testing.assert_allclose(f(x), due, 1e-5, 1e-5)
        np.testing.assert_allclose(many[0], due, 1e-5, 1e-5)
    assert "reduce_window" in verax.jit(pool, cpu_lowerings="xla").lower(x).as_text()


def test_long_windows_are_left_to_xla() -> None:
    text = verax.jit(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (40,), (1,), "SAME")
    ).lower(np.ones(100, "f4"))
    assert "reduce_window" in text.as_text()
