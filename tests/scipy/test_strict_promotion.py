"""`verax.scipy` under `numpy_dtype_promotion='strict'`: no function mixes dtypes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
from verax.scipy import fft, linalg, signal, special

X = np.linspace(-1, 1, 64, dtype=np.float32)
M = np.array([[2, 1, 0], [-1, 2, 1], [0, 0.5, 3]], np.float32)

CASES: dict[str, Callable[[], Any]] = {
    "schur": lambda: linalg.schur(M, "complex"),
    "rsf2csf": lambda: linalg.rsf2csf(*linalg.schur(M)),
    "sqrtm": lambda: linalg.sqrtm(M),
    "funm": lambda: linalg.funm(M, verax.numpy.exp),
    "sylvester": lambda: linalg.solve_sylvester(M, M, M),
    "sylvester by eigenvalues": lambda: linalg.solve_sylvester(M, M, M, method="eigen"),
    "stft": lambda: signal.stft(X, nperseg=16)[2],
    "istft": lambda: signal.istft(signal.stft(X, nperseg=16)[2], nperseg=16)[1],
    "csd": lambda: signal.csd(X, X[::-1], nperseg=16)[1],
    "csd, median": lambda: signal.csd(X, X[::-1], nperseg=16, average="median")[1],
    "welch": lambda: signal.welch(X, nperseg=16)[1],
    "dct": lambda: fft.dct(X),
    "dct of complex": lambda: fft.dct(X.astype(np.complex64)),
    "idct": lambda: fft.idct(X, norm="ortho"),
    "harmonics": lambda: special.sph_harm_y(
        np.array([1], np.int32), np.array([-1], np.int32), X[:1], X[1:2], n_max=2
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_strict_promotion_changes_nothing(name: str) -> None:
    expected = CASES[name]()
    with verax.numpy_dtype_promotion("strict"):
        found = CASES[name]()
    pairs = zip(verax.tree.leaves(found), verax.tree.leaves(expected), strict=True)
    for ours, theirs in pairs:
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
