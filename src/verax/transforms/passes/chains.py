"""Floor 3: long chains of elementwise operations, in parts for a compiler of loops.

XLA writes a chain as the body of one loop, however long it is. Each operation waits for
the one before, so a processor is fast only if it works on several rounds of the loop at
a time, as it does while these fit into the window of operations that it looks at; and
the time that LLVM takes for a body grows faster than its length. A barrier where few
values are alive ends one loop and begins the next::

    { lambda ; a. let b = sin a; c = optimization_barrier b; d = exp c in (d,) }

Values are those of one loop: no barrier stands where LLVM would join a product and a
sum into one operation, with one rounding.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from verax.ir.avals import Shape
from verax.ir.jaxpr import Eqn, Jaxpr, Var, equation
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.elementwise.convert import bitcast_convert_type_p
from verax.ops.structure.shape import broadcast_in_dim_p
from verax.rules.rows.row import Work, traits_of
from verax.rules.values.memo import pure, recall
from verax.transforms.engine.partial_eval import variables
from verax.transforms.passes.outline import with_eqns, with_subjaxprs

SHORT: Final = 64
"""So many operations make a loop: a few rounds fit into a processor's window."""
LONG: Final = 256
"""So many do where each takes dozens of instructions, for the compiler alone."""
SHARE: Final = 8
"""One such operation in so many makes the chain one of them."""
WORTH: Final = 320
"""So many operations are worth several loops."""
STEP: Final = 16
"""At a glance one equation in so many is looked at."""
LEAST: Final = 1024
"""Elements from which a loop takes longer than what it costs to begin another."""
ALIVE: Final = 2
"""So many values at most are stored between two loops."""

type Run = tuple[int, int]


def split_chains(jaxpr: Jaxpr) -> Jaxpr:
    """The program with long chains in parts, nested jaxprs included.

    Contract: inputs, outputs, values and effects are kept.
    """
    return recall(split_once, jaxpr, jaxpr)


@pure(1 << 10)
def split_once(jaxpr: Jaxpr) -> Jaxpr:
    """`split_chains`, without its memo."""
    inside = with_subjaxprs(jaxpr.eqns, split_chains)
    return with_eqns(jaxpr, split(inside, variables(jaxpr))[0])


def split_everywhere(eqns: Sequence[Eqn], size: int) -> tuple[Sequence[Eqn], int]:
    """`split`, in jaxprs inside as well."""
    return split(with_subjaxprs(eqns, split_chains), size)


def split(eqns: Sequence[Eqn], size: int) -> tuple[Sequence[Eqn], int]:
    """The equations with barriers in long chains, and how many variables there are.

    There were `size`, which keep their numbers.
    """
    if not worth(eqns):
        return eqns, size
    shapes = [shape_of(eqn) for eqn in eqns]
    out: list[Eqn] = []
    done = 0
    for start, stop in long_runs(shapes):
        out += eqns[done:start]
        chained = [shape != () for shape in shapes[start:stop]]
        size = Parts(eqns[start:stop], chained, size).write(out)
        done = stop
    return [*out, *eqns[done:]], size


def worth(eqns: Sequence[Eqn]) -> bool:
    """Whether there may be a long chain, at a glance."""
    if len(eqns) < WORTH:
        return False
    return sum(map(bool, map(shape_of, eqns[::STEP]))) >= WORTH // STEP


def long_runs(shapes: Sequence[Shape | None]) -> Iterator[Run]:
    """The runs of elementwise equations that are worth several loops."""
    start = count = 0
    current: Shape | None = None
    for i, own in enumerate((*shapes, None)):
        if own == ():
            continue
        if own is None or own != current:
            if count >= WORTH:
                yield start, i
            start, count, current = i, 0, own
        count += own is not None


def shape_of(eqn: Eqn) -> Shape | None:
    """The shape of the loop that an equation is part of; none, or () for one value."""
    primitive, aval = eqn.primitive, eqn.outvars[0].aval if eqn.outvars else None
    spreads = primitive is broadcast_in_dim_p
    if aval is None or not (spreads or joins(eqn, aval.shape)):
        return None
    if aval.size == 1:
        return ()
    if spreads:
        return () if eqn.invars[0].aval.size == 1 else None
    return aval.shape if aval.size >= LEAST else None


def joins(eqn: Eqn, shape: Shape) -> bool:
    """Whether XLA writes the equation into a loop over this shape."""
    if eqn.primitive is bitcast_convert_type_p:
        return eqn.invars[0].aval.shape == shape
    return traits_of(eqn.primitive).fuses


class Parts:
    """A run of equations, to be written as several."""

    def __init__(self, eqns: Sequence[Eqn], chained: Sequence[bool], size: int) -> None:
        self.eqns = eqns
        self.chained = chained
        self.size = size
        self.last = {
            a.index: i
            for i, eqn in enumerate(eqns)
            for a in eqn.invars
            if type(a) is Var
        }
        self.renamed: dict[int, Var] = {}

    def write(self, eqns: list[Eqn]) -> int:
        """Add the equations to `eqns`; how many variables there are then."""
        left = sum(self.chained)
        slow = sum([traits_of(eqn.primitive).work is Work.SLOW for eqn in self.eqns])
        length = LONG if slow * SHARE >= left else SHORT
        alive: dict[int, Eqn] = {}
        count, last = 0, self.last
        for i, (eqn, chained) in enumerate(zip(self.eqns, self.chained, strict=True)):
            if count >= length and left >= length // 2 and self.may_end(alive):
                eqns.append(self.barrier(list(alive.values())))
                count = 0
            eqns.append(self.with_new_names(eqn) if self.renamed else eqn)
            for a in eqn.invars:
                if type(a) is Var and last[a.index] == i:
                    alive.pop(a.index, None)
            if chained:
                count, left = count + 1, left - 1
                if last.get(eqn.outvars[0].index, 0) > i:
                    alive[eqn.outvars[0].index] = eqn
        return self.size

    def may_end(self, alive: Mapping[int, Eqn]) -> bool:
        """Whether a loop may end where these equations have made what is needed."""
        if not 0 < len(alive) <= ALIVE:
            return False
        return not any([traits_of(eqn.primitive).fma for eqn in alive.values()])

    def barrier(self, makers: Sequence[Eqn]) -> Eqn:
        """The equation that stores values, which have other names from now on."""
        olds = [eqn.outvars[0] for eqn in makers]
        news = tuple([Var(self.size + k, v.aval) for k, v in enumerate(olds)])
        ins = tuple([self.renamed.get(v.index, v) for v in olds])
        self.size += len(news)
        self.renamed |= {v.index: new for v, new in zip(olds, news, strict=True)}
        return equation(optimization_barrier_p, BARRIER, ins, news, makers[-1].source)

    def with_new_names(self, eqn: Eqn) -> Eqn:
        """The equation, reading what has been stored."""
        renamed = self.renamed
        ins = tuple(
            [renamed.get(a.index, a) if type(a) is Var else a for a in eqn.invars]
        )
        if ins == eqn.invars:
            return eqn
        return equation(eqn.primitive, eqn.params, ins, eqn.outvars, eqn.source)
