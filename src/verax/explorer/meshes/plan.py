"""What a program takes on a mesh that is not there: `verax.debug.plan` (floor 6).

One idea: XLA partitions the program for devices that are stood for by CPUs; what one
of them computes and sends is read, and records of a device and its links say how long
that takes. Nothing is run::

    mesh = AbstractMesh((2048, 8), ("data", "model"))
    print(verax.debug.plan(step, mesh=mesh)(*args))
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from math import prod
from types import MappingProxyType
from typing import Any, Final, Unpack

from attrs import asdict, evolve, field, frozen

from verax.api.jit import PjitFunction
from verax.api.sharding_args import Shardings, is_place
from verax.api.stages.stages import Traced
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.tracing.wrapping import function_name, wraps
from verax.api.trees.pytrees import tree_leaves, tree_map
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import Mesh
from verax.backend.placement.mesh_context import concrete_mesh, typed_axes
from verax.backend.placement.sharding import NamedSharding
from verax.backend.xla.virtual import MOST_DEVICES, check_count
from verax.explorer.collectives import grid_of, partitioned
from verax.explorer.costing import Counter, device_of
from verax.explorer.exploration import of_arrays
from verax.explorer.functions import PlanOptions, check_options, jitted
from verax.explorer.meshes.devices import Device, Link, Links, links_of
from verax.explorer.meshes.living import Room
from verax.explorer.meshes.reading import Reader, Widths
from verax.explorer.meshes.report import (
    MeshMemory,
    MeshPlan,
    PlannedCollective,
    PlannedLine,
)
from verax.explorer.meshes.scaling import Carried, Sample, corners, shrunk
from verax.explorer.meshes.timing import (
    Place,
    Sent,
    Work,
    sent_time,
    times_of,
    work_time,
)
from verax.ir.records import ReprMixin
from verax.rules.rows.costs import bytes_of
from verax.rules.values.conversions import check_callable, shown

NAME: Final = re.compile(r"\w+")
CAPTURED: Final = "captured"
MEMORY: Final = ("arguments", "outputs", "aliased", "temporaries")

type AnyMesh = Mesh | AbstractMesh


# -----------------------------------------------------------------------------
# The same call over another mesh.


def over(x: object, mesh: AnyMesh) -> Any:
    """A sharding, or what has one, with the same spec over another mesh."""
    if isinstance(x, NamedSharding):
        return x.update(mesh=mesh)
    if isinstance(x, ConcreteArray):
        place = x.placed.place if x.placed is not None else None
        if isinstance(place, NamedSharding):
            return over(ShapeDtypeStruct.like(x), mesh)
    if isinstance(x, ShapeDtypeStruct) and isinstance(x.sharding, NamedSharding):
        return x.update(sharding=x.sharding.update(mesh=mesh))
    return x


def mesh_in(x: object) -> AnyMesh | None:
    """The mesh of a sharding, or of what has one."""
    place = x if isinstance(x, NamedSharding) else getattr(x, "sharding", None)
    if not isinstance(place, NamedSharding):
        return None
    mesh = place.mesh
    return mesh if isinstance(mesh, Mesh | AbstractMesh) else place.concrete


@frozen(eq=False, repr=False)
class Asked(ReprMixin):
    """A call of a function, whose arguments and shardings may go to another mesh.

    `inside` says whether the mesh is in force while the function is traced.
    """

    function: PjitFunction[..., object]
    name: str
    args: tuple[object, ...]
    kwargs: Mapping[str, object] = field(repr=False)
    inside: bool

    @property
    def places(self) -> Shardings:
        """The shardings among the options."""
        out: Shardings = self.function.settings.shardings
        return out

    def mesh(self) -> AnyMesh | None:
        """The mesh of the first argument or option that has one."""
        trees = (self.places.ins, self.places.outs)
        given = [*tree_leaves((self.args, dict(self.kwargs)))]
        given += [x for tree in trees for x in tree_leaves(tree, is_place)]
        return next((mesh for x in given if (mesh := mesh_in(x)) is not None), None)

    def traced(self, mesh: AnyMesh | None) -> Traced:
        """The function, traced over a mesh; as it stands for None."""
        if mesh is None:
            return of_arrays(self.function.trace(*self.args, **self.kwargs))

        def moved(x: object) -> Any:
            return over(x, mesh)

        ins, outs = [
            tree_map(moved, tree, is_leaf=is_place)
            for tree in (self.places.ins, self.places.outs)
        ]
        places = evolve(self.places, ins=ins, outs=outs)
        settings = evolve(self.function.settings, shardings=places)
        function = PjitFunction(self.function.fun, settings)
        args, kwargs = tree_map(moved, (self.args, dict(self.kwargs)))
        within = typed_axes(concrete_mesh(mesh)) if self.inside else nullcontext()
        with within:
            return of_arrays(function.trace(*args, **kwargs))

    def sample(self, mesh: AnyMesh | None) -> Sample:
        """What is known of the program on a mesh, for which it is compiled.

        Raises:
            ValueError: `mesh` is to be in force, and nothing lies on it.
        """
        stage = self.traced(mesh)
        count = 1 if stage.placement is None else len(stage.placement.devices)
        if self.inside and mesh is not None and count != mesh.size:
            raise ValueError(
                f"plan: {self.name} is for {count} device{'s' * (count > 1)}, and the "
                f"mesh has {mesh.size:,}: give arguments with a NamedSharding over its "
                "axes, or in_shardings with PartitionSpecs"
            )
        return sample_of(self.name, stage)


def sample_of(name: str, stage: Traced) -> Sample:
    """What is known of a traced function, which is compiled for its mesh."""
    widths, placement = Widths(), stage.placement
    part, module = partitioned(stage, widths, kernels=False)
    grid = grid_of(placement)
    count = 1 if placement is None else len(placement.devices)
    reader = Reader(part.text, widths, grid, count)
    counter = Counter(Device("any", 1.0, 1.0, 1.0))
    counter.count(stage.traced.jaxpr, 1.0, True)
    memory = {key: float(getattr(part.memory, key)) for key in MEMORY}
    memory["more"] = max(part.memory.peak - total(memory), 0.0)
    groups = groups_of(stage, module)
    rest = memory["arguments"] - sum(groups.values())
    if rest > 0:
        groups[CAPTURED] = rest
    return Sample(
        name,
        dict(zip(grid.names, grid.sizes, strict=True)),
        memory,
        groups,
        reader.works,
        reader.sent,
        sum([one.flops for one in counter.sums.values()]),
        Room(part.text),
    )


def total(memory: Mapping[str, float]) -> float:
    """All that is set aside, as far as its parts say it."""
    return (
        memory["arguments"]
        + memory["outputs"]
        - memory["aliased"]
        + memory["temporaries"]
    )


def groups_of(stage: Traced, module: Lowered) -> dict[str, float]:
    """The bytes of arguments on one device, by the name of the parameter."""
    out: dict[str, float] = {}
    placement, avals = stage.placement, stage.traced.jaxpr.in_avals
    names = [name for name, _ in stage.interface.arguments()]
    for i, (name, aval, kept) in enumerate(zip(names, avals, module.kept, strict=True)):
        parts = (
            1 if placement is None else prod(placement.of_input(i).counts(aval.ndim))
        )
        match = NAME.match(name)
        group = match[0] if match is not None else name
        out[group] = out.get(group, 0.0) + (bytes_of(aval) / parts if kept else 0.0)
    return out


# -----------------------------------------------------------------------------
# The report.


@frozen(eq=False, repr=False)
class Machine(ReprMixin):
    """The device, the links that are given, and whether devices talk meanwhile."""

    device: Device
    links: Links
    overlap: bool

    def report(
        self, sample: Sample, count: int, samples: Sequence[Mapping[str, int]] = ()
    ) -> MeshPlan:
        """The report of a program of which so much is known."""
        links = links_of(self.device, sample.sizes, self.links)
        times = times_of(
            sample.works, sample.sent, self.device, sample.sizes, links, self.overlap
        )
        return MeshPlan(
            sample.name,
            MappingProxyType(dict(sample.sizes)),
            count,
            self.device,
            MappingProxyType(links),
            self.overlap,
            memory_of(sample),
            self.lines(sample.works),
            planned(sample.sent, sample.sizes, links),
            sample.model,
            self.device.peak(usual_size(sample.works)),
            MappingProxyType(dict(times.busy)),
            MappingProxyType(dict(times.exposed)),
            tuple([MappingProxyType(dict(one)) for one in samples]),
            sample.alike,
        )

    def lines(self, works: Iterable[Work]) -> tuple[PlannedLine, ...]:
        """What is computed by line, in all regions together; the longest first."""
        table: dict[Place, list[Work]] = {}
        for one in works:
            table.setdefault(one.place, []).append(one)
        out = [self.line(place, group) for place, group in table.items()]
        kept = [one for one in out if one.flops or one.bytes]
        return tuple(sorted(kept, key=lambda one: -one.time))

    def line(self, place: Place, works: Sequence[Work]) -> PlannedLine:
        """A line: the time is that of its regions one after the other."""
        times = [work_time(one, self.device) for one in works]
        return PlannedLine(
            *place,
            sum([n for one in works for n in one.flops.values()]),
            sum([one.bytes for one in works]),
            sum([seconds for seconds, _ in times]),
            max(times)[1],
            all([one.estimated for one in works]),
        )


def memory_of(sample: Sample) -> MeshMemory:
    """The memory of one device."""
    memory = sample.memory
    return MeshMemory(
        MappingProxyType({name: round(n) for name, n in sample.groups.items()}),
        round(memory["arguments"]),
        round(memory["outputs"]),
        round(memory["aliased"]),
        round(memory["temporaries"]),
        round(total(memory) + memory["more"]),
    )


def usual_size(works: Iterable[Work]) -> int:
    """The size in bytes of the elements with which most operations are done."""
    sums: dict[int, float] = {}
    for one in works:
        for size, count in one.flops.items():
            sums[size] = sums.get(size, 0.0) + count
    return max(sums, key=lambda size: sums[size], default=4)


def planned(
    sent: Iterable[Sent], sizes: Mapping[str, int], links: Mapping[str, Link]
) -> tuple[PlannedCollective, ...]:
    """The collectives: those that are alike as one, the longest first."""
    table: dict[PlannedCollective, tuple[float, float]] = {}
    for one in sent:
        fields = asdict(evolve(one.entry, times=0.0), recurse=False)
        key = PlannedCollective(**fields, time=0.0)
        times, seconds = table.get(key, (0.0, 0.0))
        more = sum(sent_time(one, sizes, links))
        table[key] = times + one.entry.times, seconds + more
    out = [evolve(key, times=n, time=seconds) for key, (n, seconds) in table.items()]
    return tuple(sorted(out, key=lambda one: (-one.time, -one.sent, one.line)))


# -----------------------------------------------------------------------------
# The function.


def planned_on(
    asked: Asked, mesh: AnyMesh | None, machine: Machine, most: int
) -> MeshPlan:
    """The report of a call on a mesh: compiled for it, or for smaller ones.

    Raises:
        ValueError: the mesh is too large, and cannot be made smaller; or the function
            names a mesh of its own.
    """
    mesh = asked.mesh() if mesh is None else mesh
    if mesh is None or mesh.size <= most:
        sample = asked.sample(mesh if asked.inside else None)
        return machine.report(sample, prod(sample.sizes.values()))
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
    ends = shrunk(sizes, most)
    meshes = corners(sizes, ends)
    check_count(prod(meshes[-1].values()))
    samples = []
    for one in meshes:
        small = AbstractMesh(tuple(one.values()), tuple(one), mesh.axis_types)
        try:
            samples.append(asked.sample(small))
        except ValueError as error:
            raise ValueError(
                f"plan: {asked.name} is worked out for {mesh.size:,} devices from a "
                f"mesh of {small.size}, for which it raises: {error}. It must take any "
                "mesh with these axes: name axes in PartitionSpecs, without a mesh, "
                "and pass plan(..., mesh=)"
            ) from error
    carried = Carried(samples, sizes, ends).sample()
    return machine.report(carried, mesh.size, meshes)


def plan(
    fun: Callable[..., object],
    *,
    mesh: Mesh | AbstractMesh | None = None,
    device: str | Device = "h100",
    links: Mapping[str, Link] | Link | None = None,
    overlap: bool = True,
    most: int = MOST_DEVICES,
    **options: Unpack[PlanOptions],
) -> Callable[..., MeshPlan]:
    """A function that says what a step of `fun` takes on a mesh that is not there.

    The program is compiled for its devices, which CPUs stand for, and not run: memory,
    operations and collectives are read off the program that each device gets. With
    records of the device and its links that makes a time: the longer of operations and
    bytes line by line, and of work and talk loop by loop.

    A mesh of more than `most` devices is worked out from smaller ones, which have the
    same axes: every number is linear in 1/n along each axis of n devices.

    Args:
        fun: the function, a step of a training for example; it may be jitted.
        mesh: the mesh, in force while `fun` is traced; shardings of arguments and
            options keep their specs and move to it. None leaves them where they are.
        device: a name ("h100", "h200", "b200", "a100", "v100", "tpu-v4", "tpu-v5e",
            "tpu-v5p", "tpu-v6e"; "cpu" measures this machine), or a `Device`.
        links: what joins devices along an axis, by axis, or one `Link` for all; the
            others are those of the device, where it is one of these GPUs and TPUs.
        overlap: whether devices talk while they compute.
        most: devices of the largest mesh to compile for.
        options: those of `jit`, such as `in_shardings` and `donate_argnums`.

    Returns:
        A function of the arguments of `fun`, which may be `ShapeDtypeStruct`s with a
        `sharding`, that returns a `MeshPlan`.

    Raises:
        TypeError: `fun` is not a function, `mesh` not a mesh, a link no `Link`, or
            `fun` is jitted and there are options of `jit`.
        ValueError: no device has that name, an axis has no link, nothing lies on the
            mesh, or the mesh is too large and its axes cannot be made shorter.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AbstractMesh, PartitionSpec as P
    >>> def loss(w, x):
    ...     return vnp.mean(vnp.tanh(x @ w) ** 2)
    >>> w = verax.ShapeDtypeStruct((4096, 4096), vnp.bfloat16)
    >>> x = verax.ShapeDtypeStruct((1 << 20, 4096), vnp.bfloat16)
    >>> mesh = AbstractMesh((1024,), ("data",))
    >>> places = P(), P("data")
    >>> asked = verax.debug.plan(verax.grad(loss), mesh=mesh, in_shardings=places)
    >>> report = asked(w, x)
    >>> [(e.kind, e.axes, e.devices, e.bytes) for e in report.collectives]
    [('all-reduce', ('data',), 1024, 33554432)]
    >>> report.memory.groups["x"] == 2 * (1 << 20) * 4096 // 1024
    True
    """
    check_callable("plan", fun)
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"plan takes a verax AbstractMesh as mesh, not {shown(mesh)}")
    check_options("plan", fun, options)
    machine = Machine(device_of(device, "plan"), links, overlap)
    with nullcontext() if mesh is None else typed_axes(concrete_mesh(mesh)):
        function = jitted(fun, options)

    @wraps(fun)
    def planning(*args: object, **kwargs: object) -> MeshPlan:
        asked = Asked(function, function_name(fun), args, kwargs, mesh is not None)
        return planned_on(asked, mesh, machine, min(most, MOST_DEVICES))

    return planning
