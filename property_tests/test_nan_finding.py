"""Laws of finding NaNs: flags change no value, and blame the equation that it was.

What is to blame is known from an interpreter that looks at every equation as it goes.
NaNs are planted at every equation of random programs, in bodies of loops and branches.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen
from hypothesis import given, settings, strategies as st

from verax.backend.eager.interpreter import as_array
from verax.backend.eager.nan_checks import Search, search
from verax.ir.dtypes import is_float, is_inexact
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import Path, interpret, read, walk
from verax.ops.control.cond import cond_lanes_p
from verax.ops.elementwise.arith import div, sub
from verax.ops.table import ROWS
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import NDArray
from verax.rules.values.state import interpreting
from verax.transforms.engine.engine import STANDARD, evaluate_eqn, literal_value
from verax.transforms.nans import NONE, Finding, Kind, flag, is_bad_value, is_open
from verax.verify.cases.case import Case
from verax.verify.cases.nested import DRAWS
from verax.verify.random_programs import composable, programs

FULL = composable(ROWS, "lower")
FLAT = tuple(row for row in FULL if row not in DRAWS)
# Which lane comes first is no question of time.
NESTED = tuple(row for row in FULL if row is not cond_lanes_p)
SMALL = 5
few = settings(max_examples=max(4, settings().max_examples // 10))


@frozen(eq=False)
class Watcher:
    """An engine that looks at every equation that it evaluates.

    `seen` is what was found first: the equation and its operands.
    """

    kind: Kind
    seen: list[tuple[Eqn, list[NDArray]]]

    def __getattr__(self, name: str) -> Any:
        return getattr(STANDARD, name)

    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        return interpret(jaxpr, args, self.results, literal_value)

    def results(self, eqn: Eqn, given: list[NDArray]) -> list[NDArray]:
        inside = transparent(eqn)
        engine: Any = self if inside else STANDARD
        outs = evaluate_eqn(engine, eqn, given)
        if not self.seen and not inside and self.made(eqn, given, outs):
            self.seen.append((eqn, given))
        return outs

    def made(self, eqn: Eqn, given: Sequence[NDArray], outs: Sequence[NDArray]) -> bool:
        """Whether a result is bad and no operand is."""
        clean = not any(
            is_inexact(a.aval.dtype) and is_bad_value(value, self.kind)
            for a, value in zip(eqn.invars, given, strict=True)
            if type(a) is Var or self.kind is not Kind.NAN
        )
        pairs = zip(eqn.outvars, outs, strict=True)
        bad = any(
            is_inexact(v.aval.dtype) and is_bad_value(value, self.kind)
            for v, value in pairs
        )
        return clean and bad


def transparent(eqn: Eqn) -> bool:
    """Whether NaNs are looked for inside the jaxprs of an equation."""
    return is_open(eqn)


def same_bits(x: NDArray, y: NDArray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def planted(jaxpr: Jaxpr, path: Path) -> Jaxpr:
    """The program with 0 / 0 after the equation at `path`, in place of its result."""
    builder = Builder("a law")
    env = builder.input_atoms(jaxpr.in_avals)
    for number, eqn in enumerate(jaxpr.eqns):
        ins = read(eqn.invars, env)
        here = number == path[0]
        if here and len(path) > 1:
            eqn = evolve_inside(eqn, path[1], lambda inner: planted(inner, path[2:]))
        outs: list[Atom] = list(builder.copy(eqn, ins))
        if here and len(path) == 1:
            for i, out in enumerate(outs):
                if is_float(out.aval.dtype):
                    with interpreting(builder):
                        (x,) = builder.tracers((out,))
                        zero = sub(x, x)
                        outs[i] = builder.atom(div(zero, zero))
        env += outs
    return builder.close(read(jaxpr.outvars, env))[0]


def evolve_inside(eqn: Eqn, which: int, change: Callable[[Jaxpr], Jaxpr]) -> Eqn:
    """The equation with one of its jaxprs changed."""
    target = tuple(eqn.params.subjaxprs())[which]
    changes: dict[str, Any] = {}
    for name, value in fields_of(eqn):
        if value is target:
            changes[name] = change(target)
        elif isinstance(value, tuple) and any(item is target for item in value):
            changes[name] = tuple(
                change(item) if item is target else item for item in value
            )
    return evolve(eqn, params=evolve(eqn.params, **changes))


def fields_of(eqn: Eqn) -> Iterator[tuple[str, Any]]:
    for attribute in type(eqn.params).__attrs_attrs__:
        yield attribute.name, getattr(eqn.params, attribute.name)


def blamed(
    jaxpr: Jaxpr, values: Sequence[NDArray], kind: Kind, compiled: bool
) -> Finding | None:
    how = Search("law", lambda: [""] * len(values), compiled)
    typed = [as_array(x, v.aval) for x, v in zip(values, jaxpr.invars, strict=True)]
    return search(STANDARD, jaxpr, typed, kind, how)[1]


def check_blame(jaxpr: Jaxpr, values: Sequence[NDArray], kind: Kind) -> None:
    """The interpreted program blames the equation that the watcher saw."""
    watcher = Watcher(kind, [])
    with np.errstate(all="ignore"):
        expected = watcher.evaluate(jaxpr, values)
        actual = STANDARD.evaluate(flag(jaxpr, kind), list(values))
    count = len(jaxpr.outvars)
    assert all(map(same_bits, actual[:count], expected))
    finding = blamed(jaxpr, values, kind, compiled=False)
    if not watcher.seen:
        assert actual[count] == NONE
        assert finding is None or finding.eqn is None
        return
    eqn, operands = watcher.seen[0]
    assert finding is not None
    assert finding.eqn == eqn
    assert finding.operands is not None
    assert all(map(same_bits, finding.operands, operands))


@settings(max_examples=max(10, settings().max_examples // 4))
@given(programs(FLAT))
def test_the_right_equation_of_flat_programs(case: Case) -> None:
    for kind in Kind:
        check_jaxpr(flag(case.jaxpr, kind), inferred)
    check_blame(case.jaxpr, case.values, Kind.NAN)


@few
@given(programs(NESTED, most=SMALL), st.data())
def test_planted_in_programs_with_bodies(case: Case, data: st.DataObject) -> None:
    places = [
        path
        for path, eqn in walk(case.jaxpr)
        if any(is_float(v.aval.dtype) for v in eqn.outvars)
    ]
    jaxpr = case.jaxpr
    if places:
        jaxpr = planted(jaxpr, data.draw(st.sampled_from(places)))
    check_jaxpr(jaxpr, inferred)
    check_blame(jaxpr, case.values, Kind.NAN)


@few
@given(programs(NESTED, most=3), st.data())
def test_compiled_and_interpreted_agree(case: Case, data: st.DataObject) -> None:
    """On programs whose NaN is planted: what XLA computes otherwise differs in bits."""
    places = [
        path
        for path, eqn in walk(case.jaxpr)
        if any(is_float(v.aval.dtype) for v in eqn.outvars)
    ]
    if not places:
        return
    jaxpr = planted(case.jaxpr, data.draw(st.sampled_from(places)))
    first = blamed(jaxpr, case.values, Kind.NAN, compiled=False)
    if first is None or first.primitive != "div":
        # Another equation was first: XLA may overflow elsewhere than NumPy does.
        return
    second = blamed(jaxpr, case.values, Kind.NAN, compiled=True)
    assert second is not None
    assert first.path == second.path
    steps = [[level.step for level in x.levels] for x in (first, second)]
    assert steps[0] == steps[1]


@few
@given(programs(FLAT, depth=3, most=SMALL))
def test_a_site_for_each_lane(case: Case) -> None:
    """The flagged program, batched, finds in each lane what it finds alone."""
    flagged = flag(case.jaxpr, Kind.NAN)
    count, size = len(case.jaxpr.outvars), case.depth
    batched, axes = STANDARD.batch(flagged, size, (0,) * len(case.stacks))
    with np.errstate(all="ignore"):
        outs = STANDARD.evaluate(batched, list(case.stacks))
        sites = outs[count]
        for lane in range(size):
            alone = STANDARD.evaluate(flagged, list(case.at(lane)))
            site = sites if axes[count] is None else sites[lane]
            assert site == alone[count]
