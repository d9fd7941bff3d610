# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.numpy.fft.one_axis import (
    fft as fft, hfft as hfft, ifft as ifft, ihfft as ihfft, irfft as irfft,
    rfft as rfft,
)
from verax.numpy.fft.many_axes import (
    fft2 as fft2, fftn as fftn, ifft2 as ifft2, ifftn as ifftn, irfft2 as irfft2,
    irfftn as irfftn, rfft2 as rfft2, rfftn as rfftn,
)
from verax.numpy.fft.frequencies import (
    fftfreq as fftfreq, fftshift as fftshift, ifftshift as ifftshift,
    rfftfreq as rfftfreq,
)
__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn",
    "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
    "rfftn",
]
