"""What decides about the code of a compiled program, as the name of its file (floor 4).

One idea: two processes share a program only if a compiler would give them the same one,
so all that it looks at goes into one hash::

    key_of(client, text, devices, options)      # "5e884898da28..."
"""

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

import jaxlib.version
from jaxlib import _jax

from verax.rules.values.lazy import LazyModule, loaded
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

# Imported when first called: it costs as much as ten modules of ours.
hashlib = LazyModule("hashlib")

FORMAT: Final = "verax-executable 2"
# What /proc/cpuinfo says of the instructions of a processor and of its model.
FEATURES: Final = ("flags", "Features")
MODELS: Final = (
    "vendor_id",
    "cpu family",
    "model",
    "CPU implementer",
    "CPU variant",
    "CPU part",
)
# How many threads a program for the CPU has, over which XLA spreads its loops.
THREADS: Final = ("NPROC", "PJRT_NPROC")
# Flags and options that ask XLA to write down how it compiles.
DUMPS: Final = "xla_dump"


def cpuinfo() -> Iterator[str]:
    """The system's account of the first processor, line by line."""
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        for line in takewhile(str.strip, lines):
            yield line.rstrip("\n")


@pure()
def processor() -> str:
    """The instructions that code for the CPU may use: the processor's features."""
    for line in cpuinfo():
        if line.startswith(FEATURES):
            return f"{platform.machine()} {line}"
    return f"{platform.machine()} {platform.processor()}"


@pure()
def model() -> str:
    """The model for which LLVM tunes code for the CPU.

    Where the features are unknown it is the name of the machine, so that no two share
    programs.
    """
    lines = [" ".join(line.split()) for line in cpuinfo()]
    if not any(line.startswith(FEATURES) for line in lines):
        return f"{platform.node()} {platform.version()}"
    return repr([line for line in lines if line.partition(":")[0].strip() in MODELS])


def threads() -> str:
    """How many processors this process may use, and what the environment says of it."""
    count = os.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return repr((count, [os.environ.get(name) for name in THREADS]))


def compiler_flags() -> str:
    """The XLA flags of the environment, or of the file that it names there."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if flags and not flags.startswith("-"):
        with suppress(OSError, UnicodeDecodeError):
            flags = Path(flags).read_text()
    return " ".join(flags.split())


def key_of(
    client: _jax.Client,
    text: str,
    devices: Sequence[_jax.Device],
    options: _jax.CompileOptions,
) -> str:
    """A hash of all that decides about the code, the same in every process."""
    on_cpu = client.platform == "cpu"
    parts = [
        FORMAT,
        loaded("verax", "__version__"),
        jaxlib.version.__version__,
        jaxlib.version._git_hash,
        client.platform,
        client.platform_version,
        *([processor(), model(), threads()] if on_cpu else ()),
        compiler_flags(),
        repr([(device.id, device.device_kind) for device in devices]),
        STATE.compilation_cache_key or "",
        text,
    ]
    digest = hashlib.sha256(options.SerializeAsString())
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    name: str = digest.hexdigest()
    return name
