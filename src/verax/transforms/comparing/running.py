"""Floor 3: programs that run step by step, so that somebody can look in between.

One idea: loops, branches and batch elements are coroutines, which ask for the outputs
of their jaxprs one run at a time; who drives two of them at once sees both programs in
the same iteration::

    steps = steps_of(eqn, operands)
    step = next(steps)
    step = steps.send(outputs_of(step.jaxpr, step.inputs))    # until StopIteration

A `Runner` computes everything else, in its own way.
"""

from collections.abc import Generator, Sequence

import numpy as np
from attrs import define, evolve, field, frozen
from pyrsistent import pvector

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    NumpyDType,
    complex64,
    complex128,
    float64,
    is_complex,
    is_inexact,
    stored_dtype,
)
from verax.ir.jaxpr import (
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Var,
    array_literal,
    scalar_literal,
    variable,
)
from verax.ir.records import ReprMixin
from verax.ir.walk import map_subjaxprs, read_as
from verax.ops.calls.call import NamedCall, inline, stored_shape
from verax.ops.control.cond_params import CondLanesParams, CondParams, branch_of
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.ops.elementwise.convert import bitcast_convert_type_p
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import Engine, NDArray
from verax.rules.values.state import widths_of
from verax.transforms.comparing.alignment import is_open
from verax.transforms.engine.engine import evaluate_eqn, literal_value
from verax.transforms.nans import PREDICATE

type Values = Sequence[NDArray]


@frozen(eq=False, repr=False)
class Runner(ReprMixin):
    """Runs equations that are not gone through: one by one, in NumPy."""

    engine: Engine

    def converted(self, value: NDArray) -> NDArray:
        """An argument or a constant, as this runner has it."""
        return value

    def literal(self, literal: Literal) -> NDArray:
        """The value of a constant."""
        return self.converted(literal_value(literal))

    def run(self, jaxpr: Jaxpr, number: int, env: Values) -> list[list[NDArray]]:
        """The results of equation `number`, and of as many after it as go with it."""
        eqn = jaxpr.eqns[number]
        return [self.evaluated(eqn, read_as(eqn.invars, env, self.literal))]

    def evaluated(self, eqn: Eqn, operands: list[NDArray]) -> list[NDArray]:
        """The results of an equation."""
        return evaluate_eqn(self.engine, eqn, operands)


# -----------------------------------------------------------------------------
# The same program in another precision.
#
# Every float becomes one of the dtype, equation by equation; what depends on the bits
# of its own dtype runs in that, between conversions::
#
#     InDtype(engine, float64).run(jaxpr, number, env)


class Refused(Exception):
    """A program has an equation that means something in its own dtypes only."""


@frozen(eq=False, repr=False)
class InDtype(Runner):
    """Runs equations in NumPy, with all floats of one dtype."""

    dtype: NumpyDType
    known: dict[int, tuple[Eqn, Eqn | None]] = field(factory=dict)

    def converted(self, value: NDArray) -> NDArray:
        with np.errstate(all="ignore"):
            return value.astype(self.dtype_for(value.dtype), copy=False)

    def evaluated(self, eqn: Eqn, operands: list[NDArray]) -> list[NDArray]:
        if id(eqn) not in self.known:
            self.known[id(eqn)] = eqn, self.retyped(eqn)
        own = self.known[id(eqn)][1]
        if own is not None:
            with widths_of((self.dtype,)):
                return evaluate_eqn(self.engine, own, operands)
        with np.errstate(all="ignore"):
            narrow = [
                x.astype(stored_dtype(a.aval.dtype), copy=False)
                for x, a in zip(operands, eqn.invars, strict=True)
            ]
        return list(map(self.converted, evaluate_eqn(self.engine, eqn, narrow)))

    def dtype_for(self, dtype: NumpyDType) -> NumpyDType:
        """What becomes of a dtype."""
        if not is_inexact(dtype):
            return dtype
        if is_complex(dtype):
            return complex128 if self.dtype == float64 else complex64
        return self.dtype

    def type_of(self, aval: ShapedArray) -> ShapedArray:
        """What becomes of a type."""
        dtype = aval.dtype
        if not isinstance(dtype, np.dtype) or self.dtype_for(dtype) == dtype:
            return aval
        return aval.update(dtype=self.dtype_for(dtype))

    def retyped(self, eqn: Eqn) -> Eqn | None:
        """The equation on operands of the dtype; None if it is not the same there."""
        try:
            return self.retyped_eqn(eqn)
        except Refused:
            return None

    def retyped_eqn(self, eqn: Eqn) -> Eqn:
        """The equation on operands of the dtype.

        Raises:
            Refused: it has other results there, or depends on the bits.
        """
        if eqn.primitive is bitcast_convert_type_p:
            raise Refused
        params = self.params_of(eqn.params)
        invars = [self.retyped_atom(a) for a in eqn.invars]
        outvars = [variable(v.index, self.type_of(v.aval)) for v in eqn.outvars]
        row = self.engine.rules[eqn.primitive]
        try:
            with widths_of((self.dtype,)):
                avals = inferred(row, params, *[a.aval for a in invars])
        except (TypeError, ValueError):
            raise Refused from None
        due = [(v.aval.shape, v.aval.dtype) for v in outvars]
        if [(aval.shape, aval.dtype) for aval in avals] != due:
            raise Refused
        return eqn.replace(params=params, invars=invars, outvars=outvars)

    def retyped_atom(self, atom: Atom) -> Atom:
        """A variable or a constant of the dtype."""
        aval = self.type_of(atom.aval)
        if aval is atom.aval:
            return atom
        if isinstance(atom, Var):
            return variable(atom.index, aval)
        value = self.literal(atom)
        return array_literal(value, aval) if aval.shape else scalar_literal(value, aval)

    def params_of(self, params: Params) -> Params:
        """Params with the dtype for others, in the jaxprs within too."""
        changes: dict[str, object] = {}
        for name, old in params.items():
            if isinstance(old, np.dtype) and self.dtype_for(old) != old:
                changes[name] = self.dtype_for(old)
        changed: Params = evolve(params, **changes) if changes else params
        return map_subjaxprs(changed, self.retyped_jaxpr)

    def retyped_jaxpr(self, jaxpr: Jaxpr) -> Jaxpr:
        """A jaxpr within an equation that is not gone through."""
        flat = without_calls(jaxpr)
        return Jaxpr(
            (),
            tuple([variable(v.index, self.type_of(v.aval)) for v in flat.invars]),
            pvector([self.retyped_eqn(eqn) for eqn in flat.eqns]),
            tuple([self.retyped_atom(a) for a in flat.outvars]),
        )


def without_calls(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the equations of all functions that it calls."""
    return inline(
        jaxpr,
        lambda eqn: eqn.params.runs if isinstance(eqn.params, NamedCall) else None,
    )


# -----------------------------------------------------------------------------
# Equations that are gone through, as coroutines.


@frozen(eq=False, repr=False)
class Step(ReprMixin):
    """One run of a jaxpr of an equation: which of them, on what.

    `number` is that of the iteration or batch element; the inputs are, or begin as, the
    operands `places`.
    """

    which: int
    number: int | None
    jaxpr: Jaxpr
    inputs: list[NDArray]
    places: list[int]


type Steps = Generator[Step, list[NDArray], list[NDArray]]


def steps_of(eqn: Eqn, operands: Values) -> Steps:
    """The runs of the jaxprs of an equation; it returns the results."""
    p = eqn.params
    if isinstance(p, ScanParams):
        return scan_steps(p, operands)
    if isinstance(p, WhileParams):
        return while_steps(p, operands)
    if isinstance(p, CondLanesParams):
        return lane_steps(p, operands)
    assert isinstance(p, CondParams), "is_open knows the equation"
    return branch_steps(p, operands)


def scan_steps(p: ScanParams, operands: Values) -> Steps:
    consts, carry, xs = p.parts(operands)
    places = list(range(len(operands)))
    rows: list[list[NDArray]] = []
    for number in range(p.length):
        row = p.length - 1 - number if p.reverse else number
        inputs = [*consts, *carry, *[np.asarray(x[row]) for x in xs]]
        outs = yield Step(0, number, p.jaxpr, inputs, places)
        carry, ys = p.results(outs)
        rows.append(ys)
    ordered = rows[::-1] if p.reverse else rows
    return [*carry, *[np.stack(ys) for ys in zip(*ordered, strict=True)]]


def while_steps(p: WhileParams, operands: Values) -> Steps:
    for_test, for_body, carry = p.parts(operands)
    first, second, _ = p.parts(range(len(operands)))
    carries = list(range(len(first) + len(second), len(operands)))
    number = 0
    while True:
        test = [*for_test, *carry]
        (more,) = yield Step(PREDICATE, number, p.cond_jaxpr, test, [*first, *carries])
        if not more:
            return carry
        inputs = [*for_body, *carry]
        carry = yield Step(0, number, p.body_jaxpr, inputs, [*second, *carries])
        number += 1


def branch_steps(p: CondParams, operands: Values) -> Steps:
    index, *inputs = operands
    branch = branch_of(p, index)
    places = list(range(1, len(operands)))
    which = p.branches.index(branch)
    return (yield Step(which, None, branch, inputs, places))


def lane_steps(p: CondLanesParams, operands: Values) -> Steps:
    index, *rest = operands
    places = list(range(1, len(operands)))
    lanes: list[list[NDArray]] = []
    for number, lane in enumerate(np.ndindex(*p.lanes)):
        branch = branch_of(p, index[lane])
        inputs = [
            np.asarray(x[lane]) if flag else x
            for x, flag in zip(rest, p.mapped, strict=True)
        ]
        which = p.branches.index(branch)
        lanes.append((yield Step(which, number, branch, inputs, places)))
    outs = []
    for values, aval in zip(zip(*lanes, strict=True), p.out_avals, strict=True):
        outs.append(np.stack(values).reshape((*p.lanes, *stored_shape(aval))))
    return outs


# -----------------------------------------------------------------------------
# A program under way, and one that runs without being looked at.


@define(eq=False, repr=False)
class Frame(ReprMixin):
    """A program under way: the values of its variables so far."""

    runner: Runner
    jaxpr: Jaxpr
    env: list[NDArray]
    ahead: list[list[NDArray]] = field(factory=list)

    def advance(self, number: int) -> None:
        """Run the next equation, which has this number."""
        if not self.ahead:
            self.ahead = self.runner.run(self.jaxpr, number, self.env)
        self.env += self.ahead.pop(0)

    def read(self, atoms: Sequence[Atom]) -> list[NDArray]:
        """The values of atoms that are known already."""
        return read_as(atoms, self.env, self.runner.literal)

    def steps(self, number: int) -> Steps:
        """The runs of the jaxprs of an equation."""
        eqn = self.jaxpr.eqns[number]
        return steps_of(eqn, self.read(eqn.invars))


@define(eq=False, repr=False)
class Programs(ReprMixin):
    """The programs met so far, without calls, by identity."""

    known: dict[int, tuple[Jaxpr, Jaxpr]] = field(factory=dict)

    def flat(self, jaxpr: Jaxpr) -> Jaxpr:
        """The program without calls: one object each time."""
        if id(jaxpr) not in self.known:
            self.known[id(jaxpr)] = jaxpr, without_calls(jaxpr)
        return self.known[id(jaxpr)][1]

    def outputs(self, runner: Runner, jaxpr: Jaxpr, inputs: Values) -> list[NDArray]:
        """The outputs of a program."""
        frame = Frame(runner, self.flat(jaxpr), list(inputs))
        for number in range(len(frame.jaxpr.eqns)):
            self.advance(frame, number)
        return frame.read(frame.jaxpr.outvars)

    def advance(self, frame: Frame, number: int) -> None:
        """Run the next equation of a program, whatever it is."""
        if not is_open(frame.jaxpr.eqns[number]):
            frame.advance(number)
            return
        steps = frame.steps(number)
        frame.env += self.finish(frame.runner, steps, next(steps))

    def finish(self, runner: Runner, steps: Steps, step: Step) -> list[NDArray]:
        """The results of an equation, from this step on."""
        while True:
            outs = self.outputs(runner, step.jaxpr, step.inputs)
            try:
                step = steps.send(outs)
            except StopIteration as end:
                results: list[NDArray] = end.value
                return results
