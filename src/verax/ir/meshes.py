"""Floor 0: how an array is spread over devices, as plain data that params can hold.

One idea: devices are numbers and axes are names, so that a program can say where its
values lie, print it and compare it without knowing any runtime::

    MeshAxes(("x", "y"), (2, 2), (0, 1, 2, 3)), (("x",), ())

Along the explicit axes of a mesh the types of values say how they are split; a type
that no explicit axis splits says nothing, as under meshes without such axes::

    Explicit(MeshType(("x",), (2,), (AxisType.Explicit,)), (("x",), ()))   # [8@x,2]
"""

import enum
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import prod
from typing import ClassVar, Final, Protocol

from attrs import evolve, field, frozen

from verax.ir.records import QUIET, ReprMixin, Unchanging

FIRST_DEVICE = "  sdy.mesh @first_device = <[], device_ids=[0]>\n"
"""The declaration of the first device alone, where calls of the host are made."""

type Split = tuple[str, ...] | None
"""The axes that split a dimension, outer first; None leaves it to the compiler."""


@frozen(cache_hash=True, repr=False)
class MeshAxes(ReprMixin):
    """Named axes over devices; the numbers of the devices are in row-major order.

    Without `devices`, they are over those of the program, whichever these are.
    """

    transient: ClassVar[bool] = False

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    devices: tuple[int, ...]

    def size(self, name: str) -> int:
        """The number of devices that lie along an axis."""
        return self.sizes[self.names.index(name)]


class AxisType(enum.Enum):
    """The party that decides along an axis how values are split.

    `Auto`: the compiler. `Explicit`: the types of the values. `Manual`: the function
    itself, inside `shard_map`.
    """

    __module__ = "verax.sharding"

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


type AxisTypes = tuple[AxisType, ...]


class UnreducedKind(enum.Enum):
    """The operation that makes a value of what devices hold along unreduced axes."""

    __module__ = "verax.sharding"

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


type Axes = tuple[str, ...]
type Splits = tuple[Axes, ...]
"""The axes that split each dimension, outer first."""


@frozen(cache_hash=True, repr=False)
class Terms(ReprMixin):
    """The difference of what devices hold along mesh axes that split no dimension.

    Along `unreduced` axes each device holds a term of the value, which is their sum, or
    what else `kind` says. Along `reduced` ones each has all of it, and terms of its
    cotangent. Along `varying` ones, which are those of an enclosing `shard_map`, each
    has a value of its own; where a type does not name such an axis, all have the same.
    Axes are in the order of the mesh. Of values that are `open`, sums over what is
    split are not made: the results have terms.
    """

    transient: ClassVar[bool] = False

    unreduced: Axes = ()
    reduced: Axes = ()
    kind: UnreducedKind = UnreducedKind.sum
    open: bool = False
    varying: Axes = field(default=(), kw_only=True, metadata=QUIET)

    def __bool__(self) -> bool:
        return bool(self.unreduced or self.reduced or self.varying or self.open)

    @property
    def axes(self) -> Axes:
        """All axes that are named."""
        return (*self.varying, *self.unreduced, *self.reduced)

    @property
    def dual(self) -> "Terms":
        """Those of a cotangent; that of a maximum is whole."""
        swapped = self.unreduced if self.kind is UnreducedKind.sum else ()
        return Terms(self.reduced, swapped, varying=self.varying)

    @property
    def sums(self) -> bool:
        """Whether the value, or its cotangent, is still to be summed."""
        return bool(self.unreduced or self.reduced or self.open)

    def text(self) -> str:
        """The terms as types are printed with them.

        >>> Terms(("x",)).text(), Terms(("x", "y"), ("z",)).text(), Terms().text()
        ('{U:x}', '{U:(x,y), R:z}', '')
        >>> Terms(varying=("x",)).text()
        '{V:x}'
        """
        if not self:
            return ""
        kind = "" if self.kind is UnreducedKind.sum else f"_{self.kind.name}"
        named = ("V", self.varying), (f"U{kind}", self.unreduced), ("R", self.reduced)
        parts = [f"{letter}:{joined(axes)}" for letter, axes in named if axes]
        parts += ["open"] * self.open
        return "{" + ", ".join(parts) + "}"

    def attribute(self) -> str:
        """The terms at the end of a Shardy sharding.

        >>> Terms(("x", "y")).attribute(), Terms((), ("x",)).attribute()
        (', unreduced={"x", "y"}', '')
        """
        if not self.unreduced:
            return ""
        kind = "" if self.kind is UnreducedKind.sum else f"{self.kind.name}"
        names = ", ".join([f'"{name}"' for name in self.unreduced])
        return f", unreduced={kind}{{{names}}}"


NO_TERMS: Final = Terms()


def as_axis_set(axes: set[str] | frozenset[str]) -> frozenset[str]:
    """The axes of a `ManualAxisType`; raise TypeError unless they are a set."""
    if not isinstance(axes, set | frozenset):
        raise TypeError(
            f"ManualAxisType takes a set or frozenset of names of axes, not {axes!r}"
        )
    return frozenset(axes)


@frozen(cache_hash=True, repr=False)
class ManualAxisType(ReprMixin):
    """The part of a type about the axes of an enclosing `shard_map`.

    Along `varying` axes each device has a value of its own; along `unreduced` ones it
    has a term of the value, along `reduced` ones a term of the cotangent. Along others
    all devices have the same.

    Raises:
        TypeError: a field is not a set of names.
        ValueError: an axis is varying and something else.

    >>> ManualAxisType(varying={"x"}).varying
    frozenset({'x'})
    """

    __module__ = "verax.sharding"

    transient: ClassVar[bool] = False

    varying: frozenset[str] = field(
        default=frozenset(), kw_only=True, converter=as_axis_set
    )
    unreduced: frozenset[str] = field(
        default=frozenset(), kw_only=True, converter=as_axis_set
    )
    reduced: frozenset[str] = field(
        default=frozenset(), kw_only=True, converter=as_axis_set
    )
    unreduced_kind: UnreducedKind | None = field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        both = self.varying & (self.unreduced | self.reduced)
        if both:
            raise ValueError(
                "an axis of ManualAxisType cannot be varying and unreduced, or varying "
                f"and reduced, as {min(both)!r} is"
            )
        if self.unreduced_kind is not None and not self.unreduced:
            raise ValueError(
                "unreduced_kind of ManualAxisType must be None where no axis is "
                f"unreduced, not {self.unreduced_kind}"
            )
        if self.unreduced and self.unreduced_kind is None:
            object.__setattr__(self, "unreduced_kind", UnreducedKind.sum)

    @property
    def empty(self) -> bool:
        """Whether no axis is named."""
        return not (self.varying or self.unreduced or self.reduced)

    def invarying(self, mesh: "BaseMesh") -> frozenset[str]:
        """The manual axes of a mesh along which all devices have the same."""
        return (
            frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced
        )

    def update(self, **fields: object) -> "ManualAxisType":
        """The same with other fields."""
        return evolve(self, **fields)  # type: ignore[arg-type]  # checked when made

    def terms(self, mesh: "MeshType") -> Terms:
        """The terms of a type over `mesh` that says so.

        Raises:
            ValueError: an axis is not one of a `shard_map` over this mesh.
        """
        manual = mesh.of_type(AxisType.Manual)
        unknown = (self.varying | self.unreduced | self.reduced).difference(manual)
        if unknown:
            raise ValueError(
                f"manual_axis_type names {min(unknown)!r}, but the axes of the mesh "
                f"that are of type Manual are {', '.join(manual) or 'none'}"
            )
        unreduced, reduced, varying = (
            tuple([a for a in mesh.names if a in axes])
            for axes in (self.unreduced, self.reduced, self.varying)
        )
        kind = self.unreduced_kind or UnreducedKind.sum
        return Terms(unreduced, reduced, kind, varying=varying)


@frozen(cache_hash=True, repr=False)
class Layout(ReprMixin):
    """The axes of `mesh` that split each dimension; further dimensions are whole."""

    transient: ClassVar[bool] = False

    mesh: MeshAxes
    splits: tuple[Split, ...] = ()
    terms: Terms = field(default=NO_TERMS, metadata=QUIET)


def joined(axes: Axes) -> str:
    """Axes in a printed type.

    >>> joined(("x",)), joined(("x", "y"))
    ('x', '(x,y)')
    """
    return axes[0] if len(axes) == 1 else f"({','.join(axes)})"


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names of axes as a tuple; one string is one name."""
    return (names,) if isinstance(names, str) else tuple(names)


def checked_names(names: tuple[str, ...], what: str) -> None:
    """Raise unless the names are strings that differ.

    Raises:
        TypeError: a name is not a string.
        ValueError: a name occurs twice.
    """
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"the axis names of {what} must be strings, not {names!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"the axis names of {what} must differ, got {names}")


def checked_types(
    types: object, names: tuple[str, ...], usual: AxisType = AxisType.Auto
) -> AxisTypes:
    """One type for each axis; None stands for the `usual` one everywhere.

    Raises:
        TypeError: one is not an `AxisType`.
        ValueError: there is not one for each axis.
    """
    if types is None:
        return (usual,) * len(names)
    given = tuple(types) if isinstance(types, tuple | list) else (types,)
    if not all(isinstance(kind, AxisType) for kind in given):
        raise TypeError(f"axis_types must be of type AxisType, not {types!r}")
    if len(given) != len(names):
        raise ValueError(
            "Number of axis names should match the number of axis_types: the axes are "
            f"{names}, and axis_types is {types!r}"
        )
    return given


class BaseMesh(Unchanging):
    """The base of meshes with and without devices: questions about their axes."""

    __slots__ = ()

    axis_names: tuple[str, ...]
    axis_types: AxisTypes

    @property
    @abstractmethod
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of devices."""

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """The name and the number of devices of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape(self) -> "OrderedDict[str, int]":
        """The number of devices along each axis, by name."""
        return OrderedDict(self.shape_tuple)

    def axes_of(self, kind: AxisType) -> tuple[str, ...]:
        """The axes of one type."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple([name for name, other in pairs if other is kind])

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The axes along which the compiler decides."""
        return self.axes_of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The axes along which types decide."""
        return self.axes_of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The axes along which the function inside `shard_map` decides."""
        return self.axes_of(AxisType.Manual)

    def only(self, *kinds: AxisType) -> bool:
        """Whether there are axes, all of these types."""
        types = self.axis_types
        return bool(types) and all([kind in kinds for kind in types])

    @property
    def are_all_axes_auto(self) -> bool:
        return self.only(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        return self.only(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        return self.only(AxisType.Manual)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        return self.only(AxisType.Explicit, AxisType.Manual)

    def text(self) -> str:
        """The axes as they are printed, and their types."""
        parts = [f"{name!r}: {size}" for name, size in self.shape_tuple]
        return ", ".join([*parts, f"axis_types={self.axis_types}"])


class Spec(Protocol):
    """The axes that split each dimension, and those of terms."""

    def __iter__(self) -> Iterator[object]: ...

    @property
    def unreduced(self) -> Collection[str]: ...

    @property
    def reduced(self) -> Collection[str]: ...

    @property
    def unreduced_kind(self) -> UnreducedKind | None: ...


class TypeSharding(Protocol):
    """The sharding of a type: a mesh, and the axes that split each dimension."""

    @property
    def mesh(self) -> BaseMesh: ...

    @property
    def spec(self) -> Spec: ...


class TypeShardings:
    """The shardings that types and operations need; `verax.wiring` sets it.

    `unsaid` makes the sharding of a type that says nothing, `said` that of another;
    `resolved(name, sharding)` is what the user of a function passed as one,
    `called(name, jaxpr, *operands)` runs a program, `in_force()` are the axes of the
    mesh around a call, and `unspoken(mesh)` those of which types do not speak.
    """

    unsaid: ClassVar[Callable[[int], TypeSharding]]
    said: ClassVar[Callable[[object], TypeSharding]]
    resolved: ClassVar[Callable[[str, object], TypeSharding]]
    called: ClassVar[Callable[..., tuple[object, ...]]]
    in_force: ClassVar[Callable[[], "MeshType"]]
    unspoken: ClassVar[Callable[["MeshType"], Axes]]


def says_nothing(sharding: object) -> bool:
    """Whether a sharding leaves open where an array lies, as the one of a type does.

    >>> says_nothing(None)
    True
    """
    mesh = getattr(sharding, "mesh", None)
    return sharding is None or (isinstance(mesh, BaseMesh) and not mesh.axis_names)


def mesh_text(mesh: MeshAxes, order: tuple[int, ...]) -> str:
    """A Shardy mesh; `order` are the devices of the program, by position.

    >>> mesh_text(MeshAxes(("x",), (2,), (7, 9)), (7, 9))
    '<["x"=2]>'
    >>> mesh_text(MeshAxes(("x",), (2,), (9, 7)), (7, 9))
    '<["x"=2], device_ids=[1, 0]>'
    """
    axes = ", ".join(
        f'"{name}"={size}' for name, size in zip(mesh.names, mesh.sizes, strict=True)
    )
    position = {device: i for i, device in enumerate(order)}
    places = [position[device] for device in mesh.devices]
    if places == list(range(len(places))):
        return f"<[{axes}]>"
    return f"<[{axes}], device_ids={places}>"


def layout_text(
    symbol: str, splits: tuple[Split, ...], ndim: int, terms: Terms = NO_TERMS
) -> str:
    """A Shardy sharding of an array with `ndim` dimensions.

    >>> layout_text("@mesh", (("x", "y"), None), 3)
    '#sdy.sharding<@mesh, [{"x", "y"}, {?}, {}]>'
    """
    whole: tuple[Split, ...] = ((),) * (ndim - len(splits))
    dims = ", ".join(map(split_text, (*splits, *whole)))
    return f"#sdy.sharding<{symbol}, [{dims}]{terms.attribute()}>"


def split_text(split: Split) -> str:
    """One dimension of a Shardy sharding."""
    if split is None:
        return "{?}"
    return "{" + ", ".join(f'"{name}"' for name in split) + "}"


def layouts_text(layouts: Iterable[str | None]) -> str:
    """The Shardy shardings of several values of a program over several devices.

    >>> layouts_text(['#sdy.sharding<@mesh, [{"x"}]>', '#sdy.sharding<@mesh, [{}]>'])
    '#sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{}]>]>'
    """
    values = [text.removeprefix("#sdy.sharding") for text in layouts if text]
    return f"#sdy.sharding_per_value<[{', '.join(values)}]>"


def manual_text(names: Iterable[str]) -> str:
    """The Shardy attribute of the axes that a program for each device runs along.

    >>> manual_text(("x", "y"))
    '#sdy<manual_axes{"x", "y"}>'
    """
    return "#sdy<manual_axes{" + ", ".join([f'"{name}"' for name in names]) + "}>"


def first_device_text(results: int) -> str:
    """The Shardy sharding of an operation that the first device does for all.

    >>> first_device_text(2)
    '#sdy.sharding_per_value<[<@first_device, []>, <@first_device, []>]>'
    """
    values = ", ".join(["<@first_device, []>"] * max(1, results))
    return f"#sdy.sharding_per_value<[{values}]>"


@frozen(cache_hash=True, repr=False)
class MeshType(ReprMixin):
    """The axes of a mesh, as types know them."""

    transient: ClassVar[bool] = False

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    types: AxisTypes

    def size(self, names: Iterable[str]) -> int:
        """The number of parts these axes make together."""
        return prod([self.sizes[self.names.index(name)] for name in names])

    def of_type(self, kind: AxisType) -> tuple[str, ...]:
        """The axes of one type."""
        pairs = zip(self.names, self.types, strict=True)
        return tuple([name for name, other in pairs if other is kind])


NOT_MANUAL: Final = ManualAxisType()


@frozen(cache_hash=True, repr=False)
class Explicit(ReprMixin):
    """The explicit axes of `mesh` that split each dimension, and the terms of a value.

    At least one axis is named.
    """

    transient: ClassVar[bool] = False

    mesh: MeshType
    splits: Splits
    terms: Terms = NO_TERMS

    def text(self) -> str:
        """The axes of all dimensions, as messages show them."""
        return f"({', '.join(map(axes_text, self.splits))}){self.terms.text()}"

    @property
    def sums_explicitly(self) -> bool:
        """Whether there are sums over explicit axes to make, which XLA makes."""
        terms, known = self.terms, self.mesh.of_type(AxisType.Explicit)
        return terms.open or any(
            [axis in known for axis in (*terms.unreduced, *terms.reduced)]
        )

    @property
    def dual(self) -> "Explicit | None":
        """The type of the cotangent."""
        if not self.terms:
            return self
        return explicit_on(self.mesh, self.splits, self.terms.dual)

    @property
    def axes(self) -> Axes:
        """All axes that are named."""
        return (*[axis for axes in self.splits for axis in axes], *self.terms.axes)


def explicit_on(
    mesh: MeshType | None, splits: Sequence[Axes], terms: Terms = NO_TERMS
) -> Explicit | None:
    """The part of a type that is split so; None if it says nothing."""
    if mesh is None or not (any(splits) or terms.axes):
        return None
    return Explicit(mesh, tuple(splits), terms)


def opened(explicit: Explicit | None) -> Explicit | None:
    """The type of an open value; see `Terms`."""
    if explicit is None:
        return None
    return evolve(explicit, terms=evolve(explicit.terms, open=True))


def closed(explicit: Explicit | None) -> Explicit | None:
    """The type of the same value, closed."""
    if explicit is None:
        return None
    return evolve(explicit, terms=evolve(explicit.terms, open=False))


def terms_of(explicit: Explicit | None) -> Terms:
    """The terms of which a type speaks."""
    return NO_TERMS if explicit is None else explicit.terms


def varying_axes(explicit: Explicit | None) -> Axes:
    """The axes of an enclosing `shard_map` along which a type says that values vary."""
    return () if explicit is None else explicit.terms.varying


def terms_along(terms: Terms, axes: Collection[str]) -> Terms:
    """The terms along some axes only."""
    unreduced, reduced, varying = (
        tuple([a for a in known if a in axes])
        for known in (terms.unreduced, terms.reduced, terms.varying)
    )
    return Terms(unreduced, reduced, terms.kind, terms.open, varying=varying)


def terms_together(mesh: MeshType, x: Terms, y: Terms) -> Terms:
    """Terms along the axes of both, which are different axes of `mesh`."""
    unreduced, reduced, varying = (
        tuple([a for a in mesh.names if a in axes])
        for axes in (
            (*x.unreduced, *y.unreduced),
            (*x.reduced, *y.reduced),
            (*x.varying, *y.varying),
        )
    )
    kind = x.kind if x.unreduced else y.kind
    return Terms(unreduced, reduced, kind, x.open or y.open, varying=varying)


def manual_type(explicit: Explicit | None) -> ManualAxisType:
    """The part of a type about the axes of an enclosing `shard_map`."""
    if explicit is None:
        return NOT_MANUAL
    own = terms_along(explicit.terms, explicit.mesh.of_type(AxisType.Manual))
    return ManualAxisType(
        varying=frozenset(own.varying),
        unreduced=frozenset(own.unreduced),
        reduced=frozenset(own.reduced),
        unreduced_kind=own.kind if own.unreduced else None,
    )


def manual_only(explicit: Explicit) -> Explicit | None:
    """The type without what it says of explicit axes."""
    own = terms_along(explicit.terms, explicit.mesh.of_type(AxisType.Manual))
    return explicit_on(explicit.mesh, ((),) * len(explicit.splits), own)


def meeting_meshes(x: MeshType, y: MeshType) -> MeshType | None:
    """The mesh of operations on values of both; None if there is none.

    Inside of another, a `shard_map` maps axes that the values around it do not know of.
    """
    if x == y:
        return x
    if (x.names, x.sizes) != (y.names, y.sizes):
        return None
    types = []
    for a, b in zip(x.types, y.types, strict=True):
        if a is not b and AxisType.Manual not in (a, b):
            return None
        types.append(a if b is not AxisType.Manual else b)
    return MeshType(x.names, x.sizes, tuple(types))


def mapped_as(mesh: MeshType, other: MeshType) -> MeshType:
    """The mesh, with those axes manual, too, that are so in another with its axes."""
    pairs = zip(mesh.types, other.types, strict=True)
    types = [b if b is AxisType.Manual else a for a, b in pairs]
    return MeshType(mesh.names, mesh.sizes, tuple(types))


def axes_text(axes: Axes) -> str:
    """The axes of one dimension as messages show them.

    >>> axes_text(()), axes_text(("x",)), axes_text(("x", "y"))
    ('None', "'x'", "('x', 'y')")
    """
    if len(axes) == 1:
        return repr(axes[0])
    return repr(axes) if axes else "None"


def size_text(size: object, axes: Axes) -> str:
    """A dimension of a printed type.

    >>> size_text(8, ()), size_text(8, ("x",)), size_text(8, ("x", "y"))
    ('8', '8@x', '8@(x,y)')
    """
    if not axes:
        return str(size)
    return f"{size}@{joined(axes)}"


def mesh_type(sharding: TypeSharding) -> MeshType:
    """The mesh of a sharding, as types know it."""
    return mesh_known(sharding.mesh)


def mesh_known(mesh: BaseMesh) -> MeshType:
    """A mesh as types know it."""
    return MeshType(mesh.axis_names, mesh.axis_sizes, mesh.axis_types)


def explicit_of(sharding: TypeSharding, ndim: int) -> Explicit | None:
    """The part of a sharding that the type of an array with `ndim` dimensions has.

    Raises:
        ValueError: it has more entries than the array has dimensions.
    """
    if AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    mesh = mesh_type(sharding)
    unspoken = TypeShardings.unspoken(mesh)
    known = tuple([a for a in mesh.of_type(AxisType.Explicit) if a not in unspoken])
    result = [explicit_axes(entry, known) for entry in sharding.spec]
    if len(result) > ndim:
        raise ValueError(
            f"a sharding with {len(result)} entries, {sharding.spec}, is not for an "
            f"array with {ndim} dimensions"
        )
    splits = [*result, *[()] * (ndim - len(result))]
    return explicit_on(mesh, splits, named_terms(sharding.spec, mesh))


def named_terms(spec: Spec, mesh: MeshType) -> Terms:
    """The terms of a spec, their axes in the order of the mesh."""
    if not (spec.unreduced or spec.reduced):
        return NO_TERMS
    unspoken = TypeShardings.unspoken(mesh)
    spoken = [a for a in mesh.names if a not in unspoken]
    unreduced = tuple([a for a in spoken if a in spec.unreduced])
    reduced = tuple([a for a in spoken if a in spec.reduced])
    kind = (spec.unreduced_kind if unreduced else None) or UnreducedKind.sum
    return Terms(unreduced, reduced, kind)


def explicit_axes(entry: object, known: Axes) -> Axes:
    """The axes of an entry of a spec that are explicit."""
    axes = (entry,) if isinstance(entry, str) else entry
    return tuple([a for a in axes if a in known]) if isinstance(axes, tuple) else ()


def without_dim(explicit: Explicit, axis: int) -> Explicit | None:
    """The type of one element, given a stack's along dimension `axis`."""
    splits = explicit.splits
    rest = (*splits[:axis], *splits[axis + 1 :])
    return explicit_on(explicit.mesh, rest, explicit.terms)


def with_dim(explicit: Explicit, axis: int, added: Axes) -> Explicit:
    """The type of a stack whose new dimension `added` splits."""
    splits = explicit.splits
    more = (*splits[:axis], added, *splits[axis:])
    return Explicit(explicit.mesh, more, explicit.terms)


def explicit_layout_text(
    symbol: str,
    splits: Splits,
    ndim: int,
    free: bool,
    terms: Terms = NO_TERMS,
    whole: Axes = (),
) -> str:
    """A Shardy sharding; with `free` other axes may split the dimensions further.

    Those of `whole` do not.

    >>> explicit_layout_text("@mesh", (("x",), ()), 2, False)
    '#sdy.sharding<@mesh, [{"x"}, {}]>'
    >>> explicit_layout_text("@mesh", (("x",), ()), 2, True)
    '#sdy.sharding<@mesh, [{"x", ?}, {?}]>'
    >>> explicit_layout_text("@mesh", ((), ()), 2, True, whole=("x",))
    '#sdy.sharding<@mesh, [{?}, {?}], replicated={"x"}>'
    """
    rest = ["?"] if free else []
    dims = [[*[f'"{name}"' for name in axes], *rest] for axes in splits]
    dims += [[]] * (ndim - len(splits))
    text = ", ".join([braced(dim) for dim in dims])
    names = braced([f'"{name}"' for name in whole])
    same = f", replicated={names}" if whole else ""
    return f"#sdy.sharding<{symbol}, [{text}]{same}{terms.attribute()}>"


def braced(parts: Sequence[str]) -> str:
    return "{" + ", ".join(parts) + "}"
