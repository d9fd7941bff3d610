"""On a CPU large arrays are padded as bits; every dtype keeps its values."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.transforms.passes.values import assert_same_values
from verax import dtypes, lax
from verax.ops.structure.slicing import SEVERAL
from verax.transforms.passes.kernels import with_kernels

CONFIG = [(2, -1, 1), (1, 3, 0)]
WIDE = [
    dtypes.bfloat16,
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int32,
    np.int64,
]
OTHERS = [np.bool_, np.uint8, np.uint32, np.complex64]


def padded(x: Any) -> Any:
    return lax.pad(x, vnp.ones((), x.dtype), CONFIG)


def text_of(x: Any, function: Any = padded) -> str:
    return verax.jit(function).lower(x).as_text()


@pytest.mark.parametrize("dtype", [*WIDE, *OTHERS], ids=lambda d: np.dtype(d).name)
def test_values_of_every_dtype(dtype: Any) -> None:
    with verax.enable_x64():
        x = (np.random.default_rng(0).standard_normal((300, 150)) * 5).astype(dtype)
        assert ("bitcast_convert" in text_of(x)) == (dtype in WIDE)
        np.testing.assert_array_equal(verax.jit(padded)(x), np.asarray(padded(x)))


def test_bits_are_kept() -> None:
    """NaN with its payload, zeros with their signs, subnormal numbers."""
    bits = np.arange(SEVERAL, dtype="u4") * np.uint32(65521) + np.uint32(0x7F800001)
    x = bits.view("f4").reshape(256, -1)
    expected = lax.pad(bits.reshape(256, -1), np.uint32(7), CONFIG)
    value = np.uint32(7).view("f4")
    result = verax.jit(lambda x: lax.pad(x, value, CONFIG))(x)
    np.testing.assert_array_equal(np.asarray(result).view("u4"), expected)


def test_where_xla_has_vectors_it_pads_itself() -> None:
    x = np.ones((300, 300), "f4")
    for config in ([(1, 1), (0, 0)], [(0, 0), (0, 5)], [(3, 0), (3, 0)], [(0, 1)] * 2):
        assert "bitcast" not in text_of(x, lambda x, c=config: vnp.pad(x, c))
    assert "bitcast" not in text_of(x[:30, :30])
    xla = verax.jit(padded, cpu_lowerings="xla")
    assert "bitcast" not in xla.lower(x).as_text()


def test_derivatives_go_through() -> None:
    x = np.random.default_rng(1).standard_normal((300, 300)).astype("f4")

    def total(x: Any) -> Any:
        return (padded(vnp.sin(x)) ** 2).sum()

    expected = verax.jit(verax.grad(total), cpu_lowerings="xla")(x)
    np.testing.assert_allclose(verax.jit(verax.grad(total))(x), expected, 1e-5, 1e-6)
    closed = verax.make_jaxpr(verax.vmap(padded, 1, 1))(np.ones((40, 3, 40), "f4"))
    assert_same_values(
        closed, with_kernels(closed.jaxpr, True), np.ones((40, 3, 40), "f4")
    )
