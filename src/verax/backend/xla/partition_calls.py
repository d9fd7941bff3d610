"""Floor 4: what XLA asks while it spreads a program: the user's rules of partitioning.

A module names its rules by number. While it is compiled they have names that no other
module of the process uses, and XLA finds them in one table::

    with asked(calls.partitions, devices, text) as named:
        client.compile_and_load(named, ...)       # which may raise RuleFailed
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

from attrs import field, frozen
from jaxlib import _hlo, xla_client

from verax.backend.lowering.lower import lower_part
from verax.backend.lowering.mlir_text import (
    PARTITIONED,
    RULES,
    PartitionCall,
    without_algorithms,
)
from verax.backend.placement.mesh import Mesh
from verax.backend.placement.sharding import (
    HloSharding,
    NamedSharding,
    from_hlo,
    hlo_sharding,
)
from verax.backend.runtime.client import Device
from verax.backend.runtime.cuda import LOADED
from verax.backend.runtime.errors import RuleFailed
from verax.backend.xla.lapack import require_routines
from verax.ir.locks import Lock, locked
from verax.ir.meshes import TypeSharding
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import View
from verax.rules.values.memo import pure

type Shape = _hlo.Shape
type Parted = tuple[bytes, list[HloSharding], HloSharding]
"""The program of a part, and how its operands and its result lie."""


@frozen(eq=False, repr=False)
class Asked(ReprMixin):
    """The rules of one module as XLA asks them, and what went wrong.

    An exception cannot travel through XLA, so `failed` keeps it.
    """

    calls: tuple[PartitionCall, ...]
    devices: tuple[Device, ...]
    failed: list[BaseException] = field(factory=list)

    def part(
        self,
        number: int,
        ins: Sequence[tuple[Shape, HloSharding]],
        outs: Sequence[tuple[Shape, HloSharding]],
    ) -> tuple[bytes, list[HloSharding], list[HloSharding]]:
        """The program for each device, and how it wants operands and results to lie."""
        call = self.calls[number]
        mesh = call.mesh
        assert isinstance(mesh, Mesh), "a program that is compiled has devices"

        def place(shape: Shape, hlo: HloSharding) -> NamedSharding:
            return from_hlo(hlo, self.devices, len(shape.dimensions()), mesh)

        part = call.rule.part(
            mesh, [place(*pair) for pair in ins], [place(*pair) for pair in outs]
        )
        own = part.mesh
        assert isinstance(own, Mesh), "rules give meshes with devices"
        name = getattr(call.rule, "name", "a part")
        text = lower_part(call.engine, part.jaxpr, name, call.platform, own.axes)
        require_routines(text)
        if call.platform == "cpu":
            text = without_algorithms(text)
        return (
            text.encode(),
            [self.hlo(*pair) for pair in zip(part.ins, ins, strict=True)],
            [self.hlo(*pair) for pair in zip(part.outs, outs, strict=True)],
        )

    def tell(self) -> None:
        """Tell the views of values of a program for one device that it is for that."""
        for call in self.calls:
            if isinstance(call.rule, View):
                call.rule.alone(self.devices[0])

    def hlo(self, place: TypeSharding, given: tuple[Shape, HloSharding]) -> HloSharding:
        """A sharding of the rule's as XLA has it."""
        assert isinstance(place, NamedSharding), "rules give shardings over meshes"
        ndim = len(given[0].dimensions())
        return hlo_sharding(place.tiling(ndim), len(self.devices))


@locked
class Table:
    """The modules that are being compiled, by the names of their rules."""

    lock: ClassVar[Lock]

    def __init__(self) -> None:
        self.count = 0
        self.modules: dict[str, Asked] = {}

    def add(self, asked: Asked) -> str:
        """A name for the rules of a module."""
        with self.lock:
            self.count += 1
            name = f"module {self.count}"
            self.modules[name] = asked
        return name

    def find(self, config: bytes) -> tuple[Asked, int]:
        """The module that a call names, and the number of the rule there."""
        name, _, number = config.decode().rpartition(" rule ")
        return self.modules[name], int(number)


TABLE: Final = Table()


@contextmanager
def asked(
    calls: tuple[PartitionCall, ...], devices: Sequence[Device], text: str
) -> Generator[str]:
    """Within the block XLA may compile the module in `text`, as it is named here.

    Raises:
        RuleFailed: a rule raised an exception, and so the compilation failed.
    """
    result = Asked(calls, tuple(devices))
    if len(devices) == 1:
        yield text
        result.tell()
        return
    register(calls[0].platform)
    name = TABLE.add(result)
    try:
        yield text.replace(f'"{RULES}', f'"{name} rule ')
    except RuntimeError:
        if result.failed:
            raise RuleFailed(result.failed[0]) from None
        raise
    finally:
        with TABLE.lock:
            TABLE.modules.pop(name)


@pure()
def register(platform: str) -> None:
    """Give XLA, or the plugin of a platform, the functions that answer; once."""
    xla_client.register_custom_call_partitioner(
        PARTITIONED,
        suggested,
        partition,
        inferred,
        can_side_effecting_have_replicated_sharding=True,
        c_api=LOADED.c_api if platform == "cuda" else None,
    )


def parts_of(shape: Shape, hlo: HloSharding) -> list[tuple[Shape, HloSharding]]:
    """The values of a result, which may be several."""
    if not shape.is_tuple():
        return [(shape, hlo)]
    return list(zip(shape.tuple_shapes(), hlo.tuple_elements(), strict=True))


def partition(
    shapes: Sequence[Shape],
    hlos: Sequence[HloSharding],
    result: Shape,
    hlo: HloSharding,
    config: bytes,
) -> Parted:
    """Answers XLA's question about a call whose operands and result would lie so."""
    module, number = TABLE.find(config)
    try:
        ins = list(zip(shapes, hlos, strict=True))
        text, operands, results = module.part(number, ins, parts_of(result, hlo))
    except BaseException as error:
        module.failed.append(error)
        raise
    whole = results[0]
    if result.is_tuple():
        whole = HloSharding.tuple_sharding(result, results)
    return text, operands, whole


def suggested(user: HloSharding, shape: object, config: bytes) -> HloSharding:
    """The sharding of a call for its user's sake: the user's; Shardy does not ask."""
    return user


def inferred(
    shapes: Sequence[Shape], hlos: Sequence[HloSharding], result: Shape, config: bytes
) -> HloSharding:
    """The sharding of a result for its operands' sake: whole; Shardy does not ask."""
    whole = HloSharding.replicate()
    if not result.is_tuple():
        return whole
    return HloSharding.tuple_sharding(result, [whole] * len(result.tuple_shapes()))
