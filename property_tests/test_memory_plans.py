"""Laws of plans for memory: values stay, choices are the cheapest, the model holds.

What runs again runs on what is kept, so that the interpreter gives the same bits. That
a choice is the cheapest is checked against all others, on programs of few steps.
"""

from collections.abc import Collection, Iterable
from itertools import combinations

import numpy as np
from hypothesis import given, settings, strategies as st

from verax.ir.jaxpr import Jaxpr, Var
from verax.ir.reports.check import check_jaxpr
from verax.ops.table import ROWS
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import STANDARD
from verax.transforms.memory.crossing import Crossing
from verax.transforms.memory.plan import planned
from verax.transforms.memory.recompute import recomputed
from verax.transforms.memory.storage import (
    Step,
    Timeline,
    bytes_of,
    flat,
    steps_of,
    stored_values,
)
from verax.verify.cases.case import Case
from verax.verify.cases.nested import DRAWS
from verax.verify.random_programs import composable, programs

FULL = composable(ROWS, "lower")
FLAT = tuple(row for row in FULL if row not in DRAWS)
PRICES = (0.0, 0.3, 3.0, 30.0, 1e6)
few = settings(max_examples=max(4, settings().max_examples // 10))


def same_bits(x: NDArray, y: NDArray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def check_values(case: Case, jaxpr: Jaxpr) -> None:
    """Raise unless a program computes what the one of a case does, bit for bit."""
    check_jaxpr(jaxpr, inferred)
    with np.errstate(all="ignore"):
        expected = STANDARD.evaluate(case.jaxpr, list(case.values))
        actual = STANDARD.evaluate(jaxpr, list(case.values))
    assert all(map(same_bits, actual, expected))


def crossing_at(jaxpr: Jaxpr, place: int) -> Crossing:
    """What lives across an equation's place."""
    outs = [a for a in jaxpr.outvars if isinstance(a, Var)]
    free = {*jaxpr.invars, *outs}
    steps = steps_of(jaxpr, stored_values(jaxpr))
    early = [step for step in steps if step.place < place]
    late = {v for step in steps if step.place >= place for v in step.reads}
    made = [v for step in early for v in step.writes]
    return Crossing(early, [v for v in made if v in late and v not in free], free=free)


@settings(max_examples=max(10, settings().max_examples // 2))
@given(programs(FLAT), st.sampled_from(PRICES), st.data())
def test_values_stay_whatever_is_kept(
    case: Case, price: float, data: st.DataObject
) -> None:
    jaxpr = flat(case.jaxpr)
    place = data.draw(st.integers(0, len(jaxpr.eqns)))
    kept = crossing_at(jaxpr, place).graph().kept(price)
    check_values(case, recomputed(jaxpr, place, kept))


@few
@given(programs(FULL, most=6), st.sampled_from((0, 1, 100)))
def test_values_stay_under_a_limit(case: Case, limit: int) -> None:
    plan = planned(case.jaxpr, limit)
    check_values(case, plan.jaxpr)
    assert plan.peak <= Timeline.of(flat(case.jaxpr)).peak


def price_of(crossing: Crossing, kept: Collection[Var], price: float) -> float:
    """What a choice costs, infinitely if a step must not run again."""
    makers: dict[Var, Step] = {v: s for s in crossing.steps for v in s.writes}
    runs: dict[int, Step] = {}
    used: set[Var] = set()
    waiting = list(crossing.read)
    while waiting:
        v = waiting.pop()
        if v in kept:
            used.add(v)
            continue
        step = makers[v]
        if step.place not in runs:
            runs[step.place] = step
            waiting += [a for a in step.reads if a in makers and a not in crossing.free]
    work = sum(step.work for step in runs.values())
    return work + price * sum(bytes_of(v.aval) for v in used)


def subsets(values: Iterable[Var]) -> Iterable[tuple[Var, ...]]:
    """All subsets."""
    known = tuple(values)
    return (s for n in range(len(known) + 1) for s in combinations(known, n))


@settings(max_examples=max(10, settings().max_examples // 4))
@given(programs(FLAT, most=10), st.sampled_from((0.01, 0.7, 2.9, 41.3)), st.data())
def test_no_choice_is_cheaper(case: Case, price: float, data: st.DataObject) -> None:
    jaxpr = flat(case.jaxpr)
    place = data.draw(st.integers(0, len(jaxpr.eqns)))
    crossing = crossing_at(jaxpr, place)
    kept = crossing.graph().kept(price)
    ours = price_of(crossing, kept, price)
    values = [v for s in crossing.steps for v in s.writes if v not in crossing.free]
    best = min(price_of(crossing, s, price) for s in subsets(values[:12]))
    if len(values) <= 12:
        assert ours <= best * (1 + 1e-6) + 1e-6 or np.isinf(best)
