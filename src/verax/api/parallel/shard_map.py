"""Floor 5: `shard_map`: programs written for one device of many.

One idea: running a function on the parts that a mesh makes of an array is mapping it
over the axes of the mesh, which `vmap` with named axes does; constraints say that each
part belongs to its device, so that the compiler keeps it there::

    shard_map(lambda x: psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(xs)
"""

import enum
import functools
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from typing import Any, Final, overload

from attrs import evolve, frozen

from verax.api.jit import jit
from verax.api.parallel.specs import (
    Dealt,
    Parts,
    check_part,
    has_static,
    inside,
    too_long,
)
from verax.api.sharding_args import place_entries
from verax.api.tracing.apply import ENGINE, apply, as_array, is_tracing
from verax.api.tracing.reference_checks import check_parts
from verax.api.tracing.references import on_values
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, function_name, wraps
from verax.api.trees.hitypes import HI, specs_by_types
from verax.api.vmap import mesh_axis_scope
from verax.backend import pytrees
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import (
    Mesh,
    PartitionSpec,
    current_mesh,
    spec_with,
)
from verax.backend.placement.mesh_context import (
    concrete_mesh,
    devices_around,
    in_force,
    manual_axes,
    mesh_at,
    unspoken,
)
from verax.backend.placement.sharding import NamedSharding
from verax.backend.programs.placement import leaf_name
from verax.backend.pytrees import result_tree
from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import (
    AxisType,
    UnreducedKind,
    mesh_known,
    named_terms,
    terms_along,
    terms_of,
)
from verax.ir.records import ReprMixin
from verax.ops.parallel.sharding_constraint import sharding_constraint
from verax.ops.structure.casts import retyped_along
from verax.ops.structure.reshard import beside_manual, retyped
from verax.rules.programs.batched import batch_to
from verax.rules.rows.row import Axis, BatchAxis
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable, shown
from verax.transforms.engine.engine import over_axis


class Infer(enum.Enum):
    """Stands for specs that the types of the arguments say."""

    INFER = enum.auto()
    AXES = enum.auto()
    """Stands for an option that `smap` was not given."""


INFER: Final = Infer.INFER


@overload
def shard_map[**P, R](
    f: Callable[P, R],
    /,
    *,
    out_specs: object,
    in_specs: object = INFER,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Collection[str] = frozenset(),
    check_vma: bool = True,
) -> Callable[P, R]: ...
@overload
def shard_map[**P, R](
    f: None = None,
    /,
    *,
    out_specs: object,
    in_specs: object = INFER,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Collection[str] = frozenset(),
    check_vma: bool = True,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def shard_map(
    f: Callable[..., object] | None = None,
    /,
    *,
    out_specs: object,
    in_specs: object = INFER,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Collection[str] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """`f` on each device's part of the arguments; collectives combine the parts.

    `in_specs` is a prefix tree of the tuple of arguments and `out_specs` one of the
    result, of `PartitionSpec`s: which axes of the mesh split which dimension. Without
    `in_specs`, the types of the arguments say it, if the axes are explicit. Along
    axes that the spec of a result does not name the result must be the same;
    `check_vma=False` takes the first without a check. `mesh` defaults to the one in
    force (`verax.set_mesh`). What has None as its spec is passed on as it is, and may
    be anything. `f` is mapped over `axis_names`, by default all axes;
    along others it sees whole arrays, which the compiler splits.

    Raises:
        TypeError: a spec is none.
        ValueError: there is no mesh, a dimension cannot be split evenly, a spec is no
            prefix or names other axes, or a result differs along one it does not name.

    >>> import numpy as np, verax
    >>> from verax.sharding import PartitionSpec as P
    >>> mesh = verax.make_mesh((1,), ("x",))
    >>> total = verax.shard_map(
    ...     lambda x: verax.lax.psum(x.sum(), "x"),
    ...     mesh=mesh, in_specs=P("x"), out_specs=P(),
    ... )
    >>> float(total(np.ones(8)))
    8.0
    """
    options: dict[str, Any] = {
        "out_specs": out_specs,
        "mesh": mesh,
        "axis_names": axis_names,
        "check_vma": check_vma,
    }
    if f is None:
        return functools.partial(shard_map, in_specs=in_specs, **options)
    check_call(f, in_specs, mesh, axis_names)
    if has_static(in_specs):
        return dealing(f, in_specs, current_mesh(), options)
    return mapping(f, in_specs, current_mesh(), **options)


def dealing(
    f: Callable[..., object],
    in_specs: object,
    around: Mesh | None,
    options: dict[str, Any],
) -> object:
    """`shard_map` of those leaves of the arguments that have specs."""

    @wraps(f)
    def mapped(*args: object) -> Any:
        dealt = Dealt(f, in_specs, args)
        rest = mapping(dealt.function, dealt.specs, around, **options)
        return rest(*dealt.arrays)

    return mapped


def mapping(
    f: Callable[..., object],
    in_specs: object,
    around: Mesh | None,
    out_specs: object,
    mesh: Mesh | AbstractMesh | None,
    axis_names: Collection[str],
    check_vma: bool,
) -> Any:
    """`shard_map` where all leaves have specs; outside of traces it is compiled.

    `around` is the mesh that was in force where the map was made.
    """
    names = frozenset(axis_names)

    def body(*args: object) -> Any:
        chosen = chosen_mesh(mesh, around)  # what is in force belongs to jit's key
        axes = mapped_axes(chosen, names)
        return Mapped(f, chosen, in_specs, out_specs, check_vma, axes)(*args)

    body.__name__ = function_name(f)
    places = out_places(mesh, out_specs, names)
    compiled = jit(body, out_shardings=places)

    @wraps(f)
    def mapped(*args: object) -> Any:
        if is_tracing():
            return body(*args)
        if isinstance(mesh, AbstractMesh) and mesh.axis_names:
            check_devices_known(mesh, args)
        return compiled(*args)

    return mapped


def check_devices_known(mesh: AbstractMesh, args: tuple[object, ...]) -> None:
    """Raise ValueError unless arguments of an eager call, or a mesh around, say where.

    Raises:
        ValueError: an argument lies along other axes, or nothing says which devices.
    """
    places = [getattr(leaf, "sharding", None) for leaf in pytrees.flatten(args)[0]]
    known = [mesh_at(mesh, place, "passed to shard_map") for place in places]
    if not any(known) and devices_around(mesh) is None:
        raise ValueError(
            "Please pass `verax.Array`s with a `NamedSharding` as input to `shard_map` "
            "when passing `AbstractMesh` to the mesh argument. Nothing else says on "
            f"which devices to run: pass a Mesh, or call it with a mesh like {mesh} in "
            "force (verax.set_mesh), or within verax.jit"
        )


def out_places(mesh: object, specs: object, names: Collection[str]) -> object:
    """The places of the results of eager calls, by their specs, by axes of size 1 too.

    None where something else says it: types, or the compiler along other axes.
    """
    if not isinstance(mesh, Mesh) or mesh.empty or names:
        return None
    if not mesh.are_all_axes_auto:
        return None
    leaves, tree = pytrees.flatten(specs)
    try:
        return tree.unflatten([NamedSharding(mesh, spec) for spec in leaves])
    except (TypeError, ValueError):  # a call says what is wrong with them
        return None


def check_call(f: object, in_specs: object, mesh: object, axis_names: object) -> None:
    """Raise TypeError unless these are arguments of `shard_map`."""
    check_callable("shard_map", f)
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"shard_map takes a verax Mesh as mesh, not {shown(mesh)}")
    if isinstance(axis_names, str) or not isinstance(axis_names, Collection):
        raise TypeError(f"shard_map takes a set as axis_names, not {shown(axis_names)}")


@overload
def smap[**P, R](
    f: Callable[P, R],
    /,
    *,
    in_axes: object = INFER,
    out_axes: object,
    axis_name: str,
) -> Callable[P, R]: ...
@overload
def smap[**P, R](
    f: None = None,
    /,
    *,
    in_axes: object = INFER,
    out_axes: object,
    axis_name: str,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def smap(
    f: Callable[..., object] | None = None,
    /,
    *,
    in_axes: object = INFER,
    out_axes: object,
    axis_name: str,
) -> Any:
    """`shard_map` over one axis of the mesh in force, with dimensions as in `vmap`.

    `in_axes` and `out_axes` are trees of the dimension that the axis splits, or None;
    without `in_axes`, the types of the arguments say it, if the axis is explicit.

    Raises:
        TypeError: `axis_name` is not a name, or an axis is not an integer or None.

    >>> import numpy as np, verax
    >>> with verax.set_mesh(verax.make_mesh((1,), ("x",))):
    ...     f = verax.smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="x")
    ...     f(np.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(
            smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name
        )
    if not isinstance(axis_name, str):
        raise TypeError(f"smap takes one name as axis_name, not {shown(axis_name)}")
    if in_axes is not None and not isinstance(in_axes, int | tuple | Infer):
        raise TypeError(
            "smap takes an integer, None or a tuple with an entry for each argument as "
            f"in_axes, not {shown(in_axes)}"
        )
    return shard_map(
        f,
        in_specs=Infer.AXES
        if in_axes is INFER
        else axis_specs("in_axes", in_axes, axis_name),
        out_specs=axis_specs("out_axes", out_axes, axis_name),
        axis_names={axis_name},
    )


def axis_specs(what: str, axes: object, name: str) -> object:
    """A tree of dimensions as one of specs."""
    leaves, tree = pytrees.flatten(axes, lambda x: x is None)
    specs = []
    for axis in leaves:
        if axis is not None and not isinstance(axis, int):
            raise TypeError(
                f"smap takes integers and None in {what}, not {shown(axis)}"
            )
        if axis is not None and axis < 0:
            raise ValueError(f"smap takes dimensions from 0 on in {what}, not {axis}")
        before = () if axis is None else (*[None] * axis, name)
        specs.append(PartitionSpec(*before))
    return tree.unflatten(specs)


def chosen_mesh(mesh: Mesh | AbstractMesh | None, around: Mesh | None) -> Mesh:
    """The mesh that was passed, or the one in force, or the one `around` its making.

    Raises:
        ValueError: there is none.
    """
    inner = current_mesh()
    if mesh is None:
        out = inner or around
        if out is None:
            raise ValueError(
                "The context mesh cannot be empty where shard_map gets none: pass "
                "mesh=, or call it within `with verax.set_mesh(mesh):`"
            )
        return out
    if mesh.empty:
        raise ValueError(f"shard_map requires a non-empty mesh. Got {mesh}")
    chosen = concrete_mesh(mesh)
    if inner is not None and inner.axes == chosen.axes:
        return inner  # which knows the axes that an outer shard_map maps
    return chosen


def mapped_axes(mesh: Mesh, names: frozenset[str]) -> tuple[str, ...]:
    """The axes to map, in the order of the mesh: all but those mapped outside.

    Raises:
        ValueError: the mesh does not have one of `names`.
    """
    unknown = names.difference(mesh.axis_names)
    if unknown:
        raise ValueError(
            f"shard_map requires axis_names={set(names)} to be a subset of "
            f"mesh.axis_names={mesh.axis_names}"
        )
    outside = set(mesh.manual_axes)
    expected = names or mesh.axis_names
    return tuple([a for a in mesh.axis_names if a in expected and a not in outside])


def as_layouts(
    what: str, mesh: Mesh, outer: Mesh, axes: Sequence[str], specs: object, tree: object
) -> list[Parts]:
    """One spec for each leaf, on the mesh; None is for what nothing splits.

    Raises:
        NotImplementedError, ValueError: a value is to be unreduced or reduced along an
            axis of which types do not speak outside.
    """
    out = []
    if HI.types:
        specs = specs_by_types(specs, tree)
    for spec in place_entries(f"shard_map {what}", specs, tree):
        if spec is not None and not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map {what} must be made of PartitionSpecs, not {shown(spec)}"
            )
        given = PartitionSpec() if spec is None else spec
        for kind in ("unreduced", "reduced"):
            if not getattr(given, kind) <= set(outer.explicit_axes):
                if set(axes) != set(outer.axis_names):
                    raise NotImplementedError(
                        f"{kind} axes can only be passed to {what} when shard_map is "
                        f"in full manual mode, over all axes of {outer}, or when they "
                        f"are Explicit. Got {given}, and axis_names are {set(axes)}"
                    )
                raise ValueError(
                    f"{kind} axes in {what} can only be used when the mesh passed to "
                    "shard_map contains axis names all of type `Explicit`, or these "
                    f"are: types do not speak of others. Got {given} on {outer}"
                )
        out.append(layout_of(what, mesh, axes, given))
    return out


def layout_of(what: str, mesh: Mesh, axes: Sequence[str], spec: PartitionSpec) -> Parts:
    """A spec on the mesh, whose axes are mapped.

    Raises:
        NotImplementedError: devices hold what makes the value otherwise than by a sum.
        ValueError: it names an axis that is not mapped.
    """
    terms = named_terms(spec, mesh_known(mesh))
    if terms.kind is not UnreducedKind.sum:
        raise NotImplementedError(
            f"shard_map takes values that are unreduced by a sum, but {what} has {spec}"
        )
    parts = Parts(NamedSharding(mesh, PartitionSpec(*spec)), terms)
    for name in (*parts.axes(0), *spec.unreduced, *spec.reduced):
        if name not in axes:
            raise ValueError(
                f"shard_map {what} argument must refer to an axis marked as manual "
                f"({', '.join(axes)}), but {what} refers to {name!r}: {spec}"
            )
    return parts


@frozen(eq=False, repr=False)
class Mapped(ReprMixin):
    """A function of parts as one of wholes."""

    f: Callable[..., object]
    outer: Mesh
    """The mesh with the types that its axes have outside."""
    in_specs: object
    out_specs: object
    check: bool
    axes: tuple[str, ...]
    """The axes of the mesh to map over."""

    def __call__(self, *args: object) -> Any:
        leaves, tree = pytrees.flatten((args, {}))
        describe = describe_arguments(self.f, tree)
        avals = leaf_avals(leaves, describe)
        layouts = self.in_layouts(args, avals)
        whole = [spread.sharding.is_fully_replicated for spread in layouts]
        check_parts("shard_map", args, leaves, whole)
        for i, (spread, aval) in enumerate(zip(layouts, avals, strict=True)):
            what = partial(leaf_name, describe, i)
            check_part(self.f, spread.sharding, aval.shape, what)
        sizes = [(name, self.mesh.shape[name]) for name in self.axes]
        tracked = self.axes_tracked()
        with mesh_axis_scope(sizes, tracked), manual_axes(self.outer, self.axes):
            local = [self.local(s, a) for s, a in zip(layouts, avals, strict=True)]
            traced = trace(self.f, tree, local, "shard_map", describe=describe)
        count = len(traced.jaxpr.outvars)
        outs = traced.out_tree.unflatten(range(count))
        results = as_layouts(
            "out_specs", self.mesh, self.outer, self.axes, self.out_specs, outs
        )
        program = on_values(traced, leaves, describe)
        out_avals = program.jaxpr.out_avals
        # What references hold at the end lies as what they held before.
        given = [*[self.everywhere()] * len(program.captured), *layouts]
        self.check_results(out_avals, results)
        results += [given[i] for i in program.written]
        results = [
            self.typed_inside(s, a) for s, a in zip(results, out_avals, strict=True)
        ]
        outer = mesh_known(self.outer)
        free = [
            s.opened(as_array(leaf), outer)
            for s, leaf in zip(layouts, program.leaves, strict=True)
        ]
        placed = self.held(free, layouts)
        parts = [s.parts(x) for s, x in zip(layouts, placed, strict=True)]
        none: tuple[tuple[str, ...], ...] = ((),) * len(program.captured)
        uses = (*none, *[s.axes(a.ndim) for s, a in zip(layouts, avals, strict=True)])
        jaxpr, varying = over_mesh(program.jaxpr, self.mesh, self.axes, uses)
        operands = [
            retyped(as_array(x), v.aval.explicit)
            for x, v in zip([*program.captured, *parts], jaxpr.invars, strict=True)
        ]
        arrays = apply(jaxpr, operands)
        wholes = [
            self.assembled(x, spread, axes, aval.shape)
            for x, spread, axes, aval in zip(
                arrays, results, varying, out_avals, strict=True
            )
        ]
        held = self.held(wholes, results)
        lying = [
            self.typed(s.closed(x, outer), s)
            for x, s in zip(held, results, strict=True)
        ]
        own, finals = program.split(lying)
        program.write(finals)
        return result_tree(traced.out_tree, own)

    def axes_tracked(self) -> tuple[str, ...]:
        """The mapped axes along which types say that values vary."""
        left = unspoken(mesh_known(self.outer))
        return tuple([a for a in self.axes if self.check and a not in left])

    def local(self, spread: Parts, aval: ShapedArray) -> ShapedArray:
        """The type of one part, which varies along the axes that make the parts."""
        shape = spread.sharding.shard_shape(aval.shape)
        known = beside_manual(spread.inner, aval.explicit)
        part = aval.with_shape(shape).with_explicit(known)
        if not self.check:
            return part
        for axes, state in (
            (spread.terms.unreduced, "unreduced"),
            (spread.terms.reduced, "reduced"),
            ([a for s in spread.splits(aval.ndim) for a in s], "varying"),
        ):
            part = retyped_along(part, tuple(axes), state, in_force())
        return part

    def check_results(
        self, avals: Sequence[ShapedArray], spreads: Sequence[Parts]
    ) -> None:
        """Raise ValueError if a result is not what its spec says."""
        if not self.check:
            return
        for i, (aval, spread) in enumerate(zip(avals, spreads, strict=False)):
            named, seen = spread.axes(aval.ndim), aval.vma.intersection(self.axes)
            if seen.difference(named):
                raise self.differs(i, spread, named, seen)
            for kind in self.unlike(aval, spread):
                raise ValueError(
                    f"out_specs passed to shard_map should be equal to the {kind} "
                    f"present on the out_aval. Got out_specs={spread.spec} and "
                    f"out_aval={aval}: make the sum (psum), or name the axis there"
                )

    def unlike(self, aval: ShapedArray, parts: Parts) -> list[str]:
        """The kinds of terms in which a value and its spec differ."""
        own = terms_along(terms_of(aval.explicit), self.axes)
        return [
            kind
            for kind in ("unreduced", "reduced")
            if set(getattr(own, kind)) != set(getattr(parts.terms, kind))
        ]

    def differs(
        self,
        i: int | None,
        spread: Parts,
        named: Collection[str],
        seen: Collection[str],
    ) -> ValueError:
        """The error of result i, or a reference, that varies where no spec names it."""
        known, unnamed, out = (
            ",".join([name for name in self.mesh.axis_names if name in axes])
            for axes in (named, set(seen).difference(named), seen)
        )
        what = "what a reference holds" if i is None else f"result {i}"
        return ValueError(
            f"shard_map applied to the function {function_name(self.f)!r} was given "
            "out_specs which require replication which can't be statically inferred: "
            f"out_specs is {spread.spec} which implies that the corresponding "
            f"output value is only varying across mesh axes {{{known}}} and not "
            f"{{{unnamed}}}, but it was inferred to be possibly varying over "
            f"{{{out}}}: {what} may differ along {unnamed}. Name the axis, reduce "
            "over it (psum, pmean, "
            "pmax, or all_gather with to='invarying'), or pass check_vma=False to take "
            "what the first device has"
        )

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh as programs of stacked parts see it: no type says how these lie."""
        auto = [a for a in self.outer.explicit_axes if a in self.axes]
        return self.outer.update_axis_types(dict.fromkeys(auto, AxisType.Auto))

    def in_layouts(
        self, args: tuple[object, ...], avals: Sequence[ShapedArray]
    ) -> list[Parts]:
        """The layouts of the arguments' parts: by `in_specs`, or by their types.

        Raises:
            TypeError: neither says it.
            ValueError: a spec says otherwise than a type which sums are to be made.
        """
        specs = tuple(self.in_specs) if type(self.in_specs) is list else self.in_specs
        if not isinstance(specs, Infer):
            out = as_layouts("in_specs", self.mesh, self.outer, self.axes, specs, args)
        elif set(self.axes) <= set(self.outer.explicit_axes):
            out = [
                layout_of("in_specs", self.mesh, self.axes, self.spec_of(aval))
                for aval in avals
            ]
        else:
            said = "smap: in_axes" if specs is Infer.AXES else "shard_map: in_specs"
            raise TypeError(
                f"{said} was not specified: "
                "only along AxisType.Explicit axes do types say it, not along "
                f"{', '.join(self.axes)} of {self.outer}"
            )
        for aval, parts in zip(avals, out, strict=True):
            for kind in self.unlike(aval, parts):
                raise ValueError(
                    f"in_specs containing {kind} {parts.spec} passed to shard_map "
                    f"should be equal to the {kind} present on the in_aval {aval}: "
                    "say it in in_specs, or verax.sharding.reshard the argument"
                )
        return [self.typed_inside(s, a) for s, a in zip(out, avals, strict=True)]

    def typed_inside(self, parts: Parts, aval: ShapedArray) -> Parts:
        """The parts of what has this type, inside or outside."""
        return evolve(parts, inner=inside(aval, mesh_known(self.mesh), self.axes))

    def spec_of(self, aval: ShapedArray) -> PartitionSpec:
        """The mapped axes that split a value, as its type says.

        Raises:
            ValueError: parts would not be next to each other.
        """
        splits = () if aval.explicit is None else aval.explicit.splits
        known = [tuple([a for a in axes if a in self.axes]) for axes in splits]
        for axes, own in zip(splits, known, strict=True):
            if axes[: len(own)] != own:
                raise ValueError(
                    f"shard_map over {', '.join(self.axes)} cannot take {aval}: axes "
                    "that are not mapped split a dimension outside of those that are; "
                    "verax.sharding.reshard it, or pass in_specs"
                )
        terms = terms_along(terms_of(aval.explicit), self.axes)
        return spec_with([axes or None for axes in known], terms)

    def typed(self, x: Array, spread: Parts) -> Array:
        """A result in whose type explicit axes stand."""
        if not self.outer.explicit_axes:
            return x
        outer = mesh_known(self.outer)
        return retyped(x, spread.outer_type(x.ndim, outer), outer)

    def everywhere(self) -> Parts:
        """The layout of what each part of the mesh has whole."""
        return Parts(NamedSharding(self.mesh, PartitionSpec()))

    def held(self, xs: Sequence[Array], spreads: Sequence[Parts]) -> list[Array]:
        """The stacks, each constrained to lie in its parts."""
        return [
            sharding_constraint(x, s.place(x.ndim - len(s.held), self.axes))
            for x, s in zip(xs, spreads, strict=True)
        ]

    def assembled(
        self, x: Array, spread: Parts, varying: Sequence[str], shape: Shape
    ) -> Array:
        """One result from its parts, which are stacked along the axes `varying`."""
        if len(spread.sharding.splits) > len(shape):
            name = function_name(self.f)
            raise too_long(name, "out", spread.spec, "a result", shape)
        expected = spread.axes(len(shape))
        known = {*expected, *unspoken(mesh_known(self.outer))}
        extra = [name for name in varying if name not in known]
        if extra and self.check:  # of a reference, which an inner type does not follow
            raise self.differs(None, spread, expected, varying)
        return spread.whole(x, varying, shape)


def over_mesh(
    jaxpr: Jaxpr, mesh: Mesh, names: Sequence[str], uses: Sequence[Sequence[str]]
) -> tuple[Jaxpr, list[list[str]]]:
    """The program over some axes of a mesh, the first outermost.

    Input i is stacked along its first dimensions, one for each of the axes `uses[i]`.
    The outputs are stacked alike along the axes that are returned for each.
    """
    varying: list[list[str]] = [[] for _ in jaxpr.outvars]
    parts = mesh.axes if set(names) == set(mesh.axis_names) else None
    for name in reversed(names):
        engine = over_axis(ENGINE, BatchAxis(name, (name,), parts=parts))
        axes: tuple[Axis, ...] = tuple([0 if name in use else None for use in uses])
        size = mesh.shape[name]
        _, result = engine.batch(jaxpr, size, axes)
        expected: list[Axis] = [None if axis is None else 0 for axis in result]
        jaxpr = batch_to(engine, jaxpr, size, axes, expected)
        for names, axis in zip(varying, expected, strict=True):
            if axis is not None:
                names.insert(0, name)
    return jaxpr, varying
