"""Floor 5: `shard_map`: programs written for one device of many.

One idea: running a function on the parts that a mesh makes of an array is mapping it
over the axes of the mesh, which `vmap` with named axes does; constraints say that each
part belongs to its device, so that the compiler keeps it there::

    shard_map(lambda x: psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(xs)
"""

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from attrs import frozen

from verax.api.jit.decorator import jit
from verax.api.jit.function import JitFunction
from verax.api.sharding_args import constrained, place_entries
from verax.api.tracing.apply import ENGINE, apply, as_array, current_builder
from verax.api.tracing.trace import (
    describe_arguments,
    function_name,
    leaf_avals,
    trace,
)
from verax.api.vmap import axis_scope
from verax.backend import pytrees
from verax.backend.placement.mesh import Mesh, PartitionSpec, current_mesh
from verax.backend.placement.sharding import NamedSharding
from verax.backend.results import result_tree
from verax.ir.avals import Shape
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import Split
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import index_in_dim
from verax.rules.programs.batched import batch_to
from verax.rules.rows.row import Axis, BatchAxis
from verax.rules.values.array import Array
from verax.transforms.engine.engine import over_axis


@frozen(eq=False)
class Parts:
    """How one array is made of parts: the mesh, and the axes that split each dim."""

    sharding: NamedSharding

    @property
    def mesh(self) -> Mesh:
        return self.sharding.mesh

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
    mesh: Mesh | None = None,
    in_specs: Any,
    out_specs: Any,
    axis_names: Any = None,
    check_vma: bool = True,
) -> Any:
    """`f` on each device's part of the arguments; collectives combine the parts.

    `in_specs` is a prefix tree of the tuple of arguments and `out_specs` one of the
    result, of `PartitionSpec`s: which axes of the mesh split which dimension. `f` sees
    parts, and the results are put together from its parts. Along axes that the spec of
    a result does not name the result must be the same; `check_vma=False` takes the
    first without a check. `mesh` defaults to that of `with mesh:`.

    Raises:
        TypeError: a spec is none.
        ValueError: there is no mesh, a dimension cannot be split evenly, a spec is no
            prefix, or a result differs along an axis that its spec does not name.

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
    chosen = mesh or current_mesh()
    if chosen is None:
        raise ValueError("shard_map needs a mesh: pass mesh=, or use `with mesh:`")
    if axis_names is not None and set(axis_names) != set(chosen.axis_names):
        raise NotImplementedError(
            f"shard_map maps over all axes of its mesh, {chosen.axis_names}, not over "
            f"{axis_names} alone"
        )
    body = Mapped(f, chosen, in_specs, out_specs, check_vma)
    compiled: JitFunction[..., Any] = jit(body)

    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        return compiled(*args) if current_builder() is None else body(*args)

    return mapped


def as_layouts(what: str, mesh: Mesh, specs: Any, tree: Any) -> list[Parts]:
    """One spec for each leaf, on the mesh; None is for what nothing splits."""
    found = []
    for spec in place_entries(what, specs, tree):
        if spec is not None and not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map {what} must be made of PartitionSpecs, not {spec!r}"
            )
        found.append(Parts(NamedSharding(mesh, spec or PartitionSpec())))
    return found


@frozen(eq=False)
class Mapped:
    """A function of parts as one of wholes."""

    f: Callable[..., Any]
    mesh: Mesh
    in_specs: Any
    out_specs: Any
    check: bool

    @property
    def __name__(self) -> str:
        return function_name(self.f)

    def __call__(self, *args: Any) -> Any:
        in_specs = self.in_specs
        if isinstance(in_specs, list):
            in_specs = tuple(in_specs)
        layouts = as_layouts("in_specs", self.mesh, in_specs, args)
        leaves, tree = pytrees.flatten((args, {}))
        describe = describe_arguments(self.f, tree)
        avals = leaf_avals(leaves, describe)
        local = []
        for i, (spread, aval) in enumerate(zip(layouts, avals, strict=True)):
            spread.sharding.check(aval.shape, describe()[i])
            local.append(aval.with_shape(spread.sharding.shard_shape(aval.shape)))
        sizes = [(name, self.mesh.shape[name]) for name in self.mesh.axis_names]
        with axis_scope(sizes):
            traced = trace(self.f, tree, local, "shard_map", describe=describe)
        count = len(traced.jaxpr.outvars)
        outs = traced.out_tree.unflatten(range(count))
        results = as_layouts("out_specs", self.mesh, self.out_specs, outs)
        given = [as_array(leaf) for leaf in leaves]
        placed = constrained(given, tuple([s.sharding for s in layouts]))
        parts = [s.parts(x) for s, x in zip(layouts, placed, strict=True)]
        none: tuple[tuple[str, ...], ...] = ((),) * len(traced.captured)
        uses = (*none, *[s.axes(a.ndim) for s, a in zip(layouts, avals, strict=True)])
        jaxpr, varying = over_mesh(traced.jaxpr, self.mesh, uses)
        found = apply(jaxpr, [*traced.captured, *parts])
        wholes = [
            self.assembled(x, spread, axes, aval.shape)
            for x, spread, axes, aval in zip(
                found, results, varying, traced.jaxpr.out_avals, strict=True
            )
        ]
        places = tuple([spread.sharding for spread in results])
        return result_tree(traced.out_tree, constrained(wholes, places))

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
    jaxpr: Jaxpr, mesh: Mesh, uses: Sequence[Sequence[str]]
) -> tuple[Jaxpr, list[list[str]]]:
    """The program over all axes of a mesh, the first outermost.

    Input i is stacked along its first dimensions, one for each of the axes `uses[i]`.
    The outputs are stacked alike along the axes that are returned for each.
    """
    varying: list[list[str]] = [[] for _ in jaxpr.outvars]
    for name in reversed(mesh.axis_names):
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
