"""Floor 6: the law of promises: what is said of indices is true in every program.

One idea: gathers and scatters may promise that indices are sorted, or that they name no
element twice; XLA believes it and the interpreter does not look, so the law looks, at
the equations of a program and of those that transformations make of it::

    vmap(gather[unique_indices=True])      two batch elements may read one: no promise
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from attrs import evolve, frozen

from verax.ir.jaxpr import Eqn
from verax.ir.records import ReprMixin
from verax.ir.walk import read_as
from verax.ops.calls.call import inline
from verax.ops.indexing.gather_impl import CLIP, FILL, GatherParams, evaluate_gather
from verax.ops.indexing.scatter_impl import ScatterParams, reading
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import StandardEngine
from verax.transforms.engine.evaluate import evaluate_eqn, literal_value
from verax.verify.cases.case import Case, Skipped, broken, reverse_only
from verax.verify.laws.agreement import Run
from verax.verify.laws.batching import gathered, random_axes
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
        for part, found in linear_parts(engine, case, run):
            yield f"{part} of {what}", found


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
    """Where a gather or scatter reaches, as a gather, and what it promises."""

    params: GatherParams
    shape: tuple[int, ...]
    indices: NDArray

    def is_unique(self) -> bool:
        """Whether no element is reached twice; what is left out does not count."""
        places = np.arange(np.prod(self.shape, dtype=int)).reshape(self.shape)
        mode = CLIP if self.params.mode == CLIP else FILL
        params = evolve(self.params, mode=mode, fill_value=-1)
        found = evaluate_gather(params, places, self.indices)
        found = found[found >= 0]
        return len(np.unique(found)) == found.size

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
