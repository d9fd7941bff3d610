"""Floor 3: what is cut and joined in several ways is computed once.

XLA writes a function of elements into every loop that reads it. The pieces of a
concatenation are loops of their own, and each would read all arrays of the function
again, as in the gradient of a stencil that is a sum of rolled arrays. A barrier stores
the values::

    { lambda ; a b c. let d = add a b; e = add d c;
        f g = split e; h = concatenate g f; i j = split e; k = concatenate j i in ... }
    { lambda ; a b c. let d = add a b; x = add d c; e = optimization_barrier x;
        f g = split e; h = concatenate g f; i j = split e; k = concatenate j i in ... }
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from verax.ir.jaxpr import Eqn, Jaxpr, Var, equation
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.structure.joining import concatenate_p, split_p
from verax.ops.structure.slicing import slice_p
from verax.rules.rows.row import traits_of
from verax.rules.values.memo import pure, recall
from verax.transforms.engine.partial_eval import variables
from verax.transforms.passes.outline import with_eqns, with_subjaxprs

LARGE: Final = 1 << 12
"""Elements from which a loop takes longer than what it costs to begin another."""
JOINED: Final = 2
"""An array of whose pieces so many others are joined is stored, if it is made ..."""
ARRAYS: Final = 3
"""... from so many; from fewer, a loop reads those again in less time."""


def with_stored_pieces(jaxpr: Jaxpr) -> Jaxpr:
    """The program with what is cut and joined stored, nested jaxprs included.

    Contract: inputs, outputs, values and effects are kept.
    """
    return recall(stored_once, jaxpr, jaxpr)


@pure(1 << 10)
def stored_once(jaxpr: Jaxpr) -> Jaxpr:
    """`with_stored_pieces`, without its memo."""
    return with_eqns(jaxpr, stored(jaxpr.eqns, variables(jaxpr))[0])


def stored(eqns: Sequence[Eqn], size: int) -> tuple[Sequence[Eqn], int]:
    """The equations with barriers, and how many variables there are.

    There were `size`, which keep their numbers.
    """
    eqns = with_subjaxprs(eqns, with_stored_pieces)
    counts = joined(eqns)
    if not any([count >= JOINED for count in counts.values()]):
        return eqns, size
    arrays: dict[int, frozenset[int]] = {}
    out: list[Eqn] = []
    for eqn in eqns:
        read = read_by_loop(eqn, arrays)
        if not read:
            out.append(eqn)
            continue
        (v,) = eqn.outvars
        if len(read) >= ARRAYS and counts[v.index] >= JOINED:
            new = Var(size, v.aval)
            size += 1
            source = eqn.source
            out += [
                equation(eqn.primitive, eqn.params, eqn.invars, (new,), source),
                equation(optimization_barrier_p, BARRIER, (new,), (v,), source),
            ]
        else:
            arrays[v.index] = read
            out.append(eqn)
    return out, size


def joined(eqns: Sequence[Eqn]) -> Counter[int]:
    """How many concatenations take pieces of a variable, by its number."""
    wholes: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for eqn in eqns:
        if eqn.primitive is split_p or eqn.primitive is slice_p:
            (a,) = eqn.invars
            if type(a) is Var:
                wholes.update([(v.index, a.index) for v in eqn.outvars])
        elif eqn.primitive is concatenate_p:
            pieces = [a.index for a in eqn.invars if type(a) is Var]
            counts.update({wholes[index] for index in pieces if index in wholes})
    return counts


def read_by_loop(eqn: Eqn, arrays: dict[int, frozenset[int]]) -> frozenset[int]:
    """The arrays that the loop of a function of elements reads; none of another's.

    `arrays` has those of the loops before.
    """
    if len(eqn.outvars) != 1 or not traits_of(eqn.primitive).elementwise:
        return frozenset()
    aval = eqn.outvars[0].aval
    if aval.symbolic or aval.size < LARGE:
        return frozenset()
    read = [
        arrays.get(a.index, frozenset([a.index]))
        for a in eqn.invars
        if type(a) is Var and a.aval.shape == aval.shape
    ]
    return frozenset().union(*read)
