"""Floor 6: the law of loops: a scan is the unrolled loop, and a while that counts.

One idea: both are written out as programs, so that not only their values are compared
but also what the transformations make of them::

    unrolled(jaxpr)     # the body as often as the loop runs, on slices, then stacked
    counted(jaxpr)      # a while with a counter, which writes the rows itself
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import define

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, int32
from verax.ir.jaxpr import Atom, Eqn, Jaxpr
from verax.ir.walk import interpret, itself, walk
from verax.ops.calls.call import inlined
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import WhileParams
from verax.ops.core import CORE
from verax.ops.elementwise.arith import add, sub
from verax.ops.elementwise.compare import lt
from verax.ops.indexing.dynamic_slice import dynamic_slice, dynamic_update_slice
from verax.ops.reductions.reduce import reduce_min
from verax.ops.structure.create import zeros
from verax.ops.structure.joining import concatenate
from verax.ops.structure.slicing import slice
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import Builder, program, rebuilt
from verax.rules.rows.row import NDArray
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Skipped, broken
from verax.verify.laws.agreement import Run, agree, well_formed
from verax.verify.laws.derivatives import (
    directions,
    filled,
    need_forward,
    need_transpose,
    tangent_types,
)

type Loop = Callable[[ScanParams, Sequence[Array]], Sequence[object]]


def unroll(p: ScanParams, args: Sequence[Array]) -> Sequence[object]:
    """The loop written out."""
    consts, carry, xs = p.parts(args)
    steps = range(p.length)
    result: dict[int, Sequence[Array]] = {}
    for i in reversed(steps) if p.reverse else steps:
        rows = [row_of(x, i) for x in xs]
        carry, result[i] = p.results(inlined(p.jaxpr, [*consts, *carry, *rows]))
    types = p.results(p.jaxpr.out_avals)[1]
    ys = [stacked([result[i][k] for i in steps], aval) for k, aval in enumerate(types)]
    return [*carry, *ys]


def row_of(x: Array, i: int) -> Array:
    """Row i."""
    starts = (i, *[0] * (x.ndim - 1))
    row = slice(x, starts, (i + 1, *x.shape[1:]))
    return CORE.reshape(row, x.shape[1:])


def stacked(rows: Sequence[Array], aval: ShapedArray) -> Array:
    """The rows as one array."""
    if not rows:
        return zeros(aval.with_shape((0, *aval.shape)))
    parts = [CORE.reshape(x, (1, *aval.shape)) for x in rows]
    return concatenate(parts, 0)


def count(p: ScanParams, args: Sequence[Array]) -> Sequence[object]:
    """The loop as a while that counts and writes rows."""
    if p.length == 0:
        return unroll(p, args)  # no row can be read
    consts, carry, xs = p.parts(args)
    types = p.results(p.jaxpr.out_avals)[1]
    ys = [zeros(a.with_shape((p.length, *a.shape))) for a in types]
    index = ShapedArray((), int32)
    state = [index, *[x.aval for x in (*carry, *ys)]]
    given = [x.aval for x in (*consts, *xs)]

    def step(*operands: Array) -> Sequence[object]:
        fixed, rest = operands[: len(given)], operands[len(given) :]
        i, before, made = rest[0], rest[1 : 1 + len(carry)], rest[1 + len(carry) :]
        at = sub(np.int32(p.length - 1), i) if p.reverse else i
        rows = [
            CORE.reshape(
                dynamic_slice(x, start_of(at, x), (1, *x.shape[1:])), x.shape[1:]
            )
            for x in fixed[len(consts) :]
        ]
        after, row = p.results(
            inlined(p.jaxpr, [*fixed[: len(consts)], *before, *rows])
        )
        written = [
            dynamic_update_slice(y, CORE.reshape(r, (1, *r.shape)), start_of(at, y))
            for y, r in zip(made, row, strict=True)
        ]
        return [add(i, np.int32(1)), *after, *written]

    params = WhileParams(
        program([*given, *state], step),
        len(given),
        program(state, lambda i, *_: [lt(i, np.int32(p.length))]),
        0,
    )
    return while_p.bind(params, *consts, *xs, np.int32(0), *carry, *ys)[1:]


def start_of(i: Array, x: Array) -> list[object]:
    """The start of row i."""
    return [i, *[np.int32(0)] * (x.ndim - 1)]


def written_as(jaxpr: Jaxpr, loop: Loop) -> Jaxpr:
    """The program with another way to loop instead of its scans."""

    def write(builder: Builder, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom]:
        if eqn.primitive is not scan_p or not isinstance(eqn.params, ScanParams):
            return builder.copy(eqn, ins)
        with interpreting(builder):
            outs = loop(eqn.params, builder.tracers(ins))
        return [builder.atom(x) for x in outs]

    return rebuilt(jaxpr, write, "a law")


def loops_agree(engine: StandardEngine, case: Case) -> None:
    """A scan is its unrolled loop and a while, in values and derivatives."""
    jaxpr = case.jaxpr
    if not any(eqn.primitive is scan_p for eqn in jaxpr.eqns):
        raise Skipped("there is no scan")
    other, third = written_as(jaxpr, unroll), written_as(jaxpr, count)
    want = engine.evaluate(jaxpr, case.values)
    for what, written_out in (("the unrolled loop", other), ("the while", third)):
        well_formed("loops", case, what, written_out)
        got = engine.evaluate(written_out, case.values)
        run = Run(jaxpr, case.values)
        agree("loops", engine, case, f"{what} differs", got, want, run)
    if not any(case.active):
        return
    need_forward(case)
    first, second, last = [pushed(engine, case, j) for j in (jaxpr, other, third)]
    run = Run(other, case.values)
    agree("loops", engine, case, "jvp of the unrolled loop", second, first, None)
    agree("loops", engine, case, "jvp of the while", last, first, None)
    both = [pulled(engine, case, j) for j in (jaxpr, other)]
    agree("loops", engine, case, "vjp of the unrolled loop", both[1], both[0], None)


def pushed(engine: StandardEngine, case: Case, jaxpr: Jaxpr) -> list[NDArray]:
    """Results and all tangents of a program for the tangents of the case."""
    active, n = case.active, len(jaxpr.outvars)
    program, mask = engine.jvp(jaxpr, active)
    ts = directions(case, tangent_types(jaxpr.in_avals, active), 1)
    outs = engine.evaluate(program, (*case.values, *ts))
    return [*outs[:n], *filled(jaxpr.out_avals, mask, outs[n:])]


def pulled(engine: StandardEngine, case: Case, jaxpr: Jaxpr) -> list[NDArray]:
    """All cotangents of the operands for cotangents of the case."""
    active, n = case.active, len(jaxpr.outvars)
    forward, tangent, mask = engine.linearize(jaxpr, active)
    need_transpose(tangent)
    saved = engine.evaluate(forward, case.values)[n:]
    types = tangent_types(jaxpr.in_avals, active)
    linear = (False,) * len(saved) + (True,) * len(types)
    back, live = engine.transpose(tangent, linear, (True,) * sum(mask))
    every = directions(case, [a.tangent() for a in jaxpr.out_avals], 2)
    cts = [ct for ct, flag in zip(every, mask, strict=True) if flag]
    return filled(types, live, engine.evaluate(back, (*saved, *cts)))


# -----------------------------------------------------------------------------
# The law that passing through the programs of an equation changes nothing.
#
# A transformation that leaves every program as it is, and has a state that
# nobody changes, must give the values of the program, and that state::
#
#     with_state(jaxpr, told=False)    # (inputs, state) -> (outputs, state)


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
