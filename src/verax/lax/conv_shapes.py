"""Floor 6: the shapes of convolutions, without computing one.

One idea: shapes are put into the order batch, channel, space, where each spatial size
follows from its own window, and put back::

    conv_shape_tuple((1, 3, 8, 8), (5, 3, 3, 3), (1, 1), "SAME")    # (1, 5, 8, 8)
"""

from collections.abc import Sequence

from verax.ir.avals import Shape
from verax.ops.conv.dimensions import named_dimensions
from verax.ops.conv.functions import fractional_pads
from verax.ops.windows.params import padtype_to_pads, strided

type Padding = str | Sequence[tuple[int, int]]
type Permutations = tuple[Shape, Shape, Shape]


def conv_general_permutations(dimension_numbers: Sequence[str]) -> Permutations:
    """Where batch, channel and space are in operand, kernel and result.

    Raises:
        ValueError: the three strings do not name the same dimensions.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
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

    Raises:
        ValueError: there is not one pad for each dimension, or a negative one is larger
            than its dimension, or the groups do not divide the batch.

    >>> conv_shape_tuple((1, 3, 8, 8), (5, 3, 3, 3), (2, 2), "VALID")
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
    """`conv_shape_tuple` for dimensions in the order of three strings."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    found = conv_shape_tuple(
        taken(lhs_shape, lhs), taken(rhs_shape, rhs), window_strides, padding
    )
    return put_back(found, out)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> Shape:
    """The shape of `conv_transpose`, for dimensions in the order of three strings.

    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> conv_transpose_shape_tuple((1, 4, 4, 2), (3, 3, 2, 5), (2, 2), "SAME", names)
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
