"""Floor 6: the laws of promises and traits: what rows say of themselves is true.

One idea: gathers and scatters may promise that indices are sorted, or that they name no
element twice; XLA believes it and the interpreter does not look, so the law looks, at
the equations of a program and of those that transformations make of it::

    vmap(gather[unique_indices=True])      two batch elements may read one: no promise
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import isfinite

import numpy as np
from attrs import evolve, frozen

from verax.ir.jaxpr import NO_PARAMS, Eqn, Primitive
from verax.ir.records import ReprMixin
from verax.ir.walk import read_as
from verax.ops.calls.call import inline
from verax.ops.indexing.gather_impl import CLIP, FILL, GatherParams, evaluate_gather
from verax.ops.indexing.scatter_impl import ScatterParams, reading
from verax.rules.rows.row import NO_TRAITS, NDArray, Traits, traits_of
from verax.transforms.engine.engine import StandardEngine, evaluate_eqn, literal_value
from verax.verify.cases.case import Case, Skipped, broken, reverse_only
from verax.verify.laws.agreement import Run, agree, gathered, random_axes
from verax.verify.laws.derivatives import directions, need_transpose, tangent_types
from verax.verify.laws.invariance import batchable, differentiable

SIZE = 3


def promises_stay_true(engine: StandardEngine, case: Case) -> None:
    """Promises about indices hold in derived programs where they do in the program."""
    for member in range(min(SIZE, case.depth)):
        if untrue(engine, Run(case.jaxpr, case.at(member))):
            raise Skipped("the program breaks its promises by itself")
    told = False
    for what, run in derived(engine, case):
        if any(promises(eqn) for eqn in inline(run.jaxpr).eqns):
            told = True
            text = untrue(engine, run)
            if text:
                raise broken("promises", case, f"{what}: {text}", after=run.jaxpr)
    if not told:
        raise Skipped("nothing is promised about indices")


def derived(engine: StandardEngine, case: Case) -> Iterator[tuple[str, Run]]:
    """The batch of a program, and the linear programs of both and their transposes."""
    plain = Run(case.jaxpr, case.values)
    runs = [("the program", plain)]
    if case.jaxpr.invars and batchable(engine, case.jaxpr) and case.depth >= SIZE:
        axes = random_axes(case.random(), case.jaxpr.in_avals, False)
        batched = engine.batch(case.jaxpr, SIZE, axes)[0]
        args = gathered(case.stacks, axes, range(SIZE))
        runs.append((f"vmap in {axes}", Run(batched, tuple(args))))
    yield from runs
    if not any(case.active) or not differentiable(engine, case.jaxpr):
        return
    if reverse_only(case.jaxpr):
        return
    for what, run in runs:
        for part, result in linear_parts(engine, case, run):
            yield f"{part} of {what}", result


def linear_parts(
    engine: StandardEngine, case: Case, run: Run
) -> Iterator[tuple[str, Run]]:
    """The linear program of a run, and its transpose."""
    jaxpr, active = run.jaxpr, case.active
    forward, tangent, mask = engine.linearize(jaxpr, active)
    saved = engine.evaluate(forward, run.args)[len(jaxpr.outvars) :]
    types = tangent_types(jaxpr.in_avals, active)
    yield "the linear program", Run(tangent, (*saved, *directions(case, types, 12)))
    need_transpose(tangent)
    linear = (False,) * len(saved) + (True,) * len(types)
    back, _ = engine.transpose(tangent, linear, (True,) * sum(mask))
    cts = directions(case, tangent_types(jaxpr.out_avals, mask), 13)
    yield "the transpose", Run(back, (*saved, *cts))


@frozen(repr=False)
class Access(ReprMixin):
    """The reach of a gather or scatter, as a gather, and its promises."""

    params: GatherParams
    shape: tuple[int, ...]
    indices: NDArray

    def is_unique(self) -> bool:
        """Whether no element is reached twice; what is left out does not count."""
        places = np.arange(np.prod(self.shape, dtype=int)).reshape(self.shape)
        mode = CLIP if self.params.mode == CLIP else FILL
        params = evolve(self.params, mode=mode, fill_value=-1)
        values = evaluate_gather(params, places, self.indices)
        values = values[values >= 0]
        return len(np.unique(values)) == values.size

    def is_sorted(self) -> bool:
        """Whether (places of batching dimensions, index vectors) are in order.

        That is how XLA reads the promise, for it puts these places beside the indices.
        """
        together = self.params.dimension_numbers.start_indices_batching_dims
        batches = product(*map(range, self.indices.shape[:-1]))
        vectors = [
            (*[batch[i] for i in together], *map(int, self.indices[batch]))
            for batch in batches
        ]
        return vectors == sorted(vectors)


def promises(eqn: Eqn) -> bool:
    """Whether an equation promises something about indices."""
    p = eqn.params
    return isinstance(p, GatherParams | ScatterParams) and (
        p.unique_indices or p.indices_are_sorted
    )


def untrue(engine: StandardEngine, run: Run) -> str:
    """The promise of some equation that does not hold in a run, or nothing."""
    env: list[NDArray] = list(run.args)
    jaxpr = inline(run.jaxpr)
    with np.errstate(all="ignore"):
        for eqn in jaxpr.eqns:
            operands = read_as(eqn.invars, env, literal_value)
            if promises(eqn):
                text = untrue_of(eqn, operands)
                if text:
                    return text
            env += evaluate_eqn(engine, eqn, operands)
    return ""


def untrue_of(eqn: Eqn, operands: Sequence[NDArray]) -> str:
    """The promise of an equation that does not hold, or nothing."""
    p, (x, indices, *updates) = eqn.params, operands
    if isinstance(p, ScatterParams):
        p = reading(p, x.shape, updates[0].shape)
    assert isinstance(p, GatherParams)
    access = Access(p, x.shape, indices)
    name = eqn.primitive.name
    if p.unique_indices and not access.is_unique():
        return f"{name} reaches an element twice, and says unique_indices=True"
    if p.indices_are_sorted and not access.is_sorted():
        return f"{name} has indices in no order, and says indices_are_sorted=True"
    return ""


# -----------------------------------------------------------------------------
# The law of traits: values agree with what the row says of itself.
#
# Passes believe the traits of a row, so one that is wrong makes them go wrong, and no
# other law would say why::
#
#     sub_p with Traits(commutative=True)     # sub(y, x) is not sub(x, y)


def traits_are_true(engine: StandardEngine, case: Case) -> None:
    """An elementwise row has one shape, a commutative one may swap operands, etc."""
    if len(case.jaxpr.eqns) != 1:
        raise Skipped("it is about calls of one row")
    (eqn,) = case.jaxpr.eqns
    traits = traits_of(eqn.primitive)
    if traits == NO_TRAITS:
        raise Skipped("the row has no traits")
    wrong = misplaced(eqn, traits)
    if wrong:
        raise broken("traits", case, wrong)
    if eqn.invars != case.jaxpr.invars:
        return  # an operand is used twice, or is a constant
    # Of two complex numbers one of which is NaN, the larger is either.
    if traits.commutative and not any([np.any(x != x) for x in case.values]):
        x, y = case.values
        want = evaluate_eqn(engine, eqn, [x, y])
        got = evaluate_eqn(engine, eqn, [y, x])
        agree("traits", engine, case, "operands may not change places", got, want)
    if traits.additive or traits.keeps_zero is not None:
        zeros: list[NDArray] = [np.zeros_like(x) for x in case.values]
        (y,) = evaluate_eqn(engine, eqn, zeros)
        kept = traits.additive or traits.keeps_zero is True
        if np.any((y == np.zeros_like(y)) != kept):
            what = "zero does not become zero" if kept else "zero becomes zero"
            raise broken("traits", case, what, got=y)
    if traits.joined_by is not None:
        parts_join(engine, case, eqn, traits.joined_by)


def parts_join(
    engine: StandardEngine, case: Case, eqn: Eqn, joined_by: Primitive
) -> None:
    """Raise unless the results for two parts of an operand give that for the whole."""
    (x,) = case.values
    axes: Sequence[int] = getattr(eqn.params, "axes", ())
    row = engine.rules[joined_by]
    if row.evaluate is None:
        raise broken("traits", case, f"{joined_by.name} has no evaluate")
    if not axes:
        return
    parts = np.array_split(x, 2, max(axes, key=lambda i: x.shape[i]))
    results = [evaluate_eqn(engine, eqn, [part])[0] for part in parts]
    want = evaluate_eqn(engine, eqn, [x])
    with np.errstate(all="ignore"):
        joined = row.evaluate(engine, NO_PARAMS, results)
    got = [np.asarray(y, z.dtype) for y, z in zip(joined, want, strict=True)]
    what = f"two parts, joined by {joined_by.name}"
    agree("traits", engine, case, what, got, want, Run(case.jaxpr, case.values))


def misplaced(eqn: Eqn, traits: Traits) -> str | None:
    """The first trait that is wrong of the types of a call; None if all fit."""
    ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    if traits.elementwise:
        shape = np.broadcast_shapes(*[aval.shape for aval in ins])
        if any([aval.shape != shape for aval in outs]):
            return f"it is no elementwise row: a result has not the shape {shape}"
    place = traits.writes_part
    if place is not None and not 0 < place < len(ins):
        return f"writes_part={place} is not the number of an operand after the first"
    if traits.loop and not any(True for _ in eqn.params.subjaxprs()):
        return "it is no loop: its params hold no program"
    if traits.flops is None or not (ins and outs):
        return None
    count = traits.flops(eqn.params, ins, outs)
    if count is not None and not (isfinite(count) and count >= 0):
        return f"{count} is no number of operations"
    return None
