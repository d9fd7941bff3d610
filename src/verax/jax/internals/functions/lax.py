"""`jax._src.lax`: helpers below `jax.lax` that libraries ask for."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import verax.numpy as vnp
from verax import device_put, lax
from verax.ad import CondSum as CondSum
from verax.dtypes import canonicalize_dtype
from verax.ir.dtypes import DTypeLike
from verax.jax.overlays.known_primitives import __getattr__ as primitive
from verax.lax.named_axes import AxisName
from verax.numpy import asarray as asarray
from verax.ops.elementwise.convert import convert
from verax.ops.linalg.lu import lu_solve as by_factors
from verax.rules.values.array import Array
from verax.sharding import AxisType, NamedSharding, reshard

__all__ = ["CondSum", "lu_solve"]


def __getattr__(name: str) -> Any:
    return primitive(name)


def _const(example: object, value: Any) -> Any:
    """A number in the dtype of an example; a Python scalar beside a Python scalar."""
    if isinstance(example, bool | int | float | complex):
        return type(example)(value)
    kind: Any = lax.dtype(example)
    return np.asarray(value, kind)


def _zeros(x: object) -> Any:
    return vnp.zeros_like(x)


def _ones(x: object) -> Any:
    return vnp.ones_like(x)


_zero, _one = _zeros, _ones


def _convert_element_type(
    operand: object,
    new_dtype: DTypeLike | None = None,
    weak_type: bool = False,
    sharding: object = None,
) -> Any:
    """The elements as numbers of a dtype; a weak one gives way to others."""
    x = vnp.asarray(operand)
    kind = x.dtype if new_dtype is None else canonicalize_dtype(new_dtype)
    out = convert(x, kind, weak_type)
    if sharding is None:
        return out
    types = sharding.mesh.axis_types if isinstance(sharding, NamedSharding) else ()
    if AxisType.Explicit in types:
        return reshard(out, sharding)
    return device_put(out, sharding)


def int_dtype_for_dim(d: object, *, signed: bool) -> np.dtype[np.generic]:
    """The integers that count the elements of a dimension: of 64 bits beyond 32."""
    sign = "" if signed else "u"
    narrow, wide = np.dtype(f"{sign}int32"), np.dtype(f"{sign}int64")
    return narrow if isinstance(d, int) and d <= np.iinfo(narrow).max else wide


def int_dtype_for_shape(
    shape: Sequence[object], *, signed: bool
) -> np.dtype[np.generic]:
    """The integers that count the elements of every dimension."""
    kinds = [int_dtype_for_dim(d, signed=signed) for d in shape]
    return max(kinds, key=lambda kind: kind.itemsize, default=np.dtype("int32"))


def pargmax(x: object, axis_name: AxisName) -> Array:
    """The least index along a named axis at which `x` is largest, for each element."""
    return index_of(vnp.asarray(x), axis_name, lax.pmax)


def pargmin(x: object, axis_name: AxisName) -> Array:
    """The least index along a named axis at which `x` is smallest, for each element."""
    return index_of(vnp.asarray(x), axis_name, lax.pmin)


def index_of(x: Array, axis_name: AxisName, extreme: Callable[..., Array]) -> Array:
    """The least index along a named axis at which `x` is what a reduction gives.

    Raises:
        TypeError: there are several axes.
    """
    if isinstance(axis_name, tuple | list):
        raise TypeError(
            f"pargmax and pargmin only accept a single axis, not {axis_name}"
        )
    own = lax.axis_index(axis_name)
    found = x == extreme(x, axis_name)
    out: Array = lax.pmin(vnp.where(found, own, np.iinfo(np.int32).max), axis_name)
    return out


def lu_solve(lu: Array, permutation: Array, b: Array, trans: int = 0) -> Array:
    """The solution of a system by the factors of its matrix and a permutation.

    `trans` says whether the matrix is transposed (1), and conjugated as well (2).
    """
    one = b.ndim == lu.ndim - 1
    out = by_factors(lu, permutation, b[..., None] if one else b, trans)
    return out[..., 0] if one else out
