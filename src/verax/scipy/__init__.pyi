# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.scipy import (
    cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
    linalg as linalg, ndimage as ndimage, optimize as optimize, signal as signal,
    sparse as sparse, spatial as spatial, special as special, stats as stats,
)
__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize",
    "signal", "sparse", "spatial", "special", "stats",
]
