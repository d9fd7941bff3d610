"""Floor 2: `checkpoint`: a call whose intermediate values are computed again.

One idea: where the program is split in what is known now and what waits, the known part
is written twice: now, for the results, and again in what waits, from the operands and
from what the policy allows to save::

    b:f32[8] = checkpoint[differentiated=False jaxpr={ ... } policy=None ...] a
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from itertools import repeat
from random import Random

from attrs import evolve, fields, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex64, float32, float64
from verax.ir.effects import SHOWN
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params, Var
from verax.ir.records import ReprMixin
from verax.ops.calls.call import NamedCall, call_row, inline, inlined
from verax.ops.calls.callbacks import silenced
from verax.ops.calls.keeping import kept_apart
from verax.ops.elementwise.arith import mul
from verax.ops.structure.reshard import in_memory
from verax.rules.families.elementwise import SHAPES, annotation
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand, apart
from verax.rules.rows.infer import chosen, knowns, live, merged, unknowns
from verax.rules.rows.row import (
    Engine,
    Known,
    Row,
    Rows,
    Sample,
    Split,
    Tangent,
    Traits,
    Zero,
    as_typed,
    no_flops,
    unsplit,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING


@frozen(repr=False)
class Offloadable(ReprMixin):
    """A policy's answer for a value that waits in another memory than it is in."""

    __module__ = "verax.ad_checkpoint"

    src: str
    dst: str


class Answer(Enum):
    """A policy's answers for `True` and `False`, by JAX's names."""

    RECOMPUTE = False
    SAVEABLE = True

    def __bool__(self) -> bool:
        """Whether the value is saved."""
        return bool(self.value)


Recompute, Saveable = Answer.RECOMPUTE, Answer.SAVEABLE

type Verdict = bool | Answer | Offloadable
type Policy = Callable[..., Verdict]
"""Whether the results of (primitive, *operand types, **params) may be saved."""


@frozen(eq=False, repr=False)
class CheckpointParams(NamedCall):
    """The function, and how it is computed again.

    `differentiated` marks the second computation; `prevent_cse` keeps XLA from
    merging it with the first.
    """

    name: str
    differentiated: bool
    prevent_cse: bool
    policy: Policy | None
    jaxpr: Jaxpr


def checkpoint_typing(
    p: CheckpointParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    result = [unsplit(aval) for aval in avals]
    if result != [unsplit(aval) for aval in p.jaxpr.in_avals]:
        raise TypeError(
            f"checkpoint of {p.name} takes {p.jaxpr.in_avals}, not {tuple(avals)}"
        )
    return p.jaxpr.out_avals


def params_of(params: Params) -> dict[str, object]:
    """The params of an equation as keyword arguments of a policy."""
    names = [a.name for a in fields(type(params))]
    return {name: getattr(params, name) for name in names}


class WholePolicy(ABC):
    """A policy that chooses among all values of a program, not one by one."""

    @abstractmethod
    def kept(self, jaxpr: Jaxpr, read: Sequence[Atom]) -> Collection[Var]:
        """The values to keep so that those in `read` can be had later."""

    def __call__(self, *args: object, **params: object) -> bool:
        """What a policy says of a single value: that it is computed again."""
        return False


def verdicts_of(
    policy: Policy | None, jaxpr: Jaxpr, read: Sequence[Atom]
) -> Callable[[Eqn], Verdict]:
    """What is kept, and where, by equation; what an effect gave always is."""
    if isinstance(policy, WholePolicy):
        chosen = set(policy.kept(jaxpr, read))
        return lambda e: happens(e) or all([v in chosen for v in e.outvars])
    return lambda e: happens(e) or saveable(policy, e)


def happens(eqn: Eqn) -> bool:
    """Whether an equation does what must not be done again."""
    return not eqn.effects <= SHOWN


def saveable(policy: Policy | None, eqn: Eqn) -> Verdict:
    """Whether the policy allows to save the results of an equation, and where."""
    if policy is None:
        return False
    avals = [a.aval for a in eqn.invars]
    out = policy(eqn.primitive, *avals, **params_of(eqn.params))
    return out if isinstance(out, Offloadable) else bool(out)


def recomputing(
    reader: Jaxpr, second: Jaxpr, inputs: int, count: int, places: Sequence[Verdict]
) -> Jaxpr:
    """The values that wait, from (inputs, saved values, what was unknown).

    `reader` takes the inputs and the saved values, and gives `count` results, then the
    residuals that `second` takes first. `places` say of values that are offloaded how
    they come back. Effects have happened in the first computation: what remains here
    has none.
    """
    residuals = len(reader.outvars) - count
    types = (*reader.in_avals, *second.in_avals[residuals:])
    middle, end = inputs + len(places), len(reader.in_avals)

    def body(*xs: Array) -> Sequence[object]:
        back = [
            moved(x, place.src) if isinstance(place, Offloadable) else x
            for x, place in zip(xs[inputs:middle], places, strict=True)
        ]
        given = inlined(reader, [*xs[:inputs], *back])[count:]
        return inlined(second, [*given, *xs[end:]])

    return program(types, body)


def moved(x: Array, memory: str) -> Array:
    """A saved value in another memory, which few programs ask for."""
    return in_memory(x, memory)


def split_checkpoint(
    engine: Engine, p: CheckpointParams, args: Sequence[Known]
) -> Split:
    """The known results now; the rest later, from operands and saved values."""
    flat = p.policy is not None or p.jaxpr.effects
    # A policy sees the equations of calls.
    body = inline(p.jaxpr) if flat else p.jaxpr
    first, second, waiting = engine.split(body, unknowns(args))
    count = len(waiting) - sum(waiting)
    silent = silenced(first)
    verdict = verdicts_of(p.policy, silent, silent.outvars[count:])
    inside = p.policy is not None and not isinstance(p.policy, WholePolicy)
    both = kept_apart(first, verdict, inside=inside)
    given, reader = knowns(args), silenced(both.reader)
    inputs, places = len(given), both.verdicts
    later = recomputing(reader, second, inputs, count, places)
    later, needed = engine.dce(later, (True,) * len(later.outvars))
    flags = needed[inputs : inputs + len(places)]
    outvars, end = both.writer.outvars, len(first.outvars)
    slots = (*outvars[:count], *chosen(flags, outvars[end:]))
    forward = evolve(both.writer, outvars=slots)
    slim, used = engine.dce(forward, (True,) * len(forward.outvars))
    runs = slim.outvars or slim.effects
    operands = chosen(used, given)
    outs = checkpoint_p.bind(evolve(p, jaxpr=slim), *operands) if runs else ()
    read_later = needed[inputs + len(places) :]
    kept = [x for x, flag in zip(given, needed, strict=False) if flag]
    waits = [
        moved(x, place.dst) if isinstance(place, Offloadable) else x
        for x, place in zip(outs[count:], chosen(flags, places), strict=True)
    ]
    again = p.differentiated or bool(reader.eqns)
    params = evolve(p, jaxpr=later, differentiated=again)

    def finish(
        residuals: Sequence[Array], operands: Sequence[Array]
    ) -> Sequence[Array]:
        return checkpoint_p.bind(params, *residuals, *chosen(read_later, operands))

    return Split(
        tuple(merged(waiting, repeat(None), outs[:count])),
        (*kept, *waits),
        finish,
    )


def lower_checkpoint(
    e: Emitter,
    p: CheckpointParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """A call; the second computation behind a barrier, so that it stays one."""
    if p.differentiated and p.prevent_cse and operands:
        operands = apart(e, operands)
    return e.call(p.jaxpr, operands, p.name)


def draw_checkpoint(random: Random) -> Sample[CheckpointParams]:
    """A call of sin(sin(x)) y with two results, computed again or not."""
    dtype = random.choice((float32, float64, complex64))
    aval = ShapedArray(random.choice(SHAPES), dtype)

    def body(x: Array, y: Array) -> Sequence[object]:
        from verax.ops.elementwise.trig import sin

        z = sin(x)
        return mul(sin(z), y), z

    jaxpr = program((aval, aval), body)
    again, barrier = random.random() < 0.3, random.random() < 0.7
    return Sample(CheckpointParams("f", again, barrier, None, jaxpr), (aval, aval))


checkpoint_p = call_row(
    "checkpoint",
    CheckpointParams,
    typing=checkpoint_typing,
    lower=lower_checkpoint,
    split=split_checkpoint,
    spelled=lambda p: p.jaxpr,
    draw=draw_checkpoint,
)


def drawn_avals(random: Random, count: int) -> tuple[ShapedArray, ...]:
    """Types of any kind."""
    dtypes = ANYTHING.samples()
    return tuple(
        ShapedArray(random.choice(SHAPES), random.choice(dtypes)) for _ in range(count)
    )


@frozen(eq=False, repr=False)
class NoBarrierParams(Params):
    """The params of a barrier: none, but operands of any number and type."""


BARRIER = NoBarrierParams()


def jvp_barrier(
    engine: Engine,
    p: NoBarrierParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """Values behind one barrier, tangents behind another."""
    pushed = behind(p, tangents)
    return optimization_barrier_p.bind(p, *primals), pushed


def behind(p: NoBarrierParams, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    """The tangents, or cotangents, behind a barrier of their own."""
    ours = live(tangents)
    out = iter(optimization_barrier_p.bind(p, *ours) if ours else ())
    return [t if isinstance(t, Zero) else next(out) for t in tangents]


optimization_barrier_p: Row[NoBarrierParams] = Row(
    "optimization_barrier",
    NoBarrierParams,
    typing=lambda p, avals: avals,
    evaluate=lambda engine, p, xs: xs,
    jvp=jvp_barrier,
    transpose=lambda engine, p, cts, args: behind(p, cts),
    batch=lambda engine, p, size, xs, axes: (
        optimization_barrier_p.bind(p, *xs),
        axes,
    ),
    lower=lambda e, p, xs, outs: apart(e, xs),
    draw=lambda random: Sample(BARRIER, drawn_avals(random, random.randint(0, 3))),
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(flops=no_flops, makes_nans=False, marker=True, view=True),
)


@frozen(eq=False, repr=False)
class NameParams(Params):
    """The name under which a policy knows a value."""

    name: str


name_p = annotation(
    "name",
    NameParams,
    lower=lambda e, p, xs, outs: xs,
    draw=lambda random: Sample(NameParams("x"), drawn_avals(random, 1)),
)


def named(x: object, name: str) -> Array:
    """x, known by a name to the policies that save values by name."""
    return name_p.call(NameParams(name), x)


ROWS: Rows = (checkpoint_p, optimization_barrier_p, name_p)
