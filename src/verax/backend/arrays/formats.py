"""How the elements of an array follow each other in memory (floor 4).

One idea: a layout is the order of the dimensions, slowest first; a format is a layout
at a place. verax keeps every argument and result row-major, so formats are read-only::

    >>> Layout.row_major(2)
    Layout(major_to_minor=(0, 1), tiling=(), sub_byte_element_size_in_bits=0)
"""

from collections.abc import Iterable
from typing import Any

from attrs import field, frozen
from jaxlib import _jax

from verax.backend.placement.sharding import Sharding
from verax.ir.records import ReprMixin

type Tiles = tuple[tuple[int, ...], ...]


def as_order(sizes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sizes)


def as_tiles(tiling: Any) -> Tiles | None:
    return None if tiling is None else tuple(map(tuple, tiling))


@frozen(repr=False)
class Layout(ReprMixin):
    """The order of the dimensions in memory, the one that varies slowest first.

    `tiling` are the tiles of devices that store arrays in tiles, None if unspecified;
    `sub_byte_element_size_in_bits` is not 0 where elements share bytes.
    """

    __module__ = "verax.experimental.layout"

    major_to_minor: tuple[int, ...] = field(converter=as_order)
    tiling: Tiles | None = field(default=None, converter=as_tiles)
    sub_byte_element_size_in_bits: int = 0

    @classmethod
    def row_major(cls, ndim: int) -> "Layout":
        """The layout of NumPy's ordinary arrays."""
        return cls(tuple(range(ndim)), ())

    @property
    def in_rows(self) -> bool:
        """Whether the last dimension varies fastest, without tiles."""
        order = tuple(range(len(self.major_to_minor)))
        return self.major_to_minor == order and not self.tiling

    @classmethod
    def from_runtime(cls, layout: _jax.PjRtLayout, ndim: int) -> "Layout":
        """The layout that jaxlib reports; the first `ndim` dimensions are the user's.

        An array of keys has one dimension more on the device than for its user.
        """
        found = layout._xla_layout()
        order = reversed(found.minor_to_major())
        return cls(
            tuple([i for i in order if i < ndim]),
            found.tiling(),
            found.element_size_in_bits(),
        )


@frozen(repr=False)
class Format(ReprMixin):
    """A memory layout and a sharding; either may be None, for unspecified.

    Raises:
        TypeError: `layout` is not a `Layout`, or `sharding` not a `Sharding`.
        ValueError: there is a layout but no sharding.
    """

    __module__ = "verax.experimental.layout"

    layout: Layout | None = None
    sharding: Sharding | None = None

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.layout, Layout | None):
            raise TypeError(f"a Format takes a Layout or None, not {self.layout!r}")
        if not isinstance(self.sharding, Sharding | None):
            raise TypeError(f"a Format takes a Sharding or None, not {self.sharding!r}")
        if self.layout is not None and self.sharding is None:
            raise ValueError(
                "a Format with a layout needs a sharding: layouts belong to devices"
            )
