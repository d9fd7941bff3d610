"""Programs for devices that are not there: compiled, and never run (floor 4).

One idea: a CPU client can have any number of devices, and a program for a mesh depends
on their number alone. So a client beside that of the process, which is not touched,
compiles the program, and is gone afterwards::

    partitioned = compile_virtual(lowered.text, 64, options)
    partitioned.text, partitioned.memory.temporaries
"""

from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen
from jaxlib import _hlo
from jaxlib.xla_client import make_cpu_client

from verax.backend.lowering.mlir_text import NO_CALLS, HostCalls, without_algorithms
from verax.backend.runtime.errors import RuleFailed
from verax.backend.xla.compile_options import (
    CompileOptions,
    compile_error,
    jaxlib_options,
)
from verax.backend.xla.executable import MemoryAnalysis, load_text, memory_of
from verax.ir.records import ReprMixin

MOST_DEVICES: Final = 512
"""Each takes some threads and memory of this machine, though it computes nothing."""


@frozen(eq=False, repr=False)
class Partitioned(ReprMixin):
    """What XLA makes of a program for several devices: the part of each.

    Attributes:
        text: the program of one device, in XLA's own language.
        memory: the bytes that one device needs.
        out_shardings: the shardings of outputs, of which XLA may have chosen some.
    """

    text: str
    memory: MemoryAnalysis
    out_shardings: Sequence[_hlo.HloSharding] = ()


def check_count(count: int) -> None:
    """Raise ValueError for more devices than this machine can stand for."""
    if count > MOST_DEVICES:
        raise ValueError(
            f"a mesh of {count} devices that are not there is more than the "
            f"{MOST_DEVICES} for which one process can compile: make an axis of the "
            "mesh shorter that repeats the same pattern, such as that of the batch"
        )


def compile_virtual(
    text: str,
    count: int,
    options: CompileOptions,
    calls: HostCalls = NO_CALLS,
) -> Partitioned:
    """Compile a StableHLO module for so many CPU devices that are not there.

    Their numbers are 0, 1, 2 and so on. `options` say which outputs XLA may place.

    Raises:
        CompileError: XLA refused the text or an option.
        ValueError: there are too many devices.
    """
    check_count(count)
    client = make_cpu_client(num_devices=count)
    devices = client.local_devices()
    how = jaxlib_options(devices, evolve(options, num_partitions=count), text)
    plain = without_algorithms(text)
    try:
        loaded = load_text(client, plain, devices, how, calls, [])
    except RuleFailed as failure:
        raise failure.error from failure.error.__cause__
    except (RuntimeError, ValueError) as error:
        raise compile_error(error, options) from error
    protos = loaded.get_output_shardings() if count > 1 else None
    hlos = [_hlo.HloSharding.from_proto(proto) for proto in protos or ()]
    return Partitioned(loaded.get_hlo_text(), memory_of(loaded), hlos)
