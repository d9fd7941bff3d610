"""Floor 4: compiled programs: a jaxpr, lowered and compiled once, run many times.

One idea: jaxprs hash by structure, so two functions with equal jaxprs share one
executable; constants and unused arguments are sorted out when the program is made::

    program = compiled(engine, jaxpr, "f")
    program.run([x])
"""

import time
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, cast
from weakref import ref

import attrs
import numpy as np
from attrs import evolve, frozen

from verax.backend.arrays.concrete import (
    ConcreteArray,
    buffer_at,
    result_kind,
    to_buffer,
)
from verax.backend.arrays.places import Placed, spread, stored_aval
from verax.backend.lowering.lower import lower
from verax.backend.lowering.mlir_text import Kinds, Lowered, Memories, Spread
from verax.backend.placement.mesh import (
    AbsentDevice,
    AnyDevice,
    standing_for,
)
from verax.backend.placement.sharding import (
    HloSharding,
    NamedSharding,
    RuntimeSharding,
    Sharding,
    runtime_sharding,
)
from verax.backend.programs.placement import Placement, Places, moved, place_of
from verax.backend.programs.prepared import (
    Fetch,
    Finish,
    PreparedCall,
    arrays_of,
    ending,
    operand_buffer,
    prepared,
)
from verax.backend.programs.written import as_written, given_sharding, result_sharding
from verax.backend.runtime.background import JOBS, Job, ended
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import (
    check_not_forked,
    default_client,
    default_platform,
    local_devices,
    platform_name,
)
from verax.backend.runtime.errors import CompileError
from verax.backend.runtime.locks import COMPILING, Locks
from verax.backend.runtime.log import log_stage
from verax.backend.runtime.metrics import stage
from verax.backend.xla.executable import CompileOptions, Executable, compile_text
from verax.backend.xla.lapack import require_routines
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, stored_dtype
from verax.ir.jaxpr import Jaxpr, Literal, empty_jaxpr
from verax.ir.memos import Weighed
from verax.ir.meshes import Layout
from verax.ir.records import ReprMixin
from verax.ir.walk import Slot, numbered
from verax.rules.guards import paused
from verax.rules.rows.row import Engine
from verax.rules.values.state import LIBRARY, STATE, State, changing, own_options
from verax.transforms.engine.engine import literal_value

# -----------------------------------------------------------------------------
# Compiling programs whose devices are not simply the first.
#
# What a run needs is decided when the program is made, so compiling says where
# every output lies, which XLA may have chosen::
#
#     executable, outs = compile_placed(lowered, options, placement)


def spread_of(placement: Placement) -> Spread | None:
    """The placement as a module states it; nothing for a single device.

    There it says which arrays lie in other memory than the device's, if any do.
    """
    kinds = Memories(kinds_of(placement.ins), kinds_of(placement.outs))
    if len(placement.devices) == 1 and not any((*kinds.ins, *kinds.outs)):
        return None
    count = range(len(placement.ins))
    several = len(placement.devices) > 1
    return Spread(
        tuple([device.id for device in placement.devices if several]),
        placement.mesh,
        tuple([layout_of(placement.of_input(i)) for i in count]),
        tuple([None if s is None else layout_of(s) for s in placement.outs]),
        lambda literal: layout_of(placement.of_constant(literal)),
        kinds,
    )


def kinds_of(places: Places) -> Kinds:
    """The kinds of memory that are not the devices' own."""
    return tuple([None if s is None else s.other_memory for s in places])


def layout_of(place: Sharding) -> Layout | None:
    """The layout of an array's parts; None on one device."""
    if place.num_devices == 1:
        return None
    assert isinstance(place, NamedSharding), "several devices have a mesh"
    return place.layout


class Uneven(Exception):
    """XLA chose to split outputs into parts of different sizes."""

    def __init__(self, outs: Places) -> None:
        super().__init__("uneven outputs")
        self.outs = outs


def compile_placed(
    lowered: Lowered, options: CompileOptions, placement: Placement
) -> tuple[Executable, tuple[Sharding, ...]]:
    """The executable, and the sharding of every output.

    Raises:
        CompileError: integers of two bits would go from one CPU device to another.
        Uneven: arrays cannot lie as XLA chose; it holds outputs to ask for instead.
        ValueError: this process does not see the devices.
    """
    devices = placement.devices
    if isinstance(devices[0], AbsentDevice):
        raise ValueError(
            f"{lowered.name} was lowered for {len(devices)} devices and can be printed "
            "and exported, but not compiled: this process sees only "
            f"{len(default_client().devices())}"
        )
    if len(devices) > 1 and devices[0].platform == "cpu":
        refuse_two_bits(lowered, len(devices))
    avals = [stored_aval(aval) for aval in lowered.out_avals]
    free = tuple([place is None for place in placement.outs])
    asked = [place or placement.whole for place in placement.outs]
    out: list[Sharding] = list(asked)
    given = given_sharding(lowered, placement)

    def chosen(hlos: Sequence[HloSharding]) -> list[RuntimeSharding]:
        for i, aval in enumerate(avals):
            if free[i] and placement.mesh is not None:
                hlo = hlos[i] if len(devices) > 1 else None
                due, ndim = lowered.out_avals[i].explicit, len(aval.shape)
                out[i] = result_sharding(hlo, placement, ndim, given, due)
        fit = [is_even(place, a.shape) for place, a in zip(out, avals, strict=True)]
        if not all(fit):
            whole = placement.whole
            raise Uneven(
                tuple(
                    whole if free[i] and not fit[i] else place
                    for i, place in enumerate(placement.outs)
                )
            )
        return [
            runtime_sharding(place, len(aval.shape))
            for place, aval in zip(out, avals, strict=True)
        ]

    if State.joined and STATE.compare_programs:
        from verax.backend.processes.exchange import compare_programs

        compare_programs(lowered.name, lowered.text, devices)
    executable = compile_text(
        devices[0].client,
        lowered.text,
        list(devices),
        placed_options(options, placement),
        out_avals=avals,
        out_shardings=chosen,
        calls=lowered.calls,
    )
    return executable, tuple(out)


def refuse_two_bits(lowered: Lowered, count: int) -> None:
    """Raises for what XLA would do wrong on CPUs, wherever it moves what is spread."""
    if "i2>" in lowered.text:
        raise CompileError(
            f"{lowered.name} has integers of two bits on {count} CPU devices, between "
            "which XLA sends too few of their bytes; use int4 or int8, or one device"
        )


def placed_options(options: CompileOptions, placement: Placement) -> CompileOptions:
    """The options with which XLA spreads a program over the devices of a placement."""
    free = tuple([place is None for place in placement.outs])
    return evolve(options, num_partitions=len(placement.devices), free_outputs=free)


def is_even(place: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether all parts of an array of this shape have one size."""
    counts = place.tiling(len(shape)).counts
    return not any(n % count for n, count in zip(shape, counts, strict=True))


def constant_at(literal: Literal, placement: Placement) -> Buffer:
    """A captured array where the program expects it."""
    place = placement.of_constant(literal)
    value = literal.value
    if isinstance(value, ConcreteArray):
        return buffer_at(value, place)
    return spread(np.array(literal_value(literal)), literal.aval, place, copy=False)


# -----------------------------------------------------------------------------
# Compiled programs: a jaxpr, lowered and compiled once, run many times.


type Build = Callable[[Sequence[object]], Any]

LOCKS: Final = Locks(COMPILING)


@frozen(eq=False, repr=False)
class Program(ReprMixin):
    """An executable with the constants it takes first and the arguments it keeps."""

    lowered: Lowered
    executable: Executable
    constants: tuple[Buffer, ...]
    out_avals: tuple[ShapedArray, ...]
    seconds: float
    placement: Placement | None = None
    out_places: tuple[Sharding, ...] = ()

    @cached_property
    def positions(self) -> tuple[int, ...] | None:
        """The arguments that the program takes, by position; None if all."""
        kept = self.lowered.kept
        return None if all(kept) else tuple([i for i, k in enumerate(kept) if k])

    @cached_property
    def run(self) -> PreparedCall:
        """Runs the program: arguments of the input types to outputs, maybe unfinished.

        Raises:
            RuntimeError: an argument was deleted, or the program failed.
        """
        return self.prepared()

    def prepared(
        self, places: Sequence[int] | None = None, build: Build | None = None
    ) -> PreparedCall:
        """A call that looks at each argument, whatever it is, and places it.

        The leaf number i is the argument at `places[i]`; `build` makes the result from
        the list of outputs.
        """
        wrap = self.wrap
        finish: Finish = wrap if build is None else lambda outs: build(wrap(outs))
        after = ending(self.lowered, places)
        return prepared(self.executable, self.fetcher(places), after, finish)

    def fetcher(self, places: Sequence[int] | None) -> Fetch:
        """Returns a function that makes buffers of arguments of any kind."""
        constants = self.constants
        operands = [
            (i if places is None else places[i], aval, place)
            for i, aval, place in self.operands
        ]

        def fetch(args: Sequence[object]) -> list[Buffer]:
            ins = [
                buffer
                if type(x := args[i]) is ConcreteArray
                and (buffer := x.buffer) is not None
                and place is None
                else operand_buffer(x, aval, place)
                for i, aval, place in operands
            ]
            return [*constants, *ins] if constants else ins

        return fetch

    @cached_property
    def operands(self) -> tuple[tuple[int, ShapedArray, Sharding | None], ...]:
        """The leaves that the program takes: numbers, types, places of their own."""
        placement, kept = self.placement, range(len(self.lowered.kept))
        return tuple(
            [
                (i, aval, None if placement is None else placement.of_input(i))
                for i, aval in zip(
                    kept if self.positions is None else self.positions,
                    self.lowered.in_avals,
                    strict=True,
                )
            ]
        )

    @cached_property
    def out_kinds(self) -> tuple[ShapedArray | Placed, ...]:
        """The kinds of the arrays of the outputs, with their places."""
        if self.placement is None:
            return self.out_avals
        committed = self.placement.committed
        return tuple(
            [
                result_kind(aval, place, committed)
                for aval, place in zip(self.out_avals, self.out_places, strict=True)
            ]
        )

    @cached_property
    def wrap(self) -> Callable[[Sequence[Buffer]], list[ConcreteArray]]:
        """Makes arrays of the outputs."""
        kinds = self.out_kinds
        return lambda outs: arrays_of(outs, kinds)

    @cached_property
    def plain(self) -> bool:
        """Whether every value is on a device what its type says, keys included."""
        avals = (*self.lowered.in_avals, *self.out_avals)
        return not any([aval.dtype == float0 for aval in avals])


def constant_buffer(literal: Literal) -> Buffer:
    """An array constant on its device, or on the default device, in its own type."""
    if isinstance(literal.value, ConcreteArray):
        return literal.value.device_buffer()
    return to_buffer(np.array(literal_value(literal)), literal.aval)


def build(lowered: Lowered, options: CompileOptions, late: bool = False) -> Program:
    """Compile a lowered module for the default device; with `late`, sans constants."""
    options = options.settled(lowered.small)
    require_routines(lowered.text)
    started = time.perf_counter()
    with stage(lowered.name, "XLA"):
        executable = compile_text(
            default_client(),
            lowered.text,
            [local_devices()[0]],
            options,
            out_avals=[stored_aval(aval) for aval in lowered.out_avals],
            calls=lowered.calls,
        )
    return Program(
        lowered,
        executable,
        () if late else constants_of(lowered, None),
        lowered.out_avals,
        time.perf_counter() - started,
    )


@frozen(repr=False)
class Recipe(ReprMixin):
    """All that decides about a program, except its name in messages.

    The jaxpr has slots for its array constants, so that closures over other arrays of
    the same types share the executable, and nothing here keeps an array alive.
    """

    engine: Engine
    jaxpr: Jaxpr
    options: CompileOptions
    keep_unused: bool = False
    donated: tuple[bool, ...] = ()
    placement: Placement | None = None

    @property
    def platform(self) -> str:
        """The platform that it is lowered for: that of its devices."""
        return platform_of(self.placement)


def platform_of(placement: Placement | None) -> str:
    """The platform of the devices of a placement, else that of the process."""
    if placement is None:
        return default_platform()
    return platform_name(placement.devices[0].client)


@frozen(eq=False, repr=False)
class Made(ReprMixin):
    """A program without its constants, and the jaxpr it was made of.

    The source lines of the jaxpr are those of its first use. It is empty where the
    program is kept by its jaxpr, which would keep itself alive.
    """

    program: Program
    jaxpr: Jaxpr


def weight_of(made: Made) -> int:
    """The bytes of a program, about: XLA keeps much for each, and tells of little."""
    lowered = made.program.lowered
    return BYTES + 8 * len(lowered.text)


def loosened(made: Made, gone: Callable[[object], object]) -> Callable[[], Made | None]:
    """The function that makes `made` again while a function holds its executable."""
    jaxpr, executable = made.jaxpr, ref(made.program.executable, gone)
    fields = {a.name: getattr(made.program, a.name) for a in attrs.fields(Program)}
    del fields["executable"]

    def again() -> Made | None:
        held = executable()
        if held is None:
            return None
        return Made(Program(executable=held, **fields), jaxpr)

    return again


BYTES: Final = 200_000
"""The bytes that a small executable takes on a CPU."""
HEAVY: Final = 1 << 24
"""Bytes of programs that are kept though no function holds them."""
MADE: Final = Weighed[Recipe, Made](HEAVY, weight_of, loosened)
"""The programs of this process by what they compute, whatever they are called.

Those used last are found again though nobody holds them, the others as long as some
function does. Those that hold functions of the user's are kept by the jaxprs that they
were made of, and so are those that were compiled ahead of time: they die with the
function.
"""


def recipe_of(
    engine: Engine,
    jaxpr: Jaxpr,
    options: CompileOptions,
    keep_unused: bool = False,
    donated: tuple[bool, ...] = (),
    placement: Placement | None = None,
) -> tuple[Recipe, tuple[Literal, ...]]:
    """The recipe of a program, and the constants for the slots of its jaxpr."""
    numbered_jaxpr, literals = slots_of(jaxpr)
    options = options.configured()
    recipe = Recipe(engine, numbered_jaxpr, options, keep_unused, donated, placement)
    return recipe, literals


def slots_of(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Literal, ...]]:
    """`numbered`, found again by the jaxpr, so that its memos are, too."""
    if not jaxpr.used_consts:
        return jaxpr, ()
    store = cast(dict[object, tuple[Jaxpr, tuple[Literal, ...]]], jaxpr.kept)
    entry = store.get(numbered)
    if entry is None:
        entry = store[numbered] = numbered(jaxpr, place_of)
    return entry


def made_of(recipe: Recipe) -> Made | None:
    """The program that was made of a recipe, if one is known."""
    out = None if recipe.jaxpr.transient else MADE.find(recipe)
    if out is None:
        out = cast(Made | None, recipe.jaxpr.kept.get(without_jaxpr(recipe)))
    return out


def without_jaxpr(recipe: Recipe) -> Recipe:
    """The recipe as a key beside its jaxpr, which would keep itself alive."""
    return evolve(recipe, jaxpr=EMPTY)


EMPTY: Final = empty_jaxpr((), ())


def shared(
    recipe: Recipe, name: str, lowered: Lowered | None = None, ahead: bool = False
) -> Program:
    """The program of a recipe, made now if there is none, of its module if that is.

    One that is compiled ahead of time is not kept beyond its jaxpr.
    """
    out = made_of(recipe)
    if out is None:
        with LOCKS.turn(recipe):
            out = made_of(recipe)  # another thread may have made it meanwhile
            if out is None:
                program = make(recipe, lowered or announced(recipe, name))
                if ahead or recipe.jaxpr.transient:
                    out = Made(program, EMPTY)
                    recipe.jaxpr.kept[without_jaxpr(recipe)] = out
                else:
                    out = MADE.add(recipe, Made(program, recipe.jaxpr))
    return out.program


def announced(recipe: Recipe, name: str) -> Lowered:
    """The module of a recipe, which is compiled next."""
    with paused():  # it makes many objects, and loads passes when it first runs
        lowered = lowered_of(recipe, name)
    announce(lowered)
    return lowered


def anywhere(recipe: Recipe) -> Recipe:
    """What decides about the module of a recipe: devices by position, no jaxpr."""
    placement = recipe.placement
    if placement is not None and spread_of(placement) is None:
        placement = None
    if placement is not None and placement.mesh is not None:
        devices = standing_for(placement.mesh, AnyDevice).devices
        placement = moved(placement, tuple(devices.flat))
    return evolve(without_jaxpr(recipe), placement=placement)


def lowered_of(recipe: Recipe, name: str) -> Lowered:
    """The module of a recipe: that of the program on other devices, if there is one.

    Where arrays that it captures lie is not said by position.
    """
    if recipe.jaxpr.used_consts:
        return lowered_anew(recipe, name)
    key = (lowered_of, anywhere(recipe), recipe.platform, name)
    known = cast(dict[object, Callable[[], Lowered | None]], recipe.jaxpr.kept)
    found = known[key]() if key in known else None
    if found is None:
        found = lowered_anew(recipe, name)
        if not found.calls.local:  # functions of the host belong to one program
            known[key] = ref(found)
    return found


def lowered_anew(recipe: Recipe, name: str) -> Lowered:
    """The module of a recipe, written now."""
    placement = recipe.placement
    return lower(
        recipe.engine,
        recipe.jaxpr,
        name,
        platforms=(recipe.platform,),
        keep_unused=recipe.keep_unused,
        donated=recipe.donated,
        spread=None if placement is None else spread_of(placement),
        calls=recipe.options.calls or "auto",
        kernels=recipe.options.kernels,
    )


def make(recipe: Recipe, lowered: Lowered) -> Program:
    """Compile the module of a recipe."""
    placement, options, name = recipe.placement, recipe.options, lowered.name
    try:
        if placement is None:
            program = build(lowered, options, late=True)
        else:
            program = build_placed(lowered, options, placement, late=True)
    except Uneven as error:
        assert placement is not None
        even = evolve(placement, outs=error.outs)
        return shared(evolve(recipe, placement=even), name)
    log_stage("Finished XLA compilation of jit(%s) in %.9f sec", name, program.seconds)
    return program


def announce(lowered: Lowered) -> None:
    """Log that a program is compiled now, and warn if its constants are large."""
    name, spent = lowered.name, lowered.seconds
    log_stage(
        "Finished jaxpr to MLIR module conversion jit(%s) in %.9f sec",
        name,
        spent.rewrite + spent.write,
    )
    log_stage(
        "Compiling jit(%s) with global shapes and types %s.",
        name,
        lowered.in_avals,
    )
    limit = STATE.captured_constants_warn_bytes
    size = sum(
        [c.aval.size * stored_dtype(c.aval.dtype).itemsize for c in lowered.constants]
    )
    if 0 <= limit <= size and size:
        warnings.warn(
            f"{name} has captured {size:,} bytes of constants; pass large arrays as "
            "arguments, or turn this warning off with verax.config.update("
            '"captured_constants_warn_bytes", -1)',
            skip_file_prefixes=(LIBRARY,),
        )


def build_placed(
    lowered: Lowered, options: CompileOptions, placement: Placement, late: bool = False
) -> Program:
    """As `build`, for the devices of a placement."""
    options = options.settled(lowered.small)
    require_routines(lowered.text)
    started = time.perf_counter()
    with stage(lowered.name, "XLA"):
        executable, places = compile_placed(lowered, options, placement)
    return Program(
        lowered,
        executable,
        () if late else constants_of(lowered, placement),
        lowered.out_avals,
        time.perf_counter() - started,
        placement,
        places,
    )


def constants_of(lowered: Lowered, placement: Placement | None) -> tuple[Buffer, ...]:
    """The array constants, where the program runs."""
    if placement is None:
        return tuple([constant_buffer(c) for c in lowered.constants])
    return tuple([constant_at(c, placement) for c in lowered.constants])


def compiled(
    engine: Engine,
    jaxpr: Jaxpr,
    name: str,
    options: CompileOptions,
    keep_unused: bool = False,
    donated: tuple[bool, ...] = (),
    placement: Placement | None = None,
) -> Program:
    """The program for `jaxpr`; jaxprs that are equal but for constants share it.

    Without `placement` it runs on the first device. Threads that ask for one program at
    the same time wait until one of them has made it; other programs are made meanwhile.

    NumPy arrays among its constants are read now: later changes are not seen.
    """
    return pending(
        engine, jaxpr, name, options, keep_unused, donated, placement
    ).program()


def pending(
    engine: Engine,
    jaxpr: Jaxpr,
    name: str,
    options: CompileOptions,
    keep_unused: bool = False,
    donated: tuple[bool, ...] = (),
    placement: Placement | None = None,
) -> "Pending":
    """The recipe of what `compiled` makes, to be made now or by a thread."""
    check_not_forked()
    plain = None if placement is None else placement.plain
    recipe, literals = recipe_of(engine, jaxpr, options, keep_unused, donated, plain)
    return Pending(recipe, name, literals, placement)


@frozen(eq=False, repr=False)
class Pending(ReprMixin):
    """A program that is to be made: all that decides about it, and its constants.

    Its `placement` has the specs as they were written, that of the recipe plain ones.
    """

    recipe: Recipe
    name: str
    literals: tuple[Literal, ...]
    placement: Placement | None = None

    def program(self) -> Program:
        """The program, made now if there is none."""
        return self.completed(shared(self.recipe, self.name))

    def ahead(self, lowered: Lowered | None = None) -> Program:
        """The program, made ahead of time if there is none, of its module if that is.

        What is shared has slots for constants, so their module is written again.
        """
        module = None if self.literals else lowered
        return self.completed(shared(self.recipe, self.name, module, ahead=True))

    def start(self) -> Job[Program]:
        """Write the module now and compile it in a thread; see `completed`.

        The thread has the options that this one has now.
        """
        recipe, name = self.recipe, self.name
        job: Job[Program] | None = JOBS.find(recipe)
        if job is not None:
            return job
        if (made := made_of(recipe)) is not None:
            return ended(recipe, made.program)
        lowered, options = announced(recipe, name), own_options()

        def compile() -> Program:
            with changing(options):
                return shared(recipe, name, lowered)

        return JOBS.start(recipe, compile)

    def completed(self, program: Program) -> Program:
        """A program of the recipe, with the name and the constants of this one."""
        placement = self.placement
        if placement is not None and placement != self.recipe.placement:
            plain, places = self.recipe.placement, program.out_places
            assert plain is not None
            places = as_written(program.lowered, plain, places, placement)
            program = evolve(program, placement=placement, out_places=places)
        lowered = program.lowered
        if lowered.name == self.name and not lowered.constants:
            return program
        own = tuple([literal_of(c, self.literals) for c in lowered.constants])
        lowered = evolve(lowered, name=self.name, constants=own)
        constants = constants_of(lowered, program.placement)
        return evolve(program, lowered=lowered, constants=constants)


def literal_of(constant: Literal, literals: Sequence[Literal]) -> Literal:
    """The constant of a slot."""
    assert isinstance(constant.value, Slot)
    return literals[constant.value.number]
