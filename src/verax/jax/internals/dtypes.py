"""`jax._src.dtypes`: bases of dtypes of a program's own."""

from typing import Any

import numpy as np

from verax.dtypes import extended as extended
from verax.errors import TypePromotionError as TypePromotionError
from verax.numpy import finfo as finfo

DType = np.dtype[Any]


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype of floats has infinities."""
    return bool(np.isinf(np.array(np.inf).astype(dtype)))


class ExtendedDType:
    """A dtype that a program describes; arrays cannot have one."""
