"""Floor 6: slices of static size whose start may be an array: `x[ds(i, 4)]`.

A block is taken out at the starts, what is left of the index then reads or updates the
block, and an update puts it back::

    taken = windowed(x, (ds(i, 2), rows), wrap=True)
    taken.block[taken.rest]
"""

from collections.abc import Sequence
from operator import index as as_index
from typing import Any, Self, SupportsIndex, overload

import numpy as np
from attrs import field, frozen

from verax.api.trees.pytrees import register_pytree_node_class
from verax.ir.dtypes import int32, is_integer
from verax.ir.records import ReprMixin
from verax.numpy.elementwise.comparison import logical_and
from verax.numpy.indexing.parse import dimensions_before
from verax.numpy.indexing.vectors import wrapped
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_slice import (
    DynamicSliceParams,
    DynamicUpdateSliceParams,
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError


def check_stride(struct: object, attribute: object, stride: int) -> None:
    """Raise ValueError where a stride is negative."""
    if stride < 0:
        raise ValueError(f"the stride of a Slice must not be negative, but is {stride}")


@register_pytree_node_class
@frozen(repr=False)
class Slice(ReprMixin):
    """A part of a dimension: `size` elements from `start` on, `stride` apart.

    A pytree: start and size are leaves where they are not integers.
    """

    start: Any
    size: Any
    stride: int = field(default=1, validator=check_stride)

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is an array."""
        return not isinstance(self.start, int | np.integer)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is an array, which no index takes."""
        return not isinstance(self.size, int | np.integer)

    def tree_flatten(self) -> tuple[tuple[object, object], tuple[object, object, int]]:
        """Splits it into arrays and the rest."""
        start = (self.start, None) if self.is_dynamic_start else (None, self.start)
        size = (self.size, None) if self.is_dynamic_size else (None, self.size)
        return (start[0], size[0]), (start[1], size[1], self.stride)

    @classmethod
    def tree_unflatten(
        cls, static: tuple[object, object, int], arrays: Sequence[object]
    ) -> Self:
        """The slice of these parts."""
        start, size = [
            a if b is None else b for a, b in zip(arrays, static, strict=False)
        ]
        made = object.__new__(cls)  # the leaves may be anything
        for name, value in (("start", start), ("size", size), ("stride", static[2])):
            object.__setattr__(made, name, value)
        return made

    @property
    def span(self) -> int:
        """From the first element to the last.

        Raises:
            TypeError: the size is not an integer.
            ValueError: it is negative, or the stride is 0.
        """
        size = as_index(self.size)
        if size < 0 or self.stride < 1:
            raise ValueError(f"an index takes sizes >= 0 and strides >= 1, not {self}")
        return (size - 1) * self.stride + 1 if size else 0

    def as_slice(self) -> slice:
        """The slice that is left once the block is taken; all of it if static."""
        if self.is_dynamic_start:
            return slice(None, None, self.stride)
        start = int(self.start)
        return slice(start, start + as_index(self.size) * self.stride, self.stride)


@overload
def dslice(start: None, size: None = None, stride: int | None = None) -> slice: ...
@overload
def dslice(
    start: SupportsIndex, size: SupportsIndex | None = None, stride: int | None = None
) -> Slice: ...
@overload
def dslice(start: None, size: SupportsIndex, stride: int | None = None) -> Slice: ...
@overload
def dslice(
    start: object, size: object = None, stride: int | None = None
) -> slice | Slice: ...
def dslice(
    start: object, size: object = None, stride: int | None = None
) -> slice | Slice:
    """A slice from `start` on of static `size`; `start` may be an array.

    `dslice(None)` is all, `dslice(n)` the first n elements, and `stride` takes each
    stride-th element. A start out of bounds is moved so that the block fits; an update
    there does nothing.

    Raises:
        ValueError: the stride is not an integer, or is negative.

    >>> import verax, verax.numpy as vnp
    >>> verax.jit(lambda x, i: x[verax.ds(i, 2)])(vnp.arange(10), 4)
    Array([4, 5], dtype=int32)
    """
    if start is None and size is None:
        return slice(None, None, stride)
    if not isinstance(stride, int | None):
        raise ValueError(f"the stride of a slice is static, not {shown(stride)}")
    step = 1 if stride is None else stride
    if size is None:
        return Slice(0, start, step)
    return Slice(0 if start is None else start, size, step)


def is_sliced(index: object) -> bool:
    """Whether there is a `Slice` in an index."""
    return type(index) is Slice or (type(index) is tuple and Slice in map(type, index))


@frozen(eq=False, repr=False)
class Window(ReprMixin):
    """A block of an array, and what is left of the index to be read from it.

    Attributes:
        whole: the array.
        starts: where the block is.
        inside: whether it lies within the array as it was asked for.
    """

    whole: Array
    block: Array
    rest: tuple[object, ...]
    starts: tuple[object, ...]
    inside: Array | bool

    def chosen(self, x: Array, other: Array) -> Array:
        """`x`, or `other` where the block was out of bounds."""
        inside = self.inside
        if isinstance(inside, bool):
            return x if inside else other
        return select(broadcast_in_dim(inside, x.shape, ()), x, other)

    def replaced(self, block: Array) -> Array:
        """The array with another block."""
        params = DynamicUpdateSliceParams()
        return dynamic_update_slice_p.call(params, self.whole, block, *self.starts)


def windowed(x: Array, index: object, wrap: bool) -> Window:
    """The block of `x` that the slices of an index say.

    With `wrap`, a negative start counts from the end.

    Raises:
        TypeError: a start is not an integer, or a block is larger than the array.
    """
    given = index if isinstance(index, tuple) else (index,)
    rest = tuple([i.as_slice() if type(i) is Slice else i for i in given])
    starts: list[object] = [np.int32(0)] * x.ndim
    sizes = list(x.shape)
    inside: Array | bool = True
    for place, item in enumerate(given):
        if type(item) is not Slice or not item.is_dynamic_start:
            continue
        axis = dimensions_before(rest[:place], rest[place + 1 :], 1, x.shape)
        start, room = checked(item, x, axis)
        starts[axis] = wrapped(start, x.shape[axis], wrap)
        sizes[axis] = item.span
        inside = logical_and(inside, logical_and(start >= 0, start <= room))
    block = dynamic_slice_p.call(DynamicSliceParams(tuple(sizes)), x, *starts)
    return Window(x, block, rest, tuple(starts), inside)


def checked(item: Slice, x: Array, axis: int) -> tuple[Array, int]:
    """The start of a slice of dimension `axis` as an int32, and its largest value.

    Raises:
        TypeError: it is not an integer, or there are too few elements.
        IndexError: there is no such dimension.
    """
    aval = aval_of(item.start)
    if aval.shape or not is_integer(aval.dtype):
        raise TypeError(f"the start of a slice must be an integer, not {aval}")
    if axis >= x.ndim:
        raise IndexError(f"Too many indices for an array of shape {x.shape}")
    room = x.shape[axis] - item.span
    if room < 0:
        raise ShapeError(
            f"a slice of {item.span} elements does not fit into dimension {axis} of an "
            f"array of shape {x.shape}"
        )
    return convert(item.start, int32), room
