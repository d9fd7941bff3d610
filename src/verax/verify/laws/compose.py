"""Floor 6: transformations of transformations of programs, each step held to its law.

One idea: what a transformation makes is a program again, so a chain of them is right
if every step keeps its law on the result of the step before::

    chain(engine, case, ("vmap", "vjp", "jit"))     # LawBroken at the first wrong step
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.call import inline
from verax.ops.calls.checkpoint import CheckpointParams, checkpoint_p
from verax.ops.special.erf_gamma import NoDerivative
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import NDArray, Sample
from verax.rules.values.state import STATE
from verax.transforms.engine.engine import StandardEngine
from verax.transforms.passes.cse import cse
from verax.verify.cases.case import (
    Case,
    Skipped,
    broken,
    double_precision,
    is_double,
    traced,
)
from verax.verify.laws import LAWS
from verax.verify.laws.agreement import gathered, random_axes
from verax.verify.laws.derivatives import (
    directions,
    need_forward,
    need_transpose,
    tangent_types,
)
from verax.verify.laws.invariance import as_call, with_dead_code

type Rewrite = Callable[[StandardEngine, Case], Case]
SIZE = 2


@frozen(repr=False)
class Link(ReprMixin):
    """A transformation of cases, and the law that holds it to its meaning."""

    rewrite: Rewrite
    law: str


def stacked(case: Case, avals: Sequence[ShapedArray], salt: int) -> list[NDArray]:
    """Random directions, as many per type as the case has values."""
    members = [directions(case, avals, salt + member) for member in range(case.depth)]
    return [np.stack(list(values)) for values in zip(*members, strict=True)]


def with_inputs(case: Case, jaxpr: Jaxpr, extra: Sequence[NDArray]) -> Case:
    """The case of a program that has further inputs, smooth ones, after the old."""
    smooth = case.smooth or (True,) * len(case.stacks)
    return Case(
        jaxpr, (*case.stacks, *extra), case.seed, (*smooth, *(True,) * len(extra))
    )


def pushed(engine: StandardEngine, case: Case) -> Case:
    """The jvp of the program in all operands that have tangents."""
    if not any(case.active):
        raise Skipped("no operand has a tangent")
    need_forward(case)
    jaxpr, _ = engine.jvp(case.jaxpr, case.active)
    types = tangent_types(case.jaxpr.in_avals, case.active)
    return with_inputs(case, jaxpr, stacked(case, types, 100))


def pulled(engine: StandardEngine, case: Case) -> Case:
    """The vjp: from operands and cotangents of results to results and cotangents."""
    active = case.active
    if not any(active):
        raise Skipped("no operand has a tangent")
    forward, tangent, mask = engine.linearize(case.jaxpr, active)
    need_transpose(tangent)
    count = len(case.jaxpr.outvars)
    saved = len(forward.outvars) - count
    linear = (False,) * saved + (True,) * sum(active)
    back, _ = engine.transpose(tangent, linear, (True,) * sum(mask))
    builder = Builder("a law")
    primals = builder.input_atoms(forward.in_avals)
    cts = builder.input_atoms(back.in_avals[saved:])
    outs = builder.inline(forward, primals)
    grads = builder.inline(back, [*outs[count:], *cts])
    jaxpr, _ = builder.close([*outs[:count], *grads])
    return with_inputs(case, jaxpr, stacked(case, back.in_avals[saved:], 200))


def mapped(engine: StandardEngine, case: Case) -> Case:
    """The program over two elements, in random axes."""
    if not case.jaxpr.invars:
        raise Skipped("there is no operand to batch")
    axes = random_axes(case.random(), case.jaxpr.in_avals, False)
    jaxpr, _ = engine.batch(case.jaxpr, SIZE, axes)
    depth = case.depth
    members = [
        gathered(case.stacks, axes, [k % depth, (k + 1) % depth]) for k in range(depth)
    ]
    stacks = tuple([np.stack(list(values)) for values in zip(*members, strict=True)])
    return Case(jaxpr, stacks, case.seed, case.smooth)


def pruned(engine: StandardEngine, case: Case) -> Case:
    """The program after its double, with the outputs of the double cut off again."""
    jaxpr, count = with_dead_code(case.jaxpr), len(case.jaxpr.outvars)
    used = (True,) * count + (False,) * count
    slim, needed = engine.dce(jaxpr, used)
    smooth = case.smooth or (True,) * len(case.stacks)
    return Case(
        slim,
        tuple([s for s, flag in zip(case.stacks, needed, strict=True) if flag]),
        case.seed,
        tuple([s for s, flag in zip(smooth, needed, strict=True) if flag]),
    )


def rewritten(rewrite: Callable[[Jaxpr], Jaxpr]) -> Rewrite:
    """A transformation that keeps inputs and outputs."""
    return lambda engine, case: evolve(case, jaxpr=rewrite(case.jaxpr), row=None)


def as_checkpoint(jaxpr: Jaxpr) -> Jaxpr:
    """The program that calls `jaxpr` by one equation, which is computed again."""
    params = CheckpointParams("f", False, True, None, jaxpr)
    return traced(checkpoint_p, Sample(params, jaxpr.in_avals))


LINKS: Mapping[str, Link] = MappingProxyType(
    {
        "jit": Link(rewritten(as_call), "inline"),
        "jvp": Link(pushed, "jvp"),
        "vjp": Link(pulled, "vjp"),
        "vmap": Link(mapped, "vmap"),
        "checkpoint": Link(rewritten(as_checkpoint), "typed"),
        "dce": Link(pruned, "dce"),
        "cse": Link(rewritten(cse), "cse"),
        "inline": Link(rewritten(inline), "typed"),
    }
)


def transformed(engine: StandardEngine, case: Case, names: Sequence[str]) -> Case:
    """The case after the transformations, in order, without a look at their laws.

    Raises:
        Skipped: one of them says nothing about the case.
        LawBroken: one of them does not work at all.
    """
    for name in names:
        try:
            with double_precision(STATE.enable_x64 or is_double(case.jaxpr)):
                case = LINKS[name].rewrite(engine, case)
        except Skipped:
            raise
        except NoDerivative as error:
            raise Skipped(str(error)) from error
        except Exception as error:
            raise broken(name, case, f"{type(error).__name__}: {error}") from error
    return case


def chain(engine: StandardEngine, case: Case, names: Sequence[str]) -> Case:
    """The case after the transformations, in order, each step held to its law.

    Steps that say nothing (a derivative without operands) are left out.

    Raises:
        LawBroken: a step does not keep its law, or does not work at all.
    """
    for name in names:
        link = LINKS[name]
        with suppress(Skipped):
            LAWS[link.law](engine, case)
        try:
            with double_precision():
                case = link.rewrite(engine, case)
        except (Skipped, NoDerivative):
            continue
    LAWS["typed"](engine, case)
    with suppress(Skipped):
        LAWS["text"](engine, case)
    return case
