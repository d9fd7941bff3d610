"""Shardings for a function that has none: `verax.debug.propose` (floor 6).

One idea: a model of costs ranks thousands of plans in seconds, and XLA's partitioner
judges the best few, as `verax.debug.plan` does::

    proposal = verax.debug.propose(step, devices=512)(*args)
    print(proposal)
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final, Unpack

from attrs import evolve, field, frozen

from verax.api.jit import PjitFunction
from verax.api.memory.budgets import Size, check_budget, limit_of
from verax.api.stages.stages import Traced
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.tracing.wrapping import function_name, wraps
from verax.api.trees.pytrees import tree_map
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import Mesh, PartitionSpec
from verax.backend.placement.sharding import NamedSharding
from verax.backend.runtime.errors import CompileError
from verax.backend.xla.virtual import MOST_DEVICES
from verax.explorer.costing import counted, device_of
from verax.explorer.exploration import of_arrays
from verax.explorer.functions import PlaceOptions, check_options, jitted
from verax.explorer.meshes.devices import FABRICS, Device, Links, links_of
from verax.explorer.meshes.plan import Asked, Machine, planned_on
from verax.explorer.search.constraints import value_spec, wishes_of
from verax.explorer.search.descent import Outcome, Search, plainer
from verax.explorer.search.families import Program, read_program
from verax.explorer.search.model import MeshModel, Model
from verax.explorer.search.naming import arguments_of, text_of
from verax.explorer.search.proposal import CandidatePlan, Proposal, planned_function
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import AxisType
from verax.ir.records import ReprMixin
from verax.ir.walk import close, hoist
from verax.ops.calls.call import inline
from verax.rules.values.conversions import check_callable, shown

JUDGED: Final = 4
"""So many plans are compiled unless the caller says how many."""
FAILED: Final = "XLA cannot compile it"
ROOM: Final = (0.85, 0.5, 0.25)
"""Shares of the memory that the model may fill, tried one after the other: it knows of
no temporaries that a compiler adds."""
MESHES: Final = 3
"""Of so many shapes of a mesh all plans are searched."""
ALIKE: Final = (0.004, 0.03)
"""Plans whose times differ by less than this share are taken for one; the second for
those that one can say in the same words."""


@frozen(eq=False, repr=False)
class Question(ReprMixin):
    """A function to be planned: its program, and what a plan is judged by."""

    function: PjitFunction[..., object]
    name: str
    args: tuple[object, ...]
    stage: Traced
    jaxpr: Jaxpr
    program: Program
    names: tuple[str, ...]
    machine: Machine
    memory: float
    most: int

    def specs(
        self, model: Model, outcome: Outcome
    ) -> tuple[tuple[object, ...], object]:
        """The specs of arguments and results, as trees."""
        ins = [value_spec(model, outcome.layouts, v) for v in self.program.inputs]
        outs = [
            PartitionSpec() if v is None else value_spec(model, outcome.layouts, v)
            for v in self.program.outputs
        ]
        given, _ = self.stage.interface.in_tree.unflatten(ins)
        return given, self.stage.traced.out_tree.unflatten(outs)

    def model(self, mesh: AbstractMesh) -> Model:
        """The model of costs on a mesh."""
        sizes = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
        device = self.machine.device
        links = links_of(device, sizes, self.machine.links)
        known = MeshModel(
            tuple(sizes), tuple(sizes.values()), links, device, self.machine.overlap
        )
        return Model(self.program, known, self.aliased())

    def aliased(self) -> list[int]:
        """The results that take the memory of donated arguments."""
        program, out = self.program, []
        free = [
            v for v, d in zip(program.inputs, self.stage.donated, strict=False) if d
        ]
        kinds = [(program.of[v], program.values[v].aval.shape) for v in free]
        for v in program.outputs:
            if v is None:
                continue
            kind = program.of[v], program.values[v].aval.shape
            if kind in kinds:
                kinds.remove(kind)
                out.append(v)
        return out

    def judged(self, one: "Ranked") -> "Ranked":
        """The plan with XLA's judgement."""
        model, mesh = one.model, one.mesh
        ins, outs = self.specs(model, one.outcome)
        wishes = wishes_of(model, one.outcome.layouts)

        def over(spec: PartitionSpec) -> NamedSharding:
            return NamedSharding(mesh, spec)

        places = evolve(
            self.function.settings.shardings,
            ins=tree_map(over, ins, is_leaf=is_spec),
            outs=tree_map(over, outs, is_leaf=is_spec),
        )
        settings = evolve(self.function.settings, shardings=places)
        fun = planned_function(self.function.fun, self.jaxpr, wishes)
        asked = Asked(PjitFunction(fun, settings), self.name, self.args, {}, True)
        try:
            plan = planned_on(asked, mesh, self.machine, MOST_DEVICES)
        except CompileError:  # there are programs that the partitioner makes wrong
            return evolve(one, entry=evolve(one.entry, refused=FAILED))
        entry = evolve(one.entry, plan=plan)
        if plan.memory.peak > self.memory:
            text = f"{counted(plan.memory.peak)}B do not fit"
            entry = evolve(entry, refused=text)
        return evolve(one, entry=entry)


def is_spec(x: object) -> bool:
    """Whether this is a spec, and no tree of them."""
    return isinstance(x, PartitionSpec)


@frozen(eq=False, repr=False)
class Ranked(ReprMixin):
    """A plan of the search, on its mesh."""

    mesh: AbstractMesh
    model: Model = field(repr=False)
    outcome: Outcome
    entry: CandidatePlan

    @property
    def time(self) -> float:
        """The seconds, as XLA has it where it was asked."""
        plan = self.entry.plan
        return self.outcome.time if plan is None else plan.time

    @property
    def memory(self) -> float:
        """The bytes of a device, as XLA has it where it was asked."""
        plan = self.entry.plan
        return self.outcome.memory if plan is None else float(plan.memory.peak)


# -----------------------------------------------------------------------------
# Meshes.


def meshes_of(devices: int, device: Device) -> list[AbstractMesh]:
    """The shapes of a mesh that are tried: one axis, and all with a second one.

    The second axis is the one inside a board, as far as there is one.
    """
    fabric = FABRICS.get(device.name)
    most = 4 * fabric.together if fabric is not None else devices
    out = [auto_mesh((devices,), ("data",))]
    size = 2
    while size <= min(most, devices // 2):
        if devices % size == 0:
            out.append(auto_mesh((devices // size, size), ("data", "model")))
        size *= 2
    return out


def auto_mesh(sizes: Sequence[int], names: Sequence[str]) -> AbstractMesh:
    """A mesh along whose axes the compiler decides."""
    return AbstractMesh(tuple(sizes), tuple(names), (AxisType.Auto,) * len(sizes))


def searched(question: Question, meshes: Sequence[AbstractMesh]) -> list[Ranked]:
    """All plans that the search has found for these meshes, the best first."""
    out: list[Ranked] = []
    for share in ROOM:
        limit = share * question.memory
        pairs = [(m, Search(question.model(m), limit)) for m in meshes]
        if len(pairs) > MESHES:
            pairs.sort(key=lambda pair: pair[1].promise())
            pairs = pairs[:MESHES]
        out = [
            ranked(question, mesh, search.model, one)
            for mesh, search in pairs
            for one in search.run()
        ]
        out.sort(key=lambda one: (one.outcome.memory > limit, one.outcome.time))
        out = with_judgement(question, out)
        if any([not one.entry.refused for one in out]):
            return with_plainer(question, out, limit)
    return out


def with_plainer(
    question: Question, plans: Sequence[Ranked], limit: float
) -> list[Ranked]:
    """The plans, and those that store arguments in fewer parts than the chosen one.

    XLA moves what is in many parts slower than the model expects, so it is asked.
    """
    best, *others = plans
    outcomes = (
        plainer(best.model, limit, best.outcome.layouts) if question.most > 1 else ()
    )
    more = [
        question.judged(ranked(question, best.mesh, best.model, outcome))
        for outcome in outcomes
    ]
    return [*chosen_first([best, *more]), *others]


def chosen_first(judged: Sequence[Ranked]) -> list[Ranked]:
    """Plans that XLA has judged, the chosen one first; the others say why not."""
    known = sorted(
        judged, key=lambda one: (bool(one.entry.refused), one.time, one.memory)
    )
    slower = [
        one
        if one.entry.refused
        else evolve(one, entry=evolve(one.entry, refused="slower"))
        for one in known[1:]
    ]
    return [*known[:1], *slower]


def with_judgement(question: Question, plans: Sequence[Ranked]) -> list[Ranked]:
    """The plans, the best of them judged by XLA, the chosen one first."""
    known: list[Ranked] = []
    rest: list[Ranked] = []
    for one in plans:
        done = [other for other in known if other.entry.plan is not None]
        enough = len(done) == question.most or len(known) == 2 * question.most
        if enough or any([is_alike(one, other) for other in done]):
            rest.append(one)
        else:
            known.append(question.judged(one))
    left = [
        evolve(one, entry=evolve(one.entry, refused="not compiled")) for one in rest
    ]
    return [*chosen_first(known), *left]


def is_alike(one: Ranked, other: Ranked) -> bool:
    """Whether two plans are so near to each other that one of them will do."""
    apart = abs(one.outcome.time - other.outcome.time) / other.outcome.time
    most = ALIKE[one.entry.text == other.entry.text]
    return one.mesh == other.mesh and apart <= most


def ranked(
    question: Question, mesh: AbstractMesh, model: Model, outcome: Outcome
) -> Ranked:
    """A plan with what a table says of it."""
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
    text = text_of(model, outcome.layouts, question.names)
    entry = CandidatePlan(MappingProxyType(sizes), text, outcome.time, outcome.memory)
    return Ranked(mesh, model, outcome, entry)


# -----------------------------------------------------------------------------
# The function.


def asked_meshes(
    mesh: object, devices: int | None, device: Device
) -> list[AbstractMesh]:
    """The meshes to search.

    Raises:
        TypeError: there is neither a mesh nor a number of devices, or both.
        ValueError: there is no device.
    """
    if (mesh is None) == (devices is None):
        raise TypeError("propose takes either a mesh or a number of devices")
    if mesh is None:
        assert devices is not None
        if devices < 1:
            raise ValueError(f"propose: devices must be positive, not {devices}")
        return meshes_of(devices, device)
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            f"propose takes a verax AbstractMesh as mesh, not {shown(mesh)}"
        )
    return [auto_mesh(mesh.axis_sizes, mesh.axis_names)]


def bare(x: object) -> object:
    """An argument without a place: what it is there for is to be proposed."""
    if isinstance(x, ConcreteArray | ShapeDtypeStruct):
        struct = ShapeDtypeStruct.like(x)
        return ShapeDtypeStruct(struct.shape, struct.dtype, struct.weak_type)
    return x


def question_of(
    function: PjitFunction[..., object],
    name: str,
    args: tuple[object, ...],
    machine: Machine,
    memory: float,
    most: int,
) -> Question:
    """The question for these arguments.

    Raises:
        ValueError: sizes are symbols, or a leaf of an argument is static.
    """
    plain = evolve(function.settings.shardings, ins=None, outs=None)
    settings = evolve(function.settings, shardings=plain)
    if settings.statics.any:
        raise ValueError(
            f"propose: {name} has static arguments; bind them with functools.partial"
        )
    args = tree_map(bare, args)
    stage = of_arrays(PjitFunction(function.fun, settings).trace(*args))
    if any([aval.symbolic for aval in stage.traced.jaxpr.in_avals]):
        raise ValueError(f"propose: the sizes of {name} must be numbers, not symbols")
    jaxpr = inline(close(hoist(stage.traced.jaxpr)))
    names = tuple([text for text, _ in stage.interface.arguments()])
    program = read_program(jaxpr, names)
    return Question(
        PjitFunction(function.fun, settings),
        name,
        args,
        stage,
        jaxpr,
        program,
        names,
        machine,
        memory,
        most,
    )


def answer(question: Question, plans: Sequence[Ranked]) -> Proposal:
    """The proposal of the first of the plans.

    Raises:
        ValueError: it does not fit.
    """
    best = plans[0]
    if best.entry.refused:
        known = [one for one in plans if one.entry.plan is not None]
        least = min(known or plans, key=lambda one: one.memory)
        raise ValueError(
            f"propose: no plan of {question.name} fits into "
            f"{counted(question.memory)}B on a device: the least that was found is "
            f"{counted(least.memory)}B, on {dict(least.entry.axes)} with "
            f"{least.entry.text}. Take more devices, store less for the way back "
            "(verax.checkpoint), or donate arguments"
        )
    ins, outs = question.specs(best.model, best.outcome)
    assert best.entry.plan is not None
    return Proposal(
        question.name,
        best.mesh,
        ins,
        outs,
        best.entry.plan,
        tuple([one.entry for one in plans]),
        question.memory,
        MappingProxyType(wishes_of(best.model, best.outcome.layouts)),
        question.jaxpr,
        MappingProxyType(
            arguments_of(best.model, best.outcome.layouts, question.names)
        ),
    )


def room_of(memory: Size | None, device: Device) -> float:
    """The bytes of a device that a plan may take.

    >>> h100 = device_of("h100", "propose")
    >>> room_of("40GB", h100), room_of(0.5, h100) == h100.memory / 2, room_of(6e9, h100)
    (40000000000.0, True, 6000000000.0)
    """
    if memory is None:
        return device.memory
    if isinstance(memory, bool) or not isinstance(memory, str | int | float):
        raise TypeError(
            f"propose: memory is {shown(memory)}: pass the bytes of a device, text "
            "such as '40GB', or a share of what it has, such as 0.5"
        )
    if isinstance(memory, float) and memory > 1:
        return memory
    check_budget(memory)
    return float(limit_of(memory, int(device.memory)))


def propose(
    fun: Callable[..., object],
    *,
    mesh: Mesh | AbstractMesh | None = None,
    devices: int | None = None,
    memory: Size | None = None,
    device: str | Device = "h100",
    links: Links = None,
    overlap: bool = True,
    judged: int = JUDGED,
    **options: Unpack[PlaceOptions],
) -> Callable[..., Proposal]:
    """A function that proposes shardings for the arguments and values of `fun`.

    Splits of the batch, heads, features, the sequence, experts or the vocabulary,
    parameters that are stored in parts and gathered for use, and mixtures of these are
    not recipes here but layouts of families of values, among which a search finds those
    that cost least. XLA's partitioner judges the best few.

    Args:
        fun: the function, a step of a training with its optimiser for example, without
            shardings of its own; it may be jitted.
        mesh: the mesh, which need not be there; its axes are taken as `Auto`.
        devices: the number of devices instead of a mesh: shapes with axes "data" and
            "model" are tried.
        memory: what a plan may take of each device: bytes, text such as "40GB", or a
            share (0 to 1) of what `device` has; by default all of it.
        device: as for `plan`.
        links: as for `plan`.
        overlap: whether devices talk while they compute.
        judged: so many plans are compiled, which takes most of the time. If it is not
            1, variants of the best are, too: one for each axis, along which they store
            no argument in parts.
        options: those of `jit`, such as `donate_argnums`.

    Returns:
        A function of the arguments of `fun`, by position, which may be
        `ShapeDtypeStruct`s, that returns a `Proposal`.

    Raises:
        TypeError: `fun` is not a function, there is not one of `mesh` and `devices`,
            `memory` is no number and no text, or `fun` is jitted and there are options
            of `jit`.
        ValueError: no plan fits into the memory, and the message says how much it
            takes; `memory` says no number of bytes; or `judged` is not positive.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AbstractMesh
    >>> def loss(w, x):
    ...     return vnp.mean(vnp.tanh(x @ w) ** 2)
    >>> w = verax.ShapeDtypeStruct((4096, 4096), vnp.bfloat16)
    >>> x = verax.ShapeDtypeStruct((1 << 20, 4096), vnp.bfloat16)
    >>> mesh = AbstractMesh((64,), ("data",))
    >>> proposal = verax.debug.propose(verax.grad(loss), mesh=mesh)(w, x)
    >>> proposal.in_shardings[1]
    P('data',)
    >>> proposal.plan.fits
    True
    """
    check_callable("propose", fun)
    check_options("propose", fun, options)
    if judged < 1:
        raise ValueError(f"propose: judged must be positive, not {judged}")
    known = device_of(device, "propose")
    meshes = asked_meshes(mesh, devices, known)
    function = jitted(fun, options)
    machine = Machine(known, links, overlap)
    room = room_of(memory, known)

    @wraps(fun)
    def proposing(*args: object) -> Proposal:
        question = question_of(
            function, function_name(fun), args, machine, room, judged
        )
        return answer(question, searched(question, meshes))

    return proposing
