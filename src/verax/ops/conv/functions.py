"""Floor 2: convolutions as users call them: names, strings and defaults made plain.

One idea: each function is arithmetic on sizes around one `conv_general_dilated`::

    conv(x, k, (1, 1), "SAME")                # x is NCHW, k is OIHW
    conv_transpose(x, k, (2, 2), "SAME")      # x is NHWC, k is HWIO
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType, DTypeLike, numpy_dtype
from verax.ops.contraction.dot import dot_general
from verax.ops.contraction.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    DotPrecision,
    precision_of,
)
from verax.ops.conv.params import (
    ConvDimensionNumbers,
    ConvParams,
    conv_dimension_numbers,
)
from verax.ops.conv.primitive import conv_general_dilated_p
from verax.ops.structure.joining import rev
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import inverse, transpose
from verax.ops.windows.geometry import (
    Pads,
    as_pads,
    dilated,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import shown
from verax.rules.values.operands import alike
from verax.rules.values.sizes import as_integers, as_sizes
from verax.rules.values.state import asked_dtype

NAME = "conv_general_dilated"
CHANNELS_LAST = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def preferred_dtype(preferred: DTypeLike | None) -> DType | None:
    return None if preferred is None else asked_dtype(preferred)


def per_dimension(argument: str, values: object, count: int) -> Shape:
    """A positive number for each spatial dimension; None means ones.

    Raises:
        ValueError: there are more, fewer, or others.
    """
    out = (1,) * count if values is None else as_integers(NAME, argument, values)
    if len(out) != count:
        raise ValueError(
            f"{NAME} window and {argument} must have the same number of dimensions, "
            f"{count}, not {values}"
        )
    if any(value < 1 for value in out):
        raise ValueError(f"{NAME}: {argument} must be positive, not {values}")
    return out


def conv_general_dilated(
    lhs: object,
    rhs: object,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """The sums of products of the windows of `lhs` with the kernel `rhs`.

    The kernel is not reversed: this is a cross-correlation. Semantics: StableHLO's
    convolution.

    Args:
        lhs: an array with one batch, one feature and any number of spatial dimensions.
        rhs: the kernel, with one dimension of output features, one of input features
            and the same spatial ones; of the dtype of `lhs`. Its input features times
            `feature_group_count` are the features of `lhs`.
        window_strides: the step of the window in each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID" or a pair (low, high) for each spatial
            dimension, negative to crop. "SAME" gives ceil(size / stride) places and
            puts an odd element at the end, "SAME_LOWER" at the start.
        lhs_dilation: the distance between elements of `lhs` in each spatial dimension,
            with zeros between them; None for 1.
        rhs_dilation: the same of the kernel.
        dimension_numbers: which dimension is what: strings such as `("NHWC", "HWIO",
            "NHWC")` for `lhs`, `rhs` and the result, see `lax.conv_dimension_numbers`;
            None if batch and features come first.
        feature_group_count: the number of convolutions side by side into which input
            and output features are split.
        batch_group_count: the number of convolutions side by side into which batches
            and output features are split; not together with `feature_group_count`.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default. No dot algorithm.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands. It may not be narrower.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array with its dimensions in the order of the third string, of the preferred
        dtype or else that of the operands.

    Raises:
        TypeError: shapes or dtypes do not match.
        ValueError: a parameter is out of range, or `padding` is a string together
            with `lhs_dilation`.

    >>> import verax
    >>> x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    >>> conv_general_dilated(x, np.ones((1, 1, 3), np.float32), (2,), "SAME")
    Array([[[1., 6., 7.]]], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(conv_general_dilated, locals())
    lhs, rhs = alike(lhs, rhs)
    x, k = aval_of(lhs), aval_of(rhs)
    dims = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    count = max(0, x.ndim - 2)
    strides = per_dimension("window_strides", window_strides, count)
    base = per_dimension("lhs_dilation", lhs_dilation, count)
    spread = per_dimension("rhs_dilation", rhs_dilation, count)
    groups = as_integers(NAME, "groups", (feature_group_count, batch_group_count))
    params = ConvParams(
        strides,
        spatial_pads(padding, x, k, dims, strides, base, spread),
        base,
        spread,
        dims,
        groups[0],
        groups[1],
        conv_precision(precision),
        preferred_dtype(preferred_element_type),
    )
    return conv_general_dilated_p.call(params, lhs, rhs)


def spatial_pads(
    padding: object,
    x: ShapedArray,
    k: ShapedArray,
    dims: ConvDimensionNumbers,
    strides: Shape,
    base: Shape,
    spread: Shape,
) -> Pads:
    """The padding of the spatial dimensions as pairs."""
    named = isinstance(padding, str) and padding.upper() != "VALID"
    if named and max(base, default=1) > 1:
        raise ValueError(
            f"{NAME}: padding={padding!r} is ambiguous with lhs_dilation; pass pairs "
            "(low, high), or use conv_transpose"
        )
    sizes = tuple(x.shape[i] for i in dims.lhs_spec[2:])
    windows = tuple(k.shape[i] for i in dims.rhs_spec[2:])
    return as_pads(NAME, padding, sizes, tuple(map(dilated, windows, spread)), strides)


def conv_precision(precision: object) -> DotPrecision:
    """The precision of a convolution.

    Raises:
        ValueError: it is an algorithm.
    """
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        raise ValueError(
            f"{NAME}: precision must not be a dot algorithm; use verax.lax.Precision"
        )
    how = precision_of(precision)
    # An algorithm configured for products of matrices says nothing of convolutions.
    return None if isinstance(how, DotAlgorithm | DotAlgorithmPreset) else how


def conv(
    lhs: object,
    rhs: object,
    window_strides: Sequence[int],
    padding: str,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of `lhs` (batch, feature, spatial...) with the kernel `rhs`.

    The kernel is not reversed. Errors are those of `conv_general_dilated`.

    Args:
        lhs: an array of dimensions (batch, feature, spatial...).
        rhs: the kernel, of dimensions (output feature, input feature, spatial...) and
            of the dtype of `lhs`.
        window_strides: the step of the window in each spatial dimension.
        padding: "SAME", "SAME_LOWER" or "VALID"; pairs work too, as in
            `conv_general_dilated`.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.

    Returns:
        An array of dimensions (batch, output feature, spatial...).

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, kernel = vnp.arange(4.0), vnp.array([1.0, 10.0, 100.0])
    >>> lax.conv(x.reshape(1, 1, 4), kernel.reshape(1, 1, 3), (1,), "VALID").ravel()
    Array([210., 321.], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: object,
    rhs: object,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv` with padding by numbers, and with dilations.

    Errors are those of `conv_general_dilated`.

    Args:
        lhs: an array of dimensions (batch, feature, spatial...).
        rhs: the kernel, of dimensions (output feature, input feature, spatial...) and
            of the dtype of `lhs`.
        window_strides: the step of the window in each spatial dimension.
        padding: a pair (low, high) for each spatial dimension, negative to crop; or a
            string, as in `conv`.
        lhs_dilation: the distance between elements of `lhs` in each spatial dimension,
            with zeros between them; None for 1.
        rhs_dilation: the same of the kernel.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.

    Returns:
        An array of dimensions (batch, output feature, spatial...).

    The elements of the dilated array are 0, 0, 1, 0, 2, of which the first is cut off:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, ones = vnp.arange(3.0).reshape(1, 1, 3), vnp.ones((1, 1, 2))
    >>> lax.conv_with_general_padding(x, ones, (1,), ((-1, 0),), (2,), None).ravel()
    Array([1., 1., 2.], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: object,
    rhs: object,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    transpose_kernel: bool = False,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution that goes in fractions of a step: `strides` dilate `lhs`.

    Args:
        lhs: an array with one batch, one feature and any number of spatial dimensions.
        rhs: the kernel, of the dtype of `lhs`.
        strides: the distance between elements of `lhs` in each spatial dimension: how
            many times as large the result is.
        padding: "SAME" or "VALID", that of the convolution which this turns back; or a
            pair (low, high) for each spatial dimension, that of this one.
        rhs_dilation: the distance between elements of the kernel in each spatial
            dimension; None for 1.
        dimension_numbers: strings as in `conv_general_dilated`; None for channels last,
            such as `("NHWC", "HWIO", "NHWC")`, with up to three spatial dimensions.
        transpose_kernel: whether the kernel is that of the convolution turned back: it
            is reversed, and its features are swapped, as the adjoint of that
            convolution takes it.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        use_consistent_padding: whether pairs are those of the convolution turned back,
            as strings are.

    Returns:
        An array with size * stride places in each spatial dimension for "SAME", and
        the features that the kernel has.

    Raises:
        TypeError: shapes or dtypes do not match.
        ValueError: a parameter is out of range.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, kernel = vnp.array([1.0, 2.0]), vnp.array([0.5, 1.0, 0.5])
    >>> y = lax.conv_transpose(
    ...     x.reshape(1, 2, 1), kernel.reshape(3, 1, 1), (2,), "VALID"
    ... )
    >>> y.ravel()
    Array([0.5, 1. , 1.5, 2. , 1. ], dtype=float32)
    """
    x, k = aval_of(lhs), aval_of(rhs)
    if dimension_numbers is None and x.ndim not in CHANNELS_LAST:
        raise ValueError(
            f"conv_transpose has no default dimension_numbers for {x.ndim} dimensions"
        )
    numbers = dimension_numbers or CHANNELS_LAST[x.ndim]
    dims = conv_dimension_numbers(x.shape, k.shape, numbers)
    count = max(0, x.ndim - 2)
    steps = per_dimension("strides", strides, count)
    spread = per_dimension("rhs_dilation", rhs_dilation, count)
    wide = tuple(
        dilated(k.shape[i], d) for i, d in zip(dims.rhs_spec[2:], spread, strict=True)
    )
    if isinstance(padding, str):
        pads = fractional_pads(padding, wide, steps)
    else:
        pads = as_pads("conv_transpose", padding, wide, wide, steps)
        if use_consistent_padding:
            pads = tuple(
                (size - 1 - low, size - 1 - high)
                for size, (low, high) in zip(wide, pads, strict=True)
            )
    if transpose_kernel:
        rhs = turned_kernel(rhs, dims)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * count,
        pads,
        steps,
        spread,
        dims,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def turned_kernel(rhs: object, dims: ConvDimensionNumbers) -> Array:
    """A kernel reversed in space, its input features for its output features."""
    order = list(range(len(dims.rhs_spec)))
    first, second = dims.rhs_spec[:2]
    order[first], order[second] = second, first
    return transpose(rev(rhs, dims.rhs_spec[2:]), order)


def fractional_pads(padding: str, windows: Shape, strides: Shape) -> Pads:
    """The padding that turns back a convolution padded by name."""
    kind = padding.upper()
    if kind not in ("SAME", "VALID"):
        raise ValueError(
            "conv_transpose: padding must be 'SAME', 'VALID' or pairs (low, high), "
            f"not {shown(padding)}"
        )
    pads = []
    for window, stride in zip(windows, strides, strict=True):
        total, before = window + stride - 2, window - 1
        if kind == "VALID":
            total += max(window - stride, 0)
        elif stride <= window - 1:
            before = -(-total // 2)
        pads.append((before, total - before))
    return tuple(pads)


def conv_general_dilated_patches(
    lhs: object,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The windows that a convolution would see, in the feature dimension of the result.

    Features are ordered by feature of `lhs`, then by place in the window, in the order
    of the spatial dimensions of the kernel, as `filter_shape` is. Errors are those of
    `conv_general_dilated`.

    Args:
        lhs: an array with one batch, one feature and any number of spatial dimensions.
        filter_shape: the size of the window in each spatial dimension.
        window_strides: the step of the window in each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID" or a pair (low, high) for each spatial
            dimension.
        lhs_dilation: the distance between elements of `lhs` in each spatial dimension,
            with zeros between them; None for 1.
        rhs_dilation: the distance between elements of the window; None for 1.
        dimension_numbers: strings as in `conv_general_dilated`; None if batch and
            features come first.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default. The windows are products with ones and zeros.
        preferred_element_type: the dtype of the result; None for that of `lhs`.

    Returns:
        An array like that of the convolution, with as many features as those of `lhs`
        times the places in the window.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(4.0).reshape(1, 1, 4)
    >>> lax.conv_general_dilated_patches(x, (3,), (1,), "VALID")
    Array([[[0., 1.],
            [1., 2.],
            [2., 3.]]], dtype=float32)
    """
    x = aval_of(lhs)
    windows = as_sizes("conv_general_dilated_patches", "filter_shape", filter_shape)
    dims = conv_dimension_numbers(x.shape, (1,) * x.ndim, dimension_numbers)
    if len(windows) != x.ndim - 2:
        raise ValueError(
            "conv_general_dilated_patches takes one window size for each spatial "
            f"dimension of {x}, not {windows}"
        )
    features, size = x.shape[dims.lhs_spec[1]], prod(windows)
    # One output feature for each place in the window: a kernel of unit vectors.
    units = np.eye(size, dtype=np.bool_).reshape((size, 1, *windows))
    kernel = np.tile(units, (features, *(1,) * (x.ndim - 1))).astype(
        numpy_dtype(x.dtype)
    )
    same = tuple(range(x.ndim))
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        ConvDimensionNumbers(dims.lhs_spec, same, dims.out_spec),
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: object,
    rhs: object,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: object = None,
) -> Array:
    """A convolution with a kernel of its own at every place.

    Errors are those of `conv_general_dilated`.

    Args:
        lhs: an array with one batch, one feature and any number of spatial dimensions.
        rhs: the kernels: the spatial dimensions are those of the result, the input
            features are those of `conv_general_dilated_patches`.
        window_strides: the step of the window in each spatial dimension.
        padding: "SAME", "SAME_LOWER", "VALID" or a pair (low, high) for each spatial
            dimension.
        filter_shape: the size of the window in each spatial dimension.
        lhs_dilation: the distance between elements of `lhs` in each spatial dimension,
            with zeros between them; None for 1.
        rhs_dilation: the distance between elements of the window; None for 1.
        dimension_numbers: strings as in `conv_general_dilated`; None if batch and
            features come first.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.

    Returns:
        An array like that of the convolution.

    The kernel is (1, 0) at the first place, (0, 1) at the second and (1, 10) at the
    third:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(4.0).reshape(1, 1, 4)
    >>> kernels = vnp.array([[[1.0, 0.0, 1.0], [0.0, 1.0, 10.0]]])
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)).ravel()
    Array([ 0.,  2., 32.], dtype=float32)
    """
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        precision,
    )
    rank = patches.ndim
    dims = conv_dimension_numbers(patches.shape, (1,) * rank, dimension_numbers)
    product = dot_general(
        patches,
        rhs,
        (
            ((dims.out_spec[1],), (dims.rhs_spec[1],)),
            (dims.out_spec[2:], dims.rhs_spec[2:]),
        ),
        precision,
    )
    # The product has the spatial dimensions, the batch, the output feature.
    held = (*dims.out_spec[2:], *dims.out_spec[:2])
    return transpose(product, inverse(held))
