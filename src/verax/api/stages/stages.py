"""Floor 5: the stages of jit, ahead of time: traced, lowered, compiled.

One idea: each stage is a value that holds all that is known about it::

    jit(f).trace(x).lower().compile()(x)
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

from attrs import evolve, field, frozen

from verax.api.arguments.call_keys import leaf_kinds, taking
from verax.api.arguments.direct_calls import DirectCalls, TreeCalls
from verax.api.arguments.jit_options import checked_options, warn_unusable
from verax.api.stages.interfaces import Interface, Stage, asked, stage_html
from verax.api.tracing.apply import ENGINE, apply
from verax.api.tracing.structs import struct_of
from verax.api.tracing.trace import Traced as TracedFunction
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray, Format, Layout, put
from verax.backend.calls import Call, caller
from verax.backend.eager.guarded import guarded_call, is_guarded
from verax.backend.lowering.lower import lower
from verax.backend.lowering.mlir_text import Lowered as LoweredModule
from verax.backend.lowering.stablehlo_io import parsed, pretty
from verax.backend.placement.sharding import Sharding, SingleDeviceSharding
from verax.backend.programs.placement import Placement, committed_place, relocated
from verax.backend.programs.program import Program, pending, platform_of, spread_of
from verax.backend.pytrees import result_tree
from verax.backend.runtime.client import (
    ALIASES,
    Device,
    check_not_forked,
    default_client,
    local_devices,
    platform_name,
)
from verax.backend.xla.compile_options import CompileOptions, OptionValue
from verax.backend.xla.executable import MemoryAnalysis, computation, hlo_cost, hlo_text
from verax.ir.avals import SymbolicSize
from verax.ir.effects import Effect
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.walk import count_eqns, hoist
from verax.rules.rows.emitter import PLATFORMS
from verax.rules.rows.leaks import leaked
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.state import STATE, UNKEPT

# -----------------------------------------------------------------------------
# The platforms that a program is lowered for.
#
# The names of `verax.rules.rows.emitter`, and of those that jaxlib and JAX use::
#
#     checked_platforms(("cpu", "gpu"))     # ('cpu', 'cuda')


def checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    """The platforms under their own names, each once; the present one for None.

    Raises:
        ValueError: there is none of that name, or no sequence of names.
    """
    if platforms is None:
        return (platform_name(default_client()),)
    if isinstance(platforms, str) or not platforms:
        raise ValueError(f"platforms takes a sequence of names, not {shown(platforms)}")
    out = tuple(dict.fromkeys([ALIASES.get(name, name) for name in platforms]))
    for name in out:
        if name not in PLATFORMS:
            known = ", ".join(PLATFORMS)
            raise ValueError(f"unknown platform {name!r}; the known ones are {known}")
    return out


# -----------------------------------------------------------------------------
# The stages of jit, ahead of time: traced, lowered, compiled.


type OptionsByName = Mapping[str, OptionValue]
DIALECTS = ("stablehlo", "hlo")


@frozen(eq=False, repr=False)
class Traced(Stage):
    """A traced function: its jaxpr, and the types of what goes in and out."""

    __module__ = "verax.stages"

    interface: Interface
    traced: TracedFunction
    options: CompileOptions
    keep_unused: bool
    donated: tuple[bool, ...]
    placement: Placement | None = None

    @cached_property
    def jaxpr(self) -> ClosedJaxpr:
        """The program; arrays that it captures are its constvars."""
        from verax.ops.hoisting import as_operands

        return hoist(self.traced.jaxpr, as_operands)

    @property
    def effects(self) -> frozenset[Effect]:
        """The effects of the program besides its outputs."""
        return self.traced.jaxpr.effects

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The program on arguments of its types: computed now, or part of a trace.

        Raises:
            TypeError: the arguments have another structure or other types.
        """
        return self.evaluated(self.traced.jaxpr, self.traced.captured, args, kwargs)

    def evaluated(
        self,
        jaxpr: Jaxpr,
        captured: Sequence[object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> Any:
        """The outputs of the program, whose first inputs are what it captured."""
        leaves, tree = pytrees.flatten((args, kwargs))
        self.interface.check(leaves, tree, traceable=True)
        typed = [
            ENGINE.core.convert(x, aval.dtype, aval.weak_type)
            for x, aval in zip([*captured, *leaves], jaxpr.in_avals, strict=True)
        ]
        return result_tree(self.out_tree, apply(jaxpr, typed))

    def closure_convert(self) -> tuple[list[Array], Any]:
        """Returns a function that takes what `fun` captured first, and the captured.

        The pair is (captured, converted), with `converted(captured, *args)` equal to
        `function(*args)`; other values of the same types may take their place.
        """
        closed = self.jaxpr
        inner = closed.jaxpr
        invars = (*inner.constvars, *inner.invars)
        jaxpr = Jaxpr((), invars, inner.eqns, inner.outvars)

        def converted(
            captured: Sequence[object], *args: object, **kwargs: object
        ) -> Any:
            return self.evaluated(jaxpr, captured, args, kwargs)

        return [*closed.consts, *self.traced.captured], converted

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> "Lowered":
        """The StableHLO module, for the platform of this process or for those listed.

        Raises:
            LeakedTracer: the function closes over a tracer of an outer trace.
            MissingRule: a primitive has no lowering for a platform.
            ValueError: a platform is unknown.
        """
        given = lowering_platforms
        here = platform_of(self.placement)
        platforms = (here,) if given is None else checked_platforms(given)
        warn_unusable(self.interface.donated, self.donated, self.interface.in_avals)
        # What stays a call is chosen here, and the effort where it is compiled.
        known = self.options.configured()
        options = evolve(
            self.options, calls=known.calls, cpu_lowerings=known.cpu_lowerings
        )
        stage = evolve(self, options=options)
        return Lowered(self.interface, stage.module(platforms), stage)

    def module(
        self, platforms: tuple[str, ...], *, located: bool = False
    ) -> LoweredModule:
        """The module, with the user's lines if `located`."""
        if self.traced.captured:
            raise leaked(self.traced.captured[0])
        return lower(
            ENGINE,
            self.traced.jaxpr,
            self.fun_name,
            platforms=platforms,
            keep_unused=self.keep_unused,
            donated=self.donated,
            spread=None if self.placement is None else spread_of(self.placement),
            located=located,
            calls=self.options.calls or "auto",
            kernels=self.options.kernels,
        )


def check_sizes_known(name: str, jaxpr: Jaxpr) -> None:
    """Raise ValueError where an argument has a symbolic size, as exporting allows."""
    for var in jaxpr.invars:
        if any([isinstance(size, SymbolicSize) for size in var.aval.shape]):
            raise ValueError(
                f"{name} is lowered for the symbolic shape {var.aval}, and a program "
                "is compiled for sizes that are known: lower it for an example of "
                "them, or use verax.export.export, whose result compiles for the "
                "sizes of each call"
            )


@frozen(eq=False, repr=False)
class Lowered(Stage):
    """A lowered function: StableHLO text, ready to compile.

    The module of one that was lowered for several platforms takes the number of the one
    that it runs on as its first argument, if what it does depends on that.
    """

    __module__ = "verax.stages"

    interface: Interface
    module: LoweredModule
    stage: Traced

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as MLIR text, or as HLO with dialect "hlo".

        With `debug_info` each operation names the user's line that made it.

        Raises:
            ValueError: `dialect` is neither "stablehlo" nor "hlo".
        """
        hlo = checked_dialect(dialect) == "hlo"
        text = self.module.text
        if debug_info:
            text = self.stage.module(self.module.platforms, located=True).text
        if hlo:
            return hlo_text(text, metadata=debug_info)
        return pretty(text, located=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an object of jaxlib: MLIR's `Module`, or `XlaComputation`.

        Raises:
            ValueError: `dialect` is neither "stablehlo" nor "hlo".
        """
        hlo = checked_dialect(dialect) == "hlo"
        return computation(self.module.text) if hlo else parsed(self.module.text)

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates before any optimisation: `flops`, `bytes accessed`, ..."""
        return hlo_cost(self.module.text)

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        text = self.as_text()
        facts = [
            ("platforms", ", ".join(self.module.platforms)),
            ("equations", f"{count_eqns(self.stage.traced.jaxpr):,}"),
            (
                "StableHLO",
                f"{self.module.operations:,} operations, {len(text):,} bytes",
            ),
        ]
        if len(text) <= COSTED:
            facts += cost_facts(asked(self.cost_analysis))
        return stage_html(self, facts, text)

    def compile(
        self,
        compiler_options: OptionsByName | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> "Compiled":
        """The executable.

        `compiler_options` are XLA's, by name; they override those passed to jit.
        `device_assignment` are other devices to run on, as many as the program has.

        Raises:
            ValueError: the module is for another platform, the number of devices is
                another one, or an argument has a symbolic size.
            CompileError: XLA does not know an option, or refuses its value.
        """
        stage = self.stage
        check_sizes_known(self.fun_name, stage.traced.jaxpr)
        module, here = self.module, platform_of(stage.placement)
        if here not in module.platforms:
            raise ValueError(
                f"{self.fun_name} was lowered for {', '.join(module.platforms)}, but "
                f"this process runs on {here}: lower it for {here}"
            )
        if module.takes_platform:
            module = stage.module((here,))
        given = dict(stage.options.overrides) | dict(checked_options(compiler_options))
        options = evolve(stage.options, overrides=given.items())
        placement = stage.placement
        if device_assignment is not None:
            placement = relocated(
                placement, stage.traced.jaxpr, tuple(device_assignment)
            )
        recipe = pending(
            ENGINE,
            stage.traced.jaxpr,
            stage.fun_name,
            options,
            stage.keep_unused,
            stage.donated,
            placement,
        )
        fits = placement is stage.placement and module.platforms == (here,)
        program = recipe.ahead(module if fits else None)
        return Compiled(self.interface, program, stage.traced.jaxpr)


def is_debugged() -> bool:
    """Whether calls ask first or look at their outputs."""
    return is_guarded() or STATE.debug_nans or STATE.debug_infs


def first_place() -> Sharding:
    """The place of programs without a placement."""
    return SingleDeviceSharding(local_devices()[0])


def checked_dialect(dialect: str | None) -> str:
    """The language of a lowered module."""
    if dialect is None or dialect in DIALECTS:
        return dialect or "stablehlo"
    raise ValueError(
        f"dialect must be {' or '.join(DIALECTS)}, not {dialect!r}; for the optimised "
        "program use compile().as_text()"
    )


COSTED: Final = 1 << 20
"""Bytes of a module up to which a notebook shows XLA's estimates, which read it all."""
ESTIMATES: Final = ("flops", "transcendentals", "bytes accessed")


def cost_facts(costs: Mapping[str, float] | None) -> list[tuple[str, str]]:
    """XLA's estimates of the work of one run, as far as it has made any."""
    known = [(name, (costs or {}).get(name, -1.0)) for name in ESTIMATES]
    return [(f"{name}, estimated", f"{x:,.0f}") for name, x in known if x >= 0]


def memory_facts(memory: MemoryAnalysis | None, devices: int) -> list[tuple[str, str]]:
    """The bytes that one run needs on each device, and those of the code."""
    if memory is None:
        return []
    sizes = {
        "arguments": memory.arguments,
        "results": memory.outputs,
        "temporaries": memory.temporaries,
        "shared by arguments and results": memory.aliased,
        "machine code": memory.generated_code,
    }
    each = " on each device" if devices > 1 else ""
    return [(name, f"{size:,} bytes{each}") for name, size in sizes.items() if size]


@frozen(eq=False, repr=False)
class Compiled(Stage, DirectCalls[..., Any]):
    """A compiled function, to call with arguments of exactly the traced types.

    A loaded one has no `jaxpr`.
    """

    __module__ = "verax.stages"

    interface: Interface
    program: Program
    jaxpr: Jaxpr | None = None
    direct: dict[object, Call | TreeCalls] = field(factory=dict, init=False)

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the compiled function {self.fun_name} cannot be pickled, since its "
            "structures and devices belong to a process: pickle what its serialize() "
            "returns, and load that with verax.stages.deserialize"
        )

    def slow_call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """The call, once its arguments are checked. Leave out static ones.

        Raises:
            TypeError: the arguments have another structure or other types.
            ValueError: an argument is committed to another place.
            RuntimeError: an argument was deleted or donated, or this process was forked
                from the one that compiled the program.
        """
        check_not_forked()
        leaves, tree = pytrees.flatten((args, kwargs))
        self.interface.check(leaves, tree)
        make = partial(self.made, self.moves(leaves), leaf_kinds(leaves))
        if None not in leaf_kinds(leaves) and STATE.own is not UNKEPT:
            self.remember(args, kwargs, make)
        return make()(leaves)

    def made(
        self,
        moves: Sequence[tuple[int, Sharding]],
        kinds: Sequence[object],
        places: Sequence[int] | None = None,
    ) -> Call:
        """Makes the call for leaves of these kinds at `places` of its arguments."""
        if not moves and not is_debugged():
            return caller(self.program, self.out_tree, kinds, places)
        call = self.debugged(
            caller(self.program, self.out_tree, (None,) if moves else kinds)
        )

        def moved(args: Sequence[ConcreteArray]) -> Any:
            given = list(args)
            for i, place in moves:
                given[i] = put(given[i], place, committed=False)
            return call(given)

        return taking(moved if moves else call, places)

    def debugged(self, call: Call) -> Call:
        """The call; it asks first, or looks at its outputs, as `is_debugged` says."""
        if is_guarded():
            call = guarded_call(self.fun_name, call)
        if not (STATE.debug_nans or STATE.debug_infs):
            return call
        from verax.backend.eager.nan_checks import Search, checked_call, kinds_of

        kinds = kinds_of(STATE.debug_nans, STATE.debug_infs)
        used = self.program.lowered.donated
        donated = [i in used for i in range(self.in_tree.num_leaves)]
        how = Search(self.fun_name, self.interface.names)
        return checked_call(ENGINE, self.jaxpr, how, donated, kinds, call)

    def moves(self, leaves: Sequence[object]) -> list[tuple[int, Sharding]]:
        """The arguments that are elsewhere, and where they go.

        Raises:
            ValueError: an argument is committed to another place, and the function was
                not told on which device to run.
        """
        out: list[tuple[int, Sharding]] = []
        wrong = []
        placement, places = self.program.placement, self.input_places()
        anyhow = placement is not None and placement.fetches
        for i, (leaf, place) in enumerate(zip(leaves, places, strict=True)):
            if not isinstance(leaf, ConcreteArray) or leaf.placed is None:
                continue
            if not self.program.lowered.kept[i]:
                continue
            if leaf.sharding.is_equivalent_to(place, leaf.ndim):
                continue
            if not anyhow and committed_place(leaf) is not None:
                name = self.interface.names()[i]
                wrong.append(f"{name} is committed to {leaf.sharding}, not to {place}")
            out.append((i, place))
        if wrong:
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the "
                "shardings of arguments passed to it. Here are the mismatches: "
                f"{'; '.join(wrong)}. Move them with verax.device_put, or compile the "
                "function for them"
            )
        return out

    def input_places(self) -> list[Sharding]:
        """The place of each leaf of the arguments."""
        placement = self.program.placement
        count = self.in_tree.num_leaves
        if placement is None:
            return [first_place()] * count
        return [placement.of_input(i) for i in range(count)]

    def output_places(self) -> Sequence[Sharding]:
        """The place of each leaf of the results."""
        return self.program.out_places or [first_place()] * self.out_tree.num_leaves

    @property
    def input_shardings(self) -> Any:
        """The shardings of the arguments: (positional ones, those by keyword)."""
        return self.in_tree.unflatten(self.input_places())

    @property
    def output_shardings(self) -> Any:
        """The shardings of the results, in the structure of the output."""
        return self.out_tree.unflatten(self.output_places())

    @property
    def input_formats(self) -> Any:
        """Their places and memory layouts: (positional ones, those by keyword)."""
        lowered, avals = self.program.lowered, self.interface.in_avals
        places = self.input_places()
        used = iter(self.program.executable.input_layouts()[len(lowered.constants) :])
        out = []
        for place, aval, kept in zip(places, avals, lowered.kept, strict=True):
            layout = Layout.row_major(aval.ndim)
            if kept:
                layout = Layout.from_runtime(next(used), aval.ndim)
            out.append(Format(layout, place))
        return self.in_tree.unflatten(out)

    @property
    def output_formats(self) -> Any:
        """Their places and memory layouts, in the structure of the output."""
        layouts = self.program.executable.output_layouts()
        trios = zip(
            layouts, self.interface.out_avals, self.output_places(), strict=True
        )
        return self.out_tree.unflatten(
            [Format(Layout.from_runtime(x, aval.ndim), at) for x, aval, at in trios]
        )

    @property
    def out_info(self) -> Any:
        """The types and places of the outputs, in their structure."""
        pairs = zip(self.interface.out_avals, self.output_places(), strict=True)
        return self.out_tree.unflatten([struct_of(*pair) for pair in pairs])

    def as_text(self) -> str:
        """The optimised program in XLA's own language."""
        return self.program.executable.hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: `flops`, `bytes accessed`, ..."""
        return self.program.executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Bytes that one run needs."""
        return self.program.executable.memory_analysis()

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        placement = self.program.placement
        devices = first_place().ordered if placement is None else placement.devices
        facts = [("devices", ", ".join(map(str, devices)))]
        if self.jaxpr is not None:
            facts.append(("equations", f"{count_eqns(self.jaxpr):,}"))
        facts += memory_facts(asked(self.memory_analysis), len(devices))
        facts += cost_facts(asked(self.cost_analysis))
        return stage_html(self, facts, asked(self.as_text))

    def serialize(self) -> bytes:
        """The compiled function as bytes, for `verax.stages.deserialize`.

        They contain the machine code, the arrays that the function captured, and the
        structures of arguments and results.

        Raises:
            TypeError: a structure holds a class or a key without a serialised form; see
                `verax.export.register_pytree_node_serialization`.
            ValueError: the program calls functions of this process, or runs on devices
                of others.
        """
        from verax.api.stages.serialization import written

        return written(self.interface, self.program, trees=True)

    def runtime_executable(self) -> Any:
        """jaxlib's own object, for debugging; it may change."""
        return self.program.executable.loaded
