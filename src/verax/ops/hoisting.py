"""Floor 2: array constants inside jaxprs as operands of the equation around.

One idea: each primitive that holds jaxprs knows where its constants go; `hoist` of
floor 0 asks here::

    closed = hoist(jaxpr, as_operands)
"""

from attrs import evolve

from verax.ir.jaxpr import Eqn, Literal
from verax.ir.walk import direct_consts, into_operands, lift
from verax.ops.calls.call import jit_p
from verax.ops.control.checkpointed_loops import bounded_while_p, checkpointed_scan_p
from verax.ops.control.cond import cond_lanes_p, cond_p
from verax.ops.control.cond_params import CondLanesParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import BoundedWhileParams, WhileParams
from verax.ops.custom.solve import CustomLinearSolveParams, CustomRootParams

SCANS = (scan_p, checkpointed_scan_p)
WHILES = (while_p, bounded_while_p)


def as_operands(eqn: Eqn, literals: tuple[Literal, ...]) -> Eqn | None:
    """The equation with the constants of its jaxprs among its operands, or None."""
    if eqn.primitive is jit_p:
        return into_operands(eqn, literals)
    if eqn.primitive is cond_p or eqn.primitive is cond_lanes_p:
        return cond_operands(eqn, literals)
    if eqn.primitive in SCANS and isinstance(eqn.params, ScanParams):
        return scan_operands(eqn, eqn.params, literals)
    if eqn.primitive in WHILES and isinstance(eqn.params, WhileParams):
        return while_operands(eqn, eqn.params)
    params = eqn.params
    if isinstance(params, CustomLinearSolveParams | CustomRootParams):
        more = evolve(params, consts=params.consts + len(literals))
        start = Eqn(eqn.primitive, more, eqn.invars, eqn.outvars, eqn.source)
        return into_operands(start, literals)
    return None


def cond_operands(eqn: Eqn, literals: tuple[Literal, ...]) -> Eqn:
    """The constants follow the index, and are the same for all lanes."""
    out = into_operands(eqn, literals, 1)
    params = out.params
    if isinstance(params, CondLanesParams):
        params = evolve(params, mapped=(*[False] * len(literals), *params.mapped))
    return Eqn(eqn.primitive, params, out.invars, eqn.outvars, eqn.source)


def scan_operands(eqn: Eqn, p: ScanParams, literals: tuple[Literal, ...]) -> Eqn:
    """The constants come first."""
    params = evolve(
        p,
        jaxpr=lift(p.jaxpr, literals),
        linear=(*[False] * len(literals), *p.linear),
        num_consts=p.num_consts + len(literals),
    )
    invars = (*literals, *eqn.invars)
    return Eqn(eqn.primitive, params, invars, eqn.outvars, eqn.source)


def while_operands(eqn: Eqn, p: WhileParams) -> Eqn:
    """The constants of the predicate come first, those of the body before its own."""
    for_cond, for_body = direct_consts(p.cond_jaxpr), direct_consts(p.body_jaxpr)
    params = evolve(
        p,
        body_jaxpr=lift(p.body_jaxpr, for_body),
        body_nconsts=p.body_nconsts + len(for_body),
        cond_jaxpr=lift(p.cond_jaxpr, for_cond),
        cond_nconsts=p.cond_nconsts + len(for_cond),
    )
    if isinstance(p, BoundedWhileParams):
        first, second, carry = p.parts(p.linear)
        before, between = [False] * len(for_cond), [False] * len(for_body)
        params = params.with_linear((*before, *first, *between, *second, *carry))
    cond_consts, rest = eqn.invars[: p.cond_nconsts], eqn.invars[p.cond_nconsts :]
    invars = (*for_cond, *cond_consts, *for_body, *rest)
    return Eqn(eqn.primitive, params, invars, eqn.outvars, eqn.source)
