"""Floor 5: a function with the values on which a report runs it.

One idea: what reports on a run traces the function on its arguments, static ones apart,
with their values, and with names of the leaves for messages::

    call = OnValues.of(fun, statics.bind(args, kwargs), "watch")
    traced = call.trace()
"""

from collections.abc import Callable

from attrs import frozen

from verax.api.arguments.call_keys import CallArguments
from verax.api.tracing.trace import Traced, leaf_avals, trace
from verax.api.tracing.wrapping import Describe, describe_arguments
from verax.backend import pytrees
from verax.ir.records import ReprMixin
from verax.rules.rows.leaks import leaked


@frozen(eq=False, repr=False)
class OnValues(ReprMixin):
    """A function of the traced arguments alone, and the leaves of these.

    `purpose` is what messages call the trace, and `describe` names the leaves.
    """

    inner: Callable[..., object]
    leaves: list[object]
    tree: pytrees.PyTreeDef
    purpose: str
    describe: Describe

    @classmethod
    def of(
        cls, fun: Callable[..., object], given: CallArguments, purpose: str
    ) -> "OnValues":
        """A function with the arguments of one call."""
        leaves, tree = pytrees.flatten(given.dynamic)
        describe = describe_arguments(fun, tree, given.positions)
        return cls(given.with_statics(fun), leaves, tree, purpose, describe)

    def trace(self) -> Traced:
        """The trace of the function, which may have captured tracers."""
        return trace(
            self.inner,
            self.tree,
            leaf_avals(self.leaves, self.describe),
            self.purpose,
            describe=self.describe,
            values=self.leaves,
        )

    def closed(self) -> Traced:
        """The trace, which has captured nothing that is being traced.

        Raises:
            LeakedTracer: the function has captured a tracer.
        """
        out = self.trace()
        if out.captured:
            raise leaked(out.captured[0])
        return out

    def beside(self, name: str, other: str) -> Traced:
        """The closed trace of what runs beside something else, without references.

        Raises:
            LeakedTracer: the function has captured a tracer.
            TypeError: it takes mutable references, or closes over some.
        """
        out = self.closed()
        if out.refs:
            raise TypeError(
                f"{self.purpose} runs {name} beside {other}, so it cannot take or "
                "close over mutable references; pass their values"
            )
        return out
