"""Compiled programs as bytes, and programs from such bytes (floor 4).

One idea: the machine code holds no arrays, since it takes them as arguments; those that
the function captured lie beside it in the file, and are arguments again once loaded::

    description, parts = saved(program)
    loaded(description, parts, devices).run(args)

What decides whether the code can run here is in the description, and is compared before
jaxlib sees a byte of the code. jaxlib trusts what it loads, and ends the process if
that is wrong, so these files have a strong checksum. It does not protect against
attackers: load only what you trust.
"""

import time
from collections.abc import Sequence
from typing import Any, Final

import jaxlib.version
import numpy as np

from verax.backend.arrays.concrete import devices_text, wrapper
from verax.backend.arrays.places import spread, stored_aval, to_numpy
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.placement.sharding import (
    Sharding,
    SingleDeviceSharding,
    is_local,
    runtime_sharding,
)
from verax.backend.programs.placement import (
    Placement,
    Places,
    SavedPlaces,
    WrittenPlacement,
)
from verax.backend.programs.program import Program, Recipe, placed_options
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import (
    Device,
    check_not_forked,
    default_client,
    local_devices,
)
from verax.backend.xla.compile_options import jaxlib_options
from verax.backend.xla.disk_cache import DiskAnswer, entry_for
from verax.backend.xla.executable import CompileOptions, Executable, load_serialized
from verax.backend.xla.lapack import require_routines
from verax.backend.xla.machine import processor
from verax.ir.avals import ShapedArray
from verax.ir.forms.values import Frame, Json, cut
from verax.ir.jaxpr import Literal, array_literal
from verax.ir.text.tokens import aval_of_word, filed_text


def devices_of(program: Program) -> tuple[Device, ...]:
    """The devices of a program, in the order of their numbers."""
    placement = program.placement
    return (local_devices()[0],) if placement is None else placement.devices


def saved(program: Program) -> tuple[dict[str, Any], list[bytes]]:
    """The program as a JSON description, and parts: code, text, arrays.

    Raises:
        ValueError: it calls functions of this process or runs on devices of others, or
            the platform cannot serialise programs.
    """
    lowered, devices = program.lowered, devices_of(program)
    if not all(map(is_local, devices)):
        raise ValueError(
            f"{lowered.name} runs on devices of several processes, each of which has a "
            "part of the program: compile it in each of them instead"
        )
    try:
        code = program.executable.serialize()
    except RuntimeError as error:
        raise ValueError(f"{lowered.name} cannot be serialised: {error}") from error
    places = SavedPlaces(devices)
    pairs = list(zip(lowered.constants, program.constants, strict=True))
    constants = [constant_place(c, program.placement, devices) for c, _ in pairs]
    arrays = [
        array_bytes(buffer, place, literal.aval)
        for (literal, buffer), place in zip(pairs, constants, strict=True)
    ]
    description = {
        "name": lowered.name,
        "machine": machine(devices),
        "placement": places.write_placement(program.placement),
        "out_places": [places.write(place) for place in program.out_places],
        "kept": lowered.kept,
        "donated": lowered.donated,
        "in_avals": list(map(filed_text, lowered.in_avals)),
        "out_avals": list(map(filed_text, lowered.out_avals)),
        "constants": [
            [filed_text(c.aval), places.write(place)]
            for (c, _), place in zip(pairs, constants, strict=True)
        ],
    }
    return description, [code, lowered.text.encode(), *arrays]


def machine(devices: Sequence[Device]) -> dict[str, Any]:
    """The facts about a machine on which the code for these devices depends."""
    client = devices[0].client
    return {
        "jaxlib": jaxlib.version.__version__,
        "platform": client.platform,
        "platform version": client.platform_version,
        "processor": processor() if client.platform == "cpu" else "",
        "devices": [device.device_kind for device in devices],
    }


def check_machine(name: str, due: dict[str, object], devices: Sequence[Device]) -> None:
    """The code must have been made for such devices and by this jaxlib.

    Raises:
        ValueError: it was not.
    """
    here = machine(devices)
    advice = "compile it here, or use verax.export, whose programs are portable"
    for what in ("jaxlib", "platform", "platform version"):
        if due[what] != here[what]:
            raise ValueError(
                f"{name} was compiled with {what} {due[what]!r}, but this process has "
                f"{here[what]!r}: {advice}"
            )
    if due["devices"] != here["devices"]:
        raise ValueError(
            f"{name} was compiled for devices of the kinds {due['devices']}, but "
            f"{devices_text(devices)} are of the kinds {here['devices']}: {advice}"
        )
    if due["processor"] != here["processor"]:
        raise ValueError(
            f"{name} was compiled for a processor with other features than this one, "
            f"where its code could crash; {advice}"
        )


def constant_place(
    literal: Literal, placement: Placement | None, devices: Sequence[Device]
) -> Sharding:
    """The place of a captured array while the program runs."""
    if placement is None:
        return SingleDeviceSharding(devices[0])
    return placement.of_constant(literal)


def array_bytes(buffer: Buffer, place: Sharding, aval: ShapedArray) -> bytes:
    """The values of a captured array, as they are on the device, in rows."""
    return np.ascontiguousarray(to_numpy(buffer, place, stored_aval(aval))).tobytes()


def check_devices(given: Sequence[object] | None) -> None:
    """Raise TypeError unless all of them are devices."""
    for device in given or ():
        if not isinstance(device, Device):
            raise TypeError(f"a program runs on verax.devices(), not on {device!r}")


def chosen_devices(
    name: str, count: int, backend: str | None, given: Sequence[Device] | None
) -> tuple[Device, ...]:
    """The devices for a loaded program: those passed, by default the first ones.

    Raises:
        ValueError: there are too few, too many, or one twice.
    """
    owned = local_devices(backend)
    devices = owned[:count] if given is None else list(given)
    if len(set(devices)) != count or len(devices) != count:
        raise ValueError(
            f"{name} runs on {count} different devices, but there are {len(devices)}: "
            f"{devices_text(devices)}"
        )
    return tuple(sorted(devices, key=lambda device: device.id))


def loaded(
    description: dict[str, Any],
    parts: Sequence[bytes],
    backend: str | None = None,
    given: Sequence[Device] | None = None,
) -> Program:
    """The program that was saved, on `devices`, by default the first ones.

    Raises:
        ValueError: it cannot run here; the message says what differs.
        RuntimeError: this process was forked, or jaxlib refuses the code.
    """
    check_not_forked()
    name, due = description["name"], description["machine"]
    devices = chosen_devices(name, len(due["devices"]), backend, given)
    check_machine(name, due, devices)
    started = time.perf_counter()
    code, text, *arrays = parts
    places = SavedPlaces(devices)
    constants = [
        constant_of(data, aval_of_word(word), places.read(place) or single(devices))
        for data, (word, place) in zip(arrays, description["constants"], strict=True)
    ]
    literals = tuple([literal for literal, _ in constants])
    lowered = module_of(description, text.decode(), literals)
    placement = placement_here(description["placement"], places, lowered)
    saved_outs = [places.read(place) for place in description["out_places"]]
    outs = [place or single(devices) for place in saved_outs]
    out_places = tuple(outs) or (single(devices),) * len(lowered.out_avals)
    return Program(
        lowered,
        executable_of(code, lowered, devices, out_places),
        tuple([buffer for _, buffer in constants]),
        lowered.out_avals,
        time.perf_counter() - started,
        placement,
        () if placement is None else out_places,
    )


def module_of(
    description: dict[str, Any], text: str, constants: tuple[Literal, ...]
) -> Lowered:
    """The module of a saved program, as far as it is known."""
    return Lowered(
        text,
        constants,
        tuple(description["kept"]),
        tuple(map(aval_of_word, description["in_avals"])),
        tuple(map(aval_of_word, description["out_avals"])),
        tuple(description["donated"]),
        name=description["name"],
    )


def executable_of(
    code: bytes,
    lowered: Lowered,
    devices: Sequence[Device],
    out_places: Sequence[Sharding],
) -> Executable:
    """The machine code, ready to run on these devices."""
    require_routines(lowered.text)
    avals = [stored_aval(aval) for aval in lowered.out_avals]
    return load_serialized(
        devices[0].client,
        code,
        devices,
        CompileOptions(num_partitions=len(devices)),
        out_avals=avals,
        out_shardings=[
            runtime_sharding(place, len(aval.shape))
            for place, aval in zip(out_places, avals, strict=True)
        ],
    )


def single(devices: Sequence[Device]) -> Sharding:
    return SingleDeviceSharding(devices[0])


def constant_of(
    data: bytes, aval: ShapedArray, place: Sharding
) -> tuple[Literal, Buffer]:
    """A captured array at its place, as a literal and as what the program takes."""
    stored = stored_aval(aval)
    values = np.frombuffer(data, stored.dtype).reshape(stored.shape)
    buffer = spread(values, aval, place, copy=True)
    array = wrapper(aval, place, committed=place.num_devices > 1)(buffer)
    return array_literal(array, aval), buffer


def placement_here(
    data: WrittenPlacement | None, places: SavedPlaces, lowered: Lowered
) -> Placement | None:
    """The placement at this moment; None if simply on the first device."""
    devices = places.devices
    if data is not None:
        return places.read_placement(data)
    if devices == (local_devices()[0],):
        return None
    ins: Places = (None,) * len(lowered.kept)
    outs: Places = (None,) * len(lowered.out_avals)
    return Placement(devices, ins, outs, committed=True)


def sha256(body: bytes) -> bytes:
    """A checksum that accidental damage does not pass."""
    from hashlib import sha256 as checksum

    return checksum(body).digest()


FRAME: Final = Frame(
    b"verax-program\n",
    1,
    "compiled program",
    "serialize() of a compiled stage",
    sha256,
)


def pack(description: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """The file: a description, whose values JSON knows, and parts of any bytes."""
    sizes: list[Json] = [len(part) for part in parts]
    return FRAME.pack({**description, "sizes": sizes}, parts)


def unpack(data: object) -> tuple[dict[str, Any], list[bytes]]:
    """The description and the parts.

    Raises:
        TypeError: `data` is not bytes.
        ValueError: it is another file, is damaged, or of another version.

    >>> unpack(pack({"name": "f"}, [b"code"]))
    ({'name': 'f', 'sizes': [4]}, [b'code'])
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a compiled program must be bytes, not {type(data).__name__}")
    result, rest = FRAME.unpack(bytes(data))
    description: Any = result
    with FRAME.understanding():
        return description, cut(rest, description["sizes"])


# -----------------------------------------------------------------------------
# Whether the compilation cache on disk holds a program, and why not.
#
# Nothing is read or compiled to answer; the name of the file follows from the
# text of the program, and a file is there or not::
#
#     stored(recipe, lowered)     # DiskAnswer(True, "/tmp/cache/5e...verax")


def stored(recipe: Recipe, lowered: Lowered) -> DiskAnswer:
    """Whether the file of a program is there."""
    client, devices = default_client(), local_devices()[:1]
    options = recipe.options.settled(lowered.small)
    if recipe.placement is not None:
        devices = list(recipe.placement.devices)
        client = devices[0].client
        options = placed_options(options, recipe.placement)
    how = jaxlib_options(devices, options, lowered.text)
    entry = entry_for(client, lowered.text, devices, options, how, lowered.calls)
    if isinstance(entry, DiskAnswer):
        return entry
    return DiskAnswer(entry.path.exists(), str(entry.path))
