"""Which line makes which devices talk: `verax.debug.collectives` (floor 6).

One idea: what devices send each other is decided by XLA when it partitions a program,
so the partitioned program is read, and its instructions know the user's lines::

    print(verax.debug.collectives(verax.grad(loss), in_shardings=places)(params, batch))

Nothing is run, and devices need not be there: arguments may be `ShapeDtypeStruct`s, and
meshes `AbstractMesh`es.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Final, Protocol, Unpack

import numpy as np
from attrs import evolve, field, frozen

from verax.api.stages.stages import Traced
from verax.api.tracing.apply import ENGINE
from verax.api.tracing.wrapping import function_name, wraps
from verax.backend.lowering.lower import lower
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import Mesh
from verax.backend.placement.mesh_context import concrete_mesh, typed_axes
from verax.backend.programs.partitioned import compile_for_mesh
from verax.backend.programs.placement import Placement
from verax.backend.programs.program import spread_of
from verax.backend.xla.executable import MemoryAnalysis
from verax.backend.xla.virtual import Partitioned
from verax.explorer.costing import counted
from verax.explorer.exploration import of_arrays
from verax.explorer.functions import JitOptions, check_options, jitted
from verax.explorer.pipeline import Explored
from verax.explorer.recording import CollectivesNote, Json, TalkNote
from verax.explorer.rows.collectives import (
    Along,
    Grid,
    Groups,
    Talk,
    Talks,
    axes_of,
    groups_of,
    pairs_of,
)
from verax.explorer.rows.hlo import hlo_rows
from verax.explorer.rows.row import EQUATION, Row
from verax.ir.jaxpr import UNKNOWN_SOURCE, Eqn, Source
from verax.ir.records import ReprMixin
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table
from verax.rules.rows.leaks import leaked
from verax.rules.values.conversions import check_callable, shown

# -----------------------------------------------------------------------------
# The report.


def operands_sent(kind: str, count: int) -> float:
    """Operands that each device of so many sends at least, where they lie in a ring.

    >>> operands_sent("all-reduce", 4), operands_sent("all-gather", 4)
    (1.5, 3.0)
    """
    rest = count - 1
    if kind == "all-gather":
        return float(rest)
    if kind == "all-reduce":
        return 2 * rest / count
    if kind in ("all-to-all", "ragged-all-to-all", "reduce-scatter"):
        return rest / count
    return float(rest > 0)


@frozen(repr=False)
class Collective(ReprMixin):
    """What devices send each other for a line of the user's.

    Attributes:
        kind: "all-reduce", "all-gather", "reduce-scatter", "all-to-all",
            "collective-permute", ...
        axes: the axes of the mesh along which devices talk, in the order of the mesh;
            none if that is not known.
        whole: whether all devices along these axes talk together, and not some.
        devices: the number of devices that talk together.
        bytes: of the operand on one device, in one run, in its type in `fun`: that
            the compiler for CPUs adds 16-bit numbers with 32 bits does not count.
        times: how often it runs in one run of the program: loops multiply.
        estimated: false if `times` is not known, in a loop of unknown length, which
            counts once, or in a branch.
        sliced: whether each device keeps a slice only of the result of an all-reduce,
            which compilers for accelerators turn into a reduce-scatter.
        backward: whether a gradient needs it on the way back.
        operation: the operation of the user's program that it was made for.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(AbstractMesh((4,), ("data",)), P("data"))
    >>> x = verax.ShapeDtypeStruct((8, 100), vnp.float32, sharding=rows)
    >>> (one,) = verax.debug.collectives(lambda x: x.sum(0))(x).entries
    >>> one.kind, one.axes, one.bytes, one.sent
    ('all-reduce', ('data',), 400, 600.0)
    """

    __module__ = "verax.debug"

    kind: str
    axes: tuple[str, ...]
    whole: bool
    devices: int
    bytes: int
    times: float
    estimated: bool
    sliced: bool
    backward: bool
    operation: str
    file: str
    line: int
    function: str
    code: str

    @property
    def total(self) -> float:
        """The bytes of operands on one device, in all runs."""
        return self.bytes * self.times

    @property
    def sent(self) -> float:
        """The bytes that one device sends at least, in all runs.

        A ring of devices sends no more; a permutation sends what it permutes.
        """
        return self.total * operands_sent(self.kind, self.devices)


@frozen(repr=False)
class Collectives(ReprMixin):
    """The collectives of a partitioned program, and the memory of each device.

    Attributes:
        name: of the function.
        axes: the axes of the mesh with their sizes.
        devices: the number of devices.
        entries: by line, those that send most first. XLA joins several small ones
            into one instruction; each of its operands is with its own line.
        instructions: the number of instructions for them in the program.
        flops: the operations of one device, what all repeat included.
        memory: the bytes that each device needs: `arguments`, `outputs`,
            `temporaries`, `aliased` (outputs in the memory of arguments).
        program: the program of one device, in XLA's own language.

    >>> import verax, verax.numpy as vnp
    >>> verax.debug.collectives(vnp.sin)(vnp.ones(3)).entries
    ()
    """

    __module__ = "verax.debug"

    name: str
    axes: Mapping[str, int]
    devices: int
    entries: tuple[Collective, ...]
    instructions: int
    flops: float
    memory: MemoryAnalysis
    program: str = field(repr=False)

    @property
    def sent(self) -> float:
        """The bytes that one device sends at least, in one run."""
        return sum(entry.sent for entry in self.entries)

    @property
    def peak(self) -> int:
        """The bytes that each device needs at most: all that XLA sets aside.

        Where the compiler itself says more, that; the one for CPUs leaves out
        temporaries.
        """
        memory = self.memory
        whole = memory.arguments + memory.outputs - memory.aliased + memory.temporaries
        return max(memory.peak, whole)

    def by_line(self, line: int) -> tuple[Collective, ...]:
        """The entries of a line, those of its gradient too."""
        return tuple([entry for entry in self.entries if entry.line == line])

    def along(self, axis: str) -> tuple[Collective, ...]:
        """The entries whose devices talk along an axis of the mesh."""
        return tuple([entry for entry in self.entries if axis in entry.axes])

    @property
    def title(self) -> str:
        """The sums, in a line."""
        sizes = ", ".join([f"{name} {size}" for name, size in self.axes.items()])
        devices = "1 device" if self.devices == 1 else f"{self.devices} devices"
        mesh = f"{devices} ({sizes})" if sizes else devices
        word = "collective" if self.instructions == 1 else "collectives"
        return (
            f"{self.name} on {mesh}: {self.instructions} {word}, each device sends "
            f"{counted(self.sent)}B and does {counted(self.flops)} flops"
        )

    @property
    def memory_text(self) -> str:
        """The memory of each device, in a line."""
        memory = self.memory
        parts = {
            "arguments": memory.arguments,
            "results": memory.outputs,
            "of these aliased": memory.aliased,
            "temporaries": memory.temporaries,
            "peak": self.peak,
        }
        each = [f"{name} {counted(size)}B" for name, size in parts.items()]
        return f"memory of each device: {', '.join(each)}"

    def __str__(self) -> str:
        head = [self.title, self.memory_text]
        if not self.entries:
            return "\n".join(head)
        rows = [HEADS, *map(cells, self.entries)]
        texts = list(columns([row[:2] for row in rows], left=2))
        width = max(map(len, texts))
        numbers = columns([row[2:] for row in rows], left=1)
        pairs = zip(texts, numbers, strict=True)
        return "\n".join([*head, *[f"{a:<{width}}  {b}" for a, b in pairs]])

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        rows = list(map(cells, self.entries))
        return report(table(self.title, HEADS, rows, rest=self.memory_text))


HEADS: Final = ("line", "collective", "axes", "devices", "bytes", "times", "sent")
LONGEST: Final = 52
"""Characters of a line of code, of which the rest is cut off."""


def cells(entry: Collective) -> tuple[str, ...]:
    """The row of an entry in a table."""
    code = ("← " if entry.backward else "") + (entry.code or "(of no line)")
    code = code if len(code) <= LONGEST else code[: LONGEST - 1] + "…"
    part = "" if entry.whole else " (part)"
    return (
        f"{entry.line:>4}  {code}",
        entry.kind + (", sliced" if entry.sliced else ""),
        (", ".join(entry.axes) or "?") + part,
        str(entry.devices),
        counted(entry.bytes),
        f"{entry.times:g}" + ("" if entry.estimated else "+"),
        counted(entry.sent),
    )


# -----------------------------------------------------------------------------
# Reading the partitioned program.


class Located(Protocol):
    """What knows the places of numbers that a compiled program carries on."""

    def of(self, number: int | None) -> tuple[Source, str]:
        """The source and the operation of a number."""
        ...


class Origins:
    """Numbers for equations, which XLA carries on into the compiled program."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.sources: list[tuple[Source, str]] = []

    def locate(self, eqn: Eqn) -> str:
        """The location of an equation: its number, and its name."""
        source, name = eqn.source, eqn.primitive.name
        key = source.code, source.instruction, source.origin, name
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.sources)
            self.sources.append((source, name))
        return f'loc("r{number}/{name}")'

    def of(self, number: int | None) -> tuple[Source, str]:
        """The source and the operation of a number."""
        if number is None or number >= len(self.sources):
            return UNKNOWN_SOURCE, ""
        return self.sources[number]


def grid_of(placement: Placement | None) -> Grid:
    """The mesh of a program, with the positions of its devices in the program."""
    if placement is None or placement.mesh is None:
        return Grid()
    mesh = placement.mesh
    order = {device.id: i for i, device in enumerate(placement.devices)}
    places = tuple([order[number] for number in mesh.device_ids.reshape(-1).tolist()])
    return Grid(mesh.axis_names, mesh.axis_sizes, places)


def entry_of(talk: Talk, origins: Located, grid: Grid, count: int) -> Collective:
    """The entry of one collective."""
    source, operation = origins.of(talk.origin)
    pairs = pairs_of(talk.text)
    groups: Groups = groups_of(talk.text, count) or () if pairs is None else pairs
    along = axes_of(groups, grid, pairs=pairs is not None)
    return Collective(
        talk.kind,
        along.names,
        along.whole,
        talking(groups, along, grid, pairs is not None),
        talk.bytes,
        talk.times,
        talk.known,
        talk.sliced,
        source.backward,
        operation,
        source.file,
        source.line,
        source.function,
        source.text,
    )


def talking(groups: Groups, along: Along, grid: Grid, pairs: bool) -> int:
    """The number of devices that talk together."""
    if not pairs:
        return max(map(len, groups), default=1)
    if not grid.names:
        return len({device for pair in groups for device in pair})
    sizes = dict(zip(grid.names, grid.sizes, strict=True))
    return int(np.prod([sizes[name] for name in along.names], dtype=int))


def merged(entries: Iterable[Collective]) -> tuple[Collective, ...]:
    """Entries that are alike as one, that runs as often as all; most bytes first."""
    totals: dict[Collective, float] = {}
    for entry in entries:
        key = evolve(entry, times=0.0)
        totals[key] = totals.get(key, 0.0) + entry.times
    out = [evolve(key, times=times) for key, times in totals.items()]
    return tuple(sorted(out, key=lambda entry: (-entry.sent, entry.line)))


def report_of(
    name: str, part: Partitioned, placement: Placement | None, origins: Located
) -> tuple[Collectives, dict[Collective, list[str]]]:
    """The report of a partitioned program; for entries, their instructions.

    Those are found by the entry without its `times`.
    """
    grid = grid_of(placement)
    count = 1 if placement is None else len(placement.devices)
    talks = Talks(part.text).all()
    entries = [entry_of(talk, origins, grid, count) for talk in talks]
    names: dict[Collective, list[str]] = {}
    for talk, entry in zip(talks, entries, strict=True):
        names.setdefault(evolve(entry, times=0.0), []).append(talk.name)
    report = Collectives(
        name,
        MappingProxyType(dict(zip(grid.names, grid.sizes, strict=True))),
        count,
        merged(entries),
        len({talk.name for talk in talks}),
        flops_of_text(part.text),
        part.memory,
        part.text,
    )
    return report, names


def flops_of_text(text: str) -> float:
    """The operations of a program of XLA's, loops as often as they run."""
    rows, _ = hlo_rows(text, ())
    tops = [row for row in rows if row.kind == EQUATION and row.inside < 0]
    return sum([row.flops or 0.0 for row in tops])


def partitioned(
    stage: Traced, origins: Origins, *, kernels: bool | None = None
) -> tuple[Partitioned, Lowered]:
    """The program of each device of a traced function, and the module for all.

    `kernels` says whether functions are written out for a CPU; None leaves it to the
    options.

    Raises:
        LeakedTracer: the function closes over a tracer.
    """
    if stage.traced.captured:
        raise leaked(stage.traced.captured[0])
    options, modules = stage.options.configured(), []

    def lowered(placement: Placement | None, platform: str) -> Lowered:
        module = lower(
            ENGINE,
            stage.traced.jaxpr,
            stage.fun_name,
            platforms=(platform,),
            keep_unused=stage.keep_unused,
            donated=stage.donated,
            spread=None if placement is None else spread_of(placement),
            located=origins.locate,
            calls=options.calls or "auto",
            kernels=options.kernels if kernels is None else kernels,
        )
        modules.append(module)
        return module

    out = compile_for_mesh(lowered, options, stage.placement)
    return out, modules[-1]


def read(name: str, stage: Traced) -> Collectives:
    """The collectives of a traced function, which is compiled."""
    origins = Origins()
    out, _ = partitioned(stage, origins)
    return report_of(name, out, stage.placement, origins)[0]


# -----------------------------------------------------------------------------
# The same for the page.


class RowOrigins:
    """The sources of rows that a compiled program names, by their numbers."""

    def __init__(self, module: Sequence[Row], before: Sequence[Row]) -> None:
        self.module, self.before = module, before

    def of(self, number: int | None) -> tuple[Source, str]:
        """The source of a row, and the operation of the program that it was made of."""
        if number is None or number >= len(self.module):
            return UNKNOWN_SOURCE, ""
        row = self.module[number]
        ops = [self.before[i].op for i in row.origins]
        return row.source, next((op for op in ops if op), row.op)


def collectives_note(
    explored: Explored, placement: Placement | None
) -> CollectivesNote:
    """What devices send each other in a program that has been explored."""
    part, stages = explored.part, explored.stages
    assert part is not None, "the program is for several devices"
    origins = RowOrigins(stages[-2].rows, stages[-3].rows if stages[2:] else ())
    report, rows = report_of("", part, placement, origins)
    talks = [
        TalkNote(
            one.file,
            one.line,
            rows_of(rows[evolve(one, times=0.0)], explored.instructions),
            columns_of(one),
        )
        for one in report.entries
    ]
    memory = {
        "arguments": part.memory.arguments,
        "outputs": part.memory.outputs,
        "aliased": part.memory.aliased,
        "temporaries": part.memory.temporaries,
        "total": report.peak,
    }
    last = len(stages) - 1
    return CollectivesNote(
        last, report.devices, report.axes, report.sent, memory, talks
    )


def rows_of(names: Iterable[str], known: Mapping[str, int]) -> list[int]:
    """The rows of instructions; a page has not all of a large program."""
    return sorted({known[name] for name in names if name in known})


def columns_of(one: Collective) -> dict[str, Json]:
    """What the page shows of an entry."""
    return {
        "kind": one.kind + (", sliced" if one.sliced else ""),
        "axes": (", ".join(one.axes) or "?") + ("" if one.whole else " (part)"),
        "devices": one.devices,
        "bytes": one.bytes,
        "times": one.times,
        "known": one.estimated,
        "sent": one.sent,
        "back": one.backward,
        "op": one.operation,
    }


def collectives(
    fun: Callable[..., object],
    *,
    mesh: Mesh | AbstractMesh | None = None,
    **options: Unpack[JitOptions],
) -> Callable[..., Collectives]:
    """A function that says which devices talk for each line of `fun`, and of how much.

    The program is compiled for its devices, not run, and read as each of them gets it:
    with what the compiler sends to bring values together, and the collectives of
    `shard_map`. Devices need not be there: those of an `AbstractMesh` of more than this
    process has are stood for by CPUs, up to 512, beside those of the process.

    Args:
        fun: the function; it may be a gradient or any other composition, and jitted.
        mesh: a mesh that is in force while `fun` is traced, as by `set_mesh`.
        options: those of `jit`, such as `in_shardings`, `out_shardings`,
            `static_argnums` and `donate_argnums`.

    Returns:
        A function of the arguments of `fun`, which may be `ShapeDtypeStruct`s with a
        `sharding`, that returns `Collectives`.

    Raises:
        TypeError: `fun` is not a function, `mesh` not a mesh, or `fun` is jitted and
            there are options of `jit`.
        ValueError: a mesh has too many devices that are not there.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
    >>> mesh = AbstractMesh((8, 8), ("data", "model"))
    >>> rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    >>> def loss(w, x):
    ...     return vnp.mean(vnp.tanh(x @ w) ** 2)
    >>> w, x = vnp.ones((32, 16)), vnp.ones((64, 32))
    >>> talk = verax.debug.collectives(verax.grad(loss), in_shardings=(whole, rows))
    >>> [(e.kind, e.axes, e.bytes, e.backward) for e in talk(w, x).entries]
    [('all-reduce', ('data',), 2048, True)]
    """
    check_callable("collectives", fun)
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"collectives takes a verax Mesh as mesh, not {shown(mesh)}")
    check_options("collectives", fun, options)
    function = jitted(fun, options)

    @wraps(fun)
    def reading(*args: object, **kwargs: object) -> Collectives:
        within = nullcontext() if mesh is None else typed_axes(concrete_mesh(mesh))
        with within:
            stage = of_arrays(function.trace(*args, **kwargs))
            return read(function_name(fun), stage)

    return reading
