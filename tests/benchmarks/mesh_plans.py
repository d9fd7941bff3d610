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
from typing import Any

from attrs import frozen

from tests.benchmarks.mesh_programs import PROGRAMS, Step, gpt_sharded, mesh_of
from verax.debug import Collective, MeshPlan, collectives, plan

MESHES = ((4, 8), (8, 4), (16, 2), (4, 16), (8, 8), (16, 4))
FEW = 16
HEADS = ("program", "memory of a device, at most", "error, at most", "collectives")

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
        f"{size / 1e6:.3g} MB",
        f"{100 * worst.error:+.1f} %",
        f"{kinds}, the same on {same} of {len(results)} meshes",
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, in Markdown."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join([f"| {' | '.join(row)} |" for row in lines])
