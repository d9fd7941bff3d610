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
from math import prod
from typing import Any, Final

from attrs import frozen

from verax.api.jit.decorator import jit
from verax.api.jit.function import PjitFunction
from verax.api.sharding_args import constrained, place_entries
from verax.api.tracing.apply import ENGINE, apply, as_array, is_tracing
from verax.api.tracing.argument_names import describe_arguments, function_name
from verax.api.tracing.references import on_values
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import wraps
from verax.api.vmap import axis_scope
from verax.backend import pytrees
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import (
    UNCONSTRAINED,
    Mesh,
    PartitionSpec,
    current_mesh,
)
from verax.backend.placement.mesh_context import concrete_mesh, manual_axes
from verax.backend.placement.sharding import NamedSharding
from verax.backend.programs.placement import leaf_name
from verax.backend.results import result_tree
from verax.ir.avals import Shape, ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import AxisType, Split
from verax.ir.records import ReprMixin
from verax.ops.structure.reshard import retyped, split_by
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import index_in_dim
from verax.rules.programs.batched import batch_to
from verax.rules.rows.row import Axis, BatchAxis
from verax.rules.values.array import Array
from verax.rules.values.typed import check_callable, shown
from verax.transforms.engine.engine import over_axis


class Infer(enum.Enum):
    """Stands for specs that the types of the arguments say."""

    INFER = enum.auto()


INFER: Final = Infer.INFER


@frozen(eq=False, repr=False)
class Parts(ReprMixin):
    """How one array is made of parts: the mesh, and the axes that split each dim."""

    sharding: NamedSharding

    @property
    def mesh(self) -> Mesh:
        return self.sharding.concrete

    def free_elsewhere(self, ndim: int) -> NamedSharding:
        """The sharding, with dimensions that are not split left to the compiler."""
        entries = [split or UNCONSTRAINED for split in self.splits(ndim)]
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def splits(self, ndim: int) -> tuple[tuple[str, ...], ...]:
        """The axes of each dimension, outermost first."""
        given: tuple[Split, ...] = self.sharding.splits
        return tuple([split or () for split in (*given, *[()] * (ndim - len(given)))])

    def axes(self, ndim: int) -> tuple[str, ...]:
        """The axes that are used, in the order of the mesh."""
        used = {name for split in self.splits(ndim) for name in split}
        return tuple([name for name in self.mesh.axis_names if name in used])

    def parts(self, x: Array) -> Array:
        """The parts, stacked along one new first dimension for each axis in use."""
        sizes, splits = self.mesh.shape, self.splits(x.ndim)
        shape: list[int] = []
        place: dict[str, int] = {}
        rest: list[int] = []
        for n, split in zip(x.shape, splits, strict=True):
            for name in split:
                place[name] = len(shape)
                shape.append(sizes[name])
            rest.append(len(shape))
            shape.append(n // prod([sizes[name] for name in split]))
        order = [place[name] for name in self.axes(x.ndim)]
        return transpose(reshape(x, shape), (*order, *rest))

    def whole(self, x: Array, ndim: int) -> Array:
        """The array of which `x` has the parts, stacked as `parts` does."""
        axes, splits = self.axes(ndim), self.splits(ndim)
        order: list[int] = []
        shape: list[int] = []
        for i, split in enumerate(splits):
            places = [*[axes.index(name) for name in split], len(axes) + i]
            order += places
            shape.append(prod([x.shape[place] for place in places]))
        return reshape(transpose(x, order), shape)


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = INFER,
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
    force (`verax.set_mesh`). `f` is mapped over `axis_names`, by default all axes;
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
    if f is None:
        return functools.partial(
            shard_map,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    check_call(f, in_specs, mesh, axis_names)
    names, around = frozenset(axis_names), current_mesh()

    def body(*args: Any) -> Any:
        chosen = chosen_mesh(mesh, around)  # what is in force belongs to jit's key
        axes = mapped_axes(chosen, names)
        return Mapped(f, chosen, in_specs, out_specs, check_vma, axes)(*args)

    body.__name__ = function_name(f)
    compiled: PjitFunction[..., Any] = jit(body)

    @wraps(f)
    def mapped(*args: Any) -> Any:
        return compiled(*args) if not is_tracing() else body(*args)

    return mapped


def check_call(f: object, in_specs: object, mesh: object, axis_names: object) -> None:
    """Raise TypeError unless these are arguments of `shard_map`."""
    check_callable("shard_map", f)
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"shard_map takes a verax Mesh as mesh, not {shown(mesh)}")
    if isinstance(axis_names, str) or not isinstance(axis_names, Collection):
        raise TypeError(f"shard_map takes a set as axis_names, not {shown(axis_names)}")


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = INFER,
    out_axes: Any,
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
        in_specs=INFER
        if in_axes is INFER
        else axis_specs("in_axes", in_axes, axis_name),
        out_specs=axis_specs("out_axes", out_axes, axis_name),
        axis_names={axis_name},
    )


def axis_specs(what: str, axes: Any, name: str) -> Any:
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
        found = inner or around
        if found is None:
            raise ValueError(
                "shard_map needs a mesh: pass mesh=, or call it within "
                "`with verax.set_mesh(mesh):`"
            )
        return found
    if mesh.empty:
        raise ValueError("shard_map takes a mesh with axes, not an empty one")
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
            f"shard_map got axis_names={set(names)}, but the axes of its mesh are "
            f"{', '.join(mesh.axis_names)}"
        )
    outside = set(mesh.manual_axes)
    wanted = names or mesh.axis_names
    return tuple([a for a in mesh.axis_names if a in wanted and a not in outside])


def as_layouts(
    what: str, mesh: Mesh, axes: Sequence[str], specs: Any, tree: Any
) -> list[Parts]:
    """One spec for each leaf, on the mesh; None is for what nothing splits."""
    found = []
    for spec in place_entries(what, specs, tree):
        if spec is not None and not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map {what} must be made of PartitionSpecs, not {shown(spec)}"
            )
        parts = Parts(NamedSharding(mesh, spec or PartitionSpec()))
        for name in parts.axes(0):
            if name not in axes:
                raise ValueError(
                    f"shard_map {what} has {spec}, but maps over "
                    f"{', '.join(axes)} and not over {name}"
                )
        found.append(parts)
    return found


@frozen(eq=False, repr=False)
class Mapped(ReprMixin):
    """A function of parts as one of wholes."""

    f: Callable[..., Any]
    outer: Mesh
    """The mesh with the types that its axes have outside."""
    in_specs: Any
    out_specs: Any
    check: bool
    axes: tuple[str, ...]
    """The axes of the mesh to map over."""

    def __call__(self, *args: Any) -> Any:
        leaves, tree = pytrees.flatten((args, {}))
        describe = describe_arguments(self.f, tree)
        avals = leaf_avals(leaves, describe)
        layouts = self.in_layouts(args, avals)
        local = []
        for i, (spread, aval) in enumerate(zip(layouts, avals, strict=True)):
            spread.sharding.check(aval.shape, partial(leaf_name, describe, i))
            whole = aval.with_explicit(None)
            local.append(whole.with_shape(spread.sharding.shard_shape(aval.shape)))
        sizes = [(name, self.mesh.shape[name]) for name in self.axes]
        with axis_scope(sizes), manual_axes(self.mesh, self.axes):
            traced = trace(self.f, tree, local, "shard_map", describe=describe)
        count = len(traced.jaxpr.outvars)
        outs = traced.out_tree.unflatten(range(count))
        results = as_layouts("out_specs", self.mesh, self.axes, self.out_specs, outs)
        program = on_values(traced, leaves, describe)
        # What references hold at the end lies as what they held before.
        given = [*[self.everywhere()] * len(program.captured), *layouts]
        results += [given[i] for i in program.written]
        free = [retyped(as_array(leaf), None) for leaf in program.leaves]
        placed = self.held(free, layouts)
        parts = [s.parts(x) for s, x in zip(layouts, placed, strict=True)]
        none: tuple[tuple[str, ...], ...] = ((),) * len(program.captured)
        uses = (*none, *[s.axes(a.ndim) for s, a in zip(layouts, avals, strict=True)])
        jaxpr, varying = over_mesh(program.jaxpr, self.mesh, self.axes, uses)
        found = apply(jaxpr, [*program.captured, *parts])
        wholes = [
            self.assembled(x, spread, axes, aval.shape)
            for x, spread, axes, aval in zip(
                found, results, varying, program.jaxpr.out_avals, strict=True
            )
        ]
        lying = [self.typed(x, s) for x, s in zip(wholes, results, strict=True)]
        own, finals = program.split(self.held(lying, results))
        program.write(finals)
        return result_tree(traced.out_tree, own)

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh as the function sees it: no type says how it splits values."""
        auto = dict.fromkeys(self.outer.explicit_axes, AxisType.Auto)
        return self.outer.update_axis_types(auto)

    def in_layouts(
        self, args: tuple[Any, ...], avals: Sequence[ShapedArray]
    ) -> list[Parts]:
        """How the arguments are made of parts: as `in_specs` says, or their types.

        Raises:
            TypeError: neither says it.
        """
        specs = tuple(self.in_specs) if type(self.in_specs) is list else self.in_specs
        if specs is not INFER:
            return as_layouts("in_specs", self.mesh, self.axes, specs, args)
        if not set(self.axes) <= set(self.outer.explicit_axes):
            raise TypeError(
                "shard_map needs in_specs: a tree of PartitionSpecs for the arguments; "
                "only along AxisType.Explicit axes do types say it, not along "
                f"{', '.join(self.axes)} of {self.outer}"
            )
        return [Parts(NamedSharding(self.mesh, self.spec_of(aval))) for aval in avals]

    def spec_of(self, aval: ShapedArray) -> PartitionSpec:
        """The mapped axes that split a value, as its type says."""
        splits = () if aval.explicit is None else aval.explicit.splits
        known = [tuple([a for a in axes if a in self.axes]) for axes in splits]
        return PartitionSpec(*[axes or None for axes in known])

    def typed(self, x: Array, spread: Parts) -> Array:
        """A result in whose type explicit axes stand."""
        if not self.outer.explicit_axes:
            return x
        return split_by(x, NamedSharding(self.outer, spread.sharding.spec))

    def everywhere(self) -> Parts:
        """The layout of what each part of the mesh has whole."""
        return Parts(NamedSharding(self.mesh, PartitionSpec()))

    def held(self, xs: Sequence[Array], spreads: Sequence[Parts]) -> list[Any]:
        """The arrays, each constrained to lie in its parts, unless types say it."""
        if any([x.aval.explicit is not None for x in xs]):
            return list(xs)
        pairs = zip(xs, spreads, strict=True)
        if len(self.axes) == len(self.mesh.axis_names):
            return constrained(xs, tuple([spread.sharding for spread in spreads]))
        return constrained(xs, tuple([s.free_elsewhere(x.ndim) for x, s in pairs]))

    def assembled(
        self, x: Array, spread: Parts, varying: Sequence[str], shape: Shape
    ) -> Array:
        """One result from its parts, which are stacked along the axes `varying`."""
        if len(spread.sharding.splits) > len(shape):
            raise ValueError(
                f"out_specs has {spread.sharding.spec} for a result whose parts have "
                f"{len(shape)} dimensions"
            )
        wanted = spread.axes(len(shape))
        extra = [name for name in varying if name not in wanted]
        if extra and self.check:
            raise ValueError(
                f"a result of {function_name(self.f)} may differ along the mesh axis "
                f"{extra[0]!r}, which its out_specs {spread.sharding.spec} does not "
                "name: name the axis, reduce over it (psum, pmax, all_gather ...), or "
                "pass check_vma=False to take the first"
            )
        kept = list(varying)
        for name in extra:
            x = index_in_dim(x, 0, kept.index(name), keepdims=False)
            kept.remove(name)
        sizes = tuple([self.mesh.shape[name] for name in wanted])
        dims = [wanted.index(name) for name in kept]
        dims += range(len(wanted), len(wanted) + len(shape))
        full = broadcast_in_dim(x, (*sizes, *shape), tuple(dims))
        return spread.whole(full, len(shape))


def over_mesh(
    jaxpr: Jaxpr, mesh: Mesh, names: Sequence[str], uses: Sequence[Sequence[str]]
) -> tuple[Jaxpr, list[list[str]]]:
    """The program over some axes of a mesh, the first outermost.

    Input i is stacked along its first dimensions, one for each of the axes `uses[i]`.
    The outputs are stacked alike along the axes that are returned for each.
    """
    varying: list[list[str]] = [[] for _ in jaxpr.outvars]
    for name in reversed(names):
        engine = over_axis(ENGINE, BatchAxis(name, (name,)))
        axes: tuple[Axis, ...] = tuple([0 if name in use else None for use in uses])
        size = mesh.shape[name]
        _, found = engine.batch(jaxpr, size, axes)
        wanted: list[Axis] = [None if axis is None else 0 for axis in found]
        jaxpr = batch_to(engine, jaxpr, size, axes, wanted)
        for names, axis in zip(varying, wanted, strict=True):
            if axis is not None:
                names.insert(0, name)
    return jaxpr, varying
