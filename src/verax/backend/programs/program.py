"""Floor 4: compiled programs: a jaxpr, lowered and compiled once, run many times.

One idea: jaxprs hash by structure, so two functions with equal jaxprs share one
executable; constants and unused arguments are sorted out when the program is made::

    program = compiled(engine, jaxpr, "f")
    program.run([x])
"""

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, cast

import numpy as np
from attrs import evolve, frozen

from verax.backend.arrays.concrete import ConcreteArray, from_buffer, to_buffer
from verax.backend.lowering.lower import lower
from verax.backend.lowering.result import Lowered
from verax.backend.placement.sharding import Sharding
from verax.backend.programs.placed_program import (
    Uneven,
    compile_placed,
    constant_at,
    donation_to,
    mark_donated,
    placed_run,
    spread_of,
)
from verax.backend.programs.placement import Placement, place_of
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import AvalLike, Buffer
from verax.backend.runtime.client import (
    check_not_forked,
    default_client,
    local_devices,
    platform_name,
)
from verax.backend.runtime.locks import Locks
from verax.backend.xla.executable import CompileOptions, Executable, compile_text
from verax.backend.xla.lapack import require_routines
from verax.ir.avals import ShapedArray
from verax.ir.consts import Slot, numbered
from verax.ir.dtypes import bool_, device_value, float0
from verax.ir.extended import ExtendedDType
from verax.ir.jaxpr import Jaxpr, Literal, empty_jaxpr
from verax.ir.memo import Recent
from verax.rules.rows.builder import Tracer
from verax.rules.rows.leaks import leaked
from verax.rules.rows.row import Engine
from verax.rules.values.constants import scalar_of
from verax.transforms.engine.evaluate import literal_value

PROGRAMS = 1 << 12
LOCKS: Final = Locks()


@frozen(eq=False)
class Program:
    """An executable with the constants it takes first and the arguments it keeps."""

    lowered: Lowered
    executable: Executable
    constants: tuple[Buffer, ...]
    positions: tuple[int, ...] | None
    out_avals: tuple[ShapedArray, ...]
    seconds: float
    placement: Placement | None = None
    out_places: tuple[Sharding, ...] = ()

    @cached_property
    def run(self) -> "Run":
        """Runs the program: arguments of the input types to outputs, maybe unfinished.

        Raises:
            RuntimeError: an argument was deleted, or the program failed.
        """
        if self.placement is not None:
            return placed_run(
                self.lowered,
                self.executable,
                self.constants,
                self.placement,
                self.out_places,
            )
        execute, out_avals = self.executable.execute, self.out_avals
        constants, positions = self.constants, self.positions
        donated, in_avals = self.lowered.donated, self.lowered.in_avals
        how = donation_to(self.lowered)

        def run(args: Sequence[object]) -> list[ConcreteArray]:
            given = args if positions is None else [args[i] for i in positions]
            ins = [
                x.buffer
                if type(x) is ConcreteArray and x.buffer is not None
                else buffer_of(x, aval)
                for x, aval in zip(given, in_avals, strict=True)
            ]
            outs = execute([*constants, *ins] if constants else ins)
            for i in donated:
                mark_donated(args[i], how)
            return list(map(from_buffer, outs, out_avals))

        return run

    @cached_property
    def plain(self) -> bool:
        """Whether every value is on a device what its type says, keys included."""
        avals = (*self.lowered.in_avals, *self.out_avals)
        return not any([aval.dtype == float0 for aval in avals])


type Run = Callable[[Sequence[object]], list[ConcreteArray]]


def buffer_of(x: object, aval: ShapedArray) -> Buffer:
    """An operand of type `aval` on the default device."""
    if isinstance(x, ConcreteArray):
        return x.device_buffer()
    if isinstance(x, Tracer):
        raise leaked(x)
    if isinstance(x, np.ndarray):
        # The caller may write to its array while the program runs: copy.
        values = device_value(x, aval.dtype)
        return buffers.put(device_aval(aval), values, local_devices()[0], copy=True)
    value = scalar_of(x, aval)
    return buffers.put(device_aval(aval), value, local_devices()[0], copy=False)


def device_aval(aval: ShapedArray) -> AvalLike:
    """The type on the device, whose dtype is always NumPy's."""
    return stored(aval)  # type: ignore[return-value]  # stored types are not extended


def constant_buffer(literal: Literal) -> Buffer:
    """An array constant on its device, or on the default device, in its own type."""
    if isinstance(literal.value, ConcreteArray):
        return literal.value.device_buffer()
    return to_buffer(np.array(literal_value(literal)), literal.aval)


def stored(aval: ShapedArray) -> ShapedArray:
    """The type on the device: keys are their words, and float0 has booleans."""
    if isinstance(aval.dtype, ExtendedDType):
        shape = (*aval.shape, *aval.dtype.element_shape)
        return ShapedArray(shape, aval.dtype.element_dtype)
    return ShapedArray(aval.shape, bool_) if aval.dtype == float0 else aval


def build(lowered: Lowered, options: CompileOptions, late: bool = False) -> Program:
    """Compile a lowered module for the default device; with `late`, sans constants."""
    options = options.settled(lowered.small)
    require_routines(lowered.text)
    started = time.perf_counter()
    executable = compile_text(
        default_client(),
        lowered.text,
        [local_devices()[0]],
        options,
        out_avals=[device_aval(aval) for aval in lowered.out_avals],
        calls=lowered.calls,
    )
    kept = [i for i, flag in enumerate(lowered.kept) if flag]
    return Program(
        lowered,
        executable,
        () if late else constants_of(lowered, None),
        None if all(lowered.kept) else tuple(kept),
        lowered.out_avals,
        time.perf_counter() - started,
    )


@frozen
class Recipe:
    """All that decides about a program, but for the name that messages give it.

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
    client = default_client() if placement is None else placement.devices[0].client
    return platform_name(client)


@frozen(eq=False)
class Made:
    """A program without its constants, and the jaxpr it was made of.

    The lines of the jaxpr say who asked first. It is empty where the program is kept by
    its jaxpr, which would keep itself alive.
    """

    program: Program
    jaxpr: Jaxpr


MADE: Final = Recent[Recipe, Made](PROGRAMS)
"""The programs of this process by what they compute, whatever they are called.

Those that hold functions of the user's are kept by the jaxprs that they were made of.
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
    found = store.get(numbered)
    if found is None:
        found = store[numbered] = numbered(jaxpr, place_of)
    return found


def made_of(recipe: Recipe) -> Made | None:
    """What was made of a recipe, if anything is known."""
    if not recipe.jaxpr.transient:
        return MADE.find(recipe)
    return cast(Made | None, recipe.jaxpr.kept.get(without_jaxpr(recipe)))


def without_jaxpr(recipe: Recipe) -> Recipe:
    """The recipe as a key beside its jaxpr, which would keep itself alive."""
    return evolve(recipe, jaxpr=EMPTY)


EMPTY: Final = empty_jaxpr((), ())


def shared(recipe: Recipe, name: str) -> Program:
    """The program of a recipe, made now if there is none."""
    found = made_of(recipe)
    if found is None:
        with LOCKS.of(recipe):
            found = made_of(recipe)  # another thread may have made it meanwhile
            if found is None:
                program = make(recipe, name)
                if recipe.jaxpr.transient:
                    found = Made(program, EMPTY)
                    recipe.jaxpr.kept[without_jaxpr(recipe)] = found
                else:
                    found = MADE.add(recipe, Made(program, recipe.jaxpr))
    return found.program


def make(recipe: Recipe, name: str) -> Program:
    """Lower and compile."""
    engine, jaxpr, options = recipe.engine, recipe.jaxpr, recipe.options
    keep_unused, donated = recipe.keep_unused, recipe.donated
    placement = recipe.placement
    spread = None if placement is None else spread_of(placement)
    lowered = lower(
        engine,
        jaxpr,
        name,
        platforms=(recipe.platform,),
        keep_unused=keep_unused,
        donated=donated,
        spread=spread,
    )
    if placement is None:
        return build(lowered, options, late=True)
    try:
        return build_placed(lowered, options, placement, late=True)
    except Uneven as error:
        even = evolve(placement, outs=error.outs)
    return shared(evolve(recipe, placement=even), name)


def build_placed(
    lowered: Lowered, options: CompileOptions, placement: Placement, late: bool = False
) -> Program:
    """As `build`, for the devices of a placement."""
    options = options.settled(lowered.small)
    require_routines(lowered.text)
    started = time.perf_counter()
    executable, places = compile_placed(lowered, options, placement)
    return Program(
        lowered,
        executable,
        () if late else constants_of(lowered, placement),
        None,
        lowered.out_avals,
        time.perf_counter() - started,
        placement,
        places,
    )


def constants_of(lowered: Lowered, placement: Placement | None) -> tuple[Buffer, ...]:
    """The array constants where the program runs."""
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
    check_not_forked()
    recipe, literals = recipe_of(
        engine, jaxpr, options, keep_unused, donated, placement
    )
    program = shared(recipe, name)
    lowered = program.lowered
    if lowered.name == name and not lowered.constants:
        return program
    own = tuple([literal_of(c, literals) for c in lowered.constants])
    lowered = evolve(lowered, name=name, constants=own)
    constants = constants_of(lowered, program.placement)
    return evolve(program, lowered=lowered, constants=constants)


def literal_of(constant: Literal, literals: Sequence[Literal]) -> Literal:
    """The constant of a slot."""
    assert isinstance(constant.value, Slot)
    return literals[constant.value.number]
