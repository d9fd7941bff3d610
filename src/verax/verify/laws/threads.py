"""Floor 6: the law that passing through the programs of an equation changes nothing.

One idea: a transformation that leaves every program as it is, and has a state that
nobody changes, must give the values of the program, and that state::

    with_state(jaxpr, told=False)    # (inputs, state) -> (outputs, state)
"""

from collections.abc import Sequence

import numpy as np
from attrs import define

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, int32
from verax.ir.jaxpr import Atom, Eqn, Jaxpr
from verax.ir.walk import interpret, itself, walk
from verax.ops.calls.subjaxprs import inlined
from verax.ops.reductions.reduce import reduce_min
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import Builder, program
from verax.rules.rows.row import NDArray
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Skipped, broken
from verax.verify.laws.agreement import agree, well_formed

STATE = (ShapedArray((), int32), ShapedArray((2,), float32))
VALUES: tuple[NDArray, ...] = (np.array(7, np.int32), np.array([0.5, -3.0], np.float32))
"""Of types that few carries have, so that a carry in the place of a state is seen."""


def threading_keeps_values(engine: StandardEngine, case: Case) -> None:
    """A state that no program changes passes through, and so do the values."""
    jaxpr, count = case.jaxpr, len(case.jaxpr.outvars)
    if not any(thread_of(eqn.primitive) for _, eqn in walk(jaxpr)):
        raise Skipped("no row says how to go through its programs")
    for told in (False, True):
        threaded = with_state(jaxpr, told)
        well_formed("thread", case, "the program with a state", threaded)
        got = engine.evaluate(threaded, [*case.values, *VALUES])
        want = engine.evaluate(jaxpr, case.values)
        agree(
            "thread",
            engine,
            case,
            "a state beside them changes values",
            got[:count],
            want,
            None,
            0.0,
            after=threaded,
        )
        if not all(map(same, got[count:], VALUES)):
            raise broken(
                "thread",
                case,
                "the state does not come back",
                got=str(got[count:]),
                want=str(VALUES),
            )


def same(x: NDArray, y: NDArray) -> bool:
    """Whether a state is the other: in a choice by elements, in each of them."""
    return x.dtype == y.dtype and x.shape == y.shape and bool(np.all(x == y))


def with_state(jaxpr: Jaxpr, told: bool) -> Jaxpr:
    """The program that takes and gives a state, through all of its equations.

    With `told` predicates of loops say that they change it.
    """
    builder = Builder("thread")
    inputs = builder.input_atoms(jaxpr.in_avals)
    state: list[Array] = [builder.input(aval) for aval in STATE]

    def write(eqn: Eqn, ins: list[Atom]) -> Sequence[Atom]:
        nonlocal state
        builder.source = eqn.source
        thread = thread_of(eqn.primitive)
        if thread is None:
            return builder.copy(eqn, ins)
        through = Carrying(tuple(eqn.params.subjaxprs()), state, told)
        with interpreting(builder):
            outs = thread(through, eqn.params, whole(builder.tracers(ins)))
        state = through.state
        return [builder.atom(x) for x in flat(outs)]

    outs = interpret(jaxpr, inputs, write, itself)
    return builder.close([*outs, *map(builder.atom, state)])[0]


@define(eq=False, repr=False)
class Carrying(OfWholeValues):
    """The programs of one equation, which pass the state on."""

    state: list[Array]
    told: bool

    def enter(self, role: Role) -> Sequence[object]:
        return self.state

    def tells(self, number: int) -> bool:
        return self.told

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        inner = with_state(self.jaxprs[number], self.told)
        own = len(inner.outvars) - len(STATE)

        def test(*ins: Array) -> Sequence[object]:
            return inlined(inner, ins)[:own]

        if role is not Role.TEST or self.told:
            return inner
        return program(inner.in_avals, test)

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        if 0 not in lanes:
            self.state = [first(x, lanes) for x in state]


def first(x: Array, lanes: Shape) -> Array:
    """The first element of a batch; all are the same."""
    return reduce_min(x, range(len(lanes))) if lanes else x
