"""Floor 3: common subexpressions are written once, and constants are computed.

One idea: an equation is a value, so a dictionary from (primitive, params, operands) to
results is all it takes; equations with effects are never joined::

    { lambda ; a. let b = sin a; c = sin a; d = add b c in (d,) }
    { lambda ; a. let b = sin a; c = add b b in (c,) }
"""

from collections.abc import Sequence

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0
from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    array_literal,
    scalar_literal,
)
from verax.ir.walk import map_subjaxprs
from verax.rules.rows.builder import Builder, rebuilt
from verax.rules.rows.row import Engine
from verax.rules.values.memo import pure, recall
from verax.transforms.engine.engine import as_typed, literal_value

type Key = tuple[Primitive, Params, tuple[Atom, ...]]


def cse(jaxpr: Jaxpr) -> Jaxpr:
    """The program with equal equations joined, nested jaxprs included.

    Contract: inputs, output types, values and effects are kept.
    """
    seen: dict[Key, Sequence[Atom]] = {}

    def write(builder: Builder, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom]:
        params = eqn.params
        if params is not NO_PARAMS:
            params = map_subjaxprs(params, cse)
        key = (eqn.primitive, params, ins)
        pure = params is NO_PARAMS or not eqn.effects
        if not pure or key not in seen:
            slim = Eqn(eqn.primitive, params, eqn.invars, eqn.outvars, eqn.source)
            seen[key] = builder.copy(slim, ins)
        return seen[key]

    return rebuilt(jaxpr, write, "cse")


# -----------------------------------------------------------------------------
# Constant folding: what depends on no input is computed now.
#
# An equation whose operands are all literals means what the interpreter makes
# of it, so write that literal::
#
#     { lambda ; a. let b = mul 2.0 3.0; c = add a b in (c,) }
#     { lambda ; a. let b = add a 6.0 in (b,) }
#
# The values are those of the reference interpreter, bit for bit. A compiled program may
# have rounded the last place of a transcendental function otherwise.


FOLD_LIMIT = 1024
"""Results of more elements are not written into the program unless asked for."""
FOLDED = 1 << 12


def fold(engine: Engine, jaxpr: Jaxpr, limit: int = FOLD_LIMIT) -> Jaxpr:
    """`folded`, found again where that was asked before.

    Arrays compare by identity, so equal programs must lead to one array.
    """
    return recall(folded, jaxpr, engine, jaxpr, limit)


@pure(FOLDED)
def folded(engine: Engine, jaxpr: Jaxpr, limit: int) -> Jaxpr:
    """The program without pure equations on constants, nested jaxprs included.

    Contract: inputs, output types, values and effects are kept. Equations with an
    operand or a result of more than `limit` elements stay, and so do those that hold
    jaxprs, which may run for long; they are folded inside.
    """

    def write(builder: Builder, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom]:
        known = constants(engine, eqn, ins, limit)
        return known or builder.copy(within(engine, eqn, limit), ins)

    return rebuilt(jaxpr, write, "fold")


def within(engine: Engine, eqn: Eqn, limit: int) -> Eqn:
    """The equation with the jaxprs that it holds folded."""
    if eqn.params is NO_PARAMS:
        return eqn
    params = map_subjaxprs(eqn.params, lambda inner: fold(engine, inner, limit))
    return Eqn(eqn.primitive, params, eqn.invars, eqn.outvars, eqn.source)


def constants(
    engine: Engine, eqn: Eqn, ins: tuple[Atom, ...], limit: int
) -> tuple[Literal, ...]:
    """The literals that stand for the results; none if the equation must stay."""
    literals = tuple([a for a in ins if type(a) is Literal])
    if len(literals) < len(ins):
        return ()
    types = tuple([v.aval for v in eqn.outvars])
    if not all(small(aval, limit) for aval in (*[a.aval for a in literals], *types)):
        return ()
    if eqn.params is not NO_PARAMS and (
        eqn.effects or next(eqn.params.subjaxprs(), None) is not None
    ):
        return ()
    row = engine.rules[eqn.primitive]
    if row.evaluate is None or row.hosted or row.traits.marker:
        return ()
    return computed(engine, eqn.primitive, eqn.params, literals, types)


def small(aval: ShapedArray, limit: int) -> bool:
    return aval.dtype != float0 and aval.size <= limit


def computed(
    engine: Engine,
    primitive: Primitive,
    params: Params,
    literals: tuple[Literal, ...],
    types: tuple[ShapedArray, ...],
) -> tuple[Literal, ...]:
    """The results of an equation on literals, as literals."""
    rule = engine.rules[primitive].evaluate
    assert rule is not None
    with np.errstate(all="ignore"):
        outs = rule(engine, params, [literal_value(x) for x in literals])
    return tuple([literal(x, aval) for x, aval in zip(outs, types, strict=True)])


def literal(value: object, aval: ShapedArray) -> Literal:
    """The literal of a result: a scalar by its bits, an array that must not change."""
    array = np.array(as_typed(value, aval), order="C")
    array.flags.writeable = False
    return array_literal(array, aval) if aval.shape else scalar_literal(array, aval)
