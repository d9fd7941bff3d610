"""Floor 5: shapes and dtypes that stand for arrays.

One idea: anything with a shape and a dtype suffices to trace a function for it::

    jit(f).lower(ShapeDtypeStruct((3,), np.float32))
    jit(f).lower(*jit(f).lower(x).args_info[0])
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
from attrs import Attribute, field, frozen

from verax.api.tracing.trace import Traced, misplaced
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray, Format, Layout
from verax.backend.placement.mesh import PartitionSpec, current_mesh
from verax.backend.placement.sharding import NamedSharding, Sharding
from verax.backend.programs.placement import committed_place
from verax.ir.avals import AbstractRef, ShapedArray, is_reference
from verax.ir.dtypes import DType, DTypeLike, as_dtype
from verax.ir.meshes import ManualAxisType, says_nothing
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import NotAnArray
from verax.rules.values.sizes import as_size
from verax.rules.values.state import asked_dtype


def as_shape(sizes: Iterable[int]) -> tuple[int, ...]:
    """The sizes as a tuple of Python integers.

    Raises:
        ValueError: one of them is None.
    """
    sizes = tuple(sizes)
    if any([size is None for size in sizes]):
        raise ValueError(
            f"ShapeDtypeStruct: `shape`, {sizes}, cannot have None. Every size must be "
            "known"
        )
    return tuple([as_size(size) for size in sizes])


def needed_dtype(dtype: DTypeLike | None) -> DType:
    """The dtype of a struct; one that arrays cannot have says so when it is used.

    Raises:
        TypeError: it is not a dtype.
        ValueError: there is none.
    """
    if dtype is None:
        raise ValueError("ShapeDtypeStruct: dtype must be specified")
    other = dtype if isinstance(dtype, np.dtype) else None
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        other = np.dtype(dtype)
    return other if other is not None and other.kind in "SUOM" else as_dtype(dtype)


def sharding_of(
    place: Sharding | Format | PartitionSpec | None,
) -> Sharding | PartitionSpec | None:
    """The sharding of a place that may say its memory layout too.

    The one of a type, which says nothing, is none.

    Raises:
        TypeError: it is not a place.
    """
    out = place.sharding if isinstance(place, Format) else place
    if not isinstance(out, Sharding | PartitionSpec | None):
        raise TypeError(
            "the sharding of a ShapeDtypeStruct must be a Sharding, a PartitionSpec or "
            f"a Format, not {place!r}"
        )
    return None if says_nothing(out) else out


def check_manual(
    struct: object, attribute: "Attribute[ManualAxisType | None]", value: object
) -> None:
    """Raise TypeError unless the field is a `ManualAxisType` or None."""
    if not isinstance(value, ManualAxisType | None):
        raise TypeError(
            f"the {attribute.name} of a ShapeDtypeStruct must be a "
            f"verax.sharding.ManualAxisType or None, not {value!r}"
        )


def indivisible[T](cls: type[T]) -> type[T]:
    """A class that libraries of trees take for a leaf, as they take JAX's.

    Some (dm-tree) take classes of attrs for containers, by this attribute.
    """
    del cls.__attrs_attrs__  # type: ignore[attr-defined]  # attrs sets it
    return cls


@indivisible
@frozen(repr=False)
class ShapeDtypeStruct:
    """A shape and a dtype, standing for an array in `eval_shape` and `lower`.

    `sharding` is a `Sharding`, or a `PartitionSpec`, which then is one over the mesh in
    force where it is used. With `is_ref` it stands for a mutable reference. Inside
    `shard_map`, `manual_axis_type` says along which axes the array varies; None says
    nothing.

    >>> import numpy as np
    >>> ShapeDtypeStruct((2, 3), np.float32).update(dtype=np.int8)
    ShapeDtypeStruct(shape=(2, 3), dtype=int8)
    """

    __module__ = "verax"

    shape: tuple[int, ...] = field(converter=as_shape)
    dtype: Any = field(converter=needed_dtype)
    weak_type: bool = False
    _sharding: Sharding | PartitionSpec | None = field(
        default=None, kw_only=True, converter=sharding_of
    )
    manual_axis_type: ManualAxisType | None = field(
        default=None, kw_only=True, validator=check_manual
    )
    is_ref: bool = field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if the sharding splits more dimensions than there are."""
        place = self._sharding
        if isinstance(place, Sharding):
            place.check_compatible_aval(self.shape)
        elif place is not None and len(place) > self.ndim:
            raise ValueError(
                f"{place} is only valid for values of rank at least {len(place)}, but "
                f"was applied to a value of rank {self.ndim}: a ShapeDtypeStruct of "
                f"shape {self.shape}"
            )

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        rest = "" if self._sharding is None else f", sharding={self._sharding}"
        if self.manual_axis_type is not None:
            rest += f", manual_axis_type={self.manual_axis_type}"
        rest += ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak}{rest})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(
                "len() of unsized object: a ShapeDtypeStruct without dimensions"
            )
        return self.shape[0]

    @property
    def sharding(self) -> Sharding | None:
        """How the array lies; a `PartitionSpec` is read over the mesh in force.

        Raises:
            TypeError: there is none.
            ValueError: it lacks an axis of the spec.
        """
        if not isinstance(self._sharding, PartitionSpec):
            return self._sharding
        if (mesh := current_mesh()) is None:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh "
                f"cannot be empty: use {self} within `with jax.set_mesh(mesh):`, or "
                "write NamedSharding(mesh, spec)"
            )
        return NamedSharding(mesh, self._sharding)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return ShapedArray(self.shape, self.dtype).size

    @property
    def format(self) -> Format:
        """The sharding, with the layout that arrays have."""
        layout = None if self.sharding is None else Layout.row_major(self.ndim)
        return Format(layout, self.sharding)

    @classmethod
    def like(cls, x: object) -> "ShapeDtypeStruct":
        """The struct of an array, a scalar, a type or another struct.

        An array that is not committed to its devices leaves its sharding open.

        Raises:
            TypeError: `x` is none of these.

        >>> import numpy as np
        >>> ShapeDtypeStruct.like(np.ones(3, np.float16))
        ShapeDtypeStruct(shape=(3,), dtype=float16)
        """
        aval = struct_aval(x)
        if isinstance(x, ConcreteArray):
            place: object = committed_place(x)
        elif isinstance(x, Array):
            place = aval.sharding
        else:
            place = getattr(x, "_sharding", getattr(x, "sharding", None))
        return cls(
            aval.shape,
            aval.dtype,
            aval.weak_type,
            sharding=place if isinstance(place, Sharding | PartitionSpec) else None,
            manual_axis_type=said_of(aval),
        )

    def update(self, **changes: object) -> "ShapeDtypeStruct":
        """The same with other fields.

        Raises:
            TypeError: there is no such field.
        """
        same = {name: getattr(self, name) for name in FIELDS if name != "sharding"}
        return ShapeDtypeStruct(**(same | {"sharding": self._sharding} | changes))


FIELDS: Final = tuple(inspect.signature(ShapeDtypeStruct).parameters)


@frozen(repr=False)
class ArgInfo(ReprMixin):
    """A stage's knowledge of an argument: its type, and whether it is donated."""

    __module__ = "verax.stages"

    aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype


def struct_of(aval: ShapedArray, place: Sharding | None = None) -> ShapeDtypeStruct:
    """The struct of a type, which says how explicit mesh axes split it."""
    if place is None and aval.explicit is not None:
        place = cast(Sharding, aval.sharding)
    return ShapeDtypeStruct(
        aval.shape,
        aval.dtype,
        aval.weak_type,
        sharding=place,
        manual_axis_type=said_of(aval),
    )


def said_of(aval: ShapedArray) -> ManualAxisType | None:
    """The axes of an enclosing `shard_map` of which a type speaks, if any."""
    manual_axis_type = aval.manual_axis_type
    return None if manual_axis_type.empty else manual_axis_type


def out_info(traced: Traced, places: Sequence[Sharding | None] = ()) -> Any:
    """The output types of a traced function, in the structure of its output.

    `places` are the shardings that were asked for, if any were.
    """
    avals = traced.jaxpr.out_avals
    pairs = zip(avals, places or (None,) * len(avals), strict=True)
    return traced.out_tree.unflatten([struct_of(*pair) for pair in pairs])


def struct_aval(x: object) -> ShapedArray:
    """The type of an argument that may be a shape and a dtype alone.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(x, ArgInfo):
        return x.aval
    if isinstance(x, ShapeDtypeStruct | ShapedArray):
        aval = ShapedArray(x.shape, asked_dtype(x.dtype), x.weak_type)
        if isinstance(x, ShapedArray):
            aval = aval.with_explicit(x.explicit)
        elif x.sharding is not None and x.sharding.explicit:
            aval = aval.update(sharding=x.sharding)
        if isinstance(x, ShapeDtypeStruct) and x.manual_axis_type is not None:
            aval = aval.update_manual_axis_type(x.manual_axis_type)
        ref = x.is_ref if isinstance(x, ShapeDtypeStruct) else type(x) is AbstractRef
        return AbstractRef(aval) if ref else aval
    try:
        return aval_of(x)
    except NotAnArray:
        if is_reference(x):
            return x.aval
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if isinstance(x, Array) or shape is None or dtype is None:
            raise
    return struct_aval(ShapeDtypeStruct(shape, dtype))


def typed_arguments(
    args: tuple[object, ...], kwargs: Mapping[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments of a call, in which types and places stand for arrays.

    So they can be kept without keeping an array alive.
    """
    leaves, tree = pytrees.flatten((args, dict(kwargs)))
    out: tuple[tuple[object, ...], dict[str, object]] = tree.unflatten(
        map(typed_argument, leaves)
    )
    return out


def typed_argument(x: object) -> object:
    """The type of an array; anything else, such as a static argument, as it is."""
    if isinstance(x, ConcreteArray):
        return struct_of(x.aval, committed_place(x))
    return struct_of(aval_of(x)) if isinstance(x, np.ndarray) else x


def struct_avals(
    leaves: Sequence[object], describe: Callable[[], Sequence[str]] | None = None
) -> list[ShapedArray]:
    """The types of argument leaves.

    Raises:
        TypeError: a leaf is neither an array nor a type; with `describe` the message
            says which.
    """
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(struct_aval(leaf))
        except TypeError as error:
            if describe is None:
                raise
            raise misplaced(describe()[i], leaf, error) from None
    return avals
