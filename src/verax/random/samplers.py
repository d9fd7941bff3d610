"""Floor 6: what samplers share: how they are called, and how parameters meet samples.

One idea: every sampler is called with a key, a shape and a dtype, which one function
checks; what is left to say is how samples follow from them::

    typed, found, sizes = asked("t", key, shape, dtype, df)
    from_key(t_of, "t", key, shape, dtype, out_sharding, df)  # t_of(typed, df, ...)
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from verax.api.jit.decorator import jit
from verax.api.tracing.apply import is_tracing
from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    is_float,
    is_inexact,
    is_integer,
    numpy_dtype,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_shape,
    broadcast_shapes_of,
    chosen_dtype,
    constant_of,
    default_float,
    default_integer,
    stretched,
)
from verax.ops.elementwise.convert import convert
from verax.ops.structure.reshard import call_sharded
from verax.random.keys import one_key
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure

# -----------------------------------------------------------------------------
# The floating-point part of a sampler, compiled also when it runs eagerly.
#
# NumPy and XLA agree on integers and differ in the last digit of a logarithm, so what
# follows the random bits is a function of its own, which an eager call runs as a
# compiled program; a draw then has the same bits everywhere::
#
#     compiled(normal_of, symmetric(key, shape, dtype))
#     compiled(poisson_of, key, rate, shape=(3,))      # keywords are static
#     drawn(unit_of, key, shape=(3,), dtype=float32)   # a program once it pays
#
# A whole sampler gives the same bits either way, so it is compiled only where that
# pays: NumPy takes 0.1 ms for a small draw, a program 0.01 ms and its compilation 50
# ms.


@pure(256)
def program(
    function: Callable[..., Array], static: tuple[str, ...] = ()
) -> Callable[..., Array]:
    """`function` under jit, one object for each function."""
    return jit(function, static_argnames=static)


def compiled(function: Callable[..., Array], *operands: Any, **static: Any) -> Array:
    """`function(*operands)`: as equations under a trace, else as a program."""
    if is_tracing():
        return function(*operands, **static)
    if static:
        return program(function, tuple(sorted(static)))(*operands, **static)
    return program(function)(*operands)


# Draws of a kind before it is compiled, and elements from which it is at once.
PATIENCE = 50
LARGE = 1 << 14


class Sampler:
    """A sampler with its static arguments, and how often it has run in NumPy."""

    def __init__(self, function: Callable[..., Array], static: dict[str, Any]) -> None:
        self.count = PATIENCE if math.prod(static["shape"]) >= LARGE else 0
        self.program = jit(partial(function, **static))


@pure(1 << 10)
def sampler(
    function: Callable[..., Array], static: tuple[tuple[str, Any], ...]
) -> Sampler:
    """One object for each kind of draw."""
    return Sampler(function, dict(static))


def drawn(function: Callable[..., Array], *operands: Any, **static: Any) -> Array:
    """`function(*operands, **static)`, as a program where that pays.

    Its results have the same bits in NumPy and compiled; `shape` is among the keywords.
    """
    if is_tracing():
        return function(*operands, **static)
    found = sampler(function, tuple(static.items()))
    if found.count < PATIENCE:
        found.count += 1
        return function(*operands, **static)
    return found.program(*operands)


type Sizes = int | Sequence[int]
# From the name of a sampler and the dtype that a caller asks for, the dtype it has.
type Kind = Callable[[str, DTypeLike | None], DType]


def float_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The float dtype that a caller asks for, or the default one.

    Raises:
        ValueError: it is not a real floating dtype.
    """
    found = chosen_dtype(name, dtype)
    if found is None:
        return default_float()
    if not is_float(found):
        raise ValueError(f"{name}: dtype must be a real float type, not {found}")
    return found


def inexact_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The float or complex dtype that a caller asks for, or the default float.

    Raises:
        ValueError: it is neither.
    """
    found = chosen_dtype(name, dtype) or default_float()
    if not is_inexact(found):
        raise ValueError(f"{name}: dtype must be a float or complex type, not {found}")
    return found


def integer_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The integer dtype that a caller asks for, or the default one.

    Raises:
        TypeError: it is not an integer dtype.
    """
    found = chosen_dtype(name, dtype) or default_integer()
    if not is_integer(found):
        raise TypeError(f"{name}: dtype must be an integer type, not {found}")
    return found


def result_shape(name: str, shape: Sizes | None, *parameters: Any) -> Shape:
    """The shape of the samples: `shape`, or that of the parameters together.

    Raises:
        ValueError: the parameters do not broadcast to `shape`.
    """
    if not parameters:
        return as_shape(name, shape)
    shapes = [aval_of(x).shape for x in parameters]
    if shape is None:
        return broadcast_shapes_of(name, shapes)
    sizes = as_shape(name, shape)
    if any(shapes) and broadcast_shapes_of(name, [sizes, *shapes]) != sizes:
        raise ValueError(
            f"{name}: parameters of shapes {', '.join(map(str, shapes))} do not "
            f"broadcast to the requested shape {sizes}"
        )
    return sizes


def asked(
    name: str,
    key: ArrayLike,
    shape: Sizes | None,
    dtype: DTypeLike | None,
    *parameters: Any,
    kind: Kind = float_dtype,
) -> tuple[Array, DType, Shape]:
    """What every sampler takes: its typed key, its dtype of a kind and its shape.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `dtype` is of another kind, the parameters do not fit `shape`, or
            `key` is several keys.
    """
    typed = one_key(name, key)
    return typed, kind(name, dtype), result_shape(name, shape, *parameters)


def parameter(x: Any, dtype: DType, shape: Shape) -> Any:
    """A parameter in `dtype`: a constant if it is one number, else in `shape`."""
    if isinstance(x, Array):
        return stretched(convert(x, dtype), shape) if x.shape else convert(x, dtype)
    if aval_of(x).shape:
        return stretched(np.asarray(x, numpy_dtype(dtype)), shape)
    return constant_of(x, dtype)


def from_key(
    draw: Callable[..., Array],
    name: str,
    key: ArrayLike,
    shape: Sizes | None,
    dtype: DTypeLike | None,
    out_sharding: object,
    *parameters: Any,
    kind: Kind = float_dtype,
    **static: Any,
) -> Array:
    """The sampler `name`, for which `draw` splits the key and takes the parameters."""
    if out_sharding is not None:
        return call_sharded(from_key, locals(), name)
    typed, found, sizes = asked(name, key, shape, dtype, *parameters, kind=kind)
    return compiled(draw, typed, *parameters, shape=sizes, dtype=found, **static)
