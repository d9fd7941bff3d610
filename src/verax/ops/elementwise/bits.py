"""Floor 2: operations on bits: logic, shifts, counts.

One idea: integers are their bit patterns; a shift by the width or more moves everything
out, and its amount is read without sign::

    shift_left(np.int8(1), np.int8(9))    # 0
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from verax.ir.avals import ShapedArray, iinfo
from verax.ir.dtypes import (
    DType,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    is_signed,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops import base
from verax.rules.families.elementwise import elementwise, stablehlo
from verax.rules.rows.eager_costs import huge
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Domain, Rows, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import BITS, INTEGER
from verax.rules.values.operands import alike

BARE: dict[DType, DType] = {int2: uint2, int4: uint4}
SIGNED: Sequence[DType] = (int2, int4, int8, int16, int32, int64)
UNSIGNED: Sequence[DType] = (uint2, uint4, uint8, uint16, uint32, uint64)
WIDER = dict(pairwise(SIGNED)) | dict(pairwise(UNSIGNED))
"""Twice the bits, with a sign if there was one."""
AMOUNTS = (Domain(), Domain(-2, 40, special=(0, 7, 8, 31, 32)))


def lower_population_count(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One operation; XLA would count the sign of signed integers below a byte twice."""
    bare = BARE.get(outs[0].dtype)
    if bare is None:
        return e.op("stablehlo.popcnt", xs, outs)
    kind = (outs[0].with_dtype(bare),)
    counted = e.op(
        "stablehlo.popcnt", e.op("stablehlo.bitcast_convert", xs, kind), kind
    )
    return e.op("stablehlo.bitcast_convert", counted, outs)


not_p = elementwise(
    "not",
    np.invert,
    lower=stablehlo("not"),
    accepts=BITS,
    traits=Traits(Work.CHEAP, keeps_zero=False),
)
and_p = elementwise(
    "and",
    np.bitwise_and,
    operands=2,
    lower=stablehlo("and"),
    accepts=BITS,
    traits=Traits(Work.CHEAP, commutative=True),
)
or_p = elementwise(
    "or",
    np.bitwise_or,
    operands=2,
    lower=stablehlo("or"),
    accepts=BITS,
    traits=Traits(Work.CHEAP, commutative=True),
)
xor_p = elementwise(
    "xor",
    np.bitwise_xor,
    operands=2,
    lower=stablehlo("xor"),
    accepts=BITS,
    traits=Traits(Work.CHEAP, commutative=True),
)
shift_left_p = elementwise(
    "shift_left",
    base.shift_left,
    operands=2,
    lower=stablehlo("shift_left"),
    accepts=INTEGER,
    domains=AMOUNTS,
    traits=Traits(Work.CHEAP),
)
shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic",
    base.shift_right_arithmetic,
    operands=2,
    lower=stablehlo("shift_right_arithmetic"),
    accepts=INTEGER,
    domains=AMOUNTS,
    costly=huge,
)
shift_right_logical_p = elementwise(
    "shift_right_logical",
    base.shift_right_logical,
    operands=2,
    lower=stablehlo("shift_right_logical"),
    accepts=INTEGER,
    domains=AMOUNTS,
    traits=Traits(Work.CHEAP),
)
population_count_p = elementwise(
    "population_count",
    base.population_count,
    lower=lower_population_count,
    accepts=INTEGER,
    costly=huge,
)
clz_p = elementwise(
    "clz",
    base.count_leading_zeros,
    lower=stablehlo("count_leading_zeros"),
    accepts=INTEGER,
    costly=huge,
)


def lower_mulhi(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """The upper half of a product in twice the width; of 64 bits, from halves."""
    dtype = outs[0].dtype
    width = iinfo(dtype).bits
    if width == 64:
        return lower_mulhi_64(e, xs, outs)
    wide = (outs[0].with_dtype(WIDER[dtype]),)
    long = [e.op("stablehlo.convert", (x,), wide)[0] for x in xs]
    product = e.op("stablehlo.multiply", long, wide)
    amount = e.constant(width, wide[0])
    high = e.op("stablehlo.shift_right_logical", (*product, amount), wide)
    return e.op("stablehlo.convert", high, outs)


def lower_mulhi_64(
    e: Emitter, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """Schoolbook multiplication in halves; signs are corrected at the end."""
    kind = outs[0].with_dtype(uint64)
    half, mask = e.constant(32, kind), e.constant(0xFFFFFFFF, kind)

    def two(name: str, a: Operand, b: Operand) -> Operand:
        return e.op(f"stablehlo.{name}", (a, b), (a.aval,))[0]

    def high(a: Operand) -> Operand:
        return two("shift_right_logical", a, half)

    x, y = (e.op("stablehlo.convert", (x,), (kind,))[0] for x in xs)
    x0, y0 = two("and", x, mask), two("and", y, mask)
    x1, y1 = high(x), high(y)
    middle = two("add", two("multiply", x1, y0), high(two("multiply", x0, y0)))
    cross = two("add", two("multiply", x0, y1), two("and", middle, mask))
    value = two("add", two("multiply", x1, y1), high(middle))
    value = two("add", value, high(cross))
    (result,) = e.op("stablehlo.convert", (value,), outs)
    if not is_signed(outs[0].dtype):
        return (result,)
    # As unsigned numbers, negative ones are too large by 2^64.
    last = e.constant(63, outs[0])
    for a, b in (xs, xs[::-1]):
        below = two("shift_right_arithmetic", a, last)
        result = two("subtract", result, two("and", below, b))
    return (result,)


mulhi_p = elementwise(
    "mulhi",
    base.multiply_high,
    operands=2,
    lower=lower_mulhi,
    accepts=INTEGER,
)


def mulhi(x: object, y: object) -> Array:
    """The upper half of the bits of the product x y of integers.

    Args:
        x, y: integers of the same dtype: arrays of the same shape, where a size of 1
            goes with any other, or scalars. A Python scalar takes the dtype of the
            array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of other kinds, or the shapes do not fit.

    >>> import verax, numpy as np
    >>> verax.lax.mulhi(np.int8(100), np.int8(-100))
    Array(-40, dtype=int8)
    """
    return mulhi_p.call(NO_PARAMS, *alike(x, y))


def bitwise_not(x: object) -> Array:
    """Every bit of x turned over; for booleans, not x.

    Args:
        x: an array or scalar of integers or booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds floats or complex numbers.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.bitwise_not(vnp.array([0, 5, -1]))
    Array([-1, -6,  0], dtype=int32)
    >>> lax.bitwise_not(vnp.array([True, False]))
    Array([False,  True], dtype=bool)
    """
    return not_p.call(NO_PARAMS, x)


def bitwise_and(x: object, y: object) -> Array:
    """The bits that are set in x and in y; for booleans, x and y.

    Args:
        x, y: integers or booleans of the same dtype: arrays of the same shape, where a
            size of 1 goes with any other, or scalars. A Python scalar takes the dtype
            of the array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of other kinds, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.bitwise_and(vnp.array([0b1100, -1]), 0b1010)
    Array([ 8, 10], dtype=int32)
    """
    return and_p.call(NO_PARAMS, *alike(x, y))


def bitwise_or(x: object, y: object) -> Array:
    """The bits that are set in x or in y; for booleans, x or y.

    Args:
        x, y: integers or booleans of the same dtype: arrays of the same shape, where a
            size of 1 goes with any other, or scalars. A Python scalar takes the dtype
            of the array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of other kinds, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.bitwise_or(vnp.array([0b1100, -1]), 0b1010)
    Array([14, -1], dtype=int32)
    """
    return or_p.call(NO_PARAMS, *alike(x, y))


def bitwise_xor(x: object, y: object) -> Array:
    """The bits in which x and y differ; for booleans, x ≠ y.

    Args:
        x, y: integers or booleans of the same dtype: arrays of the same shape, where a
            size of 1 goes with any other, or scalars. A Python scalar takes the dtype
            of the array beside it.

    Returns:
        An array of the operands' dtype, in the shape to which their sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are of other kinds, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.bitwise_xor(vnp.array([0b1100, -1]), 0b1010)
    Array([  6, -11], dtype=int32)
    """
    return xor_p.call(NO_PARAMS, *alike(x, y))


def shift_left(x: object, y: object) -> Array:
    """The bits of x moved up by y, zeros moved in; 0 if y is the width or more.

    Args:
        x: the integers whose bits move.
        y: by how many places, integers of the dtype of `x` and of its shape, where a
            size of 1 goes with any other; or scalars. It is read without sign, so a
            negative one is more than the width.

    Returns:
        An array of the dtype of `x`, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of integers, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.shift_left(vnp.array([1, 3, 1]), vnp.array([4, 1, 32]))
    Array([16,  6,  0], dtype=int32)
    """
    return shift_left_p.call(NO_PARAMS, *alike(x, y))


def shift_right_arithmetic(x: object, y: object) -> Array:
    """The bits of x moved down by y, copies of the top bit moved in.

    If y is the width or more, copies of the top bit are left: 0 or -1.

    Args:
        x: the integers whose bits move.
        y: by how many places, integers of the dtype of `x` and of its shape, where a
            size of 1 goes with any other; or scalars. It is read without sign, so a
            negative one is more than the width.

    Returns:
        An array of the dtype of `x`, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of integers, or the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.shift_right_arithmetic(vnp.array([8, -8, -8]), vnp.array([1, 1, 40]))
    Array([ 4, -4, -1], dtype=int32)
    """
    return shift_right_arithmetic_p.call(NO_PARAMS, *alike(x, y))


def shift_right_logical(x: object, y: object) -> Array:
    """The bits of x moved down by y, zeros moved in; 0 if y is the width or more.

    Args:
        x: the integers whose bits move.
        y: by how many places, integers of the dtype of `x` and of its shape, where a
            size of 1 goes with any other; or scalars. It is read without sign, so a
            negative one is more than the width.

    Returns:
        An array of the dtype of `x`, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: dtypes differ or are not of integers, or the shapes do not fit.

    >>> import numpy as np
    >>> from verax import lax
    >>> lax.shift_right_logical(np.array([8, -8], np.int8), np.int8(1))
    Array([  4, 124], dtype=int8)
    """
    return shift_right_logical_p.call(NO_PARAMS, *alike(x, y))


def population_count(x: object) -> Array:
    """The number of bits of x that are set, in the dtype of x.

    Args:
        x: an integer array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold integers.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.population_count(vnp.array([0, 7, -1]))
    Array([ 0,  3, 32], dtype=int32)
    """
    return population_count_p.call(NO_PARAMS, x)


def clz(x: object) -> Array:
    """The number of zero bits that are above the highest set bit; the width for 0.

    Args:
        x: an integer array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold integers.

    >>> import numpy as np
    >>> from verax import lax
    >>> lax.clz(np.array([0, 1, 16, 255], np.uint8))
    Array([8, 7, 3, 0], dtype=uint8)
    """
    return clz_p.call(NO_PARAMS, x)


ROWS: Rows = (
    not_p,
    and_p,
    or_p,
    xor_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    population_count_p,
    clz_p,
    mulhi_p,
)
