"""Floor 2: the geometry of convolutions and of windows that move over an array.

One idea: a size is dilated, then padded, then covered by a dilated window in strides;
convolutions and window reductions, and the adjoints of both, only count in this way::

    strided(padded(dilated(5, 2), (1, 1)), dilated(3, 1), 2)    # 5
"""

from collections.abc import Sequence
from typing import NamedTuple

from verax.ir.avals import Shape
from verax.rules.sizes import as_integers

type Pads = tuple[tuple[int, int], ...]
type Geometry = tuple[Shape, Shape, Shape, Pads, Shape, Shape]
"""Sizes, windows, strides, padding, dilation of sizes, dilation of windows."""


class ConvDimensionNumbers(NamedTuple):
    """Which dimension is what, of a convolution's operands and result.

    `lhs_spec` and `out_spec` hold the places of (batch, feature, spatial...) and
    `rhs_spec` those of (output feature, input feature, spatial...).
    """

    lhs_spec: Shape
    rhs_spec: Shape
    out_spec: Shape


def dilated(size: int, dilation: int) -> int:
    """A size with `dilation - 1` holes between elements.

    >>> dilated(3, 2)
    5
    """
    return 0 if size == 0 else 1 + dilation * (size - 1)


def padded(size: int, pad: tuple[int, int]) -> int:
    """A size with padding at both ends, which may be negative."""
    return max(0, size + sum(pad))


def strided(size: int, window: int, stride: int) -> int:
    """At how many places a window stands when it moves in strides."""
    return 0 if size < window else (size - window) // stride + 1


def window_counts(geometry: Geometry) -> Shape:
    """How many windows there are, per dimension."""
    return tuple(
        strided(padded(dilated(n, base), pad), dilated(k, spread), stride)
        for n, k, stride, pad, base, spread in zip(*geometry, strict=True)
    )


def adjoint_padding(geometry: Geometry) -> Pads:
    """The padding of cotangents, dilated by the strides, that the windows go back over.

    Undoing needs each window reversed, moving in steps of the dilation of sizes.
    """
    pads = []
    for places, (n, k, stride, pad, base, spread) in zip(
        window_counts(geometry), zip(*geometry, strict=True), strict=True
    ):
        before = dilated(k, spread) - 1 - pad[0]
        whole = dilated(n, base) + dilated(k, spread) - 1
        pads.append((before, whole - dilated(places, stride) - before))
    return tuple(pads)


def as_pads(
    name: str, padding: object, sizes: Shape, windows: Shape, strides: Shape
) -> Pads:
    """Padding as pairs: "SAME" gives ceil(size / stride) places, "VALID" pads nothing.

    "SAME" puts an odd element at the end, "SAME_LOWER" at the start. `windows` are
    dilated already.

    Raises:
        ValueError: it is no such string, or the number of pairs is wrong.
        TypeError: it holds something else than pairs of integers.
    """
    if isinstance(padding, str):
        return named_pads(name, padding, sizes, windows, strides)
    if not isinstance(padding, Sequence):
        raise TypeError(f"{name}: padding is a string or pairs of ints, not {padding}")
    pairs = [as_integers(name, "padding", pair) for pair in padding]
    if len(pairs) != len(sizes) or any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            f"{name} takes a pair (low, high) of padding for each of {len(sizes)} "
            f"dimensions, not {padding}"
        )
    return tuple((low, high) for low, high in pairs)


def named_pads(
    name: str, padding: str, sizes: Shape, windows: Shape, strides: Shape
) -> Pads:
    """`as_pads` of a string."""
    kind = padding.upper()
    if kind == "VALID":
        return ((0, 0),) * len(sizes)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"{name}: no padding {padding!r}; there are 'SAME', 'SAME_LOWER', 'VALID' "
            "and pairs (low, high)"
        )
    pads = []
    for size, window, stride in zip(sizes, windows, strides, strict=True):
        extra = max(0, (-(-size // stride) - 1) * stride + window - size)
        small, large = extra // 2, extra - extra // 2
        pads.append((small, large) if kind == "SAME" else (large, small))
    return tuple(pads)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: object,
) -> list[tuple[int, int]]:
    """Padding by name, or as pairs, as a pair (low, high) for each dimension.

    >>> padtype_to_pads((5,), (3,), (2,), "SAME")
    [(1, 1)]
    """
    shapes = [
        as_integers("padtype_to_pads", argument, values)
        for argument, values in (
            ("in_shape", in_shape),
            ("window_shape", window_shape),
            ("window_strides", window_strides),
        )
    ]
    if len({len(shape) for shape in shapes}) != 1:
        raise ValueError(f"padtype_to_pads: {shapes} are not of one length")
    sizes, windows, strides = shapes
    return list(as_pads("padtype_to_pads", padding, sizes, windows, strides))


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: object
) -> ConvDimensionNumbers:
    """Dimension numbers from three strings such as `("NHWC", "HWIO", "NHWC")`.

    N is batch, C feature, O and I the output and input feature of the kernel; all
    other letters are spatial dimensions, in the order of the kernel. None means
    `("NCHW", "OIHW", "NCHW")` for any number of spatial dimensions.

    Raises:
        TypeError: the ranks differ, or it is none of these.
        ValueError: a string lacks a letter, has one twice, or has other letters.

    >>> conv_dimension_numbers((1, 5, 2), (3, 2, 4), ("NHC", "HIO", "NHC")).lhs_spec
    (0, 2, 1)
    """
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError(
            f"a convolution takes operands of as many dimensions, not of shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        same = tuple(range(rank))
        return ConvDimensionNumbers(same, same, same)
    if not isinstance(dimension_numbers, tuple | list) or len(dimension_numbers) != 3:
        raise TypeError(
            "dimension_numbers is None, three strings or a ConvDimensionNumbers, not "
            f"{dimension_numbers!r}"
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
            raise ValueError(
                f"dimension_numbers: {operand} of {rank} dimensions is named by each "
                f"of {'N and C' if operand != 'rhs' else 'O and I'} and the spatial "
                f"letters of the kernel once, not by {text!r} in {tuple(given.values())}"
            )
    specs = [
        tuple(text.index(c) for c in [*marks[operand], *spatial])
        for operand, text in given.items()
    ]
    return ConvDimensionNumbers(*specs)
