"""Floor 2: what calls with rules of the user's own have in common.

One idea: such a call means the function that it holds, so a row states what asks the
user's rule, and the other columns are those of the function::

    linear_call_p = custom_row("linear_call", LinearCallParams, jvp=..., batch=...)
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.call import NamedCall, jit_p, rule_call
from verax.ops.calls.callbacks import silenced
from verax.rules.programs.derived import Rebind, pull, push
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.infer import knowns, nonzeros, sum_of
from verax.rules.rows.row import (
    BatchRule,
    DceRule,
    Engine,
    JvpRule,
    Known,
    LowerRule,
    Row,
    Sample,
    SplitRule,
    Tangent,
    TransposeRule,
    Zero,
    as_typed,
    unsplit,
)
from verax.rules.values.array import Array

SHORT = 2
"""Equations up to which a function is lowered in place and not as a function."""


class NamesAxes(Protocol):
    """A rule, and the axes that its program may name once it is traced."""

    @property
    def named_axes(self) -> frozenset[str]: ...


class Remade:
    """A rule that is made of another, `rule`: it names no other axes."""

    __slots__ = ()
    rule: NamesAxes

    @property
    def named_axes(self) -> frozenset[str]:
        """The axes that the rule may name."""
        return self.rule.named_axes


def custom_row[P: NamedCall](
    name: str,
    kind: type[P],
    *,
    jvp: JvpRule[P],
    batch: BatchRule[P],
    transpose: TransposeRule[P] | None = None,
    split: SplitRule[P] | None = None,
    dce: DceRule[P] | None = None,
    draw: Callable[[Random], Sample[P]] | None = None,
    lower: LowerRule[P] | None = None,
) -> Row[P]:
    """A call with rules of the user's own; it is transposed as the function is."""
    return Row(
        name,
        kind,
        typing=typing_of_call,
        evaluate=lambda engine, p, xs: engine.evaluate(p.jaxpr, xs),
        jvp=jvp,
        transpose=transpose or transpose_of_call,
        batch=batch,
        lower=lower or lower_body,
        split=split,
        dce=dce,
        spelled=lambda p: p.jaxpr,
        draw=draw,
        multiple_results=True,
        sharding=as_typed,
    )


def typing_of_call(p: NamedCall, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    """The result types of the function.

    Raises:
        TypeError: the operands do not have the types of its inputs.
    """
    due = p.jaxpr.in_avals
    if tuple(avals) != due and list(map(unsplit, avals)) != list(map(unsplit, due)):
        raise TypeError(f"the call of {p.name} takes {p.jaxpr.in_avals}, not {avals}")
    return p.jaxpr.out_avals


def called(p: NamedCall) -> Rebind:
    """Binds a program as a call under the name of the function."""

    def bind(jaxpr: Jaxpr, *args: Array) -> Sequence[Array]:
        return jit_p.bind(rule_call(p.name, jaxpr), *args)

    return bind


def transpose_of_call(
    engine: Engine, p: NamedCall, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The transpose of the function itself, where it is used as a linear one."""
    return pull(engine, p.jaxpr, called(p), cts, args)


def lower_body(
    e: Emitter,
    p: NamedCall,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """A short function in place, a longer one as a function of the module."""
    if len(p.jaxpr.eqns) <= SHORT and not p.jaxpr.used_consts:
        return e.inline(p.jaxpr, operands)
    return e.call(p.jaxpr, operands, p.name)


def known_residuals(name: str, args: Sequence[Known]) -> list[Array]:
    """The residuals of the linear function `name`, which are values.

    Raises:
        TypeError: it is transposed in one of them.
    """
    out = knowns(args)
    if len(out) < len(args):
        raise TypeError(f"the rule of {name} is not linear in its residuals")
    return out


def derivative_in_captured(
    engine: Engine,
    p: NamedCall,
    jaxpr: Jaxpr,
    captured: int,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The jvp of a call of `jaxpr` in its first `captured` operands alone."""
    zeros = [Zero(x.aval.tangent()) for x in primals[captured:]]
    moving = [*tangents[:captured], *zeros]
    return push(engine, jaxpr, called(p), primals, moving)


def with_captured(
    engine: Engine,
    p: NamedCall,
    captured: int,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
    pushed: Sequence[Tangent],
) -> Sequence[Tangent]:
    """`pushed`, and the tangents of the function in what it captured, if that moves.

    The effects of the function have happened where its results were computed.
    """
    if not any(nonzeros(tangents[:captured])):
        return pushed
    silent = silenced(p.jaxpr)
    _, more = derivative_in_captured(engine, p, silent, captured, primals, tangents)
    return [sum_of(engine, t, u) for t, u in zip(pushed, more, strict=True)]
