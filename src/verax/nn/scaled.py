"""Floor 6: products in formats of few bits, whose blocks of numbers share a scale.

One idea: an operand is rounded to the numbers that its format can hold and used as an
ordinary array; the derivative goes through the rounding as if it were not there::

    configs = [get_scaled_dot_general_config("mxfp8")] * 3
    scaled_dot_general(x, y, (((1,), (1,)), ((), ())), configs=configs)

Rouhani et al., "Microscaling data formats for deep learning", 2023.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from verax.api.autodiff.jvp_vjp import vjp
from verax.api.custom.checkpoint import optimization_barrier
from verax.api.custom.vjp import custom_vjp
from verax.ir.dtypes import DType, DTypeLike, as_dtype, bfloat16, float16, float32
from verax.ir.limits import finfo
from verax.lax.scaled import DotDimensionNumbers, scaled
from verax.numpy.arguments.arguments import ArrayLike, as_array
from verax.numpy.creation.dtypes import float4_e2m1fn, float8_e4m3fn, float8_e8m0fnu
from verax.numpy.elementwise.arithmetic import abs as absolute, clip
from verax.numpy.searching.where_nonzero import where
from verax.ops.contraction.dot import dot_general
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp2, log2
from verax.ops.elementwise.rounding import ceil
from verax.ops.reductions.reduce import reduce_max
from verax.ops.structure.shape import reshape, transpose
from verax.rules.values.array import Array
from verax.rules.values.axes import kept


class BlockScaleConfig(NamedTuple):
    """A format: how many numbers share a scale, and the dtypes of both.

    `global_scale` is one more scale for the whole operand, with "nvfp4" only.
    """

    mode: str
    block_size: int
    data_type: DType
    scale_type: DType
    global_scale: Any
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

    Raises:
        ValueError: there is no such format, or it takes no global scale.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode not in FORMATS:
        raise ValueError(f"mode must be one of {', '.join(FORMATS)}, not {mode!r}")
    if mode == "mxfp4" and global_scale is not None:
        raise ValueError(
            "mxfp4 does not take global_scale: its scales cover all magnitudes"
        )
    scale: Any = global_scale
    if mode == "nvfp4":
        scale = np.ones(1, np.float32) if global_scale is None else global_scale
    return BlockScaleConfig(mode, *FORMATS[mode], scale if mode == "nvfp4" else None)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Products of rows (b, m, k) and rows (b, n, k), times scales of blocks along k.

    The scales have the shapes (b, m, k / block) and (b, n, k / block).

    Raises:
        ValueError: shapes do not match.

    >>> a = np.array([[[1.0, 2.0, 3.0]]])
    >>> half = np.array([[[0.5]]])
    >>> scaled_matmul(a, 2 * a, half, half).item()
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
    found = convert(optimization_barrier(data), float32) * scale
    if overall is not None:
        found = found * overall
    back = reshape(found, moved.shape)
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

    `configs` are the formats of `lhs`, of `rhs` and of gradients; without them nothing
    is rounded. In the derivative the cotangent is rounded too, except for "nvfp4".

    Raises:
        ValueError: blocks do not fill the contracted dimensions.
        TypeError: the result is not float32, bfloat16 or float16.
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
    found: Array = rounding_dot(dimension_numbers, dtype, configs)(x, y)
    return found
