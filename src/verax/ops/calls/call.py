"""Floor 2: `jit` as an equation: a call of a jaxpr by name.

One idea: a call means its jaxpr, so each of its rules asks the engine for the rewritten
jaxpr and calls that; the rewrites are memoised, for jaxprs hash by structure::

    b:f32[3] = jit[name=f jaxpr={ lambda ; a:f32[3]. let ... }] a
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from random import Random
from typing import Any, Self

from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params
from verax.ir.records import QUIET, ReprMixin
from verax.rules.programs.calling import Rebind, pull, push, spread_batch
from verax.rules.rows.bodies import thread_call
from verax.rules.rows.builder import Builder, rebuilt
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.infer import Mask, chosen, knowns, merged, unknowns
from verax.rules.rows.row import (
    Engine,
    Known,
    LowerRule,
    Row,
    Sample,
    Split,
    SplitRule,
    TypeRule,
    as_typed,
    same_kind,
)
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class NamedCall(Params):
    """Params that name a function and hold it: the equation means a call of it.

    A class of such params states both fields again where others come between: fields
    print in order.
    """

    name: str
    jaxpr: Jaxpr


type Attributes = tuple[tuple[str, str], ...]


@frozen(cache_hash=True, repr=False)
class Metadata(ReprMixin):
    """What the compiler is told of the operations of a call.

    `attributes` are keys with their values; `derived` those of what derivatives make of
    the call, None if they are the same. A call that is `inlined` is written in place,
    each operation with the attributes; else the call has them.
    """

    attributes: Attributes
    derived: Attributes | None = None
    inlined: bool = False

    @property
    def backward(self) -> "Metadata":
        """The metadata of derivatives."""
        if self.derived is None:
            return self
        return Metadata(self.derived, None, self.inlined)


@frozen(eq=False, repr=False)
class CallParams(NamedCall):
    """The jaxpr that is called, and the name that the user's function has.

    `asked` says whether a compiled program was requested, as by `jit`; the call
    of a user's rule, or of what has `metadata`, is only a name for its equations.
    """

    asked: bool = field(default=True, metadata=QUIET)
    metadata: Metadata | None = field(default=None, metadata=QUIET)

    @classmethod
    def from_keywords(cls, fields: Mapping[str, Any]) -> Self:
        """Params by keyword; JAX's `inline` says nothing of a call that is there."""
        return super().from_keywords({n: x for n, x in fields.items() if n != "inline"})

    def subjaxprs(self, aside: bool = True) -> Iterator[Jaxpr]:
        """The jaxpr, without a look at the other fields: most programs hold calls."""
        yield self.jaxpr


def rule_call(name: str, jaxpr: Jaxpr) -> CallParams:
    """A call that no user asked for: eagerly its equations run one by one."""
    return CallParams(name, jaxpr, asked=False)


def derived(p: CallParams) -> CallParams:
    """The params of what derivatives make of a call."""
    return p if p.metadata is None else evolve(p, metadata=p.metadata.backward)


def call_typing(p: CallParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    # Weakness may be lost on the way: Jacobians seed strong tangents of weak inputs.
    # Neither how mesh axes split operands, which a batch dimension may change.
    if [same_kind(a) for a in avals] != [same_kind(a) for a in p.jaxpr.in_avals]:
        raise TypeError(f"jit of {p.name} takes {p.jaxpr.in_avals}, not {tuple(avals)}")
    return p.jaxpr.out_avals


def split_call(engine: Engine, p: CallParams, args: Sequence[Known]) -> Split:
    """Two calls: what is known now, and the rest on what was saved.

    A saved operand is taken from outside the call and not returned by it.
    """
    first, second, waiting = engine.split(p.jaxpr, unknowns(args))
    given = knowns(args)
    count = len(waiting) - sum(waiting)
    place: dict[Atom, int] = {var: i for i, var in enumerate(first.invars)}
    saved = first.outvars[count:]
    made = tuple(a not in place for a in saved)
    slim, needed = engine.dce(first, (True,) * count + made)
    runs = slim.outvars or slim.effects
    outs = jit_p.bind(evolve(p, jaxpr=slim), *chosen(needed, given)) if runs else ()
    fresh = iter(outs[count:])
    residuals = [
        next(fresh) if flag else given[place[a]]
        for a, flag in zip(saved, made, strict=True)
    ]

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        return jit_p.bind(evolve(derived(p), jaxpr=second), *residuals, *operands)

    return Split(
        tuple(merged(waiting, repeat(None), outs[:count])),
        tuple(residuals),
        finish,
    )


def call_row[P: NamedCall](
    name: str,
    kind: type[P],
    *,
    typing: TypeRule[P],
    lower: LowerRule[P],
    split: SplitRule[P],
    spelled: Callable[[P], Jaxpr | None],
    draw: Callable[[Random], Sample[P]] | None = None,
    compiled: bool = False,
    derived: Callable[[P], P] = lambda p: p,
) -> Row[P]:
    """The row of a call whose rewrite is the same call of the rewritten jaxpr.

    `derived` makes the params of a transposed call.
    """

    def rebinding(p: P) -> Rebind:
        def bind(jaxpr: Jaxpr, *args: Array) -> Sequence[Array]:
            return row.bind(evolve(p, jaxpr=jaxpr), *args)

        return bind

    def dce(engine: Engine, p: P, used: Mask) -> tuple[P, Mask, Mask]:
        jaxpr, needed = engine.dce(p.jaxpr, used)
        return evolve(p, jaxpr=jaxpr), needed, used

    row: Row[P] = Row(
        name,
        kind,
        typing=typing,
        evaluate=lambda engine, p, xs: engine.evaluate(p.jaxpr, xs),
        jvp=lambda engine, p, xs, ts: push(engine, p.jaxpr, rebinding(p), xs, ts),
        transpose=lambda engine, p, cts, xs: pull(
            engine, p.jaxpr, rebinding(derived(p)), cts, xs
        ),
        batch=lambda engine, p, size, xs, axes: spread_batch(
            engine, p.jaxpr, rebinding(p), size, xs, axes
        ),
        lower=lower,
        split=split,
        dce=dce,
        thread=lambda through, p, values: thread_call(through, values, rebinding(p)),
        draw=draw,
        compiled=compiled,
        spelled=spelled,
        multiple_results=True,
        sharding=as_typed,
    )
    return row


def lower_call(
    e: Emitter, p: CallParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """A call of a function of the module, or what has the attributes of the call."""
    told = p.metadata
    if told is None:
        return e.call(p.jaxpr, xs, p.name)
    with e.attributed(told.attributes):
        return e.inline(p.jaxpr, xs) if told.inlined else e.call(p.jaxpr, xs, p.name)


jit_p = call_row(
    "jit",
    CallParams,
    typing=call_typing,
    lower=lower_call,
    split=split_call,
    spelled=lambda p: None if p.asked else p.jaxpr,
    compiled=True,
    derived=derived,
)


def call(name: str, jaxpr: Jaxpr, *args: object) -> tuple[Array, ...]:
    """The results of `jaxpr` on `args`, as one equation under a trace."""
    return jit_p.bind(CallParams(name, jaxpr), *args)


def called(eqn: Eqn) -> Jaxpr | None:
    """The jaxpr that an equation stands for: that of `jit`, else None.

    A call that tells the compiler something says more than its equations.
    """
    params = eqn.params
    if eqn.primitive is jit_p and isinstance(params, CallParams):
        return None if params.metadata else params.jaxpr
    return None


def inline(jaxpr: Jaxpr, body_of: Callable[[Eqn], Jaxpr | None] = called) -> Jaxpr:
    """The program with their equations instead of calls, at any depth.

    Contract: inputs, output types, values and effects are kept. `body_of` gives the
    program that an equation stands for, or None.
    """

    def write(builder: Builder, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom]:
        body = body_of(eqn)
        if body is None:
            return builder.copy(eqn, ins)
        return builder.inline(inline(body, body_of), ins)

    return rebuilt(jaxpr, write, "inline")


ROWS = (jit_p,)
