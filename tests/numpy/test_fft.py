"""Fourier transforms against NumPy's."""

import numpy as np
import pytest

import verax
from verax.numpy import fft
from verax.test_util import check_grads

RANDOM = np.random.default_rng(0)
REAL = RANDOM.normal(size=(3, 4, 5, 6)).astype(np.float32)
COMPLEX = (REAL + 1j * RANDOM.normal(size=REAL.shape)).astype(np.complex64)


def operand(name: str) -> np.ndarray:
    return REAL if name.startswith(("rfft", "ihfft")) else COMPLEX


def check(name: str, *args: object) -> None:
    x = operand(name)
    actual = np.asarray(getattr(fft, name)(x, *args))
    want = getattr(np.fft, name)(x, *args)
    np.testing.assert_allclose(actual, want, rtol=1e-4, atol=1e-4 * abs(want).max())


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name: str, norm: str | None) -> None:
    for n in (None, 4, 5, 9):
        for axis in (-1, 0, 2):
            check(name, n, axis, norm)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_axes(name: str, norm: str | None) -> None:
    for axes in (None, (0, 1), (2, 0, 1), (-1,)):
        check(name, None, axes, norm)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_two_axes(name: str) -> None:
    check(name, (7, 3), (0, 2))
    check(name)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n: int) -> None:
    np.testing.assert_allclose(fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5), rtol=1e-6)
    np.testing.assert_allclose(fft.rfftfreq(n), np.fft.rfftfreq(n), rtol=1e-6)


def test_shifts() -> None:
    for axes in (None, 1, (0, 2)):
        np.testing.assert_array_equal(
            fft.fftshift(REAL, axes), np.fft.fftshift(REAL, axes)
        )
        np.testing.assert_array_equal(
            fft.ifftshift(REAL, axes), np.fft.ifftshift(REAL, axes)
        )


@pytest.mark.parametrize("n", [4, 5])
def test_gradient_of_energy(n: int) -> None:
    """The energy of a spectrum is n times that of the signal."""

    def energy(x: verax.Array) -> verax.Array:
        return (abs(fft.fft(x)) ** 2).sum()

    x = REAL[0, 0, 0, :n]
    actual = verax.jit(verax.grad(energy))(verax.numpy.asarray(x))
    np.testing.assert_allclose(np.asarray(actual), 2 * n * x, rtol=1e-4)


def test_errors() -> None:
    with pytest.raises(ValueError, match="real signals"):
        fft.rfft(COMPLEX)
    with pytest.raises(ValueError, match="at least 1"):
        fft.fft(REAL, 0)
    with pytest.raises(ValueError, match="norm"):
        fft.fft(REAL, norm="other")
    with pytest.raises(ValueError, match="fft_type must be"):
        verax.lax.fft(COMPLEX, "DCT", (6,))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty_signals_have_empty_transforms(shape: tuple[int, ...]) -> None:
    x = verax.numpy.zeros(shape)
    for f in (fft.fft, fft.ifft, fft.fftn):
        actual = f(x)
        assert actual.shape == shape
        assert actual.dtype == np.complex64
    actual = fft.irfft(x)
    assert actual.dtype == np.float32
    assert actual.shape == (*shape[:-1], 2 * max(shape[-1] - 1, 0))
    if shape[-1] == 0:
        with pytest.raises(ValueError, match="at least 1"):
            fft.rfft(x)
        with pytest.raises(ValueError, match="at least 1"):
            fft.fft(x, n=0)


def test_stacks_of_no_signals() -> None:
    assert fft.rfftn(np.zeros((0, 4), np.float32)).shape == (0, 3)
    assert fft.rfft2(np.zeros((0, 4), np.float32)).shape == (0, 3)
    with pytest.raises(ValueError, match="norm"):
        fft.fft(np.zeros((0, 4)), norm="other")


def test_several_axes_or_lengths_where_one_is_expected() -> None:
    x = np.ones((2, 3), np.float32)
    for f in (fft.fft, fft.ifft, fft.rfft, fft.irfft, fft.hfft, fft.ihfft):
        with pytest.raises(ValueError, match=f"{f.__name__} does not support multiple"):
            f(x, axis=(0, 1))  # type: ignore[arg-type]  # the error's subject
    for frequencies in (fft.fftfreq, fft.rfftfreq):
        with pytest.raises(ValueError, match="only takes an int"):
            frequencies([0, 1, 2])  # type: ignore[arg-type]  # the error's subject


@pytest.mark.parametrize(
    "shape", [(3000,), (301, 20), (64, 65), (15, 18, 19), (3, 7, 5, 6, 8)]
)
def test_half_of_the_spectrum_of_real_signals(shape: tuple[int, ...]) -> None:
    """Large ones are computed by `rfft`; the rest is the conjugate in reverse."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for axes in (None, (0,), (0, -1))[: 1 + min(x.ndim, 2)]:
        want = np.fft.fftn(x, axes=axes, norm="ortho")
        actual = fft.fftn(x, axes=axes, norm="ortho")
        np.testing.assert_allclose(actual, want, atol=2e-6 * x.size**0.5)
    text = str(verax.make_jaxpr(fft.fftn)(x))
    assert ("RFFT" in text) == (x.ndim > 1)


@pytest.mark.parametrize("shape", [(1,), (2, 6), (3, 7), (4, 5, 6)])
def test_gradients_of_halves(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    with verax.enable_x64():
        check_grads(fft.rfftn, (x,), 2)
        check_grads(fft.irfft, (x + 0j,), 2)
