"""Floor 1: `Ref`, the type that users see: a mutable array.

A reference is read and written as a whole; indexing, exchanging and accumulating are
arithmetic on what was read, by the functions behind the operators of arrays::

    ref[0] += 1.0        # ref.write(namespace.at(ref.read())[0].set(...))
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import EllipsisType, NoneType
from typing import Any, Never, cast

import numpy as np

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.promotion import TypePromotionError, result_type
from verax.ir.records import hiding
from verax.rules.values.array import Array, Operators
from verax.rules.values.conversions import Typed
from verax.rules.values.state import STATE


class Ref(Typed):
    """A mutable array, of a fixed shape and dtype; made by `new_ref`.

    `ref[...]` reads it and `ref[...] = x` writes it; any index of NumPy's does for a
    part of it. A reference is not an array: to compute with what it holds, read it.
    """

    __dir__ = hiding(
        "check_alive check_value ended filled inner_aval kind made pinned "
        "read shared takes_constants unshared write"
    )

    __module__ = "verax"
    __slots__ = ()

    @abstractmethod
    def read(self) -> Array:
        """All that it holds."""

    @abstractmethod
    def write(self, value: Array) -> None:
        """Have it hold `value`, which has its type."""

    @property
    def inner_aval(self) -> ShapedArray:
        """The type of what it holds."""
        return cast(AbstractRef, self.aval).inner_aval

    def get(self, idx: object = ()) -> Array:
        """Reads what it holds at an index, all of it by default."""
        out = self.read()
        return out if is_whole(idx) else Operators.namespace.getitem(out, idx)

    def set(self, value: object, idx: object = ()) -> None:
        """Write `value` at an index, over all of it by default.

        Raises:
            ValueError: the value has another dtype, or a shape that does not fit.
        """
        self.check_value("a write", value)
        if is_whole(idx):
            self.write(self.filled(value))
        else:
            at: Any = Operators.namespace.at(self.read())
            self.write(at[idx].set(value))

    def swap(self, value: object, idx: object = ()) -> Array:
        """Write `value` at an index, and return what was there."""
        entry = self.get(idx)
        self.set(value, idx)
        return entry

    def addupdate(self, x: object, idx: object = ()) -> None:
        """Add `x` to what it holds at an index; what is named twice is added twice.

        Raises:
            ValueError: `x` has another dtype, or a shape that does not fit.
        """
        self.check_value("an update", x)
        if is_whole(idx):
            self.write(self.filled(Operators.namespace.add(self.read(), x)))
        else:
            at: Any = Operators.namespace.at(self.read())
            self.write(at[idx].add(x))

    def filled(self, value: object) -> Array:
        """A value in exactly the type of what it holds."""
        inner, namespace = self.inner_aval, Operators.namespace
        array = namespace.asarray(value)
        if array.aval is inner:
            return array
        if array.aval.with_shape(inner.shape) is not inner:
            array = array.astype(inner.dtype)
        try:
            return namespace.broadcast_to(array, inner.shape)
        except ValueError:
            raise ValueError(
                f"a value of shape {array.shape} cannot be written to all of {self!r}"
            ) from None

    def check_value(self, what: str, value: object) -> None:
        """Raise ValueError unless a value has the dtype, or is weak and adopts it."""
        if isinstance(value, Ref):
            raise TypeError(
                f"{what} takes an array, not {value!r}; read it first (ref[...])"
            )
        given: ShapedArray = Operators.namespace.asarray(value).aval
        dtype = given.dtype
        if given.weak_type:
            with suppress(TypePromotionError):
                dtype, _ = result_type(self.inner_aval, given, x64=STATE.enable_x64)
        if dtype != self.dtype:
            raise ValueError(
                f"{what} of dtype {given.dtype} to a reference of dtype {self.dtype}: "
                f"convert the value (astype) or make the reference with that dtype"
            )

    def __getitem__(self, idx: object) -> Array:
        return self.get(idx)

    def __setitem__(self, idx: object, value: object) -> None:
        self.set(value, idx)

    @property
    def at(self) -> "RefIndexer":
        """Parts of it, as references to the same memory: `ref.at[1:3]`."""
        return RefIndexer(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        raise TypeError("iteration over a reference; read it first: ref[...]")

    def __array__(self, *_: object, **__: object) -> Never:
        raise TypeError(f"{self!r} is not an array; read it first: ref[...]")

    def __repr__(self) -> str:
        return f"Ref({self.inner_aval})"


def is_whole(idx: object) -> bool:
    """Whether an index means everything."""
    if idx is Ellipsis:
        return True
    if isinstance(idx, slice):
        return idx == slice(None)
    return isinstance(idx, tuple) and all([i is Ellipsis for i in idx])


class RefIndexer:
    """`ref.at`, to be indexed."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref

    def __getitem__(self, idx: object) -> "RefView":
        return RefView(self.ref, idx)


class RefView(Ref):
    """A part of a reference: it reads and writes there.

    The indices are those of the moment when it was made; each use goes to the whole. As
    an argument it is a tree: what it is a part of, and indices that are arrays.
    """

    __slots__ = ("__weakref__", "idx", "parent")

    def __init__(self, parent: Ref, idx: Any) -> None:
        self.parent = parent
        self.idx = idx
        self.aval = AbstractRef(self.read().aval)

    def read(self) -> Array:
        return self.parent.get(self.idx)

    def write(self, value: Array) -> None:
        self.parent.set(value, self.idx)

    def __repr__(self) -> str:
        return f"a part of {self.parent!r}"

    def split(self) -> tuple[tuple[object, ...], "Frame"]:
        """What it is part of and its indices that are values, and the other indices."""
        alone = not isinstance(self.idx, tuple)
        entries = (self.idx,) if alone else self.idx
        fixed = tuple([(type(i), i) if isinstance(i, FIXED) else None for i in entries])
        values = [i for i in entries if not isinstance(i, FIXED)]
        return (self.parent, *values), (alone, fixed)

    @classmethod
    def join(cls, frame: "Frame", children: Iterable[Any]) -> "RefView":
        """The part that `split` took apart; with anything in place of the children."""
        alone, fixed = frame
        parent, *values = children
        rest = iter(values)
        entries = tuple([next(rest) if i is None else i[1] for i in fixed])
        idx = entries[0] if alone else entries
        if isinstance(parent, Ref):
            return cls(parent, idx)
        view = cls.__new__(cls)
        view.parent, view.idx = parent, idx
        return view


FIXED = (int, np.integer, slice, EllipsisType, NoneType)
"""Indices that a program knows; others are values that it takes."""

type Frame = tuple[bool, tuple[tuple[type, object] | None, ...]]
"""Whether the index is no tuple, and its fixed entries, with their types."""
