"""Floor 2: building blocks for rules of primitives that hold jaxprs.

One idea: such a rule rewrites the jaxprs and agrees on a common interface (which
results are batched, unknown, have a tangent), so the rewrites come here with the
interface forced upon them::

    jaxpr = program((f32, f32), lambda x, y: (add(x, y),))
    (z,) = inlined(jaxpr, (x, y))
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from attrs import evolve, frozen
from pyrsistent import pvector

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import uint32
from verax.ir.effects import Effect
from verax.ir.extended import ExtendedDType, KeyDType
from verax.ir.jaxpr import Eqn, Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ir.walk import map_subjaxprs
from verax.ops.elementwise.convert import convert
from verax.ops.structure.create import zeros
from verax.ops.structure.shape import at_front
from verax.rules.rows.bodies import (
    Parts,
    Role,
    Through,
    Types,
    Values,
    flat,
    grouped,
    plain,
    types_of,
)
from verax.rules.rows.builder import Builder, program
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
from verax.rules.rows.row import Axis, Engine, Known, Split, same_kind
from verax.rules.values.array import Array
from verax.rules.values.lazy import LazyModule
from verax.rules.values.state import STATE

# Keys are among the operands of few programs.
PRNG = LazyModule("verax.ops.random.keys")


class Batcher(Protocol):
    """What vectorizes a jaxpr: an engine, or the emitter of a module."""

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
    keys: Array = PRNG.random_wrap(zeros(words), dtype.impl)
    return keys


def stored_shape(aval: ShapedArray) -> tuple[int, ...]:
    """The shape on a device, where keys have the dimensions of their words."""
    if isinstance(aval.dtype, ExtendedDType):
        return (*aval.shape, *aval.dtype.element_shape)
    return aval.shape


def with_inputs(
    jaxpr: Jaxpr, has: Mask, wanted: Mask, avals: Sequence[object]
) -> Jaxpr:
    """`jaxpr`, whose inputs are those that `has` marks, on those `wanted` marks."""
    if has == wanted:
        return jaxpr
    kept = [flag for flag, want in zip(has, wanted, strict=True) if want]
    types = [a for a in chosen(wanted, avals) if isinstance(a, ShapedArray)]
    return program(types, lambda *xs: inlined(jaxpr, chosen(kept, xs)))


def forced_jvp(engine: Engine, jaxpr: Jaxpr, nonzero: Mask, wanted: Mask) -> Jaxpr:
    """`engine.jvp` with a tangent for each result that `wanted` marks."""
    pushed, mask = engine.jvp(jaxpr, nonzero)
    if mask == wanted:
        return pushed
    count = len(jaxpr.outvars)

    def body(*xs: Array) -> Sequence[object]:
        outs = inlined(pushed, xs)
        tangents = filled(mask, outs[count:], jaxpr.out_avals)
        return [*outs[:count], *arrays_of(engine, wanted, tangents, jaxpr.out_avals)]

    return program(pushed.in_avals, body)


def forced_batch(
    batcher: Batcher, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...], wanted: Mask
) -> Jaxpr:
    """`batch` with the batch dimension first in each result that `wanted` marks."""
    batched, out_axes = batcher.batch(jaxpr, size, axes)
    due = tuple([0 if flag else None for flag in wanted])
    if out_axes == due:
        return batched

    def body(*xs: Array) -> Sequence[object]:
        outs = inlined(batched, xs)
        return [
            at_front(x, axis, size) if flag else x
            for x, axis, flag in zip(outs, out_axes, wanted, strict=True)
        ]

    return program(batched.in_avals, body)


def batched_results(
    batcher: Batcher, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
) -> Mask:
    """Which results are batched."""
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


def forced_split(engine: Engine, jaxpr: Jaxpr, unknown: Mask, wanted: Mask) -> Halves:
    """`engine.split` with each result unknown that `wanted` marks."""
    first, second, mask = engine.split(jaxpr, unknown)
    known = len(mask) - sum(mask)
    count = len(first.outvars) - known
    if mask == wanted:
        return Halves(first, second, count)
    late = others(mask, wanted)
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
            for flag, want in zip(mask, wanted, strict=True)
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
    """Where each input stands."""
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
    """How many parts a value has that is touched."""
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
