"""Floor 2: what a `while` knows, its type, and how it runs.

Operands are the constants of the predicate, those of the step, then the carries; the
predicate and the step both take the carries::

    cond_consts, body_consts, carry = p.parts(operands)
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bool_, is_bool
from verax.ir.effects import Effect, is_ordered
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.records import QUIET
from verax.ops.calls.call import same_types
from verax.rules.rows.emitter import Emitter, Operand, apart
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import Engine, NDArray


@frozen(eq=False, repr=False)
class WhileParams(Params):
    """The step and the predicate; each has constants, and both take the carries.

    Under vmap with a predicate for each batch element, a `sequential` loop runs for one
    batch element after another.
    """

    body_jaxpr: Jaxpr
    body_nconsts: int
    cond_jaxpr: Jaxpr
    cond_nconsts: int
    sequential: bool = field(default=False, kw_only=True, metadata=QUIET)

    def parts[T](self, xs: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Operands: constants of the predicate, constants of the step, carries."""
        first, second = self.cond_nconsts, self.cond_nconsts + self.body_nconsts
        return list(xs[:first]), list(xs[first:second]), list(xs[second:])

    @property
    def effects(self) -> frozenset[Effect]:
        return self.shifted_effects(self.cond_nconsts, 0)

    @property
    def reversible(self) -> bool:
        """Whether the loop has a transpose."""
        return False

    def with_linear(self, linear: Mask) -> Self:
        """The params of a loop that is linear in these operands, if it keeps that."""
        return self

    @property
    def carry(self) -> tuple[ShapedArray, ...]:
        """The types of the carries."""
        return self.body_jaxpr.out_avals


@frozen(eq=False, repr=False)
class BoundedWhileParams(WhileParams):
    """A loop whose predicate fails after at most as many steps as the blocks hold.

    Run backwards, it is a nest of loops of the lengths `blocks`; each stores the
    carries with which the blocks inside it begin. `linear` marks operands in which the
    results are known to be linear.
    """

    blocks: tuple[int, ...]
    linear: Mask

    @property
    def reversible(self) -> bool:
        """Whether the loop has a transpose."""
        return True

    def with_linear(self, linear: Mask) -> Self:
        """The params of a loop that is linear in these operands."""
        return evolve(self, linear=linear)


def linear_flags(p: WhileParams, count: int) -> Mask:
    """Flags of the `count` operands in which the results are known to be linear."""
    return p.linear if isinstance(p, BoundedWhileParams) else (False,) * count


def while_typing(p: WhileParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    cond_consts, body_consts, carry = p.parts(avals)
    if not same_types(p.cond_jaxpr.in_avals, (*cond_consts, *carry)):
        raise TypeError(
            f"the predicate of while takes {p.cond_jaxpr.in_avals}, not "
            f"{(*cond_consts, *carry)}"
        )
    if not same_types(p.body_jaxpr.in_avals, (*body_consts, *carry)):
        raise TypeError(
            f"the body of while takes {p.body_jaxpr.in_avals}, not "
            f"{(*body_consts, *carry)}"
        )
    if not same_types(p.carry, carry):
        raise TypeError(
            f"the body of while takes carries {carry} but returns {p.carry}"
        )
    outs = p.cond_jaxpr.out_avals
    if len(outs) != 1 or outs[0].shape or outs[0].dtype != bool_:
        raise TypeError(
            f"the predicate of while must return one boolean scalar, not {outs}"
        )
    return p.carry


def evaluate_while(
    engine: Engine, p: WhileParams, args: Sequence[NDArray]
) -> Sequence[NDArray]:
    cond_consts, body_consts, carry = p.parts(args)
    while bool(engine.evaluate(p.cond_jaxpr, [*cond_consts, *carry])[0]):
        carry = engine.evaluate(p.body_jaxpr, [*body_consts, *carry])
    return [np.asarray(x) for x in carry]


def lower_while(
    e: Emitter, p: WhileParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """A loop; if the predicate has effects, the loop carries what it gave.

    XLA drops carries that it knows never to change, and aborts when none is left. So a
    flag that goes in is hidden from it; counters, by which it counts steps, are not.
    """
    cond_consts, body_consts, carry = p.parts(xs)
    carry = [apart(e, (x,))[0] if is_bool(x.aval.dtype) else x for x in carry]

    def more(state: Sequence[Operand]) -> Sequence[Operand]:
        return e.inline(p.cond_jaxpr, [*cond_consts, *state])

    def body(state: Sequence[Operand]) -> Sequence[Operand]:
        return e.inline(p.body_jaxpr, [*body_consts, *state])

    def body_and_more(state: Sequence[Operand]) -> Sequence[Operand]:
        after = body(state[1:])
        return [*more(after), *after]

    op = e.threaded if is_ordered(p.effects) else e.op
    if not p.cond_jaxpr.effects:
        regions = ((outs, more), (outs, body))
        return op("stablehlo.while", carry, outs, regions)
    types = (*p.cond_jaxpr.out_avals, *outs)
    first = (*more(carry), *carry)
    again = ((types, lambda state: state[:1]), (types, body_and_more))
    return op("stablehlo.while", first, types, again)[1:]
