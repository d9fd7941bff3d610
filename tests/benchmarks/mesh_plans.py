"""How well `debug.plan` says what a mesh takes for which it does not compile.

The idea: each program is planned for meshes of up to 64 devices from meshes of 16 and
fewer, and held to the program that XLA makes for the mesh itself: the memory of a
device, and each collective with its kind, axes, bytes and number.

    python -m tests.benchmarks.mesh_plans            # the tables of docs/mesh-plans.md
    python -m tests.benchmarks.mesh_plans recurrent
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from tests.benchmarks.mesh_programs import PROGRAMS, Step, gpt_sharded, mesh_of
from verax.debug import Collective, MeshPlan, plan

MESHES = ((4, 8), (8, 4), (16, 2), (4, 16), (8, 8), (16, 4))
FEW = 16
HEADS = ("program", "memory of a device", "error", "within 10 %", "collectives")

type Totals = Mapping[tuple[str, tuple[str, ...], int, int, bool], tuple[float, float]]
"""For a kind, axes, number of devices and line: bytes, and what a device sends."""


@frozen
class Held:
    """A plan from smaller meshes, beside what XLA says of the mesh."""

    name: str
    planned: int
    measured: int
    expected: Totals
    actual: Totals

    @property
    def error(self) -> float:
        """The planned memory over the measured, less one."""
        return self.planned / self.measured - 1

    @property
    def same(self) -> bool:
        """Whether all collectives are the same."""
        return self.expected == self.actual


def totals(entries: Sequence[Collective]) -> Totals:
    """What is sent, by what sends it."""
    out: dict[tuple[str, tuple[str, ...], int, int, bool], tuple[float, float]] = {}
    for one in entries:
        key = one.kind, one.axes, one.devices, one.line, one.backward
        size, sent = out.get(key, (0.0, 0.0))
        out[key] = size + one.total, sent + one.sent
    return {key: (round(a), round(b)) for key, (a, b) in out.items()}


def held(name: str, step: Step, sizes: tuple[int, int], few: int = FEW) -> Held:
    """A program on a mesh."""
    fun, arguments = step
    mesh = mesh_of(*sizes)
    expected = plan(fun, mesh=mesh, most=few)(*arguments)
    whole = plan(fun, mesh=mesh)(*arguments)
    assert expected.samples
    assert not whole.samples
    return Held(
        name,
        expected.memory.peak,
        whole.memory.peak,
        totals(expected.collectives),
        totals(whole.collectives),
    )


def cells(name: str, results: Sequence[Held]) -> tuple[str, ...]:
    """The row of a program."""
    worst = max(results, key=lambda one: abs(one.error))
    size = max([one.measured for one in results])
    same = sum([one.same for one in results])
    kinds = sum([len(one.actual) for one in results]) // len(results)
    return (
        name,
        f"up to {size / 1e6:.3g} MB",
        f"up to {100 * abs(worst.error):.1f} %",
        f"{sum([abs(one.error) < 0.1 for one in results])} of {len(results)}",
        f"{kinds}, the same on {same} of {len(results)} meshes",
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, in Markdown."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join([f"| {' | '.join(row)} |" for row in lines])


# -----------------------------------------------------------------------------
# A transformer on 64 to 16,384 devices.

LARGE: Final = {
    "depth": 32,
    "width": 4096,
    "heads": 32,
    "words": 32768,
    "batch": 2048,
    "length": 2048,
}
SIMULATED: Final = (16, 32, 64, 128, 256, 512, 1024, 2048)
TIMES: Final = (
    "devices",
    "memory",
    "compute",
    "HBM",
    "model",
    "data",
    "latency",
    "step",
    "tokens/s",
    "MFU",
    "without overlap",
    "bound by",
)


def simulated(data: int, device: str = "h100") -> tuple[str, ...]:
    """The row of a mesh with eight devices along `model`."""
    fun, arguments = gpt_sharded(**LARGE)
    mesh = mesh_of(data, 8)
    report = plan(fun, mesh=mesh, device=device)(*arguments)
    apart = plan(fun, mesh=mesh, device=device, overlap=False)(*arguments)
    parts = ("compute", "memory", "along model", "along data", "latency")
    tokens = LARGE["batch"] * LARGE["length"] / report.time
    return (
        f"{report.devices:,}",
        memory_cell(report),
        *[milli(report.busy[name]) for name in parts],
        milli(report.time),
        f"{tokens / 1e6:.1f}M",
        f"{100 * report.mfu:.0f} %",
        milli(apart.time),
        report.bound,
    )


def memory_cell(report: MeshPlan) -> str:
    """The memory of a device, and whether that is too much."""
    size = f"{report.memory.peak / 1e9:.1f} GB"
    return size if report.fits else f"{size} (too much)"


def milli(seconds: float) -> str:
    """Seconds in thousandths."""
    return f"{1e3 * seconds:,.0f} ms"


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.mesh_plans")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}")
    given = parser.parse_args(arguments).names
    rows = []
    for name in given or PROGRAMS:
        step = PROGRAMS[name]()
        rows.append(cells(name, [held(name, step, sizes) for sizes in MESHES]))
    print(table(HEADS, rows))
    for device in () if given else ("h100", "tpu-v5p"):
        print(f"\n{device}\n")
        print(table(TIMES, [simulated(data, device) for data in SIMULATED]))


if __name__ == "__main__":
    main(sys.argv[1:])
