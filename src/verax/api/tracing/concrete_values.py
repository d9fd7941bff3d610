"""Floor 5: values of tracers, where their arguments have values.

One idea: Python may branch on a tracer whose value follows from arguments at hand; it
is computed when it is asked for, from the equations that the trace has written so far::

    builder.oracle = oracle_for(builder, [x, None])     # the second has no value
    bool(tracer)                                        # asks it

`grad` and `jvp` know all of their arguments, `vmap` those that it does not map.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from verax.api.tracing.apply import ENGINE, enclosing_scope
from verax.backend.arrays.concrete import ConcreteArray
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import is_inexact
from verax.ir.effects import SHOWN
from verax.ir.jaxpr import Eqn, Jaxpr, Literal, Var
from verax.ir.walk import map_subjaxprs, read_as
from verax.ops.calls.callbacks import silenced
from verax.ops.elementwise.select import stop_gradient_p
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.rows.leaks import abstract, roots
from verax.rules.values.conversions import AbstractValueError, Refusal
from verax.transforms.engine.engine import as_typed, evaluate_eqn, literal_value


class Oracle:
    """Concrete values of a trace, on demand: evaluates what was written so far.

    `flow` says which values of it can have tangents.
    """

    def __init__(
        self, builder: Builder, values: Sequence[object | None], differentiates: bool
    ) -> None:
        self.builder = builder
        self.flow = Flow(builder, differentiates)
        self.values = values
        self.env: dict[int, np.ndarray] = {}
        self.refusals: dict[int, Tracer | None] = {}
        self.done = 0

    def __call__(self, tracer: Tracer, expected: str, refusal: Refusal) -> np.ndarray:
        """The value of a tracer of this trace; `expected` says what asks for it.

        Raises:
            AbstractValueError: an argument that it depends on has none.
        """
        self.fill_inputs()
        while self.done < len(self.builder.eqns):
            self.evaluate(self.builder.eqns[self.done])
            self.done += 1
        if isinstance(tracer.atom, Var) and tracer.atom.index not in self.env:
            raise self.refused(tracer, expected, refusal)
        return read_as([tracer.atom], self.env, literal_value)[0]

    def evaluate(self, eqn: Eqn) -> None:
        """The results of one equation, unless its operands have no values.

        The program that is being traced will run: effects must not happen here too. A
        collective needs the other elements of its axis, which are not here.
        """
        known = [a.index in self.env for a in eqn.invars if isinstance(a, Var)]
        if not all(known) or (eqn.effects and not SHOWN.issuperset(eqn.effects)):
            return
        if eqn.params.named_axes:
            return
        if eqn.effects:  # what it shows, and whether it fails, is for the program
            if not eqn.outvars:
                return
            eqn = eqn.replace(params=map_subjaxprs(eqn.params, silenced, aside=False))
        operands = read_as(eqn.invars, self.env, literal_value)
        outs = evaluate_eqn(ENGINE, eqn, operands)
        for var, out in zip(eqn.outvars, outs, strict=True):
            self.env[var.index] = out

    def fill_inputs(self) -> None:
        """Values for the arguments, and for captured tracers that are new."""
        caught = {inner: outer for outer, inner in self.builder.captured.values()}
        if not self.env and not self.refusals:
            own = [var for var in self.builder.inputs if var not in caught]
            for var, x in zip(own, self.values, strict=True):
                self.fill(var, x)
        for atom, outer in caught.items():
            if isinstance(atom, Var):
                self.fill(atom, outer)

    def fill(self, var: Var, x: object | None) -> None:
        """The value of one input, or why it has none."""
        if var.index in self.env or var.index in self.refusals:
            return
        if x is None or is_reference(x):
            self.refusals[var.index] = None
            return
        try:
            self.env[var.index] = concrete(x, var.aval)
        except AbstractValueError:
            assert isinstance(x, Tracer)
            self.refusals[var.index] = x

    def refused(
        self, tracer: Tracer, expected: str, refusal: Refusal
    ) -> AbstractValueError:
        """The error for a tracer without a value: which argument has none."""
        below = roots(tracer)
        without = [self.refusals[v.index] for v in below if v.index in self.refusals]
        outer = [x for x in without if x is not None]
        if len(outer) < len(without):
            known = {v for v in below if v.index in self.env}
            return abstract(tracer, expected, refusal, known)
        return (
            refusal_of(outer[0], expected, refusal)
            if outer
            else after_effect(tracer, refusal)
        )


class Flow:
    """The values of a trace that can have tangents, as far as it is written.

    A trace that `differentiates` gives tangents to its own inputs; a value that depends
    on none of them may still depend on a tracer that moves in a trace around it. Other
    traces do not know what will become of their inputs. A reference moves once a value
    that moves is written to it, which may happen in any trace: as an operand it is
    taken to.
    """

    def __init__(self, builder: Builder, differentiates: bool) -> None:
        self.builder = builder
        self.differentiates = differentiates
        self.own: set[int] = set()
        self.outer: set[int] = set()
        self.inputs = 0
        self.done = 0

    def mask(self, operands: Sequence[object]) -> tuple[bool, ...]:
        """The operands with a tangent, in the innermost trace that gives them one."""
        self.follow()
        own = [self.within(x, self.own) for x in operands]
        moving = own
        if not (self.differentiates and any(own)):
            around = [
                self.within(x, self.outer) or self.moves_around(x) for x in operands
            ]
            moving = [a or b for a, b in zip(own, around, strict=True)]
        pairs = zip(operands, moving, strict=True)
        return tuple([flag or is_reference(x) for x, flag in pairs])

    def within(self, x: object, moving: set[int]) -> bool:
        """Whether `x` is a value of this trace that is among the `moving` ones."""
        return (
            isinstance(x, Tracer)
            and x.builder is self.builder
            and isinstance(x.atom, Var)
            and x.atom.index in moving
        )

    def moves_around(self, x: object) -> bool:
        """Whether `x` belongs to another trace and can have a tangent there."""
        if not isinstance(x, Tracer) or x.builder is self.builder:
            return False
        oracle = x.builder.oracle
        if not isinstance(oracle, Oracle):
            return is_inexact(x.aval.dtype)
        return any(oracle.flow.mask([x]))

    def follow(self) -> None:
        """Look at the inputs and equations that are new."""
        caught = {v: x for x, v in self.builder.captured.values()}
        for var in self.builder.inputs[self.inputs :]:
            if var not in caught and is_inexact(var.aval.dtype):
                self.own.add(var.index)
            elif var in caught and self.moves_around(caught[var]):
                self.outer.add(var.index)
        self.inputs = len(self.builder.inputs)
        eqns = self.builder.eqns
        for eqn in eqns[self.done :]:
            if eqn.primitive is stop_gradient_p:
                continue
            for moving in (self.own, self.outer):
                ins = [a for a in eqn.invars if isinstance(a, Var)]
                if any([v.index in moving for v in ins]):
                    written = [v.index for v in ins if is_reference(v)]
                    outs = [v.index for v in eqn.outvars if is_inexact(v.aval.dtype)]
                    moving.update((*written, *outs))
        self.done = len(eqns)


def oracle_for(
    builder: Builder, values: Sequence[object | None], differentiates: bool = False
) -> Oracle | None:
    """The oracle that knows values of the trace, unless there can be none.

    A trace around that is abstract makes all that is not an argument abstract too;
    where there is none, what a function closes over or makes has a value.
    """
    around = builder.outer is None or builder.outer.oracle is not None
    if around or not values or any([has_value(x) for x in values]):
        return Oracle(builder, values, differentiates)
    return None


@contextmanager
def values_of(jaxpr: Jaxpr, operands: Sequence[object]) -> Iterator[list[Tracer]]:
    """The outputs of a program, whose values are computed when they are asked for."""
    builder = Builder("values", enclosing_scope())
    builder.oracle = oracle_for(builder, operands)
    try:
        yield builder.call(jaxpr, map(builder.input, jaxpr.in_avals))
    finally:
        builder.alive = False
        builder.oracle = None  # it knows the builder: a cycle for the collector


def can_move(builder: Builder, operands: Sequence[object]) -> tuple[bool, ...]:
    """The operands that can have tangents when `builder` has written its program."""
    oracle = builder.oracle
    if isinstance(oracle, Oracle):
        return oracle.flow.mask(operands)
    if builder.differentiates:
        return Flow(builder, True).mask(operands)
    return tuple([isinstance(x, Tracer) or is_reference(x) for x in operands])


def has_value(x: object | None) -> bool:
    """Whether an argument may have a value: it is none and no abstract tracer."""
    if isinstance(x, Tracer):
        return x.builder.oracle is not None
    return x is not None


def is_known(x: object) -> bool:
    """Whether Python can have the value of `x` now."""
    if not isinstance(x, Tracer):
        return True
    if x.builder.alive and x.builder.oracle is None:  # no message is made for nobody
        return isinstance(x.atom, Literal)
    try:
        x.concrete("a value")
    except AbstractValueError:
        return False
    return True


def refusal_of(tracer: Tracer, expected: str, refusal: Refusal) -> AbstractValueError:
    """The error of a tracer of an outer trace, without a value either."""
    try:
        tracer.concrete(expected, refusal)
    except AbstractValueError as error:
        return error
    raise AssertionError("a tracer that had no value has one")


def after_effect(tracer: Tracer, refusal: Refusal) -> AbstractValueError:
    """The error for a value that comes out of an effect or a collective."""
    return refusal(
        f"a tracer of type {tracer.aval} depends on an io_callback or a collective, "
        "which happens when the program runs and not while it is traced, so Python "
        "cannot branch on its value; use verax.lax.cond or verax.numpy.where"
    )


def concrete(x: object, aval: ShapedArray) -> np.ndarray:
    """The NumPy value of an argument.

    Raises:
        AbstractValueError: it is a tracer without a value.
    """
    if isinstance(x, Tracer):
        return x.concrete("a value that depends on it")
    if isinstance(x, ConcreteArray):
        return x.numpy()
    return as_typed(x, aval)
