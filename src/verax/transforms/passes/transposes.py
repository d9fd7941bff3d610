"""Floor 3: transposes come after the functions of elements that read them alone.

XLA writes a transpose into the loop that reads it, which then jumps through memory. As
the last step it goes in tiles, up to five times as fast; the values are the same::

    { lambda ; a. let b = transpose a; c = exp b; d = add c 1.0 in (d,) }
    { lambda ; a. let b = exp a; c = add b 1.0; e = optimization_barrier c;
        d = transpose e in (d,) }
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params, Var, equation
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.structure.shape import (
    TransposeParams,
    inverse,
    transpose_p,
    transpose_params,
)
from verax.rules.rows.row import traits_of
from verax.rules.values.memo import pure, recall
from verax.transforms.engine.partial_eval import variables
from verax.transforms.passes.outline import with_eqns, with_subjaxprs

LARGE: Final = 1 << 12
"""Elements from which the order matters."""

type Readers = Mapping[int, Sequence[Eqn | None]]


def readers_of(eqns: Sequence[Eqn], outvars: Sequence[Atom]) -> Readers:
    """The equations that read a variable, by its number; None for the program's end."""
    out: dict[int, list[Eqn | None]] = {}
    for eqn in eqns:
        for index in {a.index for a in eqn.invars if type(a) is Var}:
            out.setdefault(index, []).append(eqn)
    for a in outvars:
        if type(a) is Var:
            out.setdefault(a.index, []).append(None)
    return out


def with_late_transposes(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its transposes later, nested jaxprs included.

    Contract: inputs, outputs, values and effects are kept.
    """
    return recall(rewritten, jaxpr, jaxpr)


@pure(1 << 10)
def rewritten(jaxpr: Jaxpr) -> Jaxpr:
    """`with_late_transposes`, without its memo."""
    eqns, _ = late(jaxpr.eqns, jaxpr.outvars, variables(jaxpr))
    return with_eqns(jaxpr, eqns)


def late(
    eqns: Sequence[Eqn], outvars: Sequence[Atom], size: int
) -> tuple[Sequence[Eqn], int]:
    """The equations of a program with later transposes, and its number of variables.

    There were `size` variables before; they keep their numbers.
    """
    eqns = with_subjaxprs(eqns, with_late_transposes)
    if not any([eqn.primitive is transpose_p for eqn in eqns]):
        return eqns, size
    readers = readers_of(eqns, outvars)
    if not any([moves(eqn, readers) for eqn in eqns]):
        return eqns, size
    waiting: dict[int, Waiting] = {}
    out: list[Eqn] = []
    for eqn in eqns:
        passed = [a.index for a in eqn.invars if type(a) is Var and a.index in waiting]
        if passed:
            before = waiting.pop(passed[0])
            made = before_it(eqn, before, size)
            size += 1
            out.append(made)
            with_numbers = before.with_numbers or len(eqn.invars) > 1
            one = Waiting(made.outvars[0], before.params, with_numbers)
        elif moves(eqn, readers):
            one = Waiting(eqn.invars[0], eqn.params, False)
        else:
            out.append(eqn)
            continue
        if lets_pass(eqn.outvars[0], readers):
            waiting[eqn.outvars[0].index] = one
        else:
            kept = one.with_numbers and not is_undone(eqn.outvars[0], one, readers)
            size = write(one._replace(with_numbers=kept), eqn, size, out)
    return out, size


class Waiting(NamedTuple):
    """A transpose of `source` that is not written yet.

    `with_numbers` says whether an equation that it has passed combines the array with
    numbers: without a barrier, XLA would put it before that one again.
    """

    source: Atom
    params: Params
    with_numbers: bool


def before_it(eqn: Eqn, one: Waiting, size: int) -> Eqn:
    """The equation, on what the transpose reads in place of its result."""
    new = Var(size, eqn.outvars[0].aval.with_shape(one.source.aval.shape))
    ins = tuple([one.source if a.aval.ndim else a for a in eqn.invars])
    return equation(eqn.primitive, eqn.params, ins, (new,), eqn.source)


def write(one: Waiting, eqn: Eqn, size: int, out: list[Eqn]) -> int:
    """Add the transpose, whose result is that of `eqn`; return the number of variables.

    A barrier keeps it out of the loop of the equations that it has passed.
    """
    source = one.source
    if one.with_numbers:
        new = Var(size, source.aval)
        size += 1
        ins = (source,)
        out.append(equation(optimization_barrier_p, BARRIER, ins, (new,), eqn.source))
        source = new
    made = equation(transpose_p, one.params, (source,), eqn.outvars, eqn.source)
    out.append(made)
    return size


def is_undone(v: Var, one: Waiting, readers: Readers) -> bool:
    """Whether all that reads a transposed array leads to transposes back.

    By way of functions of elements: XLA then leaves out both, and makes one loop.
    """
    assert isinstance(one.params, TransposeParams)
    back = transpose_params(inverse(one.params.permutation))
    open_, seen = [v], {v.index}
    while open_:
        for eqn in readers.get(open_.pop().index, (None,)):
            if eqn is None:
                return False
            if eqn.primitive is transpose_p:
                if eqn.params != back:
                    return False
            elif not traits_of(eqn.primitive).elementwise:
                return False
            else:
                news = [out for out in eqn.outvars if out.index not in seen]
                seen.update([out.index for out in news])
                open_ += news
    return True


def moves(eqn: Eqn, readers: Readers) -> bool:
    """Whether an equation is a transpose that can come after what reads it."""
    return eqn.primitive is transpose_p and lets_pass(eqn.outvars[0], readers)


def lets_pass(v: Var, readers: Readers) -> bool:
    """Whether one equation alone reads a variable, and is a function of its elements.

    Then it can read what the transpose reads, and the transpose comes after it.
    """
    (eqn, *others) = readers.get(v.index, (None,))
    if eqn is None or others or v.aval.symbolic or v.aval.size < LARGE:
        return False
    if not traits_of(eqn.primitive).elementwise or len(eqn.outvars) != 1:
        return False
    arrays = [a for a in eqn.invars if a.aval.ndim]
    same = all([type(a) is Var and a.index == v.index for a in arrays])
    return same and len(arrays) == 1 and eqn.outvars[0].aval.shape == v.aval.shape
