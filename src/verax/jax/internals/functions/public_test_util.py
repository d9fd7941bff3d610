"""`jax._src.public_test_util`: pytrees that are close, derivatives that are slopes.

Tolerances are numbers, or numbers by dtype; they grow with the size of an array::

    check_close({"a": x}, {"a": y}, rtol={"float32": 5e-4})     # or AssertionError
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from verax import tree_util
from verax.dtypes import bfloat16, canonicalize_dtype, float0, issubdtype
from verax.ir.dtypes import DTypeLike, numpy_dtype
from verax.test_util import (
    check_grads as check_grads,
    check_jvp as check_jvp,
    check_vjp as check_vjp,
)

type Tolerance = float | Mapping[npt.DTypeLike, float] | None


def default_tolerance() -> dict[np.dtype[np.generic], float]:
    """The tolerances of results, absolute and relative, by dtype."""
    exact = [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    ]
    return dict.fromkeys(map(np.dtype, exact), 0.0) | {
        np.dtype(bfloat16): 1e-2,
        np.dtype("float16"): 1e-3,
        np.dtype("float32"): 1e-6,
        np.dtype("complex64"): 1e-6,
        np.dtype("float64"): 1e-15,
        np.dtype("complex128"): 1e-15,
    }


def tolerance(dtype: DTypeLike, tol: Tolerance = None) -> float:
    """The tolerance of a dtype: 0.1 for narrow floats, nothing for integers."""
    if tol is not None and not isinstance(tol, Mapping):
        return tol
    kind = numpy_dtype(canonicalize_dtype(dtype))
    narrow = 0.0 if issubdtype(kind, np.integer) else 0.1
    chosen = {np.dtype(key): value for key, value in (tol or {}).items()}
    return chosen.get(kind, default_tolerance().get(kind, narrow))


def check_close(
    xs: object,
    ys: object,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    err_msg: str = "",
) -> None:
    """Raise AssertionError unless two pytrees have equal shapes and close values."""

    def compare(x: object, y: object) -> None:
        a, b = np.asarray(x), np.asarray(y)
        assert a.shape == b.shape, f"shapes {a.shape} and {b.shape} differ {err_msg}"
        if a.dtype == b.dtype == float0:
            return
        absolute = max(tolerance(a.dtype, atol), tolerance(b.dtype, atol)) * a.size
        relative = max(tolerance(a.dtype, rtol), tolerance(b.dtype, rtol)) * b.size
        np.testing.assert_allclose(
            wide(a), wide(b), rtol=relative, atol=absolute, err_msg=err_msg
        )

    tree_util.tree_map(compare, xs, ys)


def wide(x: np.ndarray) -> np.ndarray:
    """Floats in double precision: NumPy compares narrow ones at their own."""
    kinds = {np.complexfloating: np.complex128, np.floating: np.float64}
    wider = [to for kind, to in kinds.items() if issubdtype(x.dtype, kind)]
    return x.astype(wider[0]) if wider else x
