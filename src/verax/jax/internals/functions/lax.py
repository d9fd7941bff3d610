"""`jax._src.lax`: helpers below `jax.lax` that libraries ask for."""

from typing import Any

import numpy as np

import verax.numpy as vnp
from verax import lax
from verax.jax.overlays.known_primitives import __getattr__ as primitive
from verax.ops.linalg.lu import lu_solve as by_factors

__all__ = ["lu_solve"]


def __getattr__(name: str) -> Any:
    return primitive(name)


def _const(example: Any, value: Any) -> Any:
    """A number in the dtype of an example; a Python scalar beside a Python scalar."""
    if isinstance(example, bool | int | float | complex):
        return type(example)(value)
    kind: Any = lax.dtype(example)
    return np.asarray(value, kind)


def _zeros(x: Any) -> Any:
    return vnp.zeros_like(x)


def _ones(x: Any) -> Any:
    return vnp.ones_like(x)


_zero, _one = _zeros, _ones


def lu_solve(lu: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """The solution of a system by the factors of its matrix and a permutation.

    `trans` says whether the matrix is transposed (1), and conjugated as well (2).
    """
    one = b.ndim == lu.ndim - 1
    out = by_factors(lu, permutation, b[..., None] if one else b, trans)
    return out[..., 0] if one else out
