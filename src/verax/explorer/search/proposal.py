"""What a search for shardings gives back: `Proposal` (floor 6).

One idea: a proposal is ordinary specs for arguments and results, with constraints for
what is between them, beside the plans that it was chosen from::

    proposal.in_shardings, proposal.apply(step), proposal.plan.time
"""

from collections.abc import Callable, Mapping
from typing import Final

from attrs import field, frozen

from verax.api.jit import PjitFunction
from verax.api.tracing.wrapping import wraps
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import current_mesh
from verax.explorer.costing import counted
from verax.explorer.meshes.report import MeshPlan, lasting
from verax.explorer.search.constraints import Plan, constrained
from verax.extend.functions import with_passes
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.text.columns import columns
from verax.ir.walk import close
from verax.ops.calls.call import inline


@frozen(repr=False)
class CandidatePlan(ReprMixin):
    """A plan that was considered.

    Attributes:
        axes: the axes of its mesh with their sizes.
        text: what each axis splits.
        expected: the seconds that the search's own model expects.
        expected_memory: the bytes that it expects on a device.
        plan: XLA's judgement; None of those that were not compiled.
        refused: why it was not chosen; empty for the one that was.

    >>> import verax, verax.numpy as vnp
    >>> x = verax.ShapeDtypeStruct((64, 8), vnp.float32)
    >>> out = verax.debug.propose(lambda x: vnp.tanh(x), devices=4)(x)
    >>> [one.refused for one in out.candidates].count("")
    1
    """

    __module__ = "verax.debug"

    axes: Mapping[str, int]
    text: str
    expected: float
    expected_memory: float
    plan: MeshPlan | None = None
    refused: str = ""


@frozen(eq=False, repr=False)
class Proposal(ReprMixin):
    """Shardings for the arguments, results and intermediate values of a function.

    Attributes:
        name: of the function.
        mesh: the mesh, without devices.
        in_shardings: a `PartitionSpec` for each leaf of the arguments, as `jit` takes
            them; they may be edited.
        out_shardings: the same for the results.
        constraints: the specs of intermediate values, by the paths of equations.
        plan: what XLA makes of it, a `MeshPlan`.
        candidates: all plans that were considered, the chosen one first.
        limit: bytes of each device that a plan may take.

    >>> import verax, verax.numpy as vnp
    >>> w = verax.ShapeDtypeStruct((256, 256), vnp.float32)
    >>> x = verax.ShapeDtypeStruct((1 << 16, 256), vnp.float32)
    >>> out = verax.debug.propose(lambda w, x: vnp.tanh(x @ w), devices=8)(w, x)
    >>> out.in_shardings, out.mesh.size
    ((P(), P('data',)), 8)
    """

    __module__ = "verax.debug"

    name: str
    mesh: AbstractMesh
    in_shardings: tuple[object, ...]
    out_shardings: object
    plan: MeshPlan
    candidates: tuple[CandidatePlan, ...]
    limit: float
    constraints: Plan = field(repr=False)
    program: Jaxpr = field(repr=False)
    groups: Mapping[str, str] = field(repr=False)

    def apply[**P, R](self, fun: Callable[P, R]) -> Callable[P, R]:
        """The function with the constraints of the proposal, to be given to `jit`.

        Axes are looked up in the mesh in force, which may have other sizes, but must
        have their names, as `Auto` axes. A function behind `jit` is taken out of it:
        give its options to the new `jit`.

        Raises:
            ValueError: no mesh is in force, or the types of the arguments are others
                than those for which the search was made.
        """
        return planned_function(fun, self.program, self.constraints)

    @property
    def title(self) -> str:
        """The sums, in a line."""
        return f"proposed for {self.plan.title}"

    def __str__(self) -> str:
        memory = self.plan.memory.peak
        rows = [("argument", "shardings"), *self.groups.items()]
        out = [
            self.title,
            f"memory of each device: {counted(memory)}B of {counted(self.limit)}B",
            *columns(rows, left=2),
            *columns([HEADS, *map(cells, self.candidates)], left=2),
        ]
        return "\n".join(out)


HEADS: Final = ("mesh", "plan", "expected", "planned", "memory", "refused")


def cells(one: CandidatePlan) -> tuple[str, ...]:
    """The row of a candidate in a table."""
    sizes = " x ".join([f"{name} {n}" for name, n in one.axes.items()])
    planned = "" if one.plan is None else lasting(one.plan.time)
    memory = one.expected_memory if one.plan is None else one.plan.memory.peak
    return (
        sizes,
        one.text,
        lasting(one.expected),
        planned,
        counted(memory) + "B",
        one.refused,
    )


def planned_function[**P, R](
    fun: Callable[P, R], program: Jaxpr, plan: Plan
) -> Callable[P, R]:
    """The function with the constraints of a plan, over the mesh in force."""
    inner = fun.fun if isinstance(fun, PjitFunction) else fun

    def proposed(closed: ClosedJaxpr) -> Jaxpr:
        mesh = current_mesh()
        if mesh is None:
            raise ValueError(
                "a proposal needs a mesh: call the function within "
                "`with verax.set_mesh(mesh):`"
            )
        jaxpr = inline(close(closed))
        if jaxpr != program:
            raise ValueError(
                "this is not the program for which shardings were proposed: the types "
                "of its arguments or the function differ; call propose again"
            )
        return constrained(jaxpr, plan, mesh)

    return wraps(inner)(with_passes(inner, proposed))
