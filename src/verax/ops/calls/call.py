"""Floor 2: `jit` as an equation: a call of a jaxpr by name.

One idea: a call means its jaxpr, so each of its rules asks the engine for the rewritten
jaxpr and calls that; the rewrites are memoised, for jaxprs hash by structure::

    b:f32[3] = jit[name=f jaxpr={ lambda ; a:f32[3]. let ... }] a
"""

from collections.abc import Sequence

from attrs import evolve, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.printer import QUIET
from verax.rules.programs.calling import Rebind, pull, push, spread_batch
from verax.rules.rows.row import Engine, Known, Linear, Row, Split
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class CallParams(Params):
    """The jaxpr that is called, and the name that the user's function has.

    `asked` says whether somebody asked for a compiled program, as `jit` does; the call
    of a user's rule is only a name for its equations.
    """

    name: str
    jaxpr: Jaxpr
    asked: bool = field(default=True, metadata=QUIET)


def rule_call(name: str, jaxpr: Jaxpr) -> CallParams:
    """A call for which nobody asked: eagerly its equations run one by one."""
    return CallParams(name, jaxpr, asked=False)


def call_typing(p: CallParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    # Weakness may be lost on the way: Jacobians seed strong tangents of weak inputs.
    if [a.strong() for a in avals] != [a.strong() for a in p.jaxpr.in_avals]:
        raise TypeError(f"jit of {p.name} takes {p.jaxpr.in_avals}, not {tuple(avals)}")
    return p.jaxpr.out_avals


def rebinding(p: CallParams) -> Rebind:
    """Another jaxpr under the same name."""

    def bind(jaxpr: Jaxpr, *args: Array) -> Sequence[Array]:
        return jit_p.bind(evolve(p, jaxpr=jaxpr), *args)

    return bind


def split_call(engine: Engine, p: CallParams, args: Sequence[Known]) -> Split:
    """Two calls: what is known now, and the rest on what was saved.

    A saved operand is taken from outside the call and not returned by it.
    """
    unknown = tuple(isinstance(x, Linear) for x in args)
    first, second, waiting = engine.split(p.jaxpr, unknown)
    given = [x for x in args if isinstance(x, Array)]
    count = len(waiting) - sum(waiting)
    place = {var: i for i, var in enumerate(first.invars)}
    saved = first.outvars[count:]
    made = tuple(a not in place for a in saved)
    slim, needed = engine.dce(first, (True,) * count + made)
    operands = [x for x, flag in zip(given, needed, strict=True) if flag]
    runs = slim.outvars or slim.effects
    outs = jit_p.bind(evolve(p, jaxpr=slim), *operands) if runs else ()
    results, fresh = iter(outs[:count]), iter(outs[count:])
    residuals = [
        next(fresh) if flag else given[place[a]]  # type: ignore[index]  # an input
        for a, flag in zip(saved, made, strict=True)
    ]

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        return jit_p.bind(evolve(p, jaxpr=second), *residuals, *operands)

    return Split(
        tuple(None if flag else next(results) for flag in waiting),
        tuple(residuals),
        finish,
    )


def dce_call(
    engine: Engine, p: CallParams, used: tuple[bool, ...]
) -> tuple[CallParams, tuple[bool, ...], tuple[bool, ...]]:
    jaxpr, needed = engine.dce(p.jaxpr, used)
    return evolve(p, jaxpr=jaxpr), needed, used


jit_p: Row[CallParams] = Row(
    "jit",
    CallParams,
    typing=call_typing,
    evaluate=lambda engine, p, xs: engine.evaluate(p.jaxpr, xs),
    jvp=lambda engine, p, xs, ts: push(engine, p.jaxpr, rebinding(p), xs, ts),
    transpose=lambda engine, p, cts, xs: pull(engine, p.jaxpr, rebinding(p), cts, xs),
    batch=lambda engine, p, size, xs, axes: spread_batch(
        engine, p.jaxpr, rebinding(p), size, xs, axes
    ),
    lower=lambda e, p, xs, outs: e.call(p.jaxpr, xs, p.name),
    split=split_call,
    dce=dce_call,
    compiled=True,
    spelled=lambda p: None if p.asked else p.jaxpr,
)


def call(name: str, jaxpr: Jaxpr, *args: object) -> tuple[Array, ...]:
    """The results of `jaxpr` on `args`, as one equation under a trace."""
    return jit_p.bind(CallParams(name, jaxpr), *args)


ROWS = (jit_p,)
