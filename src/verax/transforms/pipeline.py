"""Floor 3: the passes between the trace of a program and its StableHLO, in order.

`COMPILE` is the whole of what happens to the equations of a program that is compiled.
A pass takes a body and returns one that computes the same; its contract says what it
needs, keeps and may drop::

    body = passed(engine, jaxpr, Target(one_cpu=True))
    [one.name for one in COMPILE]     # dce, stacks, outline, transposes, ...

Passes of a user's own come before these: see `verax.extend.with_passes`.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Final

from attrs import evolve, frozen
from pyrsistent import pvector

from verax.ir.avals import ShapedArray
from verax.ir.effects import Effect
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, consts_of
from verax.ir.records import ReprMixin
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import Engine, traits_of
from verax.transforms.engine.partial_eval import live, variables

# Equations of a program in which nothing is worth a function or several loops.
FEW: Final = 48

# The loops of which one reads what the other stacks.
TWO: Final = 2


@frozen(eq=False, repr=False)
class Body(ReprMixin):
    """A program on its way to StableHLO: inputs, equations, outputs, constants.

    An equation is None where nothing needs it; variables keep their numbers, of which
    there are `size`. `kept` marks the inputs of the program that are left.
    """

    invars: tuple[Var, ...]
    eqns: Sequence[Eqn | None]
    outvars: tuple[Atom, ...]
    consts: tuple[Literal, ...]
    effects: frozenset[Effect]
    size: int
    kept: Mask

    @property
    def live_eqns(self) -> list[Eqn]:
        """The equations that something needs."""
        return [eqn for eqn in self.eqns if eqn is not None]

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([v.aval for v in self.invars])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([a.aval for a in self.outvars])


@frozen(repr=False)
class Target(ReprMixin):
    """The target for which a program is compiled.

    `one_cpu` is a single CPU, on which the gain of the passes for it was measured;
    `calls` is as in `CompileOptions`. With `keep_unused` nothing is left out; `kernels`
    says whether functions are written out.
    """

    one_cpu: bool = False
    calls: str = "auto"
    keep_unused: bool = False
    kernels: bool = True


@frozen(eq=False, repr=False)
class Pass(ReprMixin):
    """A step of a pipeline, and its contract.

    Attributes:
        name: the name of the stage in the explorer.
        run: the rewrite of a body.
        wanted: whether the pass runs for a target.
        needs: what must hold of the body.
        keeps: what is the same afterwards.
        drops: what may be gone or differ.

    >>> import verax
    >>> verax.transforms.COMPILE[0].drops
    'equations, results and inputs that nothing needs'
    """

    __module__ = "verax.transforms"

    name: str
    run: Callable[[Engine, Body, Target], Body]
    wanted: Callable[[Target], bool]
    needs: str
    keeps: str
    drops: str


def without_dead_code(engine: Engine, body: Body, target: Target) -> Body:
    """The body without equations and inputs that no output and no effect needs."""
    eqns, expected = live(engine, body.live_eqns, body.outvars, body.size)
    kept = tuple(expected[: len(body.invars)])
    invars = tuple(compress(body.invars, kept))
    used = consts_of([eqn for eqn in eqns if eqn is not None], body.outvars)
    consts = tuple([const.literal for const in used])
    return evolve(body, invars=invars, eqns=eqns, consts=consts, kept=kept)


def with_lean_loops(engine: Engine, body: Body, target: Target) -> Body:
    """The body whose loops stack less for the loops that run backwards.

    What is nearly free to compute again costs more to write and to read: XLA joins it
    with what reads it in one loop, but not across two.
    """
    eqns = body.live_eqns
    if sum([traits_of(eqn.primitive).loop for eqn in eqns]) < TWO:
        return body
    from verax.transforms.memory.loops import FREE, with_fewer_stacks

    jaxpr = Jaxpr((), body.invars, pvector(eqns), body.outvars)
    lean = with_fewer_stacks(jaxpr, FREE)
    if lean is jaxpr:
        return body
    consts = tuple([const.literal for const in lean.used_consts])
    return evolve(
        body,
        invars=lean.invars,
        eqns=lean.eqns,
        outvars=lean.outvars,
        consts=consts,
        size=variables(lean),
    )


def with_functions(engine: Engine, body: Body, target: Target) -> Body:
    """The body with calls of blocks that repeat, as the option `calls` says."""
    eqns = body.live_eqns
    if is_short(eqns):
        return body
    from verax.transforms.passes.outline import with_kept_calls

    shorter, size = with_kept_calls(eqns, body.outvars, target.calls, body.size)
    return evolve(body, eqns=shorter, size=size)


def with_transposes_late(engine: Engine, body: Body, target: Target) -> Body:
    """The body with transposes after the functions of elements that read them."""
    from verax.transforms.passes.transposes import late

    eqns, size = late(body.live_eqns, body.outvars, body.size)
    return evolve(body, eqns=eqns, size=size)


def with_stored_pieces(engine: Engine, body: Body, target: Target) -> Body:
    """The body with what is read in several places stored."""
    from verax.transforms.passes.pieces import stored

    eqns, size = stored(body.live_eqns, body.outvars, body.size)
    return evolve(body, eqns=eqns, size=size)


def with_reductions_in_parts(engine: Engine, body: Body, target: Target) -> Body:
    """The body with what is computed only to be reduced in parts."""
    from verax.transforms.passes.partials import parted

    eqns, size = parted(body.live_eqns, body.outvars, body.size)
    return evolve(body, eqns=eqns, size=size)


def with_functions_written_out(engine: Engine, body: Body, target: Target) -> Body:
    """The body with the kernels of its equations."""
    from verax.transforms.passes.kernels import write_out

    eqns, size = write_out(body.live_eqns, body.outvars, body.size)
    return evolve(body, eqns=eqns, size=size)


def with_split_chains(engine: Engine, body: Body, target: Target) -> Body:
    """The body with long chains of elementwise operations in parts."""
    eqns = body.live_eqns
    if is_short(eqns):
        return body
    from verax.transforms.passes.chains import split_everywhere

    parts, size = split_everywhere(eqns, body.size)
    return evolve(body, eqns=parts, size=size)


def is_short(eqns: Sequence[Eqn]) -> bool:
    """Whether nothing in so few equations is worth a function or several loops."""
    return len(eqns) < FEW and not any(map(holds_programs, eqns))


def holds_programs(eqn: Eqn) -> bool:
    """Whether the equation holds a jaxpr that runs with it."""
    return any([True for _ in eqn.params.subjaxprs(aside=False)])


COMPILE: Final[tuple[Pass, ...]] = (
    Pass(
        "dce",
        without_dead_code,
        wanted=lambda target: not target.keep_unused,
        needs="nothing",
        keeps="values of outputs, and effects",
        drops="equations, results and inputs that nothing needs",
    ),
    Pass(
        "stacks",
        with_lean_loops,
        wanted=lambda target: target.one_cpu,
        needs="nothing",
        keeps="inputs, output types, values and effects",
        drops="the last places of what is computed again",
    ),
    Pass(
        "outline",
        with_functions,
        wanted=lambda target: target.one_cpu and target.calls != "inline",
        needs="nothing",
        keeps="inputs, output types, values and effects",
        drops="the last place of a result where XLA would have joined two blocks",
    ),
    Pass(
        "transposes",
        with_transposes_late,
        wanted=lambda target: target.one_cpu,
        needs="nothing",
        keeps="inputs, outputs, values and effects",
        drops="nothing",
    ),
    Pass(
        "kernels",
        with_functions_written_out,
        wanted=lambda target: target.one_cpu and target.kernels,
        needs="nothing",
        keeps="inputs, output types and effects",
        drops="the last places of functions that have kernels",
    ),
    Pass(
        "pieces",
        with_stored_pieces,
        wanted=lambda target: target.one_cpu,
        needs="nothing",
        keeps="inputs, outputs, values and effects",
        drops="nothing",
    ),
    Pass(
        "partials",
        with_reductions_in_parts,
        wanted=lambda target: target.one_cpu and target.kernels,
        needs="nothing",
        keeps="inputs, output types and effects",
        drops="the last places of sums",
    ),
    Pass(
        "chains",
        with_split_chains,
        wanted=lambda target: target.one_cpu,
        needs="calls that are to stay say so, as after outline",
        keeps="inputs, outputs, values and effects",
        drops="nothing",
    ),
)
"""The passes of a compilation, in order; those that a target wants are run."""


def body_of(jaxpr: Jaxpr) -> Body:
    """All of a jaxpr."""
    return Body(
        jaxpr.invars,
        jaxpr.eqns,
        jaxpr.outvars,
        tuple([const.literal for const in jaxpr.used_consts]),
        jaxpr.effects,
        variables(jaxpr),
        (True,) * len(jaxpr.invars),
    )


def passed(engine: Engine, jaxpr: Jaxpr, target: Target) -> Body:
    """Applies the passes to a program that is compiled for a target."""
    body = body_of(jaxpr)
    for one in COMPILE:
        if one.wanted(target):
            body = one.run(engine, body, target)
    return body
