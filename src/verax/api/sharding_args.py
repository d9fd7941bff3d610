"""Floor 5: places as users pass them: shardings, specs, devices, prefix trees of these.

One idea: whatever is passed becomes one `Sharding` or None for each leaf, and then
there is nothing left to interpret::

    place_leaves("in_shardings", (P("x"), None), (x, {"w": w}))
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from verax.api.trees.pytrees import prefix_leaves
from verax.backend import pytrees
from verax.backend.arrays.concrete import Format, Layout
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import PartitionSpec, current_mesh
from verax.backend.placement.mesh_context import concrete_mesh
from verax.backend.placement.sharding import (
    MemorySpace,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray
from verax.ir.meshes import Layout as LayoutOf, MeshAxes
from verax.ir.records import ReprMixin
from verax.ops.parallel.sharding_constraint import sharding_constraint
from verax.ops.structure.reshard import retyped, split_by
from verax.rules.values.array import Array
from verax.rules.values.conversions import described, shown

type Places = tuple[Sharding | None, ...]


PLACES: Final = (Sharding, Device, PartitionSpec, Format, MemorySpace)


def is_place(x: object) -> bool:
    """Whether this is one place and no tree of them."""
    return x is None or isinstance(x, PLACES)


IN_CONTEXT: Final = MappingProxyType(
    {
        "in_shardings": "pjit",
        "out_shardings": "pjit",
        "with_sharding_constraint": "with_sharding_constraint",
    }
)
"""What asks for the mesh in force, and whose argument it is."""


def without_mesh(what: str, spec: PartitionSpec) -> Exception:
    """The error for a spec where no mesh is in force."""
    advice = (
        "Using PartitionSpec when you are not under a mesh context is not allowed: "
        f"write NamedSharding(mesh, {spec}), or call it within "
        "`with verax.set_mesh(mesh):`"
    )
    if what in IN_CONTEXT:
        return RuntimeError(
            f"{IN_CONTEXT[what]} requires a non-empty mesh in context if you are "
            f"passing `PartitionSpec`s, as {spec}. {advice}"
        )
    please = ""
    if what.startswith(put := "device_put"):
        please = "Please set a mesh via `verax.set_mesh` if a PartitionSpec is passed "
        please += f"to {put}. "
    return ValueError(f"{what} got {spec}, which needs a mesh. {please}{advice}")


def as_place(
    what: str, x: object, error: type[Exception] = TypeError
) -> Sharding | None:
    """One place as a sharding.

    Raises:
        TypeError: it is not a place.
        RuntimeError: a spec for `jit` or a constraint, without a mesh around it.
        ValueError: another spec without one, or one with an axis that `shard_map`
            maps; a layout that is not in rows.
    """
    if isinstance(x, MemorySpace):
        check_space(what, x, error)
        return None
    if isinstance(x, Format):
        if isinstance(x.layout, Layout) and not x.layout.in_rows:
            raise ValueError(
                f"{what}: verax arrays are stored in row-major order, not as {x.layout}"
            )
        return as_place(what, x.sharding, error)
    if isinstance(x, NamedSharding) and isinstance(x.mesh, AbstractMesh):
        x = x.update(mesh=concrete_mesh(x.mesh))
    if x is None or isinstance(x, Sharding):
        check_devices(what, x)
        return x
    if isinstance(x, Device):
        return SingleDeviceSharding(x)
    if not isinstance(x, PartitionSpec):
        leaves = (
            f"{what} leaf specifications are expected to be PartitionSpec instances "
            f"or None, but got {x}"
            if IN_CONTEXT.get(what) == "pjit"
            else "Received invalid value"
        )
        raise error(
            f"{leaves}: {what} takes a device, a Sharding, a "
            f"PartitionSpec, None, or a tree of these, not {described(x)}"
        )
    mesh = current_mesh()
    if mesh is None:
        raise without_mesh(what, x)
    place = NamedSharding(mesh, x)
    manual = set(mesh.manual_axes) - place.replicated_axes
    if manual:
        raise ValueError(
            f"{what} got {x}, but inside shard_map the function has only the part of "
            f"one device along {', '.join(sorted(manual))}: name other axes"
        )
    return place


def over_a_mesh(what: str, x: object) -> NamedSharding:
    """A sharding over a mesh, which a function takes as `out_sharding`.

    Raises:
        TypeError: it is no place.
        ValueError: it is a place without a mesh or in another memory, or a spec without
            a mesh around it.
    """
    place = as_place(what, x)
    if not isinstance(place, NamedSharding):
        raise ValueError(
            f"{what} takes a PartitionSpec or NamedSharding as out_sharding, not {x!r}"
        )
    if place.other_memory is not None:
        raise ValueError(
            f"{what}: a sharding with memory_kind is not allowed as out_sharding, "
            f"which says how types split, but got {place}: move the result with "
            "verax.device_put"
        )
    return place


def check_space(what: str, space: MemorySpace, error: type[Exception]) -> None:
    """Raise `error` for a memory other than the one in which arrays are anyway."""
    if space is MemorySpace.Host:
        raise error(
            f"{what} takes a sharding: say the memory with its memory_kind, or move "
            "arrays with device_put"
        )


def check_devices(what: str, place: Sharding | None) -> None:
    """Raise ValueError for a sharding over a mesh without devices."""
    if isinstance(place, NamedSharding) and not place.num_devices:
        raise ValueError(
            f"{what} got {place}, but no array can lie on a mesh without devices"
        )


def place_entries(what: str, prefix: object, tree: object) -> list[Any]:
    """One entry for each leaf of `tree`, from a prefix tree in which None is a leaf.

    Raises:
        ValueError: it is not a prefix.
    """
    if is_place(prefix) or isinstance(prefix, bool):
        return [prefix] * pytrees.flatten(tree)[1].num_leaves
    named = f"pjit {what}" if IN_CONTEXT.get(what) == "pjit" else what
    return prefix_leaves(named, prefix, tree, is_place)


def place_leaves(
    what: str, prefix: object, tree: object, error: type[Exception] = TypeError
) -> Places:
    """One sharding, or None, for each leaf of `tree`; `error` is for other things."""
    return tuple([as_place(what, x, error) for x in place_entries(what, prefix, tree)])


@frozen(eq=False, repr=False)
class Shardings(ReprMixin):
    """The shardings given to `jit`; `fixed` says whether any were."""

    ins: object = None
    outs: object = None
    device: Device | None = None

    @property
    def fixed(self) -> bool:
        trees = (self.ins, self.outs)
        given = any(pytrees.flatten(tree)[0] for tree in trees)
        return given or self.device is not None

    def of_inputs(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Places:
        """One sharding, or None, for each leaf of the arguments.

        Raises:
            ValueError: keyword arguments, for which in_shardings has no entries.
        """
        if self.ins is None:
            return ()
        if kwargs:
            raise ValueError(
                "pjit does not support kwargs when in_shardings is specified. It has "
                f"entries only for positional arguments; got {sorted(kwargs)}"
            )
        ins = tuple(self.ins) if isinstance(self.ins, list) else self.ins
        check_entries(ins, args)
        return place_leaves("in_shardings", ins, args)

    def typed(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        avals: Sequence[ShapedArray],
    ) -> Sequence[ShapedArray]:
        """The types of inputs that lie so: explicit mesh axes stand in them."""
        places = () if self.ins is None else self.of_inputs(args, kwargs)
        if not any([place is not None and place.explicit for place in places]):
            return avals
        return [
            aval if place is None or not place.explicit else aval.update(sharding=place)
            for aval, place in zip(avals, places, strict=True)
        ]

    def of_outputs(self, out_tree: pytrees.PyTreeDef) -> Places:
        """One sharding, or None, for each leaf of the output."""
        if self.outs is None:
            return ()
        count = range(out_tree.num_leaves)
        return place_leaves("out_shardings", self.outs, out_tree.unflatten(count))


def check_entries(ins: object, args: tuple[object, ...]) -> None:
    """Raise ValueError unless there is an entry for each argument, or one for all."""
    rule = (
        "pjit in_shardings specification must be a tree prefix of the positional "
        "arguments tuple. In particular, pjit in_shardings must either be a Sharding, "
        "a PartitionSpec, or a tuple of length equal to the number of positional "
        "arguments. But pjit in_shardings is"
    )
    if is_place(ins) or isinstance(ins, bool):
        return
    if type(ins) is not tuple:
        raise ValueError(
            f"{rule} not a tuple, but {shown(ins)}: it might need to be wrapped in "
            "one, in_shardings=(entry,)"
        )
    if len(ins) != len(args):
        raise ValueError(
            f"{rule} the wrong length: got a tuple or list of length {len(ins)} for an "
            f"args tuple of length {len(args)}."
        )


def resolve_shardings(
    ins: object, outs: object, device: object, backend: str | None
) -> Shardings:
    """The arguments of `jit` that say where it runs.

    Raises:
        TypeError: `device` is none.
        ValueError: arguments that exclude each other.
    """
    if device is not None and not isinstance(device, Device):
        raise TypeError(
            f"jit takes one of verax.devices() as device, not {shown(device)}"
        )
    if device is not None and backend is not None:
        raise ValueError("can't specify both a device and a backend for jit")
    if (device is not None or backend is not None) and (
        ins is not None or outs is not None
    ):
        raise ValueError(
            "If backend or device is specified on jit, then "
            f"{'out' if ins is None else 'in'}_shardings should not be specified. "
            "A sharding names its devices"
        )
    if backend is not None:
        device = local_devices(backend)[0]
    for what, tree in (("in_shardings", ins), ("out_shardings", outs)):
        for leaf in pytrees.flatten(tree, is_place)[0]:
            place = leaf if is_place(leaf) else as_place(what, leaf)
            spec = place.spec if isinstance(place, NamedSharding) else place
            if isinstance(spec, PartitionSpec):
                check_constrained(what, spec)
    return Shardings(ins, outs, device)


def check_constrained(what: str, spec: PartitionSpec) -> None:
    """Raise ValueError if arrays may lie in any way along some dimension."""
    if PartitionSpec.UNCONSTRAINED in spec:
        raise ValueError(
            f"Unconstrained dims are not allowed in {what}, as in {spec}: give None "
            "for a dimension that is not split, or no sharding for the one that an "
            "array has; within the function there is with_sharding_constraint"
        )


def constrained(xs: Sequence[Any], places: Places) -> list[Any]:
    """Values of a trace, constrained to their places."""
    if not places:
        return list(xs)
    return [held_at(x, place) for x, place in zip(xs, places, strict=True)]


def held_at(x: Array, place: Sharding | None) -> Array:
    """A value of a trace, constrained to its place, which may be one device."""
    if not isinstance(place, SingleDeviceSharding):
        return at_place(x, place)
    return sharding_constraint(x, LayoutOf(MeshAxes((), (), (place.device.id,))))


def at_place(x: Array, place: Sharding | None) -> Array:
    """A value of a trace, constrained to its place; explicit axes go into its type.

    Along the other axes of the same mesh, the compiler is asked.
    """
    if not isinstance(place, NamedSharding):
        return x
    if not place.explicit and x.aval.explicit is None:
        return sharding_constraint(x, place.layout)
    if place.explicit:
        typed = split_by(x, place)
        free = set(place.mesh.auto_axes) - place.replicated_axes
        return sharding_constraint(typed, place.layout) if free else typed
    return sharding_constraint(retyped(x, None), place.layout)


def check_place(place: Sharding, x: Array, what: str) -> None:
    """Raise ValueError unless the array can lie so."""
    place.check(x.shape, f"{what} {x.aval}")
