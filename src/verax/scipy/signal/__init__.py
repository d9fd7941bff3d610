"""Floor 6: `verax.scipy.signal`: convolutions, trends and spectra.

>>> import numpy as np
>>> from verax.scipy import signal
>>> signal.convolve(np.float32([1, 2]), np.float32([1, 1])).tolist()
[1.0, 3.0, 2.0]
"""

from verax.scipy.signal.convolving import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    detrend as detrend,
    fftconvolve as fftconvolve,
)
from verax.scipy.signal.spectra import (
    csd as csd,
    istft as istft,
    stft as stft,
    welch as welch,
)
