"""Floor 6: softmax and its relatives: exponentials summed without overflow.

One idea: the largest element is subtracted before the exponential; it cancels in the
result, so it is a constant for differentiation::

    logsumexp(x) = log sum exp(x - m) + m,   m = max x
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, overload

import numpy as np

from verax.api.autodiff.jvp_vjp import vjp
from verax.api.custom.checkpoint import optimization_barrier
from verax.api.custom.vjp import custom_vjp
from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape, finfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    as_dtype,
    bfloat16,
    float16,
    float32,
    is_complex,
    is_float,
    real_dtype,
)
from verax.lax.shaping import DotDimensionNumbers, scaled
from verax.nn.activations import inexact, inexact_pair
from verax.numpy.arguments.arguments import (
    ArrayLike,
    NamedAxis,
    as_array,
    broadcast_together,
    constant_of,
    keep_dims,
    named_apart,
    reduction_axes,
    spread,
    stretched,
)
from verax.numpy.creation.dtypes import float4_e2m1fn, float8_e4m3fn, float8_e8m0fnu
from verax.numpy.elementwise.arithmetic import abs as absolute, clip
from verax.numpy.reducing.reductions import across, boolean_mask, count_across
from verax.numpy.searching.where_nonzero import where
from verax.ops.contraction.dot import dot_general
from verax.ops.elementwise import arith
from verax.ops.elementwise.arith import add, div, mul, real, sub
from verax.ops.elementwise.compare import lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, exp2, log, log2
from verax.ops.elementwise.rounding import ceil, is_finite
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.reductions.reduce import (
    reduce_max,
    reduce_max_p,
    reduce_sum,
    reduce_sum_p,
)
from verax.ops.structure.shape import reshape, transpose
from verax.rules.families.reducer import ReduceParams
from verax.rules.values.array import Array
from verax.rules.values.sizes import kept

type Names = tuple[str, ...]


def as_mask(name: str, where: ArrayLike, x: Array) -> tuple[Array, Array]:
    """A mask and x in one shape.

    Raises:
        ValueError: the mask is not boolean.
    """
    x, mask = broadcast_together(name, (x, boolean_mask(name, where)))
    return stretched(mask, x.shape), x


def strong(x: Array) -> Array:
    """x with a type that is not weak."""
    return convert(x, x.dtype)


def is_small(x: Array) -> bool:
    return is_float(x.dtype) and x.dtype.itemsize < 4


def widened(x: Array) -> Array:
    """Small floats as float32, in which a sum of many neither overflows nor rounds."""
    return convert(x, float32, x.weak_type) if is_small(x) else x


def narrowed(array: Array, x: Array) -> Array:
    """Converts a value that was made of `widened(x)` back to the dtype of x."""
    return convert(array, x.dtype, x.weak_type) if is_small(x) else array


@remembered
def softmax(
    x: ArrayLike, axis: NamedAxis = -1, where: ArrayLike | None = None
) -> Array:
    """exp(x) / sum exp(x) over `axis`, among the elements where `where` is true.

    Large elements do not overflow, since the greatest is subtracted first.

    Args:
        x: an array; integers become floats.
        axis: the dimension or dimensions over which the result sums to 1, or names of
            axes of an enclosing `vmap` or `shard_map`; None for all dimensions. By
            default the last one.
        where: a mask that broadcasts with the array; elements where it is false are
            left out, and 0 in the result.

    Returns:
        The shape of `x`, broadcast with `where`, and its dtype; floats for integers.
        The dtype is not weak.

    Raises:
        ValueError: `where` is not boolean, or there is no such dimension.

    >>> import verax
    >>> verax.nn.softmax(verax.numpy.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    >>> mask = verax.numpy.array([True, False, True])
    >>> verax.nn.softmax(verax.numpy.array([1000.0, 5000.0, 1000.0]), where=mask)
    Array([0.5, 0. , 0.5], dtype=float32)
    """
    x = strong(inexact("softmax", x))
    if where is None:
        return normalized(x, axis)
    mask, x = as_mask("softmax", where, x)
    return select(mask, normalized(select(mask, x, -math.inf), axis), 0.0)


def normalized(x: Array, axis: NamedAxis) -> Array:
    """exp(x) times 1 / sum exp(x).

    A product, since its derivative sums `ct * exp(x)` and divides after the sum, where
    that of a quotient divides every element twice.
    """
    axis, names = named_apart(axis)
    axes = reduction_axes("softmax", axis, x.ndim)
    unnormalized = widened(exp(below_zero(x, axes, names)))
    factor = div(1.0, summed(unnormalized, axes, names))
    return narrowed(mul(unnormalized, spread(factor, x.shape, axes)), x)


def summed(x: Array, axes: Shape, names: Names) -> Array:
    """The sum over dimensions and over named axes."""
    return across("sum", reduce_sum_p, reduce_sum(x, axes), names)


def greatest(x: Array, axes: Shape, names: Names) -> Array:
    """The maximum over dimensions and over named axes, as a constant.

    Or less where an element is NaN: what is subtracted from it is NaN there.
    """
    params = ReduceParams(axes, loses_nan=True)
    y = reduce_max_p.call(params, stop_gradient(x)) if axes else stop_gradient(x)
    return across("max", reduce_max_p, y, names)


def below_zero(x: Array, axes: Shape, names: Names) -> Array:
    """x - max x, with the maximum as a constant."""
    return sub(x, spread(greatest(x, axes, names), x.shape, axes))


@remembered
def log_softmax(
    x: ArrayLike, axis: NamedAxis = -1, where: ArrayLike | None = None
) -> Array:
    """log(softmax(x)), accurate where that is close to 0; see `softmax`.

    Args:
        x: an array; integers become floats.
        axis: the dimension or dimensions over which `softmax` sums to 1, or names of
            axes of an enclosing `vmap` or `shard_map`; None for all dimensions. By
            default the last one.
        where: a mask that broadcasts with the array; elements where it is false are
            left out, and -inf in the result.

    Returns:
        The shape of `x`, broadcast with `where`, and its dtype; floats for integers.
        The dtype is not weak.

    Raises:
        ValueError: `where` is not boolean, or there is no such dimension.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x = vnp.array([0.0, 1000.0])
    >>> vnp.log(nn.softmax(x)).tolist(), nn.log_softmax(x).tolist()
    ([-inf, 0.0], [-1000.0, 0.0])
    """
    x = strong(inexact("log_softmax", x))
    mask = None
    if where is not None:
        mask, x = as_mask("log_softmax", where, x)
        x = select(mask, x, -math.inf)
    axis, names = named_apart(axis)
    axes = reduction_axes("log_softmax", axis, x.ndim)
    shifted = below_zero(x, axes, names)
    total = log(summed(widened(exp(shifted)), axes, names))
    out = narrowed(sub(widened(shifted), spread(total, x.shape, axes)), x)
    return out if mask is None else select(mask, out, -math.inf)


@overload
def logsumexp(
    a: ArrayLike,
    axis: NamedAxis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: NamedAxis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@remembered
def logsumexp(
    a: ArrayLike,
    axis: NamedAxis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """log sum b exp(a) over `axis`, among the elements where `where` is true.

    Over nothing the sum is 0, its logarithm -inf.

    Args:
        a: an array or scalar of exponents; integers become floats.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        b: weights that broadcast with `a`, by default 1. Where one is 0, its exponent
            may even be infinite.
        keepdims: whether reduced dimensions stay, with size 1.
        return_sign: whether to return the logarithm of the absolute value of the sum,
            and its sign; without it, a negative sum gives NaN.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.

    Returns:
        The dtype to which `a` and `b` promote, floats for integers, and the shape to
        which they broadcast without the reduced dimensions. With `return_sign` a pair
        of such arrays; for complex numbers the sign is sum / |sum|.

    Raises:
        ValueError: `where` is not boolean, or there is no such dimension.

    >>> import verax
    >>> verax.nn.logsumexp(verax.numpy.array([1000.0, 1000.0]))
    Array(1000.69..., dtype=float32)
    >>> a, b = verax.numpy.array([0.0, 0.0]), verax.numpy.array([1.0, -2.0])
    >>> verax.nn.logsumexp(a, b=b, return_sign=True)
    (Array(0., dtype=float32), Array(-1., dtype=float32))
    """
    x, weight = weighted(a, b, where)
    axis, names = named_apart(axis)
    axes = reduction_axes("logsumexp", axis, x.ndim)
    top, total = scaled_sum(x, weight, axes, names)
    signed = weight is not None or is_complex(x.dtype)
    sign = arith.sign(total) if return_sign or signed else None
    if signed and (return_sign or not is_complex(x.dtype)):
        total = arith.abs(total)
    out = add(log(total), convert(top, total.dtype, total.weak_type))
    out = narrowed(out, x)
    if sign is not None and return_sign:
        sign = narrowed(sign, x)
    if sign is not None and not return_sign and not is_complex(out.dtype):
        out = select(lt(sign, 0.0), math.nan, out)
    if keepdims:
        out = keep_dims(out, x.shape, axes)
    if not return_sign or sign is None:
        return out
    return out, keep_dims(sign, x.shape, axes) if keepdims else sign


def weighted(
    a: ArrayLike, b: ArrayLike | None, where: ArrayLike | None
) -> tuple[Array, Array | None]:
    """The exponents, -inf where nothing counts, and their weights if there are any."""
    weight: Array | None = None
    if b is None:
        x = strong(inexact("logsumexp", a))
    else:
        x, weight = inexact_pair("logsumexp", a, b)
        x = select(ne(weight, constant_of(0, weight.dtype)), x, left_out(x))
    if where is not None:
        mask, x = as_mask("logsumexp", where, x)
        x = select(mask, x, left_out(x))
        if weight is not None and weight.ndim and weight.shape != x.shape:
            _, weight = broadcast_together("logsumexp", (x, weight))
    return x, weight


def left_out(x: Array) -> object:
    """The exponent of 0, in the dtype of x."""
    return constant_of(-math.inf, x.dtype) if is_complex(x.dtype) else -math.inf


def scaled_sum(
    x: Array, weight: Array | None, axes: Shape, names: Names
) -> tuple[Array, Array]:
    """The largest finite exponent, 0 if there is none, and sum weight exp(x - it)."""
    parts = real(x) if is_complex(x.dtype) else x
    top = greatest(parts, axes, names)
    top = select(is_finite(top), top, 0.0)
    wide = top if top.dtype == x.dtype else convert(top, x.dtype)
    array = exp(sub(x, spread(wide, x.shape, axes)))
    if weight is not None:
        array = mul(array, weight)
    return top, summed(widened(array), axes, names)


@remembered
def logmeanexp(
    x: ArrayLike,
    axis: NamedAxis = None,
    where: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """log of the mean of exp(x) over `axis`, among elements where `where` is true.

    NaN where there are no elements.

    Args:
        x: an array or scalar; integers become floats.
        axis: the dimension or dimensions to reduce; None for all of them. Names stand
            for axes of an enclosing `vmap` or `shard_map`.
        where: a mask that broadcasts with the array; elements where it is false are
            left out.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The dtype of `x`, floats for integers, and its shape without the reduced
        dimensions.

    Raises:
        ValueError: `where` is not boolean, or there is no such dimension.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x = vnp.array([1000.0, 1000.0])
    >>> vnp.log(vnp.mean(vnp.exp(x))).item(), nn.logmeanexp(x).item()
    (inf, 1000.0)
    """
    x = inexact("logmeanexp", x)
    axis, names = named_apart(axis)
    if where is None:
        axes = reduction_axes("logmeanexp", axis, x.ndim)
        count = math.prod([x.shape[i] for i in axes]) * count_across(names)
        array = logsumexp(x, (*axes, *names), keepdims=keepdims)
        return sub(array, math.log(count) if count else -math.inf)
    mask, x = as_mask("logmeanexp", where, x)
    axes = reduction_axes("logmeanexp", axis, x.ndim)
    counted = summed(convert(mask, real_dtype(x.dtype)), axes, names)
    if keepdims:
        counted = keep_dims(counted, x.shape, axes)
    return sub(
        logsumexp(x, (*axes, *names), keepdims=keepdims, where=mask), log(counted)
    )


# -----------------------------------------------------------------------------
# Products in formats of few bits, whose blocks of numbers share a scale.
#
# An operand is rounded to the numbers that its format can hold and used as an
# ordinary array; the derivative goes through the rounding as if it were not there::
#
#     configs = [get_scaled_dot_general_config("mxfp8")] * 3
#     scaled_dot_general(x, y, (((1,), (1,)), ((), ())), configs=configs)
#
# Rouhani et al., "Microscaling data formats for deep learning", 2023.


class BlockScaleConfig(NamedTuple):
    """A format: how many numbers share a scale, and the dtypes of both.

    `global_scale` is one more scale for the whole operand, with "nvfp4" only.
    """

    mode: str
    block_size: int
    data_type: DType
    scale_type: DType
    global_scale: ArrayLike | None
    infer_only: bool = False


FORMATS = {
    "nvfp4": (16, as_dtype(float4_e2m1fn), as_dtype(float8_e4m3fn)),
    "mxfp8": (32, as_dtype(float8_e4m3fn), as_dtype(float8_e8m0fnu)),
    "mxfp4": (32, as_dtype(float4_e2m1fn), as_dtype(float8_e8m0fnu)),
}


def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """The format of that name, for one operand or gradient of `scaled_dot_general`.

    Args:
        mode: "mxfp8", "mxfp4" or "nvfp4": numbers of 8 or 4 bits, of which 32, or 16
            with "nvfp4", share a scale.
        global_scale: with "nvfp4" one more scale, for the whole operand; by default 1.
            It must be None with "mxfp4", and has no effect with "mxfp8".

    Returns:
        A named tuple with the name of the format, its block size, the dtypes of numbers
        and of scales, and the global scale.

    Raises:
        ValueError: there is no such format, or it takes no global scale.

    >>> from verax import nn
    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode not in FORMATS:
        raise ValueError(f"mode must be one of {', '.join(FORMATS)}, not {mode!r}")
    if mode == "mxfp4" and global_scale is not None:
        raise ValueError(
            "mxfp4 does not take global_scale: its scales cover all magnitudes"
        )
    scale: ArrayLike | None = None
    if mode == "nvfp4":
        scale = np.ones(1, np.float32) if global_scale is None else global_scale
    return BlockScaleConfig(mode, *FORMATS[mode], scale)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Products of rows (b, m, k) and rows (b, n, k), times scales of blocks along k.

    Args:
        lhs: an array of shape (b, m, k).
        rhs: an array of shape (b, n, k).
        lhs_scales: the factors of blocks of `lhs`, of shape (b, m, k / block).
        rhs_scales: the factors of blocks of `rhs`, of shape (b, n, k / block).
        preferred_element_type: the dtype to which operands and scales are converted
            first, in which products are summed and returned; by default float32.

    Returns:
        An array of shape (b, m, n) and dtype `preferred_element_type`.

    Raises:
        ValueError: shapes do not match.

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> a = vnp.array([[[1.0, 2.0, 3.0]]])
    >>> half = vnp.array([[[0.5]]])
    >>> nn.scaled_matmul(a, 2 * a, half, half).item()
    7.0
    """
    given = (lhs, rhs, lhs_scales, rhs_scales)
    a, b, s, t = (as_array("scaled_matmul", x) for x in given)
    shapes = [x.shape for x in (a, b, s, t)]
    fits = (
        all(len(shape) == 3 for shape in shapes)
        and len({shape[0] for shape in shapes}) == 1
        and (a.shape[1], b.shape[1]) == (s.shape[1], t.shape[1])
        and (a.shape[2], s.shape[2]) == (b.shape[2], t.shape[2])
        and s.shape[2] > 0
        and not a.shape[2] % s.shape[2]
    )
    if not fits:
        raise ValueError(
            "scaled_matmul takes shapes (b, m, k) and (b, n, k) with scales (b, m, k "
            f"/ block) and (b, n, k / block), not {', '.join(map(str, shapes))}"
        )
    dtype = as_dtype(preferred_element_type)
    rows = (((2,), (2,)), ((0,), (0,)))
    left, right = scaled(a, s, dtype), scaled(b, t, dtype)
    return dot_general(left, right, rows, preferred_element_type=dtype)


def power_of_two(x: Array) -> Array:
    """The least power of two that is not below x, between 2^-127 and 2^127."""
    return exp2(clip(ceil(log2(x)), -127.0, 127.0))


def rounded(x: Array, axes: Sequence[int], config: BlockScaleConfig) -> Array:
    """`x` as its format holds it, in float32: in blocks along `axes`, the last fastest.

    Raises:
        ValueError: the blocks do not fill `axes`.
    """
    others = kept(x.ndim, axes)
    order = (*others, *axes)
    moved = transpose(convert(x, float32), order)
    count = int(np.prod([x.shape[i] for i in axes], dtype=int))
    if count % config.block_size:
        raise ValueError(
            f"scaled_dot_general: {count} contracted elements are not a multiple of "
            f"the block size of {config.mode}, {config.block_size}"
        )
    front = tuple(x.shape[i] for i in others)
    blocks = reshape(moved, (*front, count // config.block_size, config.block_size))
    overall = None if config.global_scale is None else as_array("", config.global_scale)
    if overall is not None:
        blocks = blocks / overall
    largest = float(finfo(config.data_type).max)
    least = reduce_max(absolute(blocks), (blocks.ndim - 1,)) / largest
    if config.mode == "nvfp4":
        scale = clip(least, 0.0, float(finfo(config.scale_type).max))
        # A rounded scale of zero would divide by zero: all of its block is zero.
        stored = optimization_barrier(convert(scale, config.scale_type))
        scale = convert(stored, float32)
    else:
        scale = power_of_two(least)
    scale = scale[..., None]
    safe = where(scale == 0, 1.0, scale)
    data = convert(clip(blocks / safe, -largest, largest), config.data_type)
    # Else the compiler may drop the pair of conversions.
    array = convert(optimization_barrier(data), float32) * scale
    if overall is not None:
        array = array * overall
    back = reshape(array, moved.shape)
    return transpose(back, tuple(int(i) for i in np.argsort(order)))


def rounding_dot(
    dimension_numbers: DotDimensionNumbers,
    dtype: DType,
    configs: Sequence[BlockScaleConfig],
) -> Callable[[Array, Array], Array]:
    """The product of rounded operands, with a derivative of its own."""
    first, second, third = configs
    (left, right), (left_batch, right_batch) = dimension_numbers

    def product(a: Array, b: Array) -> Array:
        return dot_general(a, b, dimension_numbers, preferred_element_type=float32)

    @custom_vjp
    def dot(a: Array, b: Array) -> Array:
        return convert(
            product(rounded(a, left, first), rounded(b, right, second)), dtype
        )

    def forward(a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
        return dot(a, b), (a, b)

    def backward(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
        a, b = saved
        kept = [i for i in range(a.ndim) if i not in (*left, *left_batch)]
        others = [i for i in range(b.ndim) if i not in (*right, *right_batch)]
        start = len(left_batch)
        places = range(start, start + len(kept))
        beyond = range(start + len(kept), g.ndim)
        wide = convert(g, float32)
        plain = third.mode == "nvfp4"
        g_a, g_b = (
            (wide, wide)
            if plain
            else (rounded(wide, beyond, third), rounded(wide, places, third))
        )
        own_b = convert(b, float32) if plain else rounded(b, others, second)
        own_a = convert(a, float32) if plain else rounded(a, kept, first)
        da = vjp(lambda v: product(v, own_b), convert(a, float32))[1](g_a)[0]
        db = vjp(lambda v: product(own_a, v), convert(b, float32))[1](g_b)[0]
        return convert(da, a.dtype), convert(db, b.dtype)

    dot.defvjp(forward, backward)
    return dot


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """`dot_general` of operands rounded to formats of few bits.

    Operands are rounded in blocks along their contracted dimensions. The derivative
    goes through the rounding as if it were not there; in it the cotangent is rounded
    too, except for "nvfp4".

    Args:
        lhs: an array.
        rhs: an array.
        dimension_numbers: a pair of pairs, for `lhs` and `rhs` each: the contracted
            dimensions, and the batch dimensions.
        preferred_element_type: the dtype of the result, by default float32; with
            `configs` float32, bfloat16 or float16.
        configs: the formats of `lhs`, of `rhs` and of gradients, as
            `get_scaled_dot_general_config` makes them; with None nothing is rounded.
        implementation: ignored, with a warning.

    Returns:
        An array whose dimensions are those of the batch, then the remaining ones of
        `lhs` and of `rhs`.

    Raises:
        ValueError: blocks do not fill the contracted dimensions.
        TypeError: the result is not float32, bfloat16 or float16.

    With four bits 1.1 is not even close:

    >>> import verax.numpy as vnp
    >>> from verax import nn
    >>> x, y = vnp.full((1, 32), 1.1), vnp.ones((1, 32))
    >>> configs = [nn.get_scaled_dot_general_config("mxfp4")] * 3
    >>> rows = (((1,), (1,)), ((), ()))
    >>> nn.scaled_dot_general(x, y, rows, configs=configs)
    Array([[32.]], dtype=float32)
    """
    if implementation is not None:
        warnings.warn("implementation is ignored", DeprecationWarning, stacklevel=2)
    dtype = as_dtype(preferred_element_type)
    x, y = (as_array("scaled_dot_general", v) for v in (lhs, rhs))
    if configs is None:
        return dot_general(x, y, dimension_numbers, preferred_element_type=dtype)
    if dtype not in (float32, bfloat16, float16):
        raise TypeError(
            "scaled_dot_general: preferred_element_type must be float32, bfloat16 or "
            f"float16, not {dtype}"
        )
    out: Array = rounding_dot(dimension_numbers, dtype, configs)(x, y)
    return out
