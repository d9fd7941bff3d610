"""The cotangent of the kernel of a transposed convolution: windows of the cotangent."""

from random import Random
from typing import Any

import numpy as np
import pytest

import verax
from verax import lax

COUNT = 12


def drawn(seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """A convolution of a spread array, that array and a kernel, in any orders."""
    random, rng = Random(seed), np.random.default_rng(seed)
    rank = random.choice([1, 2, 3])

    def sizes(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(rank)]

    letters = "XYZ"[:rank]
    specs = ["".join(random.sample(s + letters, rank + 2)) for s in ("NC", "OI", "NC")]
    batch, inner, features = sizes(1, 3)[0], sizes(1, 3)[0], sizes(1, 3)[0]
    named = {"N": batch, "C": inner, "I": inner, "O": features}
    space, window = sizes(2, 5), sizes(1, 4)
    padding = [(random.randint(-1, 3), random.randint(2, 5)) for _ in letters]
    base, spread = sizes(2, 3), sizes(1, 2)

    def f(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(
            x, k, (1,) * rank, padding, base, spread, tuple(specs)
        )

    def array(spec: str, extents: list[int]) -> np.ndarray:
        every = {**named, **dict(zip(letters, extents, strict=True))}
        return rng.integers(-3, 4, [every[c] for c in spec]).astype("f4")

    return f, array(specs[0], space), array(specs[1], window)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_the_cotangent_of_a_kernel(seed: int) -> None:
    f, x, k = drawn(seed)
    out = np.asarray(f(x, k))
    ct = np.random.default_rng(seed).integers(-3, 4, out.shape).astype("f4")
    (found,) = verax.vjp(lambda k: f(x, k), k)[1](ct)
    expected = np.zeros_like(k)
    for place in np.ndindex(*k.shape):
        unit = np.zeros_like(k)
        unit[place] = 1
        expected[place] = np.sum(np.asarray(f(x, unit)) * ct)
    np.testing.assert_array_equal(found, expected)
    jitted = verax.jit(lambda k: verax.vjp(lambda k: f(x, k), k)[1](ct)[0])
    np.testing.assert_array_equal(jitted(k), expected)


def test_windows_are_dilated_and_not_the_array() -> None:
    x, k = np.ones((2, 8, 6, 6), "f4"), np.ones((3, 3, 8, 4), "f4")

    def loss(k: Any) -> Any:
        y = lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=SPECS)
        return (y**2).sum()

    text = str(verax.make_jaxpr(verax.grad(loss))(k))
    last = text.rindex("conv_general_dilated")
    assert "lhs_dilation=(1, 1)" in text[last:], text
    assert "rhs_dilation=(2, 2)" in text[last:]


SPECS = ("NCHW", "HWIO", "NCHW")
