"""Floor 3: how state goes through calls, loops and choices.

What a body only reads is one more constant of it; what it writes is one more carry of
a loop, and one more result of a call or choice::

    scan(body, init, xs)    # with the references that body writes among the carries
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from verax.ir.jaxpr import Atom, Eqn, Jaxpr
from verax.ops.calls.call import NamedCall, jit_p
from verax.ops.calls.checkpoint import checkpoint_p
from verax.ops.calls.subjaxprs import inlined
from verax.ops.control.checkpointed_loops import bounded_while_p, checkpointed_scan_p
from verax.ops.control.cond import cond_p
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import BoundedWhileParams, WhileParams
from verax.ops.custom.jvp import custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p
from verax.ops.custom.vmap import custom_vmap_call_p
from verax.rules.rows.masks import Mask
from verax.rules.rows.writing import program
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context
from verax.transforms.references.custom_rules import custom_rule
from verax.transforms.references.discharge import (
    PROGRAMS,
    Discharged,
    Operand,
    Rule,
    Slot,
    Writer,
    discharge,
    references,
    values_of,
    write_back,
)


def call_rule(writer: Writer, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Atom]:
    """The call of the discharged program."""
    params = eqn.params
    assert isinstance(params, NamedCall)
    inner = writer.discharged(params.jaxpr, operands)
    changed = evolve(params, jaxpr=inner.jaxpr)
    outs = writer.bind(eqn, changed, values_of(eqn, operands))
    count = len(eqn.outvars)
    write_back(operands, inner.written, outs[count:])
    return outs[:count]


def only_constants(eqn: Eqn, operands: Iterable[Operand]) -> list[Atom]:
    """Operands none of which is a reference, which nothing makes them."""
    found = list(operands)
    assert not any([isinstance(x, Slot) for x in found])
    return values_of(eqn, found)


def scan_rule(writer: Writer, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Atom]:
    """A loop that carries what the body writes."""
    p = eqn.params
    assert isinstance(p, ScanParams)
    inner = writer.discharged(p.jaxpr, operands)
    consts, carry, xs = p.parts(operands)
    moving = inner.written
    fixed = [i for i in range(len(consts)) if i not in moving]
    count, n = len(moving), len(eqn.outvars)

    def body(*ins: Array) -> Sequence[object]:
        full: list[Any] = [None] * len(consts)
        for i, x in zip((*fixed, *moving), ins, strict=False):
            full[i] = x
        outs = inlined(inner.jaxpr, [*full, *ins[len(consts) :]])
        return [*outs[n:], *outs[:n]]

    values = values_of(eqn, consts)
    ins = [
        *[values[i] for i in (*fixed, *moving)],
        *only_constants(eqn, carry),
        *only_constants(eqn, xs),
    ]
    types = inner.jaxpr.in_avals
    avals = [*[types[i] for i in (*fixed, *moving)], *types[len(consts) :]]
    params = evolve(
        p,
        jaxpr=program(avals, body),
        linear=(False,) * len(ins),
        num_carry=p.num_carry + count,
        num_consts=len(fixed),
    )
    outs = writer.bind(eqn, params, ins)
    write_back(operands, moving, outs[:count])
    return outs[count:]


def while_rule(writer: Writer, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Atom]:
    """A loop that carries what the step writes, for the predicate as well."""
    p = eqn.params
    assert isinstance(p, WhileParams)
    before, fixed, carry = p.parts(operands)
    state = only_constants(eqn, carry)
    test = writer.discharged(p.cond_jaxpr, [*before, *state])
    if test.written:
        raise ValueError(
            f"the predicate of a while loop, at {eqn.source}, writes to a mutable "
            "reference; it may only read: write in the body"
        )
    step = writer.discharged(p.body_jaxpr, [*fixed, *state])
    moving = [fixed[i] for i in step.written]
    count, n = len(moving), len(state)
    parts = [loop_part(before, moving), loop_part(fixed, moving)]

    def on_values(jaxpr: Jaxpr, places: Sequence[int], ins: Sequence[Array]) -> Any:
        outer = len(ins) - count - n
        state, own = ins[outer:], iter(ins[:outer])
        full = [next(own) if i < 0 else state[i] for i in places]
        return inlined(jaxpr, [*full, *state[count:]])

    def more(*ins: Array) -> Sequence[object]:
        found: Sequence[object] = on_values(test.jaxpr, parts[0], ins)
        return found

    def body(*ins: Array) -> Sequence[object]:
        outs = on_values(step.jaxpr, parts[1], ins)
        return [*outs[n:], *outs[:n]]

    kept = [
        [x for x, i in zip(xs, places, strict=True) if i < 0]
        for xs, places in zip((before, fixed), parts, strict=True)
    ]
    first, second = [values_of(eqn, xs) for xs in kept]
    ins = [*values_of(eqn, moving), *state]
    types = [x.aval for x in ins]
    params = evolve(
        p,
        body_jaxpr=program([*[x.aval for x in second], *types], body),
        body_nconsts=len(second),
        cond_jaxpr=program([*[x.aval for x in first], *types], more),
        cond_nconsts=len(first),
    )
    if isinstance(params, BoundedWhileParams):
        total = len(first) + len(second) + len(ins)
        params = evolve(params, linear=(False,) * total)
    outs = writer.bind(eqn, params, [*first, *second, *ins])
    for slot, final in zip(moving, outs[:count], strict=True):
        assert isinstance(slot, Slot)
        slot.write(final)
    return outs[count:]


def loop_part(consts: Sequence[Operand], moving: Sequence[Operand]) -> list[int]:
    """Where each constant is among the references that move; -1 for the others."""
    return [
        next((k for k, other in enumerate(moving) if other is x), -1) for x in consts
    ]


def cond_rule(writer: Writer, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Atom]:
    """A choice that gives what one of the branches writes."""
    p = eqn.params
    assert isinstance(p, CondParams)
    index, *rest = operands
    found = [writer.discharged(branch, rest) for branch in p.branches]
    written = sorted({i for branch in found for i in branch.written})
    branches = tuple([giving(branch, written) for branch in found])
    params = evolve(p, branches=branches)
    outs = writer.bind(eqn, params, values_of(eqn, [index, *rest]))
    count = len(eqn.outvars)
    write_back(rest, written, outs[count:])
    return outs[:count]


def giving(branch: Discharged, written: Sequence[int]) -> Jaxpr:
    """A branch that also gives what the references `written` hold at its end."""
    if list(branch.written) == list(written):
        return branch.jaxpr
    count = len(branch.jaxpr.outvars) - len(branch.written)

    def body(*ins: Array) -> Sequence[object]:
        outs = inlined(branch.jaxpr, ins)
        finals = dict(zip(branch.written, outs[count:], strict=True))
        return [*outs[:count], *[finals.get(i, ins[i]) for i in written]]

    return program(branch.jaxpr.in_avals, body)


def discharged(
    jaxpr: Jaxpr, marks: Mask | None = None, final: bool = False
) -> Discharged:
    """`discharge` with these rules, found again where that was asked before.

    Without `marks` every reference becomes a value.
    """
    chosen = references(jaxpr) if marks is None else marks
    return recall(remembered, jaxpr, current_context(), jaxpr, chosen, final)


CONTROL: Final[Mapping[Any, Rule]] = MappingProxyType(
    {
        jit_p: call_rule,
        checkpoint_p: call_rule,
        scan_p: scan_rule,
        checkpointed_scan_p: scan_rule,
        while_p: while_rule,
        bounded_while_p: while_rule,
        cond_p: cond_rule,
        custom_jvp_call_p: partial(custom_rule, discharged),
        custom_vjp_call_p: partial(custom_rule, discharged),
        custom_vmap_call_p: partial(custom_rule, discharged),
    }
)


@memo(PROGRAMS)
def remembered(context: Context, jaxpr: Jaxpr, marks: Mask, final: bool) -> Discharged:
    """See `discharged`."""
    return discharge(jaxpr, marks, CONTROL, final)


def without_own(jaxpr: Jaxpr) -> Jaxpr:
    """The program whose own references are values; those that it takes stay."""
    return discharge(jaxpr, (False,) * len(jaxpr.invars), CONTROL, False).jaxpr
