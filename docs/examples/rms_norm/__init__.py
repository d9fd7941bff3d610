"""RMS normalisation in C++, with a derivative of its own.

load(compiled(folder))
y = rms_norm(x)                   # x / sqrt(mean(x^2) + eps) over the last dimension
"""

import ctypes
import functools
import subprocess
from pathlib import Path

import numpy as np

import verax
import verax.numpy as vnp
from verax import Array, ShapeDtypeStruct, ffi

SOURCE = Path(__file__).with_name("rms_norm.cc")


def compiled(folder: Path, compiler: str = "g++") -> Path:
    """The library, compiled into a folder."""
    library = folder / "librms_norm.so"
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", f"-I{ffi.include_dir()}"]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(library)], check=True)
    return library


def load(library: Path) -> None:
    """Make the functions of the library known to XLA."""
    functions = ctypes.CDLL(str(library))
    ffi.register_ffi_target("rms_norm", ffi.pycapsule(functions.RmsNorm))
    backward = ffi.pycapsule(functions.RmsNormBackward)
    ffi.register_ffi_target("rms_norm_backward", backward)


@functools.partial(verax.custom_vjp, nondiff_argnums=(1,))
def rms_norm(x: Array, eps: float = 1e-5) -> Array:
    """x / sqrt(mean(x^2) + eps), with the mean over the last dimension, in float32."""
    return forward(x, eps)[0]


def forward(x: Array, eps: float) -> tuple[Array, tuple[Array, Array]]:
    """The result, and what its pullback needs: one factor for each row, and x."""
    call = ffi.ffi_call(
        "rms_norm",
        (
            ShapeDtypeStruct(x.shape, x.dtype),
            ShapeDtypeStruct(x.shape[:-1], x.dtype),
        ),
        vmap_method="broadcast_all",
    )
    y, scale = call(x, eps=np.float32(eps))
    return y, (scale, x)


def backward(eps: float, residuals: tuple[Array, Array], ct: Array) -> tuple[Array]:
    """The cotangent of x."""
    scale, x = residuals
    call = ffi.ffi_call(
        "rms_norm_backward",
        ShapeDtypeStruct(x.shape, x.dtype),
        vmap_method="broadcast_all",
    )
    return (call(scale, x, ct),)


rms_norm.defvjp(forward, backward)


def reference(x: Array, eps: float = 1e-5) -> Array:
    """The same in terms of verax."""
    return x / vnp.sqrt(vnp.mean(x * x, -1, keepdims=True) + eps)
