"""Floor 5: how `shard_map` makes arrays of parts.

One idea: the parts are stacked along new first dimensions, one for each mesh axis along
which devices hold different things, and constraints say that each belongs to its
device; what axes that are not mapped split, types say of whole and part alike.
"""

from collections.abc import Collection, Sequence
from math import prod

from attrs import frozen

from verax.backend.placement.mesh import Mesh, PartitionSpec
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
    explicit_on,
    mesh_known,
    terms_along,
    terms_of,
    terms_together,
)
from verax.ir.records import ReprMixin
from verax.ops.parallel.stacks import collect, spread
from verax.ops.structure.reshard import retyped
from verax.ops.structure.shape import broadcast_in_dim, reshape, transpose
from verax.ops.structure.slicing import index_in_dim
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class Parts(ReprMixin):
    """How one array is made of parts.

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
        """What the user wrote."""
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
        """Where a stack lies: as parts, and along other axes as types say."""
        splits: list[Split] = list(self.stack_splits(ndim))
        if self.inner is not None:
            first = len(self.held)
            for i, axes in enumerate(self.inner.splits):
                splits[first + i] = (*(splits[first + i] or ()), *axes)
        whole = len(mapped) == len(self.mesh.axis_names)
        entries = tuple([split or (() if whole else None) for split in splits])
        return Layout(self.mesh.axes, entries, terms_of(self.inner))

    def opened(self, x: Array, outer: MeshType) -> Array:
        """What devices hold of an argument, stacked along the axes of terms."""
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
        found = transpose(reshape(x, shape), (*order, *rest))
        if self.inner is None:
            return found
        splits = (*[()] * len(order), *self.inner.splits)
        return retyped(
            found, explicit_on(mesh_known(self.mesh), splits, self.inner.terms)
        )

    def whole(self, x: Array, varying: Sequence[str], shape: Shape) -> Array:
        """What `parts` is given, of parts that are stacked along the axes `varying`.

        Along those that are not in use the first part is taken.
        """
        ndim = len(shape)
        x = retyped(x, self.free(x.ndim))
        wanted, kept = self.axes(ndim), list(varying)
        for name in [name for name in varying if name not in wanted]:
            x = index_in_dim(x, 0, kept.index(name), keepdims=False)
            kept.remove(name)
        sizes = tuple([self.mesh.shape[name] for name in wanted])
        dims = [wanted.index(name) for name in kept]
        dims += range(len(wanted), len(wanted) + ndim)
        full = broadcast_in_dim(x, (*sizes, *shape), tuple(dims))
        order: list[int] = [wanted.index(name) for name in self.held]
        due: list[int] = [full.shape[place] for place in order]
        for i, split in enumerate(self.splits(ndim)):
            places = [*[wanted.index(name) for name in split], len(wanted) + i]
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
    """What the type of a part says of explicit axes that are not mapped."""
    if aval.explicit is None:
        return None
    known = [a for a in mesh.of_type(AxisType.Explicit) if a not in mapped]
    splits = [tuple([a for a in axes if a in known]) for axes in aval.explicit.splits]
    return explicit_on(mesh, splits, terms_along(aval.explicit.terms, known))
