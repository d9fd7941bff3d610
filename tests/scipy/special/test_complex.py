"""Special functions of complex numbers, against SciPy."""

import cmath
from typing import Any

import numpy as np
import pytest
import scipy.special

import verax
from verax.scipy import special

HALF = np.linspace(-6.4, 6.3, 9)
GRID = (HALF[:, None] + 1j * HALF[None, :] / 3).ravel()


@pytest.mark.parametrize("z", [*GRID, 3.0 - 40j, -30.3 + 2j, -0.5, 5.0, 1e-3j])
def test_gamma(z: complex) -> None:
    with verax.enable_x64():
        actual = complex(special.gamma(complex(z)))
    expected = complex(scipy.special.gamma(complex(z)))
    assert cmath.isclose(actual, expected, rel_tol=1e-12, abs_tol=1e-290)
    narrow = complex(special.gamma(np.complex64(z)))
    expected = complex(scipy.special.gamma(complex(np.complex64(z))))
    assert cmath.isclose(narrow, expected, rel_tol=5e-5, abs_tol=1e-30)


@pytest.mark.parametrize("z", [0j, -1 + 0j, -20 + 0j, complex(cmath.nan, 0)])
def test_gamma_at_its_poles(z: complex) -> None:
    for function in (special.gamma, verax.jit(special.gamma)):
        value = complex(function(z))
        assert np.isnan([value.real, value.imag]).all()


@pytest.mark.parametrize("z", [2 + 1j, -1.5 + 0.3j, -1.5 - 0.3j, 3 + 0j, 0.2 + 0j])
def test_slope_of_gamma(z: complex) -> None:
    with verax.enable_x64():
        actual = complex(verax.grad(special.gamma, holomorphic=True)(z))
    expected = scipy.special.gamma(z) * scipy.special.digamma(z)
    assert cmath.isclose(actual, complex(expected), rel_tol=1e-12)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (1, 1j),
        (2j, 2.0),
        (0j, 0j),
        (0j, -1 + 0j),
        (0j, complex(cmath.inf, 0)),
        (1j, 0j),
    ],
)
def test_logarithms_with_a_factor(name: str, x: complex, y: complex) -> None:
    actual = np.asarray(getattr(special, name)(x, y))
    expected = getattr(scipy.special, name)(complex(x), complex(y))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_slopes_of_logarithms_with_a_factor_of_zero() -> None:
    def slope(function: Any, at: complex) -> complex:
        return complex(verax.grad(function, holomorphic=True)(at))

    assert cmath.isclose(
        slope(lambda x: special.xlogy(x, 2j), 0j), cmath.log(2j), rel_tol=1e-6
    )
    assert slope(lambda y: special.xlogy(0j, y), 0j) == 0
    assert slope(lambda y: special.xlogy(1j, y), 2j) == 0.5


@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_functions_of_real_numbers_refuse_complex_ones(error: Any) -> None:
    """JAX raises the one class in one function and the other in another."""
    with pytest.raises(error, match="dawsn does not support complex-valued inputs"):
        special.dawsn(1j)
    with pytest.raises(error, match="entr does not support complex-valued inputs"):
        verax.jit(special.entr)(np.ones(2, "complex64"))
