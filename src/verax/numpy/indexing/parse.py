"""Floor 6: an index as its static description and the arrays in it.

One idea: what decides the program of an index is hashable once arrays are replaced by
their shapes, so everything else about it is a cache entry keyed by that description::

    parse((0, slice(1, 3), rows), (4, 5, 6))
    # kinds (0, slice(1, 3, None), Picked((7,))), arrays (rows,)
"""

from collections.abc import Sequence
from operator import index as as_index
from types import EllipsisType, NoneType
from typing import NamedTuple

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, SymbolicSize
from verax.ir.dtypes import INTEGER_SET, is_bool, is_integer
from verax.ir.records import ReprMixin
from verax.numpy.creation.creation import as_values, leaves
from verax.ops.calls.check import report_outside
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import AbstractValueError, shown
from verax.rules.values.sizes import as_size


@frozen(cache_hash=True, repr=False)
class Picked(ReprMixin):
    """The place of an integer array in an index, by its shape; `()` is a traced int."""

    shape: Shape


type Kind = int | slice | EllipsisType | Picked | None
type IndexArray = Array | np.ndarray

PLAIN = frozenset({int, NoneType})


class JAXIndexError(IndexError):
    """The base of JAX's errors of indices."""

    __module__ = "verax.errors"


class NonConcreteBooleanIndexError(JAXIndexError):
    """A boolean mask was used as an index while its values are being traced."""

    __module__ = "verax.errors"


class ParsedIndex(NamedTuple):
    """The static part of an index and its arrays, in order.

    `flags` are dimensions of size 1 to be added to the operand first, at these places
    of the result: one for each `True` or `False` of the index.
    """

    kinds: tuple[Kind, ...]
    arrays: tuple[IndexArray, ...]
    flags: Shape


def plain_index(index: object) -> tuple[Kind, ...] | None:
    """The index as a tuple if it is made of ints, int slices, None and Ellipsis.

    Two such tuples that are equal mean the same, which is not so for `True` and 1.
    """
    items = index if type(index) is tuple else (index,)
    for item in items:
        kind = type(item)
        if kind is int or item is None or item is Ellipsis:
            continue
        if (
            kind is slice
            and type(item.start) in PLAIN
            and type(item.stop) in PLAIN
            and type(item.step) in PLAIN
        ):
            continue
        return None
    return items


def parse(index: object, shape: Shape) -> ParsedIndex:
    """The description of any index that NumPy has, for an operand of `shape`.

    Raises:
        TypeError: the index is a list, a string or a float.
        IndexError: a mask does not fit or is traced, or a slice has traced bounds.
    """
    if isinstance(index, Array) and index.aval.dtype in INTEGER_SET:
        return ParsedIndex((Picked(index.aval.shape),), (index,), ())
    items = index if isinstance(index, tuple) else (index,)
    if isinstance(index, list | range):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed: "
            "write arr[array(seq)] for an integer array, or arr[tuple(seq)] for "
            f"several dimensions, not arr[{shown(index)}]"
        )
    out = Collected()
    for place, item in enumerate(items):
        out.add(place, item, items, shape)
    return ParsedIndex(tuple(out.kinds), tuple(out.arrays), tuple(out.flags))


class Collected:
    """The parts of an index, while it is read from left to right."""

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.arrays: list[IndexArray] = []
        self.flags: list[int] = []

    def add(
        self, place: int, item: object, items: Sequence[object], shape: Shape
    ) -> None:
        if item is None or item is Ellipsis:
            self.kinds.append(item)
        elif isinstance(item, slice):
            self.kinds.append(plain_slice(item, place))
        elif isinstance(item, bool | np.bool_):
            self.flag(bool(item), items[:place], items[place + 1 :], shape)
        elif isinstance(item, int | np.integer):
            self.kinds.append(int(item))
        elif isinstance(item, SymbolicSize):
            self.kinds.append(as_size(item))
        else:
            self.array(as_index_array(item), place, items, shape)

    def array(
        self, array: IndexArray, place: int, items: Sequence[object], shape: Shape
    ) -> None:
        aval = aval_of(array)
        if is_integer(aval.dtype):
            if isinstance(array, np.ndarray) and not aval.shape:
                self.kinds.append(int(array))
            else:
                self.pick(array, aval.shape)
            return
        if not is_bool(aval.dtype):
            raise TypeError(
                "Indexer must have integer or boolean type, got indexer with type "
                f'{aval} at position {place}; convert it with x.astype("int32")'
            )
        mask = mask_values(array, place)
        if not mask.shape:
            self.flag(bool(mask), items[:place], items[place + 1 :], shape)
            return
        start = dimensions_before(items[:place], items[place + 1 :], mask.ndim, shape)
        expected = shape[start : start + mask.ndim]
        # A mask without elements picks nothing, whatever its dimensions.
        fits = len(expected) == mask.ndim and all(
            m in (n, 0) for m, n in zip(mask.shape, expected, strict=True)
        )
        if not fits:
            raise IndexError(
                f"boolean index did not match shape {shape} of the indexed array: the "
                f"mask at position {place} has shape {mask.shape}, not {expected}"
            )
        for places in mask.nonzero():
            self.pick(places.astype(np.int32), places.shape)

    def pick(self, array: IndexArray, shape: Shape) -> None:
        self.kinds.append(Picked(shape))
        self.arrays.append(array)

    def flag(
        self,
        value: bool,
        before: Sequence[object],
        after: Sequence[object],
        shape: Shape,
    ) -> None:
        """A `True` or `False` picks one element or none of a new dimension."""
        place = dimensions_before(before, after, 0, shape) + len(self.flags)
        self.flags.append(place)
        self.pick(np.zeros(int(value), np.int32), (int(value),))


def as_index_array(item: object) -> IndexArray:
    """An element of an index as an array.

    Raises:
        TypeError: it is a string or a float.
        IndexError: it is something else that is not an index.
    """
    if isinstance(item, Array | np.ndarray):
        return item
    if isinstance(item, str | float | complex | np.generic):
        why = "JAX does not support string indexing: " if isinstance(item, str) else ""
        raise TypeError(
            f"{why}Indexer must have integer or boolean type, got indexer with type "
            f"{type(item).__name__}: {shown(item)}; an index may hold integers, "
            "slices, None, ... and integer or boolean arrays"
        )
    if isinstance(item, Sequence):
        return nested(item) if item else np.zeros(0, np.int32)
    if hasattr(item, "__index__"):
        return np.asarray(as_index(item))
    raise IndexError(
        "only integers, slices, None, ... and integer or boolean arrays are valid "
        f"indices, not {shown(item)} of type {type(item).__name__}"
    )


def nested(item: Sequence[object]) -> IndexArray:
    """Nested lists of integers, some of which may be traced."""
    if any(isinstance(leaf, Tracer) for leaf in leaves(item)):
        return as_values("indexing", item, None)
    return np.asarray(item)


def plain_slice(item: slice, place: int) -> slice:
    """A slice whose bounds and step are ints or None.

    Raises:
        IndexError: a bound is traced.
    """
    try:
        start, stop, step = [
            None if part is None else as_size(part)
            for part in (item.start, item.stop, item.step)
        ]
    except AbstractValueError as error:
        raise IndexError(
            "Array slice indices must have static start/stop/step: the slice at "
            f"position {place} of the index has a traced bound, so that the shape of "
            "the result would depend on values. A slice of static size at a traced "
            "start is x[verax.ds(start, size)], which .at[...] takes too, or "
            "verax.lax.dynamic_slice_in_dim(x, start, size, axis)"
        ) from error
    return slice(start, stop, step)


def mask_values(array: IndexArray, place: int) -> np.ndarray:
    """The values of a boolean index.

    Raises:
        NonConcreteBooleanIndexError: it is traced.
    """
    if not isinstance(array, Tracer):
        return np.asarray(array)
    try:
        return array.concrete("a boolean index")
    except AbstractValueError as error:
        raise NonConcreteBooleanIndexError(
            f"the boolean index of type {array.aval} at position {place} is traced, so "
            "that the shape of the result would depend on values. Use "
            "verax.numpy.where(mask, x, y) to choose between values, or "
            "verax.numpy.nonzero(mask, size=n, fill_value=...) for at most n indices"
        ) from error


def dimensions_before(
    before: Sequence[object], after: Sequence[object], own: int, shape: Shape
) -> int:
    """The dimension of the operand at which an element of an index begins."""
    if any(item is Ellipsis for item in before):
        return len(shape) - own - sum(map(consumed, after))
    return sum(map(consumed, before))


def consumed(item: object) -> int:
    """The number of dimensions that an index element takes; none for an ellipsis."""
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    if isinstance(item, slice | int | np.integer):
        return 1
    aval = aval_of(as_index_array(item))
    return aval.ndim if is_bool(aval.dtype) else 1


def note_beyond(primitive: str, x: Array, beyond: Shape) -> None:
    """Write a failed check for an int out of bounds, as an index with a value has."""
    index, axis, size = beyond
    counted = index + size if index < -size else index
    report_outside(primitive, x.shape, counted, axis)
