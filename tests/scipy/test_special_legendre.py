"""Associated Legendre functions."""

import numpy as np
import pytest
from scipy.special import lpmv

import verax
import verax.numpy as vnp
from verax.scipy.special import lpmn, lpmn_values, sph_harm_y

POINTS = np.linspace(-1, 1, 7)
LAST = 6


@verax.enable_x64()
def test_the_functions_are_those_of_scipy() -> None:
    actual = lpmn_values(LAST, LAST, POINTS, False)
    orders = range(LAST + 1)
    wanted = [[lpmv(k, degree, POINTS) for degree in orders] for k in orders]
    assert np.allclose(actual, wanted, rtol=1e-12, atol=1e-12)


@verax.enable_x64()
def test_with_norms_they_are_those_of_spherical_harmonics() -> None:
    actual = lpmn_values(LAST, LAST, POINTS, True)
    for k in range(LAST + 1):
        for degree in range(k, LAST + 1):
            wanted = sph_harm_y(degree, k, np.arccos(POINTS), 0.0)
            assert np.allclose(actual[k, degree], wanted.real, atol=1e-7)


@verax.enable_x64()
def test_their_slopes() -> None:
    inside = POINTS[1:-1]
    _, slopes = lpmn(LAST, LAST, inside)
    step = 1e-6
    above, below = (
        lpmn_values(LAST, LAST, inside + sign * step, False) for sign in (1, -1)
    )
    assert np.allclose(slopes, (above - below) / (2 * step), rtol=1e-6, atol=1e-6)
    pulled = verax.jacrev(lambda z: lpmn_values(LAST, LAST, z, False))(inside)
    assert np.allclose(vnp.einsum("klzz->klz", pulled), slopes)


def test_slopes_at_the_ends() -> None:
    _, slopes = lpmn(2, 2, vnp.array([1.0]))
    assert slopes[..., 0].tolist() == [[0, 1, 3], [0, np.inf, np.inf], [0, 0, -6]]
    gradient = verax.grad(lambda z: lpmn_values(2, 2, z[None], False)[0, 2, 0])
    assert gradient(1.0) == 3


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_in_the_dtype_of_the_points(dtype: str) -> None:
    z = vnp.asarray(POINTS, dtype)
    out = verax.jit(lambda z: lpmn_values(2, 2, z, True))(z)
    assert out.dtype == dtype
    assert out.shape == (3, 3, 7)
    assert lpmn_values(0, 0, vnp.zeros(0), False).shape == (1, 1, 0)


def test_wrong_calls() -> None:
    with pytest.raises(NotImplementedError, match="must be equal"):
        lpmn_values(2, 3, vnp.ones(2), False)
    with pytest.raises(TypeError, match="takes floats"):
        lpmn(2, 2, vnp.arange(2))
    for order, z in ((2, vnp.ones(())), (-1, vnp.ones(2))):
        with pytest.raises(ValueError, match="takes a vector and an order"):
            lpmn_values(order, order, z, False)
