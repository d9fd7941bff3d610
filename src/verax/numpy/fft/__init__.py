"""Floor 6: `verax.numpy.fft`: Fourier transforms with NumPy's names and arguments.

The one idea: this module holds no code; each name is defined in a file of its subject::

    import verax.numpy as jnp
    jnp.fft.irfft(jnp.fft.rfft(x), n=5)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".one_axis": "fft hfft ifft ihfft irfft rfft",
        ".many_axes": "fft2 fftn ifft2 ifftn irfft2 irfftn rfft2 rfftn",
        ".frequencies": "fftfreq fftshift ifftshift rfftfreq",
    },
)
