"""Floor 3: references as values: the state that a program reads and writes.

Each reference becomes the value that it holds at the moment, which equations take and
those that write give; calls, loops and choices pass it in and out::

    { lambda ; a:Ref{f32[]}. let b:f32[] = get_ref a; c = sin b; set_ref a c in () }
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from attrs import define, evolve, field, frozen

from verax.ir.avals import AbstractRef, Shape, is_reference
from verax.ir.dtypes import is_inexact
from verax.ir.effects import WRITE, RefEffect
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params, Primitive
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret, itself
from verax.ops.calls.call import NamedCall, inlined
from verax.ops.custom import jvp, vjp
from verax.ops.custom.base import Remade
from verax.ops.custom.jvp import CustomJvpParams, JvpRule, custom_jvp_call_p
from verax.ops.custom.vjp import CustomVjpParams, VjpRule, custom_vjp_call_p
from verax.ops.custom.vmap import CustomVmapParams, VmapRule, custom_vmap_call_p
from verax.ops.elementwise.arith import add
from verax.rules.rows.bodies import (
    OfWholeValues,
    Parts,
    Role,
    Types,
    flat,
    plain,
    thread_of,
)
from verax.rules.rows.builder import Builder, program
from verax.rules.rows.infer import Mask, chosen
from verax.rules.rows.references import freeze_p, get_ref_p, new_ref_p, set_ref_p
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context, interpreting

PROGRAMS: Final = 1 << 10


@frozen(repr=False)
class Discharged(ReprMixin):
    """A program whose marked references are values.

    Inputs are those of the program, with values instead of those references; outputs
    are those of the program, then what the inputs `written` hold at the end.
    """

    jaxpr: Jaxpr
    written: tuple[int, ...]


@define(eq=False, repr=False)
class Slot(ReprMixin):
    """A reference while a program is written again: the value that it holds now."""

    value: Atom | None
    source: object
    written: bool = False
    end: str = ""

    def read(self, eqn: Eqn) -> Atom:
        """The value.

        Raises:
            ValueError: the reference was frozen or freed.
        """
        if self.value is None:
            raise ValueError(
                f"a reference, made at {self.source}, is used at {eqn.source} after "
                f"it was frozen or freed at {self.end}"
            )
        return self.value

    def write(self, value: Atom) -> None:
        """Have it hold another value."""
        self.value = value
        self.written = True


type Operand = Atom | Slot
type Rule = Callable[["Writer", Eqn, Sequence[Operand]], Sequence[Operand]]


def references(jaxpr: Jaxpr) -> Mask:
    """Flags of the inputs that are references."""
    return tuple([is_reference(v) for v in jaxpr.invars])


@frozen(eq=False, repr=False)
class Writer(ReprMixin):
    """One program while it is written again; `rules` are those of other primitives.

    With `final` the result will be run and not be rewritten, so that a function with
    rules of the user's own may become what it computes.
    """

    builder: Builder
    rules: Mapping[Primitive, Rule]
    final: bool

    def run(self, jaxpr: Jaxpr, ins: Sequence[Operand]) -> list[Operand]:
        """The outputs of a program, whose equations are written here."""
        return interpret(jaxpr, ins, self.write, itself)

    def write(self, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Operand]:
        """Writes the results of an equation here."""
        if eqn.primitive is new_ref_p:
            (init,) = operands
            assert not isinstance(init, Slot)
            return [Slot(init, eqn.source)]
        plain = [x for x in operands if not isinstance(x, Slot)]
        if len(plain) == len(operands):
            return self.builder.copy(eqn, plain)
        rule = TOUCH.get(eqn.primitive) or self.rules.get(eqn.primitive)
        if rule is None and thread_of(eqn.primitive):
            rule = pass_through
        if rule is None:
            raise not_taken(eqn)
        source, self.builder.source = self.builder.source, eqn.source
        try:
            with interpreting(self.builder):
                return rule(self, eqn, operands)
        finally:
            self.builder.source = source

    def tracer(self, atom: Atom) -> Array:
        """A value as rules take it."""
        return self.builder.tracers((atom,))[0]

    def bind(self, eqn: Eqn, params: Params, operands: Sequence[Atom]) -> list[Atom]:
        """The results of the primitive with other params, on other operands."""
        tracers = self.builder.tracers(operands)
        outs = self.builder.bind(eqn.primitive, params, tracers)
        return [self.builder.atom(x) for x in outs]

    def discharged(self, jaxpr: Jaxpr, operands: Sequence[Operand]) -> Discharged:
        """A program inside of an equation, with these operands."""
        marks = tuple([isinstance(x, Slot) for x in operands])
        return discharge(jaxpr, marks, self.rules, self.final)


def read_slot(writer: Writer, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Atom]:
    (slot,) = operands
    assert isinstance(slot, Slot)
    return (slot.read(eqn),)


def write_slot(writer: Writer, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Atom]:
    slot, value = operands
    assert isinstance(slot, Slot)
    assert not isinstance(value, Slot)
    slot.read(eqn)
    slot.write(value)
    return ()


def end_slot(writer: Writer, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Atom]:
    (slot,) = operands
    assert isinstance(slot, Slot)
    value = slot.read(eqn)
    slot.value, slot.end = None, str(eqn.source)
    return (value,)


TOUCH: Final[Mapping[Primitive, Rule]] = {
    get_ref_p: read_slot,
    set_ref_p: write_slot,
    freeze_p: end_slot,
}


def not_taken(eqn: Eqn) -> NotImplementedError:
    """The error of an equation that cannot be given a reference."""
    return NotImplementedError(
        f"{eqn.primitive.name} takes a mutable reference, at {eqn.source}; read it "
        "before, and write what comes out after"
    )


def pass_through(
    writer: Writer, eqn: Eqn, operands: Sequence[Operand]
) -> Sequence[Atom]:
    """An equation with programs, which take and give what references hold.

    One that they only read is its value; one that they write goes through them as
    state, and is a value without parts: as many are absent as say which it is.
    """
    thread = thread_of(eqn.primitive)
    assert thread is not None
    numbers = sorted(
        {
            effect.index
            for effect in eqn.effects
            if isinstance(effect, RefEffect) and effect.name == WRITE
            if effect.index is not None
        }
    )
    places: dict[int, int] = {}
    moved: list[Slot] = []
    for i in numbers:
        slot = operands[i]
        if isinstance(slot, Slot) and id(slot) not in places:
            places[id(slot)] = len(moved)
            moved.append(slot)
    values = [
        absent(places[id(x)])
        if id(x) in places
        else (writer.tracer(x.read(eqn) if isinstance(x, Slot) else x),)
        for x in operands
    ]
    jaxprs = tuple(eqn.params.subjaxprs())
    through = Discharging(jaxprs, writer, eqn, tuple(moved))
    outs = thread(through, eqn.params, values)
    return [writer.builder.atom(x) for x in flat(outs)]


def absent(number: int) -> Parts:
    """The parts of the reference that is the state of this number."""
    return (None,) * (number + 2)


@define(eq=False, repr=False)
class Discharging(OfWholeValues):
    """The programs of one equation, with what the references `moved` hold as state."""

    writer: Writer
    eqn: Eqn
    moved: tuple[Slot, ...]

    def enter(self, role: Role) -> Sequence[object]:
        return [self.writer.tracer(slot.read(self.eqn)) for slot in self.moved]

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        jaxpr = self.jaxprs[number]
        places = [None if plain(parts) else len(parts) - 2 for parts in types]
        marks = [
            is_reference(v) and (i is not None or not is_reference_type(parts))
            for v, i, parts in zip(jaxpr.invars, places, types, strict=True)
        ]
        inner = discharge(jaxpr, tuple(marks), self.writer.rules, self.writer.final)
        if role is Role.TEST and inner.written:
            raise ValueError(
                f"the predicate of a while loop, at {self.eqn.source}, writes to a "
                "mutable reference; it may only read: write in the body"
            )
        count = len(jaxpr.outvars)

        def body(*ins: Array) -> Sequence[object]:
            own, state = iter(ins), [*ins[len(ins) - len(self.moved) :]]
            full = [next(own) if i is None else state[i] for i in places]
            outs = inlined(inner.jaxpr, full)
            for i, last in zip(inner.written, outs[count:], strict=True):
                place = places[i]
                assert place is not None, "the effects say what is written"
                state[place] = last
            return outs[:count] if role is Role.TEST else [*outs[:count], *state]

        avals = inner.jaxpr.in_avals
        own = [a for a, i in zip(avals, places, strict=True) if i is None]
        held = [slot.read(self.eqn).aval.strong() for slot in self.moved]
        return program([*own, *held], body)

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        if lanes and self.moved:
            raise not_taken(self.eqn)
        for slot, last in zip(self.moved, state, strict=True):
            slot.write(self.writer.builder.atom(last))


def is_reference_type(parts: Types) -> bool:
    """Whether a value is a reference that stays one."""
    return isinstance(parts[0], AbstractRef)


def values_of(eqn: Eqn, operands: Sequence[Operand]) -> list[Atom]:
    """Operands, with what the references hold instead of them."""
    return [x.read(eqn) if isinstance(x, Slot) else x for x in operands]


def write_back(
    operands: Sequence[Operand], written: Sequence[int], finals: Sequence[Atom]
) -> None:
    """Have the operands of numbers `written` hold what comes out."""
    for i, final in zip(written, finals, strict=True):
        slot = operands[i]
        assert isinstance(slot, Slot)
        slot.write(final)


def discharge(
    jaxpr: Jaxpr, marks: Mask, rules: Mapping[Primitive, Rule], final: bool
) -> Discharged:
    """The program with values for the marked inputs, and for references of its own.

    Contract: outputs are those of `jaxpr`, then what the inputs `written` hold at the
    end. Other references stay, with the effects on them in the same order.

    Raises:
        ValueError: a reference is used after its end, or is an output.
        NotImplementedError: a primitive without a rule takes one.
    """
    builder = Builder("discharge")
    ins: list[Operand] = []
    for var, flag in zip(jaxpr.invars, marks, strict=True):
        aval = var.aval
        if flag and isinstance(aval, AbstractRef):
            ins.append(Slot(builder.input_atom(aval.inner_aval), "an input"))
        else:
            ins.append(builder.input_atom(aval))
    outs = Writer(builder, rules, final).run(jaxpr, ins)
    results: list[Atom] = []
    for x in outs:
        if isinstance(x, Slot):
            raise ValueError(
                f"a program returns a mutable reference, made at {x.source}; return "
                "what it holds: ref[...]"
            )
        results.append(x)
    slots = [(i, x) for i, x in enumerate(ins) if isinstance(x, Slot)]
    written = [(i, x.value) for i, x in slots if x.written and x.value is not None]
    finals = [value for _, value in written if value is not None]
    out = builder.close([*results, *finals])[0]
    return Discharged(out, tuple([i for i, _ in written]))


# -----------------------------------------------------------------------------
# Functions with rules of the user's own, on what references hold.
#
# The call takes values and gives what the function writes, and so do its rules.
# Tangents and cotangents of references pass the call as they are; what a backward rule
# returns for a reference is added::
#
#     b:f32[] = custom_jvp_call[...] r:Ref{f32[]} a
#     b:f32[] s:f32[] = custom_jvp_call[...] r:f32[] a    # r holds s afterwards


type Pure = Callable[[Jaxpr, Mask], Discharged]
"""Discharges the marked inputs of a program."""


@frozen(cache_hash=True, repr=False)
class Written(ReprMixin):
    """The text of a call of the function `name`, which has so many `results`.

    `marks` are the operands that become values, `places` those of them that hold
    something else afterwards; the first ones are `captured`.
    """

    pure: Pure = field(repr=False)
    name: str
    captured: int
    results: int
    marks: Mask
    places: tuple[int, ...]

    @property
    def own(self) -> list[int]:
        """The places, counted from the first operand that is not captured."""
        return [i - self.captured for i in self.places]

    def on_values(self, jaxpr: Jaxpr) -> Jaxpr:
        """A program of a rule, which gives what references hold after its results.

        Raises:
            NotImplementedError: it writes to another reference than the function.
        """
        count, total = self.results, len(jaxpr.outvars)
        rest = len(jaxpr.invars) - len(self.marks)
        out = self.pure(jaxpr, (*self.marks, *[False] * rest))
        if not set(out.written) <= set(self.places):
            raise NotImplementedError(
                f"a rule of {self.name} writes to a mutable reference to which the "
                "function itself does not write; have the function write, too"
            )

        def body(*ins: Array) -> Sequence[object]:
            outs = inlined(out.jaxpr, ins)
            finals = dict(zip(out.written, outs[total:], strict=True))
            held = [finals.get(i, ins[i]) for i in self.places]
            return [*outs[:count], *held, *outs[count:total]]

        return program(out.jaxpr.in_avals, body)


@frozen(cache_hash=True, repr=False)
class DischargedJvp(Remade, ReprMixin):
    """A forward-mode rule on values."""

    rule: JvpRule
    written: Written

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        inner, mask = self.rule.pushed(nonzero)
        jaxpr = self.written.on_values(inner)
        moving = [i for i in self.written.own if i >= 0 and nonzero[i]]
        first = len(jaxpr.invars) - sum(nonzero)
        tangents = [jaxpr.invars[first + sum(nonzero[:i])] for i in moving]
        outs: tuple[Atom, ...] = (*jaxpr.outvars, *tangents)
        out = (*mask, *[i in moving for i in self.written.own])
        return evolve(jaxpr, outvars=outs), out


@frozen(cache_hash=True, repr=False)
class DischargedVjp(Remade, ReprMixin):
    """Reverse-mode rules on values."""

    rule: VjpRule
    written: Written

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`.

        Raises:
            NotImplementedError: the rule hands a reference to the backward rule.
        """
        inner = self.rule.forward(nonzero)
        if any(map(is_reference, inner.outvars)):
            raise NotImplementedError(
                f"the forward rule of {self.written.name} hands a mutable reference to "
                "the backward rule, under a transformation that needs what it holds; "
                "hand on that: ref[...]"
            )
        return self.written.on_values(inner)

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`: what a rule gives for a reference is added."""
        count, own = self.written.results, self.written.own
        inner, mask = self.rule.backward(nonzero, given[:count])
        finals = self.forward(nonzero).out_avals[count : len(given)]
        types = [a.tangent() for a in chosen(given[count:], finals)]
        size = len(inner.invars)
        last = {i: size + k for k, i in enumerate(chosen(given[count:], own))}
        passing = [flag and i in last for i, flag in enumerate(nonzero)]
        out = tuple([a or b for a, b in zip(mask, passing, strict=True)])

        def body(*ins: Array) -> Sequence[object]:
            pulled = iter(inlined(inner, ins[:size]))
            outs = []
            for i, asked in enumerate(mask):
                parts = [next(pulled)] if asked else []
                parts += [ins[last[i]]] if passing[i] else []
                outs += [add(*parts) if len(parts) > 1 else x for x in parts[:1]]
            return outs

        return program([*inner.in_avals, *types], body), out


@frozen(cache_hash=True, repr=False)
class DischargedVmap(ReprMixin):
    """A batching rule on values."""

    rule: VmapRule
    written: Written

    def batched(self, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
        """See `VmapRule.batched`: what a stack of references holds is a stack."""
        inner, mask = self.rule.batched(size, in_batched)
        jaxpr = self.written.on_values(inner)
        return jaxpr, (*mask, *[in_batched[i] for i in self.written.places])


def custom_rule(
    pure: Pure, writer: Writer, eqn: Eqn, operands: Sequence[Operand]
) -> Sequence[Operand]:
    """The call on values; if nobody will ask the rules, what the function computes."""
    params = eqn.params
    assert isinstance(params, NamedCall)
    if writer.final:
        return writer.run(params.jaxpr, operands)
    inner = writer.discharged(params.jaxpr, operands)
    marks = tuple([isinstance(x, Slot) for x in operands])
    count = len(eqn.outvars)
    changed = on_values(pure, params, inner, marks, count)
    outs = writer.bind(eqn, changed, values_of(eqn, operands))
    write_back(operands, inner.written, outs[count:])
    return outs[:count]


def on_values(
    pure: Pure, params: Any, inner: Discharged, marks: Mask, count: int
) -> NamedCall:
    """The params of the call of the discharged function.

    Raises:
        NotImplementedError: a batching rule does not see a reference.
    """
    captured, places = params.captured, inner.written
    written = Written(pure, params.name, captured, count, marks, places)
    rule: object
    match params:
        case CustomJvpParams():
            rule = jvp.settled(DischargedJvp(params.rule, written), params.rule)
        case CustomVjpParams():
            active = tuple([is_inexact(a.dtype) for a in inner.jaxpr.out_avals])
            rule = DischargedVjp(params.rule, written)
            rule = vjp.settled(rule, params.rule, active)
        case CustomVmapParams():
            if any(marks[:captured]):
                raise NotImplementedError(
                    f"the custom_vmap function {params.name} closes over a mutable "
                    "reference; pass it as an argument, so that its vmap rule sees it"
                )
            rule = DischargedVmap(params.rule, written)
            own = tuple(written.own)
            rule = evolve(
                rule, written=evolve(written, marks=marks[captured:], places=own)
            )
    out: NamedCall = evolve(params, jaxpr=inner.jaxpr, rule=rule)
    return out


# -----------------------------------------------------------------------------
# Discharged programs, found again, with the rules of custom functions.
#
# How references go into the programs of an equation and come back stands in
# its row; rules are only needed for functions with rules of the user's own::
#
#     discharged(jaxpr).written    # which references it writes to


def discharged(jaxpr: Jaxpr, marks: Mask | None = None) -> Discharged:
    """`discharge` with these rules, found again where that was asked before.

    Without `marks` every reference becomes a value.
    """
    chosen = references(jaxpr) if marks is None else marks
    return recall(remembered, jaxpr, current_context(), jaxpr, chosen)


def runnable(jaxpr: Jaxpr) -> Discharged:
    """The program on values that is to be run and not to be rewritten.

    What it writes comes before its other outputs: memory that is donated goes to the
    first output of its type, and so values stay where their reference held them.
    """
    return recall(remembered_to_run, jaxpr, current_context(), jaxpr)


CUSTOM: Final[Mapping[Primitive, Rule]] = MappingProxyType(
    {
        custom_jvp_call_p: partial(custom_rule, discharged),
        custom_vjp_call_p: partial(custom_rule, discharged),
        custom_vmap_call_p: partial(custom_rule, discharged),
    }
)


@memo(PROGRAMS)
def remembered(context: Context, jaxpr: Jaxpr, marks: Mask) -> Discharged:
    """See `discharged`."""
    return discharge(jaxpr, marks, CUSTOM, final=False)


@memo(PROGRAMS)
def remembered_to_run(context: Context, jaxpr: Jaxpr) -> Discharged:
    """See `runnable`."""
    out = discharge(jaxpr, references(jaxpr), CUSTOM, final=True)
    outs, count = out.jaxpr.outvars, len(jaxpr.outvars)
    return evolve(out, jaxpr=evolve(out.jaxpr, outvars=(*outs[count:], *outs[:count])))


def without_own(jaxpr: Jaxpr) -> Jaxpr:
    """The program whose own references are values; those that it takes stay."""
    return discharge(jaxpr, (False,) * len(jaxpr.invars), CUSTOM, False).jaxpr
