"""Floor 6: the law of traits: values agree with what the row says of itself.

Passes believe the traits of a row, so one that is wrong makes them go wrong, and no
other law would say why::

    sub_p with Traits(commutative=True)     # sub(y, x) is not sub(x, y)
"""

from math import isfinite

import numpy as np

from verax.ir.jaxpr import Eqn
from verax.rules.rows.row import NDArray
from verax.rules.rows.traits import NO_TRAITS, Traits, traits_of
from verax.transforms.engine.engine import StandardEngine
from verax.transforms.engine.evaluate import evaluate_eqn
from verax.verify.cases.case import Case, Skipped, broken
from verax.verify.laws.agreement import agree


def traits_are_true(engine: StandardEngine, case: Case) -> None:
    """An elementwise row has one shape, a commutative one may swap operands, etc."""
    if len(case.jaxpr.eqns) != 1:
        raise Skipped("it is about calls of one row")
    (eqn,) = case.jaxpr.eqns
    traits = traits_of(eqn.primitive)
    if traits == NO_TRAITS:
        raise Skipped("the row has no traits")
    wrong = misplaced(eqn, traits)
    if wrong:
        raise broken("traits", case, wrong)
    if eqn.invars != case.jaxpr.invars:
        return  # an operand is used twice, or is a constant
    # Of two complex numbers one of which is NaN, the larger is either.
    if traits.commutative and not any([np.any(x != x) for x in case.values]):
        x, y = case.values
        want = evaluate_eqn(engine, eqn, [x, y])
        got = evaluate_eqn(engine, eqn, [y, x])
        agree("traits", engine, case, "operands may not change places", got, want)
    if traits.additive or traits.keeps_zero is not None:
        zeros: list[NDArray] = [np.zeros_like(x) for x in case.values]
        (y,) = evaluate_eqn(engine, eqn, zeros)
        kept = traits.additive or traits.keeps_zero is True
        if np.any((y == np.zeros_like(y)) != kept):
            what = "zero does not become zero" if kept else "zero becomes zero"
            raise broken("traits", case, what, got=y)


def misplaced(eqn: Eqn, traits: Traits) -> str | None:
    """The first trait that is wrong of the types of a call; None if all fit."""
    ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    if traits.elementwise:
        shape = np.broadcast_shapes(*[aval.shape for aval in ins])
        if any([aval.shape != shape for aval in outs]):
            return f"it is no elementwise row: a result has not the shape {shape}"
    place = traits.writes_part
    if place is not None and not 0 < place < len(ins):
        return f"writes_part={place} is not the number of an operand after the first"
    if traits.loop and not any(True for _ in eqn.params.subjaxprs()):
        return "it is no loop: its params hold no program"
    if traits.flops is None or not (ins and outs):
        return None
    count = traits.flops(eqn.params, ins, outs)
    if count is not None and not (isfinite(count) and count >= 0):
        return f"{count} is no number of operations"
    return None
