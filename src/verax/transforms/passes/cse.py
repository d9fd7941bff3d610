"""Floor 3: common-subexpression elimination: equal equations are written once.

One idea: an equation is a value, so a dictionary from (primitive, params, operands) to
results is all it takes; equations with effects are never joined::

    { lambda ; a. let b = sin a; c = sin a; d = add b c in (d,) }
    { lambda ; a. let b = sin a; c = add b b in (c,) }
"""

from collections.abc import Sequence

from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Params, Primitive
from verax.ir.walk import map_subjaxprs
from verax.rules.rows.builder import Builder, rebuilt

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
