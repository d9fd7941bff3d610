"""Floor 4: compiling programs whose devices are not simply the first.

One idea: what a run needs is decided when the program is made, so compiling says where
every output lies, which XLA may have chosen::

    executable, outs = compile_placed(lowered, options, placement)
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.arrays.placed import buffer_at
from verax.backend.arrays.places import spread, stored_aval
from verax.backend.lowering.result import Kinds, Lowered, Memories, Spread
from verax.backend.placement.mesh import AbsentDevice
from verax.backend.placement.sharding import (
    HloSharding,
    NamedSharding,
    RuntimeSharding,
    Sharding,
    from_hlo,
    runtime_sharding,
)
from verax.backend.programs.placement import Placement, Places
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import default_client
from verax.backend.runtime.errors import CompileError
from verax.backend.xla.executable import CompileOptions, Executable, compile_text
from verax.ir.jaxpr import Literal
from verax.ir.meshes import Layout
from verax.rules.values.lazy import LazyModule
from verax.rules.values.state import STATE, State
from verax.transforms.engine.engine import literal_value

compare_programs = LazyModule("verax.backend.processes.comparison").compare_programs


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
    """How the parts of an array lie; None on one device."""
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
    found: list[Sharding] = list(asked)

    def chosen(hlos: Sequence[HloSharding]) -> list[RuntimeSharding]:
        for i, aval in enumerate(avals):
            if free[i] and placement.mesh is not None and len(devices) > 1:
                ndim = len(aval.shape)
                place = from_hlo(hlos[i], devices, ndim, placement.mesh)
                if place.explicit:
                    place = place.update(spec=place.spec.padded(ndim))
                found[i] = place
        fit = [is_even(place, a.shape) for place, a in zip(found, avals, strict=True)]
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
            for place, aval in zip(found, avals, strict=True)
        ]

    if State.joined and STATE.compare_programs:
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
    return executable, tuple(found)


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
