"""`jax._src.lax`: helpers below `jax.lax` that libraries ask for."""

from typing import Any

import numpy as np

import verax.numpy as vnp
from verax import lax
from verax.jax.overlays.known_primitives import __getattr__ as primitive

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
    """The solution of a system by the factors of its matrix and a permutation."""
    order = vnp.argsort(permutation) if trans else permutation
    matrix = b if b.ndim > 1 else b[:, None]
    if trans:
        first = lax.linalg.triangular_solve(
            lu, matrix, left_side=True, lower=False, transpose_a=True
        )
        out = lax.linalg.triangular_solve(
            lu, first, left_side=True, lower=True, transpose_a=True, unit_diagonal=True
        )[order]
    else:
        first = lax.linalg.triangular_solve(
            lu, matrix[order], left_side=True, lower=True, unit_diagonal=True
        )
        out = lax.linalg.triangular_solve(lu, first, left_side=True, lower=False)
    return out if b.ndim > 1 else out[:, 0]
