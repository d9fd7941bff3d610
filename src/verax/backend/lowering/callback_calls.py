"""Floor 4: how the text of a module calls functions of the host, and in which order.

One idea: a function has a number in the module; what is ordered takes a token and gives
another one, and the token goes through functions, loops and branches like any value::

    %3:2 = "stablehlo.custom_call"(%token, %x) {index = 0 : ui64, ...}
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from attrs import frozen

from verax.backend.lowering.mlir_text import row_major
from verax.ir.avals import ShapedArray
from verax.ir.effects import NO_EFFECTS, Effect
from verax.ir.meshes import BaseMesh
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import (
    HOSTING,
    TOKEN,
    HostCall,
    Operand,
    Partitioner,
    Region,
    flag,
)
from verax.rules.rows.row import Engine

TARGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: f'"xla_ffi_python_{"cpu" if name == "cpu" else "gpu"}_callback"'
        for name in HOSTING
    }
)
"""The name of a call of the host on each platform."""
PARTITIONED_TARGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: target.replace("ffi_", "ffi_partitioned_")
        for name, target in TARGETS.items()
    }
)
"""The name of a call by each device, which XLA does not bring together for it."""
type Regions = Sequence[tuple[Sequence[ShapedArray], Region]]


@frozen(cache_hash=True, repr=False)
class PartitionCall(ReprMixin):
    """The question of XLA while it compiles a module: a rule for calls over a mesh.

    What the rule gives is lowered for `platform`, under the rows of `engine`. A view of
    a value is asked for each value, and has its `place` among the calls; without a mesh
    the program is for one device, and nothing is asked.
    """

    rule: Partitioner
    mesh: BaseMesh | None
    engine: Engine
    platform: str
    place: int | None = None


@frozen(repr=False)
class HostCalls(ReprMixin):
    """The functions of a module, each with whether it is ordered, and its effects.

    `partitions` are the rules of the user's that XLA asks while it compiles it.
    """

    functions: tuple[tuple[HostCall, bool], ...]
    effects: frozenset[Effect]
    partitions: tuple[PartitionCall, ...] = ()

    @property
    def local(self) -> bool:
        """Whether the module says something to this process alone."""
        return bool(self.functions or self.partitions)


NO_CALLS: Final = HostCalls((), NO_EFFECTS)


def call_attributes(
    index: int,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    effect: bool,
    platform: str,
) -> dict[str, str]:
    """The attributes of a call of function `index`; both sides are row-major."""
    return {
        "call_target_name": TARGETS[platform],
        "api_version": "4 : i32",
        "backend_config": f"{{index = {index} : ui64}}",
        "has_side_effect": flag(effect),
        "operand_layouts": row_major(operands),
        "result_layouts": row_major(results),
    }


PARTITIONED: Final = "verax_custom_partitioning"
"""The name under which XLA finds who answers for a call that a rule partitions."""
RULES: Final = "rule of this process: "
"""What the number of a rule stands behind in the text of a module."""


def partition_attributes(
    index: int, factors: str | None, *, effect: bool
) -> dict[str, str]:
    """The attributes of a call that XLA asks rule `index` about."""
    found = {
        "call_target_name": f'"{PARTITIONED}"',
        "api_version": "2 : i32",
        "backend_config": f'"{RULES}{index}"',
        "has_side_effect": flag(effect),
    }
    return found if factors is None else found | {"sdy.sharding_rule": factors}


class Ordering(Protocol):
    """A writer of operations that holds the token after the last ordered effect."""

    token: Operand

    def op(
        self,
        name: str,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Regions = (),
        **attributes: str,
    ) -> tuple[Operand, ...]: ...


def ordered_regions(
    writer: Ordering,
    name: str,
    operands: Sequence[Operand],
    results: Sequence[ShapedArray],
    regions: Regions,
) -> tuple[Operand, ...]:
    """A while or case whose regions have ordered effects: the token goes through.

    A loop carries the token, and its predicate has no ordered effects; each branch of a
    case begins with the token from outside.
    """
    start = writer.token

    def branch(body: Region) -> Region:
        def inside(xs: Sequence[Operand]) -> Sequence[Operand]:
            writer.token = start
            return [*body(xs), writer.token]

        return inside

    def step(body: Region) -> Region:
        def inside(xs: Sequence[Operand]) -> Sequence[Operand]:
            *state, writer.token = xs
            return [*body(state), writer.token]

        return inside

    def predicate(body: Region) -> Region:
        return lambda xs: body(xs[:-1])

    if name == "stablehlo.while":
        (types, more), (_, body) = regions
        carried = (*types, TOKEN)
        ins: Sequence[Operand] = (*operands, start)
        threaded: Regions = [(carried, predicate(more)), (carried, step(body))]
    else:
        ins = operands
        threaded = [(avals, branch(body)) for avals, body in regions]
    *outs, token = writer.op(name, ins, (*results, TOKEN), threaded)
    writer.token = token
    return tuple(outs)
