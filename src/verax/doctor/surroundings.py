"""Floor 6: what the process stands in: variables, threads, the cache of programs.

One idea: a variable that nothing reads, or two that contradict each other, are the
faults that nobody sees; so each variable is looked up among those that are read::

    [finding.name for finding in variable_findings(os.environ)]
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from verax.doctor.findings import Finding, at_home, counted, masked
from verax.ir.system import processors
from verax.rules.values.lazy import loaded
from verax.rules.values.state import STATE

type Environment = Mapping[str, str]

OURS: Final = "VERAX_"
SHOWN: Final = re.compile(
    "(VERAX|JAX|XLA|PJRT|TF|NCCL|CUDA)_.*|NPROC|.*_NUM_THREADS|LD_PRELOAD"
)
# Values that say where a user computes, or let others in.
SECRET: Final = re.compile("ADDRESS|HOST|KEY|TOKEN|CERT|SECRET|PASSWORD")
# Read by other modules than the table of options.
OTHERS: Final = frozenset(
    {
        "VERAX_AS_JAX",
        "VERAX_COORDINATOR_ADDRESS",
        "VERAX_COORDINATOR_PORT",
        "VERAX_CUDA_VISIBLE_DEVICES",
        "VERAX_JAX_RECORD",
        "VERAX_NUM_CPU_DEVICES",
        "VERAX_NUM_PROCESSES",
        "VERAX_PLATFORMS",
        "VERAX_PROCESS_ID",
        "VERAX_RESTART",
        "VERAX_UPDATE_PROGRAMS",
    }
)
"""The variables of verax that no option stands behind."""
PAIRED: Final = ("PLATFORMS", "NUM_CPU_DEVICES", "CUDA_VISIBLE_DEVICES")
# The pools of NumPy and SciPy, by who asks first; and those of XLA.
POOLS: Final = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
XLA_POOLS: Final = ("NPROC", "PJRT_NPROC")
QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
LITTLE: Final = 1 << 28


def variable_findings(environment: Environment) -> Iterator[Finding]:
    """The variables that verax, XLA and their libraries read.

    >>> [x.advice for x in variable_findings({"VERAX_ENABLE_X46": "1"})]
    ['nothing reads it; did you mean VERAX_ENABLE_X64?']
    """
    known = OTHERS | {OURS + name.upper() for name in loaded(*OPTIONS)}
    for name, value in sorted(environment.items()):
        if not SHOWN.fullmatch(name):
            continue
        hidden = "(set)" if SECRET.search(name) else masked(value)
        if name.startswith(OURS) and name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield Finding(name, hidden, "problem", f"nothing reads it{hint}")
        else:
            yield Finding(name, hidden)
    for name in PAIRED:
        ours, jaxs = environment.get(f"VERAX_{name}"), environment.get(f"JAX_{name}")
        if ours and jaxs and ours != jaxs:
            advice = f"VERAX_{name}={ours} is read, since it comes first"
            yield Finding(f"JAX_{name}", "not read", "note", advice)


OPTIONS: Final = ("verax.api.config.options", "OPTIONS")


def thread_findings(environment: Environment) -> Iterator[Finding]:
    """The processors for this process, and the threads that libraries make for them.

    >>> list(thread_findings({"NPROC": "many"}))[-1].level
    'problem'
    """
    here, quota = processors(), quota_of(QUOTA)
    few = quota is not None and quota < here
    told = any([environment.get(name) for name in XLA_POOLS])
    yield Finding(
        "processors",
        f"{here}, of which {quota:g} may be busy" if few else f"{here}",
        "note" if few and not told else "fine",
        f"threads are made for {here}: NPROC and OMP_NUM_THREADS may name fewer"
        if few and not told
        else "",
    )
    counts: dict[str, int] = {}
    for name in (*POOLS, *XLA_POOLS):
        if not (value := environment.get(name)):
            continue
        first = value.split(",")[0].strip()  # OMP_NUM_THREADS may list one per level
        if first.isdecimal() and int(first) > 0:
            counts[name] = int(first)
        else:
            yield Finding(name, masked(value), "problem", "it must be a number from 1")
    pools = {name: counts[name] for name in POOLS if name in counts}
    if len(set(pools.values())) > 1:
        words = ", ".join([f"{name}={count}" for name, count in pools.items()])
        advice = "NumPy and SciPy may have pools of different sizes: set one number"
        yield Finding("pools", words, "problem", advice)
    for name in XLA_POOLS:
        if counts.get(name, 0) > here:
            advice = f"XLA makes more threads than there are processors ({here})"
            yield Finding(name, str(counts[name]), "note", advice)


def quota_of(file: Path) -> float | None:
    """The processors that a container's limit allows; None without a limit."""
    with suppress(OSError, ValueError):
        busy, period = file.read_text().split()
        return int(busy) / int(period)
    return None


def cache_findings() -> Iterator[Finding]:
    """The folder of compiled programs: where, how full, whether it can be written."""
    if not STATE.enable_compilation_cache:
        yield Finding("enabled", "no: enable_compilation_cache is off")
        return
    folder = loaded("verax.backend.xla.disk_cache", "chosen_folder")()
    if folder is None:
        yield Finding("enabled", "no: compilation_cache_dir is not set")
        return
    place = at_home(folder.path)
    if folder.refusal:
        reason = folder.refusal.replace(str(folder.path), place)
        advice = f"programs are compiled in every process again, since {masked(reason)}"
        yield Finding("folder", place, "problem", advice)
        return
    fault = unwritable(folder.path)
    advice = f"programs cannot be kept: {masked(fault)}" if fault else ""
    yield Finding("folder", place, "problem" if fault else "fine", advice)
    if folder.path.is_dir():
        yield contents(folder.path)
        free = shutil.disk_usage(folder.path).free
        full = free < LITTLE
        advice = "the disk is nearly full" if full else ""
        yield Finding("free", megabytes(free), "note" if full else "fine", advice)


def contents(folder: Path) -> Finding:
    """The programs that are kept, and the limit of their size."""
    sizes = []
    with suppress(OSError), os.scandir(folder) as items:
        for item in items:
            with suppress(OSError):
                if item.name.endswith(loaded("verax.backend.xla.disk_cache", "SUFFIX")):
                    sizes.append(item.stat().st_size)
    limit = STATE.compilation_cache_max_size
    most = "without a limit" if limit < 0 else f"of at most {megabytes(limit)}"
    text = f"{counted(len(sizes), 'program')}, {megabytes(sum(sizes))} {most}"
    return Finding("contents", text)


def megabytes(size: int) -> str:
    """A size in words.

    >>> megabytes(3 << 20)
    '3.0 MiB'
    """
    return f"{size / (1 << 20):.1f} MiB"


def unwritable(folder: Path) -> str:
    """Why no file can be made in a folder, or in what is there of the way to it."""
    here = folder
    while not here.exists() and here != here.parent:
        here = here.parent
    if not here.is_dir():
        return "it is not a folder"
    if here != folder:
        return "" if os.access(here, os.W_OK) else "its folder cannot be made"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return os.strerror(error.errno) if error.errno else type(error).__name__
