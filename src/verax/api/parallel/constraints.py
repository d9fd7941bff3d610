"""Floor 5: constraints on where the values of a program are.

One idea: inside a trace an equation says it, outside the arrays are moved::

    jit(lambda x: with_sharding_constraint(x * 2, NamedSharding(mesh, P("x"))))(x)
"""

from itertools import zip_longest

from verax.api.parallel.device_put import put_leaf
from verax.api.sharding_args import (
    as_place,
    check_place,
    constrained,
    place_entries,
)
from verax.api.tracing.apply import as_array, is_tracing
from verax.backend import pytrees
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import current_mesh
from verax.backend.placement.mesh_context import devices_around, mesh_at
from verax.backend.placement.sharding import (
    NamedSharding,
    Sharding,
    as_split,
    check_rank,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown


def is_said(place: Sharding) -> bool:
    """Whether types say all that a place says: all axes of its mesh are explicit."""
    return isinstance(place, NamedSharding) and place.mesh.are_all_axes_explicit


def beside_type(place: Sharding, x: Array) -> Sharding:
    """The place, with the explicit axes of the same mesh that split `x` already."""
    explicit = x.aval.explicit
    if explicit is None or not isinstance(place, NamedSharding):
        return place
    if explicit.mesh.names != place.mesh.axis_names or not place.explicit:
        return place
    pairs = zip_longest(explicit.splits, place.spec)
    spec = [(*axes, *(as_split(own) or ())) if axes else own for axes, own in pairs]
    return place.update(spec=place.spec.update(partitions=spec))


def check_explicit(place: Sharding, x: Array) -> None:
    """Raise unless a constraint says nothing of explicit axes that types do not say.

    Raises:
        AssertionError: it does, and all axes of the mesh in force are explicit.
        ValueError: it names an explicit axis, and they are not.
    """
    if not isinstance(place, NamedSharding):
        return
    around = current_mesh()
    mapped = () if around is None else around.manual_axes
    if taken := [a for a in mapped if a not in place.replicated_axes]:
        raise ValueError(
            f"{place.spec} passed to with_sharding_constraint contains a manual axes "
            f"{taken[0]!r} of mesh {around}: along it the shard_map around says itself "
            "how values are split"
        )
    if around is None or not around.are_all_axes_explicit:
        check_auto(place)
        return
    due = x.aval.update(sharding=place)
    if due is not x.aval:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of "
            f"type `Explicit`. The type of the array, {x.aval}, did not match the "
            f"sharding provided, which makes it {due}. Use verax.sharding.reshard to "
            "shard it otherwise"
        )


def check_auto(place: NamedSharding) -> None:
    """Raise ValueError unless the compiler decides along the axes of a constraint."""
    named = set(place.mesh.axis_names) - place.replicated_axes
    if named <= set(place.mesh.auto_axes):
        return
    raise ValueError(
        "The spec of NamedSharding passed to with_sharding_constraint can only refer "
        f"to Auto axes of the mesh. Got spec={place.spec} and mesh={place.mesh}. Along "
        "explicit axes use verax.sharding.reshard; where the compiler shall decide, "
        "make the mesh with axis_types=(AxisType.Auto, ...)"
    )


def at_own_mesh(entry: object, leaf: object) -> object:
    """A sharding for an array of an eager call: without devices, over the array's.

    Raises:
        TypeError: the array is not on a mesh.
        ValueError: it is no array, or on a mesh with other axes.
    """
    mesh = entry.mesh if isinstance(entry, NamedSharding) else None
    if not isinstance(entry, NamedSharding) or not isinstance(mesh, AbstractMesh):
        return entry
    if devices_around(mesh) is not None:
        return entry
    if not isinstance(leaf, Array):
        raise ValueError(
            f"The target sharding {entry} has an AbstractMesh, which requires the "
            f"input passed should be a `verax.Array`, whose devices it takes. Got "
            f"{shown(leaf)}: put it on a mesh (verax.device_put), or name a Mesh"
        )
    own = mesh_at(mesh, leaf.sharding, "of the target sharding")
    if own is None:
        raise TypeError(
            "The sharding on the input must be a `NamedSharding`, since the target "
            f"sharding {entry} has an AbstractMesh and takes its devices. Got "
            f"{leaf.sharding}: move the array with verax.device_put, or name a Mesh"
        )
    return entry.update(mesh=own)


def check_constraint(what: str, place: Sharding, x: Array) -> None:
    """Raise ValueError for an array that cannot lie so.

    Raises:
        AssertionError: explicit axes split it otherwise.
    """
    try:
        if is_tracing():  # the compiler pads what it cannot split evenly
            check_rank(place, x.shape, f"{what}: an array {x.aval}")
        else:
            check_place(place, x, f"{what}: an array")
    except ValueError as error:
        raise ValueError(
            f"One of {what} arguments is incompatible with its sharding annotation "
            f"{place}: {error}"
        ) from None
    check_explicit(place, x)


def with_sharding_constraint[T](x: T, shardings: object) -> T:
    """The tree with its values constrained to `shardings`, a prefix tree of it.

    In a trace this is an equation, which derivatives and `vmap` keep; outside the
    arrays are moved. The axes that it names are `Auto`; but if all axes of the mesh in
    force are explicit, it asserts what types say already. In a trace the parts need not
    be of one size.

    Args:
        x: a pytree of arrays and scalars.
        shardings: a sharding, a device, a `PartitionSpec` for the mesh in force, or
            None for no constraint; or a tree of these, each of which holds for the part
            of `x` at its place.

    Returns:
        A pytree of the same structure and values.

    Raises:
        AssertionError: explicit axes split a leaf otherwise; see `sharding.reshard`.
        TypeError: a leaf is not an array, or a place is not a sharding.
        ValueError: an array cannot lie so, or a spec has no mesh or names an axis that
            is not `Auto`.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AxisType, NamedSharding, PartitionSpec as P
    >>> place = NamedSharding(verax.make_mesh((1,), ("x",), (AxisType.Auto,)), P("x"))
    >>> verax.jit(lambda x: with_sharding_constraint(x, place))(vnp.ones(2)).tolist()
    [1.0, 1.0]
    """
    what = "with_sharding_constraint"
    leaves, tree = pytrees.flatten(x)
    entries = place_entries(what, shardings, x)
    if not is_tracing():
        entries = [at_own_mesh(*pair) for pair in zip(entries, leaves, strict=True)]
    places = [as_place(what, entry) for entry in entries]
    arrays = [as_array(leaf) for leaf in leaves]
    for array, place in zip(arrays, places, strict=True):
        if place is not None:
            check_constraint(what, place, array)
    free = tuple(
        [
            None if place is None or is_said(place) else beside_type(place, array)
            for place, array in zip(places, arrays, strict=True)
        ]
    )
    if is_tracing():
        outs = constrained(arrays, free)
    else:
        outs = [put_leaf(a, p, False, None) for a, p in zip(arrays, free, strict=True)]
    out: T = tree.unflatten(outs)
    return out
