"""Floor 3: a call whose program is narrowed when it runs, after all else.

One idea: derivatives are taken of the wide program, and what they make is a call again.
So both ways of a gradient have narrow products, what comes back to a weight is summed
in the wide type, and rules of the user's own for derivatives are met as ever::

    y:f32[8] = narrow[name=f plan=... jaxpr={ lambda ; ... }] x
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Self

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.call import NamedCall, call_row
from verax.ops.custom.base import typing_of_call
from verax.rules.programs.derived import Rebind
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.infer import knowns, merged, unknowns
from verax.rules.rows.row import Engine, Known, Row, Split
from verax.rules.values.array import Array
from verax.transforms.narrowing.plan import Narrowing
from verax.transforms.narrowing.writer import narrowed


@frozen(eq=False, repr=False)
class NarrowParams(NamedCall):
    """The function in wide types, and what is narrowed; None if that has been done."""

    name: str
    plan: Narrowing | None
    jaxpr: Jaxpr

    @property
    def runs(self) -> Jaxpr:
        """The narrow program."""
        return self.jaxpr if self.plan is None else narrowed(self.plan, self.jaxpr)

    def written(self) -> Self:
        """The call of the narrow program."""
        return self if self.plan is None else evolve(self, plan=None, jaxpr=self.runs)


def rebinding(p: NarrowParams) -> Rebind:
    """Binds another program under the same plan."""

    def bind(jaxpr: Jaxpr, *args: Array) -> Sequence[Array]:
        return narrow_p.bind(evolve(p, jaxpr=jaxpr), *args)

    return bind


def split_narrow(engine: Engine, p: NarrowParams, args: Sequence[Known]) -> Split:
    """Two calls: what is known now, and the rest on what was saved."""
    first, second, waiting = engine.split(p.jaxpr, unknowns(args))
    bind = rebinding(p)
    count = len(waiting) - sum(waiting)
    outs = bind(first, *knowns(args)) if first.outvars or first.effects else ()

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        return bind(second, *residuals, *operands)

    known = merged(waiting, repeat(None), outs[:count])
    return Split(tuple(known), tuple(outs[count:]), finish)


def lower_narrow(
    e: Emitter, p: NarrowParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """The narrow program in place, so that XLA joins what both ways round."""
    return e.inline(p.runs, xs)


narrow_p: Row[NarrowParams] = call_row(
    "narrow",
    NarrowParams,
    typing=typing_of_call,
    lower=lower_narrow,
    split=split_narrow,
    spelled=lambda p: p.runs,
    runs=lambda p: p.runs,
)
