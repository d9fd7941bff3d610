"""`jax._src.dtypes`: bases of dtypes of a program's own, kinds of dtypes."""

from typing import Any

import numpy as np

from verax.dtypes import extended as extended
from verax.errors import TypePromotionError as TypePromotionError
from verax.numpy import finfo as finfo

DType = np.dtype[Any]


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype of floats has infinities."""
    return bool(np.isinf(np.array(np.inf).astype(dtype)))


def to_complex_dtype(dtype: Any) -> DType:
    """A complex dtype of the same precision, with parts of 64 or 32 bits."""
    wide = np.dtype(dtype).name in ("float64", "complex128", "int64", "uint64")
    return np.dtype("complex128" if wide else "complex64")


class ExtendedDType:
    """A dtype that a program describes; arrays cannot have one."""
