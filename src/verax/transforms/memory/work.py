"""Floor 3: what it costs to run an equation once more.

The unit is an operation. Memory counts too: what is written and read again takes about
as long as four operations for a byte, and a function such as `exp` sixteen an element.
"""

from math import inf
from typing import Final

from verax.ir.jaxpr import NO_PARAMS, Eqn
from verax.rules.rows.costs import Costs
from verax.rules.rows.row import Work, traits_of, unknown_flops

# Operations that take as long as a byte of memory, and as an element of `exp`.
BYTE: Final = 1.0
SLOW: Final = 16.0


class Reckoner:
    """Counts the operations of equations, once for those of equal types."""

    def __init__(self) -> None:
        self.costs = Costs()
        # The equation is kept, so that its parameters stay what their number says.
        self.known: dict[tuple[object, ...], tuple[float, Eqn]] = {}

    def work(self, eqn: Eqn) -> float:
        """The operations of one more run; infinite if there must be none."""
        ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        key = eqn.primitive, id(eqn.params), len(ins), *ins, *outs
        entry = self.known.get(key)
        if entry is None:
            entry = self.known[key] = self.counted(eqn), eqn
        return entry[0]

    def counted(self, eqn: Eqn) -> float:
        """The same, counted."""
        traits = traits_of(eqn.primitive)
        alone = eqn.params is NO_PARAMS
        if traits.flops is unknown_flops or (not alone and eqn.effects):
            return inf
        if traits.view:
            return 1.0
        count = sum([v.aval.size for v in eqn.outvars if not v.aval.symbolic])
        if traits.work is Work.CHEAP:
            return 0.5 * count
        if traits.work is Work.SLOW:
            return SLOW * count
        if traits.fuses:
            return float(count)
        return max(self.costs.of(eqn).flops or 0.0, count) + 4 * BYTE * count
