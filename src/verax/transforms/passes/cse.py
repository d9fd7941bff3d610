"""Floor 3: common-subexpression elimination: equal equations are written once.

One idea: an equation is a value, so a dictionary from (primitive, params, operands) to
results is all it takes; equations with effects are never joined::

    { lambda ; a. let b = sin a; c = sin a; d = add b c in (d,) }
    { lambda ; a. let b = sin a; c = add b b in (c,) }
"""

from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Params, Primitive, Var
from verax.ir.walk import map_subjaxprs
from verax.rules.rows.builder import Builder

type Key = tuple[Primitive, Params, tuple[Atom, ...]]


def cse(jaxpr: Jaxpr) -> Jaxpr:
    """The program with equal equations joined, nested jaxprs included.

    Contract: inputs, output types, values and effects are kept.
    """
    builder = Builder("cse")
    env: list[Atom] = [builder.input(v.aval).atom for v in jaxpr.invars]
    seen: dict[Key, list[Atom]] = {}
    for eqn in jaxpr.eqns:
        params = eqn.params
        if params is not NO_PARAMS:
            params = map_subjaxprs(params, cse)
        ins = tuple([env[a.index] if type(a) is Var else a for a in eqn.invars])
        key = (eqn.primitive, params, ins)
        pure = params is NO_PARAMS or not eqn.effects
        found = seen.get(key) if pure else None
        if found is None:
            slim = Eqn(eqn.primitive, params, eqn.invars, eqn.outvars, eqn.source)
            found = list(builder.copy(slim, ins))
            seen[key] = found
        env += found
    outs = [env[a.index] if type(a) is Var else a for a in jaxpr.outvars]
    return builder.close(outs)[0]
