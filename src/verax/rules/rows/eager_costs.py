"""Floor 1: which operations take longer in NumPy than as a compiled program.

A row that NumPy does badly says from which types of operands and results on, in its
column `costly`; the figures are those of `docs/eager.md`::

    costly=large                 # from 32,768 elements of the result on
    costly=of(INTEGER, HUGE)     # from 131,072 on, of integers
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float16, is_float, numpy_dtype
from verax.rules.values.constants import Kind

type Costly = Callable[[Any, Sequence[ShapedArray], Sequence[ShapedArray]], bool]

# A compilation takes 15 ms: what NumPy does in 0.1 ms must be done often to pay for it.
SMALL = 1 << 13
LARGE = 1 << 15
HUGE = 1 << 17


def of(kind: Kind, size: int) -> Costly:
    """Results of `size` elements or more, of operands of this kind."""
    return lambda p, ins, outs: outs[0].size >= size and kind.holds(ins[0].dtype)


def reading(kind: Kind, size: int) -> Costly:
    """Operands of `size` elements or more, of this kind."""
    return lambda p, ins, outs: ins[0].size >= size and kind.holds(ins[0].dtype)


def large(p: object, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> bool:
    """Results of `LARGE` elements or more, of whatever operands."""
    return outs[0].size >= LARGE


def huge(p: object, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> bool:
    """Results of `HUGE` elements or more, of whatever operands."""
    return outs[0].size >= HUGE


def narrow_floats(
    p: object, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> bool:
    """Floats below 32 bits, which NumPy computes one by one."""
    dtype = ins[0].dtype
    if not is_float(dtype) or numpy_dtype(dtype).itemsize >= 4:
        return False
    return outs[0].size >= (LARGE if dtype == float16 else HUGE)


def conversion(
    p: object, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> bool:
    """Conversions of floats to integers, and to narrower floats."""
    old, new = ins[0].dtype, outs[0].dtype
    if outs[0].size < HUGE or not is_float(old) or new == "bool":
        return False
    return not is_float(new) or numpy_dtype(new).itemsize < numpy_dtype(old).itemsize


def contraction(
    p: object, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> bool:
    """Products of dtypes for which there is no BLAS, and large ones of the others.

    The work is the number of multiplications: the root of the product of three sizes.
    BLAS is as quick as the compiler, but its threads wait for each other, for
    milliseconds where the machine has other work.
    """
    x, y = ins
    work = math.sqrt(x.size * y.size * outs[0].size)
    if is_float(x.dtype) and numpy_dtype(x.dtype).itemsize >= 4:
        wide = outs[0].size > 1 and max(x.size, y.size) >= 1 << 19
        return wide or work >= 1 << 26
    return work >= 1 << 20
