"""`verax.image`: what resampling keeps, and known values."""

from typing import Any

import numpy as np
import pytest

import verax
from verax import image
from verax.image import ResizeMethod

RANDOM = np.random.default_rng(11)
SMOOTH = ["linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch"]
X = RANDOM.uniform(size=(6, 5, 2)).astype(np.float32)


def close(x: Any, y: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(x), y, tolerance, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("method", SMOOTH)
@pytest.mark.parametrize("antialias", [False, True])
def test_what_resizing_keeps(method: str, antialias: bool) -> None:
    """Constants, the same size, symmetry, linearity, and slopes that are weights."""
    ones = np.ones((4, 3), np.float32)
    for shape in ((7, 2), (3, 11), (1, 3)):
        close(image.resize(ones, shape, method, antialias), np.ones(shape))
    close(image.resize(X, X.shape, method, antialias), X)
    actual = np.asarray(image.resize(X, (3, 9, 2), method, antialias))
    assert actual.shape == (3, 9, 2)
    turned = image.resize(X[::-1, ::-1], (3, 9, 2), method, antialias)
    close(turned, actual[::-1, ::-1])
    compiled = verax.jit(lambda x: image.resize(x, (3, 9, 2), method, antialias))
    close(compiled(2 * X), 2 * actual)
    slope = verax.grad(lambda x: image.resize(x, (3, 9, 2), method, antialias).sum())(X)
    assert np.isclose(float((slope * X).sum()), actual.sum(), 1e-4)


def test_known_values() -> None:
    line = np.array([1.0, 3.0, 5.0, 7.0], np.float32)
    close(image.resize(line, (2,), "area"), [2.0, 6.0])
    close(image.resize(line, (2,), "linear", antialias=False), [2.0, 6.0])
    close(image.resize(line, (2,), "linear"), [17 / 7, 39 / 7])
    close(image.resize(line, (8,), "linear"), [1, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7])
    spline = image.resize(line[:2] - 1, (4,), "cubic-pytorch", antialias=False)
    close(spline, 2 * np.array([-0.10546875, 0.2265625, 0.7734375, 1.10546875]))
    close(image.resize(line, (3,), "nearest"), [1, 5, 7])
    whole = np.arange(4, dtype=np.int32)
    assert image.resize(whole, (8,), ResizeMethod.NEAREST).tolist() == [
        *(0, 0, 1, 1, 2, 2, 3, 3)
    ]
    assert image.resize(whole, (8,), "linear").dtype == np.float32
    assert image.resize(X.astype(np.float16), (2, 2, 2), "cubic").dtype == np.float16
    assert image.resize(X, (0, 5, 2), "linear").shape == (0, 5, 2)


@pytest.mark.parametrize("method", SMOOTH)
def test_scale_and_translate(method: str) -> None:
    ones, none = np.ones(2, np.float32), np.zeros(2, np.float32)
    how: dict[str, Any] = {"spatial_dims": (0, 1), "method": method}
    same = image.scale_and_translate(X, X.shape, scale=ones, translation=none, **how)
    close(same, X)
    moved = image.scale_and_translate(
        X, X.shape, scale=ones, translation=np.array([1, 0], np.float32), **how
    )
    close(moved[2:5], X[1:4])
    if method != "cubic-pytorch":
        assert not np.asarray(moved[0]).any()
    half = image.scale_and_translate(
        X, (3, 10, 2), scale=np.array([0.5, 2], np.float32), translation=none, **how
    )
    close(half, image.resize(X, (3, 10, 2), method))

    wide = X.astype(np.float64)

    def shifted(scale: Any, translation: Any) -> Any:
        return image.scale_and_translate(
            wide, X.shape, (0, 1), scale, translation, method, antialias=False
        )

    with verax.enable_x64(True):
        args = (np.array([0.83, 1.21]), np.array([0.31, -0.27]))
        verax.test_util.check_grads(shifted, args, 1, rtol=1e-3, atol=1e-3)


def test_wrong_calls() -> None:
    one = np.ones(1, np.float32)
    wrong: list[tuple[str, Any]] = [
        ("no resize method", lambda: image.resize(X, X.shape, "other")),
        ("with the dimensions", lambda: image.resize(X, (3, 3), "linear")),
        ("no pixels", lambda: image.resize(X[:0], (3, 5, 2), "linear")),
        (
            "nearest",
            lambda: image.scale_and_translate(X, X.shape, (0,), one, one, "nearest"),
        ),
        (
            "for each of 2",
            lambda: image.scale_and_translate(X, X.shape, (0, 1), one, one, "cubic"),
        ),
        (
            "differs",
            lambda: image.scale_and_translate(X, (3, 3, 2), (0,), one, one, "cubic"),
        ),
    ]
    for match, call in wrong:
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError, match="ResizeMethod"):
        image.resize(X, X.shape, 3)  # type: ignore[arg-type]  # the point of the test
