"""Floor 3: the engine: all transformations under one rule table.

One idea: rules of higher-order primitives recurse through the engine they are given,
so a table chosen at the top holds in every nested jaxpr, and rewrites of nested jaxprs
are memoised because jaxprs hash by structure::

    engine = StandardEngine(RuleTable(), core)
    engine.jvp(jaxpr, (True, False))
"""

from collections.abc import Sequence
from typing import ClassVar

from attrs import evolve, frozen

from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.masks import Mask
from verax.rules.rows.row import Axis, BatchAxis, CoreOps, NDArray, RuleTable
from verax.rules.values.memo import memo, pure, recall
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.dce import dce
from verax.transforms.engine.evaluate import evaluate
from verax.transforms.engine.jvp import jvp
from verax.transforms.engine.linearize import linearize
from verax.transforms.engine.partial_eval import split
from verax.transforms.engine.transpose import transpose
from verax.transforms.engine.vmap import batch

REWRITES = 1 << 12


@frozen(eq=False, repr=False)
class StandardEngine(ReprMixin):
    """The transformations of this floor under the table `rules`."""

    __module__ = "verax.transforms"

    transient: ClassVar[bool] = False

    rules: RuleTable
    core: CoreOps
    axis: BatchAxis | None = None

    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        return evaluate(self, jaxpr, args)

    def jvp(self, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        return recall(nested_jvp, jaxpr, current_context(), self, jaxpr, nonzero)

    def linearize(self, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
        return linearize(self, jaxpr, nonzero)

    def transpose(
        self, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
    ) -> tuple[Jaxpr, Mask]:
        return recall(
            nested_transpose, jaxpr, current_context(), self, jaxpr, linear, nonzero
        )

    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
    ) -> tuple[Jaxpr, tuple[Axis, ...]]:
        return recall(nested_batch, jaxpr, current_context(), self, jaxpr, size, axes)

    def split(self, jaxpr: Jaxpr, unknown: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
        return recall(nested_split, jaxpr, current_context(), self, jaxpr, unknown)

    def dce(self, jaxpr: Jaxpr, used: Mask) -> tuple[Jaxpr, Mask]:
        return recall(nested_dce, jaxpr, current_context(), self, jaxpr, used)


@memo(REWRITES)
def nested_jvp(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    """`jvp`, remembered for programs inside of programs; so are those that follow."""
    return jvp(engine, jaxpr, nonzero)


@memo(REWRITES)
def nested_transpose(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    return transpose(engine, jaxpr, linear, nonzero)


@memo(REWRITES)
def nested_batch(
    context: Context,
    engine: StandardEngine,
    jaxpr: Jaxpr,
    size: int,
    axes: tuple[Axis, ...],
) -> tuple[Jaxpr, tuple[Axis, ...]]:
    return batch(engine, jaxpr, size, axes)


@memo(REWRITES)
def nested_split(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, unknown: Mask
) -> tuple[Jaxpr, Jaxpr, Mask]:
    return split(engine, jaxpr, unknown)


@memo(REWRITES)
def nested_dce(
    context: Context, engine: StandardEngine, jaxpr: Jaxpr, used: Mask
) -> tuple[Jaxpr, Mask]:
    return dce(engine, jaxpr, used)


@pure(REWRITES)
def over_axis(engine: StandardEngine, axis: BatchAxis) -> StandardEngine:
    """The engine while the dimension that is added is `axis`; one for each axis."""
    return evolve(engine, axis=axis)
