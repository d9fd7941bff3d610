"""Compiling and running programs whose devices are not simply the first (floor 4).

One idea: what a run needs is decided when the program is made: a place for every
argument, and a function that wraps every result::

    executable, outs = compile_placed(lowered, options, placement)
    placed_run(lowered, executable, constants, placement, outs)(args)
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve

from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.arrays.placed import buffer_at, spread, stored_aval, wrapper
from verax.backend.lowering.result import Lowered, Spread
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
from verax.backend.xla.executable import CompileOptions, Executable, compile_text
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import device_value
from verax.ir.jaxpr import Literal
from verax.ir.meshes import Layout
from verax.rules.rows.builder import Tracer
from verax.rules.rows.leaks import leaked
from verax.rules.values.constants import scalar_of
from verax.transforms.engine.evaluate import literal_value


def spread_of(placement: Placement) -> Spread | None:
    """What the module says of the placement; nothing for a single device."""
    if len(placement.devices) == 1:
        return None
    count = range(len(placement.ins))
    return Spread(
        tuple([device.id for device in placement.devices]),
        tuple([layout_of(placement.of_input(i)) for i in count]),
        tuple([None if s is None else layout_of(s) for s in placement.outs]),
        lambda literal: layout_of(placement.of_constant(literal)),
    )


def layout_of(place: Sharding) -> Layout:
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
        Uneven: arrays cannot lie as XLA chose; it holds outputs to ask for instead.
    """
    devices = placement.devices
    avals = [stored_aval(aval) for aval in lowered.out_avals]
    free = tuple([place is None for place in placement.outs])
    asked = [place or placement.whole for place in placement.outs]
    found: list[Sharding] = list(asked)

    def chosen(hlos: Sequence[HloSharding]) -> list[RuntimeSharding]:
        for i, aval in enumerate(avals):
            if free[i] and placement.mesh is not None and len(devices) > 1:
                ndim = len(aval.shape)
                found[i] = from_hlo(hlos[i], devices, ndim, placement.mesh)
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


def placed_options(options: CompileOptions, placement: Placement) -> CompileOptions:
    """The options with which XLA spreads a program over the devices of a placement."""
    free = tuple([place is None for place in placement.outs])
    return evolve(options, num_partitions=len(placement.devices), free_outputs=free)


def is_even(place: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether all parts of an array of this shape have one size."""
    counts = place.tiling(len(shape)).counts
    return not any(n % count for n, count in zip(shape, counts, strict=True))


type Run = Callable[[Sequence[object]], list[ConcreteArray]]


def placed_run(
    lowered: Lowered,
    executable: Executable,
    constants: Sequence[Buffer],
    placement: Placement,
    outs: Sequence[Sharding],
) -> Run:
    """Runs the program: what is not at its place yet is sent there first."""
    kept = [i for i, flag in enumerate(lowered.kept) if flag]
    places = [placement.of_input(i) for i in kept]
    wraps = [
        wrapper(aval, place, placement.committed)
        for aval, place in zip(lowered.out_avals, outs, strict=True)
    ]

    how = donation_to(lowered)

    def run(args: Sequence[object]) -> list[ConcreteArray]:
        ins = [
            operand_buffer(args[i], aval, place)
            for i, aval, place in zip(kept, lowered.in_avals, places, strict=True)
        ]
        buffers = executable.execute([*constants, *ins])
        for i in lowered.donated:
            mark_donated(args[i], how)
        return [wrap(buffer) for wrap, buffer in zip(wraps, buffers, strict=True)]

    return run


def donation_to(lowered: Lowered) -> str:
    """How arrays end whose memory this program takes, for `ConcreteArray.end`."""
    return f"when its memory was donated to {lowered.name}"


def mark_donated(x: object, how: str) -> None:
    """Forget the values of a donated array, the copy in NumPy's memory included."""
    if isinstance(x, ConcreteArray):
        x.end(how)


def operand_buffer(x: object, aval: ShapedArray, place: Sharding) -> Buffer:
    """An operand of type `aval` at its place."""
    if isinstance(x, ConcreteArray):
        return buffer_at(x, place)
    if isinstance(x, Tracer):
        raise leaked(x)
    if isinstance(x, np.ndarray):
        return spread(np.array(device_value(x, aval.dtype)), aval, place, copy=False)
    return spread(scalar_of(x, aval), aval, place, copy=False)


def constant_at(literal: Literal, placement: Placement) -> Buffer:
    """A captured array where the program expects it."""
    place = placement.of_constant(literal)
    value = literal.value
    if isinstance(value, ConcreteArray):
        return buffer_at(value, place)
    return spread(np.array(literal_value(literal)), literal.aval, place, copy=False)
