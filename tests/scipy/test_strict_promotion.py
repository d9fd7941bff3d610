"""`verax.scipy` mixes neither dtypes nor ranks: strict promotion changes nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
from verax import image, lax
from verax.scipy import fft, linalg, signal, sparse, special, stats

X = np.linspace(-1, 1, 64, dtype=np.float32)
M = np.array([[2, 1, 0], [-1, 2, 1], [0, 0.5, 3]], np.float32)
STACK = np.stack([M, 2 * M])

CASES: dict[str, Callable[[], Any]] = {
    "trapezoid of integers": lambda: verax.numpy.trapezoid(np.arange(5), dx=0.5),
    "trapezoid of small floats": lambda: verax.numpy.trapezoid(X.astype(np.float16)),
    "resize of small floats": lambda: image.resize(
        X[None].astype(np.float16), (2, 9), "linear"
    ),
    "mgrid of integers and floats": lambda: verax.numpy.mgrid[0:3, 0.0:2.0:3j],
    "ogrid of integers and floats": lambda: verax.numpy.ogrid[0:3, 0.0:2.0],
    "schur": lambda: linalg.schur(M, "complex"),
    "rsf2csf": lambda: linalg.rsf2csf(*linalg.schur(M)),
    "sqrtm": lambda: linalg.sqrtm(M),
    "funm": lambda: linalg.funm(M, verax.numpy.exp),
    "sylvester": lambda: linalg.solve_sylvester(M, M, M),
    "sylvester by eigenvalues": lambda: linalg.solve_sylvester(M, M, M, method="eigen"),
    "stft": lambda: signal.stft(X, nperseg=16)[2],
    "istft": lambda: signal.istft(signal.stft(X, nperseg=16)[2], nperseg=16)[1],
    "istft of real numbers": lambda: signal.istft(X.reshape(8, 8))[1],
    "istft of real numbers, two-sided": lambda: signal.istft(
        X.reshape(8, 8), input_onesided=False
    )[1],
    "csd": lambda: signal.csd(X, X[::-1], nperseg=16)[1],
    "csd, median": lambda: signal.csd(X, X[::-1], nperseg=16, average="median")[1],
    "welch": lambda: signal.welch(X, nperseg=16)[1],
    "dct": lambda: fft.dct(X),
    "dct of complex": lambda: fft.dct(X.astype(np.complex64)),
    "idct": lambda: fft.idct(X, norm="ortho"),
    "harmonics": lambda: special.sph_harm_y(
        np.array([1], np.int32), np.array([-1], np.int32), X[:1], X[1:2], n_max=2
    ),
    "bessel": lambda: special.bessel_jn(M, v=2),
    "sici": lambda: special.sici(10 * M),
    "block_diag of scalars": lambda: linalg.block_diag(M, 5, M[0]),
    "cg": lambda: sparse.linalg.cg(M @ M.T, X[:3]),
    "cg of complex": lambda: sparse.linalg.cg(M @ M.T + 0j, X[:3] + 0j),
    "ormqr of a stack": lambda: lax.linalg.ormqr(*lax.linalg.geqrf(STACK), STACK),
    "booleans in integers": lambda: verax.numpy.arange(3).at[1].set(True),
    "owens_t": lambda: special.owens_t(M, M),
    "entropy": lambda: stats.poisson.entropy(abs(X)),
    "dct of a stack": lambda: [fft.dct(STACK, kind) for kind in (1, 2, 3, 4)],
    "sqrtm of a stack": lambda: verax.jvp(linalg.sqrtm, (STACK,), (STACK,)),
    "sylvester of a stack": lambda: linalg.solve_sylvester(STACK, STACK, STACK),
    **{
        f"resize, {method}": partial(image.resize, X[None], (2, 9), method)
        for method in ("linear", "cubic", "lanczos3", "area", "cubic-pytorch")
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("little_effort")
def test_strict_promotion_changes_nothing(name: str) -> None:
    expected = CASES[name]()
    with verax.numpy_dtype_promotion("strict"), verax.numpy_rank_promotion("raise"):
        actual = CASES[name]()
    pairs = zip(verax.tree.leaves(actual), verax.tree.leaves(expected), strict=True)
    for ours, theirs in pairs:
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
