"""Floor 6: products of matrices whose entries share scales in blocks.

One idea: a scale stands for a block of neighbours along a contracted dimension, so it
is repeated over the block and multiplied in before an ordinary product::

    scaled_dot(x, y, lhs_scale=s, rhs_scale=t)      # (x s) @ (y t) in bfloat16
"""

from collections.abc import Sequence

from verax.ir.dtypes import DType, DTypeLike, as_dtype, bfloat16
from verax.ops.contraction.dot import dot_general
from verax.ops.elementwise.arith import mul
from verax.ops.elementwise.convert import convert
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of

type DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def check_scale(side: str, x: object, scale: object, contracted: Sequence[int]) -> None:
    """Raise a TypeError unless a scale has the operand's sizes, or divides them."""
    own, given = aval_of(x), aval_of(scale)
    fits = own.ndim == given.ndim and all(
        size == other or (i in contracted and other and not size % other)
        for i, (size, other) in enumerate(zip(own.shape, given.shape, strict=False))
    )
    if not fits:
        raise TypeError(
            f"scaled_dot: the scale of {side} must have its sizes, or divisors of "
            f"them in the contracted dimensions {tuple(contracted)}, not {given} for "
            f"{own}"
        )


def scaled(x: object, scale: object, dtype: DType) -> Array:
    """`x` times a scale of its shape, or with fewer elements in some dimensions."""
    out = convert(x, dtype)
    if scale is None:
        return out
    factor = convert(scale, dtype)
    for i, (size, other) in enumerate(zip(out.shape, factor.shape, strict=True)):
        if size != other:
            shape = (*factor.shape[: i + 1], size // other, *factor.shape[i + 1 :])
            places = tuple(j for j in range(len(shape)) if j != i + 1)
            spread = broadcast_in_dim(factor, shape, places)
            factor = reshape(spread, (*shape[:i], size, *shape[i + 2 :]))
    return mul(out, factor)


def scaled_dot(
    lhs: object,
    rhs: object,
    *,
    lhs_scale: object = None,
    rhs_scale: object = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`dot_general` of (lhs · lhs_scale) and (rhs · rhs_scale), multiplied in bfloat16.

    A contracted dimension of an operand is a multiple of that of its scale. The result
    is bfloat16 unless `preferred_element_type` says otherwise. By default the last
    dimension of `lhs` and the second to last of `rhs` are contracted, and those in
    front are a batch.

    Raises:
        TypeError: shapes do not match.

    >>> import numpy as np
    >>> x, s = np.ones((2, 4), np.float32), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> scaled_dot(x, x.T, lhs_scale=s)[:, 0].tolist()
    [6.0, 14.0]
    """
    if dimension_numbers is None:
        rank = aval_of(lhs).ndim
        batch = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (batch, batch))
    left, right = dimension_numbers[0]
    for side, x, scale, contracted in (
        ("lhs", lhs, lhs_scale, left),
        ("rhs", rhs, rhs_scale, right),
    ):
        if scale is not None:
            check_scale(side, x, scale, contracted)
    expected = bfloat16 if preferred_element_type is None else preferred_element_type
    return dot_general(
        scaled(lhs, lhs_scale, bfloat16),
        scaled(rhs, rhs_scale, bfloat16),
        dimension_numbers,
        preferred_element_type=as_dtype(expected),
    )
