"""Floor 0: abstract values, the types of the jaxpr language.

One idea: a type is interned, so equality and hash are those of identity and every
cache that is keyed by types costs one pointer comparison::

    ShapedArray((2, 3), np.dtype("float32")) is ShapedArray((2, 3), np.dtype("float32"))

The type of a mutable reference says what it holds: `Ref{f32[2,3]}`.
"""

import weakref
from collections.abc import Iterable, Mapping
from functools import lru_cache
from threading import RLock
from typing import ClassVar, Protocol, TypeGuard

import numpy as np
from attrs import frozen

from verax.ir.dtypes import DType, as_dtype, float0, short_name, tangent_dtype
from verax.ir.locks import locked
from verax.ir.meshes import TypeSharding, Unsaid, says_nothing

type Shape = tuple[int, ...]
type NamedDType = DType | type | str
RECENT = 1 << 13
type InternKey = tuple[Shape, DType, bool]


class SymbolicSize:
    """A size that programs are traced with before it is known.

    It counts, adds and compares as an integer does, so a rule that computes sizes need
    not know; `verax.export.symbolic_shape` makes them. Shapes are annotated as tuples
    of ints, which they are in every program that runs.
    """

    __slots__ = ()
    transient: ClassVar[bool] = False

    def __jax_array__(self) -> object:
        """The size as the value of a scalar."""
        raise NotImplementedError

    def in_dtype(self, dtype: DType) -> object:
        """`__jax_array__` in a dtype, not weak."""
        raise NotImplementedError

    def maximum(self, other: int) -> int:
        """The larger of two sizes, whichever that is."""
        raise NotImplementedError

    def minimum(self, other: int) -> int:
        """The smaller of two sizes."""
        raise NotImplementedError

    def evaluated(self, env: Mapping[str, int]) -> int:
        """The size where its variables have the values of `env`."""
        raise NotImplementedError

    def variables(self) -> set[str]:
        """The names of its variables."""
        raise NotImplementedError


def larger_size(x: int, y: int) -> int:
    """The larger of two sizes, which may be symbolic."""
    if isinstance(x, SymbolicSize):
        return x.maximum(y)
    return y.maximum(x) if isinstance(y, SymbolicSize) else max(x, y)


def smaller_size(x: int, y: int) -> int:
    """The smaller of two sizes, which may be symbolic."""
    if isinstance(x, SymbolicSize):
        return x.minimum(y)
    return y.minimum(x) if isinstance(y, SymbolicSize) else min(x, y)


@locked
class InternTable:
    """Gives one `ShapedArray` per (shape, dtype, weak type), while it lives."""

    lock: ClassVar[RLock]

    def __init__(self) -> None:
        self._table: weakref.WeakValueDictionary[InternKey, ShapedArray] = (
            weakref.WeakValueDictionary()
        )

    def get(self, key: InternKey) -> "ShapedArray | None":
        return self._table.get(key)

    def add(self, key: InternKey, aval: "ShapedArray") -> "ShapedArray":
        with self.lock:
            return self._table.setdefault(key, aval)


INTERNED = InternTable()


@frozen(init=False, eq=False, repr=False, weakref_slot=True)
class ShapedArray:
    """The type of an array: shape, dtype, and whether the dtype is weak.

    Raises:
        ValueError: a dimension is negative.
        TypeError: a dimension is not an integer.

    >>> import numpy as np
    >>> from verax.ir import ShapedArray
    >>> ShapedArray((2, 3), np.dtype("float32"))
    f32[2,3]
    """

    __module__ = "verax.ir"

    transient: ClassVar[bool] = False

    shape: Shape
    dtype: DType
    weak_type: bool

    def __new__(
        cls,
        shape: Iterable[int],
        dtype: NamedDType,
        weak_type: bool = False,
        *,
        sharding: object = None,
    ) -> "ShapedArray":
        if not says_nothing(sharding):
            raise TypeError(
                "a type does not say where an array lies, but got "
                f"sharding={sharding!r}; pass in_shardings to jit, or use "
                "lax.with_sharding_constraint"
            )
        return interned(tuple(shape), dtype, weak_type)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def sharding(self) -> TypeSharding:
        """A sharding that says nothing: over a mesh without axes, no dimension split.

        Functions with a parameter for a sharding take it as they take None.
        """
        return Unsaid.sharding(len(self.shape))

    @property
    def size(self) -> int:
        size = 1
        for dimension in self.shape:
            size *= dimension
        return size

    @property
    def symbolic(self) -> bool:
        """Whether a size is a symbol."""
        return any([isinstance(size, SymbolicSize) for size in self.shape])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len() of the type {self}, which has no dimensions")
        return self.shape[0]

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def str_short(self, short_dtypes: bool = False) -> str:
        """The dtype and shape, without weakness.

        >>> ShapedArray((2,), np.dtype("int8"), True).str_short()
        'int8[2]'
        """
        name = short_name(self.dtype) if short_dtypes else self.dtype.name
        name = "float0" if self.dtype == float0 else name
        return f"{name}[{','.join(map(str, self.shape))}]"

    def update(
        self,
        shape: Iterable[int] | None = None,
        dtype: NamedDType | None = None,
        weak_type: bool | None = None,
    ) -> "ShapedArray":
        """The same type with other fields."""
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )

    def update_weak_type(self, weak_type: bool) -> "ShapedArray":
        """The same shape and dtype, weak or not."""
        return self.update(weak_type=weak_type)

    def strip_weak_type(self) -> "ShapedArray":
        """`strong`, under JAX's name."""
        return self.strong()

    def to_tangent_aval(self) -> "ShapedArray":
        """The type of tangents, which is not weak."""
        return self.tangent().strong()

    def at_least_vspace(self) -> "ShapedArray":
        """`to_tangent_aval`, under an older name of JAX's."""
        return self.to_tangent_aval()

    def with_shape(self, shape: Iterable[int]) -> "ShapedArray":
        """The same dtype and weakness in another shape."""
        return ShapedArray(shape, self.dtype, self.weak_type)

    def with_dtype(self, dtype: DType, weak_type: bool = False) -> "ShapedArray":
        """The same shape with another dtype, strong unless said otherwise."""
        return ShapedArray(self.shape, dtype, weak_type)

    def strong(self) -> "ShapedArray":
        """The same type without weakness."""
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def tangent(self) -> "ShapedArray":
        """The type of tangents and cotangents: `float0` for integers and booleans."""
        dtype = tangent_dtype(self.dtype)
        return self if dtype == self.dtype else self.with_dtype(dtype)

    def __repr__(self) -> str:
        weak = "~" if self.weak_type else ""
        dims = ",".join(map(str, self.shape))
        return f"{weak}{short_name(self.dtype)}[{dims}]"

    def __reduce__(
        self,
    ) -> tuple[type["ShapedArray"], tuple[Shape, DType, bool]]:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)


@locked
class RefTable(InternTable):
    """Gives one `AbstractRef` for each type of contents, while it lives."""


REFS = RefTable()


class AbstractRef(ShapedArray):
    """The type of a reference to an array of type `inner_aval`, which is never weak.

    >>> import numpy as np
    >>> from verax.ir.avals import ShapedArray
    >>> AbstractRef(ShapedArray((3,), np.dtype("float32")))
    Ref{f32[3]}
    """

    __module__ = "verax.ref"
    __slots__ = ("inner_aval",)

    inner_aval: ShapedArray

    def __new__(cls, inner_aval: ShapedArray) -> "AbstractRef":
        inner = inner_aval.strong()
        key = (inner.shape, inner.dtype, False)
        found = REFS.get(key)
        if found is None:
            made = object.__new__(cls)
            for name in ("shape", "dtype", "weak_type"):
                object.__setattr__(made, name, getattr(inner, name))
            object.__setattr__(made, "inner_aval", inner)
            found = REFS.add(key, made)
        assert isinstance(found, AbstractRef)
        return found

    def update(
        self,
        shape: Iterable[int] | None = None,
        dtype: NamedDType | None = None,
        weak_type: bool | None = None,
    ) -> "AbstractRef":
        """The type of a reference to arrays with other fields."""
        return AbstractRef(self.inner_aval.update(shape, dtype, weak_type))

    def with_shape(self, shape: Iterable[int]) -> "AbstractRef":
        """The type of a reference to arrays of another shape."""
        return AbstractRef(self.inner_aval.with_shape(shape))

    def tangent(self) -> ShapedArray:
        """The type of tangents of the contents."""
        return self.inner_aval.tangent()

    def str_short(self, short_dtypes: bool = False) -> str:
        """The type of the contents in braces: `Ref{float32[3]}`."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval!r}}}"

    def __reduce__(self) -> tuple[type["AbstractRef"], tuple[ShapedArray]]:  # type: ignore[override]  # other arguments
        return AbstractRef, (self.inner_aval,)


class HasType(Protocol):
    """What has a type: a variable, an array, a reference."""

    @property
    def aval(self) -> ShapedArray: ...


def is_reference(x: object) -> TypeGuard[HasType]:
    """Whether a value is a mutable reference, which its type says."""
    return type(getattr(x, "aval", None)) is AbstractRef


@lru_cache(maxsize=RECENT, typed=True)
def interned(shape: Shape, like: NamedDType, weak_type: bool) -> ShapedArray:
    """The one type of these fields; recent ones are kept alive, for speed alone."""
    dims = tuple([check_dimension(size, shape) for size in shape])
    dtype = like if isinstance(like, np.dtype) else as_dtype(like)
    key = (dims, dtype, bool(weak_type))
    found = INTERNED.get(key)
    if found is not None:
        return found
    aval = object.__new__(ShapedArray)
    object.__setattr__(aval, "shape", dims)
    object.__setattr__(aval, "dtype", dtype)
    object.__setattr__(aval, "weak_type", bool(weak_type))
    return INTERNED.add(key, aval)


def check_dimension(size: int, shape: tuple[int, ...]) -> int:
    """`size` as an int, or an error that shows the whole shape."""
    if isinstance(size, SymbolicSize):
        found: int = size
    elif isinstance(size, int | np.integer):
        found = int(size)
    else:
        raise TypeError(
            f"a shape must hold integers, but {shape} holds {size!r} of type "
            f"{type(size).__name__}; shapes must be known while tracing"
        )
    if found < 0:
        raise ValueError(f"a shape cannot hold a negative size: {shape}")
    return found
