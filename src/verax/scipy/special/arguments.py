"""Floor 6: the arguments of special functions: floats of the same dtype and shape.

One idea: small floats are computed in float32, since a series in eight bits says
nothing, and only the result is rounded::

    x, y = reals("xlogy", x, 2)
    y = in_wide("ndtri", function, x)
"""

from collections.abc import Callable, Sequence

from verax.ir.dtypes import float32, float64, is_complex
from verax.numpy.arguments.arguments import (
    ArrayLike,
    broadcast_together,
    inexact_arrays,
    with_weak_type,
)
from verax.numpy.creation.creation import as_values
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.convert import convert
from verax.ops.structure.create import full_like
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError


def inexact(name: str, *args: ArrayLike) -> list[Array]:
    """Arguments as floats of the same dtype and shape, scalars included.

    Raises:
        TypeError: one is neither an array nor a scalar.
        ValueError: the shapes do not broadcast together.
    """
    return list(broadcast_together(name, inexact_arrays(name, *args)))


def reals(name: str, *args: ArrayLike) -> list[Array]:
    """`inexact`, for a function of real numbers.

    Raises:
        ShapeError: one is complex; JAX raises `TypeError` in one function and
            `ValueError` in another.
    """
    arrays = inexact(name, *args)
    if is_complex(arrays[0].dtype):
        raise ShapeError(
            f"{name} does not support complex-valued inputs. Argument `x` to {name} "
            f"must be real-valued, not {arrays[0].dtype}"
        )
    return arrays


def strong(name: str, x: ArrayLike) -> Array:
    """A real argument, lists included; a Python number makes no weak result."""
    (z,) = reals(name, as_values(name, x, None))
    return with_weak_type(z, False)


def row(name: str, function: Callable[..., Array], *args: ArrayLike) -> Array:
    """A function of the table on arguments of the same dtype."""
    return function(*reals(name, *args))


def in_wide(name: str, function: Callable[..., Array], *args: ArrayLike) -> Array:
    """A function of float32 or float64 on real arguments, rounded to their dtype."""
    arrays = reals(name, *args)
    dtype = arrays[0].dtype
    if dtype in (float32, float64):
        return function(*arrays)
    array = function(*[convert(x, float32, x.aval.weak_type) for x in arrays])
    return convert(array, dtype, array.aval.weak_type)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """The polynomial with these coefficients, that of the highest power first."""
    total = full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = add(mul(total, x), c)
    return total
