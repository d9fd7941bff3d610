"""Floor 3: discharge: a program with references as one that takes and gives values.

Each reference becomes the value that it holds at the moment, which equations take and
those that write give; calls, loops and choices pass it in and out::

    { lambda ; a:Ref{f32[]}. let b:f32[] = get_ref a; c = sin b; set_ref a c in () }
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, frozen

from verax.ir.avals import AbstractRef, is_reference
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params, Var
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Builder
from verax.rules.rows.masks import Mask
from verax.rules.rows.references import freeze_p, get_ref_p, new_ref_p, set_ref_p
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


def read_all(env: Sequence[Operand], atoms: Sequence[Atom]) -> list[Operand]:
    """What stands for atoms of a program that is written again."""
    return [env[a.index] if isinstance(a, Var) else a for a in atoms]


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
        env: list[Operand] = list(ins)
        for eqn in jaxpr.eqns:
            env += self.write(eqn, read_all(env, eqn.invars))
        return read_all(env, jaxpr.outvars)

    def write(self, eqn: Eqn, operands: Sequence[Operand]) -> Sequence[Operand]:
        """What the results of an equation are here."""
        if eqn.primitive is new_ref_p:
            (init,) = operands
            assert not isinstance(init, Slot)
            return [Slot(init, eqn.source)]
        plain = [x for x in operands if not isinstance(x, Slot)]
        if len(plain) == len(operands):
            return self.builder.copy(eqn, tuple(plain))
        rule = TOUCH.get(eqn.primitive) or self.rules.get(eqn.primitive)
        if rule is None:
            raise NotImplementedError(
                f"{eqn.primitive.name} takes a mutable reference, at {eqn.source}; "
                "read it before, and write what comes out after"
            )
        source, self.builder.source = self.builder.source, eqn.source
        try:
            with interpreting(self.builder):
                return rule(self, eqn, operands)
        finally:
            self.builder.source = source

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
            ins.append(Slot(builder.input(aval.inner_aval).atom, "an input"))
        else:
            ins.append(builder.input(aval).atom)
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
