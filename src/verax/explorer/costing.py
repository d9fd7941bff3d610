"""What each line of a program costs: operations, bytes, and the time of a device.

One idea: an equation counts as often as it runs, and its bytes are those of values that
a compiler cannot keep inside a loop that it joins; the costs of a line are the sum::

    print(verax.debug.costs(loss, device="h100")(params, batch))

The estimate comes from types alone, so arguments may be `ShapeDtypeStruct`s, and
nothing is compiled or run.
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from attrs import define, evolve, frozen

from verax.api.jit import PjitFunction, jit
from verax.api.tracing.wrapping import function_name, wraps
from verax.explorer.exploration import of_arrays
from verax.explorer.meshes.devices import KNOWN, Device
from verax.explorer.recording import LineTotal
from verax.ir.jaxpr import Eqn, Jaxpr, Source, Var
from verax.ir.records import ReprMixin
from verax.ir.reports.lines import AtLine
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table
from verax.rules.rows.costs import (
    bytes_moved,
    bytes_of,
    flops_of,
    holds_programs,
    is_choice,
    trips,
)
from verax.rules.rows.row import Work, traits_of
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.lazy import loaded


@frozen(repr=False)
class LineCost(AtLine):
    """The cost of a line: of all of its equations, as often as they run.

    `kind` is "value", or "cotangent" for what a gradient computes on the way back.
    `time` is the least that the device needs, in seconds, and `bound` what it waits
    for: "compute" or "memory". `estimated` is false if a count is not known: of a
    `while_loop`, which counts once, or of an operation that says nothing.

    >>> import verax, verax.numpy as vnp
    >>> (line,) = verax.debug.costs(vnp.sin, device="h100")(vnp.ones(1000)).lines
    >>> line.flops, line.bytes, line.bound
    (1000.0, 8000.0, 'memory')
    """

    __module__ = "verax.debug"

    kind: str
    flops: float
    bytes: float
    time: float
    bound: str
    estimated: bool

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes if self.bytes else np.inf


class Costs(ReprMixin):
    """What a `CostReport` and the `CostFormulas` of symbolic sizes have in common.

    Only the types of arguments say which of the two it is. `flops` and `bytes`, of the
    whole and of each of the `lines`, are numbers in the one and formulas in the other;
    `at` gives numbers of both.

    >>> import verax, verax.numpy as vnp
    >>> def work(*xs) -> float:
    ...     return verax.debug.costs(vnp.matmul, device="h100")(*xs).at(n=8).flops
    >>> (n,) = verax.export.symbolic_shape("n")
    >>> x = verax.ShapeDtypeStruct((n, n), vnp.float32)
    >>> work(x, x)
    1024.0
    """

    __slots__ = ()
    __module__ = "verax.debug"

    name: str
    device: Device

    @property
    @abstractmethod
    def lines(self) -> tuple[Any, ...]:
        """The entries, the most expensive first."""

    @property
    def devices(self) -> int:
        """The number of devices, of which all are counted together."""
        return 1

    @property
    @abstractmethod
    def flops(self) -> Any:
        """All operations."""

    @property
    @abstractmethod
    def bytes(self) -> Any:
        """All bytes that are read and written."""

    @property
    @abstractmethod
    def time(self) -> float:
        """The least time that the device needs, in seconds.

        Raises:
            TypeError: it depends on sizes that are symbols: `at` takes them.
        """

    @property
    @abstractmethod
    def title(self) -> str:
        """The sums, in a line."""

    def variables(self) -> set[str]:
        """The names of the sizes that are symbols."""
        return set()

    def by_line(self, line: int) -> tuple[Any, ...]:
        """The entries of a line: its values, and its cotangents."""
        return tuple([entry for entry in self.lines if entry.line == line])

    @abstractmethod
    def at(self, **sizes: int) -> "CostReport":
        """The costs for these sizes, as of the program with them.

        Raises:
            TypeError: a variable has no size, or a name is no variable.
        """

    @abstractmethod
    def _repr_html_(self) -> str:
        """The table, for notebooks."""


@frozen(repr=False)
class CostReport(Costs):
    """The costs of a program by line, the most expensive first.

    >>> import verax, verax.numpy as vnp
    >>> print(verax.debug.costs(vnp.sin, device="h100")(vnp.ones(1000)).title)
    sin: 1k flops, 8kB, at least 2.388e-06 ms on h100
    """

    __module__ = "verax.debug"

    name: str
    device: Device
    lines: tuple[LineCost, ...]
    devices: int = 1
    """Operations and bytes are of all together; each has an even share of the time."""

    @property
    def flops(self) -> float:
        """All operations."""
        return sum(line.flops for line in self.lines)

    @property
    def bytes(self) -> float:
        """All bytes that are read and written."""
        return sum(line.bytes for line in self.lines)

    @property
    def time(self) -> float:
        """The least time that the device needs, in seconds."""
        return sum(line.time for line in self.lines)

    def at(self, **sizes: int) -> "CostReport":
        """The report itself, which has no variables: other names are refused.

        Raises:
            TypeError: there is one.
        """
        if sizes:
            raise TypeError(f"{self.name} has no symbolic size {', '.join(sizes)}")
        return self

    def cells(self, entry: LineCost) -> tuple[str, ...]:
        """The row of a line in a table."""
        arrow = "← " if entry.kind == "cotangent" else ""
        code = arrow + (entry.code or "(of no line)")
        total = self.time or 1.0
        return (
            f"{entry.line:>4}  {code if len(code) <= 52 else code[:51] + '…'}",
            counted(entry.flops) + ("" if entry.estimated else "+"),
            counted(entry.bytes),
            f"{entry.intensity:.3g}",
            f"{1e6 * entry.time:.4g}",
            f"{100 * entry.time / total:.0f} %",
            entry.bound,
        )

    def __str__(self) -> str:
        numbers = [cells[:-1] for cells in (HEADS, *map(self.cells, self.lines))]
        bounds = ["bound", *[entry.bound for entry in self.lines]]
        rows = zip(columns(numbers, left=1), bounds, strict=True)
        return "\n".join([self.title, *[f"{row}  {bound}" for row, bound in rows]])

    @property
    def title(self) -> str:
        """The sums, in a line."""
        several = f"{self.devices} x " if self.devices > 1 else ""
        return (
            f"{self.name}: {counted(self.flops)} flops, {counted(self.bytes)}B, at "
            f"least {1e3 * self.time:.4g} ms on {several}{self.device.name}"
        )

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return report(table(self.title, HEADS, list(map(self.cells, self.lines))))


HEADS: Final = ("line", "flops", "bytes", "flops/byte", "µs", "share", "bound")


def counted(x: float) -> str:
    """A number with three digits and a prefix."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:.3g}{prefix}"
    return f"{x:.3g}"


def measured_cpu() -> Device:
    """This machine: a product of matrices and a copy, timed a few times."""
    x, y = np.ones((768, 768), np.float32), np.ones(1 << 23, np.float32)
    product, copy = jit(lambda x: x @ x), jit(lambda y: y + 1)

    def fastest(run: Callable[[Any], Any], x: object) -> float:
        x = run(x).block_until_ready()  # on the device from now on
        times = []
        for _ in range(5):
            start = time.perf_counter()
            run(x).block_until_ready()
            times.append(time.perf_counter() - start)
        return min(times)

    flops = 2 * 768**3 / fastest(product, x)
    return Device("this CPU", flops, 2 * y.nbytes / fastest(copy, y), np.inf)


def device_of(device: str | Device, what: str = "costs") -> Device:
    """A device by its name; `what` is asked for it.

    Raises:
        ValueError: there is none of that name.
    """
    if isinstance(device, Device):
        return device
    if device == "cpu":
        return measured_cpu()
    if device not in KNOWN:
        names = ", ".join(map(repr, ("cpu", *KNOWN)))
        raise ValueError(
            f"{what}: no device is called {shown(device)}; there are {names}, or give "
            "a verax.debug.Device(name, flops, bandwidth, memory)"
        )
    return KNOWN[device]


# -----------------------------------------------------------------------------
# Counting.


@define(eq=False, repr=False)
class Sum(ReprMixin):
    """The costs of a line, so far."""

    source: Source
    flops: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    estimated: bool = True


def fuses(eqn: Eqn) -> bool:
    """Whether a compiler computes the equation where its result is read."""
    traits = traits_of(eqn.primitive)
    return traits.view or traits.fuses or traits.work is Work.CHEAP


def stored(jaxpr: Jaxpr) -> set[Var]:
    """The values in memory: all that are not computed where they are read."""
    values = {*jaxpr.constvars, *jaxpr.invars}
    inlined: set[Var] = set()
    for eqn in jaxpr.eqns:
        reads_memory = not (fuses(eqn) or traits_of(eqn.primitive).summed)
        if reads_memory:
            values.update([a for a in eqn.invars if isinstance(a, Var)])
        (inlined if fuses(eqn) else values).update(eqn.outvars)
    values.update([a for a in jaxpr.outvars if isinstance(a, Var)])
    return values


class Counter:
    """Adds the costs of programs up, by line."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.sums: dict[object, Sum] = {}

    def count(self, jaxpr: Jaxpr, times: float, known: bool) -> None:
        """Count a program that runs so many times."""
        memory = stored(jaxpr)
        for eqn in jaxpr.eqns:
            if holds_programs(eqn):
                self.inside(eqn, times, known)
                continue
            ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
            flops = flops_of(eqn, ins, outs)
            moved = self.moved(eqn, memory)
            self.add(
                eqn, times * (flops or 0.0), times * moved, known and flops is not None
            )

    def moved(self, eqn: Eqn, memory: set[Var]) -> float:
        """The bytes that an equation reads and writes in memory."""
        operands = {a: a.aval for a in eqn.invars if isinstance(a, Var) and a in memory}
        ins = sum(map(bytes_of, operands.values()))
        outs = sum([bytes_of(v.aval) for v in eqn.outvars if v in memory])
        traits = traits_of(eqn.primitive)
        if traits.reads_part or traits.writes_part is not None:
            return min(float(ins + outs), bytes_moved(eqn))
        return 0.0 if traits.view else float(ins + outs)

    def inside(self, eqn: Eqn, times: float, known: bool) -> None:
        """Count the programs of an equation: of a choice, the one that costs most."""
        runs = trips(eqn)
        programs = list(eqn.params.subjaxprs(aside=False))
        if is_choice(eqn):
            programs = [max(programs, key=lambda p: counted_alone(p, self.device))]
        for jaxpr in programs:
            here = times * (1.0 if runs is None else runs)
            self.count(jaxpr, here, known and runs is not None)

    def add(self, eqn: Eqn, flops: float, moved: float, known: bool) -> None:
        """Add the cost of an equation to its line."""
        source = eqn.source
        key = source.file, source.line, source.backward
        entry = self.sums.setdefault(key, Sum(source))
        sizes = [v.aval.dtype.itemsize for v in eqn.outvars] or [4]
        entry.flops += flops
        entry.bytes += moved
        entry.seconds += flops / self.device.peak(max(sizes))
        entry.estimated &= known


def counted_alone(jaxpr: Jaxpr, device: Device) -> float:
    """The time of one run of a program."""
    counter = Counter(device)
    counter.count(jaxpr, 1.0, True)
    return sum(line.time for line in lines_of(counter.sums.values(), device))


def lines_of(sums: Iterable[Sum], device: Device) -> list[LineCost]:
    """The lines, with the time that the device needs."""
    lines = []
    for entry in sums:
        source, memory = entry.source, entry.bytes / device.bandwidth
        lines.append(
            LineCost(
                source.file,
                source.line,
                source.function,
                source.text,
                "cotangent" if source.backward else "value",
                entry.flops,
                entry.bytes,
                max(entry.seconds, memory),
                "compute" if entry.seconds > memory else "memory",
                entry.estimated,
            )
        )
    return lines


def lines_in(jaxpr: Jaxpr, device: Device) -> list[LineCost]:
    """The costs of a program by line, the most expensive first."""
    counter = Counter(device)
    counter.count(jaxpr, 1.0, True)
    return sorted(lines_of(counter.sums.values(), device), key=lambda x: -x.time)


def line_totals(jaxpr: Jaxpr) -> list[LineTotal] | None:
    """What each line costs, for the page; None of symbolic sizes.

    Operations and bytes are the same on every device, but for the dearest branch.
    """
    if any([aval.symbolic for aval in jaxpr.in_avals]):
        return None
    return [
        LineTotal(
            one.file,
            one.line,
            one.kind == "cotangent",
            one.flops,
            one.bytes,
            one.estimated,
        )
        for one in lines_in(jaxpr, KNOWN["h100"])
    ]


def costs(
    fun: Callable[..., object], *, device: str | Device = "cpu"
) -> Callable[..., Costs]:
    """A function that says what each line of `fun` costs on a device.

    Operations are counted from types: two for each multiplication in a product of
    matrices or a convolution, one for each element of what works element by element.
    Bytes are those of values that are in memory: not of what a compiler computes where
    it is read. Loops count as often as they run, a choice as its dearest branch. Over a
    mesh all devices are counted together, and share the time evenly.

    Args:
        fun: the function; it may be a gradient, a `vmap` or any other composition, and
            is traced as by `jit`, neither compiled nor run.
        device: "cpu" (this machine, which is measured), "h100", "h200", "b200", "a100",
            "v100", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", or a
            `verax.debug.Device`.

    Returns:
        A function of the arguments of `fun`, which may be `ShapeDtypeStruct`s, that
        returns `Costs`: a `CostReport`; of symbolic sizes, `CostFormulas`.

    Raises:
        TypeError: `fun` is not a function.
        ValueError: there is no device of that name.

    >>> import verax, verax.numpy as vnp
    >>> x, y = vnp.ones((64, 32)), vnp.ones((32, 8))
    >>> report = verax.debug.costs(vnp.matmul, device="h100")(x, y)
    >>> report.flops, report.bytes
    (32768.0, 11264.0)
    """
    check_callable("costs", fun)
    target = device_of(device)
    function = fun if isinstance(fun, PjitFunction) else jit(fun)

    @wraps(fun)
    def counting(*args: object, **kwargs: object) -> Costs:
        stage = of_arrays(function.trace(*args, **kwargs))
        count = 1 if stage.placement is None else len(stage.placement.devices)
        if any([aval.symbolic for aval in stage.traced.jaxpr.in_avals]):
            formulas = loaded("verax.explorer.formulas", "formulas_of")
            result: Costs = formulas(function_name(fun), stage.traced.jaxpr, target)
            return result
        lines = lines_in(stage.traced.jaxpr, target)
        shares = tuple([evolve(line, time=line.time / count) for line in lines])
        return CostReport(function_name(fun), target, shares, count)

    return counting
