"""Programs as each device of a mesh gets them, which need not be there (floor 4).

One idea: the devices of a placement say where to compile: on those of the process, or
on as many that stand for what is absent::

    compile_for_mesh(lower, options, placement).memory.peak
"""

from collections.abc import Callable

from attrs import evolve

from verax.backend.arrays.places import stored_aval
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.placement.mesh import AbsentDevice
from verax.backend.placement.sharding import Sharding, from_hlo
from verax.backend.programs.placement import Placement
from verax.backend.programs.program import (
    Uneven,
    build,
    build_placed,
    is_even,
    placed_options,
    platform_of,
    refuse_two_bits,
)
from verax.backend.runtime.metrics import stage
from verax.backend.xla.compile_options import CompileOptions
from verax.backend.xla.lapack import require_routines
from verax.backend.xla.virtual import Partitioned, check_count, compile_virtual
from verax.rules.values.state import changing

type LowerFor = Callable[[Placement | None, str], Lowered]
"""Makes the module for a placement and a platform."""


def is_absent(placement: Placement | None) -> bool:
    """Whether this process does not see the devices of a placement."""
    return placement is not None and isinstance(placement.devices[0], AbsentDevice)


def platform_for(placement: Placement | None) -> str:
    """The platform for which the program of a placement is compiled."""
    return "cpu" if is_absent(placement) else platform_of(placement)


def compile_for_mesh(
    lower: LowerFor, options: CompileOptions, placement: Placement | None
) -> Partitioned:
    """The program that each device of a placement would run, compiled now.

    Devices that are not there are stood for by CPUs; neither the client of the process
    nor the cache of programs is touched, and nothing is run.

    Raises:
        CompileError: XLA refused the program.
        ValueError: it is for more devices that are not there than can be stood for.
    """
    absent = is_absent(placement)
    if placement is not None and absent:
        check_count(len(placement.devices))
    lowered = lower(placement, platform_for(placement))
    quiet = {"enable_compilation_cache": False, "compare_programs": False}
    try:
        with changing(quiet):
            if placement is None:
                program = build(lowered, options, late=True)
            elif absent:
                return virtual(lowered, options, placement)
            else:
                program = build_placed(lowered, options, placement, late=True)
    except Uneven as error:
        assert placement is not None
        even = evolve(placement, outs=error.outs)
        return compile_for_mesh(lower, options, even)
    executable = program.executable
    return Partitioned(executable.hlo_text(), executable.memory_analysis())


def virtual(
    lowered: Lowered, options: CompileOptions, placement: Placement
) -> Partitioned:
    """The program for devices that are not there.

    Raises:
        Uneven: results cannot lie as XLA chose.
    """
    require_routines(lowered.text)
    refuse_two_bits(lowered, len(placement.devices))
    # Machine code that never runs need not be good.
    settled = placed_options(evolve(options, effort="fast"), placement)
    count = len(placement.devices)
    with stage(lowered.name, "XLA"):
        out = compile_virtual(lowered.text, count, settled, lowered.calls)
    check_outputs(out, lowered, placement)
    return out


def check_outputs(out: Partitioned, lowered: Lowered, placement: Placement) -> None:
    """Raise `Uneven` where XLA split an output into parts of different sizes."""
    mesh = placement.mesh
    if mesh is None or not out.out_shardings:
        return
    places: list[Sharding | None] = []
    avals = [stored_aval(aval) for aval in lowered.out_avals]
    pairs = zip(placement.outs, avals, out.out_shardings, strict=True)
    for place, aval, hlo in pairs:
        if place is None:
            chosen = from_hlo(hlo, placement.devices, len(aval.shape), mesh)
            fits = is_even(chosen, aval.shape)
            places.append(None if fits else placement.whole)
        else:
            places.append(place)
    if tuple(places) != placement.outs:
        raise Uneven(tuple(places))
