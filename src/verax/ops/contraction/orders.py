"""Floor 2: orders of dimensions in which products are fast on a CPU.

XLA's compiler exchanges the operands of a product whose result is transposed, and moves
transposes into products. It has fast code for the rows of the left operand by the
columns of the right one, but for other orders loops of scalars::

    thin:  (512, 3), (512, 512) contracted along their rows   # a gradient of a layer
    small: (500, 6, 6), (500, 6, 6) contracted along their rows

So a barrier keeps the result as it is written, and small operands are turned before.
"""

from math import prod
from typing import Final

from verax.ir.avals import Shape
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.structure.shape import transpose
from verax.rules.values.array import Array

type Numbers = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]
"""Contracted dimensions of the left and of the right operand, and those of stacks."""

THIN: Final = 64
"""Columns of a thin operand at most; the other one has four times as many."""
SMALL: Final = (4, 24)
"""Sizes of small matrices for which the compiler is slow."""
SHORT: Final = 8
"""From here on, the compiler is fast for rows by rows."""
STACK: Final = 8


def is_thin(numbers: Numbers, x: Shape, y: Shape) -> bool:
    """Whether both operands are contracted along their first dimensions, and the left
    one is thin, as in the gradient of a layer with few outputs.
    """
    (left, right), (stack, _) = numbers
    first = tuple(range(len(left)))
    if stack or not first or left != first or right != first:
        return False
    thin, wide = prod(x[len(first) :]), prod(y[len(first) :])
    return 2 <= thin <= THIN and 4 * thin <= wide


def is_small(numbers: Numbers, x: Shape, y: Shape) -> bool:
    """Whether these are stacks of small matrices."""
    (left, right), stacks = numbers
    n = len(stacks[0])
    if not n or stacks != (tuple(range(n)),) * 2 or (len(x), len(y)) != (n + 2, n + 2):
        return False
    if prod(x[:n]) < STACK or len(left) != 1:
        return False
    (own,), (other,) = left, right
    inner, sides = x[own], (x[2 * n + 1 - own], y[2 * n + 1 - other])
    least, most = SMALL
    return least <= inner <= most and least <= max(sides) <= most


def turned(numbers: Numbers, x: Array, y: Array) -> tuple[Numbers, Array, Array]:
    """The dimension numbers of rows by columns, and small matrices turned to be so.

    Longer rows by rows, for which the compiler is fast as well, stay.
    """
    ((own,), (other,)), stacks = numbers
    n = len(stacks[0])
    if own == other == n + 1 and x.shape[own] >= SHORT:
        return numbers, x, y
    order = (*range(n), n + 1, n)
    if own == n:
        x = apart(transpose(x, order))
    if other == n + 1:
        y = apart(transpose(y, order))
    return (((n + 1,), (n,)), stacks), x, y


def apart(x: Array) -> Array:
    """x, which the compiler computes as it is written."""
    return optimization_barrier_p.bind(BARRIER, x)[0]
