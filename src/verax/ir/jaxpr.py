"""Floor 0: variables, equations and jaxprs, as immutable trees.

One idea: variables are numbered by the place where they are defined (constvars,
invars, then the results of the equations in order), so equal programs are equal
values, an environment is a list, and a jaxpr is its own cache key::

    { lambda ; a:f32[8]. let b:f32[8] = sin a in (b,) }
"""

import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, lru_cache
from operator import itemgetter
from types import CodeType
from typing import Any, ClassVar, Protocol, Self

from attrs import AttrsInstance, define, evolve, field, fields, frozen
from pyrsistent import PVector, pvector

from verax.ir.atoms import (
    Atom as Atom,
    Identity as Identity,
    Literal as Literal,
    Var as Var,
    array_literal as array_literal,
    letters as letters,
    results as results,
    results_like as results_like,
    scalar_literal as scalar_literal,
    variable as variable,
)
from verax.ir.avals import ShapedArray
from verax.ir.effects import MAKE, NO_EFFECTS as NO_EFFECTS, Effect as Effect, RefEffect
from verax.ir.facade import module_named
from verax.ir.memos import holds, is_plain_type, memoised
from verax.ir.records import Record, ReprMixin
from verax.ir.text.printer import print_jaxpr

NO_AXES: frozenset[str] = frozenset()


@memoised
def field_names(kind: type[AttrsInstance]) -> tuple[str, ...]:
    """The names of the fields of a params class."""
    return tuple([attribute.name for attribute in fields(kind)])


@frozen(repr=False)
class Aside(ReprMixin):
    """A value in a field of params whose jaxprs run elsewhere, or later.

    For example, the traced rule for the derivative of a call: transformations of
    programs reach its jaxprs, but they are not part of what the equation does.
    """


@frozen(eq=False, repr=False)
class Params(Record):
    """The params of an equation: one frozen subclass per primitive.

    A field is an attribute, and an item by its name too: `dict(params)`, `**params`.
    Where it `touches` references they may be operands, as where programs are inside.
    Its transpose `answers_zeros` if cotangents of zero may be pulled back to others: a
    rule of the user's is any function.
    """

    __module__ = "verax.ir"

    touches: ClassVar[bool] = False
    answers_zeros: ClassVar[bool] = False

    def keys(self) -> tuple[str, ...]:
        """The names of the fields."""
        return field_names(type(self))

    def __getitem__(self, name: str) -> Any:
        """The field of a name.

        Raises:
            KeyError: there is none.
        """
        if name not in field_names(type(self)):
            raise KeyError(name)
        return getattr(self, name)

    def values(self) -> tuple[Any, ...]:
        """The fields, in their order."""
        return tuple([self[name] for name in self.keys()])

    def items(self) -> tuple[tuple[str, Any], ...]:
        """Names and fields."""
        return tuple([(name, self[name]) for name in self.keys()])

    def get(self, name: str, default: object = None) -> Any:
        """The field of a name, or `default` if there is none."""
        return dict(self.items()).get(name, default)

    @classmethod
    def from_keywords(cls, fields: Mapping[str, object]) -> Self:
        """The params that `bind` was called with by keyword.

        Those of JAX's primitives have more names, for shardings and the like. None says
        nothing, and is dropped; a class may know what other values mean.
        """
        known = field_names(cls)
        return cls(**{n: x for n, x in fields.items() if x is not None or n in known})

    def without_axis(self, name: str) -> Self | None:
        """The params where types do not speak of an axis of `shard_map`.

        None says that nothing is left to do for the equation.
        """
        return self

    def __iter__(self) -> Iterator[str]:
        return iter(field_names(type(self)))

    def __len__(self) -> int:
        return len(field_names(type(self)))

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return name in field_names(type(self))

    def copy(self) -> dict[str, Any]:
        """The fields in a dictionary, which can be changed."""
        return dict(self)

    @classmethod
    def prepare(cls) -> None:
        """Note whether no value of the class can be transient."""
        if "prepare" in vars(cls):  # this one, whose property others inherit
            return
        inherited: object = cls.transient
        if all([is_plain_type(a.type) for a in fields(cls)]):
            cls.transient = False  # type: ignore[assignment]  # instead of the property
        elif inherited is False:  # the base lacks the fields that this class adds
            cls.transient = Params.transient  # type: ignore[method-assign]  # the property

    @cached_property
    def transient(self) -> bool:
        """Whether a field holds what a memo must not keep alive; see `holds`."""
        return any([holds(getattr(self, name)) for name in field_names(type(self))])

    @cached_property
    def kept(self) -> dict[object, object]:
        """The store of memos for transient params: it dies with them."""
        return {}

    def subjaxprs(self, aside: bool = True) -> "Iterator[Jaxpr]":
        """The jaxprs among the fields, in order, those inside tuples included.

        Without `aside` these are the ones that run where the equation does.
        """
        for name in field_names(type(self)):
            value = getattr(self, name)
            if isinstance(value, Jaxpr):
                yield value
            elif isinstance(value, tuple):
                yield from [item for item in value if isinstance(item, Jaxpr)]
            elif aside and isinstance(value, Aside):
                parts = [getattr(value, part) for part in field_names(type(value))]
                yield from [part for part in parts if isinstance(part, Jaxpr)]

    @property
    def effects(self) -> frozenset[Effect]:
        """The effects that these params cause: those of the jaxprs that run here."""
        inside = self.subjaxprs(aside=False)
        return NO_EFFECTS.union(*(inner.effects for inner in inside))

    def shifted_effects(self, *offsets: int) -> frozenset[Effect]:
        """The effects of the jaxprs inside, whose inputs begin at these operands."""
        inside = zip(self.subjaxprs(aside=False), offsets, strict=True)
        return NO_EFFECTS.union(
            *(
                [moved_effect(e, offset.__add__) for e in inner.effects]
                for inner, offset in inside
            )
        )

    @property
    def named_axes(self) -> frozenset[str]:
        """The axes that collectives name, those in the jaxprs inside."""
        return NO_AXES.union(*(inner.named_axes for inner in self.subjaxprs()))

    @property
    def rule_axes(self) -> frozenset[str]:
        """The axes that rules may name which are traced once they are needed."""
        return NO_AXES.union(*(inner.rule_axes for inner in self.subjaxprs()))


@frozen(eq=False, repr=False)
class NoParams(Params):
    """The params of a primitive without any; the only instance is `NO_PARAMS`."""

    __module__ = "verax.extend"

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @classmethod
    def from_keywords(cls, fields: Mapping[str, object]) -> "NoParams":
        """The only instance."""
        super().from_keywords(fields)
        return NO_PARAMS

    def __repr__(self) -> str:
        return "NO_PARAMS"

    def __reduce__(self) -> str:
        return "NO_PARAMS"


NO_PARAMS = NoParams()


@frozen(eq=False, repr=False)
class Primitive:
    """The name of an operation; its rules live in a row one floor up.

    Of one with `multiple_results`, `bind(*operands, **params)` returns a sequence, as
    JAX's does; of others, their only result.
    """

    __module__ = "verax.ir"

    transient: ClassVar[bool] = False
    # Programs within are params, never operands of `bind`.
    call_primitive: ClassVar[bool] = False
    map_primitive: ClassVar[bool] = False

    name: str
    params: type[Params]
    multiple_results: bool = field(default=False, kw_only=True)

    def get_bind_params(self, params: Params | Mapping[str, object]) -> dict[str, Any]:
        """The keyword arguments of `bind`: the params of an equation."""
        return dict(params)

    def bind(self, /, *args: object, **fields: object) -> Any:
        """Apply the primitive; a row, which knows how, answers.

        Raises:
            TypeError: the primitive is a name without a row.
        """
        raise TypeError(f"{self.name} is a name without rules: only a row can be bound")

    def __repr__(self) -> str:
        return self.name


@frozen(eq=False, repr=False)
class Source(ReprMixin):
    """The origin of an equation: the user's line, and what derived it.

    `origin` lists the transformations that made the equation from the line, such
    as `"jvp"` or `"transpose(jvp)"`; it is empty for what the user wrote.
    """

    __module__ = "verax.ir"

    code: CodeType | None
    instruction: int
    origin: str = ""

    @property
    def file(self) -> str:
        return "<unknown>" if self.code is None else self.code.co_filename

    @property
    def line(self) -> int:
        if self.code is None:
            return 0
        positions = list(self.code.co_positions())
        place = positions[self.instruction // 2] if positions else (None,)
        return place[0] or self.code.co_firstlineno

    @property
    def function(self) -> str:
        return "<unknown>" if self.code is None else self.code.co_qualname

    @property
    def text(self) -> str:
        """The line itself; empty if there is no file to read it from."""
        return linecache.getline(self.file, self.line).strip() if self.code else ""

    @property
    def backward(self) -> bool:
        """Whether the equation is on the way back of a gradient."""
        return "transpose" in self.origin

    @property
    def name_stack(self) -> str:
        """The transformations, under JAX's name; the names of scopes are not kept."""
        return self.origin

    def derived(self, transformation: str) -> "Source":
        """The same line, one transformation later."""
        return derive_source(self, transformation)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line} ({self.function})"
        return f"{place}, by {self.origin}" if self.origin else place


UNKNOWN_SOURCE = Source(None, 0)


@lru_cache(maxsize=65536)
def derive_source(source: Source, transformation: str) -> Source:
    origin = f"{transformation}({source.origin})" if source.origin else transformation
    return Source(source.code, source.instruction, origin)


@define(repr=False)
class EqnFields:
    """The fields of an equation, while it is being made; see `equation`."""

    primitive: Primitive
    params: Params
    invars: tuple[Atom, ...]
    outvars: tuple[Var, ...]
    source: Source = field(default=UNKNOWN_SOURCE, eq=False)


class EqnContext:
    """The options under which an equation runs: none, since its params have them all.

    Programs that walk equations for JAX run each in the block `eqn.ctx.manager`.
    """

    manager: ClassVar[AbstractContextManager[None]] = nullcontext()


@frozen(repr=False)
class Eqn(EqnFields):
    """One step: `outvars = primitive[params] invars`, and where it comes from."""

    __module__ = "verax.ir"

    @property
    def effects(self) -> frozenset[Effect]:
        return self.params.effects

    @property
    def source_info(self) -> Source:
        """`source`, under JAX's name."""
        return self.source

    @property
    def ctx(self) -> EqnContext:
        """What else decides how it runs, under JAX's name: nothing."""
        return EqnContext()

    def replace(
        self,
        *,
        primitive: Primitive | None = None,
        params: Params | Mapping[str, object] | None = None,
        invars: Iterable[Atom] | None = None,
        outvars: Iterable[Var] | None = None,
    ) -> "Eqn":
        """The same with other fields; of params, those that a mapping names."""
        if not isinstance(params, Params | None):
            params = evolve(self.params, **params)
        return Eqn(
            primitive or self.primitive,
            self.params if params is None else params,
            self.invars if invars is None else tuple(invars),
            self.outvars if outvars is None else tuple(outvars),
            self.source,
        )

    def __repr__(self) -> str:
        outs = " ".join(map(repr, self.outvars))
        ins = " ".join(
            letters(a.index) if isinstance(a, Var) else repr(a) for a in self.invars
        )
        return f"{outs} = {self.primitive.name} {ins}"


def equation(
    primitive: Primitive,
    params: Params,
    invars: tuple[Atom, ...],
    outvars: tuple[Var, ...],
    source: Source,
) -> Eqn:
    """`Eqn(...)` in 0.3 us where the constructor of a frozen class takes 0.75.

    The fields are filled in before the object becomes immutable; tracing and rewriting
    make little else than equations.
    """
    made = EqnFields(primitive, params, invars, outvars, source)
    made.__class__ = Eqn
    return made  # type: ignore[return-value]  # typing.cast would be a fifth of it


def moved_effect(effect: Effect, place: Callable[[int], int | None]) -> Effect:
    """An effect, of a reference with another number."""
    if type(effect) is not RefEffect or effect.index is None:
        return effect
    return RefEffect(effect.name, effect.ordered, place(effect.index))


def touched(eqn: Eqn, inputs: int) -> frozenset[Effect]:
    """The effects of an equation in a program with so many inputs."""

    def place(index: int) -> int | None:
        atom = eqn.invars[index]
        return None if isinstance(atom, Literal) else atom.index

    moved = [moved_effect(effect, place) for effect in eqn.effects]
    return frozenset(
        [
            effect
            for effect in moved
            if type(effect) is not RefEffect
            or (effect.name != MAKE and (effect.index is None or effect.index < inputs))
        ]
    )


class Picks(Protocol):
    """Takes the operands of a step from the values so far, whatever these are."""

    def __call__[V](self, values: Sequence[V], /) -> tuple[V, ...]: ...


type Step = tuple[Primitive, Params, int | None, Picks, tuple[ShapedArray, ...], Source]


@frozen(eq=False, repr=False)
class Script(ReprMixin):
    """A jaxpr in the form that writes it many times, on other operands.

    The values are `literals`, then the inputs, then the results in order. A step is a
    primitive, its params, how its operands are picked from the values (by the number
    of the only one, or by a function if that is None), the types of its results, and
    its source.
    """

    literals: tuple[Literal, ...]
    steps: tuple[Step, ...]
    outs: tuple[int, ...]


def no_operands[V](values: Sequence[V]) -> tuple[V, ...]:
    return ()


def script_of(jaxpr: "Jaxpr") -> Script:
    """See `Script`."""
    read = [a for eqn in jaxpr.eqns for a in eqn.invars] + list(jaxpr.outvars)
    literals = tuple([a for a in read if isinstance(a, Literal)])
    count, places = len(literals), iter(range(len(literals)))

    def numbers(atoms: tuple[Atom, ...]) -> list[int]:
        return [a.index + count if isinstance(a, Var) else next(places) for a in atoms]

    def picks(atoms: tuple[Atom, ...]) -> tuple[int | None, Picks]:
        out = numbers(atoms)
        if len(out) == 1:
            return out[0], no_operands
        return None, itemgetter(*out) if out else no_operands

    steps = [
        (e.primitive, e.params, *picks(e.invars), types_of(e.outvars), e.source)
        for e in jaxpr.eqns
    ]
    return Script(literals, tuple(steps), tuple(numbers(jaxpr.outvars)))


def types_of(atoms: Sequence[Atom]) -> tuple[ShapedArray, ...]:
    return tuple([a.aval for a in atoms])


@frozen(eq=False, repr=False)
class UsedConst(ReprMixin):
    """An array constant of a program, and the first equation that reads it."""

    literal: Literal
    source: Source

    @property
    def size(self) -> int:
        """The bytes that the constant takes."""
        return self.literal.aval.size * self.literal.aval.dtype.itemsize


def consts_of(eqns: Iterable[Eqn], outvars: tuple[Atom, ...]) -> tuple[UsedConst, ...]:
    """The array constants of equations and outputs, those of jaxprs inside included."""
    out: dict[Literal, UsedConst] = {}
    for eqn in eqns:
        # A class whose own `transient` is False can hold no jaxpr.
        if type(eqn.params).transient is not False:  # type: ignore[comparison-overlap]  # not the property
            for inner in eqn.params.subjaxprs():
                for use in inner.used_consts:
                    out.setdefault(use.literal, use)
        for atom in eqn.invars:
            if type(atom) is Literal and type(atom.key) is Identity:
                out.setdefault(atom, UsedConst(atom, eqn.source))
    for atom in outvars:
        if type(atom) is Literal and type(atom.key) is Identity:
            out.setdefault(atom, UsedConst(atom, UNKNOWN_SOURCE))
    return tuple(out.values())


class Variables(Protocol):
    """Anything that has the variables of a program."""

    @property
    def constvars(self) -> tuple[Var, ...]: ...

    @property
    def invars(self) -> tuple[Var, ...]: ...


class ProgramMembers:
    """Members that JAX's jaxprs have and that follow from their variables."""

    __slots__ = ()

    @property
    def all_invars(self: Variables) -> tuple[Var, ...]:
        """The constvars, then the inputs."""
        return (*self.constvars, *self.invars)

    @property
    def num_consts(self: Variables) -> int:
        return len(self.constvars)

    @property
    def is_high(self) -> bool:
        """Whether it has types that must be lowered first: never."""
        return False

    def pretty_print(self, **_: object) -> str:
        """The text of `print`; options that change only its layout are not used."""
        return repr(self)


@frozen(repr=False, eq=False)
class Jaxpr(ProgramMembers):
    """A program: typed inputs, equations in order, and outputs.

    `constvars` stand for array constants that were hoisted out; everywhere but at
    the surface they are empty, and array constants are literals of the equations.
    """

    __module__ = "verax.ir"

    constvars: tuple[Var, ...]
    invars: tuple[Var, ...]
    eqns: PVector[Eqn]
    outvars: tuple[Atom, ...]

    @cached_property
    def value_hash(self) -> int:
        return hash((self.constvars, self.invars, self.eqns, self.outvars))

    def __hash__(self) -> int:
        return self.value_hash

    @cached_property
    def twin(self) -> "list[Jaxpr]":
        """The jaxpr that represents all that were found equal to this one.

        Programs share parts: without this memory, comparing two of them would compare
        a part at each of its uses, which doubles with every level of nesting.
        """
        return [self]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Jaxpr) or self.value_hash != other.value_hash:
            return False
        mine, its = standing_for(self), standing_for(other)
        if mine is its:
            return True
        equal = (
            mine.constvars == its.constvars
            and mine.invars == its.invars
            and mine.outvars == its.outvars
            and mine.eqns == its.eqns
        )
        if equal:
            # By address, so that two threads cannot deadlock.
            low, high = sorted((mine, its), key=id)
            low.twin[0] = high
        return equal

    @cached_property
    def holds_functions(self) -> bool:
        """Whether params of an equation hold what a memo must not keep alive."""
        inside = [e.params for e in self.eqns if e.params is not NO_PARAMS]
        return any([p.transient for p in inside])

    @cached_property
    def transient(self) -> bool:
        """Whether the program holds what a memo must not keep alive; see `holds`."""
        return self.holds_functions or any(
            [use.literal.transient for use in self.used_consts]
        )

    @cached_property
    def kept(self) -> dict[object, object]:
        """The store of memos for a transient program: it dies with it."""
        return {}

    @property
    def jaxpr(self) -> "Jaxpr":
        """It, so that one asks an open jaxpr as a closed one."""
        return self

    @property
    def consts(self) -> tuple[object, ...]:
        """The values of `constvars`: none, since it is open."""
        return ()

    @property
    def literals(self) -> tuple[object, ...]:
        """`consts`, under their former name."""
        return ()

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([v.aval for v in self.invars])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([a.aval for a in self.outvars])

    @cached_property
    def script(self) -> Script:
        """The script that `Builder.inline` reads, made once for each template."""
        return script_of(self)

    @cached_property
    def effects(self) -> frozenset[Effect]:
        """Every effect of every equation, those of nested jaxprs included.

        References are named by the inputs; what happens to others, which the program
        makes itself, is not an effect of it.
        """
        out = NO_EFFECTS.union(
            *(e.effects for e in self.eqns if e.params is not NO_PARAMS)
        )
        if out and any([type(effect) is RefEffect for effect in out]):
            inputs = len(self.constvars) + len(self.invars)
            return NO_EFFECTS.union(*(touched(e, inputs) for e in self.eqns))
        return out

    @cached_property
    def named_axes(self) -> frozenset[str]:
        """Every axis that a collective names, those in nested jaxprs included."""
        return NO_AXES.union(
            *(e.params.named_axes for e in self.eqns if e.params is not NO_PARAMS)
        )

    @cached_property
    def rule_axes(self) -> frozenset[str]:
        """Every axis that a rule inside may name which is not traced yet."""
        return NO_AXES.union(
            *(e.params.rule_axes for e in self.eqns if e.params is not NO_PARAMS)
        )

    @cached_property
    def used_consts(self) -> "tuple[UsedConst, ...]":
        """The array constants inside, nested jaxprs included, in printing order."""
        return consts_of(self.eqns, self.outvars)

    def __repr__(self) -> str:
        return print_jaxpr(self)

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        return str(module_named("verax.ir.text.printer").html(self))


@frozen(repr=False, eq=False)
class ClosedJaxpr(ProgramMembers):
    """A jaxpr together with the values of its constvars; what `make_jaxpr` returns."""

    __module__ = "verax.ir"

    jaxpr: Jaxpr
    consts: tuple[Any, ...] = ()

    @property
    def literals(self) -> tuple[object, ...]:
        """The constants, under their former name."""
        return self.consts

    @property
    def constvars(self) -> tuple[Var, ...]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> tuple[Var, ...]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> tuple[Atom, ...]:
        return self.jaxpr.outvars

    def replace(
        self, *, jaxpr: Jaxpr | None = None, consts: Sequence[object] | None = None
    ) -> "ClosedJaxpr":
        """The same with another jaxpr, or with other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr,
            self.consts if consts is None else tuple(consts),
        )

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> PVector[Eqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset[Effect]:
        return self.jaxpr.effects

    def __repr__(self) -> str:
        return print_jaxpr(self.jaxpr)

    def _repr_html_(self) -> str:
        return self.jaxpr._repr_html_()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ClosedJaxpr)
            and self.jaxpr == other.jaxpr
            and len(self.consts) == len(other.consts)
            and all(a is b for a, b in zip(self.consts, other.consts, strict=True))
        )

    def __hash__(self) -> int:
        return hash((self.jaxpr, tuple(map(id, self.consts))))

    @cached_property
    def kept(self) -> dict[object, object]:
        """The store of what is kept with the program: it dies with it."""
        return {}


def standing_for(jaxpr: Jaxpr) -> Jaxpr:
    """The end of the chain of equal jaxprs."""
    while (twin := jaxpr.twin[0]) is not jaxpr:
        jaxpr = twin
    return jaxpr


def empty_jaxpr(invars: tuple[Var, ...], outvars: tuple[Atom, ...]) -> Jaxpr:
    """A jaxpr without equations: it returns inputs and constants only."""
    return Jaxpr((), invars, pvector(), outvars)
