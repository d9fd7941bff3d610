"""The report of `verax.debug.plan`: memory, time and talk of one device (floor 6).

One idea: what a program does on one device, with a record of the device and of its
links, is a report that says what fits, how long a step takes, and what it waits for::

    report = MeshPlan(...)
    report.time, report.mfu, report.bound, report.fits
"""

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from verax.explorer.collectives import HEADS, LONGEST, Collective, cells
from verax.explorer.costing import counted
from verax.explorer.meshes.devices import Device, Link
from verax.explorer.meshes.timing import ALONG
from verax.ir.records import ReprMixin
from verax.ir.reports.lines import AtLine
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table


@frozen(repr=False)
class PlannedCollective(Collective):
    """What devices send each other for a line, and the seconds that it takes.

    `time` is of all runs, as if nothing else went on meanwhile; the other attributes
    are those of a `Collective`.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(AbstractMesh((4,), ("data",)), P("data"))
    >>> x = verax.ShapeDtypeStruct((8, 1_000_000), vnp.float32, sharding=rows)
    >>> (one,) = verax.debug.plan(lambda x: x.sum(0))(x).collectives
    >>> one.kind, one.bytes, f"{1e6 * one.time:.0f} µs"
    ('all-reduce', 4000000, '21 µs')
    """

    __module__ = "verax.debug"

    time: float


@frozen(repr=False)
class PlannedLine(AtLine):
    """What one device computes for a line: operations, bytes, seconds.

    `bound` is what the line waits for, "compute" or "memory"; `backward` says whether
    a gradient needs it on the way back, `estimated` is false where loops of unknown
    length or choices count once.

    >>> import verax, verax.numpy as vnp
    >>> (line,) = verax.debug.plan(vnp.sin)(vnp.ones(1000)).lines
    >>> line.flops, line.bytes, line.bound
    (1000.0, 8000.0, 'memory')
    """

    __module__ = "verax.debug"

    backward: bool
    flops: float
    bytes: float
    time: float
    bound: str
    estimated: bool


@frozen(repr=False)
class MeshMemory(ReprMixin):
    """The bytes of one device.

    Attributes:
        groups: of arguments, by the name of the parameter of the function.
        arguments: all of them.
        outputs: the results.
        aliased: of these, what lies in the memory of donated arguments.
        temporaries: the most in between, as XLA's compiler for CPUs has it.
        peak: all that is set aside.

    >>> import verax, verax.numpy as vnp
    >>> plan = verax.debug.plan(lambda w, x: x @ w)(vnp.ones((8, 8)), vnp.ones(8))
    >>> plan.memory.groups
    mappingproxy({'w': 256, 'x': 32})
    """

    __module__ = "verax.debug"

    groups: Mapping[str, int]
    arguments: int
    outputs: int
    aliased: int
    temporaries: int
    peak: int


@frozen(repr=False)
class MeshPlan(ReprMixin):
    """What a step of a program takes on each device of a mesh that need not be there.

    Attributes:
        name: of the function.
        axes: the axes of the mesh with their sizes.
        device: the record of the device.
        links: the record of what joins devices, by axis.
        overlap: whether devices talk while they compute, in `time`.
        memory: the bytes of one device.
        lines: what one device computes, by line, the longest first.
        collectives: what it sends, by line, the longest first.
        model_flops: the operations of the traced program, on all devices together.
        peak_flops: the operations of a device in a second, on elements of the size with
            which it does most of them.
        busy: the seconds of each part of a step, as if nothing overlapped: "compute",
            "memory", "along" axes of the mesh, and "latency".
        exposed: the seconds of each part that count in `time`.
        samples: the axes of smaller meshes from which it was worked out; none if the
            program was compiled for this one.
        alike: whether these had programs of one form; otherwise take it as a hint.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
    >>> mesh = AbstractMesh((512, 8), ("data", "model"))
    >>> x = verax.ShapeDtypeStruct(
    ...     (8192, 8192), vnp.bfloat16, sharding=NamedSharding(mesh, P("data", "model"))
    ... )
    >>> plan = verax.debug.plan(lambda x: vnp.sum(x * x))(x)
    >>> plan.devices, plan.memory.arguments, plan.fits, plan.bound
    (4096, 32768, True, 'latency')
    """

    __module__ = "verax.debug"

    name: str
    axes: Mapping[str, int]
    devices: int
    device: Device
    links: Mapping[str, Link]
    overlap: bool
    memory: MeshMemory
    lines: tuple[PlannedLine, ...]
    collectives: tuple[PlannedCollective, ...]
    model_flops: float
    peak_flops: float
    busy: Mapping[str, float]
    exposed: Mapping[str, float]
    samples: tuple[Mapping[str, int], ...] = field(default=())
    alike: bool = True

    @property
    def time(self) -> float:
        """The seconds of a step."""
        return sum(self.exposed.values())

    @property
    def flops(self) -> float:
        """The operations of one device, with what all devices repeat."""
        return sum([line.flops for line in self.lines])

    @property
    def mfu(self) -> float:
        """The share of the peak of all devices that the traced program makes use of."""
        most = self.time * self.devices * self.peak_flops
        return self.model_flops / most if most else 0.0

    @property
    def sent(self) -> float:
        """The bytes that one device sends at least."""
        return sum([one.sent for one in self.collectives])

    @property
    def bound(self) -> str:
        """What most of the time is spent on: a name of `exposed`."""
        return max(self.exposed, key=lambda name: self.exposed[name], default="compute")

    @property
    def fits(self) -> bool:
        """Whether one device has the memory."""
        return self.memory.peak <= self.device.memory

    def by_line(self, line: int) -> tuple[PlannedLine | PlannedCollective, ...]:
        """What is computed and sent for a line, for its gradient too."""
        both: list[PlannedLine | PlannedCollective] = [*self.lines, *self.collectives]
        return tuple([one for one in both if one.line == line])

    def along(self, axis: str) -> tuple[PlannedCollective, ...]:
        """The collectives whose devices talk along an axis of the mesh."""
        return tuple([one for one in self.collectives if axis in one.axes])

    @property
    def title(self) -> str:
        """The sums, in a line."""
        sizes = ", ".join([f"{name} {size}" for name, size in self.axes.items()])
        mesh = f" ({sizes})" if sizes else ""
        return (
            f"{self.name} on {self.devices:,} x {self.device.name}{mesh}: "
            f"{lasting(self.time)}, {100 * self.mfu:.3g} % of the peak, bound by "
            f"{named(self, self.bound)}"
        )

    def __str__(self) -> str:
        out = [self.title, *below(self)]
        if self.lines:
            rows = [WORK_HEADS, *map(work_cells, self.lines)]
            numbers = columns([row[:-1] for row in rows], left=1)
            bounds = [row[-1] for row in rows]
            pairs = zip(numbers, bounds, strict=True)
            out += [f"{row}  {bound}" for row, bound in pairs]
        if self.collectives:
            rows = [TALK_HEADS, *map(talk_cells, self.collectives)]
            texts = list(columns([row[:2] for row in rows], left=2))
            width = max(map(len, texts))
            others = columns([row[2:] for row in rows], left=1)
            out += [f"{a:<{width}}  {b}" for a, b in zip(texts, others, strict=True)]
        return "\n".join(out)

    def _repr_html_(self) -> str:
        """The tables, for notebooks."""
        work = list(map(work_cells, self.lines))
        talk = list(map(talk_cells, self.collectives))
        first = table(self.title, WORK_HEADS, work, rest="\n".join(below(self)))
        second = [table("collectives", TALK_HEADS, talk)] if talk else []
        return report(first, *second)


# -----------------------------------------------------------------------------
# The text.


WORK_HEADS: Final = ("line", "flops", "bytes", "µs", "bound")
TALK_HEADS: Final = (*HEADS, "µs")


def talk_cells(one: PlannedCollective) -> tuple[str, ...]:
    """The row of a collective in the table of what is sent."""
    return (*cells(one), micro(one.time))


def micro(seconds: float) -> str:
    """Seconds in millionths, without a unit."""
    return f"{1e6 * seconds:.4g}" if seconds < 1 else f"{1e6 * seconds:.0f}"


def lasting(seconds: float) -> str:
    """A time with its unit."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def named(plan: MeshPlan, part: str) -> str:
    """A part of the time with the name of its link."""
    axes = part.removeprefix(ALONG).split(", ")
    links = dict.fromkeys([plan.links[n].name for n in axes if n in plan.links])
    return f"{' and '.join(links)} {part}" if links else part


def below(plan: MeshPlan) -> list[str]:
    """The lines below the title."""
    texts = [memory_text(plan), flops_text(plan), time_text(plan), samples_text(plan)]
    return [text for text in texts if text]


def memory_text(plan: MeshPlan) -> str:
    """The memory of each device, in a line."""
    memory = plan.memory
    parts = {
        **memory.groups,
        "results": memory.outputs,
        "of these aliased": memory.aliased,
        "temporaries": memory.temporaries,
    }
    each = ", ".join([f"{name} {counted(n)}B" for name, n in parts.items()])
    fits = "" if plan.fits else ", which is too much"
    return (
        f"memory of each device: {counted(memory.peak)}B of "
        f"{counted(plan.device.memory)}B{fits}: {each}"
    )


def flops_text(plan: MeshPlan) -> str:
    """The operations, in a line."""
    share = plan.model_flops / plan.devices / plan.flops if plan.flops else 1.0
    again = f", {100 * share:.3g} % of them asked for" if share < 0.995 else ""
    return (
        f"each device does {counted(plan.flops)} flops{again}, and sends "
        f"{counted(plan.sent)}B"
    )


def time_text(plan: MeshPlan) -> str:
    """What the time is spent on, in a line."""
    parts = []
    for name, seconds in plan.busy.items():
        hidden = seconds - plan.exposed.get(name, 0.0)
        note = f" ({lasting(hidden)} hidden)" if hidden > 0.005 * seconds else ""
        parts.append(f"{named(plan, name)} {lasting(seconds)}{note}")
    return f"time: {', '.join(parts)}"


def samples_text(plan: MeshPlan) -> str:
    """From which meshes it was worked out, in a line; empty if from its own."""
    if not plan.samples:
        return ""
    sizes = " and ".join([" x ".join(map(str, one.values())) for one in plan.samples])
    unlike = "" if plan.alike else ", whose programs differ: take it as a hint"
    return f"worked out from meshes of {sizes} devices{unlike}"


def work_cells(one: PlannedLine) -> tuple[str, ...]:
    """The row of a line in the table of what is computed."""
    code = ("← " if one.backward else "") + (one.code or "(of no line)")
    code = code if len(code) <= LONGEST else code[: LONGEST - 1] + "…"
    return (
        f"{one.line:>4}  {code}",
        counted(one.flops) + ("" if one.estimated else "+"),
        counted(one.bytes),
        micro(one.time),
        one.bound,
    )
