"""Floor 3: the engine: all transformations under one rule table.

One idea: rules of higher-order primitives recurse through the engine they are given,
so a table chosen at the top holds in every nested jaxpr, and rewrites of nested jaxprs
are memoised because jaxprs hash by structure::

    engine = StandardEngine(RuleTable(), core)
    engine.jvp(jaxpr, (True, False))
"""

from collections.abc import Sequence
from functools import lru_cache

from attrs import evolve, frozen

from verax.ir.jaxpr import Jaxpr
from verax.ir.records import Shown
from verax.rules.row import Axis, BatchAxis, Core, NDArray, RuleTable
from verax.transforms.dce import dce
from verax.transforms.evaluate import evaluate
from verax.transforms.jvp import jvp
from verax.transforms.linearize import linearize
from verax.transforms.split import split
from verax.transforms.templates import Mask
from verax.transforms.transpose import transpose
from verax.transforms.vmap import batch

REWRITES = 1 << 12


@frozen(eq=False, repr=False)
class StandardEngine(Shown):
    """The transformations of this floor under the table `rules`."""

    rules: RuleTable
    core: Core
    axis: BatchAxis | None = None

    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        return evaluate(self, jaxpr, args)

    def jvp(self, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        return nested_jvp(self, jaxpr, nonzero)

    def linearize(self, jaxpr: Jaxpr, nonzero: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
        return linearize(self, jaxpr, nonzero)

    def transpose(
        self, jaxpr: Jaxpr, linear: Mask, nonzero: Mask
    ) -> tuple[Jaxpr, Mask]:
        return nested_transpose(self, jaxpr, linear, nonzero)

    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
    ) -> tuple[Jaxpr, tuple[Axis, ...]]:
        return nested_batch(self, jaxpr, size, axes)

    def split(self, jaxpr: Jaxpr, unknown: Mask) -> tuple[Jaxpr, Jaxpr, Mask]:
        return nested_split(self, jaxpr, unknown)

    def dce(self, jaxpr: Jaxpr, used: Mask) -> tuple[Jaxpr, Mask]:
        return nested_dce(self, jaxpr, used)


nested_jvp = lru_cache(maxsize=REWRITES)(jvp)
nested_transpose = lru_cache(maxsize=REWRITES)(transpose)
nested_batch = lru_cache(maxsize=REWRITES)(batch)
nested_split = lru_cache(maxsize=REWRITES)(split)
nested_dce = lru_cache(maxsize=REWRITES)(dce)


@lru_cache(maxsize=REWRITES)
def over_axis(engine: StandardEngine, axis: BatchAxis) -> StandardEngine:
    """The engine while the dimension that is added is `axis`; one for each axis."""
    return evolve(engine, axis=axis)
