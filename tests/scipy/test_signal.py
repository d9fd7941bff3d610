"""`verax.scipy.signal`, `fft`, `ndimage`, `interpolate`, `integrate` and `cluster`."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal

import verax
import verax.numpy as vnp
from verax.scipy import cluster, fft, integrate, interpolate, ndimage, signal

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=64)


@pytest.fixture(autouse=True)
def double() -> Any:
    with verax.enable_x64(True):
        yield


def close(result: Any, want: Any, tolerance: float = 1e-9) -> None:
    assert np.shape(result) == np.shape(want)
    np.testing.assert_allclose(np.asarray(result), want, tolerance, tolerance)


def same(name: str, *args: Any, **kwargs: Any) -> None:
    """One function of both libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(scipy.signal, name)(*args, **kwargs)
        actual = getattr(signal, name)(*args, **kwargs)
    if not isinstance(want, tuple):
        actual, want = (actual,), (want,)
    for one, other in zip(actual, want, strict=True):
        close(one, other)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("m", "n"), [(7, 3), (6, 4), (3, 7), (4, 6), (5, 5), (1, 1)])
def test_convolutions_of_vectors(mode: str, m: int, n: int) -> None:
    x, y = RANDOM.normal(size=m), RANDOM.normal(size=n)
    for name in ("convolve", "correlate"):
        for method in ("direct", "fft"):
            same(name, x, y, mode, method)
        same(name, x + 1j * x[::-1], y - 2j, mode)
    same("fftconvolve", x, y, mode)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_matrices(mode: str) -> None:
    shapes = [(5, 6), (2, 3), (4, 4), (5, 5), (1, 6)]
    for a in shapes:
        for b in shapes:
            x, y = RANDOM.normal(size=a), RANDOM.normal(size=b) * (1 + 1j)
            nested = all(m >= n for m, n in zip(a, b, strict=True)) or all(
                m <= n for m, n in zip(a, b, strict=True)
            )
            if mode == "valid" and not nested:
                with pytest.raises(ValueError, match="valid"):
                    signal.convolve2d(x, y, mode)
                continue
            same("convolve2d", x, y, mode)
            same("correlate2d", x, y, mode)
    cube, kernel = RANDOM.normal(size=(3, 4, 5)), RANDOM.normal(size=(2, 4, 2))
    same("convolve", cube, kernel, mode)
    same("fftconvolve", cube, kernel, mode, axes=(0, -1))


def test_convolutions_further() -> None:
    verax.test_util.check_grads(signal.convolve, (X[:6], X[:3]), 1)
    verax.test_util.check_grads(signal.fftconvolve, (X[:6], X[:3]), 1)
    many = verax.vmap(lambda x: signal.convolve(x, X[:3], "same"))(X.reshape(4, 16))
    close(many[2], np.convolve(X[32:48], X[:3], "same"))
    assert signal.convolve(np.arange(3), np.arange(2)).dtype == np.float64
    wrong: list[tuple[str, Any]] = [
        ("mode must be", lambda: signal.convolve(X, X, "other")),
        ("method must be", lambda: signal.convolve(X, X, method="other")),
        ("dimensions", lambda: signal.convolve(X, X[None])),
        ("empty", lambda: signal.convolve(X, X[:0])),
        ("matrices", lambda: signal.convolve2d(X, X)),
        ("boundary", lambda: signal.convolve2d(X[None], X[None], boundary="wrap")),
        (
            "axes",
            lambda: signal.fftconvolve(X.reshape(8, 8), X[:6].reshape(2, 3), axes=0),
        ),
    ]
    for match, call in wrong:
        with pytest.raises(ValueError, match=match):
            call()


def test_trends() -> None:
    x = X.reshape(4, 16)
    for kind in ("linear", "constant"):
        for axis in (0, 1, -1):
            same("detrend", x, axis, kind)
    same("detrend", x, bp=[4, 9])
    same("detrend", x[:, :1])
    with pytest.raises(ValueError, match="break points"):
        signal.detrend(x, bp=40)
    with pytest.raises(ValueError, match="type must be"):
        signal.detrend(x, type="other")


@pytest.mark.parametrize("complex_values", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nperseg": 12, "noverlap": 5, "nfft": 20},
        {"nperseg": 8, "window": ("kaiser", 4.0), "detrend": "linear"},
        {"nperseg": 9, "return_onesided": False},
    ],
)
def test_spectra(options: dict[str, Any], complex_values: bool) -> None:
    x = X + 1j * X[::-1] if complex_values else X
    y = x[:50] ** 2
    for name in ("welch", "csd"):
        args = (x, y) if name == "csd" else (x,)
        same(name, *args, 10.0, **options)
        same(name, *args, scaling="spectrum", average="median", **options)
        stacks = [np.stack([a, 2 * a], axis=1) for a in args]
        same(name, *stacks, axis=0, **options)
    for boundary in ("zeros", "even", "odd", "constant", None):
        same("stft", x, 10.0, boundary=boundary, **{"nperseg": 16, **options})
    same("stft", np.stack([x, x], axis=1), axis=0, **{"nperseg": 16, **options})


@pytest.mark.parametrize("window", ["hann", "boxcar", ("kaiser", 3.0)])
@pytest.mark.parametrize("size", [8, 9])
def test_synthesis(window: Any, size: int) -> None:
    for x in (X, X + 1j * X[::-1], X.reshape(2, 32)):
        two = np.iscomplexobj(x)
        _, _, z = scipy.signal.stft(
            x, 2.0, window, nperseg=size, return_onesided=not two
        )
        how = {"window": window, "nperseg": size, "input_onesided": not two}
        if x.ndim == 1:  # else SciPy's times are those of the first dimension
            same("istft", z, 2.0, **how)
        close(np.asarray(signal.istft(z, **how)[1])[..., : x.shape[-1]], x)
        moved = np.moveaxis(z, -1, 0)
        actual = signal.istft(moved, **how, time_axis=0, freq_axis=-1)[1]
        want = scipy.signal.istft(moved, **how, time_axis=0, freq_axis=-1)[1]
        close(actual, want)
    # SciPy takes the real part of a complex window for one-sided transforms.
    skew = np.exp(1j * np.arange(size))
    z = np.outer(skew, X[:7] + 1j * X[7:14])
    same("istft", z, window=skew, nperseg=size, input_onesided=False)
    verax.test_util.check_grads(
        lambda x: signal.istft(signal.stft(x, nperseg=8)[2] ** 2, nperseg=8)[1],
        (X[:16],),
        1,
        rtol=1e-5,
    )


def test_wrong_spectra() -> None:
    wrong: list[tuple[str, Any]] = [
        ("noverlap", lambda: signal.welch(X, nperseg=8, noverlap=8)),
        ("nfft", lambda: signal.welch(X, nperseg=8, nfft=7)),
        ("scaling", lambda: signal.welch(X, nperseg=8, scaling="other")),
        ("average", lambda: signal.welch(X, nperseg=8, average="other")),
        ("boundary", lambda: signal.stft(X, nperseg=8, boundary="other")),
        ("window", lambda: signal.stft(X, window=np.ones(9), nperseg=8)),
        ("positive", lambda: signal.stft(X, nperseg=0)),
        ("must differ", lambda: signal.istft(np.ones((3, 3)), time_axis=-2)),
    ]
    for match, call in wrong:
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.warns(UserWarning, match="longer"):
        signal.welch(X[:5], nperseg=8)
    assert signal.welch(X[:0])[1].shape == (0,)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_cosine_transforms(kind: int, norm: str | None) -> None:
    x = X.reshape(4, 16)[:, :7]
    for name in ("dct", "idct"):
        for n in (None, 5, 10):
            ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
            for axis in (0, -1):
                close(ours(x, kind, n, axis, norm), theirs(x, kind, n, axis, norm))
    for name in ("dctn", "idctn"):
        ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
        close(ours(x, kind, norm=norm), theirs(x, kind, norm=norm))
        close(ours(x, kind, (3,), norm=norm), theirs(x, kind, (3,), norm=norm))
        for axes in ((1,), 0):
            close(ours(x, kind, None, axes, norm), theirs(x, kind, None, axes, norm))
    close(fft.dct(x + 1j, kind, norm=norm), scipy.fft.dct(x + 1j, kind, norm=norm))
    assert fft.dct(x.astype(np.float32), kind, norm=norm).dtype == np.float32
    verax.test_util.check_grads(lambda x: fft.dct(x, kind, norm=norm), (X[:4],), 1)


def test_wrong_cosine_transforms() -> None:
    wrong: list[tuple[str, Any]] = [
        ("type must be", lambda: fft.dct(X, 5)),
        ("norm", lambda: fft.dct(X, norm="other")),
        ("longer", lambda: fft.dct(X[:1], 1)),
        ("positive", lambda: fft.dct(X, n=0)),
        ("at most x.ndim", lambda: fft.dctn(X, s=(2, 2), axes=(0,))),
    ]
    for match, call in wrong:
        with pytest.raises(ValueError, match=match):
            call()


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_coordinates(mode: str, order: int) -> None:
    image = RANDOM.normal(size=(5, 6))
    inside = [RANDOM.uniform(0, n - 1, size=(3, 4)) for n in image.shape]
    outside = [RANDOM.uniform(-8, n + 7, size=(3, 4)) for n in image.shape]
    # SciPy's grid-wrap and grid-constant are what JAX calls wrap and constant.
    theirs = {"wrap": "grid-wrap", "constant": "grid-constant"}.get(mode, mode)
    for places in (inside, outside):
        actual = ndimage.map_coordinates(image, places, order, mode, 2.0)
        want = scipy.ndimage.map_coordinates(
            image, places, order=order, mode=theirs, cval=2.0
        )
        close(actual, want)
    whole = (10 * image).astype(np.int32)
    actual = ndimage.map_coordinates(whole, inside, order, mode)
    assert actual.dtype == np.int32
    verax.test_util.check_grads(
        lambda a: ndimage.map_coordinates(a, inside, order, mode), (image,), 1
    )


def test_wrong_coordinates() -> None:
    wrong: list[tuple[str, Any]] = [
        ("does not yet support", lambda: ndimage.map_coordinates(X, [X], 1, "other")),
        ("requires order<=1", lambda: ndimage.map_coordinates(X, [X], 3)),
        ("for each dimension", lambda: ndimage.map_coordinates(X, [X, X], 1)),
    ]
    for match, call in wrong:
        with pytest.raises((NotImplementedError, ValueError), match=match):
            call()


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_interpolation(method: str) -> None:
    grid = (np.array([0.0, 1.0, 2.5, 3.0]), np.array([-1.0, 0.0, 4.0]))
    values = RANDOM.normal(size=(4, 3, 2))
    ours = interpolate.RegularGridInterpolator(grid, values, method)
    theirs = scipy.interpolate.RegularGridInterpolator(
        grid, values, method, bounds_error=False
    )
    points = RANDOM.uniform(-2, 5, size=(5, 7, 2))
    close(ours(points), theirs(points))
    close(ours((points[..., 0], points[..., 1])), theirs(points))
    beyond = interpolate.RegularGridInterpolator(grid, values, method, False, None)
    want = scipy.interpolate.RegularGridInterpolator(grid, values, method, False, None)
    close(beyond(points), want(points))
    passed = verax.jit(lambda f, x: f(x))(ours, points)
    close(passed, theirs(points))
    line = interpolate.RegularGridInterpolator(grid[:1], values[:, 0, 0], method)
    assert line(np.array([0.2, 0.4])).shape == (2,)
    if method == "linear":
        inner = np.array([[0.3, 0.2], [2.7, 3.0]])
        verax.test_util.check_grads(ours, (inner,), 1)


def test_wrong_interpolation() -> None:
    made = interpolate.RegularGridInterpolator
    grid = (np.arange(3.0),)
    wrong: list[tuple[str, Any]] = [
        ("method must be", lambda: made(grid, np.ones(3), "cubic")),
        ("bounds_error|no errors", lambda: made(grid, np.ones(3), bounds_error=True)),
        ("vectors", lambda: made(grid, np.ones(4))),
        ("must be real", lambda: made(grid, np.ones(3), fill_value=1j)),
        ("coordinates", lambda: made(grid, np.ones(3))(np.ones((2, 2)))),
    ]
    for match, call in wrong:
        with pytest.raises(ValueError, match=match):
            call()


def test_codes_and_integrals() -> None:
    for obs, codes in ((X.reshape(16, 4), X[:12].reshape(3, 4)), (X, X[:5])):
        for one, other in zip(
            cluster.vq.vq(obs, codes), scipy.cluster.vq.vq(obs, codes), strict=True
        ):
            close(one, other)
    with pytest.raises(ValueError, match="codes"):
        cluster.vq.vq(X, X[None])
    close(integrate.trapezoid(X, dx=0.5), scipy.integrate.trapezoid(X, dx=0.5))
    assert float(vnp.sum(integrate.trapezoid(X.reshape(8, 8), axis=0))) != 0


def test_detrend_pieces_of_two_points() -> None:
    x = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.0], np.float32)
    want = scipy.signal.detrend(x, bp=[2, 4])
    np.testing.assert_allclose(np.asarray(signal.detrend(x, bp=[2, 4])), want, 0, 4e-6)
