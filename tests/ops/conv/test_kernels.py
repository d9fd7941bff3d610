"""Convolutions as shifted products: the same values as by the interpreter."""

from functools import partial
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import verax
from property_tests.levels import crossed
from tests.efforts import by_xla
from tests.ops.agreement import trace
from tests.ops.laws import ENGINE
from verax import lax
from verax.ir.dtypes import float32
from verax.ops.conv import kernels
from verax.ops.conv.primitive import (
    conv_general_dilated_p,
    convolve_in_groups,
    draw_conv,
)


def drawn(count: int) -> list[Any]:
    """Random convolutions in groups: strides, dilations, padding that crops, orders."""
    random = Random(5)
    out: list[Any] = []
    while len(out) < count:
        sample = draw_conv(random)
        params = evolve(sample.params, preferred_element_type=None)
        avals = [aval.with_dtype(float32) for aval in sample.avals]
        if kernels.suits(params, avals):
            out.append((params, avals))
    return out


def test_values_are_those_of_the_interpreter() -> None:
    rng = np.random.default_rng(2)
    kinds = set()
    for params, avals in drawn(300):
        xs = [rng.integers(-4, 5, aval.shape).astype(np.float32) for aval in avals]
        kind = kernels.kind_of(params, *[x.shape for x in xs])
        kinds.add(kind and kind.__name__)
        call = partial(conv_general_dilated_p.call, params)
        (due,) = ENGINE.evaluate(trace(call, *xs), xs)
        jaxpr = trace(partial(convolve_in_groups, params), *xs)
        np.testing.assert_array_equal(ENGINE.evaluate(jaxpr, xs)[0], due)
    assert kinds >= {"of_groups", "of_kernel"}


@pytest.mark.parametrize("function", [kernels.of_groups, kernels.of_kernel])
def test_one_group_of_every_kind(function: kernels.Convolve) -> None:
    random, rng = Random(7), np.random.default_rng(7)
    tried = 0
    while tried < 60:
        sample = draw_conv(random)
        params = evolve(sample.params, preferred_element_type=None)
        xs = [
            rng.integers(-4, 5, aval.shape).astype(np.float32) for aval in sample.avals
        ]
        if params.feature_group_count * params.batch_group_count > 1:
            continue
        starts = [range(*s) for s in kernels.places(params, xs[0].shape, xs[1].shape)]
        if not all([*xs[0].shape, *xs[1].shape, *starts]):
            continue
        batch = xs[0].shape[params.dimension_numbers.lhs_spec[0]]
        if batch * prod(map(len, starts)) > kernels.WRITTEN:
            continue
        tried += 1
        call = partial(conv_general_dilated_p.call, params)
        (due,) = ENGINE.evaluate(trace(call, *xs), xs)
        jaxpr = trace(partial(function, params), *xs)
        np.testing.assert_array_equal(ENGINE.evaluate(jaxpr, xs)[0], due)


ONE_GROUP = {
    "a filter": ((2, 1, 90, 90), (1, 1, 5, 5), "NCHW OIHW NCHW"),
    "a large filter": ((2, 1, 100, 100), (2, 1, 10, 11), "NCHW OIHW NCHW"),
    "colours": ((2, 3, 32, 32), (8, 3, 3, 3), "NCHW OIHW NCHW"),
    "channels last": ((2, 40, 40, 3), (3, 3, 3, 4), "NHWC HWIO NHWC"),
    "a signal": ((1, 1, 3000), (1, 1, 40), "NCH OIH NCH"),
    "a solid": ((1, 2, 12, 12, 12), (2, 2, 2, 3, 2), "NCDHW OIDHW NCDHW"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "strides"), crossed(ONE_GROUP, [1, 2]))
def test_few_features_have_no_convolution(name: str, strides: int) -> None:
    shape, window, layout = ONE_GROUP[name]
    rng = np.random.default_rng(4)
    x, k = (rng.normal(size=s).astype(np.float32) for s in (shape, window))
    count = len(shape) - 2

    def f(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            k,
            (strides,) * count,
            [(1, 2)] * count,
            rhs_dilation=(3 - strides,) * count,
            dimension_numbers=tuple(layout.split()),
        )

    def slopes(x: Any, k: Any) -> Any:
        return verax.grad(lambda *xs: (verax.numpy.sin(f(*xs))).sum(), (0, 1))(x, k)

    def both(x: Any, k: Any) -> Any:
        return f(x, k), *slopes(x, k)

    if strides == 1:
        assert "stablehlo.convolution" not in verax.jit(f).lower(x, k).as_text()
    for one, other in zip(verax.jit(both)(x, k), by_xla(both, x, k), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "window"),
    [
        ((2, 64, 16, 16), (64, 64, 3, 3)),
        ((1, 1, 12, 12), (1, 1, 3, 3)),
        ((8, 3, 64, 64), (40, 3, 5, 5)),
    ],
)
def test_others_are_left_to_xla(shape: tuple[int, ...], window: Any) -> None:
    text = verax.jit(lax.conv_general_dilated, static_argnums=(2, 3)).lower(
        np.ones(shape, "f4"), np.ones(window, "f4"), (1, 1), "SAME"
    )
    assert "stablehlo.convolution" in text.as_text()


CASES = {
    "depthwise": ((2, 8, 9, 9), (8, 1, 3, 3), "NCHW OIHW NCHW", 8),
    "channels last": ((2, 9, 9, 8), (3, 3, 1, 8), "NHWC HWIO NHWC", 8),
    "a multiplier": ((2, 4, 9, 9), (12, 1, 3, 3), "NCHW OIHW NCHW", 4),
    "few features": ((6, 8, 9, 9), (8, 2, 3, 3), "NCHW OIHW NCHW", 4),
    "many features": ((2, 24, 9, 9), (24, 12, 3, 3), "NCHW OIHW NCHW", 2),
    "a line": ((3, 50, 8), (4, 1, 8), "NHC HIO NHC", 8),
    "a solid": ((2, 4, 5, 5, 5), (4, 1, 3, 3, 3), "NCDHW OIDHW NCDHW", 4),
    "another order": ((2, 8, 9, 9), (8, 1, 3, 3), "NCHW OIHW NHWC", 8),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "strides"), crossed(CASES, [1, 2]))
def test_values_and_slopes_are_those_of_xla(name: str, strides: int) -> None:
    shape, window, layout, groups = CASES[name]
    rng = np.random.default_rng(3)
    x, k = (rng.normal(size=s).astype(np.float32) for s in (shape, window))
    count = len(shape) - 2

    def f(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            k,
            (strides,) * count,
            "SAME",
            rhs_dilation=(3 - strides,) * count,
            dimension_numbers=tuple(layout.split()),
            feature_group_count=groups,
        )

    def slopes(x: Any, k: Any) -> Any:
        return verax.grad(lambda *xs: (verax.numpy.sin(f(*xs))).sum(), (0, 1))(x, k)

    def both(x: Any, k: Any) -> Any:
        return f(x, k), *slopes(x, k)

    assert f"group_count = {groups}" not in verax.jit(both).lower(x, k).as_text()
    for one, other in zip(verax.jit(both)(x, k), by_xla(both, x, k), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


def test_many_large_groups_are_left_to_xla() -> None:
    x, k = np.ones((1, 40 * 9, 8), np.float32), np.ones((40 * 9, 9, 3), np.float32)
    f = verax.jit(
        lambda x, k: lax.conv_general_dilated(
            x, k, (1,), "SAME", feature_group_count=40
        )
    )
    assert "feature_group_count = 40" in f.lower(x, k).as_text()
    np.testing.assert_allclose(f(x, k)[0, 0, 4], 27)
