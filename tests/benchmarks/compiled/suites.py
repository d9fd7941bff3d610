"""The suites by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from . import elementwise, programs, sweep, workloads
from .cases import Case


@dataclass(frozen=True)
class Suite:
    """Cases, whose programs take words of all libraries, or the modules of jax.

    With `wide` there are types of 64 bits.
    """

    cases: dict[str, Case]
    worded: bool = True
    wide: bool = False


def of_workloads(table: dict[str, workloads.Workload]) -> Iterable[Case]:
    for name, (run, operands, grads, eager) in table.items():
        draw = partial(drawn, operands)
        yield Case(name, run, draw, not grads, grads, eager)


def drawn(operands: object) -> tuple[object, ...]:
    assert callable(operands)
    return tuple(operands(np.random.RandomState(0)))


def by_name(cases: Iterable[Case]) -> dict[str, Case]:
    return {case.name: case for case in cases}


SUITES = {
    "workloads": Suite(by_name(of_workloads(workloads.WORKLOADS))),
    "programs": Suite(by_name(of_workloads(programs.PROGRAMS))),
    "elementwise": Suite(by_name(elementwise.cases()), wide=True),
    "sweep": Suite(by_name(sweep.cases()), worded=False),
}
