"""Floor 3: the policy of a checkpoint that keeps what fits in a budget.

One idea: what lives from the first computation to the second crosses the place between
them, so that the choice is that of a crossing::

    checkpoint(f, policy=budget("2GB"))
"""

from collections.abc import Callable, Collection, Sequence

from attrs import frozen

from verax.ir.jaxpr import Atom, Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ops.calls.checkpoint import WholePolicy
from verax.transforms.memory.crossing import Crossing
from verax.transforms.memory.exact import within
from verax.transforms.memory.storage import steps_of, stored_values, total


@frozen(repr=False)
class BudgetPolicy(ReprMixin, WholePolicy):
    """Keeps values of a program in so many bytes, of those that it would keep at most.

    `limit` gives the bytes from those that are kept without a policy.
    """

    limit: Callable[[int], int]

    def kept(self, jaxpr: Jaxpr, read: Sequence[Atom]) -> Collection[Var]:
        """The values to keep for the least work."""
        needed = {a for a in read if isinstance(a, Var)} - set(jaxpr.invars)
        steps = steps_of(jaxpr, stored_values(jaxpr) | needed)
        graph = Crossing(steps, list(needed)).graph()
        return within(graph, self.limit(total(needed)))
