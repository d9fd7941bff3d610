"""The processor that programs are compiled for, and the flags of the environment.

One idea: what code for the CPU may use is what the system says of the processor; the
cache on disk asks, and so do the options for XLA::

    processor(), model(), threads()     # all that decides about the code
    has_wide_vectors()                  # whether 512 bits at once are the fastest
"""

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from verax.ir.system import processors
from verax.rules.values.memo import pure

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
    """The number of processors for this process, and the environment's limits."""
    return repr((processors(), [os.environ.get(name) for name in THREADS]))


def compiler_flags() -> str:
    """The XLA flags of the environment, or of the file that it names there."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if flags and not flags.startswith("-"):
        with suppress(OSError, UnicodeDecodeError):
            flags = Path(flags).read_text()
    return " ".join(flags.split())


@pure()
def has_wide_vectors() -> bool:
    """Whether code with vectors of 512 bits is the fastest.

    Intel's processors before those with `avx512_fp16` (Sapphire Rapids) slow down where
    they are used, for which LLVM prefers 256 bits on all of Intel's; AMD's do not.
    """
    features = processor().split()
    return "avx512_fp16" in features or (
        "avx512f" in features and "AuthenticAMD" in model()
    )
