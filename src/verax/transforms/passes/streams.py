"""Floor 3: values that flow through block after block by cheap equations alone.

XLA joins an addition to each operation that reads the sum. In a network whose blocks
all add to one stream it so writes the sums of all earlier blocks into each block: a
program of quadratic size, which computes these sums again and again. Where a block is a
function, its operands and results are stored, and that ends::

    flows(jaxpr, 0)     # the outputs that only cheap operations separate from input 0
"""

from collections.abc import Iterable, Sequence

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from verax.rules.rows.traits import Work, traits_of


def may_stream(eqns: Sequence[Eqn]) -> bool:
    """Whether there may be several blocks in a program, at a glance."""
    return sum([traits_of(eqn.primitive).work is Work.BLOCK for eqn in eqns]) > 1


def flows(jaxpr: Jaxpr, number: int) -> set[int]:
    """The outputs to which an input flows through cheap equations alone."""
    reached = {number}
    for eqn in jaxpr.eqns:
        cheap = traits_of(eqn.primitive).work is Work.CHEAP
        if cheap and reads(eqn.invars, reached):
            reached.update([v.index for v in eqn.outvars])
    return {i for i, atom in enumerate(jaxpr.outvars) if reads((atom,), reached)}


def reads(atoms: Iterable[Atom], variables: set[int]) -> bool:
    """Whether any of the atoms is one of the variables."""
    return any([type(a) is Var and a.index in variables for a in atoms])


def streams(
    jaxpr: Jaxpr, ins: Sequence[Sequence[Atom]], outs: Sequence[Sequence[Var]]
) -> bool:
    """Whether a value flows through calls of a program that stores others between.

    `ins` and `outs` are the operands and the results of the calls.
    """
    works = {traits_of(eqn.primitive).work for eqn in jaxpr.eqns}
    if Work.WHOLE in works or Work.BLOCK not in works:
        return False
    made = {v.index: i for results in outs for i, v in enumerate(results)}
    for number in range(len(jaxpr.invars)):
        passed = [operands[number] for operands in ins]
        sources = {made.get(a.index) for a in passed if not isinstance(a, Literal)}
        if sources - {None} and sources & flows(jaxpr, number):
            return True
    return False
