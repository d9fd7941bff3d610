"""Floor 1: the builder, which writes equations down, and the tracers it hands out.

One idea: the builder is the one mutable object of the library; it is born and dies
inside one function. There is one kind of tracer and no level: a tracer of an outer,
living builder that is used here becomes an input of the program under construction::

    builder = Builder("jit")
    x = builder.input(ShapedArray((3,), float32))
    with interpreting(builder):
        y = sin(x)
    jaxpr, captured = builder.finish((y,))

`Builder.capture` makes that input; `leaks` has the errors for tracers that have none.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, ClassVar, NoReturn

import numpy as np
from pyrsistent import pvector

from verax.ir.atoms import RESULTS
from verax.ir.avals import AbstractRef, ShapedArray, SymbolicSize, is_reference
from verax.ir.jaxpr import (
    UNKNOWN_SOURCE,
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    Source,
    Var,
    array_literal,
    equation,
    results,
    results_like,
    variable,
)
from verax.ir.walk import read
from verax.rules.rows.infer import Uneven, infer
from verax.rules.rows.leaks import abstract, behind, leaked
from verax.rules.values.array import Array
from verax.rules.values.constants import constant
from verax.rules.values.conversions import ConcretizationTypeError, NotAnArray, Refusal
from verax.rules.values.memo import asked
from verax.rules.values.state import STATE, interpreting, user_source

# Equations up to which a jaxpr counts as a template, which is written many times.
TEMPLATE = 32
type Oracle = Callable[["Tracer", str, Refusal], np.ndarray]


class Staged:
    """An atom of a jaxpr that is being built: a tracer, or a `Ref`."""

    __slots__ = ()

    aval: ShapedArray
    builder: "Builder"
    atom: Atom


class Tracer(Array, Staged):
    """A value under tracing: a type, and an atom of the jaxpr that is being built."""

    __module__ = "verax.core"
    __slots__ = ("__weakref__", "atom", "builder")

    def __init__(self, builder: "Builder", atom: Atom) -> None:
        self.aval = atom.aval
        self.builder = builder
        self.atom = atom

    @property
    def _trace(self) -> "Builder":
        """The trace, by the name that libraries for JAX know: one object for each."""
        return self.builder

    def __repr__(self) -> str:
        if self.has_ended:
            settle(self)
            if isinstance(self.atom, Literal):
                return repr(self.atom.value)
        return f"Traced<{self.aval}> under {self.builder.purpose}"

    def __getattr__(self, name: str) -> Any:
        """What arrays with values have, of one that has outlived its trace."""
        if name not in Tracer.__slots__ and self.has_ended:
            settle(self)
            if isinstance(self.atom, Literal):
                return getattr(self.atom.value, name)
        return super().__getattr__(name)  # type: ignore[misc]  # hidden from checkers

    def devices(self) -> set[object]:
        return self.__getattr__("devices")() if self.has_ended else super().devices()

    @property
    def has_ended(self) -> bool:
        """Whether the value has outlived its trace."""
        return not self.builder.alive and outlives(self)

    def __dlpack__(self, **options: Any) -> Any:
        return self.concrete("__dlpack__()").__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.concrete("__dlpack__()").__dlpack_device__()

    def __copy__(self) -> "Tracer":
        return self

    def __deepcopy__(self, memo: object) -> "Tracer":
        return self

    def __reduce__(self) -> Any:
        if self.has_ended:
            return self.__getattr__("__reduce__")()
        raise abstract(self, "a copy in another process or on disk (pickle)")

    def concrete(
        self, expected: str, refusal: Refusal = ConcretizationTypeError
    ) -> np.ndarray:
        """The value, if the trace has concrete inputs; `expected` says who asks.

        Raises:
            AbstractValueError: the trace is abstract; of class `refusal`.
            LeakedTracer: the trace has ended, and the value depends on its inputs.
        """
        if not self.builder.alive:
            settle(self)
        if isinstance(self.atom, Literal):
            return np.asarray(self.atom.value)
        if self.builder.oracle is None:
            raise abstract(self, expected, refusal)
        return self.builder.oracle(self, expected, refusal)


class Scope:
    """A trace that is under way: what it hands out may be used by those inside it.

    A builder is one; so is an interpreter of a program's own that makes its own
    tracers, of which only what messages and inner traces read is requested.
    """

    purpose: str
    outer: "Scope | None"
    alive: bool
    thread: int
    inputs: list[Var]
    eqns: list[Eqn]
    captured: dict[tuple[int, Atom], tuple[Staged, Var]]
    converted: dict[object, tuple[object, Array]]
    describe: Callable[[], Sequence[str]] | None
    oracle: Oracle | None
    differentiates: bool
    releases: bool
    refs: bool


def no_reference(*_: object) -> NoReturn:
    """Makes references in a process without `verax.wiring`."""
    raise RuntimeError(
        "a program takes a reference, and none can be made; import verax"
    )


class Builder(Scope):
    """Collects the equations of one trace; an interpreter, as the eager one is.

    `purpose` names the transformation in messages, and `describe` the arguments, in
    order. `source` is given to every equation instead of the user's line. `oracle`
    gives concrete values to tracers, if the trace has them.
    """

    immediate: ClassVar[bool] = False
    reference: ClassVar[Callable[..., Any]] = no_reference
    evened: ClassVar[Callable[..., Sequence[object]]] = no_reference

    def __init__(
        self,
        purpose: str,
        outer: Scope | None = None,
        source: Source | None = None,
    ) -> None:
        self.purpose = purpose
        self.outer = outer
        self.source = source
        self.alive = True
        self.thread = get_ident()
        self.inputs = []
        self.count = 0
        self.eqns = []
        # Outer tracers with the inputs for them: with tracers of its own, the builder
        # would hold itself, and the arrays in its equations, until it is collected.
        self.captured = {}
        # What became of NumPy's arrays, with them so that no other takes their place.
        self.converted = {} if outer is None else outer.converted
        self.describe = None
        self.oracle = None
        # Whether its inputs get tangents.
        self.differentiates = False
        # Whether values that depend on none of its inputs may outlive it.
        self.releases = False
        # Whether it has met a reference.
        self.refs = False
        # Whether arrays without dimensions are constants too, as those with some are.
        self.lifts = False

    @property
    def main(self) -> "Builder":
        """The trace itself, which is what older libraries compare."""
        return self

    def input(self, aval: ShapedArray) -> Any:
        """A new input of type `aval`: a tracer, or a reference."""
        var = self.input_atom(aval)
        if type(aval) is AbstractRef:
            return self.reference(self, var)
        return Tracer(self, var)

    def input_atom(self, aval: ShapedArray) -> Var:
        """The atom of a new input of type `aval`."""
        if type(aval) is AbstractRef:
            self.refs = True
        var = variable(self.count, aval)
        self.count += 1
        self.inputs.append(var)
        return var

    def input_atoms(self, avals: Iterable[ShapedArray]) -> list[Atom]:
        """The atoms of new inputs of these types."""
        return [self.input_atom(aval) for aval in avals]

    def atom(self, x: object) -> Atom:
        """The atom of operand `x` in this program.

        Raises:
            LeakedTracer: `x` belongs to a trace that has ended or is not around this.
            TypeError: `x` is not an array.
        """
        if not isinstance(x, Staged):
            return self.atom_of(x)
        if x.builder is self or isinstance(x.atom, Literal):
            return x.atom
        return self.capture(x)

    def atom_of(self, x: object) -> Atom:
        """The atom of an operand that is not a tracer."""
        if isinstance(x, SymbolicSize):
            return self.atom(x.__jax_array__())
        if self.lifts and isinstance(x, Array):
            return array_literal(x, x.aval)
        try:
            return constant(x)
        except NotAnArray:
            if not is_reference(x):
                raise
        self.refs = True
        return array_literal(x, x.aval)

    def capture(self, x: Staged) -> Atom:
        """The input that stands for `x`, a tracer of a trace around this one."""
        key = (id(x.builder), x.atom)
        if key in self.captured:
            return self.captured[key][1]
        around = self.outer
        while around is not None and around is not x.builder:
            around = around.outer
        if around is None or not x.builder.alive:
            if not isinstance(x, Tracer) or x.builder.alive:
                raise leaked(x)
            settle(x)
            return self.atom(x)
        inner = self.input_atom(x.aval)
        self.captured[key] = (x, inner)
        return inner

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """Write one equation on any operands; its results as tracers."""
        atoms = tuple(
            [
                a.atom if type(a) is Tracer and a.builder is self else self.atom(a)
                for a in args
            ]
        )
        row: Any = primitive  # what is bound has rules
        types = [a.aval for a in atoms]
        avals: tuple[ShapedArray, ...] | None
        try:
            if params.transient:
                avals = asked(infer, params, row, params, *types)
            else:
                avals = infer(row, params, *types)
        except Uneven:
            avals = None
        if avals is None:  # here, so that errors are not raised while handling another
            return self.bind(primitive, params, self.evened(self, args))
        outs = results(self.count, avals)
        self.count += len(outs)
        source = self.source or user_source(3)
        self.eqns.append(equation(primitive, params, atoms, outs, source))
        return tuple([Tracer(self, var) for var in outs])

    def copy(self, eqn: Eqn, atoms: Sequence[Atom]) -> tuple[Var, ...]:
        """Write an equation again on other operands of the same types."""
        outs = results_like(self.count, eqn.outvars)
        self.count += len(outs)
        ins = tuple(atoms)
        self.eqns.append(equation(eqn.primitive, eqn.params, ins, outs, eqn.source))
        return outs

    def call(self, jaxpr: Jaxpr, args: Iterable[object]) -> list[Tracer]:
        """The results of `jaxpr` on any operands; its equations are written here."""
        return self.tracers(self.inline(jaxpr, [self.atom(x) for x in args]))

    def inline(
        self,
        jaxpr: Jaxpr,
        atoms: Sequence[Atom],
        source: Source | None = None,
    ) -> list[Atom]:
        """Write the equations of `jaxpr` on `atoms`; what its outputs are here.

        `source` replaces the sources of the equations.
        """
        if len(jaxpr.eqns) > TEMPLATE:
            return self.write_again(jaxpr, atoms, source)
        script = jaxpr.script
        env: list[Atom] = [*script.literals, *atoms]
        count, write = self.count, self.eqns.append
        for primitive, params, one, pick, avals, own in script.steps:
            ins = pick(env) if one is None else (env[one],)
            if len(avals) == 1:
                outs: tuple[Var, ...] = RESULTS[avals[0]][count]
                count += 1
            else:
                outs = results(count, avals)
                count += len(outs)
            env += outs
            write(equation(primitive, params, ins, outs, source or own))
        self.count = count
        return [env[i] for i in script.outs]

    def write_again(
        self, jaxpr: Jaxpr, atoms: Sequence[Atom], source: Source | None
    ) -> list[Atom]:
        """`inline` for a program that will hardly be written a second time."""
        env: list[Atom] = list(atoms)
        count, write = self.count, self.eqns.append
        for eqn in jaxpr.eqns:
            # As `read` does, whose call makes this loop 15 % slower.
            ins = tuple([env[a.index] if type(a) is Var else a for a in eqn.invars])
            outs = results_like(count, eqn.outvars)
            count += len(outs)
            env += outs
            place = source or eqn.source
            write(equation(eqn.primitive, eqn.params, ins, outs, place))
        self.count = count
        return read(jaxpr.outvars, env)

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Take back the equations that the block has written, if it fails.

        The function under trace may catch the error, and go on without them.
        """
        count, written, inputs = self.count, len(self.eqns), len(self.inputs)
        try:
            yield
        except BaseException:
            if len(self.inputs) == inputs:
                del self.eqns[written:]
                self.count = count
            raise

    def tracers(self, atoms: Sequence[Atom]) -> list[Tracer]:
        """Tracers of this builder for some of its atoms."""
        return [Tracer(self, atom) for atom in atoms]

    def finish(self, outputs: Sequence[object]) -> tuple[Jaxpr, tuple[Staged, ...]]:
        """End the trace: the jaxpr, and the outer tracers that are its first inputs.

        The inputs that stand for captured tracers come before the arguments.
        """
        return self.close([self.atom(x) for x in outputs])

    def close(self, outvars: Sequence[Atom]) -> tuple[Jaxpr, tuple[Staged, ...]]:
        """`finish` for outputs that are atoms already."""
        self.alive = False
        outer = tuple([tracer for tracer, _ in self.captured.values()])
        jaxpr = Jaxpr((), tuple(self.inputs), pvector(self.eqns), tuple(outvars))
        if not outer:
            return jaxpr, ()
        captured = {inner.index for _, inner in self.captured.values()}
        own = [v for v in self.inputs if v.index not in captured]
        caught = [v for v in self.inputs if v.index in captured]
        return renumber(jaxpr, [*caught, *own]), outer


# -----------------------------------------------------------------------------
# Values that outlive their trace.
#
# What depends on no input of the trace of a derivative or of a `vmap` is no value of
# that trace alone: programs keep it, as parameters that a model makes when it is first
# called. The equations that made it run again, where the trace stood, once something
# asks for it::
#
#     verax.grad(lambda x: saved.append(vnp.ones(3) * 2) or x)(1.0)
#     saved[0] + 1    # array([3., 3., 3.])


def outlives(x: Tracer) -> bool:
    """Whether a tracer whose trace has ended depends on none of its inputs.

    Effects have happened, or will; they do not happen again for a value. What names an
    axis has another value for each element of it.
    """
    if isinstance(x.atom, Literal):
        return True
    if not x.builder.releases or x.builder.thread != get_ident():
        return False
    eqns, atoms = behind(x)
    caught = {inner: outer for outer, inner in x.builder.captured.values()}
    if any([eqn.effects or eqn.params.named_axes for eqn in eqns]):
        return False
    below = [caught.get(var) for var in x.builder.inputs if var in atoms]
    return all([isinstance(y, Tracer) and stands(y) for y in below])


def stands(x: Tracer) -> bool:
    """Whether a tracer means something: its trace goes on, or it outlives it."""
    return x.builder.alive or outlives(x)


def settle(x: Tracer) -> None:
    """Make `x`, whose trace has ended, a value of the trace around it, or an array.

    Raises:
        LeakedTracer: it depends on inputs of its trace.
    """
    if isinstance(x.atom, Literal):
        return
    if x.builder.alive or not outlives(x):
        raise leaked(x)
    around = x.builder.outer
    while around is not None and not around.alive:
        around = around.outer
    eqns, _ = behind(x)
    env: dict[Atom, object] = {v: y for y, v in x.builder.captured.values()}
    interpreter: Any = STATE.eager if around is None else around
    with interpreting(interpreter):
        for eqn in eqns:
            args = [env.get(a, a) for a in eqn.invars]
            outs = STATE.interpreter.bind(eqn.primitive, eqn.params, args)
            env.update(zip(eqn.outvars, outs, strict=True))
    out = env[x.atom]
    if isinstance(out, Tracer):
        x.builder, x.atom = out.builder, out.atom
    else:
        assert isinstance(out, Array)
        x.atom = array_literal(out, out.aval)


def with_settled(args: Iterable[object]) -> list[object]:
    """Operands outside every trace, with arrays for tracers that have outlived theirs.

    Raises:
        LeakedTracer: one of them depends on inputs of its trace.
    """
    return [settled(x) if isinstance(x, Tracer) else x for x in args]


def settled(x: Tracer) -> object:
    """The array or number that a tracer is outside every trace.

    Raises:
        LeakedTracer: it depends on inputs of its trace.
    """
    settle(x)
    if not isinstance(x.atom, Literal):
        raise leaked(x)
    return x.atom.value


def renumber(jaxpr: Jaxpr, inputs: Sequence[Var]) -> Jaxpr:
    """`jaxpr` with its inputs in the order `inputs` and canonical numbers."""
    builder = Builder("renumber")
    # By the old index; inputs and results have been numbered as they came.
    env = {var.index: builder.input_atom(var.aval) for var in inputs}
    for eqn in jaxpr.eqns:
        outs = builder.copy(eqn, read(eqn.invars, env))
        for old, new in zip(eqn.outvars, outs, strict=True):
            env[old.index] = new
    return builder.close(read(jaxpr.outvars, env))[0]


type Write = Callable[[Builder, Eqn, tuple[Atom, ...]], Sequence[Atom]]


def rebuilt(
    jaxpr: Jaxpr,
    write: Write,
    purpose: str,
    avals: Iterable[ShapedArray] | None = None,
) -> Jaxpr:
    """The program with what `write` puts in the place of each equation.

    `write(builder, eqn, operands)` returns what stands for the results from there on;
    `builder.copy(eqn, operands)` keeps an equation. `avals` are the types of the
    inputs, if they become others.
    """
    builder = Builder(purpose)
    env = builder.input_atoms(jaxpr.in_avals if avals is None else avals)
    for eqn in jaxpr.eqns:
        env += write(builder, eqn, tuple(read(eqn.invars, env)))
    return builder.close(read(jaxpr.outvars, env))[0]


def write_here(jaxpr: Jaxpr, *args: object) -> list[Tracer]:
    """The results of `jaxpr`, whose equations go into the program being built."""
    builder = STATE.interpreter
    assert isinstance(builder, Builder)
    return builder.call(jaxpr, args)


def program(
    avals: Iterable[ShapedArray],
    body: Callable[..., Sequence[object]],
    purpose: str = "a rule",
    source: Source = UNKNOWN_SOURCE,
) -> Jaxpr:
    """The jaxpr of `body` on inputs of these types; `purpose` names it in messages."""
    builder = Builder(purpose, source=source)
    inputs = [builder.input(aval) for aval in avals]
    with interpreting(builder):
        return builder.finish(body(*inputs))[0]
