"""Types that mypy and pyright give to reports on programs."""

from typing import assert_type

import verax
import verax.numpy as vnp
from verax.debug import CostFormulas, CostReport, Costs, Formula

x = vnp.ones(3)


def costs() -> None:
    report = verax.debug.costs(vnp.sin, device="h100")(x)
    assert_type(report, Costs)
    assert_type(report.time, float)
    assert_type(report.at(), CostReport)
    assert_type(report.at().flops, float)
    assert_type(report.variables(), set[str])
    print(report.flops / 2, report.by_line(3)[0].bound, report.lines[0].time)


def formulas() -> None:
    (n,) = verax.export.symbolic_shape("n")
    report = verax.debug.costs(vnp.sin)(verax.ShapeDtypeStruct((n,), vnp.float32))
    assert_type(report.at(n=8), CostReport)
    assert_type(report.at(n=8).time, float)
    print(report.flops.at(n=8), report.lines[0].notes)
    if isinstance(report, CostFormulas):
        assert_type(report.flops, Formula)
