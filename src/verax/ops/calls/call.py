"""Floor 2: `jit` as an equation: a call of a jaxpr by name.

One idea: a call means its jaxpr, so each of its rules asks the engine for the rewritten
jaxpr and calls that; the rewrites are memoised, for jaxprs hash by structure::

    b:f32[3] = jit[name=f jaxpr={ lambda ; a:f32[3]. let ... }] a
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from random import Random
from typing import Protocol, Self

from attrs import evolve, field, frozen
from pyrsistent import pvector

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import ExtendedDType, KeyDType, uint32
from verax.ir.effects import Effect
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params, Var
from verax.ir.records import QUIET, ReprMixin
from verax.ir.walk import map_subjaxprs, source
from verax.ops.elementwise.convert import convert
from verax.ops.structure.create import zeros
from verax.ops.structure.shape import at_front
from verax.rules.programs.derived import Rebind, pull, push, spread_batch
from verax.rules.rows.bodies import (
    Parts,
    Role,
    Through,
    Types,
    Values,
    flat,
    grouped,
    plain,
    thread_call,
    types_of,
)
from verax.rules.rows.builder import Builder, program, rebuilt
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.infer import (
    Mask,
    arrays_of,
    chosen,
    filled,
    fixpoint,
    knowns,
    merged,
    others,
    unknowns,
)
from verax.rules.rows.row import (
    Axis,
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
from verax.rules.values.state import STATE


@frozen(eq=False, repr=False)
class NamedCall(Params):
    """Params that name a function and hold it: the equation means a call of it.

    A class of such params states both fields again where others come between: fields
    print in order.
    """

    name: str
    jaxpr: Jaxpr

    @property
    def runs(self) -> Jaxpr:
        """The program that runs: the function, or what is made of it at the end."""
        return self.jaxpr

    def written(self) -> Self:
        """The call that holds the program that runs, for who rewrites that."""
        return self

    def passed_on(self, i: int) -> int | None:
        """See `Passing.passed_on`."""
        return source(self.jaxpr, self.jaxpr.outvars[i])


type Attributes = tuple[tuple[str, str], ...]


@frozen(cache_hash=True, repr=False)
class Metadata(ReprMixin):
    """The compiler's instructions for the operations of a call.

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
    def from_keywords(cls, fields: Mapping[str, object]) -> Self:
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
    runs: Callable[[P], Jaxpr] = lambda p: p.jaxpr,
) -> Row[P]:
    """The row of a call whose rewrite is the same call of the rewritten jaxpr.

    `derived` makes the params of a transposed call, `runs` the program that is
    evaluated for the jaxpr.
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
        evaluate=lambda engine, p, xs: engine.evaluate(runs(p), xs),
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


# -----------------------------------------------------------------------------
# Building blocks for rules of primitives that hold jaxprs.
#
# Such a rule rewrites the jaxprs and agrees on a common interface (which
# results are batched, unknown, have a tangent), so the rewrites come here with the
# interface forced upon them::
#
#     jaxpr = program((f32, f32), lambda x, y: (add(x, y),))
#     (z,) = inlined(jaxpr, (x, y))


class Batcher(Protocol):
    """Anything that vectorizes a jaxpr: an engine, or the emitter of a module."""

    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
    ) -> tuple[Jaxpr, tuple[Axis, ...]]: ...


def inlined(jaxpr: Jaxpr, args: Sequence[object]) -> list[Array]:
    """The results of `jaxpr`, whose equations go into the program being built.

    Operands may be weak where inputs are strong, and the other way round; the equations
    are not, so such operands are converted.
    """
    builder = STATE.interpreter
    assert isinstance(builder, Builder)
    operands = builder.tracers([builder.atom(x) for x in args])
    typed = [
        x if x.weak_type == a.weak_type else convert(x, a.dtype, a.weak_type)
        for x, a in zip(operands, jaxpr.in_avals, strict=True)
    ]
    return list(builder.call(jaxpr, typed))


def same_types(xs: Iterable[ShapedArray], ys: Iterable[ShapedArray]) -> bool:
    """Whether types are equal, but for weakness, and for how mesh axes split them.

    Operands may lose the one; the other is no more than what the compiler is told.
    """
    return [same_kind(x) for x in xs] == [same_kind(y) for y in ys]


def blank(aval: ShapedArray) -> Array:
    """Some array of this type: zeros, or keys made of zeros."""
    dtype = aval.dtype
    if not isinstance(dtype, KeyDType):
        return zeros(aval)
    words = ShapedArray((*aval.shape, *dtype.word_shape), uint32)
    from verax.ops.random.keys import random_wrap

    return random_wrap(zeros(words), dtype.impl)


def stored_shape(aval: ShapedArray) -> tuple[int, ...]:
    """The shape on a device, where keys have the dimensions of their words."""
    if isinstance(aval.dtype, ExtendedDType):
        return (*aval.shape, *aval.dtype.element_shape)
    return aval.shape


def with_inputs(jaxpr: Jaxpr, has: Mask, due: Mask, avals: Sequence[object]) -> Jaxpr:
    """`jaxpr`, whose inputs are those that `has` marks, on those `due` marks."""
    if has == due:
        return jaxpr
    kept = [flag for flag, want in zip(has, due, strict=True) if want]
    types = [a for a in chosen(due, avals) if isinstance(a, ShapedArray)]
    return program(types, lambda *xs: inlined(jaxpr, chosen(kept, xs)))


def forced_jvp(engine: Engine, jaxpr: Jaxpr, nonzero: Mask, due: Mask) -> Jaxpr:
    """`engine.jvp` with a tangent for each result that `due` marks."""
    pushed, mask = engine.jvp(jaxpr, nonzero)
    if mask == due:
        return pushed
    count = len(jaxpr.outvars)

    def body(*xs: Array) -> Sequence[object]:
        outs = inlined(pushed, xs)
        tangents = filled(mask, outs[count:], jaxpr.out_avals)
        return [*outs[:count], *arrays_of(engine, due, tangents, jaxpr.out_avals)]

    return program(pushed.in_avals, body)


def forced_batch(
    batcher: Batcher, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...], expected: Mask
) -> Jaxpr:
    """`batch` with the batch dimension first in each result that `expected` marks."""
    batched, out_axes = batcher.batch(jaxpr, size, axes)
    due = tuple([0 if flag else None for flag in expected])
    if out_axes == due:
        return batched

    def body(*xs: Array) -> Sequence[object]:
        outs = inlined(batched, xs)
        return [
            at_front(x, axis, size) if flag else x
            for x, axis, flag in zip(outs, out_axes, expected, strict=True)
        ]

    return program(batched.in_avals, body)


def batched_results(
    batcher: Batcher, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
) -> Mask:
    """Flags of the batched results."""
    _, out_axes = batcher.batch(jaxpr, size, axes)
    return tuple([axis is not None for axis in out_axes])


@frozen(repr=False)
class Halves(ReprMixin):
    """A split program: known inputs to known results and residuals, and the rest.

    `first` gives the results that are not in the mask and then `count` residuals;
    `second` maps residuals and unknown inputs to the other results.
    """

    first: Jaxpr
    second: Jaxpr
    count: int

    def residuals(self) -> tuple[object, ...]:
        """The atoms of `first` that are residuals."""
        outs = self.first.outvars
        return outs[len(outs) - self.count :]


def forced_split(engine: Engine, jaxpr: Jaxpr, unknown: Mask, due: Mask) -> Halves:
    """`engine.split` with each result unknown that `due` marks."""
    first, second, mask = engine.split(jaxpr, unknown)
    known = len(mask) - sum(mask)
    count = len(first.outvars) - known
    if mask == due:
        return Halves(first, second, count)
    late = others(mask, due)
    saved = sum(late)

    def before(*xs: Array) -> Sequence[object]:
        outs = inlined(first, xs)
        results, residuals = outs[:known], outs[known:]
        return [*others(late, results), *chosen(late, results), *residuals]

    extra = chosen(late, [a.aval for a in first.outvars[:known]])

    def after(*xs: Array) -> Sequence[object]:
        made = iter(inlined(second, xs[saved:]))
        given = iter(xs[:saved])
        return [
            next(made) if flag else next(given)
            for flag, want in zip(mask, due, strict=True)
            if want
        ]

    return Halves(
        program(first.in_avals, before),
        program((*extra, *second.in_avals), after),
        saved + count,
    )


def dropping(jaxpr: Jaxpr, effects: frozenset[Effect]) -> Jaxpr:
    """`jaxpr` without the equations that have these effects alone, and no results.

    Every variable keeps its number. Rules for derivatives keep theirs: they have not
    run.
    """
    if jaxpr.effects.isdisjoint(effects):
        return jaxpr
    kept = []
    for eqn in jaxpr.eqns:
        params = eqn.params
        if eqn.effects:
            params = map_subjaxprs(
                params, lambda inner: dropping(inner, effects), aside=False
            )
        silent = Eqn(eqn.primitive, params, eqn.invars, eqn.outvars, eqn.source)
        if not eqn.effects or silent.outvars or not silent.effects <= effects:
            kept.append(silent)
    return evolve(jaxpr, eqns=pvector(kept))


def positions(jaxpr: Jaxpr) -> dict[object, int]:
    """The position of each input."""
    return {var: i for i, var in enumerate(jaxpr.invars) if isinstance(var, Var)}


def waiting(
    args: Sequence[Known], count: int, bind: Callable[..., Sequence[Array]]
) -> Split:
    """The split of an equation that waits as a whole; it has `count` results."""
    unknown = unknowns(args)

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        return bind(*merged(unknown, operands, residuals))

    return Split((None,) * count, tuple(knowns(args)), finish)


def width_of(values: Iterable[Sequence[object]]) -> int:
    """The number of parts of a value that is touched."""
    return max([1, *map(len, values)])


def elements(types: Types, dimensions: int = 1) -> Types:
    """The types without so many dimensions in front."""
    return tuple([None if t is None else element(t, dimensions) for t in types])


def element(aval: ShapedArray, dimensions: int) -> ShapedArray:
    for _ in range(dimensions):
        aval = aval.element()
    return aval


def flags_of(values: Values, flags: Sequence[bool]) -> list[bool]:
    """The flags of operands for their parts: one with parts is not marked."""
    return [
        flag and plain(parts)
        for parts, flag in zip(values, flags, strict=True)
        for _ in flat([parts])
    ]


def carried(
    through: Through,
    carry: Values,
    width: int,
    stepped: Callable[[Sequence[Types]], Iterable[Types]],
) -> list[Parts]:
    """The carries at the start, filled where a step gives them parts.

    `stepped` maps the types of carries to those that a step makes of them.
    """

    def filled(mask: Mask) -> list[Parts]:
        return [
            through.fill(parts, width) if flag else parts
            for parts, flag in zip(carry, mask, strict=True)
        ]

    def step(mask: Mask) -> list[bool]:
        types = [types_of(parts) for parts in filled(mask)]
        return [not plain(outs) for outs in stepped(types)]

    return filled(fixpoint(tuple([not plain(c) for c in carry]), step))


def thread_loop(
    through: Through,
    consts: Values,
    carry: Values,
    bind: Callable[[Jaxpr, Sequence[object], Sequence[object]], Sequence[Array]],
) -> Values:
    """The `thread` rule of a loop whose only program maps carries to carries.

    The program takes the constants, then the carries, and runs any number of times.
    `bind(jaxpr, constants, carries)` is the loop with another program, whose state goes
    with the carries.
    """
    fixed = list(map(types_of, consts))

    def stepped(types: Sequence[Types]) -> Sequence[Types]:
        return through.outputs(0, (*fixed, *types))

    start = carried(through, carry, width_of([*consts, *carry]), stepped)
    due = list(map(types_of, start))
    state = through.enter(Role.STEP)
    jaxpr = through.program(0, Role.STEP, (*fixed, *due), due)
    outs = bind(jaxpr, flat(consts), [*flat(start), *state])
    count = len(flat(due))
    through.leave(Role.STEP, outs[count:])
    return grouped(due, outs[:count])


def common_types(
    through: Through, results: Sequence[Sequence[Types]], width: int
) -> list[Types]:
    """The types of the parts of each result that several programs agree on."""
    due: list[Types] = []
    for each in zip(*results, strict=True):
        full = [t for t in each if len(t) == width and None not in t]
        if all(map(plain, each)):
            due.append(each[0])
        elif full:
            due.append(full[0])
        else:
            due.append(filled_types(through, max(each, key=len), width))
    return due


def filled_types(through: Through, some: Types, width: int) -> Types:
    """The types of all parts of a result that has some of them."""
    made: list[Types] = []

    def body(*xs: Array) -> list[Array]:
        parts = through.fill(grouped([some], xs)[0], width)
        made.append(types_of(parts))
        return flat([parts])

    program(flat([some]), body)
    return made[0]


def with_state_carried(jaxpr: Jaxpr, before: int, carries: int, states: int) -> Jaxpr:
    """A step that takes and returns its state after its carries, and not at the end.

    `before` inputs and `carries` come before the rows.
    """
    if not states:
        return jaxpr
    end = before + carries
    avals = jaxpr.in_avals
    rows = len(avals) - states

    def step(*ins: Array) -> Sequence[Array]:
        middle = end + states
        outs = inlined(jaxpr, [*ins[:end], *ins[middle:], *ins[end:middle]])
        own = len(outs) - states
        return [*outs[:carries], *outs[own:], *outs[carries:own]]

    return program([*avals[:end], *avals[rows:], *avals[end:rows]], step)
