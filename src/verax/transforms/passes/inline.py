"""Floor 3: inlining: the equations of called jaxprs instead of the calls.

One idea: a call means its jaxpr, so write that::

    { lambda ; a. let b = jit[name=f jaxpr={ ... sin ... }] a in (b,) }
    { lambda ; a. let b = sin a in (b,) }
"""

from collections.abc import Callable

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.ops.calls.call import CallParams, jit_p
from verax.rules.rows.builder import Builder


def called(eqn: Eqn) -> Jaxpr | None:
    """The jaxpr that an equation stands for: that of `jit`, else None.

    A call that tells the compiler something says more than its equations.
    """
    params = eqn.params
    if eqn.primitive is jit_p and isinstance(params, CallParams):
        return None if params.metadata else params.jaxpr
    return None


def inline(jaxpr: Jaxpr, body_of: Callable[[Eqn], Jaxpr | None] = called) -> Jaxpr:
    """The program without the calls that `body_of` recognises, at any depth.

    Contract: inputs, output types, values and effects are kept.
    """
    builder = Builder("inline")
    env: list[Atom] = [builder.input(v.aval).atom for v in jaxpr.invars]
    for eqn in jaxpr.eqns:
        ins = tuple([env[a.index] if type(a) is Var else a for a in eqn.invars])
        body = body_of(eqn)
        if body is None:
            env += builder.copy(eqn, ins)
        else:
            env += builder.inline(inline(body, body_of), ins)
    outs = [env[a.index] if type(a) is Var else a for a in jaxpr.outvars]
    return builder.close(outs)[0]
