"""Floor 5: the specs of `shard_map`: whom they are for, and what does not fit them.

One idea: a spec is for each leaf below it; where there is None, the function gets what
was passed, as it is, and only the others are arrays that parts are made of::

    Dealt(f, (None, P("x")), (options, xs))
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from math import prod
from typing import Any, overload

from attrs import frozen

from verax.api.jit import jit
from verax.api.sharding_args import is_place, over_a_mesh, place_entries
from verax.api.tracing.apply import as_array, is_tracing
from verax.api.tracing.wrapping import function_name, wraps
from verax.backend import pytrees
from verax.backend.placement.mesh import Mesh, PartitionSpec, current_mesh
from verax.backend.placement.mesh_context import concrete_mesh, typed_axes
from verax.backend.placement.sharding import NamedSharding
from verax.ir.avals import Shape, ShapedArray
from verax.ir.meshes import (
    NO_TERMS,
    Axes,
    AxisType,
    Explicit,
    Layout,
    MeshType,
    Split,
    Splits,
    Terms,
    as_names,
    explicit_on,
    mesh_known,
    says_nothing,
    terms_along,
    terms_of,
    terms_together,
)
from verax.ir.records import ReprMixin
from verax.ops.parallel.stacks import collect, spread
from verax.ops.structure.reshard import no_explicit_axes, retyped, split_by
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import index_in_dim
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable


def has_static(in_specs: object) -> bool:
    """Whether some arguments are not made of parts.

    >>> has_static((None, PartitionSpec())), has_static(PartitionSpec("x"))
    (True, False)
    """
    return None in pytrees.flatten(in_specs, lambda x: x is None)[0]


@frozen(eq=False, repr=False)
class Dealt(ReprMixin):
    """A function of those leaves of its arguments that have specs."""

    f: Callable[..., object]
    in_specs: object
    args: tuple[object, ...]

    @cached_property
    def entries(self) -> list[Any]:
        """The spec of each leaf, or None.

        Raises:
            ValueError: the specs are no prefix of the arguments.
        """
        specs = tuple(self.in_specs) if type(self.in_specs) is list else self.in_specs
        return place_entries("shard_map in_specs", specs, self.args)

    @property
    def specs(self) -> tuple[object, ...]:
        return tuple([spec for spec in self.entries if spec is not None])

    @property
    def arrays(self) -> list[object]:
        """The leaves that have specs."""
        leaves = pytrees.flatten(self.args)[0]
        return [
            x for x, spec in zip(leaves, self.entries, strict=True) if spec is not None
        ]

    @property
    def function(self) -> Callable[..., Any]:
        """The function of these leaves alone."""
        leaves, tree = pytrees.flatten(self.args)

        @wraps(self.f)
        def of_arrays(*arrays: object) -> object:
            own = iter(arrays)
            pairs = zip(leaves, self.entries, strict=True)
            merged = [x if spec is None else next(own) for x, spec in pairs]
            return self.f(*tree.unflatten(merged))

        return of_arrays


def check_part(
    f: object, place: NamedSharding, shape: Shape, what: Callable[[], str]
) -> None:
    """Raise ValueError unless an argument of this shape can be made of parts."""
    name, spec = function_name(f), place.spec
    if len(spec) > len(shape):
        raise too_long(name, "in", spec, what(), shape)
    try:
        place.check(shape, what)
    except ValueError as error:
        raise ValueError(
            f"shard_map applied to the function {name!r} was given an argument that "
            f"is not evenly divisible by the mesh axes in its in_specs, {spec}: {error}"
        ) from None


def too_long(
    name: str, prefix: str, spec: PartitionSpec, what: str, shape: Shape
) -> ValueError:
    """The error of a spec with more entries than an array has dimensions."""
    advice = (
        ""
        if shape
        else f"; for scalar values (rank 0), consider using an {prefix}_specs entry of "
        "`P()`, or give them a dimension to be put together along"
    )
    return ValueError(
        f"shard_map applied to the function {name!r} was given an {prefix}_specs entry "
        f"which is too long: it is {spec}, which has length {len(spec)}, but {what} "
        f"has shape {shape}, which has rank {len(shape)}{advice}"
    )


# -----------------------------------------------------------------------------
# How `shard_map` makes arrays of parts.
#
# The parts are stacked along new first dimensions, one for each mesh axis along
# which devices hold different things, and constraints say that each belongs to its
# device; what axes that are not mapped split, types say of whole and part alike.


@frozen(eq=False, repr=False)
class Parts(ReprMixin):
    """The parts of one array.

    `sharding` is over a mesh along whose mapped axes the compiler decides; `inner` is
    what the type of a part says of explicit axes that are not mapped.
    """

    sharding: NamedSharding
    terms: Terms = NO_TERMS
    """The mapped axes along which devices hold terms, or those of the cotangent."""
    inner: Explicit | None = None

    @property
    def mesh(self) -> Mesh:
        return self.sharding.concrete

    @property
    def spec(self) -> PartitionSpec:
        """The spec, as the user wrote it."""
        spec, terms = self.sharding.spec, self.terms
        if not terms:
            return spec
        return PartitionSpec(
            *spec,
            unreduced=frozenset(terms.unreduced),
            reduced=frozenset(terms.reduced),
        )

    @property
    def held(self) -> Axes:
        """The axes of terms, in the order of their dimensions in a stack."""
        return (*self.terms.unreduced, *self.terms.reduced)

    def splits(self, ndim: int) -> Splits:
        """The axes of each dimension, outermost first."""
        given: tuple[Split, ...] = self.sharding.splits
        return tuple([split or () for split in (*given, *[()] * (ndim - len(given)))])

    def axes(self, ndim: int) -> Axes:
        """The axes along which parts are apart, in the order of the mesh."""
        used = {name for split in self.splits(ndim) for name in split}
        used.update(self.held)
        return tuple([name for name in self.mesh.axis_names if name in used])

    def stack_splits(self, ndim: int) -> Splits:
        """The axes of each dimension of what `opened` gives."""
        return (*[(axis,) for axis in self.held], *self.splits(ndim))

    def free(self, ndim: int) -> Explicit | None:
        """The type of a stack between: types say only which sums are to be made."""
        terms = terms_of(self.inner)
        return explicit_on(mesh_known(self.mesh), ((),) * ndim, terms)

    def place(self, ndim: int, mapped: Collection[str]) -> Layout:
        """The sharding of a stack: as parts, and along other axes as types say."""
        splits: list[Split] = list(self.stack_splits(ndim))
        if self.inner is not None:
            first = len(self.held)
            for i, axes in enumerate(self.inner.splits):
                splits[first + i] = (*(splits[first + i] or ()), *axes)
        whole = len(mapped) == len(self.mesh.axis_names)
        entries = tuple([split or (() if whole else None) for split in splits])
        return Layout(self.mesh.axes, entries, terms_of(self.inner))

    def opened(self, x: Array, outer: MeshType) -> Array:
        """The values of an argument on devices, stacked along the axes of terms."""
        for axes, state in self.states():
            x = spread(x, axes, outer, state)
        return retyped(x, self.free(x.ndim))

    def closed(self, x: Array, outer: MeshType) -> Array:
        """The value of which devices hold what `opened` gives."""
        for axes, state in reversed(self.states()):
            x = collect(x, axes, outer, state)
        return x

    def states(self) -> list[tuple[Axes, str]]:
        """The axes of terms, and what a value is along them; the innermost first."""
        return [(self.terms.reduced, "reduced"), (self.terms.unreduced, "unreduced")]

    def parts(self, x: Array) -> Array:
        """The parts, stacked along one new first dimension for each axis in use.

        `x` is stacked along the axes of terms.
        """
        first = len(self.held)
        sizes, splits = self.mesh.shape, self.stack_splits(x.ndim - first)
        shape: list[int] = []
        place: dict[str, int] = {}
        rest: list[int] = []
        for i, (n, split) in enumerate(zip(x.shape, splits, strict=True)):
            for name in split:
                place[name] = len(shape)
                shape.append(sizes[name])
            if i >= first:
                rest.append(len(shape))
                shape.append(n // prod([sizes[name] for name in split]))
        order = [place[name] for name in self.axes(x.ndim - first)]
        out = transpose(reshape(x, shape), (*order, *rest))
        if self.inner is None:
            return out
        splits = (*[()] * len(order), *self.inner.splits)
        return retyped(
            out, explicit_on(mesh_known(self.mesh), splits, self.inner.terms)
        )

    def whole(self, x: Array, varying: Sequence[str], shape: Shape) -> Array:
        """The whole value of `parts`, which are stacked along the axes `varying`.

        Along those that are not in use the first part is taken.
        """
        ndim = len(shape)
        x = retyped(x, self.free(x.ndim))
        expected, kept = self.axes(ndim), list(varying)
        for name in [name for name in varying if name not in expected]:
            x = index_in_dim(x, 0, kept.index(name), keepdims=False)
            kept.remove(name)
        sizes = tuple([self.mesh.shape[name] for name in expected])
        dims = [expected.index(name) for name in kept]
        dims += range(len(expected), len(expected) + ndim)
        full = broadcast_in_dim(x, (*sizes, *shape), tuple(dims))
        order: list[int] = [expected.index(name) for name in self.held]
        due: list[int] = [full.shape[place] for place in order]
        for i, split in enumerate(self.splits(ndim)):
            places = [*[expected.index(name) for name in split], len(expected) + i]
            order += places
            due.append(prod([full.shape[place] for place in places]))
        return reshape(transpose(full, order), due)

    def outer_type(self, ndim: int, outer: MeshType) -> Explicit | None:
        """The type of the whole, along the explicit axes of `outer`."""
        known = outer.of_type(AxisType.Explicit)
        inner = ((),) * ndim if self.inner is None else self.inner.splits
        splits = [
            (*[a for a in own if a in known], *axes)
            for own, axes in zip(self.splits(ndim), inner, strict=True)
        ]
        terms = terms_together(outer, self.terms, terms_of(self.inner))
        return explicit_on(outer, splits, terms)


def inside(
    aval: ShapedArray, mesh: MeshType, mapped: Collection[str]
) -> Explicit | None:
    """The parts' type, of which explicit axes that are not mapped remain."""
    if aval.explicit is None:
        return None
    known = [a for a in mesh.of_type(AxisType.Explicit) if a not in mapped]
    splits = [tuple([a for a in axes if a in known]) for axes in aval.explicit.splits]
    return explicit_on(mesh, splits, terms_along(aval.explicit.terms, known))


# -----------------------------------------------------------------------------
# Explicit mesh axes, which the types of values speak of.
#
# Along them a program says itself how its values are split; within `auto_axes` the
# compiler decides, as along axes that are not explicit::
#
#     reshard(x, P("x", None))
#     auto_axes(lambda x: x @ x.T, out_sharding=P("x", None))(x)


def reshard[T](xs: T, out_shardings: object) -> T:
    """The tree with its arrays split by explicit mesh axes as `out_shardings` says.

    That is a prefix tree of `PartitionSpec`s of the mesh in force, or of
    `NamedSharding`s.

    Raises:
        TypeError: a leaf is not an array, or a sharding is none.
        ValueError: a spec has no mesh, the mesh has no explicit axes, or they cannot
            split an array evenly.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AxisType, PartitionSpec as P
    >>> with verax.set_mesh(verax.make_mesh((1,), ("x",), (AxisType.Explicit,))):
    ...     verax.typeof(reshard(vnp.ones((2, 3)), P("x")))
    f32[2@x,3]
    """
    leaves, tree = pytrees.flatten(xs)
    entries = place_entries("reshard out_shardings", out_shardings, xs)
    out = []
    for leaf, entry in zip(leaves, entries, strict=True):
        x, place = as_array(leaf), explicit_place("reshard", entry)
        place.check(x.shape, f"reshard: an array {x.aval}")
        out.append(split_by(x, place) if place.explicit else retyped(x, None))
    resharded: T = tree.unflatten(out)
    return resharded


def explicit_place(what: str, entry: object) -> NamedSharding:
    """A sharding that names explicit axes only.

    Raises:
        ValueError: it names another.
    """
    place = over_a_mesh(what, entry)
    named = {name for split in place.splits for name in split or ()}
    if not named <= set(place.mesh.explicit_axes):
        raise no_explicit_axes(what, place)
    return place


@overload
def auto_axes[R](
    f: Callable[..., R],
    /,
    *,
    axes: str | Sequence[str] | None = None,
    out_sharding: object = None,
) -> Callable[..., R]: ...
@overload
def auto_axes[R](
    f: None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    out_sharding: object = None,
) -> Callable[[Callable[..., R]], Callable[..., R]]: ...
def auto_axes(
    f: Callable[..., object] | None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    out_sharding: object = None,
) -> Any:
    """`f`, within which the compiler decides along `axes`, by default all of them.

    `out_sharding` is a prefix tree of the result, of what explicit axes split each;
    the function that is returned takes it as an argument, too.

    Raises:
        TypeError: nothing says how the result is split.
        ValueError: it names axes, and there is no mesh.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AxisType, PartitionSpec as P
    >>> with verax.set_mesh(verax.make_mesh((1,), ("x",), (AxisType.Explicit,))):
    ...     verax.typeof(auto_axes(vnp.sin, out_sharding=P("x"))(vnp.ones(2)))
    f32[2@x]
    """
    return retyping("auto_axes", auto_axes, AxisType.Auto, f, axes, out_sharding)


@overload
def explicit_axes[R](
    f: Callable[..., R],
    /,
    *,
    axes: str | Sequence[str] | None = None,
    in_sharding: object = None,
) -> Callable[..., R]: ...
@overload
def explicit_axes[R](
    f: None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    in_sharding: object = None,
) -> Callable[[Callable[..., R]], Callable[..., R]]: ...
def explicit_axes(
    f: Callable[..., object] | None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    in_sharding: object = None,
) -> Any:
    """`f`, within which the types of values say how `axes` split them.

    `in_sharding` is a prefix tree of the arguments, of how they are split there; the
    function that is returned takes it as an argument, too.

    Raises:
        TypeError: nothing says how the arguments are split.
        ValueError: it names axes, and there is no mesh.
    """
    return retyping(
        "explicit_axes", explicit_axes, AxisType.Explicit, f, axes, in_sharding
    )


def retyping(
    name: str,
    decorator: Callable[..., object],
    kind: AxisType,
    f: Callable[..., object] | None,
    axes: str | Sequence[str] | None,
    sharding: object,
) -> object:
    """`auto_axes` and `explicit_axes`, which differ in what they give a sharding of."""
    keyword = "out_sharding" if kind is AxisType.Auto else "in_sharding"
    if f is None:
        return partial(decorator, axes=axes, **{keyword: sharding})
    check_callable(name, f)
    inside = within_auto if kind is AxisType.Auto else within_explicit
    function = f

    @wraps(f)
    def changed(*args: object, **kwargs: object) -> Any:
        places = kwargs.pop(keyword, sharding)
        mesh = mesh_in_force((args, kwargs), places)
        if mesh is None:
            check_unnamed(name, places)
            return function(*args, **kwargs)
        names = mesh.axis_names if axes is None else as_names(axes)
        if all([mesh.axis_types[mesh.axis_names.index(a)] is kind for a in names]):
            return function(*args, **kwargs)
        if says_nothing(places):
            raise TypeError(
                f"{name} needs {keyword}: a PartitionSpec for each "
                f"{'result' if kind is AxisType.Auto else 'argument'}"
            )
        check_not_manual(name, mesh, names)
        inner = mesh.update_axis_types(dict.fromkeys(names, kind))

        def body(*args: object, **kwargs: object) -> Any:
            return inside(function, mesh, inner, places, args, kwargs)

        return body(*args, **kwargs) if is_tracing() else jit(body)(*args, **kwargs)

    return changed


def check_not_manual(name: str, mesh: Mesh, names: Sequence[str]) -> None:
    """Raise NotImplementedError if an axis is one that `shard_map` maps."""
    manual = [a for a in names if a in mesh.manual_axes]
    if manual:
        raise NotImplementedError(
            "Going from `Manual` axes to `Auto` or `Explicit` ones is not supported: "
            f"{name} cannot change the axis {manual[0]!r}, which shard_map maps, so "
            "that along it the function itself says how values are split"
        )


def check_unnamed(name: str, places: object) -> None:
    """Raise ValueError if specs name axes, of which there are none without a mesh."""
    for spec in pytrees.flatten(places, is_place)[0]:
        if isinstance(spec, PartitionSpec) and any(spec):
            raise ValueError(
                f"Context mesh cannot be empty: {name} got {spec}, which needs a mesh; "
                "call it within `with verax.set_mesh(mesh):`"
            )


def mesh_in_force(args: object, places: object) -> Mesh | None:
    """The mesh around a call, or that of its arguments, or of the shardings passed."""
    around = current_mesh()
    if around is not None:
        return around
    for x in (*pytrees.flatten(args)[0], *pytrees.flatten(places)[0]):
        place = x if isinstance(x, NamedSharding) else getattr(x, "sharding", None)
        if isinstance(place, NamedSharding) and place.mesh.axis_names:
            return concrete_mesh(place.mesh)
    return None


def within_auto(
    f: Callable[..., object],
    mesh: Mesh,
    inner: Mesh,
    places: object,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """`f` on arguments along whose axes the compiler decides; the results split."""
    leaves, tree = pytrees.flatten((args, kwargs))
    args, kwargs = tree.unflatten([seen_from(leaf, inner) for leaf in leaves])
    with typed_axes(inner):
        result = f(*args, **kwargs)
    outs, out_tree = pytrees.flatten(result)
    with typed_axes(mesh):
        entries = place_entries("out_sharding", places, result)
        out = [
            split_by(as_array(x), explicit_place("out_sharding", entry))
            for x, entry in zip(outs, entries, strict=True)
        ]
    return out_tree.unflatten(out)


def within_explicit(
    f: Callable[..., object],
    mesh: Mesh,
    inner: Mesh,
    places: object,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """`f` on arguments that are split as `places` says; the results without that."""
    leaves, tree = pytrees.flatten((args, kwargs))
    with typed_axes(inner):
        entries = place_entries("in_sharding", places, args)
        entries += [None] * (len(leaves) - len(entries))
        given = [
            x if says_nothing(entry) else split_by(as_array(x), over_a_mesh("", entry))
            for x, entry in zip(leaves, entries, strict=True)
        ]
        args, kwargs = tree.unflatten(given)
        result = f(*args, **kwargs)
    outs, out_tree = pytrees.flatten(result)
    return out_tree.unflatten([seen_from(x, mesh) for x in outs])


def seen_from(x: object, mesh: Mesh) -> object:
    """A value as code sees it in which the axes of `mesh` have their types."""
    if not isinstance(x, Array) or x.aval.explicit is None:
        return x
    return retyped(x, explicit_under(x.aval.explicit, mesh))


def explicit_under(explicit: Explicit, mesh: Mesh) -> Explicit | None:
    """The part of a type about explicit axes, under a mesh with others."""
    known = set(mesh.explicit_axes)
    splits = [tuple([a for a in axes if a in known]) for axes in explicit.splits]
    kind = MeshType(mesh.axis_names, mesh.axis_sizes, mesh.axis_types)
    terms = explicit.terms
    if not known.issuperset(terms.axes):
        terms = Terms(
            tuple([a for a in terms.unreduced if a in known]),
            tuple([a for a in terms.reduced if a in known]),
            terms.kind,
        )
    return explicit_on(kind, splits, terms)
