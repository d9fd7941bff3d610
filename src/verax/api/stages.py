"""Floor 5: the stages of jit, ahead of time: traced, lowered, compiled.

One idea: each stage is a value with what there is to know about it::

    jit(f).trace(x).lower().compile()(x)
"""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen

from verax.api.engine import ENGINE
from verax.api.tracing import Traced
from verax.backend import pytrees
from verax.backend.executable import CompileOptions, MemoryAnalysis
from verax.backend.lower import lower
from verax.backend.lowered import Lowered as LoweredModule
from verax.backend.placed import default_place
from verax.backend.placed_program import spread_of
from verax.backend.placement import Placement
from verax.backend.program import Program, build, compiled
from verax.backend.pytrees import PyTreeDef
from verax.backend.sharding import Sharding
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import as_dtype, canonical
from verax.ir.jaxpr import ClosedJaxpr
from verax.rules.builder import leaked
from verax.rules.constants import aval_of
from verax.rules.state import STATE


def as_shape(sizes: Iterable[int]) -> tuple[int, ...]:
    """The sizes as a tuple of Python integers."""
    return tuple([operator.index(size) for size in sizes])


@frozen(repr=False)
class ShapeDtypeStruct:
    """A shape and a dtype, standing for an array in `eval_shape` and `lower`."""

    shape: tuple[int, ...] = field(converter=as_shape)
    dtype: Any = field(converter=as_dtype)
    weak_type: bool = False
    sharding: Sharding | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        place = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak}{place})"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return ShapedArray(self.shape, self.dtype).size


@frozen(eq=False)
class TracedStage:
    """A traced function: its jaxpr, and the types of what goes in and out."""

    name: str
    traced: Traced
    in_tree: PyTreeDef
    options: CompileOptions
    keep_unused: bool
    donated: tuple[bool, ...]
    placement: Placement | None = None

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        return ClosedJaxpr(self.traced.jaxpr)

    @property
    def out_tree(self) -> PyTreeDef:
        return self.traced.out_tree

    @property
    def out_info(self) -> Any:
        """The types of the outputs, in the structure of the output."""
        return out_info(self.traced)

    def lower(self) -> "LoweredStage":
        """The StableHLO module.

        Raises:
            LeakedTracer: the function closes over a tracer of an outer trace.
        """
        if self.traced.captured:
            raise leaked(self.traced.captured[0])
        module = lower(
            ENGINE,
            self.traced.jaxpr,
            self.name,
            keep_unused=self.keep_unused,
            donated=self.donated,
            spread=None if self.placement is None else spread_of(self.placement),
        )
        return LoweredStage(module, self)


@frozen(eq=False)
class LoweredStage:
    """A lowered function: StableHLO text, ready to compile."""

    module: LoweredModule
    stage: TracedStage

    @property
    def in_tree(self) -> PyTreeDef:
        return self.stage.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        return self.stage.out_tree

    @property
    def out_info(self) -> Any:
        return self.stage.out_info

    def as_text(self, dialect: str = "stablehlo") -> str:
        """The module as MLIR text.

        Raises:
            ValueError: `dialect` is not "stablehlo".
        """
        if dialect != "stablehlo":
            raise ValueError(
                f"lowered modules are stablehlo, not {dialect!r}; compile() has the HLO"
            )
        return self.module.text

    def compile(self) -> "CompiledStage":
        """The executable."""
        stage = self.stage
        if stage.placement is None:
            return CompiledStage(build(self.module, stage.options), stage)
        program = compiled(
            ENGINE,
            stage.traced.jaxpr,
            stage.name,
            stage.options,
            stage.keep_unused,
            stage.donated,
            stage.placement,
        )
        return CompiledStage(program, stage)


@frozen(eq=False)
class CompiledStage:
    """A compiled function, to call with arguments of exactly the traced types."""

    program: Program
    stage: TracedStage

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytrees.flatten((args, kwargs))
        if tree != self.stage.in_tree:
            raise TypeError(
                f"the function was compiled for arguments {self.stage.in_tree}, not "
                f"{tree}"
            )
        due = self.stage.traced.jaxpr.in_avals
        for i, (leaf, aval) in enumerate(zip(leaves, due, strict=True)):
            given = aval_of(leaf)
            if given.strong() is not aval.strong():
                raise TypeError(
                    f"the function was compiled for {aval} as argument leaf {i}, not "
                    f"{given}"
                )
        return self.stage.out_tree.unflatten(self.program.run(leaves))

    @property
    def input_shardings(self) -> tuple[Any, dict[str, Any]]:
        """Where the arguments must lie: positional ones, then by keyword."""
        placement = self.stage.placement
        count = self.stage.in_tree.num_leaves
        places: list[Any] = [default_place()] * count
        if placement is not None:
            places = [placement.of_input(i) for i in range(count)]
        args, kwargs = self.stage.in_tree.unflatten(places)
        return args, kwargs

    @property
    def output_shardings(self) -> Any:
        """Where the results lie, in the structure of the output."""
        program = self.program
        places = program.out_places or [default_place()] * len(program.out_avals)
        return self.stage.out_tree.unflatten(places)

    def as_text(self) -> str:
        """The optimised program in XLA's own language."""
        return self.program.executable.hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: `flops`, `bytes accessed`, ..."""
        return self.program.executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Bytes that one run needs."""
        return self.program.executable.memory_analysis()


def out_info(traced: Traced) -> Any:
    """The output types of a traced function, in the structure of its output."""
    return traced.out_tree.unflatten(
        [
            ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak_type)
            for aval in traced.jaxpr.out_avals
        ]
    )


def struct_aval(x: object) -> ShapedArray:
    """The type of an argument that may be a shape and dtype alone."""
    if isinstance(x, ShapeDtypeStruct):
        dtype = canonical(x.dtype, STATE.enable_x64)
        return ShapedArray(x.shape, dtype, x.weak_type)
    return aval_of(x)


def struct_avals(leaves: Sequence[object]) -> list[ShapedArray]:
    return [struct_aval(x) for x in leaves]
