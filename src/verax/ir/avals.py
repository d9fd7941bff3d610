"""Floor 0: abstract values, the types of the jaxpr language.

One idea: a type is interned, so equality and hash are those of identity and every
cache that is keyed by types costs one pointer comparison::

    ShapedArray((2, 3), np.dtype("float32")) is ShapedArray((2, 3), np.dtype("float32"))

The type of a mutable reference says what it holds: `Ref{f32[2,3]}`. Where a mesh has
explicit axes, a type says which of them split its dimensions: `f32[8@x,2]`.
"""

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import ClassVar, Protocol, TypeGuard, cast

import ml_dtypes
import numpy as np
from attrs import frozen

from verax.ir.dtypes import (
    FLOATING_SET,
    INEXACT_SET,
    INTEGER_SET,
    DType,
    as_dtype,
    float0,
    is_complex,
    numpy_dtype,
    short_name,
    tangent_dtype,
)
from verax.ir.locks import Lock, locked
from verax.ir.memos import memoised
from verax.ir.meshes import (
    Axes,
    AxisType,
    BaseMesh,
    Explicit,
    ManualAxisType,
    MeshType,
    TypeSharding,
    TypeShardings,
    axes_text,
    explicit_of,
    explicit_on,
    manual_only,
    manual_type,
    mesh_known,
    says_nothing,
    size_text,
    terms_along,
    terms_of,
    terms_together,
    varying_axes,
    with_dim,
    without_dim,
)

type Shape = tuple[int, ...]
type NamedDType = DType | type | str
RECENT = 1 << 13
type InternKey = tuple[Shape, DType, bool, Explicit | None]


class SymbolicSize:
    """A size that programs are traced with before it is known.

    It counts, adds and compares as an integer does, so a rule that computes sizes need
    not know; `verax.export.symbolic_shape` makes them. Shapes are annotated as tuples
    of ints, which they are in every program that runs.
    """

    __slots__ = ()
    transient: ClassVar[bool] = False

    @abstractmethod
    def __jax_array__(self) -> object:
        """The size as the value of a scalar."""

    @abstractmethod
    def in_dtype(self, dtype: DType) -> object:
        """`__jax_array__` in a dtype, not weak."""

    @abstractmethod
    def maximum(self, other: int) -> int:
        """The larger of two sizes, whichever that is."""

    @abstractmethod
    def minimum(self, other: int) -> int:
        """The smaller of two sizes."""

    @abstractmethod
    def evaluated(self, env: Mapping[str, int]) -> int:
        """The size where its variables have the values of `env`."""

    @abstractmethod
    def variables(self) -> set[str]:
        """The names of its variables."""


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
    """Gives one `ShapedArray` for its fields, while it lives."""

    lock: ClassVar[Lock]

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


class Shaped:
    """The base of types: what a shape and a dtype alone say."""

    __slots__ = ()
    shape: Shape
    dtype: DType

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

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


class OnDevices(Shaped):
    """The part of a type about how values differ between devices."""

    __slots__ = ()
    explicit: Explicit | None

    @abstractmethod
    def with_explicit(self, explicit: Explicit | None) -> "ShapedArray":
        """The same type, split so by explicit axes."""

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """The variation of values along the axes of an enclosing `shard_map`."""
        return manual_type(self.explicit)

    @property
    def mat(self) -> ManualAxisType:
        """`manual_axis_type`, by JAX's short name."""
        return self.manual_axis_type

    @property
    def vma(self) -> frozenset[str]:
        """The axes of an enclosing `shard_map` along which values vary."""
        return frozenset(varying_axes(self.explicit))

    def update_manual_axis_type(self, mat: ManualAxisType) -> "ShapedArray":
        """The same type that says this of the axes of an enclosing `shard_map`.

        Raises:
            ValueError: it names axes that are not of one.
        """
        return as_manual(self, mat, None)

    def whole(self) -> "ShapedArray":
        """The same type, of which explicit axes say nothing."""
        explicit = self.explicit
        return self.with_explicit(None if explicit is None else manual_only(explicit))


class OfArrays(OnDevices):
    """What a type of arrays says where a type of a program's own may stand instead.

    See `verax.experimental.hijax.HiType`: it is made of itself.
    """

    __slots__ = ()

    def lo_ty(self) -> "list[OfArrays]":
        """The types of the arrays of a value."""
        return [self]

    def lower_val(self, hi_val: object, /) -> list[object]:
        """The arrays of a value."""
        return [hi_val]

    def raise_val(self, *lo_vals: object) -> object:
        """The value of its array."""
        (value,) = lo_vals
        return value

    def to_ct_aval(self) -> "ShapedArray":
        """The type of cotangents."""
        return self.cotangent()

    @abstractmethod
    def cotangent(self) -> "ShapedArray":
        """The type of cotangents."""

    def dec_rank(self, size: int | None, spec: int | None) -> "OfArrays":
        """The type of an element of arrays that are stacked along a dimension."""
        if spec is None:
            return self
        return self.with_shape((*self.shape[:spec], *self.shape[spec + 1 :]))

    def inc_rank(self, size: int, spec: int | None) -> "OfArrays":
        """The type of arrays that are stacked along a new dimension."""
        if spec is None:
            return self
        return self.with_shape((*self.shape[:spec], size, *self.shape[spec:]))

    @abstractmethod
    def with_shape(self, shape: Iterable[int]) -> "ShapedArray":
        """The same type with another shape."""


@frozen(init=False, eq=False, repr=False, weakref_slot=True)
class ShapedArray(OfArrays):
    """The type of an array: shape, dtype, and whether the dtype is weak.

    `sharding` says which explicit axes of a mesh split it; `explicit` holds that, or
    None.

    Raises:
        ValueError: a dimension is negative, or the axes do not split it evenly.
        TypeError: a dimension is not an integer, or `sharding` is not over a mesh.

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
    explicit: Explicit | None

    def __new__(
        cls,
        shape: Iterable[int],
        dtype: NamedDType,
        weak_type: bool = False,
        *,
        sharding: object = None,
        manual_axis_type: ManualAxisType | None = None,
    ) -> "ShapedArray":
        out = interned(tuple(shape), dtype, weak_type)
        if not says_nothing(sharding):
            out = out.update(sharding=sharding)
        if manual_axis_type is None:
            return out
        named = getattr(sharding, "mesh", None)
        mesh = mesh_known(named) if isinstance(named, BaseMesh) else None
        return as_manual(out, manual_axis_type, mesh)

    @property
    def sharding(self) -> TypeSharding:
        """The split of the dimensions by explicit axes; mostly it says nothing.

        Then functions with a parameter for a sharding take it as they take None.
        """
        explicit = self.explicit
        if explicit is None:
            return TypeShardings.unsaid(len(self.shape))
        return TypeShardings.said(explicit)

    def str_short(
        self, short_dtypes: bool = False, mesh_axis_types: bool = False
    ) -> str:
        """The dtype and shape, without weakness.

        >>> ShapedArray((2,), np.dtype("int8"), True).str_short()
        'int8[2]'
        """
        name = short_name(self.dtype) if short_dtypes else self.dtype.name
        name = "float0" if self.dtype == float0 else name
        return f"{name}{self.dims_text()}"

    def dims_text(self) -> str:
        """The sizes as they are printed, with the axes that split them, and terms."""
        if self.explicit is None:
            return f"[{','.join(map(str, self.shape))}]"
        sizes = ",".join(map(size_text, self.shape, self.explicit.splits))
        return f"[{sizes}]{self.explicit.terms.text()}"

    def update(
        self,
        shape: Iterable[int] | None = None,
        dtype: NamedDType | None = None,
        weak_type: bool | None = None,
        sharding: object = None,
        manual_axis_type: ManualAxisType | None = None,
    ) -> "ShapedArray":
        """The same type with other fields.

        Raises:
            TypeError: `sharding` is not over a mesh.
            ValueError: it does not split the dimensions evenly, or `manual_axis_type`
                names axes that are not of an enclosing `shard_map`.
        """
        kept = self if shape is None else self.with_shape(shape)
        out = interned(
            kept.shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            kept.explicit,
        )
        if sharding is not None:
            out = out.with_explicit(explicit_in(sharding, len(out.shape)))
        if manual_axis_type is None:
            return out
        return out.update_manual_axis_type(manual_axis_type)

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
        """The same dtype and weakness in another shape, split by no explicit axis.

        It varies along the same axes.
        """
        sizes = tuple(shape)
        if self.explicit is None:
            return interned(sizes, self.dtype, self.weak_type)
        if sizes == self.shape:
            return self
        mesh, splits = self.explicit.mesh, ((),) * len(sizes)
        kept = manual_only(Explicit(mesh, splits, self.explicit.terms))
        return interned(sizes, self.dtype, self.weak_type, kept)

    def element(self, axis: int = 0) -> "ShapedArray":
        """The type of what is stacked along dimension `axis`.

        >>> ShapedArray((2, 3), np.dtype("float32")).element()
        f32[3]
        """
        out = self.with_shape((*self.shape[:axis], *self.shape[axis + 1 :]))
        if self.explicit is None:
            return out
        return out.with_explicit(without_dim(self.explicit, axis))

    def stacked(self, size: int, axis: int = 0, axes: Axes = ()) -> "ShapedArray":
        """The type of a stack of such along a dimension, which mesh `axes` split."""
        out = self.with_shape((*self.shape[:axis], size, *self.shape[axis:]))
        if self.explicit is None:
            return out
        return out.with_explicit(with_dim(self.explicit, axis, axes))

    def with_dtype(self, dtype: DType, weak_type: bool = False) -> "ShapedArray":
        """The same shape with another dtype, strong unless said otherwise."""
        if self.explicit is not None:
            return interned(self.shape, dtype, weak_type, self.explicit)
        return interned(self.shape, dtype, weak_type)

    def with_explicit(self, explicit: Explicit | None) -> "ShapedArray":
        """The same type, split so by explicit axes.

        Raises:
            ValueError: they do not split it evenly.
        """
        if explicit == self.explicit:
            return self
        return interned(self.shape, self.dtype, self.weak_type, explicit)

    def strong(self) -> "ShapedArray":
        """The same type without weakness."""
        return self.with_dtype(self.dtype) if self.weak_type else self

    def tangent(self) -> "ShapedArray":
        """The type of tangents and cotangents: `float0` for integers and booleans."""
        dtype = tangent_dtype(self.dtype)
        return self if dtype == self.dtype else self.with_dtype(dtype)

    def cotangent(self) -> "ShapedArray":
        """The type of cotangents: where this one is reduced, they are unreduced."""
        out = self.tangent()
        if out.explicit is None:
            return out
        return out.with_explicit(out.explicit.dual)

    def __repr__(self) -> str:
        weak = "~" if self.weak_type else ""
        return f"{weak}{short_name(self.dtype)}{self.dims_text()}"

    def __reduce__(self) -> tuple[Callable[..., "ShapedArray"], tuple[object, ...]]:
        fields = self.shape, self.dtype, self.weak_type
        if self.explicit is not None:
            return interned, (*fields, self.explicit)
        return ShapedArray, fields


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
        key = (inner.shape, inner.dtype, False, inner.explicit)
        entry = REFS.get(key)
        if entry is None:
            made = object.__new__(cls)
            for name in ("shape", "dtype", "weak_type", "explicit"):
                object.__setattr__(made, name, getattr(inner, name))
            object.__setattr__(made, "inner_aval", inner)
            entry = REFS.add(key, made)
        assert isinstance(entry, AbstractRef)
        return entry

    def update(
        self,
        shape: Iterable[int] | None = None,
        dtype: NamedDType | None = None,
        weak_type: bool | None = None,
        sharding: object = None,
        manual_axis_type: ManualAxisType | None = None,
    ) -> "AbstractRef":
        """The type of a reference to arrays with other fields."""
        inner = self.inner_aval.update(
            shape, dtype, weak_type, sharding, manual_axis_type
        )
        return AbstractRef(inner)

    def with_shape(self, shape: Iterable[int]) -> "AbstractRef":
        """The type of a reference to arrays of another shape."""
        return AbstractRef(self.inner_aval.with_shape(shape))

    def with_explicit(self, explicit: Explicit | None) -> "AbstractRef":
        """The type of a reference to arrays that are split so by explicit axes."""
        return AbstractRef(self.inner_aval.with_explicit(explicit))

    def tangent(self) -> ShapedArray:
        """The type of tangents of the contents."""
        return self.inner_aval.tangent()

    def str_short(
        self, short_dtypes: bool = False, mesh_axis_types: bool = False
    ) -> str:
        """The type of the contents in braces: `Ref{float32[3]}`."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval!r}}}"

    def __reduce__(self) -> tuple[type["AbstractRef"], tuple[ShapedArray]]:
        return AbstractRef, (self.inner_aval,)


class HasType(Protocol):
    """Anything that has a type: a variable, an array, a reference."""

    @property
    def aval(self) -> ShapedArray: ...


def is_reference(x: object) -> TypeGuard[HasType]:
    """Whether a value is a mutable reference, which its type says."""
    return type(getattr(x, "aval", None)) is AbstractRef


@lru_cache(maxsize=RECENT, typed=True)
def interned(
    shape: Shape, like: NamedDType, weak_type: bool, explicit: Explicit | None = None
) -> ShapedArray:
    """The one type of these fields; recent ones are kept alive, for speed alone."""
    dims = tuple([check_dimension(size, shape) for size in shape])
    dtype = like if isinstance(like, np.dtype) else as_dtype(like)
    key = (dims, dtype, bool(weak_type), explicit)
    entry = INTERNED.get(key)
    if entry is not None:
        return entry
    if explicit is not None:
        check_splits(dims, explicit)
        if explicit.sums_explicitly and is_complex(dtype):
            raise ValueError(
                f"{short_name(dtype)}[...]{explicit.terms.text()}: XLA makes no sums "
                "over mesh axes of complex numbers; take real and imaginary parts"
            )
    aval = object.__new__(ShapedArray)
    object.__setattr__(aval, "shape", dims)
    object.__setattr__(aval, "dtype", dtype)
    object.__setattr__(aval, "weak_type", bool(weak_type))
    object.__setattr__(aval, "explicit", explicit)
    return INTERNED.add(key, aval)


def as_manual(
    aval: OnDevices, mat: ManualAxisType, mesh: MeshType | None
) -> ShapedArray:
    """A type that says this of manual axes, those of `mesh` if it names none itself.

    None stands for the mesh in force.
    """
    known = aval.explicit
    if known is None and mat.empty:
        return aval.with_explicit(None)
    over = (mesh or TypeShardings.in_force()) if known is None else known.mesh
    splits = ((),) * len(aval.shape) if known is None else known.splits
    rest = terms_along(terms_of(known), over.of_type(AxisType.Explicit))
    terms = terms_together(over, rest, mat.terms(over))
    return aval.with_explicit(explicit_on(over, splits, terms))


def explicit_in(sharding: object, ndim: int) -> Explicit | None:
    """The explicit axes of a sharding that a user passed for a type.

    Raises:
        TypeError: it is not over a mesh.
    """
    if says_nothing(sharding):
        return None
    if not isinstance(getattr(sharding, "mesh", None), BaseMesh):
        raise TypeError(
            f"the sharding of a type is a NamedSharding, not {sharding!r}; to place "
            "arguments, pass in_shardings to jit"
        )
    return explicit_of(cast(TypeSharding, sharding), ndim)


def check_splits(shape: Shape, explicit: Explicit) -> None:
    """Raise ValueError unless the axes split the dimensions evenly."""
    for i, (size, axes) in enumerate(zip(shape, explicit.splits, strict=True)):
        count = explicit.mesh.size(axes)
        if axes and size % count:
            raise ValueError(
                f"the sharding {explicit.text()} splits dimension {i} of {shape} into "
                f"{count} parts along {axes_text(axes)}, but that does not evenly "
                f"divide the dimension size {size}"
            )


def check_dimension(size: int, shape: tuple[int, ...]) -> int:
    """`size` as an int, or an error that shows the whole shape."""
    if isinstance(size, SymbolicSize):
        out: int = size
    elif isinstance(size, int | np.integer):
        out = int(size)
    else:
        raise TypeError(
            f"a shape must hold integers, but {shape} holds {size!r} of type "
            f"{type(size).__name__}; shapes must be known while tracing"
        )
    if out < 0:
        raise ValueError(f"a shape cannot hold a negative size: {shape}")
    return out


# -----------------------------------------------------------------------------
# How many bits a dtype has and which numbers it holds.
#
# One idea: `ml_dtypes` knows the limits of NumPy's dtypes and of its own, so every
# dtype is asked in one place, once::
#
#     float(finfo(bfloat16).eps)    # 0.0078125
#     iinfo(int4).max               # 7


@memoised
def finfo(dtype: DType) -> ml_dtypes.finfo:
    """The limits of a floating dtype, or of the parts of a complex one.

    Raises:
        ValueError: `dtype` is not inexact.

    >>> from verax.ir.dtypes import bfloat16
    >>> float(finfo(bfloat16).eps)
    0.0078125
    """
    if dtype not in INEXACT_SET:
        raise ValueError(f"finfo needs a floating or complex dtype, not {dtype.name}")
    return ml_dtypes.finfo(numpy_dtype(dtype))


@memoised
def iinfo(dtype: DType) -> ml_dtypes.iinfo:
    """The limits of an integer dtype.

    Raises:
        ValueError: `dtype` is not an integer dtype.

    >>> from verax.ir.dtypes import int4
    >>> iinfo(int4).min, iinfo(int4).max
    (-8, 7)
    """
    if dtype not in INTEGER_SET:
        raise ValueError(f"iinfo needs an integer dtype, not {dtype.name}")
    return ml_dtypes.iinfo(numpy_dtype(dtype))


@memoised
def bit_width(dtype: DType) -> int:
    """The bits of an element's value: 4 for int4, although stored in a byte.

    >>> from verax.ir.dtypes import bool_, complex64, int4
    >>> bit_width(int4), bit_width(bool_), bit_width(complex64)
    (4, 8, 64)
    """
    if dtype in INTEGER_SET:
        return int(iinfo(dtype).bits)
    if dtype in FLOATING_SET:
        return int(finfo(dtype).bits)
    return 8 * dtype.itemsize


def check_fits(value: int, dtype: DType) -> None:
    """Raise unless the integer `dtype` holds `value`; other dtypes hold any.

    Raises:
        OverflowError: `value` is outside the range.

    >>> from verax.ir.dtypes import uint8
    >>> check_fits(255, uint8)
    """
    if dtype not in INTEGER_SET:
        return
    limits = iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OverflowError(
            f"Python int {value} too large to convert to {dtype.name}, which holds "
            f"{limits.min} to {limits.max}; give it a wider or a floating dtype"
        )
