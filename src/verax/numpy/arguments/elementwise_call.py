"""Floor 6: one row applied to what users pass: promotion, broadcasting, one equation.

One idea: two arrays of one type, which is what nearly every call has, need a single
comparison; all else is promoted and broadcast first::

    binary("multiply", mul_p, x, 3.0)
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from verax.backend.eager.composites import OneGo
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import INEXACT_SET, DType, bool_, float32, float64, int32
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import (
    ArrayLike,
    adapted,
    as_type,
    avals_of,
    broadcast_together,
    common_type,
    constant_of,
    inexact_type,
    joined_shape,
    operand,
    ranks_differ,
    stretched,
    weak_scalar,
)
from verax.ops.elementwise.arith import add_p, mul_p
from verax.ops.elementwise.bits import and_p, or_p
from verax.ops.elementwise.compare import ne_p
from verax.ops.elementwise.select import select_n_p
from verax.rules.rows.row import Row
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

# Booleans add as or and multiply as and.
LOGICAL: dict[Row[NoParams], Row[NoParams]] = {
    add_p: or_p,
    mul_p: and_p,
}
INTEGER = ShapedArray((), int32, True)


def unary(name: str, row: Row[NoParams], x: ArrayLike) -> Array:
    """`row` on an array or scalar of any dtype that it takes."""
    if not isinstance(x, Array):
        avals_of(name, (x,))
        x = operand(x)
    return STATE.interpreter.bind(row, NO_PARAMS, (x,))[0]


def unary_inexact(name: str, row: Row[NoParams], x: ArrayLike) -> Array:
    """`row` on a float or complex number, as which integers are read."""
    if isinstance(x, Array) and x.aval.dtype in INEXACT_SET:
        return STATE.interpreter.bind(row, NO_PARAMS, (x,))[0]
    avals = avals_of(name, (x,))
    dtype, weak = inexact_type(avals, name)
    operand = as_type(x, avals[0], dtype, weak)
    return STATE.interpreter.bind(row, NO_PARAMS, (operand,))[0]


def binary(name: str, row: Row[NoParams], x: ArrayLike, y: ArrayLike) -> Array:
    """`row` on operands in their common dtype and shape."""
    if isinstance(x, Array):
        if isinstance(y, Array):
            if x.aval is y.aval:
                if x.aval.dtype is bool_:
                    row = LOGICAL.get(row, row)
                return STATE.interpreter.bind(row, NO_PARAMS, (x, y))[0]
            if x.aval.dtype is y.aval.dtype and x.aval.dtype is not bool_:
                pair = leveled(name, x, y)
                return STATE.interpreter.bind(row, NO_PARAMS, pair)[0]
        elif (constant := adapted(y, x.aval)) is not None:
            return STATE.interpreter.bind(row, NO_PARAMS, (x, constant))[0]
    elif isinstance(y, Array) and (constant := adapted(x, y.aval)) is not None:
        return STATE.interpreter.bind(row, NO_PARAMS, (constant, y))[0]
    if row is mul_p and (masked := masking(name, x, y)) is not None:
        return STATE.interpreter.bind(select_n_p, NO_PARAMS, masked)[0]
    dtype, operands = unified(name, (x, y))
    if dtype is bool_:
        row = LOGICAL.get(row, row)
    return STATE.interpreter.bind(row, NO_PARAMS, operands)[0]


def masking(name: str, x: ArrayLike, y: ArrayLike) -> list[object] | None:
    """The factor that selects, if one is a float and the other a boolean array.

    Zero times infinity is not a number, but what a mask leaves out is zero. XLA makes
    a selection of some of these products too.
    """
    if is_mask(y):
        mask, value = y, x
    elif is_mask(x):
        mask, value = x, y
    else:
        return None
    avals = avals_of(name, (mask, value))
    if avals[1].dtype not in INEXACT_SET:
        return None
    dtype, weak = common_type(avals, name)
    factor = as_type(value, avals[1], dtype, weak)
    zero = weak_scalar(0, INTEGER, dtype) if weak else constant_of(0, dtype)
    mask, factor = broadcast_together(name, [mask, factor])
    return [mask, zero, factor]


def is_mask(x: object) -> bool:
    """Whether `x` is an array of booleans."""
    if isinstance(x, Array):
        return x.aval.dtype is bool_
    return isinstance(x, np.ndarray) and x.dtype == bool_


def binary_inexact(name: str, row: Row[NoParams], x: ArrayLike, y: ArrayLike) -> Array:
    """`row` on operands in their common dtype and shape, integers as floats."""
    if isinstance(x, Array) and x.aval.dtype in INEXACT_SET:
        if isinstance(y, Array):
            if x.aval is y.aval:
                return STATE.interpreter.bind(row, NO_PARAMS, (x, y))[0]
            if x.aval.dtype is y.aval.dtype:
                pair = leveled(name, x, y)
                return STATE.interpreter.bind(row, NO_PARAMS, pair)[0]
        elif (constant := adapted(y, x.aval)) is not None:
            return STATE.interpreter.bind(row, NO_PARAMS, (x, constant))[0]
    _, operands = unified_inexact(name, (x, y))
    return STATE.interpreter.bind(row, NO_PARAMS, operands)[0]


def leveled(name: str, x: Array, y: Array) -> tuple[Array, Array]:
    """Two arrays in one shape, unless one has no dimensions."""
    a, b = x.aval.shape, y.aval.shape
    if a == b or not a or not b:
        return x, y
    if len(a) != len(b) and STATE.numpy_rank_promotion != "allow":
        ranks_differ(name, (a, b))
    target = joined_shape(name, (a, b))
    return stretched(x, target), stretched(y, target)


def unified(name: str, args: tuple[ArrayLike, ...]) -> tuple[DType, list[ArrayLike]]:
    """The common dtype, and the operands in it and in one shape.

    Operands without dimensions keep their shape; every elementwise row takes them.
    """
    avals = avals_of(name, args)
    dtype, weak = common_type(avals, name)
    typed = [as_type(x, a, dtype, weak) for x, a in zip(args, avals, strict=True)]
    return dtype, broadcast_together(name, typed)


def unified_inexact(
    name: str, args: tuple[ArrayLike, ...]
) -> tuple[DType, list[object]]:
    """`unified` among floats and complex numbers."""
    avals = avals_of(name, args)
    dtype, weak = inexact_type(avals, name)
    typed = [as_type(x, a, dtype, weak) for x, a in zip(args, avals, strict=True)]
    return dtype, broadcast_together(name, typed)


def truth(name: str, x: ArrayLike) -> Any:
    """Whether `x` is not zero, as a boolean operand."""
    (aval,) = avals_of(name, (x,))
    if aval.dtype is bool_:
        return as_type(x, aval, bool_, False)
    x = operand(x)
    if isinstance(x, Array) or aval.shape:
        zero = constant_of(0, aval.dtype)
        return STATE.interpreter.bind(ne_p, NO_PARAMS, (x, zero))[0]
    return np.asarray(bool(x))


def logical(name: str, row: Row[NoParams], x: ArrayLike, y: ArrayLike) -> Array:
    """A boolean `row` on the truth of its operands."""
    if STATE.numpy_dtype_promotion == "strict":
        common_type(avals_of(name, (x, y)), name)
    typed = [truth(name, x), truth(name, y)]
    return STATE.interpreter.bind(row, NO_PARAMS, broadcast_together(name, typed))[0]


# -----------------------------------------------------------------------------
# Functions of several operations that are one ufunc of NumPy for floats.
#
# Eagerly, on arrays of one float type of NumPy, the ufunc gives the bits of the steps::
#
#     @in_numpy(Exactly(np.copysign))
#     def copysign(x1, x2): ...


FLOATS = (float32, float64)


def one_float(types: Sequence[object]) -> bool:
    """Whether all arguments are arrays of one float dtype of NumPy."""
    first = types[0]
    return (
        type(first) is ShapedArray
        and first.dtype in FLOATS
        and all([type(x) is ShapedArray and x.dtype is first.dtype for x in types])
    )


@frozen(repr=False)
class Exactly(ReprMixin):
    """`at_once` for what `ufunc` computes of all floats, special ones included."""

    transient: ClassVar[bool] = False

    ufunc: np.ufunc

    def __call__(self, *types: object) -> OneGo | None:
        return self.ufunc if one_float(types) else None


@frozen(repr=False)
class WhereFinite(ReprMixin):
    """`at_once` for what `ufunc` computes where its (first) result is finite."""

    transient: ClassVar[bool] = False

    ufunc: np.ufunc

    def __call__(self, *types: object) -> OneGo | None:
        return self.compute if one_float(types) else None

    def compute(self, *xs: object) -> Any:
        """The results; None where they are not finite."""
        results = self.ufunc(*xs)
        values = results[0] if type(results) is tuple else results
        # The sum of squares is infinite or NaN if an element is.
        return results if isfinite(np.vdot(values, values)) else None
