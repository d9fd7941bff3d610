"""Floor 3: discharge: a program with references as one that takes and gives values.

Each reference becomes the value that it holds at the moment, which equations take and
those that write give; calls, loops and choices pass it in and out::

    { lambda ; a:Ref{f32[]}. let b:f32[] = get_ref a; c = sin b; set_ref a c in () }
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, frozen

from verax.ir.avals import AbstractRef, Shape, is_reference
from verax.ir.effects import WRITE, RefEffect
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret, itself
from verax.ops.calls.subjaxprs import inlined
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
from verax.rules.rows.masks import Mask
from verax.rules.rows.references import freeze_p, get_ref_p, new_ref_p, set_ref_p
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting

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
    """Which inputs are references."""
    return tuple([is_reference(v) for v in jaxpr.invars])


@frozen(eq=False, repr=False)
class Writer(ReprMixin):
    """One program while it is written again; `rules` are those of other primitives.

    With `final` the result will be run and not be rewritten, so that a function with
    rules of the user's own may become what it computes.
    """

    builder: Builder
    rules: Mapping[Any, Rule]
    final: bool

    def run(self, jaxpr: Jaxpr, ins: Sequence[Operand]) -> list[Operand]:
        """The outputs of a program, whose equations are written here."""
        return interpret(jaxpr, ins, self.write, itself)

    def write(self, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Operand]:
        """What the results of an equation are here."""
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


TOUCH: Final[Mapping[Any, Rule]] = {
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
    jaxpr: Jaxpr, marks: Mask, rules: Mapping[Any, Rule], final: bool
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
    found = builder.close([*results, *finals])[0]
    return Discharged(found, tuple([i for i, _ in written]))
