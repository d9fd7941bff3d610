"""The extremes of complex numbers: by real part, then by imaginary part."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

Z: Final = np.array([1 + 2j, 1 - 3j, -2 + 5j, 1 + 2j, 0.5 - 1j], np.complex64)
T: Final = np.arange(5).astype(np.complex64) * (1 + 1j) + 1j
TWO_TIES: Final = 1.5 + 2.5j


@pytest.mark.parametrize("way", [lambda f: f, verax.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("running", "places", "tangents"),
    [
        (lax.cummax, [0] * 5, [1j, 1j, 1j, TWO_TIES, TWO_TIES]),
        (lax.cummin, [0, 1, 2, 2, 2], T[[0, 1, 2, 2, 2]]),
    ],
    ids=["cummax", "cummin"],
)
def test_running_extremes(
    way: Callable[..., Any], running: Callable[..., Any], places: Any, tangents: Any
) -> None:
    # The values of jax, which has no derivatives of them.
    y, t = way(lambda x, t: verax.jvp(running, (x,), (t,)))(Z, T)
    assert y.tolist() == Z[places].tolist()
    np.testing.assert_allclose(t, tangents)


def test_running_extremes_from_the_end() -> None:
    assert (
        lax.cummax(vnp.array(Z), reverse=True).tolist() == Z[[0, 0, 0, 3, 4]].tolist()
    )


@pytest.mark.parametrize("way", [lambda f: f, verax.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("bad", [complex(np.nan, 1), complex(1.5, np.nan)])
def test_a_nan_is_the_extreme_wherever_it_stands(
    way: Callable[..., Any], name: str, bad: complex
) -> None:
    pair = getattr(lax, name)

    def extremes(x: Any) -> list[Any]:
        return [
            pair(x[0], x[1]),
            pair(x[1], x[2]),
            getattr(lax, f"reduce_{name}")(x, (0,)),
            getattr(lax, f"cum{name}")(x)[2],
            getattr(vnp.ones(1, x.dtype).at[np.zeros(3, int)], name)(x)[0],
            lax.reduce_window(x, np.complex64(1), pair, (3,), (1,), "VALID")[0],
        ]

    x = vnp.array([1, bad, 2], np.complex64)
    for y in way(extremes)(x):
        np.testing.assert_array_equal(y, x[1])


@pytest.mark.parametrize("way", [lambda f: f, verax.jit], ids=["eager", "compiled"])
def test_windows(way: Callable[..., Any]) -> None:
    x = np.stack([Z[:3], np.array([0, 3 - 3j, 3 + 1j], np.complex64)])

    def largest(x: Any) -> Any:
        lowest = np.complex64(complex(-np.inf, -np.inf))
        return lax.reduce_window(x, lowest, lax.max, (1, 2), (1, 1), "VALID")

    y, t = way(lambda x: verax.jvp(largest, (x,), (x * 1j,)))(x)
    assert y.tolist() == [[1 + 2j, 1 - 3j], [3 - 3j, 3 + 1j]]
    np.testing.assert_array_equal(t, y * 1j)
