"""Floor 2: the params of convolutions, and which dimension is batch, feature and space.

Three strings of letters, or three tuples of places, one for each of the two operands
and one for the result::

    conv_dimension_numbers((1, 5, 2), (3, 2, 4), ("NHC", "HIO", "NHC"))
"""

from collections.abc import Sequence
from typing import NamedTuple

from attrs import frozen

from verax.ir.avals import Shape
from verax.ir.dtypes import DType
from verax.ir.jaxpr import Params
from verax.ops.contraction.precision import DotPrecision
from verax.ops.windows.geometry import Geometry, Pads
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError


class ConvDimensionNumbers(NamedTuple):
    """The roles of the dimensions of a convolution's operands and result.

    `lhs_spec` and `out_spec` hold the places of (batch, feature, spatial...) and
    `rhs_spec` those of (output feature, input feature, spatial...).
    """

    lhs_spec: Shape
    rhs_spec: Shape
    out_spec: Shape


# The body of a NamedTuple takes nothing but fields.
ConvDimensionNumbers.__module__ = "verax.lax"


type ConvGeneralDilatedDimensionNumbers = (
    tuple[str, str, str] | ConvDimensionNumbers | None
)


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: object
) -> ConvDimensionNumbers:
    """Dimension numbers from three strings such as `("NHWC", "HWIO", "NHWC")`.

    Args:
        lhs_shape: the shape of the left operand.
        rhs_shape: the shape of the kernel, of as many dimensions. Sizes do not matter.
        dimension_numbers: strings for the left operand, the kernel and the result: N is
            batch, C feature, O and I the output and input feature of the kernel; all
            other letters are spatial dimensions, in the order of the kernel. None means
            `("NCHW", "OIHW", "NCHW")` for any number of spatial dimensions. A
            `lax.ConvDimensionNumbers` is returned as it is.

    Returns:
        A `lax.ConvDimensionNumbers`: for each string the places of N and C, or of O and
        I, and those of the spatial dimensions.

    Raises:
        ShapeError: the ranks differ.
        TypeError: it is none of these.
        ValueError: a string lacks a letter, has one twice, or has other letters.

    >>> conv_dimension_numbers((1, 5, 2), (3, 2, 4), ("NHC", "HIO", "NHC")).lhs_spec
    (0, 2, 1)
    """
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise ShapeError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, "
            "but they have "
            f"shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        same = tuple(range(rank))
        return ConvDimensionNumbers(same, same, same)
    if not isinstance(dimension_numbers, tuple | list) or len(dimension_numbers) != 3:
        raise TypeError(
            "dimension_numbers must be None, three strings or a ConvDimensionNumbers, "
            f"not {shown(dimension_numbers)}"
        )
    return named_dimensions(rank, *dimension_numbers)


def named_dimensions(rank: int, lhs: str, rhs: str, out: str) -> ConvDimensionNumbers:
    """`conv_dimension_numbers` of three strings."""
    marks = {"lhs": "NC", "rhs": "OI", "out": "NC"}
    given = {"lhs": lhs, "rhs": rhs, "out": out}
    spatial = [c for c in rhs if c not in "OI"]
    for operand, text in given.items():
        letters = sorted([*marks[operand], *spatial])
        if len(text) != rank or sorted(text) != letters or len(set(text)) < rank:
            raise ShapeError(
                f"dimension_numbers: {operand} has {rank} dimensions, so its string "
                f"must contain {'N, C' if operand != 'rhs' else 'O, I'} and each "
                f"spatial letter of the kernel once, unlike {text!r} in "
                f"{lhs, rhs, out}"
            )
    specs = [
        tuple(text.index(c) for c in [*marks[operand], *spatial])
        for operand, text in given.items()
    ]
    return ConvDimensionNumbers(*specs)


@frozen(eq=False, repr=False)
class ConvParams(Params):
    """Strides, padding, dilations, what each dimension is, groups, and the types."""

    window_strides: Shape
    padding: Pads
    lhs_dilation: Shape
    rhs_dilation: Shape
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int = 1
    batch_group_count: int = 1
    precision: DotPrecision = None
    preferred_element_type: DType | None = None


def geometry_of(p: ConvParams, lhs: Shape, rhs: Shape) -> Geometry:
    """The windows in the spatial dimensions."""
    dims = p.dimension_numbers
    return (
        tuple(lhs[i] for i in dims.lhs_spec[2:]),
        tuple(rhs[i] for i in dims.rhs_spec[2:]),
        p.window_strides,
        p.padding,
        p.lhs_dilation,
        p.rhs_dilation,
    )
