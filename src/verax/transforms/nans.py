"""Floor 3: where a NaN or an infinity was made.

One idea: every equation with inexact results gets one flag, "operands clean, result
not", and the least number of a raised flag is one more output::

    flagged = flag(jaxpr, Kind.NAN)       # outputs of jaxpr, site, steps
    locate(jaxpr, site, steps)            # the path of the equation, as text too

Equations are numbered in the order of `verax.ir.walk.walk`. The result is a program
like any other: it is interpreted, compiled, and batched, where each batch element has a
site.
"""

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from attrs import define, evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, int32, is_complex, is_inexact
from verax.ir.effects import SHOWN
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr, Literal, Source, Var
from verax.ir.library import Explorable
from verax.ir.records import ReprMixin
from verax.ir.text.html import report as html_report, table
from verax.ir.walk import Path, count_eqns, interpret, itself, walk
from verax.ops.calls.call import CallParams, NamedCall, inlined, jit_p
from verax.ops.calls.callbacks import silenced
from verax.ops.control.cond_params import CondLanesParams, CondParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.ops.elementwise.arith import add, imag, min, real
from verax.ops.elementwise.bits import bitwise_and, bitwise_not, bitwise_or
from verax.ops.elementwise.compare import eq, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.rounding import is_finite
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_min, reduce_or, reduce_sum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.ops.structure.slicing import index_in_dim, slice_in_dim
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import Builder, program
from verax.rules.rows.row import Engine
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import (
    Context,
    ElementError,
    current_context,
    interpreting,
)
from verax.transforms.engine.engine import literal_value
from verax.transforms.engine.partial_eval import dce

# -----------------------------------------------------------------------------
# Flags in the jaxprs that an equation holds: calls, loops and choices.
#
# Each such equation is written again with the flagged jaxprs, whose code comes out
# beside the results; a loop keeps the first code in its carries, with the iteration::
#
#     outs, (site, iteration, *steps) = flagged_bodies(eqn, args, flag)
#
# An equation whose row does not say how to go through its jaxprs may run them in any
# order or not at all, and is one site like an equation without any.


type Code = Sequence[object]
"""Int32 scalars: the number of the equation in the jaxpr, and the steps inside."""
type Flag = Callable[[Jaxpr], Jaxpr]
type Written = tuple[Sequence[Array], Code]

NONE = np.int32(2**31 - 1)
"""The number of no equation: it is greater than every other."""
NUMBER = ShapedArray((), int32)


def flagged_bodies(eqn: Eqn, args: Sequence[Array], flag: Flag) -> Written | None:
    """An equation with flags inside; None if it has no jaxpr in which to flag.

    The number in the code counts the equations of all its jaxprs, in order.
    """
    p, thread = eqn.params, thread_of(eqn.primitive)
    if not is_open(eqn):
        return None
    if thread is not None:
        jaxprs = tuple(p.subjaxprs())
        through = Flagging(jaxprs, tuple(map(flag, jaxprs)), has_steps(eqn))
        return flat(thread(through, p, whole(args))), through.code
    assert isinstance(p, NamedCall), "is_open knows the equation"
    # The function itself: rules are applied before flags are.
    outs = jit_p.bind(CallParams(p.name, flag(p.runs)), *args)
    count = len(p.jaxpr.outvars)
    return outs[:count], outs[count:]


def is_open(eqn: Eqn) -> bool:
    """Whether there are flags inside an equation."""
    p = eqn.params
    if thread_of(eqn.primitive) is not None:
        return any(map(has_sites, p.subjaxprs()))
    return isinstance(p, NamedCall) and has_sites(p.runs)


def has_steps(eqn: Eqn) -> bool:
    """Whether the code of an equation has the number of a step, or of an element."""
    p = eqn.params
    one = isinstance(p, NamedCall | CondParams) and not isinstance(p, CondLanesParams)
    return thread_of(eqn.primitive) is not None and not one


def has_sites(jaxpr: Jaxpr) -> bool:
    """Whether an equation of the jaxpr has an inexact result."""
    return any(is_inexact(v.aval.dtype) for _, eqn in walk(jaxpr) for v in eqn.outvars)


@define(eq=False, repr=False)
class Flagging(OfWholeValues):
    """The programs of one equation with their flags, and the code that they end with.

    The state of a call or a branch is its code, with which it does not begin.
    """

    flagged: tuple[Jaxpr, ...]
    steps: bool
    code: Code = ()

    @property
    def depth(self) -> int:
        """The number of numbers a code has inside."""
        both = zip(self.jaxprs, self.flagged, strict=True)
        return max([len(f.outvars) - len(jaxpr.outvars) for jaxpr, f in both])

    def enter(self, role: Role) -> Sequence[object]:
        return first_state(self.depth) if role is Role.STEP else ()

    def tells(self, number: int) -> bool:
        return has_sites(self.jaxprs[number])

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        jaxpr, flagged = self.jaxprs[number], self.flagged[number]
        base = sum(map(count_eqns, self.jaxprs[:number]))
        count, own = len(jaxpr.outvars), len(jaxpr.invars)
        depth, tells = self.depth, self.tells(number)

        def once(*ins: Array) -> Sequence[object]:
            outs = inlined(flagged, ins)
            return [*outs[:count], *numbered(outs[count:], base, depth)]

        def again(*ins: Array) -> Sequence[object]:
            if role is Role.TEST and not tells:
                return inlined(jaxpr, ins[:own])
            outs = once(*ins[:own])
            state = kept(ins[own:], outs[count:])
            return [*outs[:count], *(state if role is Role.TEST else counted(state))]

        if role in (Role.CALL, Role.BRANCH):
            return program(jaxpr.in_avals, once)
        states = len(first_state(depth))
        return program((*jaxpr.in_avals, *[NUMBER] * states), again)

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        code: Code = state
        if role is Role.STEP:
            code = code_of(state)
        elif lanes:
            code = first_lane(state)
        elif self.steps:
            code = [state[0], np.int32(0), *state[1:]]
        self.code = earliest(self.code, code) if self.code else code


def numbered(code: Code, base: int, depth: int) -> list[object]:
    """A code of `depth` numbers, counted from `base`."""
    site, *steps = code
    shifted = select(eq(site, NONE), NONE, add(site, np.int32(base))) if base else site
    return [shifted, *steps, *[np.int32(0)] * (depth - 1 - len(steps))]


def first_state(depth: int) -> list[object]:
    """The carries of a loop at its start: steps, the step of the site, and its code."""
    return [np.int32(0), np.int32(0), NONE, *[np.int32(0)] * (depth - 1)]


def kept(before: Sequence[Array], code: Code) -> list[object]:
    """The state after `code` was found: what it was, if there was a code already."""
    count, when, *old = before
    fresh = eq(old[0], NONE)
    codes = [select(fresh, x, y) for x, y in zip(code, old, strict=True)]
    return [count, select(fresh, count, when), *codes]


def counted(state: Sequence[object]) -> list[object]:
    """The state at the end of a step."""
    count, *rest = state
    return [add(count, np.int32(1)), *rest]


def code_of(state: Sequence[object]) -> list[object]:
    """The code of a loop, from its last state."""
    _, when, site, *steps = state
    return [site, when, *steps]


def earliest(first: Code, second: Code) -> list[object]:
    """The first code, or if there is none the second, of what runs later."""
    none = eq(first[0], NONE)
    return [select(none, y, x) for x, y in zip(first, second, strict=True)]


def first_lane(code: Sequence[Array]) -> list[object]:
    """The code of the batch element whose equation comes first, with its number."""
    flat = [reshape(x, (x.aval.size,)) for x in code]
    size = flat[0].aval.size
    site = reduce_min(flat[0], (0,))
    numbers = broadcasted_iota(int32, (size,), 0)
    none = np.int32(size)
    here = eq(flat[0], broadcast_in_dim(site, (size,), ()))
    far = broadcast_in_dim(none, (size,), ())
    lane = reduce_min(select(here, numbers, far), (0,))
    chosen = eq(numbers, broadcast_in_dim(lane, (size,), ()))
    zeros = broadcast_in_dim(np.int32(0), (size,), ())
    steps = [reduce_sum(select(chosen, x, zeros), (0,)) for x in flat[1:]]
    return [site, lane, *steps]


PROGRAMS = 1 << 10


class Kind(Enum):
    """The kind of number that is looked for."""

    NAN = "NaN"
    INFINITY = "infinity"
    EITHER = "NaN or infinity"


def bad_elements(x: Array, kind: Kind) -> Array:
    """Flags of the elements of the kind; complex ones if a part of them is."""
    if is_complex(x.aval.dtype):
        return bitwise_or(bad_elements(real(x), kind), bad_elements(imag(x), kind))
    if x.aval.dtype.itemsize == 1:
        x = convert(x, float32)
    if kind is Kind.NAN:
        return ne(x, x)
    wild = bitwise_not(is_finite(x))
    return wild if kind is Kind.EITHER else bitwise_and(wild, eq(x, x))


def has_bad(x: Array, kind: Kind) -> Array:
    """Whether an element is of the kind: a boolean scalar."""
    out = bad_elements(x, kind)
    return reduce_or(out, range(x.ndim)) if x.ndim else out


def is_bad_value(value: np.ndarray, kind: Kind) -> bool:
    """`has_bad` of values that are known."""
    nan = bool(np.any(np.isnan(value)))
    infinite = bool(np.any(np.isinf(value)))
    chosen = {Kind.NAN: nan, Kind.INFINITY: infinite, Kind.EITHER: nan or infinite}
    return chosen[kind]


def is_inexact_type(aval: ShapedArray) -> bool:
    """Whether values of the type can be NaN or infinite."""
    return is_inexact(aval.dtype)


def flag(jaxpr: Jaxpr, kind: Kind) -> Jaxpr:
    """`flagged`, found again where that was asked before."""
    return recall(flagged, jaxpr, current_context(), jaxpr, kind)


@memo(PROGRAMS)
def flagged(context: Context, jaxpr: Jaxpr, kind: Kind) -> Jaxpr:
    """The program with a flag at each inexact equation.

    Contract: outputs are those of `jaxpr`, then int32 scalars: the number of the
    equation that made the first one, or `NONE`, and, for each loop or choice between
    batch elements around it, from the outside in, the iteration or the element. There
    are as many of those as loops stand in each other; the rest of them mean nothing.
    """
    writer = Writer(kind)
    builder = writer.builder
    inputs = builder.input_atoms(jaxpr.in_avals)
    with interpreting(builder):
        outs = interpret(jaxpr, inputs, writer.write, itself)
        builder.source = UNKNOWN_SOURCE
        codes = [builder.atom(x) for x in writer.code or (NONE,)]
    return builder.close([*outs, *codes])[0]


class Writer:
    """One jaxpr while it is written again: which values are bad, and the code."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.builder = Builder("find_nans", source=UNKNOWN_SOURCE)
        self.bad: dict[Atom, Array] = {}
        self.code: list[object] = []
        self.number = 0

    def write(self, eqn: Eqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        """Write an equation, and its flag or those of the jaxprs inside it."""
        builder, number = self.builder, self.number
        builder.source = eqn.source
        self.number += 1 + sum(map(count_eqns, eqn.params.subjaxprs()))
        args = builder.tracers(ins)
        inside = flagged_bodies(eqn, args, lambda inner: flag(inner, self.kind))
        if inside is None:
            outs = builder.copy(eqn, ins)
            self.mark(number, ins, outs)
            return outs
        results, code = inside
        atoms = [builder.atom(x) for x in results]
        self.merge(number + 1, code)
        return atoms

    def is_bad(self, atom: Atom) -> Array:
        """The flag of a value, which is worked out once."""
        if atom not in self.bad:
            (x,) = self.builder.tracers((atom,))
            self.bad[atom] = has_bad(x, self.kind)
        return self.bad[atom]

    def mark(self, number: int, ins: Sequence[Atom], outs: Sequence[Var]) -> None:
        """Raise the flag of an equation if it made what none of its operands has.

        What comes out of an infinite constant, a mask, is meant; a constant that is NaN
        is where the NaN comes from.
        """
        results = [self.is_bad(v) for v in outs if is_inexact_type(v.aval)]
        if not results or (self.kind is not Kind.NAN and any(map(is_meant, ins))):
            return
        raised = any_of(results)
        given = [
            self.is_bad(a) for a in ins if type(a) is Var and is_inexact_type(a.aval)
        ]
        if given:
            raised = bitwise_and(raised, bitwise_not(any_of(given)))
        here = select(raised, np.int32(number), NONE)
        first = self.code[0] if self.code else None
        self.code[:1] = [here if first is None else min(first, here)]

    def merge(self, base: int, code: Code) -> None:
        """Take over what the jaxprs of an equation found, numbered from `base`."""
        site, *steps = code
        here = select(eq(site, NONE), NONE, add(site, np.int32(base)))
        if not self.code:
            self.code = [here, *steps]
            return
        earlier = lt(here, self.code[0])
        known = self.code[1:]
        count = max_length(steps, known)
        pairs = zip(filled(steps, count), filled(known, count), strict=True)
        chosen = [select(earlier, new, old) for new, old in pairs]
        self.code = [min(self.code[0], here), *chosen]


def is_meant(atom: Atom) -> bool:
    """Whether an operand is an infinite scalar constant."""
    if not isinstance(atom, Literal) or atom.aval.shape:
        return False
    if not is_inexact_type(atom.aval):
        return False
    return bool(np.isinf(literal_value(atom)))


def max_length(*lists: Sequence[object]) -> int:
    """The length of the longest."""
    return sorted(map(len, lists))[-1]


def filled(steps: Sequence[object], count: int) -> list[object]:
    """`count` steps: those that are missing are never read."""
    return [*steps, *[np.int32(0)] * (count - len(steps))]


def any_of(flags: Sequence[Array]) -> Array:
    """Whether one of the boolean scalars is true."""
    result, *rest = flags
    for one in rest:
        result = bitwise_or(result, one)
    return result


# -----------------------------------------------------------------------------
# The operands and results of one equation, as a program.
#
# What came before an equation is a program too, also in the third step of a
# loop, for that is two steps and the start of a body::
#
#     probe(jaxpr, place_of(jaxpr, site, steps))   # (operands, results)


PREDICATE = 1


@frozen(repr=False)
class Level(ReprMixin):
    """An equation around another: which of its jaxprs, and which step or element."""

    eqn: Eqn
    which: int
    step: int | None

    def __str__(self) -> str:
        return f"{describe(self)}, at {self.eqn.source}"


@frozen(repr=False)
class Place(ReprMixin):
    """The place of an equation in a program, and what is around it, outermost first."""

    path: Path
    eqn: Eqn
    levels: tuple[Level, ...]


def place_of(jaxpr: Jaxpr, site: int, steps: Sequence[int]) -> Place:
    """The equation that `walk` meets as number `site`, with the steps around it."""
    path, eqn = next(place for i, place in enumerate(walk(jaxpr)) if i == site)
    numbers = iter(steps)
    levels, rest = [], path
    while len(rest) > 1:
        around = jaxpr.eqns[rest[0]]
        step = next(numbers) if has_steps(around) else None
        levels.append(Level(around, rest[1], step))
        jaxpr = tuple(around.params.subjaxprs())[rest[1]]
        rest = rest[2:]
    return Place(path, eqn, tuple(levels))


def describe(level: Level) -> str:
    """A level in words."""
    p, step = level.eqn.params, level.step
    if isinstance(p, ScanParams):
        row = f" (row {p.length - 1 - (step or 0)})" if p.reverse else ""
        return f"iteration {step} of {p.length} of {level.eqn.primitive.name}{row}"
    if isinstance(p, WhileParams):
        part = "the predicate" if level.which == PREDICATE else "the body"
        return f"{part} of {level.eqn.primitive.name} in iteration {step}"
    if isinstance(p, CondLanesParams):
        lane = [str(i) for i in np.unravel_index(step or 0, p.lanes)]
        return f"branch {level.which} of cond for batch element {', '.join(lane)}"
    if isinstance(p, CondParams):
        return f"branch {level.which} of cond"
    if step is not None:
        return f"program {level.which} of {level.eqn.primitive.name} in step {step}"
    name = getattr(p, "name", "")
    return f"{level.eqn.primitive.name} of {name}" if name else str(level.eqn.primitive)


def probe(engine: Engine, jaxpr: Jaxpr, place: Place) -> Jaxpr:
    """The program whose outputs are the operands, then the results of an equation."""
    builder = Builder("find_nans", source=UNKNOWN_SOURCE)
    with interpreting(builder):
        atoms = builder.input_atoms(jaxpr.in_avals)
        path = place.path
        for level in place.levels:
            ins = before(builder, jaxpr, path[0], atoms)
            jaxpr, args = enter(level, builder.tracers(ins))
            atoms, path = [builder.atom(x) for x in args], path[2:]
        ins = before(builder, jaxpr, path[0], atoms)
        outs = builder.copy(place.eqn, ins)
        out, _ = builder.close([*ins, *outs])
    count = len(out.outvars)
    silent = silenced(out)
    return dce(engine, silent, (True,) * count, keep=len(out.invars))[0]


def before(
    builder: Builder, jaxpr: Jaxpr, number: int, atoms: Sequence[Atom]
) -> list[Atom]:
    """Write the equations before one; its operands."""
    eqns, eqn = jaxpr.eqns[:number], jaxpr.eqns[number]
    return builder.inline(Jaxpr((), jaxpr.invars, eqns, eqn.invars), atoms)


def enter(level: Level, args: Sequence[Array]) -> tuple[Jaxpr, Sequence[object]]:
    """The jaxpr inside, and its inputs in the step or batch element of the level."""
    p, step = level.eqn.params, level.step or 0
    jaxpr = tuple(p.subjaxprs())[level.which]
    if isinstance(p, ScanParams):
        return jaxpr, at_scan_step(p, args, step)
    if isinstance(p, WhileParams):
        cond_consts, body_consts, carry = p.parts(args)
        loop = ScanParams(
            p.body_jaxpr,
            step,
            (False,) * (len(body_consts) + len(carry)),
            len(carry),
            len(body_consts),
            False,
            1,
        )
        if step:
            carry = list(scan_p.bind(loop, *body_consts, *carry))
        own = cond_consts if level.which == PREDICATE else body_consts
        return jaxpr, [*own, *carry]
    if isinstance(p, CondLanesParams):
        pairs = zip(p.mapped, args[1:], strict=True)
        return jaxpr, [element_of(x, p, step) if flag else x for flag, x in pairs]
    return jaxpr, args[1:] if isinstance(p, CondParams) else args


def at_scan_step(p: ScanParams, args: Sequence[Array], step: int) -> list[object]:
    """The inputs of the body in one step, after those before it."""
    consts, carry, xs = p.parts(args)
    row = p.length - 1 - step if p.reverse else step
    first, end = (row + 1, p.length) if p.reverse else (0, row)
    if step:
        done = [slice_in_dim(x, first, end) for x in xs]
        loop = ScanParams(
            p.jaxpr, step, p.linear, p.num_carry, p.num_consts, p.reverse, 1
        )
        carry = list(scan_p.bind(loop, *consts, *carry, *done)[: p.num_carry])
    rows = [index_in_dim(x, row, 0, keepdims=False) for x in xs]
    return [*consts, *carry, *rows]


def element_of(x: Array, p: CondLanesParams, lane: int) -> Array:
    """One batch element of an operand that begins with the batch dimensions."""
    rest = x.aval.shape[len(p.lanes) :]
    flat = reshape(x, (int(np.prod(p.lanes)), *rest))
    return index_in_dim(flat, lane, 0, keepdims=False)


def repeatable(jaxpr: Jaxpr) -> bool:
    """Whether a program may run again: it has no effects but to show values."""
    return jaxpr.effects <= SHOWN


def is_reachable(place: Place) -> bool:
    """Whether `probe` can get to each of the steps around a place."""
    known = NamedCall | ScanParams | WhileParams | CondParams
    return all([isinstance(level.eqn.params, known) for level in place.levels])


# -----------------------------------------------------------------------------
# Where a NaN or an infinity comes from, as a value and as a report.
#
# A finding is the equation with what is known of it; the message is made when
# it is read::
#
#     print(finding)
#     finding.primitive, finding.source.line, finding.backward, finding.operands


SHOWN_ELEMENTS = 6
"""Elements of an array in a report."""
CONSTANT = "a constant"


@frozen(eq=False, repr=False)
class Finding(Explorable):
    """The first equation that made a NaN or an infinity of operands without any.

    `eqn` is None where no equation did: what is bad came in with `bad_inputs`, the
    inputs that were bad already. `levels` are the calls, loops and branches around the
    equation, outermost first; `path` leads to it through the nested jaxprs, as in
    `verax.ir.walk`. `operands` and `results` are its values, None if they cannot be had
    (a program with effects is not run again). What `find_nans` returns keeps the
    arguments of the call, for `explore`. Of a `sharded` program devices have parts.
    """

    __module__ = "verax.debug"

    function: str
    kind: str
    place: Place | None
    operands: tuple[np.ndarray, ...] | None
    results: tuple[np.ndarray, ...] | None
    bad_inputs: tuple[str, ...]
    again: Callable[[], object] | None = None
    """Traces the function again, on the same arguments; None if they are not kept."""
    sharded: bool = False

    @property
    def eqn(self) -> Eqn | None:
        return None if self.place is None else self.place.eqn

    @property
    def path(self) -> Path:
        return () if self.place is None else self.place.path

    @property
    def levels(self) -> tuple[Level, ...]:
        return () if self.place is None else self.place.levels

    @property
    def primitive(self) -> str:
        """The name of the primitive, empty if no equation is to blame."""
        return "" if self.eqn is None else self.eqn.primitive.name

    @property
    def source(self) -> Source:
        """The user's line: that of the equation or else of the nearest call around."""
        places = [] if self.eqn is None else [self.eqn.source]
        places += [level.eqn.source for level in reversed(self.levels)]
        known = [source for source in places if source.code is not None]
        return known[0] if known else UNKNOWN_SOURCE

    @property
    def transformation(self) -> str:
        """The transformation that derived the equation: `transpose(jvp)`."""
        origins = [] if self.eqn is None else [self.eqn.source.origin]
        origins += [level.eqn.source.origin for level in reversed(self.levels)]
        return next(filter(None, origins), "")

    @property
    def backward(self) -> bool:
        """Whether the equation belongs to the backward pass of a derivative."""
        return "transpose" in self.transformation

    @property
    def index(self) -> tuple[int, ...] | None:
        """The index of the first bad element of the result; None if it is not known.

        Under `vmap`, one of the numbers is that of the batch element, mostly the first.
        """
        for value in self.results or ():
            places = np.argwhere(bad_in(value, self.kind))
            if len(places):
                return tuple(map(int, places[0]))
        return None

    def __repr__(self) -> str:
        what = self.primitive or ", ".join(self.bad_inputs)
        return f"<Finding: {self.kind} from {what}>"

    def __str__(self) -> str:
        return "\n".join(report(self))

    def _repr_html_(self) -> str:
        """Shows it in a notebook: the equation, the user's line, and the values."""
        parts = [table(f"{self.kind} in {self.function}", (), facts_of(self))]
        if rows := value_rows(self):
            parts.append(table("Values", ("value", "type", "elements"), rows))
        return html_report(*parts)


def facts_of(finding: Finding) -> list[tuple[str, str]]:
    """What is known of the equation, by name."""
    eqn, source = finding.eqn, finding.source
    came = ", ".join(finding.bad_inputs)
    if eqn is None:
        return [("made by", "no equation"), ("came in with", came)]
    phase = "in the backward pass: " if finding.backward else ""
    derived = finding.transformation
    facts = [("made by", finding.primitive)]
    facts += [("derived by", f"{phase}{derived}")] if derived else []
    if source.code is not None:
        text = source.text
        facts.append(("line", f"{source.file}:{source.line} ({source.function})"))
        facts += [("code", text)] if text else []
    facts.append(("equation", repr(eqn)))
    facts += [("inside", str(level)) for level in finding.levels]
    return facts + ([("inputs bad already", came)] if came else [])


def bad_in(value: np.ndarray, kind: str) -> np.ndarray:
    """Flags of the elements of the kind, `NaN` or `infinity`; integers never are."""
    if value.dtype.kind in "biu":
        return np.zeros(value.shape, bool)
    try:
        return np.isnan(value) if kind == "NaN" else np.isinf(value)
    except TypeError:  # keys
        return np.zeros(value.shape, bool)


def encountered(kind: str) -> str:
    """The beginning of the report about a `NaN` or an `infinity`."""
    return f"invalid value ({'nan' if kind == 'NaN' else 'inf'}) encountered in"


def headline(finding: Finding) -> str:
    """The first line of the report about an equation."""
    start, name, own = encountered(finding.kind), finding.function, finding.primitive
    derived = finding.transformation
    phase = ", in the backward pass" if finding.backward else ""
    where = f"{phase} ({derived})" if derived else ""
    if finding.sharded:
        start = start.replace("invalid", "Invalid")
        return f"{start} sharded computation {name}: made by {own}{where}"
    return f"{start} {own if own == name else f'{own} of {name}'}{where}"


def report(finding: Finding) -> list[str]:
    """The lines of the report."""
    eqn = finding.eqn
    if eqn is None:
        came = ", ".join(finding.bad_inputs)
        what = f"{encountered(finding.kind)} {finding.function}"
        why = "the de-optimized function did not make one: it came in with the input"
        return [f"{what}: {why}, {came}"]
    lines = [headline(finding)]
    source = finding.source
    if source.code is not None:
        lines.append(f"  line      {source.file}:{source.line} ({source.function})")
        text = source.text
        lines += [f"              {text}"] if text else []
    lines.append(f"  equation  {eqn!r}")
    for name, aval, text in value_rows(finding):
        joint = ", " if text == CONSTANT else " = " if text else ""
        lines.append(f"  {name.ljust(9)} {aval}{joint}{text}")
    lines += [f"  inside    {level}" for level in finding.levels]
    if finding.bad_inputs:
        lines.append(f"  inputs    bad already: {', '.join(finding.bad_inputs)}")
    return lines


def value_rows(finding: Finding) -> list[tuple[str, str, str]]:
    """Operands and results: name, type, and what is known of the elements."""
    eqn, kind = finding.eqn, finding.kind
    if eqn is None:
        return []
    ins = rows_of("operand", eqn.invars, finding.operands, kind)
    return ins + rows_of("result", eqn.outvars, finding.results, kind)


def rows_of(
    word: str,
    atoms: Sequence[Atom],
    values: Sequence[np.ndarray] | None,
    kind: str,
) -> list[tuple[str, str, str]]:
    """A row for each value: its name, type, elements, and how many are bad."""
    rows = []
    for i, atom in enumerate(atoms):
        shown = "" if values is None else elements(values[i])
        constant = f", {CONSTANT}" if isinstance(atom, Literal) else ""
        text = f"{shown}{constant}{count(values, i, kind)}"
        rows.append((f"{word} {i}", str(atom.aval), text.removeprefix(", ")))
    return rows


def count(values: Sequence[np.ndarray] | None, i: int, kind: str) -> str:
    """The number of bad elements, and the place of the first."""
    if values is None or not values[i].shape:
        return ""
    places = np.argwhere(bad_in(values[i], kind))
    if not len(places):
        return ""
    first = ", ".join(map(str, places[0]))
    return f"; {len(places)} of {values[i].size} are {kind}, the first at [{first}]"


def elements(value: np.ndarray) -> str:
    """The values of a small array in full, of others the ends."""
    text = np.array2string(value, threshold=SHOWN_ELEMENTS, edgeitems=2, separator=", ")
    return " ".join(text.split())


class NonFinite(ElementError):
    """A result is NaN, or infinite, while `debug_nans` or `debug_infs` looks for it.

    `finding` says where it was made; None if the program could not be searched.
    """

    __module__ = "verax.errors"

    def __init__(self, message: str, finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding

    def at(self, eqn: Eqn) -> "NonFinite":
        """The error, where the operation that was run is `eqn` of a program."""
        finding = self.finding
        if finding is None or finding.place is None:
            return self
        place = finding.place
        if place.levels:
            outer = evolve(place.levels[0], eqn=eqn)
            place = evolve(place, levels=(outer, *place.levels[1:]))
        else:
            place = evolve(place, eqn=eqn)
        located = evolve(finding, place=place)
        return NonFinite(str(located), located)
