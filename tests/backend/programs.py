"""Small StableHLO programs for the tests of the backend.

text = sums(2)   # two vectors in, each doubled
"""

import numpy as np
from numpy.typing import NDArray

from verax.backend.runtime.buffers import Aval, Buffer, from_numpy
from verax.backend.runtime.client import default_client, local_devices
from verax.backend.xla.executable import CompileOptions, Executable, compile_text

VECTOR = Aval((8,), np.dtype(np.float32))


def doubles(count: int) -> str:
    """A program of `count` vectors that returns each one added to itself."""
    names = range(count)
    arguments = ", ".join(f"%a{i}: tensor<8xf32>" for i in names)
    body = "\n".join(
        f"  %r{i} = stablehlo.add %a{i}, %a{i} : tensor<8xf32>" for i in names
    )
    types = ", ".join(["tensor<8xf32>"] * count)
    results = ", ".join(f"%r{i}" for i in names)
    return (
        f"func.func public @main({arguments}) -> ({types}) {{\n{body}\n"
        f"  return {results}{' : ' if count else ''}{types}\n}}"
    )


def compiled(count: int = 1, options: CompileOptions | None = None) -> Executable:
    """The program of `doubles`, on the first device."""
    return compile_text(
        default_client(),
        doubles(count),
        local_devices()[:1],
        options,
        out_avals=[VECTOR] * count,
    )


def vector(start: int = 0) -> NDArray[np.float32]:
    """Eight numbers from `start` on."""
    return np.arange(start, start + 8, dtype=np.float32)


def on_device(array: NDArray[np.generic]) -> Buffer:
    """A copy of the array on the first device."""
    return from_numpy(array, local_devices()[0], copy=True)
