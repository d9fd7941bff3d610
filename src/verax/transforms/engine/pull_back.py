"""Floor 3: reverse mode on the linear steps of a program, each by template.

One idea: the linear part of an equation is a small program that many equations share,
so it is transposed once, and the backward pass is one template for each step; neither a
tangent program nor its transpose is written::

    outs, steps, mask = linearize_into(engine, builder, jaxpr, (True,), ins)
    cotangents, _ = pull_back(engine, builder, steps, (True,), [one])
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import UNKNOWN_SOURCE, Jaxpr
from verax.rules.rows.builder import Builder
from verax.rules.rows.masks import Mask
from verax.rules.rows.row import Engine
from verax.rules.values.memo import Unshared, memo
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.linearize import Steps
from verax.transforms.engine.templates import TEMPLATES, Writer, Written, added, coerce
from verax.transforms.engine.transpose import backwards

type Types = tuple[ShapedArray | None, ...]


@memo(TEMPLATES, holder="tangent")
def backward_template(
    context: Context, engine: Engine, tangent: Jaxpr, saved: int, cts: Types
) -> tuple[Jaxpr, Mask]:
    """(residuals, cotangents) to cotangents of the other inputs, and of which.

    `tangent` is linear in all but the first `saved` inputs, and `cts` are the types of
    the cotangents of its outputs, None for those that are zero.
    """
    builder = Builder("transpose", source=UNKNOWN_SOURCE)
    count = len(tangent.invars)
    known = builder.input_atoms(tangent.in_avals[:saved])
    given = [None if aval is None else builder.input_atom(aval) for aval in cts]
    env = [*known, *[None] * (count - saved)]
    found = backwards(engine, builder, tangent, env, given)[saved:count]
    jaxpr, _ = builder.close([ct for ct in found if ct is not None])
    return jaxpr, tuple([ct is not None for ct in found])


def pull_back[V: Written](
    engine: Engine,
    writer: Writer[V],
    derivative: Steps[V],
    given: Mask,
    cts: Sequence[V],
) -> tuple[list[V], Mask]:
    """The cotangents of the tangents that go in, from those of some that come out.

    `given` marks the tangents that have one; of those that the returned mask does not
    mark it is zero. The steps have no effects. A step with no cotangents but zeros is
    pulled back where its transpose `answers_zeros`.

    Raises:
        MissingRule: a step has no transpose rule; the message has no line.
    """
    context = current_context()
    found: list[V | None] = [None] * derivative.count
    live_outs = zip(derivative.wanted, given, strict=True)
    numbers = [number for (number, _), flag in live_outs if flag]
    for number, ct in zip(numbers, cts, strict=True):
        found[number] = added(engine, writer, found[number], ct, None)
    zeros: set[int] = set()
    for step in reversed(derivative.steps):
        outs = [found[t] for t in step.results]
        live = [ct for ct in outs if ct is not None]
        if not live:
            if not zeros or zeros.isdisjoint(step.results):
                continue
            if not any([eqn.params.answers_zeros for eqn in step.tangent.eqns]):
                zeros.update(step.operands)
                continue
        avals = tuple([None if ct is None else ct.aval for ct in outs])
        tangent, count = step.tangent, len(step.saved)
        try:
            template, mask = backward_template(context, engine, tangent, count, avals)
        except Unshared as kept:
            template, mask = kept.result
        source = step.source.derived("transpose")
        pulled = iter(writer.inline(template, (*step.saved, *live), source))
        for number, flag in zip(step.operands, mask, strict=True):
            if flag:
                found[number] = added(
                    engine, writer, found[number], next(pulled), source
                )
            else:
                zeros.add(number)
    results = list(zip(found, derivative.avals, strict=False))
    live_ins = [
        coerce(engine, writer, ct, a.cotangent()) for ct, a in results if ct is not None
    ]
    return live_ins, tuple([ct is not None for ct, _ in results])
