"""Laws of plans for memory: values stay, choices are the cheapest, the model holds.

What runs again runs on what is kept, so that the interpreter gives the same bits. That
a choice is the cheapest is checked against all others, on programs of few steps.
"""

from collections.abc import Callable, Collection, Iterable
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax import lax
from verax.ir.jaxpr import Jaxpr, Var
from verax.ir.reports.check import check_jaxpr
from verax.ops.control.scan import scan_p
from verax.ops.table import ROWS
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import STANDARD
from verax.transforms.memory.crossing import Crossing
from verax.transforms.memory.exact import best_within
from verax.transforms.memory.flows import by_paths, by_scipy
from verax.transforms.memory.loops import pairs_of, with_fewer_stacks
from verax.transforms.memory.nests import block_lengths, can_nest, in_blocks
from verax.transforms.memory.plan import Host, planned
from verax.transforms.memory.recompute import recomputed
from verax.transforms.memory.storage import (
    Step,
    Timeline,
    bytes_of,
    flat,
    hosted,
    steps_of,
    stored_values,
    total,
)
from verax.transforms.public import dce
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
    waits = [v for v in sorted(kept, key=lambda v: v.index) if data.draw(st.booleans())]
    moved = recomputed(jaxpr, place, kept, dict.fromkeys(waits, "pinned_host"))
    check_values(case, moved)
    assert hosted(moved) or not waits


@few
@given(
    programs(FULL, most=6),
    st.sampled_from((0, 1, 100)),
    st.sampled_from((None, Host("pinned_host", 0.0), Host("pinned_host", 5.0))),
)
def test_values_stay_under_a_limit(case: Case, limit: int, host: Host | None) -> None:
    plan = planned(case.jaxpr, limit, host)
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


@settings(max_examples=max(10, settings().max_examples // 4))
@given(programs(FLAT, most=10), st.floats(0, 1), st.data())
def test_no_choice_within_a_budget_is_better(
    case: Case, share: float, data: st.DataObject
) -> None:
    jaxpr = flat(case.jaxpr)
    place = data.draw(st.integers(0, len(jaxpr.eqns)))
    crossing = crossing_at(jaxpr, place)
    values = [v for s in crossing.steps for v in s.writes if v not in crossing.free]
    if len(values) > 10:
        return
    limit = int(share * total(crossing.read))
    sizes = [(s, total(s), price_of(crossing, s, 0.0)) for s in subsets(values)]
    best = min(work for _, size, work in sizes if size <= limit)
    found = best_within(crossing.graph(), limit)
    if found is None:
        assert np.isinf(best)
        return
    assert total(found) <= limit
    assert price_of(crossing, found, 0.0) <= best * (1 + 1e-6) + 1e-6
    rough = crossing.graph().within(limit)
    assert total(rough) <= limit or np.isinf(best)


@given(
    st.integers(2, 9),
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 40)), max_size=40
    ),
)
def test_both_ways_to_cut_agree(count: int, edges: list[tuple[int, int, int]]) -> None:
    unlike = [(a % count, b % count, w) for a, b, w in edges if a % count != b % count]
    rows, columns, weights = (np.array([e[i] for e in unlike], int) for i in range(3))
    ours = by_paths(count, rows, columns, weights)
    assert (ours == by_scipy(count, rows, columns, weights)).all()
    assert ours[0]


def stacked(jaxpr: Jaxpr) -> int:
    """The bytes of what the loops of a program return."""
    loops = [eqn for eqn in jaxpr.eqns if eqn.primitive is scan_p]
    return sum(bytes_of(v.aval) for eqn in loops for v in eqn.outvars)


STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sin": lambda h, x, w: vnp.sin(h),
    "tanh": lambda h, x, w: vnp.tanh(h),
    "bell": lambda h, x, w: vnp.exp(-h * h),
    "row": lambda h, x, w: h * x + vnp.cos(x),
    "product": lambda h, x, w: h @ w,
    "sum": lambda h, x, w: h + vnp.cumsum(h, 0) / 4,
    "kink": lambda h, x, w: vnp.where(h > 0, h, vnp.sin(h * w[0])),
    "sort": lambda h, x, w: vnp.sort(h),
    "loop": lambda h, x, w: lax.fori_loop(0, 3, lambda i, a: vnp.sin(a) * x, h),
}


@settings(max_examples=max(5, settings().max_examples // 10))
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    st.sampled_from((0, 1, 2, 4, 6, 12)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(PRICES),
)
def test_loops_that_stack_less_compute_the_same(
    names: list[str], length: int, reverse: bool, gives: bool, price: float
) -> None:
    def loss(w: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            for name in names:
                h = STEPS[name](h, x, w)
            return h, (vnp.sum(h) * x if gives else None)

        h, ys = lax.scan(step, h, xs, reverse=reverse)
        return vnp.sum(h) + (vnp.sum(vnp.sin(ys)) if gives else 0.0)

    rng = np.random.default_rng(len(names) + length)
    args = [rng.normal(size=s).astype(np.float32) for s in ((3, 3), (3,), (length, 3))]
    program = verax.make_jaxpr(verax.value_and_grad(loss, (0, 1, 2)))(*args)
    jaxpr = flat(dce(program).jaxpr)
    lean = with_fewer_stacks(jaxpr, price)
    check_jaxpr(lean, inferred)
    expected, actual = [STANDARD.evaluate(j, list(args)) for j in (jaxpr, lean)]
    assert all(map(same_bits, actual, expected))
    assert stacked(lean) <= stacked(jaxpr)
    for base in (jaxpr, lean):
        for pair in filter(can_nest, pairs_of(base)):
            for size in block_lengths(pair):
                nest = in_blocks(base, pair, size)
                check_jaxpr(nest, inferred)
                outs = STANDARD.evaluate(nest, list(args))
                assert all(map(same_bits, outs, expected))
