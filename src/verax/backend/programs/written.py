"""Shardings of results as users write them (floor 4).

One idea: of specs that mean the same, results get the one that their program was given.
XLA says only which device has which part::

    result_sharding(hlo, placement, ndim, given, due)       # P("x", None), as x was
"""

from collections.abc import Sequence
from itertools import zip_longest

from verax.backend.arrays.places import stored_aval
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.placement.mesh import PartitionSpec
from verax.backend.placement.sharding import (
    HloSharding,
    NamedSharding,
    Sharding,
    from_hlo,
    trimmed_spec,
)
from verax.backend.programs.placement import Placement
from verax.ir.meshes import AxisType, Explicit, Split

type Given = tuple[int, NamedSharding] | None


def result_sharding(
    hlo: HloSharding | None,
    placement: Placement,
    ndim: int,
    given: Given,
    due: Explicit | None,
) -> NamedSharding:
    """The sharding that XLA chose, or whole on one device, as the user writes it.

    What the type says of explicit axes is kept: XLA knows of none with one device.
    Where it is all there is to say, the spec names every dimension, as types do.
    """
    assert placement.mesh is not None
    place = NamedSharding(placement.mesh, PartitionSpec())
    if hlo is not None:
        place = from_hlo(hlo, placement.devices, ndim, placement.mesh)
    if due is not None and place.mesh == placement.mesh:
        place = place.update(spec=with_axes(place, due))
    if place.explicit:
        mixed = compiler_axes(place)
        spec = place.spec.padded(ndim)
        if mixed:
            spec = spec.update(partitions=trimmed_spec(place.splits))
        return place.update(spec=spec)
    return like_given(place, ndim, given)


def as_written(
    lowered: Lowered, plain: Placement, places: Sequence[Sharding], placement: Placement
) -> tuple[Sharding, ...]:
    """The shardings of results, with the specs of a placement that means the same.

    They are `places` by the `plain` one.
    """
    given, out = given_sharding(lowered, placement), list(places)
    for i, (aval, place) in enumerate(zip(lowered.out_avals, places, strict=True)):
        free = plain.outs[i] is None
        if isinstance(place, NamedSharding) and free and not place.explicit:
            out[i] = like_given(place, len(stored_aval(aval).shape), given)
    return tuple([own or x for own, x in zip(placement.outs, out, strict=True)])


def like_given(place: NamedSharding, ndim: int, given: Given) -> NamedSharding:
    """The sharding, as an argument has it that is placed alike."""
    if given is None or ndim != given[0] or not place.is_equivalent_to(given[1], ndim):
        return place
    return given[1]


def compiler_axes(place: NamedSharding) -> frozenset[str]:
    """The axes of a sharding that are the compiler's to use, not those of types."""
    kinds = zip(place.mesh.axis_names, place.mesh.axis_types, strict=True)
    own = {name for name, kind in kinds if kind is AxisType.Explicit}
    return frozenset([name for split in place.splits for name in split or ()]) - own


def with_axes(place: NamedSharding, due: Explicit) -> PartitionSpec:
    """The spec with those axes of `due` that have one device, which it leaves out."""
    sizes = place.mesh.shape
    entries: list[Split] = []
    for entry, axes in zip_longest(place.splits, due.splits, fillvalue=()):
        own = entry or ()
        rest = [axis for axis in own if axis not in axes]
        known = all([axis in own or sizes[axis] == 1 for axis in axes])
        entries.append((*axes, *rest) if known else own)
    return place.spec.update(partitions=entries)


def given_sharding(lowered: Lowered, placement: Placement) -> Given:
    """The first sharding of an argument over the mesh, with its number of dimensions.

    Of specs that mean one thing, as those that name axes of size 1 or not, results get
    the one that this has.
    """
    kept = [p for p, k in zip(placement.ins, lowered.kept, strict=True) if k]
    for aval, place in zip(lowered.in_avals, kept, strict=True):
        if isinstance(place, NamedSharding) and place.mesh == placement.mesh:
            return len(stored_aval(aval).shape), place
    return None
