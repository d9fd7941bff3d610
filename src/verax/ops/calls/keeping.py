"""Floor 2: a program in two halves: one that keeps values, and one that reads them.

One idea: what a policy of `checkpoint` keeps may lie inside of a loop or a choice. Such
an equation says how its bodies hand values out, and take them back: a loop in rows, one
for each step, a choice in one slot for each branch::

    both = kept_apart(jaxpr, verdict)
    both.writer    # inputs -> (outputs, kept values)
    both.reader    # (inputs, kept values) -> outputs
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Params
from verax.ir.records import ReprMixin
from verax.ir.walk import read
from verax.ops.calls.call import inline
from verax.rules.rows.builder import Builder

type Types = Sequence[ShapedArray]


@runtime_checkable
class Keeping(Protocol):
    """Params of equations whose bodies may hand values out, and take them back."""

    def handing_out(self, bodies: Sequence[Jaxpr], kept: Sequence[Types]) -> Params:
        """The same with bodies that return values of these types after their results.

        The equation returns them all after its results.
        """

    def taking_back(self, bodies: Sequence[Jaxpr], kept: Sequence[Types]) -> Params:
        """The same with bodies that take values of these types after their operands.

        The equation takes after its operands what `handing_out` returns.
        """


@frozen(eq=False, repr=False)
class KeptApart[V](ReprMixin):
    """The two halves, and the verdict for each of the kept values."""

    writer: Jaxpr
    reader: Jaxpr
    verdicts: tuple[V, ...]

    @property
    def kept(self) -> tuple[ShapedArray, ...]:
        """The types of the kept values."""
        return self.writer.out_avals[len(self.reader.outvars) :]


@frozen(eq=False, repr=False)
class Inside[V](ReprMixin):
    """An equation with kept values inside: both forms of its params."""

    writing: Params
    reading: Params
    verdicts: tuple[V, ...]


@frozen(eq=False, repr=False)
class Step[V](ReprMixin):
    """What is kept of one equation: all results if it is `done`, or values inside."""

    verdicts: tuple[V, ...]
    inner: Inside[V] | None
    done: bool


def kept_apart[V](
    jaxpr: Jaxpr, verdict: Callable[[Eqn], V], *, inside: bool = True
) -> KeptApart[V]:
    """The halves of a program, which together compute what it does.

    The results of an equation are kept if `verdict` of it is true. Of others the values
    `inside` of their bodies are asked for, too.
    """
    plan = [planned(eqn, verdict, inside) for eqn in jaxpr.eqns]
    verdicts = tuple([said for step in plan for said in step.verdicts])
    if not any([step.verdicts or step.done for step in plan]):
        return KeptApart(jaxpr, jaxpr, ())
    writer, reader = Builder("checkpoint"), Builder("checkpoint")
    env: list[Atom] = writer.input_atoms(jaxpr.in_avals)
    kept: list[Atom] = []
    for eqn, step in zip(jaxpr.eqns, plan, strict=True):
        ins = read(eqn.invars, env)
        if step.inner is None:
            outs: Sequence[Atom] = writer.copy(eqn, ins)
            more = outs if step.done else ()
        else:
            outs, more = bound(writer, eqn, step.inner.writing, ins)
        env += outs
        kept += more
    closed = writer.close([*read(jaxpr.outvars, env), *kept])[0]
    env = reader.input_atoms(jaxpr.in_avals)
    given = iter(reader.input_atoms([atom.aval for atom in kept]))
    for eqn, step, flag in zip(jaxpr.eqns, plan, still_read(jaxpr, plan), strict=True):
        back = [next(given) for _ in step.verdicts]
        if step.done:
            env += back
        elif not flag:
            env += eqn.outvars  # which nobody reads
        elif step.inner is None:
            env += reader.copy(eqn, read(eqn.invars, env))
        else:
            ins = [*read(eqn.invars, env), *back]
            env += bound(reader, eqn, step.inner.reading, ins)[0]
    half = reader.close(read(jaxpr.outvars, env))[0]
    return KeptApart(closed, half, verdicts)


def still_read[V](jaxpr: Jaxpr, plan: Sequence[Step[V]]) -> list[bool]:
    """Which equations the second half needs, beside those whose results are kept."""
    needed, flags = set(jaxpr.outvars), []
    for eqn, step in zip(reversed(jaxpr.eqns), reversed(plan), strict=True):
        flag = bool(eqn.effects) or not needed.isdisjoint(eqn.outvars)
        if flag and not step.done:
            needed.update(eqn.invars)
        flags.append(flag)
    return flags[::-1]


def planned[V](eqn: Eqn, verdict: Callable[[Eqn], V], inside: bool) -> Step[V]:
    """What becomes of an equation."""
    said = verdict(eqn)
    if said:
        return Step((said,) * len(eqn.outvars), None, done=True)
    inner = kept_inside(eqn.params, verdict) if inside else None
    return Step(() if inner is None else inner.verdicts, inner, done=False)


def bound(
    builder: Builder, eqn: Eqn, params: Params, ins: Sequence[Atom]
) -> tuple[list[Atom], list[Atom]]:
    """An equation with other params: its results, and what it returns beside."""
    builder.source = eqn.source
    outs = builder.bind(eqn.primitive, params, builder.tracers(ins))
    atoms = [builder.atom(x) for x in outs]
    return atoms[: len(eqn.outvars)], atoms[len(eqn.outvars) :]


def kept_inside[V](params: Params, verdict: Callable[[Eqn], V]) -> Inside[V] | None:
    """What is kept inside of an equation; None if nothing is."""
    if not isinstance(params, Keeping):
        return None
    halves = [kept_apart(inline(body), verdict) for body in params.subjaxprs()]
    verdicts = tuple([said for half in halves for said in half.verdicts])
    if not verdicts:
        return None
    kept = [half.kept for half in halves]
    return Inside(
        params.handing_out([half.writer for half in halves], kept),
        params.taking_back([half.reader for half in halves], kept),
        verdicts,
    )
