"""`jax._src.api`: pieces of `jacfwd` and `jacrev`, as libraries rebuild them."""

from collections.abc import Callable, Sequence
from functools import partial as partial
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from verax.dtypes import issubdtype
from verax.flatten_util import ravel_pytree
from verax.jax.overlays.linear_util import WrappedFun
from verax.rules.values.array import Array

__all__ = ["partial"]


def _dtype(x: object) -> Any:
    return verax.typeof(x).dtype


def _jvp(
    fun: Callable[..., object] | WrappedFun,
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: bool = False,
) -> Any:
    """`jvp` of a wrapped function."""
    call = fun.call_wrapped if isinstance(fun, WrappedFun) else fun
    return verax.jvp(call, tuple(primals), tuple(tangents), has_aux=has_aux)


def _vjp(
    fun: Callable[..., object] | WrappedFun, *primals: object, has_aux: bool = False
) -> Any:
    """`vjp` of a wrapped function."""
    call = fun.call_wrapped if isinstance(fun, WrappedFun) else fun
    return verax.vjp(call, *primals, has_aux=has_aux)


def _std_basis(pytree: object) -> Any:
    """The rows of the identity on the elements of a pytree, in its structure."""
    flat, unravel = ravel_pytree(pytree)
    return verax.vmap(unravel)(vnp.eye(flat.size, dtype=flat.dtype))


def unraveled(pytree: object, axis: int, arr: Array) -> Any:
    """An array cut along a dimension into the leaves of a pytree."""
    leaves, treedef = verax.tree.flatten(pytree)
    axis %= arr.ndim
    sizes = [int(np.prod(np.shape(x))) for x in leaves]
    parts = vnp.split(arr, np.cumsum(sizes[:-1]).tolist(), axis)
    shapes = [(*arr.shape[:axis], *np.shape(x), *arr.shape[axis + 1 :]) for x in leaves]
    pairs = zip(parts, shapes, strict=True)
    return treedef.unflatten([vnp.reshape(part, shape) for part, shape in pairs])


def _jacfwd_unravel(
    input_pytree: object, output_pytree_leaf: object, arr: Array
) -> Any:
    return unraveled(input_pytree, -1, arr)


def _jacrev_unravel(
    output_pytree: object, input_pytree_leaf: object, arr: Array
) -> Any:
    return unraveled(output_pytree, 0, arr)


def checked(name: str, kind: type, what: str, x: object) -> None:
    """Raise TypeError unless `x` has a dtype of a kind."""
    if not issubdtype(_dtype(x), kind):
        raise TypeError(
            f"{name} requires {what} to be a sub-dtype of {kind.__name__}, but got "
            f"{_dtype(x).name}"
        )


def _check_input_dtype_jacfwd(holomorphic: bool, x: object) -> None:
    kind = np.complexfloating if holomorphic else np.floating
    checked("jacfwd", kind, "real- or complex-valued inputs", x)


def _check_output_dtype_jacfwd(holomorphic: bool, x: object) -> None:
    if holomorphic:
        checked("jacfwd", np.complexfloating, "outputs", x)


def _check_input_dtype_jacrev(holomorphic: bool, allow_int: bool, x: object) -> None:
    if not allow_int:
        kind = np.complexfloating if holomorphic else np.inexact
        checked("jacrev", kind, "inputs", x)


def _check_output_dtype_jacrev(holomorphic: bool, x: object) -> None:
    kind = np.complexfloating if holomorphic else np.floating
    checked("jacrev", kind, "outputs", x)


def _check_callable(fun: Callable[..., object]) -> None:
    """Raise TypeError for what cannot be called."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
