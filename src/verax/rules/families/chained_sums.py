"""Floor 1: sums of many floats in short chains, so that they round as trees do.

One idea: NumPy adds pairwise along the dimension that is closest in memory, and one
after another along all others. There, `CHAIN` blocks of rows are added to one block,
again and again, until few rows are left::

    total(np.ones((2**25, 2), np.float32), (0,))    # 33554432., one by one 16777216.

Whole blocks are added at once, which is faster than row after row, up to 50 times
where rows are short.
"""

import math

import numpy as np

from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    complex64,
    complex128,
    float32,
    float64,
    is_float,
    numpy_dtype,
)
from verax.rules.values.sizes import surely_less

type NDArray = np.ndarray

# Chains of 32 additions round to 2 units in the last place; shorter ones gain little,
# and cost more passes over memory.
CHAIN = 32
DOUBLE: dict[DType, DType] = {float32: float64, complex64: complex128}


def count(shape: Shape, axes: Shape) -> int:
    """How many elements become one."""
    return math.prod([shape[i] for i in axes])


def doubled(dtype: DType) -> DType:
    """The dtype of twice the width, for floats that have one; else `dtype` itself.

    Running folds are kept in it: each element is rounded once, however long the chain.
    """
    small = is_float(dtype) and dtype.itemsize < 4
    return float64 if small else DOUBLE.get(dtype, dtype)


def working_dtype(ufunc: np.ufunc, dtype: DType, terms: int) -> DType:
    """The dtype in which `terms` numbers of `dtype` are added or multiplied.

    Small floats would be rounded in every step. So are products of many factors, and
    there no order helps: the errors of all steps add up.
    """
    if ufunc not in (np.add, np.multiply):
        return dtype
    if is_float(dtype) and dtype.itemsize < 4:
        dtype = float32
    long = ufunc is np.multiply and surely_less(CHAIN, terms)
    return doubled(dtype) if long else dtype


def total(x: NDArray, axes: Shape) -> NDArray:
    """The sum of floats over some axes; of as many dimensions as are left."""
    if x.flags.c_contiguous and axes == tuple(range(x.ndim - len(axes), x.ndim)):
        return np.asarray(np.add.reduce(x, axes))
    stay = [n for i, n in enumerate(x.shape) if i not in axes]
    return outermost_first(x, axes).reshape(stay)


def outermost_first(x: NDArray, axes: Shape) -> NDArray:
    """The sum, with the dimensions kept as ones.

    The dimensions go in the order of memory, so that all but the first are passed on
    arrays that are small already.
    """
    strides = [abs(s) if n > 1 else 0 for s, n in zip(x.strides, x.shape, strict=True)]
    closest = min(
        (s for s, n in zip(strides, x.shape, strict=True) if n > 1), default=0
    )
    for axis in sorted(axes, key=lambda i: -strides[i]):
        pairwise = closest and strides[axis] == closest
        x = np.add.reduce(x if pairwise else few_rows(x, axis), axis, keepdims=True)
    return x


def few_rows(x: NDArray, axis: int) -> NDArray:
    """At most `CHAIN` rows along the axis, of the same sum."""
    lead = (slice(None),) * axis
    while (n := x.shape[axis]) > CHAIN:
        rows = -(-n // CHAIN)
        number = n // rows
        end = number * rows
        whole, rest = x[(*lead, slice(end))], x[(*lead, slice(end, n))]
        blocks = whole.reshape((*x.shape[:axis], number, rows, *x.shape[axis + 1 :]))
        x = np.add.reduce(blocks, axis)
        first = x[(*lead, slice(n - end))]
        np.add(first, rest, first)
    return x


def accumulated(ufunc: np.ufunc, x: NDArray) -> NDArray:
    """The folds of the elements so far along axis 0, by an associative `ufunc`.

    They are kept in double precision, or made in blocks where `x` has that.
    """
    working = numpy_dtype(doubled(x.dtype))
    if x.shape[0] <= CHAIN or x.dtype.kind not in "fc":
        return np.asarray(ufunc.accumulate(x, 0, dtype=x.dtype))
    if working != x.dtype:
        return np.asarray(ufunc.accumulate(x, 0, dtype=working).astype(x.dtype))
    if ufunc is np.multiply:  # All steps round in whichever order.
        return np.asarray(ufunc.accumulate(x, 0))
    return in_blocks(ufunc, x)


def in_blocks(ufunc: np.ufunc, x: NDArray) -> NDArray:
    """The folds so far of blocks, each after the fold of those before it.

    Blocks are longer than `CHAIN`, since each level costs several calls of NumPy.
    """
    n, size = x.shape[0], 2 * CHAIN
    if n <= size:
        return np.asarray(ufunc.accumulate(x, 0))
    out, whole = np.empty_like(x), n // size * size
    shape = (n // size, size, *x.shape[1:])
    blocks = out[:whole].reshape(shape)
    ufunc.accumulate(x[:whole].reshape(shape), 1, out=blocks)
    totals = in_blocks(ufunc, blocks[:, -1])
    ufunc(totals[:-1, None], blocks[1:], blocks[1:])
    if whole < n:
        ufunc.accumulate(x[whole:], 0, out=out[whole:])
        ufunc(totals[-1], out[whole:], out[whole:])
    return out
