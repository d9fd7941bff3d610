"""Floor 6: joining, splitting and repeating, with the strict operands of verax.lax.

Each is one or two equations of the basic operations::

    stack((x, y)), split(x, (2, 3)), tile(x, (1, 4)), broadcast_like(x, y)
"""

import functools
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from verax.api.tracing.structs import struct_aval
from verax.ir.avals import Shape
from verax.ir.dtypes import DType, DTypeLike, as_dtype, bfloat16, int32
from verax.lax.scanning import scan
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays, stretched
from verax.numpy.linalg.products import matmul
from verax.numpy.matrices import eye, tril, triu
from verax.numpy.shaping.shapes import matrix_transpose
from verax.ops.contraction.dot import dot_general
from verax.ops.conv.functions import fractional_pads
from verax.ops.conv.params import named_dimensions
from verax.ops.elementwise.arith import add, div, mul, sub
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import sqrt
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherDimensionNumbers, GatherScatterMode
from verax.ops.linalg.triangular import adjoint, triangular_solve
from verax.ops.structure.create import full_like, iota
from verax.ops.structure.joining import concatenate, split
from verax.ops.structure.reshard import UNSTACKED, check_whole, retyped
from verax.ops.structure.shape import (
    broadcast_in_dim,
    broadcast_to_rank,
    expand_dims,
    reshape,
    squeeze,
)
from verax.ops.windows.geometry import padtype_to_pads, strided
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_axis, as_sizes
from verax.rules.values.state import asked_dtype


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape to which all of them broadcast, by NumPy's rules.

    Args:
        *shapes: shapes, as sequences of sizes; without any the result is ().

    Returns:
        A tuple of sizes.

    Raises:
        ValueError: there is none.
        TypeError: a size is negative.

    >>> from verax import lax
    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    given: Sequence[object] = shapes
    for one in given:
        if isinstance(one, str) or not isinstance(one, Iterable):
            raise TypeError(
                "Shapes must be 1D sequences of concrete values of integer type, but "
                f"broadcast_shapes got {one!r}"
            )
    out = [tuple(shape) for shape in shapes]
    for shape in out:
        if any(isinstance(n, int) and n < 0 for n in shape):
            raise TypeError(
                "broadcast_shapes: Only non-negative indices are allowed as sizes, but "
                f"a shape is {shape}"
            )
    try:
        return tuple(np.broadcast_shapes(*out))
    except ValueError as error:
        if "mismatch" not in str(error):
            raise
        raise ValueError(
            f"Incompatible shapes for broadcasting: {', '.join(map(str, out))}; "
            "sizes that meet must be equal or 1"
        ) from None


def dtype(x: object) -> DType:
    """The dtype of an operand, or the one that a scalar type stands for.

    Args:
        x: an array or scalar, or a type or a dtype or its name.

    Returns:
        A dtype; without x64 those of 64 bits become those of 32 bits.

    >>> from verax import lax
    >>> print(lax.dtype(1.0))
    float32
    """
    if isinstance(x, type | np.dtype | str):
        named: DTypeLike = x
        return asked_dtype(named)
    return aval_of(x).dtype


def broadcast_like(arr: object, like_arr: object) -> Array:
    """`arr` in the shape of `like_arr`, to whose last dimensions its own correspond.

    Explicit mesh axes that split `like_arr` split the result, unless they split `arr`.

    Args:
        arr: an array or scalar, each of whose dimensions has size 1 or that of
            `like_arr`.
        like_arr: an array, or what has a shape and a dtype, such as a
            `ShapeDtypeStruct`; its values and its dtype do not count.

    Returns:
        An array of the shape of `like_arr` and the dtype of `arr`.

    Raises:
        TypeError: it does not broadcast to that shape.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.broadcast_like(vnp.array([1, 2]), vnp.zeros((3, 2))).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    own, like = aval_of(arr).shape, struct_aval(like_arr)
    first = len(like.shape) - len(own)
    out = broadcast_in_dim(arr, like.shape, tuple(range(first, len(like.shape))))
    if like.explicit is None or out.aval.explicit is not None:
        return out
    return retyped(out, like.explicit)


def stack(operands: Sequence[object], axis: int = 0) -> Array:
    """Arrays of the same shape side by side, along a new dimension.

    Args:
        operands: a sequence of arrays or scalars, of the same shape and dtype.
        axis: the place of the new dimension in the result, by default the first.

    Returns:
        An array with one dimension more, of the dtype of the operands.

    Raises:
        TypeError: dtypes differ.
        ValueError: there are none, or shapes differ.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, y = vnp.array([1, 2]), vnp.array([3, 4])
    >>> lax.stack((x, y)).tolist(), lax.stack((x, y), 1).tolist()
    ([[1, 2], [3, 4]], [[1, 3], [2, 4]])
    """
    shapes = [aval_of(x).shape for x in operands]
    if not shapes or any(shape != shapes[0] for shape in shapes):
        raise ValueError(
            f"stack takes arrays of the same shape, not of shapes {shapes}"
        )
    place = as_axis("stack", axis, len(shapes[0]) + 1)
    return concatenate([expand_dims(x, (place,)) for x in operands], place)


def unstack(x: object, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along a dimension, without it.

    Args:
        x: an array with one dimension at least.
        axis: the dimension to work along, by default the first.

    Returns:
        A tuple of as many arrays as the dimension has elements, of the dtype of `x`.

    Raises:
        ShardingTypeError: an explicit axis splits that dimension.
        ValueError: there is no such dimension.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> first, second = lax.unstack(vnp.array([[1, 2], [3, 4]]), 1)
    >>> first.tolist(), second.tolist()
    ([1, 3], [2, 4])
    """
    aval = aval_of(x)
    shape = aval.shape
    place = as_axis("unstack", axis, len(shape))
    check_whole(aval, (place,), UNSTACKED)
    parts = split(x, (1,) * shape[place], place)
    return tuple([squeeze(part, (place,)) for part in parts])


def tile(operand: object, reps: Sequence[int]) -> Array:
    """The array repeated as a whole, `reps` times along each dimension.

    Args:
        operand: an array.
        reps: how often to repeat it, one number for each dimension.

    Returns:
        An array whose sizes are those of `operand` times `reps`, of the same dtype.

    Raises:
        ValueError: there is not one number per dimension.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.tile(vnp.array([[1, 2]]), (2, 3)).tolist()
    [[1, 2, 1, 2, 1, 2], [1, 2, 1, 2, 1, 2]]
    """
    shape = aval_of(operand).shape
    times = as_sizes("tile", "reps", reps)
    if len(times) != len(shape):
        raise ValueError(
            f"tile: got {len(times)} repetitions for {len(shape)} dimensions"
        )
    grown = [n for pair in zip(times, shape, strict=True) for n in pair]
    wide = broadcast_in_dim(operand, grown, tuple(range(1, 2 * len(shape), 2)))
    return reshape(wide, [n * m for n, m in zip(times, shape, strict=True)])


def index_take(src: object, idxs: Sequence[object], axes: Sequence[int]) -> Array:
    """The slices of `src` at each of the indices, which are one vector per axis.

    Indices wrap around.

    Args:
        src: an array.
        idxs: integer vectors of one length, one for each of the axes.
        axes: the dimensions of `src` that are indexed, and that the slices do not have.

    Returns:
        The slices along a new first dimension, of the dtype of `src`.

    Raises:
        ValueError: there is not one vector per axis, all of the same size.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> lax.index_take(x, [vnp.array([0, -1])], (1,)).tolist()
    [[1, 4], [3, 6]]
    >>> lax.index_take(x, [vnp.array([0, 1]), vnp.array([2, 0])], (0, 1)).tolist()
    [3, 4]
    """
    shape = aval_of(src).shape
    places = [as_axis("index_take", axis, len(shape)) for axis in axes]
    sizes = {aval_of(x).shape for x in idxs}
    if len(idxs) != len(places) or len(sizes) != 1:
        raise ValueError(
            "index_take takes one vector of indices, all of the same size, for each "
            f"of the axes {axes}"
        )
    columns = [
        expand_dims(wrapped(convert(x, int32), shape[place]), (1,))
        for x, place in zip(idxs, places, strict=True)
    ]
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape) - len(places) + 1)),
        collapsed_slice_dims=tuple(sorted(places)),
        start_index_map=tuple(places),
    )
    window = [1 if i in places else n for i, n in enumerate(shape)]
    index = concatenate(columns, 1)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return gather(src, index, numbers, window, mode=mode)


def wrapped(places: Array, size: int) -> Array:
    """Indices modulo a size, none of them negative."""
    out: Array = places % size
    return out


def polynomial(
    x: object, coeffs: Sequence[object], *, unroll: int | None = None
) -> Array:
    """The polynomial with these coefficients, the constant first, by Horner's rule.

    Args:
        x: an array or scalar.
        coeffs: a sequence of arrays or scalars of the dtype of `x`, the constant first;
            without any the result is 0.
        unroll: ignored: the steps are always unrolled.

    Returns:
        An array of the dtype of `x`, in the shape to which all of them broadcast.

    >>> from verax import lax
    >>> float(lax.polynomial(3.0, [1.0, 5.0, 2.0]))
    34.0
    """
    if not coeffs:
        return full_like(x, 0)
    rank = max(len(aval_of(part).shape) for part in (x, *coeffs))
    place, *line = [leveled(part, rank) for part in (x, *coeffs)]
    *lower, highest = line
    if not lower:
        shape = broadcast_shapes(aval_of(x).shape, aval_of(highest).shape)
        return add(mul(place, 0), highest) if shape else highest
    out: Array = functools.reduce(
        lambda result, part: add(mul(result, place), part), lower[::-1], highest
    )
    return out


def leveled(x: object, rank: int) -> Any:
    """An operand with as many dimensions as the others; scalars stay."""
    own = len(aval_of(x).shape)
    return x if own in (0, rank) else broadcast_to_rank(x, rank)


# -----------------------------------------------------------------------------
# Products with reflections and with themselves, and updates of factors.
#
# K reflections together are I - V T Vᴴ with a triangular T, so that their
# product with a matrix is three ordinary products, and its derivative theirs::
#
#     ormqr(h, taus, c)              # Q c, for the Q that geqrf packs
#     cholesky_update(r, w)          # the factor of rᵀ r + w wᵀ


class EigImplementation(Enum):
    """A library for general eigenvalues; on CPU it is LAPACK."""

    __module__ = "verax.lax.linalg"

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(Enum):
    """An algorithm for eigenvalues of Hermitian matrices; on CPU it is LAPACK's QR."""

    __module__ = "verax.lax.linalg"

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(Enum):
    """An algorithm for singular values; on CPU it is LAPACK's."""

    __module__ = "verax.lax.linalg"

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def ormqr(
    a: ArrayLike,
    taus: ArrayLike,
    c: ArrayLike,
    *,
    left: bool = True,
    transpose: bool = False,
) -> Array:
    """Q c, for the square Q of reflections `a` (..., m, n) with scales `taus` (..., k).

    Schreiber and Van Loan, "A storage-efficient WY representation for products of
    Householder transformations", 1989.

    Args:
        a: reflections below the diagonal of matrices, as `geqrf` gives them.
        taus: the scales of the first k ≤ min(m, n) reflections, as `geqrf` gives them.
        c: matrices (..., m, p), or (..., p, m) where Q multiplies from the right.
        left: whether Q multiplies from the left, which is the default.
        transpose: whether it is the conjugate transpose of Q; by default Q itself.

    Returns:
        Arrays of the shape of `c`, with batch dimensions to which those of the
        arguments broadcast, of their common inexact dtype.

    Raises:
        ValueError: shapes do not match.

    >>> import verax.numpy as vnp
    >>> from verax.lax import linalg
    >>> h, taus = linalg.geqrf(vnp.array([[3.0], [4.0]]))
    >>> linalg.ormqr(h, taus, vnp.eye(2)).round(3)
    Array([[-0.6, -0.8],
           [-0.8,  0.6]], dtype=float32)
    """
    h, scales, x = inexact_arrays("ormqr", a, taus, c)
    if min(h.ndim, x.ndim) < 2 or scales.ndim != h.ndim - 1:
        raise ValueError(
            "ormqr takes reflections of shape (..., m, n), scales of shape (..., k) "
            f"and a matrix, not {h.shape}, {scales.shape} and {x.shape}"
        )
    count = scales.shape[-1]
    size = x.shape[-2 if left else -1]
    if h.shape[-2] != size or count > min(h.shape[-2:]):
        raise ValueError(
            f"ormqr: reflections of shape {h.shape} with {count} scales do not match "
            f"a matrix of shape {x.shape}"
        )
    below = tril(h[..., :count], -1)
    v = below + stretched(eye(size, count, dtype=h.dtype), below.shape)
    inner = triu(matmul(adjoint(v), v), 1) * scales[..., None, :]
    # T = diag(taus) (1 + N diag(taus))⁻¹, which takes scales of zero.
    whole = stretched(eye(count, dtype=h.dtype), inner.shape)
    one = inner + whole
    t = scales[..., :, None] * triangular_solve(one, whole, left_side=True)
    middle = adjoint(t) if transpose else t
    if left:
        return sub(x, matmul(v, matmul(middle, matmul(adjoint(v), x))))
    return sub(x, matmul(matmul(matmul(x, v), middle), adjoint(v)))


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular R' with R'ᵀ R' = Rᵀ R + w wᵀ, in O(n²) steps.

    Args:
        r_matrix: the upper triangular R, of shape (n, n) and real.
        w_vector: w, of shape (n,).

    Returns:
        An array of shape (n, n), of the common inexact dtype of the arguments.

    Raises:
        ValueError: `r_matrix` is not (n, n), or `w_vector` not (n,).

    >>> import numpy as np
    >>> from verax.lax import linalg
    >>> linalg.cholesky_update(np.array([[3.0]]), np.array([4.0])).round(3).tolist()
    [[5.0]]
    """
    r, w = inexact_arrays("cholesky_update", r_matrix, w_vector)
    if r.shape != (*w.shape, *w.shape) or w.ndim != 1:
        raise ValueError(
            f"cholesky_update takes arrays of shapes (n, n) and (n,), not {r.shape} "
            f"and {w.shape}"
        )

    def step(w: Array, line: tuple[Array, Array]) -> tuple[Array, Array]:
        row, i = line
        own, new = row[i], w[i]
        c, s = div(sqrt(add(mul(own, own), mul(new, new))), own), div(new, own)
        after = div(add(row, mul(s, w)), c)
        return sub(mul(c, w), mul(s, after)), after

    out: Array = scan(step, w, (r, iota(int32, w.shape[0])))[1]
    return out


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: object = 1.0,
    beta: object = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha A Aᵀ + beta C, for A (..., m, n) and a symmetric C (..., m, m).

    Args:
        a_matrix: A, of shape (..., m, n).
        c_matrix: C, of shape (..., m, m), with the batch dimensions of A.
        alpha: a scalar.
        beta: a scalar; by default 0, so that C does not count.
        symmetrize_output: whether the part above the diagonal becomes that below,
            turned.

    Returns:
        An array of shape (..., m, m), of the common inexact dtype of A and C.

    Raises:
        ValueError: shapes do not match.

    >>> import verax.numpy as vnp
    >>> from verax.lax import linalg
    >>> a = vnp.array([[1.0, 2.0], [0.0, 3.0]])
    >>> linalg.symmetric_product(a, vnp.eye(2), beta=10.0).tolist()
    [[15.0, 6.0], [6.0, 19.0]]
    """
    a, c = inexact_arrays("symmetric_product", a_matrix, c_matrix)
    if min(a.ndim, c.ndim) < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(
            "symmetric_product takes arrays of shapes (..., m, n) and (..., m, m), "
            f"not {a.shape} and {c.shape}"
        )
    out: Array = alpha * matmul(a, matrix_transpose(a)) + beta * c
    if not symmetrize_output:
        return out
    return add(tril(out), matrix_transpose(tril(out, -1)))


# -----------------------------------------------------------------------------
# The shapes of convolutions, without computing one.
#
# Shapes are put into the order batch, channel, space, where each spatial size
# follows from its own window, and put back::
#
#     conv_shape_tuple((1, 3, 8, 8), (5, 3, 3, 3), (1, 1), "SAME")    # (1, 5, 8, 8)


type Padding = str | Sequence[tuple[int, int]]
type Permutations = tuple[Shape, Shape, Shape]


def conv_general_permutations(dimension_numbers: Sequence[str]) -> Permutations:
    """The order of batch, channel and space in operand, kernel and result.

    Args:
        dimension_numbers: three strings that name the dimensions of operand, kernel and
            result by letters: N and C for batch and channel, O and I for the channels
            of the kernel, and the same others for space.

    Returns:
        Three tuples: the places of batch, channel and space in operand and result, and
        those of output channel, input channel and space in the kernel.

    Raises:
        ValueError: the three strings do not name the same dimensions.

    >>> from verax import lax
    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    specs = named_dimensions(len(lhs), lhs, rhs, out)
    return specs.lhs_spec, specs.rhs_spec, specs.out_spec


def taken(shape: Sequence[int], order: Sequence[int]) -> Shape:
    return tuple(shape[i] for i in order)


def put_back(shape: Sequence[int], order: Sequence[int]) -> Shape:
    """The inverse of `taken`."""
    return tuple(shape[order.index(i)] for i in range(len(order)))


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> Shape:
    """The shape of a convolution of (batch, channel, *space) and (out, in, *window).

    Args:
        lhs_shape: the shape of the operand.
        rhs_shape: the shape of the kernel.
        strides: the steps in which windows move, one for each spatial dimension.
        pads: "SAME", "SAME_LOWER", "VALID" or a pair (low, high) for each spatial
            dimension.
        batch_group_count: the number of groups into which the batch is divided, by
            default 1.

    Returns:
        A tuple of sizes: those of batch, channel and space.

    Raises:
        ValueError: there is not one pad for each dimension, or a negative one is larger
            than its dimension, or the groups do not divide the batch.

    >>> from verax import lax
    >>> lax.conv_shape_tuple((1, 3, 8, 8), (5, 3, 3, 3), (2, 2), "VALID")
    (1, 5, 3, 3)
    """
    space, windows = lhs_shape[2:], rhs_shape[2:]
    given = (
        padtype_to_pads(space, windows, strides, pads)
        if isinstance(pads, str)
        else pads
    )
    if len(given) != len(space):
        raise ValueError(
            f"conv_shape_tuple: got {len(given)} pads for {len(space)} spatial "
            "dimensions"
        )
    padded = [size + low + high for size, (low, high) in zip(space, given, strict=True)]
    if any(size < 0 for size in padded):
        raise ValueError(
            f"conv_shape_tuple: the negative pads {list(given)} exceed the sizes "
            f"{space}"
        )
    if lhs_shape[0] % batch_group_count:
        raise ValueError(
            f"conv_shape_tuple: batch_group_count={batch_group_count} must divide the "
            f"batch size {lhs_shape[0]}"
        )
    sizes = [
        strided(size, window, stride)
        for size, window, stride in zip(padded, windows, strides, strict=True)
    ]
    return lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> Shape:
    """`conv_shape_tuple` for dimensions in the order of three strings.

    Args:
        lhs_shape: the shape of the operand.
        rhs_shape: the shape of the kernel.
        window_strides: the steps in which windows move, one for each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID" or a pair (low, high) for each spatial
            dimension.
        dimension_numbers: three strings, as for `conv_general_permutations`.

    Returns:
        A tuple of sizes, in the order of the third string.

    Raises:
        ValueError: there is not one pad for each dimension, or the strings do not name
            the same dimensions.

    >>> from verax import lax
    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 5), (2, 2), "SAME", names)
    (1, 4, 4, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    result = conv_shape_tuple(
        taken(lhs_shape, lhs), taken(rhs_shape, rhs), window_strides, padding
    )
    return put_back(result, out)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> Shape:
    """The shape of `conv_transpose`, for dimensions in the order of three strings.

    Args:
        lhs_shape: the shape of the operand.
        rhs_shape: the shape of the kernel.
        window_strides: the strides of the convolution that is turned back, one for each
            spatial dimension.
        padding: "SAME", "VALID" or a pair (low, high) for each spatial dimension.
        dimension_numbers: three strings, as for `conv_general_permutations`.

    Returns:
        A tuple of sizes, in the order of the third string.

    Raises:
        ValueError: there is no such padding, or the strings do not name the same
            dimensions.

    >>> from verax import lax
    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_transpose_shape_tuple(
    ...     (1, 4, 4, 2), (3, 3, 2, 5), (2, 2), "SAME", names)
    (1, 8, 8, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    operand, kernel = taken(lhs_shape, lhs), taken(rhs_shape, rhs)
    windows, strides = kernel[2:], tuple(window_strides)
    pads = (
        fractional_pads(padding, windows, strides)
        if isinstance(padding, str)
        else padding
    )
    sizes = [
        (size - 1) * stride - window + 2 + sum(pad)
        for size, window, stride, pad in zip(
            operand[2:], windows, strides, pads, strict=True
        )
    ]
    return put_back((operand[0], kernel[0], *sizes), out)


# -----------------------------------------------------------------------------
# Products of matrices whose entries share scales in blocks.
#
# A scale stands for a block of neighbours along a contracted dimension, so it
# is repeated over the block and multiplied in before an ordinary product::
#
#     scaled_dot(x, y, lhs_scale=s, rhs_scale=t)      # (x s) @ (y t) in bfloat16


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

    Args:
        lhs: the left operand, an array.
        rhs: the right operand, an array.
        lhs_scale: the scale of `lhs`, of its sizes but for contracted dimensions, whose
            sizes are divisors; a scale stands for a block of neighbours. None for 1.
        rhs_scale: the same for `rhs`.
        dimension_numbers: the contracted and the batch dimensions, as for
            `dot_general`; by default the last dimension of `lhs` and the second to last
            of `rhs` are contracted, and those in front are a batch.
        preferred_element_type: the dtype of the result; None for bfloat16.

    Returns:
        An array of the shape that `dot_general` gives.

    Raises:
        TypeError: shapes do not match.

    >>> import numpy as np
    >>> from verax import lax
    >>> x, s = np.ones((2, 4), np.float32), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> lax.scaled_dot(x, x.T, lhs_scale=s)[:, 0].tolist()
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
