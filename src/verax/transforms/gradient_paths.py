"""Floor 3: which inputs of a program have a path to its output that has a derivative.

One idea: each value has the set of inputs from which a tangent arrives, an equation
passes it on as its jvp rule does, and where a rule answers zero there is a barrier::

    [path.barriers for path in gradient_paths(engine, jaxpr, output=0)]

Programs inside calls, choices and loops are gone through; of other equations, such as
functions with derivatives of their own, the rule alone is asked.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Final

import numpy as np
from attrs import define, field, frozen

from verax.ir.atoms import Atom, Literal, Var
from verax.ir.dtypes import DType
from verax.ir.jaxpr import NO_PARAMS, UNKNOWN_SOURCE, Eqn, Jaxpr, Source
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret, walk
from verax.ops.calls.call import CallParams
from verax.ops.calls.checkpoint import CheckpointParams
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.ops.custom.jvp import CustomJvpParams
from verax.ops.custom.vjp import CustomVjpParams
from verax.ops.elementwise.select import select_n_p
from verax.ops.structure.shape import broadcast_in_dim_p
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import Engine
from verax.transforms.engine.templates import equation_jvp

NOWHERE: Final = 0
"""The set of no inputs: sets are numbers with a bit for each input."""


@frozen(repr=False)
class Barrier(ReprMixin):
    """An equation that tangents reach and do not pass, with the user's line.

    `dtype` is that of a result at which none arrives; `function` is the name of a
    function with a derivative of its own, or empty.
    """

    primitive: str
    source: Source
    dtype: DType
    function: str = ""


@frozen(repr=False)
class GradientPath(ReprMixin):
    """What lies between an input and the output.

    `used` says whether the output is computed from it at all, `open` whether a tangent
    arrives there; `barriers` are in the order of the program.
    """

    used: bool
    open: bool
    barriers: tuple[Barrier, ...]


def gradient_paths(
    engine: Engine, jaxpr: Jaxpr, output: int
) -> tuple[GradientPath, ...]:
    """The path from each input of `jaxpr` to one of its outputs."""
    mask = tuple([i == output for i in range(len(jaxpr.outvars))])
    slim, used = engine.dce(jaxpr, mask)
    passing = Passing(engine)
    # Inputs and outputs that only effects need are still there.
    numbers = list(compress(range(len(used)), used))
    arrived = passing.outputs(slim, [1 << number for number in numbers])[0]
    read = read_for(slim)
    return tuple(
        [
            GradientPath(
                flag and read[numbers.index(i)],
                bool(arrived >> i & 1),
                tuple([b for b, stopped in passing.stops.items() if stopped >> i & 1]),
            )
            for i, flag in enumerate(used)
        ]
    )


def read_for(jaxpr: Jaxpr) -> list[bool]:
    """Which inputs the outputs are computed from, effects aside."""
    needed = {a for a in jaxpr.outvars if isinstance(a, Var)}
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            needed.update([a for a in eqn.invars if isinstance(a, Var)])
    return [v in needed for v in jaxpr.invars]


@define(eq=False, repr=False)
class Passing(ReprMixin):
    """Goes through a program with sets of inputs; `stops` has what ended where."""

    engine: Engine
    stops: dict[Barrier, int] = field(factory=dict)
    around: Source = UNKNOWN_SOURCE

    def outputs(self, jaxpr: Jaxpr, ins: Sequence[int]) -> list[int]:
        """The inputs whose tangents arrive at each output."""
        return interpret(jaxpr, ins, self.results, lambda literal: NOWHERE)

    def results(self, eqn: Eqn, ins: Sequence[int]) -> list[int]:
        """The inputs whose tangents arrive at each result of an equation."""
        if not any(ins):
            return [NOWHERE] * len(eqn.outvars)
        before = self.around
        if eqn.source.code is not None:
            self.around = eqn.source
        outs = self.through(eqn, ins)
        self.around = before
        return outs

    def through(self, eqn: Eqn, ins: Sequence[int]) -> list[int]:
        """`results`, by the kind of the equation."""
        match eqn.params:
            case ScanParams() as p:
                consts, carry, xs = p.parts(ins)
                return self.loop(p.jaxpr, consts, carry, xs)
            case WhileParams() as p:
                tests, consts, carry = p.parts(ins)
                self.outputs(p.cond_jaxpr, (*tests, *carry))
                outs = self.loop(p.body_jaxpr, consts, carry, ())
                self.outputs(p.cond_jaxpr, (*tests, *outs))
                return outs
            case CondParams() as p:
                branches = [self.outputs(branch, ins[1:]) for branch in p.branches]
                return [union(outs) for outs in zip(*branches, strict=True)]
            case CallParams() | CheckpointParams() as p:
                return self.outputs(p.jaxpr, ins)
        return self.by_rule(eqn, ins)

    def loop(
        self,
        body: Jaxpr,
        consts: Sequence[int],
        carry: Sequence[int],
        xs: Sequence[int],
    ) -> list[int]:
        """The results of a loop, whose carries gather what any step brings."""
        while True:
            outs = self.outputs(body, (*consts, *carry, *xs))
            after = [x | y for x, y in zip(carry, outs[: len(carry)], strict=True)]
            if after == list(carry):
                return [*after, *outs[len(carry) :]]
            carry = after

    def by_rule(self, eqn: Eqn, ins: Sequence[int]) -> list[int]:
        """The results as the jvp rule says, asked for one operand after another."""
        outs = [NOWHERE] * len(eqn.outvars)
        for number, bits in enumerate(ins):
            if bits:
                mask = self.passes(eqn, number)
                outs = [x | bits * flag for x, flag in zip(outs, mask, strict=True)]
                if not all(mask):
                    barrier = self.barrier(eqn, mask)
                    self.stops[barrier] = self.stops.get(barrier, NOWHERE) | bits
        return outs

    def barrier(self, eqn: Eqn, mask: Mask) -> Barrier:
        """The equation as a barrier; `mask` says which results it is none for."""
        dtype = eqn.outvars[mask.index(False)].aval.dtype
        p = eqn.params
        name = p.name if isinstance(p, CustomVjpParams | CustomJvpParams) else ""
        return Barrier(eqn.primitive.name, self.around, dtype, name)

    def passes(self, eqn: Eqn, number: int) -> Mask:
        """The results to which a tangent of one operand comes."""
        alone = tuple([i == number for i in range(len(eqn.invars))])
        avals = tuple([a.aval for a in eqn.invars])
        p = eqn.params
        pushed, mask = equation_jvp(self.engine, eqn.primitive, p, avals, alone)
        if isinstance(p, CustomVjpParams) and not answers(p, alone[p.captured :], mask):
            return (False,) * len(mask)
        tangents = iter(pushed.outvars[len(mask) :])
        return tuple([flag and not is_zero(pushed, next(tangents)) for flag in mask])


def union(sets: Sequence[int]) -> int:
    """The inputs that are in any of the sets."""
    out = NOWHERE
    for one in sets:
        out |= one
    return out


def answers(p: CustomVjpParams, operand: Mask, given: Mask) -> bool:
    """Whether a user's backward rule returns a cotangent of the operand but zero."""
    if not any(operand) or not any(given):
        return True
    jaxpr, mask = p.rule.backward(operand, given)
    return any(mask) and not all([is_zero(jaxpr, a) for a in jaxpr.outvars])


def is_zero(jaxpr: Jaxpr, atom: Atom) -> bool:
    """Whether a value is written down as zero, or as an array of zeros."""
    if isinstance(atom, Literal):
        return not atom.aval.shape and not np.any(np.asarray(atom.value))
    for eqn in jaxpr.eqns:
        if atom in eqn.outvars:
            if isinstance(eqn.params, CallParams):
                inner = eqn.params.jaxpr
                return is_zero(inner, inner.outvars[eqn.outvars.index(atom)])
            return eqn.primitive is broadcast_in_dim_p and is_zero(jaxpr, eqn.invars[0])
    return False


def select_after(jaxpr: Jaxpr, line: tuple[str, int]) -> Source | None:
    """The first `select` among whose cases is what a line of the user's has computed.

    `line` is a file and the number of the line; innermost programs come first.
    """
    for eqn in jaxpr.eqns:
        if eqn.params is not NO_PARAMS:
            for inner in eqn.params.subjaxprs(aside=False):
                if (place := select_after(inner, line)) is not None:
                    return place
    computed: set[Atom] = set()
    for eqn in jaxpr.eqns:
        after = not computed.isdisjoint(eqn.invars)
        if eqn.primitive is select_n_p and not computed.isdisjoint(eqn.invars[1:]):
            return eqn.source
        if after or is_from(eqn, line):
            computed.update(eqn.outvars)
    return None


def is_from(eqn: Eqn, line: tuple[str, int]) -> bool:
    """Whether an equation, or one inside it, was written in a line."""
    sources = [eqn.source]
    if eqn.params is not NO_PARAMS:
        for inner in eqn.params.subjaxprs(aside=False):
            sources += [e.source for _, e in walk(inner)]
    return any([(s.file, s.line) == line for s in sources])
